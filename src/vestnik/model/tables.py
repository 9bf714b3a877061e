"""Tables of a file, as TOML and JSON have them, become structs; whoever misspelt something is told what there is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

from msgspec import ValidationError, convert
from msgspec.inspect import CollectionType, LiteralType, StructType, Type, UnionType, type_info

from vestnik.model.nearest import meant

LONGEST: Final = 300
"""Characters of a message."""

T = TypeVar("T")


class Misfit(Exception):
    """What is at `path`, as `topology` or `faults[0].kind`, does not fit, for this reason."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def read_table(data: Any, kind: type[T]) -> T:
    """The struct that `data` say; Misfit where they say none."""
    try:
        return convert(data, kind)
    except ValidationError as error:
        reason, _, path = str(error).rpartition(" - at `$")
        reason, path = (reason, path.strip("`.")) if reason else (path, "")
        raise Misfit(_bounded(reason) + _hint(reason, path, data, kind), _bounded(path)) from None


def _bounded(text: str) -> str:
    """What others wrote may be in it."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _hint(reason: str, path: str, data: Any, kind: type) -> str:
    """What there is instead of a name that there is not; nothing where a name is such that the message misleads."""
    try:
        return "" if len(reason) + len(path) > LONGEST else _instead(reason, path, data, kind)
    except (LookupError, TypeError):
        return ""


def _instead(reason: str, path: str, data: Any, kind: type) -> str:
    if found := re.search("unknown field `(.*)`", reason):
        return meant(found[1], _fields(_structs_at(path, data, kind)))
    if found := re.search("Invalid value '(.*)'", reason):
        parent, _, tag = path.rpartition(".")
        return meant(found[1], [str(one.tag) for one in _structs_at(parent, data, kind) if one.tag_field == tag])
    if found := re.search("Invalid enum value '(.*)'", reason):
        parent, _, name = path.rpartition(".")
        fields = [field for one in _structs_at(parent, data, kind) for field in one.fields if field.encode_name == name]
        kinds = _plain(field.type for field in fields)
        return meant(found[1], [str(value) for one in kinds if isinstance(one, LiteralType) for value in one.values])
    return ""


def _fields(structs: Iterable[StructType]) -> list[str]:
    tags = {one.tag_field for one in structs if one.tag_field}
    return [*sorted(tags), *dict.fromkeys(field.encode_name for one in structs for field in one.fields)]


def _structs_at(path: str, data: Any, kind: type) -> list[StructType]:
    """What there may be at a path of what `data` are to be read as."""
    found: list[Type] = [type_info(kind)]
    for part in re.findall(r"\w+", path):
        if part.isdecimal():
            found = [inner.item_type for inner in _plain(found) if isinstance(inner, CollectionType)]
            data = data[int(part)]
        else:
            found = [field.type for one in _structs(found, data) for field in one.fields if field.encode_name == part]
            data = data[part]
    return _structs(found, data)


def _plain(kinds: Iterable[Type]) -> list[Type]:
    """The kinds, and those in unions."""
    return [inner for kind in kinds for inner in (kind.types if isinstance(kind, UnionType) else (kind,))]


def _structs(kinds: Iterable[Type], data: Any) -> list[StructType]:
    """Those that the data may be: the one that they name, or all."""
    structs = [kind for kind in _plain(kinds) if isinstance(kind, StructType)]
    named = [one for one in structs if one.tag_field and isinstance(data, dict) and data.get(one.tag_field) == one.tag]
    return named or structs
