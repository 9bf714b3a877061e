"""What a message suggests to those who write a filter as in another language."""

from __future__ import annotations

import re

from vestnik.errors import FilterSyntaxError
from vestnik.model.keywords import KEYWORDS

UNIT = "a path, NOT, EXISTS, ANY, ALL, TRUE, FALSE or ("
PATH = "a path"
COMPARISON = "a comparison"
VALUE = "a value"

_HINTS = {
    **{(place, word): 'put "..." around reserved names' for place in (UNIT, PATH) for word in KEYWORDS},
    **{(UNIT, kind): "the path comes first, then the value" for kind in ("number", "string")},
    **{(COMPARISON, kind): "of a boolean: = TRUE" for kind in ("end", "AND", "OR", ")")},
    (COMPARISON, "name"): "= != < <= > >= BETWEEN IN LIKE GLOB MATCHES IS; EXISTS goes before a path",
    (COMPARISON, "("): "ANY or ALL goes before the path of a list",
    (VALUE, "name"): "strings go in single quotes; two paths cannot be compared",
    (VALUE, "=="): "equality is a single =",
    (VALUE, "<>"): "not equal is written !=",
    (VALUE, "=>"): "at least is written >=",
    (VALUE, "=<"): "at most is written <=",
}
"""By what was expected and the kind of token that is there, or that kind after the character before it."""

_UNREADABLE = [
    (r"", r"'", "a closing '"),
    (r"", r'"', 'a closing "'),
    (r"", r"--|#|//|/\*", "a filter without comments"),
    (r"\bIS\s+[\w.]+\.", r"\*", "a name (type IS includes the types below the one it names)"),
    (r"\.", r"\*", "a name (ANY and ALL look into lists)"),
    (r"[\w'\")]\s*", r"[-+*/%]", f"{COMPARISON} (there is no arithmetic)"),
    (r"", r"[-+.\d]", "a number as in JSON"),
    (r"", r"&", "AND"),
    (r"", r"\|", "OR"),
    (r"", r"!", "NOT or !="),
    (r"", r"~", "MATCHES"),
    (r"", r"\[", "a path of names (ANY and ALL look into lists)"),
    (r"", r"[‘’“”]", "straight quotes"),
    (r"", r"", "a name, a value or an operator"),
]
"""What belongs where no token can be read: by what is before, what is there, and the first that fits."""

_LAST_NAME = re.compile(r"(?<!\w)[^\W\d]\w*\Z")


def wrong(text: str, column: int, kind: str, expected: str) -> FilterSyntaxError:
    """The error of `text` that has a token of `kind` at `column` where something else was `expected`."""
    before = text[: column - 1].rstrip()[-1:]
    hint = _HINTS.get((expected, before + kind)) or _HINTS.get((expected, kind))
    return _unquoted(text, column - 1) or FilterSyntaxError(text, column, f"{expected} ({hint})" if hint else expected)


def unreadable(text: str, at: int) -> FilterSyntaxError:
    """The error of `text` that has no token at `at`."""
    before, here = text[max(0, at - 100) : at], text[at : at + 2]
    expected = next(
        expected
        for behind, ahead, expected in _UNREADABLE
        if re.match(ahead, here) and re.search(rf"(?:{behind})\Z", before, re.IGNORECASE)
    )
    return _unquoted(text, at) or FilterSyntaxError(text, at + 1, expected)


def _unquoted(text: str, at: int) -> FilterSyntaxError | None:
    """What is wrong where a hyphen at `at` goes on with a name: it wants quotes."""
    name = _LAST_NAME.search(text, 0, at) if text.startswith("-", at) else None
    if name is None or name[0].upper() in KEYWORDS or text.startswith("--", at):
        return None
    return FilterSyntaxError(
        text, name.start() + 1, """quotes: "..." around an odd name, '...' around a string or a type"""
    )
