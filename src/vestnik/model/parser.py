"""The filter language: text to syntax tree, by recursive descent.

filter    = conjunct { OR conjunct }
conjunct  = unit { AND unit }
unit      = NOT unit | '(' filter ')' | TRUE | FALSE | EXISTS path | (ANY | ALL) path (test | '(' filter ')')
          | NAME '(' path { ',' literal } ')' | path test
test      = ('=' | '!=' | '<' | '<=' | '>' | '>=') literal | [NOT] BETWEEN literal AND literal
          | [NOT] IN '(' literal { ',' literal } ')' | [NOT] LIKE string [ESCAPE string]
          | [NOT] (GLOB | MATCHES) string | IS [NOT] kind | IS type-name
path      = name { '.' name } | '@'
"""

from __future__ import annotations

from dataclasses import dataclass

from vestnik.errors import FilterSyntaxError, FilterTooComplex, PatternError
from vestnik.model import syntax
from vestnik.model.hints import COMPARISON, PATH, UNIT, VALUE, wrong
from vestnik.model.kinds import known_kinds, make_atom
from vestnik.model.lexer import Token, tokens
from vestnik.model.spaces import DATA, ENVELOPE_PATHS, Path
from vestnik.model.strings import Pattern, StringSet
from vestnik.model.syntax import Node, Scalar
from vestnik.model.times import parse_rfc3339
from vestnik.model.work import MAKING

KINDS = ("NULL", "BOOLEAN", "NUMBER", "STRING", "LIST", "MAP")
PATTERNS = ("LIKE", "GLOB", "MATCHES")
ORDERED = ("<", "<=", ">", ">=")
_NAME = 'a name (put "..." around odd or reserved ones)'
DEEPEST = 150
"""Nesting beyond this is refused whatever the limits: it would outgrow the interpreter's stack."""
DEEPEST_LISTS = 32
"""Of these, ANY and ALL within one another: no event has lists within more lists than that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a filter from outside may cost; nesting ends at 150 even where more is allowed."""

    bytes: int = 8192
    comparisons: int = 64
    values: int = 1000
    nesting: int = 16
    boxes: int = 256
    steps: int = MAKING


OUTSIDE = Limits()


def parse(text: str, limits: Limits | None = OUTSIDE) -> Node:
    """The syntax tree of `text`; FilterSyntaxError or FilterTooComplex where it has none."""
    if limits is not None and len(text.encode("utf-8", "surrogatepass")) > limits.bytes:
        raise FilterTooComplex("bytes of text", limits.bytes)
    return _Parser(text, limits).whole()


def parse_path(text: str) -> Path:
    """The path that `text` is in the language; FilterSyntaxError where it is none."""
    return _Parser(text, OUTSIDE).path()


class _Parser:
    def __init__(self, text: str, limits: Limits | None) -> None:
        self._text = text
        self._limits = limits
        self._tokens = tokens(text)
        self._now = next(self._tokens)
        self._comparisons = 0
        self._depth = 0
        self._lists = 0
        self._in_element = False
        self._saw_element = False

    def whole(self) -> Node:
        node = self._filter()
        if self._now.kind != "end":
            raise self._expected("AND, OR or the end of the filter")
        return node

    def path(self) -> Path:
        found = self._path()
        if self._now.kind != "end":
            raise self._expected("nothing behind a path")
        return found

    # -- tokens

    def _next(self) -> Token:
        token = self._now
        if token.kind != "end":
            self._now = next(self._tokens)
        return token

    def _accept(self, *kinds: str) -> Token | None:
        return self._next() if self._now.kind in kinds else None

    def _take(self, kind: str, expected: str) -> Token:
        if self._now.kind != kind:
            raise self._expected(expected)
        return self._next()

    def _expected(self, what: str, token: Token | None = None) -> FilterSyntaxError:
        at = token or self._now
        return wrong(self._text, at.column, at.kind, what)

    def _count_comparison(self) -> None:
        self._comparisons += 1
        if self._limits is not None and self._comparisons > self._limits.comparisons:
            raise FilterTooComplex("comparisons", self._limits.comparisons)

    def _nested(self) -> None:
        self._depth += 1
        allowed = DEEPEST if self._limits is None else min(self._limits.nesting, DEEPEST)
        if self._depth > allowed:
            raise FilterTooComplex("levels of nesting", allowed)

    # -- grammar

    def _filter(self) -> Node:
        parts = [self._conjunct()]
        while self._accept("OR"):
            parts.append(self._conjunct())
        return parts[0] if len(parts) == 1 else syntax.Or(tuple(parts))

    def _conjunct(self) -> Node:
        parts = [self._unit()]
        while self._accept("AND"):
            parts.append(self._unit())
        return parts[0] if len(parts) == 1 else syntax.And(tuple(parts))

    def _unit(self) -> Node:
        token = self._now
        if token.kind in ("name", "@"):
            return self._condition()
        if token.kind == "NOT":
            self._next()
            self._nested()
            node: Node = syntax.Not(self._unit())
            self._depth -= 1
            return node
        if token.kind == "(":
            return self._parenthesised()
        if token.kind in ("TRUE", "FALSE"):
            return syntax.Constant(self._next().kind == "TRUE")
        if token.kind == "EXISTS":
            self._next()
            self._count_comparison()
            return syntax.Condition(self._path(), syntax.Exists())
        if token.kind in ("ANY", "ALL"):
            return self._quantified()
        raise self._expected(UNIT)

    def _parenthesised(self) -> Node:
        self._take("(", "(")
        self._nested()
        node = self._filter()
        self._take(")", "AND, OR or )")
        self._depth -= 1
        return node

    def _condition(self) -> Node:
        self._count_comparison()
        start = self._now
        first = self._accept("name")
        if first is not None and self._now.kind == "(":
            return self._added(first)
        path = self._path(first)
        return syntax.Condition(path, self._test(path, start))

    def _quantified(self) -> Node:
        quantifier = self._next().kind
        start = self._now
        path = self._path()
        self._lists += 1
        if self._lists > DEEPEST_LISTS:
            raise FilterTooComplex("lists within one another", DEEPEST_LISTS)
        outer = self._in_element, self._saw_element
        self._in_element, self._saw_element = True, False
        if self._now.kind == "(":
            inner = self._parenthesised()
            maps_only = not self._saw_element
        else:
            self._count_comparison()
            inner, maps_only = syntax.Condition((), self._test((), start)), False
        self._in_element, self._saw_element = outer
        self._lists -= 1
        return syntax.Quantified(quantifier, path, inner, maps_only)

    def _added(self, name: Token) -> Node:
        if name.value.upper() not in known_kinds():
            known = ", ".join(sorted(known_kinds()))
            raise self._expected(f"a known constraint kind ({known}), or ANY or ALL before a list", name)
        self._next()
        path = self._path()
        literals: list[Scalar] = []
        while self._accept(","):
            literals.append(self._literal())
        self._take(")", ", or )")
        try:
            make_atom(name.value, tuple(literals))
        except ValueError as error:
            raise self._expected(f"{name.value.upper()} with {error}", name) from None
        return syntax.Added(name.value.upper(), path, tuple(literals))

    def _path(self, first: Token | None = None) -> Path:
        if first is None and self._now.kind == "@":
            if not self._in_element:
                raise self._expected("a path (@ is an element, inside ANY or ALL)")
            self._next()
            self._saw_element = True
            return ()
        start = first or self._accept("name")
        if start is None:
            raise self._expected(PATH)
        names = [start.value]
        while self._now.kind == ".":
            self._next()
            names.append(self._take("name", _NAME).value)
        return tuple(names) if self._in_element else self._event_path(start, names)

    def _event_path(self, start: Token, names: list[str]) -> Path:
        if names[0] == DATA:
            if len(names) == 1:
                raise self._expected("data.NAME, an attribute of the data", start)
            return tuple(names)
        if names[0] in ENVELOPE_PATHS:
            if len(names) > 1:
                raise self._expected(f"{names[0]} alone, or data.{'.'.join(names)} for the data attribute", start)
            return (names[0],)
        return (DATA, *names)

    def _test(self, path: Path, start: Token) -> syntax.Test:
        token = self._next()
        if token.kind in ("=", "!="):
            return syntax.Comparison(token.kind, self._literal())
        if token.kind in ORDERED:
            return syntax.Comparison(token.kind, self._ordered_literal())
        if token.kind == "IS":
            return self._is(path, start)
        negated = token.kind == "NOT"
        if negated:
            token = self._next()
        if token.kind == "BETWEEN":
            return self._between(negated)
        if token.kind == "IN":
            return self._in(negated)
        if token.kind in PATTERNS:
            return self._pattern(token, negated)
        raise self._expected("BETWEEN, IN, LIKE, GLOB or MATCHES" if negated else COMPARISON, token)

    def _between(self, negated: bool) -> syntax.Test:
        low = self._ordered_literal()
        self._take("AND", "AND")
        at = self._now
        high = self._ordered_literal()
        if isinstance(low, str) != isinstance(high, str):
            raise self._expected(f"a {'string' if isinstance(low, str) else 'number'}, as the lower end is", at)
        return syntax.Between(low, high, negated)

    def _in(self, negated: bool) -> syntax.Test:
        self._take("(", "(")
        literals = [self._literal()]
        while self._accept(","):
            literals.append(self._literal())
            if self._limits is not None and len(literals) > self._limits.values:
                raise FilterTooComplex("values in one IN", self._limits.values)
        self._take(")", ", or )")
        return syntax.In(tuple(literals), negated)

    def _pattern(self, verb: Token, negated: bool) -> syntax.Test:
        start = self._take("string", "a pattern in single quotes")
        escape = None
        if verb.kind == "LIKE" and self._accept("ESCAPE"):
            token = self._take("string", "one character in single quotes")
            escape = token.value
            if len(escape) != 1:
                raise self._expected("one character in single quotes", token)
        try:
            StringSet.of(Pattern(verb.kind, start.value, escape))
        except PatternError as error:
            raise self._expected(
                f"a {verb.kind} pattern ({error.reason}, at character {error.position + 1})", start
            ) from None
        return syntax.PatternTest(verb.kind, start.value, escape, negated)

    def _is(self, path: Path, start: Token) -> syntax.Test:
        negated = self._accept("NOT") is not None
        token = self._accept(*KINDS)
        if token is not None:
            return syntax.IsKind(token.kind, negated)
        if negated or path != ("type",) or self._in_element:
            only = "" if self._now.kind not in ("name", "string") else " (only the envelope's type IS a type name)"
            raise self._expected(f"{', '.join(KINDS[:-1])} or MAP{only}")
        if self._now.kind == "string":
            token = self._next()
            if not token.value:
                raise self._expected("a type name", token)
            return syntax.IsType(token.value)
        names = [self._take("name", f"a type name, {', '.join(KINDS[:-1])} or MAP").value]
        while self._accept("."):
            names.append(self._take("name", _NAME).value)
        return syntax.IsType(".".join(names))

    def _literal(self) -> Scalar:
        token = self._next()
        if token.kind in ("string", "number"):
            literal: Scalar = token.value
            return literal
        if token.kind in ("TRUE", "FALSE"):
            return token.kind == "TRUE"
        if token.kind == "NULL":
            return None
        if token.kind == "TIMESTAMP":
            return self._timestamp()
        raise self._expected(VALUE, token)

    def _timestamp(self) -> int:
        token = self._take("string", "a time in single quotes")
        try:
            return parse_rfc3339(token.value)
        except ValueError as error:
            raise self._expected(f"an RFC 3339 time ({error})", token) from None

    def _ordered_literal(self) -> str | int | float:
        token = self._now
        literal = self._literal()
        if literal is None or isinstance(literal, bool):
            raise self._expected("a number or a string", token)
        return literal
