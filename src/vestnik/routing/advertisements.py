"""Advertisements: subscriptions go only where something they want may be published.

They wrap any strategy. A gate in front of a neighbour's reduction lets pass the entries that overlap an advertisement
that came from this neighbour; a new advertisement pulls those that it overlaps, a withdrawn one releases them. Events
of the infrastructure may be published everywhere, and are advertised by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable

from vestnik.model.reserved import asks
from vestnik.routing.reductions import NO_CHANGE, Change, Entry, Net, Reduction, Strategy, add_all
from vestnik.wire.messages import NodeId


class Gate:
    """A reduction of the entries that overlap what was advertised."""

    def __init__(self, inner: Reduction) -> None:
        self._inner = inner
        self._advertised: dict[Entry, None] = {}
        self._held: dict[Entry, None] = {}
        self._passed: dict[Entry, None] = {}

    def add(self, entry: Entry) -> Change:
        if not self._is_open(entry):
            self._held[entry] = None
            return NO_CHANGE
        self._passed[entry] = None
        return self._inner.add(entry)

    def remove(self, entry: Entry) -> Change:
        if entry in self._held:
            del self._held[entry]
            return NO_CHANGE
        del self._passed[entry]
        return self._inner.remove(entry)

    def entries(self) -> Iterable[Entry]:
        return self._inner.entries()

    def reasons(self, known: Entry) -> Iterable[Entry]:
        return self._inner.reasons(known)

    def representative(self, entry: Entry) -> Entry | None:
        return self._inner.representative(entry) if entry in self._passed else None

    def open(self, advertised: Entry) -> Change:
        """The neighbour advertises this now."""
        self._advertised[advertised] = None
        opened = [entry for entry in self._held if advertised.filter.overlaps(entry.filter)]
        for entry in opened:
            del self._held[entry]
            self._passed[entry] = None
        return add_all(self._inner, opened)

    def close(self, advertised: Entry) -> Change:
        """The neighbour advertises this no longer."""
        del self._advertised[advertised]
        net = Net()
        for entry in [entry for entry in self._passed if advertised.filter.overlaps(entry.filter)]:
            if not self._is_open(entry):
                net.take(self.remove(entry))
                self._held[entry] = None
        return net.change()

    def _is_open(self, entry: Entry) -> bool:
        return asks(entry.filter) or any(known.filter.overlaps(entry.filter) for known in self._advertised)


class Gated:
    """A strategy whose reductions are behind gates."""

    def __init__(self, inner: Strategy) -> None:
        self._inner = inner
        self.gates: dict[NodeId, Gate] = {}

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def tagged(self) -> bool:
        return self._inner.tagged

    @property
    def hides(self) -> bool:
        return self._inner.hides

    def reduction(self, neighbour: NodeId) -> Reduction:
        gate = self.gates[neighbour] = Gate(self._inner.reduction(neighbour))
        return gate

    def floods(self, neighbour: NodeId) -> bool:
        return self._inner.floods(neighbour)
