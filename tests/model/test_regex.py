"""Regular expressions against google-re2."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from vestnik.errors import FilterError, FilterTooComplex, PatternError
from vestnik.model.regular.expressions import Chars
from vestnik.model.regular.regex import category_ranges, compile_regex, fold

many = settings(max_examples=settings().max_examples * 3)


def reference(pattern: str) -> Any:
    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    return re2.compile(pattern, options)


LETTERS = "abkKsSAZ09_- \n\té\u00df\u1e9e\u017f\u212a\u0130\u0131ςσΣǅ\u03a9\u2126\U0001f600"
texts = st.lists(st.text(LETTERS, max_size=6), min_size=1, max_size=6)
CLASS_ITEMS = "a b-k S k 0-9 \\d \\W \\s [:alpha:] [:^upper:] \\pL \\P{Lu} é ß σ \\-"
class_items = st.sampled_from(CLASS_ITEMS.split())
classes = st.builds(
    lambda sign, items: f"[{sign}{''.join(items)}]",
    st.sampled_from(["", "^"]),
    st.lists(class_items, min_size=1, max_size=3),
)
escapes = "\\d \\D \\w \\W \\s \\S \\pL \\p{Lu} \\PN \\p{^Ll} \\x41 \\x{3c3} \\101 \\n \\Qa.b\\E \\."
others = ". ^ $ \\A \\z (?i) (?-i) (?-s) ()"
leaves = classes | st.sampled_from([*LETTERS, *escapes.split(), *others.split()])


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?", "??", "{1,2}?"])
    openings = st.sampled_from(["(", "(?:", "(?i:", "(?-i:", "(?s-i:", "(?P<n>", "(?U:", "(?-s:"])
    groups = st.builds(lambda opening, part: f"{opening}{part})", openings, parts)
    return (
        st.lists(parts, max_size=4).map("".join)
        | st.lists(parts, min_size=2, max_size=3).map("|".join)
        | st.builds(lambda group, operator: group + operator, groups, operators)
    )


patterns = st.recursive(leaves, combined, max_leaves=8)


@given(patterns, texts)
@many
def test_a_pattern_matches_what_re2_matches(pattern: str, several: list[str]) -> None:
    ours, theirs = compile_regex(pattern), reference(pattern)
    for text in several:
        assert ours.accepts(text) == bool(theirs.fullmatch(text))


@given(patterns)
def test_re2_matches_our_example(pattern: str) -> None:
    example = compile_regex(pattern).example()
    assert example is None or reference(pattern).fullmatch(example)


syntax = st.text("ab01*+?{}[]()|\\^$.-,:imsUPQEdpLxzA<>=n", max_size=12)


@given(syntax, st.lists(st.text("ab01-,\\", max_size=3), max_size=4))
@many
def test_any_text_is_a_pattern_exactly_when_re2_says_so(pattern: str, several: list[str]) -> None:
    refused = refusal(pattern)
    if refused is None:
        ours, theirs = compile_regex(pattern), reference(pattern)
        for text in several:
            assert ours.accepts(text) == bool(theirs.fullmatch(text))
    elif isinstance(refused, PatternError):
        assert 0 <= refused.position <= len(pattern)
        if "not supported" not in refused.reason:
            with pytest.raises(re2.error):
                reference(pattern)


def refusal(pattern: str) -> FilterError | None:
    try:
        compile_regex(pattern)
    except FilterError as error:
        return error
    return None


def test_case_is_folded_as_re2_folds_it() -> None:
    everything = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    cased = "".join(char for char in everything if {char.lower(), char.upper(), char.casefold()} != {char})
    for char in cased:
        theirs = set(reference(f"(?i)\\x{{{ord(char):x}}}").findall(cased))
        assert {chr(code) for code, _ in fold([(ord(char), ord(char))])} | {char} == theirs


KNOWN = "".join(c for c in map(chr, range(0x30000)) if unicodedata.category(c) not in ("Cn", "Cs", "Co"))
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf L M N P S Z"


@pytest.mark.parametrize("category", CATEGORIES.split())
def test_general_categories_are_those_of_re2(category: str) -> None:
    ours = {chr(code) for low, high in category_ranges(category) for code in range(low, high + 1)}
    assert ours == set(reference(f"\\p{{{category}}}").findall(KNOWN)) | {c for c in ours if ord(c) >= 0x30000}


def test_characters_of_any_plane() -> None:
    assert compile_regex(r"\p{Co}").accepts("\U0010fffd") and compile_regex(r"\pC").accepts("\x00")
    assert compile_regex(r"\p{Any}") == compile_regex(".") == compile_regex(r"[\d\D]")
    assert not compile_regex(r"\pC").accepts("\U00050000")
    assert Chars.of(category_ranges("Any")).negated() == Chars(())


@pytest.mark.parametrize(
    ("pattern", "position", "reason"),
    [
        ("a**", 2, "repetition operator"),
        ("a*+", 2, "repetition operator"),
        ("a{2}{3}", 4, "repetition operator"),
        ("*a", 0, "nothing to repeat"),
        ("(|*)", 2, "nothing to repeat"),
        ("a{1001}", 1, "1,000"),
        ("a{3,2}", 1, "wrong order"),
        ("x(a", 1, "never closed"),
        ("xa)", 2, "closes nothing"),
        ("[a", 0, "never closed"),
        ("[b-a]", 1, "wrong order"),
        ("[[:foo:]]", 1, "not a class"),
        ("[[:a]:]]", 1, "not a class"),
        ("a\\", 1, "nothing follows"),
        ("\\q", 0, "not an escape"),
        ("\\x{110000}", 0, "last code point"),
        ("a\\bc", 1, "word boundaries are not supported"),
        ("\\B", 0, "word boundaries are not supported"),
        ("\\C", 0, "not supported"),
        ("(a)\\1", 3, "backreferences are not supported"),
        ("(?P=n)", 0, "backreferences are not supported"),
        ("a(?=b)", 1, "lookaround is not supported"),
        ("(?<!b)", 0, "lookaround is not supported"),
        ("(?>b)", 0, "not a group"),
        ("(?m)a", 0, "the flag m is not supported"),
        ("\\p{Greek}", 0, "scripts and other properties are not supported"),
        ("\\p", 0, "general category"),
        ("(" * 101 + ")" * 101, 100, "nested"),
    ],
)
def test_what_is_refused_and_why(pattern: str, position: int, reason: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_regex(pattern)
    assert caught.value.position == position and reason in caught.value.reason


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{0,30}){0,30}){0,30}",
        "(a|b)*a(a|b){20}",
        "(.*a){25}",
        "(.*a.*|b){25}",
        "(((|){1000}){1000}){1000}",
        "((a?){60}b?){60}",
        "([ab]*[bc]*){500}",
        "(\\pL{0,50}\\d?){0,20}",
        "(.{0,1000}a){3}",
        ".*a.{15}",
        "(a|aa)*(ab|ba)*.{900}",
        "\\p{L}{900}",
        "(a{1,100}b?){1,39}",
        "^$" * 1_500,
    ],
)
def test_hard_patterns_end(pattern: str) -> None:
    refused = refusal(pattern)
    assert refused is None or isinstance(refused, FilterTooComplex)


def test_nesting_stays_clear_of_the_stack() -> None:
    deep = "(" * 99 + "a" + "b|c)" * 99
    assert compile_regex(deep).accepts("cb" + "b" * 97)
