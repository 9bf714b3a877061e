"""Whatever comes in, the parser answers with a filter or with one of its two errors, and soon.

The language is written down a second time, as a grammar for lark: what the one accepts the other does. The grammar
knows a few literals of each sort, so that it can also say where only a pattern, a time or a filter will do.
"""

from __future__ import annotations

import pickle
import re
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from laws.strategies import Case, Pick, cases, text_of
from vestnik import Filter, FilterError, FilterSyntaxError, FilterTooComplex, Limits
from vestnik.model.parser import DEEPEST, DEEPEST_LISTS, parse

"""Seconds of CPU; what is refused takes milliseconds, and the limits allow about one second."""


def try_to_parse(text: str) -> Filter | FilterError:
    """The filter or the error, with the promises about errors held."""
    try:
        result: Filter | FilterError = Filter.parse(text)
    except FilterSyntaxError as error:
        assert error.text == text and error.expected
        assert 1 <= error.column <= len(text) + 1
        assert f"column {error.column}: expected {error.expected}" in str(error)
        result = error
    except FilterTooComplex as error:
        assert error.limit and error.allowed > 0 and error.limit in str(error)
        result = error
    return result


# --- any text ---

TOKENS = [
    *"a b.c data.type type subject time priority source.x data @ . , ( ) ( ) = != < <= > >= a.b.c [ ] { } ; #".split(),
    *"0 1 -1 1.5 1e300 1e999 01 1. 99999999999999999999 'x' '' 'a%' '[' '**a' ' \" \"odd\" \"\" \\ \0 \ud800".split(
        " "
    ),
    *"AND OR NOT AND OR NOT BETWEEN IN LIKE ESCAPE GLOB MATCHES EXISTS IS ANY ALL TRUE FALSE TIMESTAMP".split(),
    *"OVERLAPS( NULL BOOLEAN NUMBER STRING LIST MAP".split(),
]


@given(st.text(max_size=200))
def test_any_text_is_a_filter_or_an_error(text: str) -> None:
    try_to_parse(text)


@given(st.lists(st.sampled_from(TOKENS), max_size=40), st.sampled_from([" ", "", "\n"]))
def test_any_tokens_are_a_filter_or_an_error(words: list[str], between: str) -> None:
    try_to_parse(between.join(words))


@given(cases(), st.integers(0, 400), st.integers(0, 12), st.text(max_size=4) | st.sampled_from(TOKENS))
def test_a_filter_with_a_mistake_is_a_filter_or_an_error(case: Case, at: int, cut: int, put: str) -> None:
    text = text_of(case.trees[0], case.spelling)
    at %= len(text) + 1
    result = try_to_parse(text[:at] + put + text[at + cut :])
    if isinstance(result, Filter):
        assert Filter.parse(str(result), limits=None) == result


@given(st.sampled_from(["LIKE", "GLOB", "MATCHES"]), st.text("ab%_*/\\[](){}|?+^$.,-:0129éi", max_size=20))
def test_any_pattern_is_a_pattern_or_an_error(verb: str, pattern: str) -> None:
    try_to_parse(f"x {verb} '{pattern}'")


# --- a second grammar ---

GRAMMAR = r"""
start: filter

filter: conjunct ("OR" conjunct)*
conjunct: unit ("AND" unit)*
unit: NOT unit | "(" filter ")" | TRUE | FALSE | EXISTS path | quantifier path test | quantifier path "(" e_filter ")"
    | path test | TYPE IS type_name | TYPE IS NOT? kind | KIND "(" path "," filter_text ")"

e_filter: e_conjunct ("OR" e_conjunct)*
e_conjunct: e_unit ("AND" e_unit)*
e_unit: NOT e_unit | "(" e_filter ")" | TRUE | FALSE | EXISTS e_path | quantifier e_path test
    | quantifier e_path "(" e_filter ")" | e_path test | KIND "(" e_path "," filter_text ")"

path: ENVELOPE | TYPE | plain ("." name)* | DATA ("." name)+
e_path: name ("." name)* | "@"
plain: NAME | KIND
name: NAME | KIND | ENVELOPE | TYPE | DATA
quantifier: ANY | ALL

test: ("=" | "!=") literal | ("<" | "<=" | ">" | ">=") ordered | IS NOT? kind | NOT? between | NOT? in | NOT? like
    | NOT? (GLOB | MATCHES) string
between: BETWEEN number AND_ number | BETWEEN string AND_ string
in: IN "(" literal ("," literal)* ")"
like: LIKE string | LIKE (EMPTY_TEXT | X_TEXT | FILTER_TEXT | TIME_TEXT) ESCAPE BANG_TEXT
    | LIKE (EMPTY_TEXT | BANG_TEXT | FILTER_TEXT | TIME_TEXT) ESCAPE X_TEXT
kind: NULL | BOOLEAN | NUMBER | STRING | LIST | MAP
type_name: name ("." name)* | X_TEXT | BANG_TEXT | FILTER_TEXT | TIME_TEXT
filter_text: FILTER_TEXT

literal: string | number | TRUE | FALSE | NULL
ordered: string | number
number: DIGITS | TIMESTAMP TIME_TEXT
string: EMPTY_TEXT | X_TEXT | BANG_TEXT | FILTER_TEXT | TIME_TEXT

EMPTY_TEXT: "''"
X_TEXT: "'x'"
BANG_TEXT: "'!'"
FILTER_TEXT: "'a = 1'"
TIME_TEXT: "'2024-05-01T12:30:00Z'"
DIGITS: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.])/
TYPE.2: /type(?!\w)|"type"/
ENVELOPE.2: /(id|source|subject|time|priority|seq|not_before|expires)(?!\w)/
DATA.2: /data(?!\w)/
KIND.2: /overlaps(?!\w)/i
NAME: /[^\W\d]\w*|"([^"]|"")*"/
AND_.4: /AND(?!\w)/i
KEYWORDS
%ignore /\s+/
"""
WORDS = """
    OR NOT BETWEEN IN LIKE ESCAPE GLOB MATCHES EXISTS IS NULL BOOLEAN NUMBER STRING LIST MAP ANY ALL TRUE FALSE
    TIMESTAMP
""".split()
SOUP = """
    a b a.b data.type data.a type type subject time data source.x "type" "odd name" market.quote overlaps OVERLAPS(
    @ @ . , ( ) ( ) ),( = != < <= > >= 0 -1.5 '' 'x' '!' 'a = 1' '2024-05-01T12:30:00Z'
    AND OR NOT BETWEEN IN LIKE ESCAPE GLOB MATCHES EXISTS IS NULL MAP ANY ALL TRUE TIMESTAMP
"""
PIECE = re.compile(r"""'[^']*'|"[^"]*"|-?[0-9.]+|\w+(?:\.\w+)*\(?|<=|>=|!=|\),\(|\S""")


@cache
def second_grammar() -> Any:
    grammar = GRAMMAR.replace('"OR"', "OR").replace('"AND"', "AND_")
    words = "\n".join(f"{word}.4: /{word}(?!\\w)/i" for word in WORDS)
    return Lark(grammar.replace("KEYWORDS", words), parser="lalr", lexer="basic")


def grammar_accepts(text: str) -> bool:
    try:
        second_grammar().parse(text)
    except LarkError:
        return False
    return True


def parser_accepts(text: str) -> bool:
    try:
        parse(text, limits=None)
    except FilterSyntaxError:
        return False
    return True


SENTENCES = """
a = 1
a != 'x'
a < 'x'
a >= -1.5
a IN ( 0 , 'x' , TRUE , NULL )
a NOT IN ( 0 )
a BETWEEN 0 AND 0
a NOT BETWEEN 'x' AND ''
a BETWEEN TIMESTAMP '2024-05-01T12:30:00Z' AND 0
a LIKE 'x'
a NOT LIKE 'x' ESCAPE '!'
a LIKE '!' ESCAPE 'x'
a GLOB 'x'
a NOT GLOB 'x'
a MATCHES 'x'
a NOT MATCHES ''
a IS NULL
a IS NOT MAP
type IS market.quote
type IS 'x'
"type" IS a
type IS STRING
type = 'x'
EXISTS a.b
EXISTS data.a
ANY a = 0
ALL a.b IN ( 0 )
ANY a ( b = 0 AND @ IS MAP )
ALL a ( ANY b ( @ = 0 ) OR TRUE )
NOT a = 0
NOT NOT ( a = 0 OR b = 0 )
TRUE
FALSE
OVERLAPS( a , 'a = 1' )
overlaps = 0
a = TRUE AND b = NULL OR a < 0
ANY a ( OVERLAPS( @ , 'a = 1' ) )
ANY a ( type = 0 )
time > TIMESTAMP '2024-05-01T12:30:00Z'
subject = ''
""".strip().splitlines()


@st.composite
def sentences(draw: st.DrawFn) -> str:
    """Sentences of the language joined to longer ones, with up to three tokens changed; or tokens in any order."""
    pick = Pick(draw)
    soup = PIECE.findall(SOUP)
    if pick.chance(6):
        return " ".join(pick.some(soup, 0, 8))
    text = pick.one(SENTENCES)
    for _ in range(pick.below(3)):
        text = pick.one(["{} AND {}", "{} OR {}", "NOT {} AND {}", "( {} ) OR {}", "NOT ( {} OR {} )"]).format(
            text, pick.one(SENTENCES)
        )
    pieces = PIECE.findall(text)
    for _ in range(pick.below(4)):
        at = pick.below(min(len(pieces), 190) + 1)
        pieces[at : at + pick.below(3)] = pick.some(soup, 0, 2)
    return " ".join(pieces)


@given(sentences())
@example("a = 1 = 1")
@example("a NOT = 1")
@example("a IS NOT market")
@example("type IS NOT market")
@example("ANY a EXISTS")
@example("ANY a IS x")
@example("ANY a ( type IS x )")
@example("@ = 1")
@example("ANY @ = 1")
@example("a BETWEEN 0 AND 'x'")
@example("a BETWEEN NULL AND NULL")
@example("a < TRUE")
@example("source.x = 1")
@example("data = 1")
@example("")
def test_the_parser_accepts_what_the_grammar_accepts(text: str) -> None:
    note(text)
    assert parser_accepts(text) is grammar_accepts(text)


@pytest.mark.parametrize("text", SENTENCES)
def test_the_sentences_are_of_the_language(text: str) -> None:
    assert parser_accepts(text) and grammar_accepts(text)


# --- limits ---


def comparisons(n: int) -> str:
    return " OR ".join(f"a = {i}" for i in range(n))


def many_boxes(n: int) -> str:
    """A filter of 2 to the power of `n` boxes, of few comparisons."""
    return " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(n))


def nested(n: int) -> str:
    return f"{'(' * n}a = 1{')' * n}"


LIMITS = [
    ("bytes of text", 8192, lambda n: f"a = '{'x' * (n - 6)}'"),
    ("bytes of text", 8192, lambda n: f"a = '{'é' * ((n - 6) // 2)}'{' ' * (n % 2)}"),
    ("comparisons", 64, comparisons),
    ("comparisons", 64, lambda n: " AND ".join(["EXISTS a", "ANY b = 1", "ANY c (d = 1)", *["a > 0"] * (n - 3)])),
    ("values in one IN", 1000, lambda n: f"a IN ({', '.join(map(str, range(n)))})"),
    ("levels of nesting", 16, nested),
    ("levels of nesting", 16, lambda n: f"{'NOT ' * n}a = 1"),
    ("levels of nesting", 16, lambda n: f"{'ANY a (' * n}a = 1{')' * n}"),
    ("levels of nesting", 16, lambda n: f"{'NOT ( ' * (n // 2)}{'NOT ' * (n % 2)}a = 1{')' * (n // 2)}"),
    ("boxes", 256, lambda n: many_boxes(8) if n == 256 else f"{many_boxes(8)} OR c = 1"),
]


@pytest.mark.parametrize(("limit", "allowed", "text"), LIMITS)
def test_a_limit_is_named_just_beyond_it(limit: str, allowed: int, text: Any) -> None:
    assert isinstance(Filter.parse(text(allowed)), Filter)
    with pytest.raises(FilterTooComplex) as caught:
        Filter.parse(text(allowed + 1))
    assert (caught.value.limit, caught.value.allowed) == (limit, allowed)
    assert isinstance(Filter.parse(text(allowed + 1), limits=None), Filter)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("automaton positions", "a MATCHES '(abc){999}(abcd){999}'"),
        ("construction steps for the states of a pattern", f"a LIKE '%a{'_' * 40}'"),
        (
            "steps of box algebra",
            f"NOT ({' OR '.join(f'ANY a{i} (b = {i} AND c = 1)' for i in range(8))} OR {many_boxes(8)})",
        ),
    ],
)
def test_costly_patterns_and_combinations_are_refused(limit: str, text: str) -> None:
    error = try_to_parse(text)
    assert isinstance(error, FilterTooComplex)
    assert error.limit in (limit, "boxes")


@pytest.mark.parametrize("make", [nested, lambda n: f"{'NOT ' * n}a = 1", lambda n: f"{'ANY a (' * n}a = 1{')' * n}"])
def test_deep_nesting_of_our_own_is_read_or_refused(make: Any) -> None:
    assert isinstance(Filter.parse(make(DEEPEST_LISTS), limits=None), Filter)
    for depth in (DEEPEST + 1, 5_000, 200_000):
        with pytest.raises(FilterTooComplex, match=r"nesting|lists within one another"):
            Filter.parse(make(depth), limits=None)
        with pytest.raises(FilterTooComplex, match=r"nesting|lists within one another"):
            Filter.parse(make(depth), limits=Limits(nesting=10**6, bytes=10**7))


DEEP = [
    "({})", "NOT {}", "ANY a ({})", "ALL a ({} OR b = 1)", "ANY a (b = 1 OR {})", "NOT ANY a (b = 1 AND {})",
    "NOT ANY a (NOT {})", "ANY a (ANY @ ({}))", "NOT (b LIKE '%x%y' AND {})",
]  # fmt: skip


@pytest.mark.parametrize("shape", DEEP)
def test_the_deepest_filters_allowed_are_printed_read_and_compared_soon(shape: str) -> None:
    text = "a = 1"
    while isinstance(deeper := try_to_parse(shape.format(text)), Filter):
        text = shape.format(text)
    assert isinstance(deeper, FilterTooComplex)
    wanted = Filter.parse(text)
    for form in (wanted, ~wanted, wanted | Filter.parse("z = 1")):
        assert Filter.parse(str(form), limits=None) == form == Filter.from_dict(form.to_dict())
        assert form == pickle.loads(pickle.dumps(form)) and form.covers(form & wanted)


@pytest.mark.parametrize(
    "text", ["(" * 8000, "NOT " * 2000, "ANY a (" * 1000, "a=1 AND " * 1000, "'" * 8191, '"' * 8191]
)
def test_text_that_never_ends_is_refused_soon(text: str) -> None:
    assert isinstance(try_to_parse(text), FilterError)


def repeated(part: str, between: str = " OR ", times: int = 30) -> str:
    return between.join(part.format(i, i + 1, i + 100) for i in range(times))


COSTLY = [
    repeated("ANY a = {0}", " AND "),
    f"NOT ({repeated('ANY a = {0}', ' AND ')})",
    repeated("ALL a IN ({0}, {1})", times=60),
    repeated("ANY a = {0} AND ANY a = {2}"),
    repeated("ANY a = {0} AND ALL a != {1}"),
    repeated("ANY a (@ > {0} AND @ < {2})", " AND ", 20) + " OR ALL a < 0",
    repeated("ANY a (b = {0} AND c = {1})"),
    f"NOT ({repeated('ANY a (b = {0} AND c = {1})')})",
    repeated("ALL a (b = {0} AND c = {1})"),
    repeated("ALL a LIKE '%x{0}%y{0}'", times=20),
    f"NOT ({repeated('a{0} = 1 AND b{0} = 1', ' OR ', 12)})",
    repeated("a.b{0} = 1 AND NOT EXISTS a.b{1}"),
    repeated("s LIKE '%x{0}%'", " AND NOT ", 20),
]


@pytest.mark.parametrize("text", COSTLY)
def test_costly_filters_are_refused_or_answer_soon(text: str) -> None:
    found = try_to_parse(text)
    if isinstance(found, FilterError):
        assert isinstance(found, FilterTooComplex)
        return
    assert Filter.parse(str(found), limits=None) == found
    other = Filter.parse("ANY a = 77 AND z = 1")
    assert found.hull(other).covers(found)
    assert found.overlaps(found) and (found.covers(other), found.merge(other), other.covers(found))


# --- plain data ---

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 2**70, float("nan"), float("inf"), "", "x", [], [[]], {}, {"boxes": 1}, b"x"]
)


@given(cases(events=1), st.data())
def test_damaged_plain_data_is_a_filter_or_an_error(case: Case, data: st.DataObject) -> None:
    plain = case.filters[0].to_dict()
    places = [(plain, "boxes"), *_places(plain["boxes"])]
    for _ in range(data.draw(st.integers(1, 2))):
        where, key = data.draw(st.sampled_from(places))
        where[key] = data.draw(JUNK)
    try:
        found = Filter.from_dict(plain)
    except FilterError:
        return
    for event in case.events:
        assert found.matches(event) in (True, False)
    assert Filter.parse(str(found), limits=None) == found


def _places(data: Any) -> list[tuple[Any, Any]]:
    keys = data.keys() if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [place for key in keys for place in ((data, key), *_places(data[key]))]
