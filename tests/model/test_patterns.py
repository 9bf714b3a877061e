"""LIKE and GLOB against references that backtrack."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestnik.errors import PatternError
from vestnik.model.regular.automata import Automaton
from vestnik.model.regular.patterns import compile_glob, compile_like
from vestnik.model.strings import StringSet

many = settings(max_examples=settings().max_examples * 3)

LETTERS = "ab\n%_!é"


def like(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return like(pattern[1:], text) or (text != "" and like(pattern, text[1:]))
    return text != "" and pattern[0] in ("_", text[0]) and like(pattern[1:], text[1:])


def escaped_like(pattern: str, text: str) -> bool:
    """The same for patterns with the escape `!`."""
    if not pattern:
        return not text
    if pattern[0] == "!":
        return text != "" and pattern[1] == text[0] and escaped_like(pattern[2:], text[1:])
    if pattern[0] == "%":
        return escaped_like(pattern[1:], text) or (text != "" and escaped_like(pattern, text[1:]))
    return text != "" and pattern[0] in ("_", text[0]) and escaped_like(pattern[1:], text[1:])


def glob(pattern: list[str], levels: list[str]) -> bool:
    if not pattern:
        return not levels
    if pattern[0] == "**":
        return glob(pattern[1:], levels) or (levels != [] and glob(pattern, levels[1:]))
    return levels != [] and one_level(pattern[0], levels[0]) and glob(pattern[1:], levels[1:])


def one_level(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return one_level(pattern[1:], text) or (text != "" and one_level(pattern, text[1:]))
    return text != "" and pattern[0] == text[0] and one_level(pattern[1:], text[1:])


@given(st.text("ab%_é", max_size=8), st.lists(st.text(LETTERS, max_size=8), max_size=5))
@many
def test_like(pattern: str, texts: list[str]) -> None:
    for text in texts:
        assert compile_like(pattern).accepts(text) == like(pattern, text)


@given(st.lists(st.sampled_from([*"ab%_", "!!", "!%", "!_"]), max_size=6).map("".join), st.text(LETTERS, max_size=8))
def test_like_with_an_escape(pattern: str, text: str) -> None:
    assert compile_like(pattern, "!").accepts(text) == escaped_like(pattern, text)


@given(st.text("ab%_", max_size=8))
def test_like_matches_its_own_example(pattern: str) -> None:
    assert like(pattern, compile_like(pattern).example() or "")


def test_like_examples() -> None:
    assert compile_like("%") == Automaton.everything()
    assert compile_like("a%_").accepts("a\n") and not compile_like("a%_").accepts("a")
    assert compile_like("100\\%").accepts("100\\") and not compile_like("100\\%").accepts("100%")
    assert compile_like("%%x", "%").accepts("%x") and compile_like("50!%", "!").intervals() == (("50%", "50%\0"),)
    assert compile_like("ab%").intervals() == (("ab", "ac"),)


@pytest.mark.parametrize(
    ("pattern", "escape", "position"), [("a!", "!", 1), ("a!b", "!", 2), ("!!!", "!", 2), ("a", "xy", 0), ("a", "", 0)]
)
def test_what_is_no_like_pattern(pattern: str, escape: str, position: int) -> None:
    with pytest.raises(PatternError) as caught:
        compile_like(pattern, escape)
    assert caught.value.position == position


level_patterns = st.one_of(st.just("**"), st.text("ab*?[", max_size=3).filter(lambda level: "**" not in level))


@given(
    st.lists(level_patterns, min_size=1, max_size=5),
    st.lists(st.lists(st.text("ab?[\n", max_size=3), min_size=1, max_size=5), max_size=5),
)
@many
def test_glob(pattern: list[str], several: list[list[str]]) -> None:
    compiled = compile_glob("/".join(pattern))
    for levels in several:
        assert compiled.accepts("/".join(levels)) == glob(pattern, levels)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("**", ["", "a", "/", "/a//b"], []),
        ("/a/**", ["/a", "/a/", "/a/b", "/a/b/c"], ["", "/", "/ab", "a/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b", "a//b"], ["ab", "a/xb", "a/b/"]),
        ("**/b", ["b", "/b", "a/c/b"], ["ab", "b/"]),
        ("/x/*/y", ["/x/a/y", "/x//y"], ["/x/y", "/x/a/b/y"]),
        ("*", ["", "a"], ["/", "a/b"]),
        ("", [""], ["a", "/"]),
        ("a?[b]", ["a?[b]"], ["axb", "a?b"]),
        ("q*.log", ["q.log", "q1.log"], ["q/1.log"]),
    ],
)
def test_glob_examples(pattern: str, matching: list[str], other: list[str]) -> None:
    assert [text for text in matching + other if compile_glob(pattern).accepts(text)] == matching


def test_one_glob_written_in_several_ways() -> None:
    assert compile_glob("a/**/**/b") == compile_glob("a/**/b")
    assert compile_glob("**/**") == compile_glob("**") == Automaton.everything()


@pytest.mark.parametrize(("pattern", "position"), [("/a**", 2), ("***", 0), ("a/**b/c", 2)])
def test_what_is_no_glob(pattern: str, position: int) -> None:
    with pytest.raises(PatternError) as caught:
        compile_glob(pattern)
    assert caught.value.position == position


@given(st.text("ab%", max_size=8), st.lists(st.text("abc", max_size=12), max_size=4))
def test_a_long_text_is_looked_through_as_the_automaton_does(pattern: str, pieces: list[str]) -> None:
    text = ("c" * 300).join(pieces) if len(pieces) > 1 else "".join(pieces) * 60
    wanted = StringSet.like(pattern)
    if wanted.automaton is not None:
        assert (text in wanted) == wanted.automaton.accepts(text)
