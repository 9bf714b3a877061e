"""Templates over tuples: `Filter.template('flight', 'PR', ANY)`.

A tuple is an event whose data has the names `0`, `1`, ...; a template gives for each position a value, a Python type
(`str`, `int` or `float` for any number, `bool`, `list`, `dict`, `type(None)`), or ANY. Both have as many positions.
"""

from __future__ import annotations

from typing import Any, Final

from vestnik.errors import FilterError
from vestnik.model import values
from vestnik.model.boxes import make_box
from vestnik.model.frozen import is_scalar
from vestnik.model.regions import Region
from vestnik.model.spaces import DATA, EVENT, Path
from vestnik.model.values import ValueSet


class AnyValue:
    """The type of ANY, which stands for whatever is at a position of a template."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = AnyValue()

_FORMALS: dict[Any, ValueSet] = {
    str: values.STRING,
    int: values.NUMBER,
    float: values.NUMBER,
    bool: values.BOOLEAN,
    list: values.LIST,
    dict: values.MAP,
    type(None): values.NULL,
}


def template_region(positions: tuple[Any, ...]) -> Region:
    sets: dict[Path, ValueSet] = {(DATA, str(i)): _position(i, wanted) for i, wanted in enumerate(positions)}
    sets[DATA, str(len(positions))] = values.ABSENT
    box = make_box(EVENT, sets)
    return Region(EVENT, () if box is None else (box,))


def _position(index: int, wanted: Any) -> ValueSet:
    if wanted is ANY:
        return values.PRESENT
    if isinstance(wanted, type) and wanted in _FORMALS:
        return _FORMALS[wanted]
    if is_scalar(wanted):
        return values.value_points([wanted])
    raise FilterError(f"position {index} of a template is a value, a type or ANY, not {wanted!r}")
