"""Automata: the algebra of sets, one form for each set, and intervals where they suffice."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestnik.errors import FilterTooComplex
from vestnik.model.regular.automata import Automaton
from vestnik.model.regular.expressions import ANY, ANYTHING, EMPTY, Chars, Choice, Concat, Edge, Expression, Repeat
from vestnik.model.regular.patterns import compile_like
from vestnik.model.regular.regex import compile_regex

many = settings(max_examples=settings().max_examples * 2)

ALPHABET = "abc\0\ud7ff\ue000\U0010ffff"
texts = st.text(ALPHABET, max_size=5)
chars = st.lists(st.sampled_from(ALPHABET), min_size=2, max_size=2).map(
    lambda pair: Chars.of([(min(map(ord, pair)), max(map(ord, pair)))])
)


def combined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(parts, max_size=3).map(tuple)
    bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 3), (2, None)])
    repeats = st.builds(lambda part, bound: Repeat(part, *bound), parts, bounds)
    return several.map(Concat) | several.map(Choice) | repeats


leaves: st.SearchStrategy[Expression] = (
    chars | chars.map(Chars.negated) | st.sampled_from([ANY, ANYTHING, EMPTY, Edge(False), Edge(True)])
)
expressions: st.SearchStrategy[Expression] = st.recursive(leaves, combined, max_leaves=6)
automata = expressions.map(Automaton.matching)
cut_lists = st.lists(texts, unique=True, max_size=6).map(sorted)


def slow_accepts(automaton: Automaton, text: str) -> bool:
    state = 0
    for char in text:
        starts = automaton.starts[state]
        state = automaton.targets[state][max(i for i, start in enumerate(starts) if start <= ord(char))]
    return automaton.accepting[state]


def slow_ends(expression: Expression, text: str, at: int) -> set[int]:
    """Where a match of `expression` that begins `at` may end."""
    match expression:
        case Chars():
            inside = at < len(text) and any(low <= ord(text[at]) <= high for low, high in expression.ranges())
            return {at + 1} if inside else set()
        case Edge(at_end):
            return {at} if at == (len(text) if at_end else 0) else set()
        case Concat(parts):
            ends = {at}
            for part in parts:
                ends = {end for middle in ends for end in slow_ends(part, text, middle)}
            return ends
        case Choice(parts):
            return {end for part in parts for end in slow_ends(part, text, at)}
        case Repeat(part, low, high):
            ends, found = {at}, set()
            for times in range(len(text) + low + 1 if high is None else high + 1):
                found |= ends if times >= low else set()
                ends = {end for middle in ends for end in slow_ends(part, text, middle)}
            return found


def interval_list(cuts: list[str]) -> tuple[tuple[str, str | None], ...]:
    return tuple(zip(cuts[::2], [*cuts[1::2], None], strict=False))


def within(intervals: tuple[tuple[str, str | None], ...], text: str) -> bool:
    return any(low <= text and (high is None or text < high) for low, high in intervals)


@given(expressions, texts)
@many
def test_an_automaton_accepts_what_its_expression_matches(expression: Expression, text: str) -> None:
    assert Automaton.matching(expression).accepts(text) == (len(text) in slow_ends(expression, text, 0))


@given(automata, st.lists(texts, max_size=5))
def test_accepting_is_walking_the_table(automaton: Automaton, several: list[str]) -> None:
    for text in several:
        assert automaton.accepts(text) == slow_accepts(automaton, text)


@given(automata, automata, st.lists(texts, max_size=5))
@many
def test_operations_are_those_of_sets(a: Automaton, b: Automaton, several: list[str]) -> None:
    both, either, first = a.intersection(b), a.union(b), a.intersection(b.complement())
    for text in several:
        in_a, in_b = a.accepts(text), b.accepts(text)
        assert both.accepts(text) == (in_a and in_b)
        assert either.accepts(text) == (in_a or in_b)
        assert first.accepts(text) == (in_a and not in_b)
        assert a.complement().accepts(text) != in_a


@given(automata, automata, automata)
@many
def test_equal_sets_are_equal_objects(a: Automaton, b: Automaton, c: Automaton) -> None:
    assert a.union(b) == b.union(a)
    assert a.intersection(b) == b.intersection(a)
    assert a.intersection(b.union(c)) == a.intersection(b).union(a.intersection(c))
    assert a.union(b).complement() == a.complement().intersection(b.complement())
    assert a.intersection(b.complement()).union(a.intersection(b)) == a
    assert a.union(a.complement()) == Automaton.everything()
    assert a.intersection(a.complement()) == Automaton.nothing()
    assert hash(a.union(b)) == hash(b.union(a))


@given(automata, automata)
def test_questions_agree_with_the_sets_they_do_not_build(a: Automaton, b: Automaton) -> None:
    assert a.overlaps(b) == (not a.intersection(b).is_empty)
    assert a.includes(b) == b.intersection(a.complement()).is_empty
    assert a.includes(a.intersection(b)) and a.union(b).includes(a)
    assert (a == b) == (a.includes(b) and b.includes(a))


@given(automata)
def test_the_table_is_canonical(automaton: Automaton) -> None:
    for starts, targets in zip(automaton.starts, automaton.targets, strict=True):
        assert starts[0] == 0 and list(starts) == sorted(set(starts))
        assert not any(0xD800 <= start < 0xE000 for start in starts)
        assert all(one != two for one, two in pairwise(targets))
    met = list(dict.fromkeys([0, *(target for targets in automaton.targets for target in targets)]))
    assert met == list(range(len(automaton.accepting)))


@pytest.mark.parametrize(
    "same",
    [
        ["(a|b)*", "[ab]*", "(a*b*)*", "(?:a|b|)*", "[a-b]*?", "((a|b)?)*"],
        ["a+", "aa*", "a*a", "a{1,}", "(a+)+"],
        ["", "()", "a{0}", "^$", "(|)", "$^"],
        [".*", "(?s).*", "[^a]*(a[^a]*)*", "(.*)*"],
        ["a{2,4}", "aa(a(a)?)?", "aaaa|aaa|aa"],
        ["[^\\x{0}-\\x{10FFFF}]", "a$b", "b^a", "\\x{D800}"],
        ["[\\x{0}-\\x{D7FF}]", "[^\\x{E000}-\\x{10FFFF}]", "[\\x{0}-\\x{DFFF}]"],
    ],
)
def test_ways_to_write_one_set(same: list[str]) -> None:
    assert len({compile_regex(pattern) for pattern in same}) == 1


@given(automata)
def test_pickling_keeps_the_set_and_drops_what_was_remembered(automaton: Automaton) -> None:
    before = pickle.dumps(automaton)
    automaton.accepts("abc")
    assert pickle.dumps(automaton) == before
    assert pickle.loads(before) == automaton
    assert pickle.loads(before).accepts("abc") == automaton.accepts("abc")


def test_an_automaton_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Automaton.nothing().accepting = (True,)  # type: ignore[misc]


@given(automata, texts)
def test_an_example_is_in_the_set_and_none_is_shorter(automaton: Automaton, text: str) -> None:
    example = automaton.example()
    assert (example is None) == automaton.is_empty
    assert example is None or automaton.accepts(example)
    assert not automaton.accepts(text) or (example is not None and len(example) <= len(text))


def test_examples_read_well() -> None:
    assert compile_regex(".{3}").example() == "aaa"
    assert compile_regex(r"[^\w]\pL\d?.*x").example() == "-ax"
    assert compile_regex(r"[\x{0}-\x{20}]\x{7}").example() == " \x07"
    assert "'ab'" in repr(compile_like("ab%"))


@given(cut_lists)
def test_intervals_come_back(cuts: list[str]) -> None:
    intervals = interval_list(cuts)
    automaton = Automaton.from_intervals(intervals)
    assert automaton.intervals() == intervals
    assert automaton.intervals(len(cuts)) == intervals
    assert not cuts or automaton.intervals(len(cuts) - 1) is None


@given(cut_lists, cut_lists, st.lists(texts, max_size=5))
def test_intervals_are_exact(cuts: list[str], others: list[str], several: list[str]) -> None:
    one, two = interval_list(cuts), interval_list(others)
    both = Automaton.from_intervals(one).intersection(Automaton.from_intervals(two))
    found = both.intervals()
    assert found is not None
    for text in several:
        assert both.accepts(text) == within(found, text) == (within(one, text) and within(two, text))


@given(automata)
@many
def test_whatever_has_intervals_is_their_union(automaton: Automaton) -> None:
    found = automaton.intervals(64)
    if found is not None:
        assert Automaton.from_intervals(found) == automaton
        assert all(high is None or low < high for low, high in found)
        assert all(high is not None and high < low for (_, high), (low, _) in pairwise(found))


@pytest.mark.parametrize(
    ("pattern", "intervals"),
    [
        ("a", [("a", "a\0")]),
        ("ab.*", [("ab", "ac")]),
        ("a\U0010ffff.*", [("a\U0010ffff", "b")]),
        ("\U0010ffff.*", [("\U0010ffff", None)]),
        ("\ud7ff.*", [("\ud7ff", "\ue000")]),
        (".*", [("", None)]),
        (".+", [("\0", None)]),
        ("[^\\x{0}-\\x{10FFFF}]", []),
        ("|\\x{0}", [("", "\0\0")]),
        ("[bc]x", [("bx", "bx\0"), ("cx", "cx\0")]),
        ("[b-d].*|e", [("b", "e\0")]),
    ],
)
def test_intervals_of_patterns(pattern: str, intervals: list[tuple[str, str | None]]) -> None:
    assert compile_regex(pattern).intervals() == tuple(intervals)


@pytest.mark.parametrize("pattern", ["a*", ".*a", "a.", "(ab)+", "[a-z]{5}", "[a-z]{500}", "a.*b"])
def test_sets_that_are_no_few_intervals(pattern: str) -> None:
    assert compile_regex(pattern).intervals() is None


def test_a_product_beyond_the_limit_is_refused() -> None:
    one, two = compile_regex(".*a.{9}"), compile_regex(".*b.{9}c.*")
    with pytest.raises(FilterTooComplex, match="construction steps"):
        one.intersection(two).union(compile_regex(".*d.{9}"))


def test_long_strings_need_no_deep_stack() -> None:
    text = "ab" * 5_000
    automaton = Automaton.from_intervals([(text, text + "\0")])
    assert automaton.intervals() == ((text, text + "\0"),)
    assert automaton.accepts(text) and automaton.example() == text
