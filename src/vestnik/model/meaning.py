"""What a syntax tree means: the region of the events that it matches."""

from __future__ import annotations

from vestnik.errors import FilterTooComplex
from vestnik.model import lists, syntax, values
from vestnik.model.boxes import make_box, meet
from vestnik.model.cuts import number_range, string_range
from vestnik.model.kinds import make_atom
from vestnik.model.regions import Region
from vestnik.model.spaces import ELEMENT, Space
from vestnik.model.strings import Pattern, StringSet
from vestnik.model.syntax import Node, Scalar, Test
from vestnik.model.values import MAP, PRESENT, ValueSet, value_points

_KINDS = {
    "NULL": values.NULL,
    "BOOLEAN": values.BOOLEAN,
    "NUMBER": values.NUMBER,
    "STRING": values.STRING,
    "LIST": values.LIST,
    "MAP": values.MAP,
}


def region_of(node: Node, space: Space, most_boxes: int | None) -> Region:
    """The region of `node`; FilterTooComplex where it takes more than `most_boxes` boxes."""
    region = _region_of(node, space, most_boxes)
    if most_boxes is not None and len(region.boxes) > most_boxes:
        raise FilterTooComplex("boxes", most_boxes)
    return region


def _region_of(node: Node, space: Space, most_boxes: int | None) -> Region:
    match node:
        case syntax.Condition(path, test):
            return Region.at(space, path, value_set(test))
        case syntax.And(parts):
            return _conjunction([region_of(part, space, most_boxes) for part in parts], most_boxes)
        case syntax.Or(parts):
            regions = [region_of(part, space, most_boxes) for part in parts]
            return Region.of(space, (box for region in regions for box in region.boxes))
        case syntax.Not(inner):
            return region_of(inner, space, most_boxes).complement()
        case syntax.Constant(value):
            return Region.everything(space) if value else Region.nothing(space)
        case syntax.Quantified():
            return Region.at(space, node.path, _quantified(node, most_boxes))
        case syntax.Added(name, path, literals):
            box = make_box(space, {}, frozenset({(path, make_atom(name, literals), True)}))
            return Region(space, () if box is None else (box,))


def _conjunction(regions: list[Region], most_boxes: int | None) -> Region:
    """The intersection; what is one box is met at once, so that what cannot be shows early."""
    space = regions[0].space
    single = meet(space, *(region.boxes[0] for region in regions if len(region.boxes) == 1))
    if single is None or not all(region.boxes for region in regions):
        return Region.nothing(space)
    result = Region(space, (single,))
    for region in regions:
        if len(region.boxes) > 1:
            result = _product(result, region, most_boxes)
    return result


def _product(a: Region, b: Region, most_boxes: int | None) -> Region:
    """The intersection; what takes too much work because of its many boxes is refused for these."""
    try:
        product = a.intersection(b)
    except FilterTooComplex:
        if most_boxes is not None and len(a.boxes) * len(b.boxes) > most_boxes:
            raise FilterTooComplex("boxes", most_boxes) from None
        raise
    if most_boxes is not None and len(product.boxes) > most_boxes:
        raise FilterTooComplex("boxes", most_boxes)
    return product


def _quantified(node: syntax.Quantified, most_boxes: int | None) -> ValueSet:
    elements = region_of(node.inner, ELEMENT, most_boxes)
    if node.maps_only:
        elements = elements.intersection(Region.at(ELEMENT, (), MAP))
    quantify = lists.some_element if node.quantifier == "ANY" else lists.every_element
    return ValueSet(lists=quantify(elements))


def value_set(test: Test) -> ValueSet:
    """The values of which `test` is true; where it is negated, they must be there."""
    match test:
        case syntax.Comparison("=", literal):
            return value_points([literal])
        case syntax.Comparison("!=", literal):
            return _but(value_points([literal]), negated=True)
        case syntax.Comparison(operator, literal):
            return _ordered(operator, literal)
        case syntax.Between(low, high, negated):
            return _but(_ordered(">=", low).intersection(_ordered("<=", high)), negated)
        case syntax.In(literals, negated):
            return _but(value_points(list(literals)), negated)
        case syntax.PatternTest(verb, pattern, escape, negated):
            return _but(ValueSet(strings=StringSet.of(Pattern(verb, pattern, escape))), negated)
        case syntax.IsKind(kind, negated):
            return _but(_KINDS[kind], negated)
        case syntax.IsType(name):
            return ValueSet(strings=type_and_descendants(name))
        case syntax.Exists():
            return PRESENT


def type_and_descendants(name: str) -> StringSet:
    return StringSet((name, name + "\0", name + ".", name + "/"))


def _but(found: ValueSet, negated: bool) -> ValueSet:
    return found.complement().intersection(PRESENT) if negated else found


def _ordered(operator: str, literal: Scalar) -> ValueSet:
    if isinstance(literal, str):
        return ValueSet(strings=StringSet(_STRING_RANGES[operator](literal)))
    assert isinstance(literal, int | float)
    return ValueSet(numbers=_NUMBER_RANGES[operator](literal))


_NUMBER_RANGES = {
    "<": lambda v: number_range(None, v, open_high=True),
    "<=": lambda v: number_range(None, v),
    ">": lambda v: number_range(v, None, open_low=True),
    ">=": lambda v: number_range(v, None),
}
_STRING_RANGES = {
    "<": lambda s: string_range("", s),
    "<=": lambda s: string_range("", s + "\0"),
    ">": lambda s: string_range(s + "\0", None),
    ">=": lambda s: string_range(s, None),
}
