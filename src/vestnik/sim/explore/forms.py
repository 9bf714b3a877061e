"""The form of a node's state: what has to be equal for two states to behave alike.

The form is found by a walk through all objects of the node, whatever they are: so nothing that a core remembers is
overlooked. It has two parts. The shape is everything but the names; the names are those met on the way, in order. Left
out is what has no influence: counters of names, caches, and times that are set again before they are read.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from enum import Enum
from functools import cache, partial
from itertools import count
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Raw, Struct

from vestnik.broker.core import BrokerCore
from vestnik.broker.outlet import Outlet
from vestnik.matching import Matcher
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.recovery.blocks import Block
from vestnik.recovery.fingerprints import Table
from vestnik.recovery.giving import Giving
from vestnik.recovery.reads import Requests, Waiting
from vestnik.recovery.repeats import Repeats, Until
from vestnik.recovery.roster import Roster
from vestnik.routing.cover_index import Catalogue, CoverIndex
from vestnik.routing.propagation import Propagation
from vestnik.routing.router import AdvertisingRouter, Router
from vestnik.session.agenda import Agenda
from vestnik.session.inbox import Inbox
from vestnik.session.session import Session
from vestnik.sim.explore.brokers import BrokerNode
from vestnik.sim.explore.clients import ClientNode
from vestnik.sim.explore.names import Name
from vestnik.wire.packing import unpack

Shape: TypeAlias = tuple[Hashable, ...]

ATOMS: Final = frozenset({str, int, float, bool, type(None), bytes, Filter, Event})
ROUTED: Final = frozenset({"_remembered", "_remembered_at", "_remembered_sources"})
"""Fields of a router that remember its answers: a cache."""
LEFT_OUT: Final[dict[type, frozenset[str]]] = {
    BrokerCore: frozenset({"_handlers"}),  # never changed
    Router: ROUTED,
    AdvertisingRouter: ROUTED,
    Outlet: frozenset({"_readers", "_readers_at", "_readers_count"}),  # a cache
    Propagation: frozenset({"changes"}),  # only tells when caches are out of date
    Roster: frozenset({"changes"}),
    Giving: frozenset({"now", "left"}),  # set again with each thing that is handled
    Repeats: frozenset({"_now", "_began"}),  # no run lasts until an event is too old to be remembered
    Requests: frozenset({"_last"}),  # counts names
    Waiting: frozenset({"at"}),  # every lease is longer than the time in which a broker answers
    Session: frozenset({"_alarm_at"}),  # alarms are not heard
    Inbox: frozenset({"_said_logs", "_logs"}),  # a cache
    BrokerNode: frozenset({"_settings"}),
    ClientNode: frozenset({"_settings", "_heard"}),
}


class Form(NamedTuple):
    """The form of a state. Equal shapes whose names are equal after renaming behave alike.

    If names and counters are equal as they are, the states are the same to the last number.
    """

    shape: Shape
    names: tuple[Name, ...]
    counters: tuple[Hashable, ...]


def form_of(root: object) -> Form:
    walk = _Walk()
    walk.visit(root)
    return Form(tuple(walk.shape), tuple(walk.names), tuple(walk.counters))


class _Walk:
    def __init__(self) -> None:
        self.shape: list[Hashable] = []
        self.names: list[Name] = []
        self.counters: list[Hashable] = []
        self._seen: dict[int, int] = {}
        self._held: list[object] = []  # so that no other object gets the id of one that was seen

    def visit(self, found: Any) -> None:
        kind = found.__class__
        if kind in ATOMS:
            self.shape.append(found)
        elif kind is Name:
            self.shape.append(Name)
            self.names.append(found)
        else:
            visit = _VISITS.get(kind) or _visit_of(kind)
            visit(self, found)

    def is_known(self, found: object) -> bool:
        """Write down an object that was met before as its number; whether it was."""
        number = self._seen.setdefault(id(found), len(self._seen))
        if number < len(self._held):
            self.shape.append((number,))
            return True
        self._held.append(found)
        return False

    def items(self, found: Any) -> None:
        self.shape += (found.__class__, len(found))
        for one in found:
            self.visit(one)

    def mapping(self, found: Any) -> None:
        if not self.is_known(found):
            self.shape += ("{", len(found))
            for key, value in found.items():
                self.visit(key)
                self.visit(value)

    def sequence(self, found: Any) -> None:
        if not self.is_known(found):
            self.items(found)

    def unordered(self, found: Any) -> None:
        forms = sorted([form_of(one) for one in found], key=lambda form: str(form.shape))
        self.shape += ("set", len(forms))
        for shape, names, _ in forms:
            self.shape += shape
            self.names += names

    def struct(self, found: Any) -> None:
        self.shape.append(found.__class__)
        for name in found.__struct_fields__:
            self.visit(getattr(found, name))

    def thing(self, found: Any) -> None:
        if self.is_known(found):
            return
        kind = found.__class__
        self.shape.append(kind)
        left_out = LEFT_OUT.get(kind, ())
        for name in _slots(kind):
            self.visit(getattr(found, name, None))
        for name, value in getattr(found, "__dict__", {}).items():
            if name not in left_out:
                self.visit(value)
            elif value.__class__ is Name:
                self.counters.append(value)

    def atom(self, found: Any) -> None:
        self.shape.append(found)

    def counter(self, found: Any) -> None:
        self.counters.append(repr(found))

    def nothing(self, found: Any) -> None:
        """Leave out what has no influence."""

    def function(self, found: Any) -> None:
        self.shape.append(found.__qualname__)
        for cell in found.__closure__ or ():
            self.visit(cell.cell_contents)

    def method(self, found: Any) -> None:
        self.shape.append(found.__name__)
        self.visit(found.__self__)

    def part(self, found: Any) -> None:
        self.visit(found.func)
        for one in found.args:
            self.visit(one)

    def fingerprints(self, found: Any) -> None:
        """Visit what is remembered, wherever it lies in the table."""
        self.shape.append(tuple(sorted([one for one in found._slots if one])))

    def block(self, found: Any) -> None:
        for column in (found.offsets.tolist(), found.times.tolist(), found.packed, found.wanting):
            self.items(column)

    def packed(self, found: Any) -> None:
        """Visit an event that is carried packed: whether anybody has looked at it does not matter."""
        self.shape.append(unpack(found))

    def until(self, found: Any) -> None:
        """Visit how long something is remembered; no run lasts until that time."""
        self.shape.append(found.serial)

    def members(self, found: Any) -> None:
        self.shape.append(found.__class__)
        for one in found:
            self.visit(one)

    def agenda(self, found: Any) -> None:
        """Visit what is to be done, in order: also what was put off or dropped is in the queue."""
        due = sorted([one for one in found._queue if found._times.get(one[2]) == one[0]])
        self.shape.append(len(due))
        for at, _, errand in due:
            self.shape.append(at)
            self.visit(errand)


_Visit: TypeAlias = Callable[[_Walk, Any], None]
_VISITS: Final[dict[type, _Visit]] = {
    dict: _Walk.mapping,
    OrderedDict: _Walk.mapping,
    MappingProxyType: _Walk.mapping,
    list: _Walk.sequence,
    deque: _Walk.sequence,
    set: _Walk.unordered,
    frozenset: _Walk.unordered,
    FunctionType: _Walk.function,
    MethodType: _Walk.method,
    BuiltinFunctionType: _Walk.method,
    partial: _Walk.part,
    Block: _Walk.block,
    Raw: _Walk.packed,
    Table: _Walk.fingerprints,
    Until: _Walk.until,
    Matcher: _Walk.members,
    CoverIndex: _Walk.members,
    Catalogue: _Walk.nothing,
    Agenda: _Walk.agenda,
}


def _visit_of(kind: type) -> _Visit:
    visit: _Visit
    if issubclass(kind, tuple):
        visit = _Walk.items
    elif issubclass(kind, Struct):
        visit = _Walk.struct
    elif issubclass(kind, Enum | type):
        visit = _Walk.atom
    elif issubclass(kind, count):
        visit = _Walk.counter
    else:
        visit = _Walk.thing
    _VISITS[kind] = visit
    return visit


@cache
def _slots(kind: type) -> list[str]:
    return [name for one in kind.__mro__ for name in one.__dict__.get("__slots__", ())]
