"""Which fields a part of a file may have, for whoever misspelt one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from msgspec.inspect import CollectionType, StructType, Type, UnionType, type_info


def fields_at(kind: type, data: Any, path: str) -> list[str]:
    """The fields that there are at `path`, as `topology` or `faults[0]`, of what `data` is to be read as."""
    found: list[Type] = [type_info(kind)]
    for part in re.findall(r"\w+", path):
        if part.isdecimal():
            found = [inner.item_type for inner in _plain(found) if isinstance(inner, CollectionType)]
            data = data[int(part)]
        else:
            found = [field.type for one in _structs(found, data) for field in one.fields if field.encode_name == part]
            data = data[part]
    structs = _structs(found, data)
    tags = {one.tag_field for one in structs if one.tag_field}
    return [*sorted(tags), *dict.fromkeys(field.encode_name for one in structs for field in one.fields)]


def _plain(kinds: Iterable[Type]) -> list[Type]:
    """The kinds, and those in unions."""
    return [inner for kind in kinds for inner in (kind.types if isinstance(kind, UnionType) else (kind,))]


def _structs(kinds: Iterable[Type], data: Any) -> list[StructType]:
    """Those that the data may be: the one that they name, or all."""
    structs = [kind for kind in _plain(kinds) if isinstance(kind, StructType)]
    named = [one for one in structs if one.tag_field and isinstance(data, dict) and data.get(one.tag_field) == one.tag]
    return named or structs
