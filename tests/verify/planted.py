"""Strategies and routers, each with one mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from vestnik import Event, Filter
from vestnik.routing.advertisements import Gate
from vestnik.routing.covering import Covering, Maximal
from vestnik.routing.declarative import is_merged
from vestnik.routing.hierarchical import Hierarchical
from vestnik.routing.identity import Everything, Identity
from vestnik.routing.merging import Boxes, Merged, Merging
from vestnik.routing.propagation import Leases, Propagation, Source
from vestnik.routing.reductions import NO_CHANGE, Change, Entry, Net, Nothing, Reduction, Strategy
from vestnik.routing.router import AdvertisingRouter, Expired, Router, Targets, Told
from vestnik.verify.agreement import Definition
from vestnik.verify.network import LEASES, MakeRouter
from vestnik.wire.messages import AdminA, AdminS, NodeId

NOT_FORWARDED = "does not forward"


def strategy(inner: type[Any], reduction: type[Any]) -> type[Any]:
    """A strategy that reduces by `reduction`."""

    class Planted(inner):  # type: ignore[misc]
        def reduction(self, neighbour: NodeId) -> Reduction:
            made: Reduction = reduction()
            return made

    return Planted


def routers(make: Any, kind: type[Router] = Router) -> MakeRouter:
    return lambda parent: kind(make(), LEASES)


# --- reductions ---


class OverlapIsCover(Maximal):
    """Takes a filter that overlaps for one that covers."""

    def _place(self, new: Filter) -> Change:
        above = next((other for other in self._maximal if other.overlaps(new)), None)
        if above is not None:
            self._hang(new, above)
            return NO_CHANGE
        return super()._place(new)


class NothingUncovered(Maximal):
    """Does not tell what a removal uncovers."""

    def remove(self, entry: Entry) -> Change:
        change = super().remove(entry)
        return Change((), change.remove)


class UncoveredForgotten(Maximal):
    """Forgets, here too, what a removal uncovers."""

    def remove(self, entry: Entry) -> Change:
        change = super().remove(entry)
        for orphan in change.add:
            self._maximal.remove(orphan.filter)
        return Change((), change.remove)


class NeverRemoved(Everything):
    """Keeps and tells what nobody wants any more."""

    def add(self, entry: Entry) -> Change:
        return NO_CHANGE if entry in self._entries else super().add(entry)

    def remove(self, entry: Entry) -> Change:
        return NO_CHANGE


class RemovalNotTold(Everything):
    """Takes back what it told, but does not say so."""

    def remove(self, entry: Entry) -> Change:
        super().remove(entry)
        return NO_CHANGE


class FirstOnly(Everything):
    """Tells the first entry only."""

    def add(self, entry: Entry) -> Change:
        if self._entries:
            self._entries[entry] = None
            return NO_CHANGE
        return super().add(entry)


class NotRenewed(Everything):
    """Does not know for whose sake it told something."""

    def representative(self, entry: Entry) -> Entry | None:
        return None


class PartLost(Merged):
    """Merges to what the two have in common."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def _partner(self, new: Filter, boxes: Boxes) -> tuple[Filter, Filter, Boxes] | None:
        partner = super()._partner(new, boxes)
        if partner is None:
            return None
        common = new & partner[0]
        return (partner[0], common, (common,)) if common.region else partner


class PartsForgotten(Merged):
    """When a part goes, the whole goes."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def remove(self, entry: Entry) -> Change:
        merged = self._part_of.get(entry.filter)
        if merged is None:
            return NO_CHANGE
        for part in self._parts[merged]:
            self._part_of.pop(part, None)
        self._merged.remove(merged)
        for index, key in self._places(merged):
            del index[key][merged]
        del self._parts[merged]
        return Change((), (Entry(merged),))


class PartsKept(Merged):
    """When a part goes, the whole stays."""

    def __init__(self) -> None:
        super().__init__(0.0)

    def remove(self, entry: Entry) -> Change:
        merged = self._part_of[entry.filter]
        if len(self._parts[merged]) == 1:
            return super().remove(entry)
        del self._part_of[entry.filter], self._parts[merged][entry.filter]
        return NO_CHANGE


class Failing(Everything):
    def remove(self, entry: Entry) -> Change:
        raise ZeroDivisionError


class NoWayUp(Hierarchical):
    """Does not send events to the parent."""

    def floods(self, neighbour: NodeId) -> bool:
        return False


class NothingUp(Hierarchical):
    """Tells the parent nothing."""

    def reduction(self, neighbour: NodeId) -> Reduction:
        return Nothing()


# --- routers ---


class RemovalFirst(Router):
    """Says what is no longer wanted in a message before the one that says what is."""

    def flush(self, now: float) -> Iterator[Told]:
        for neighbour, message in super().flush(now):
            if message.add and message.remove:
                yield neighbour, AdminS((), message.remove)
                yield neighbour, AdminS(message.add, ())
            else:
                yield neighbour, message


class ToldNotSent(Router):
    """Keeps additions to itself that come with removals."""

    def flush(self, now: float) -> Iterator[Told]:
        for neighbour, message in super().flush(now):
            if isinstance(message, AdminS) and message.add and message.remove:
                yield neighbour, AdminS((), message.remove)
            else:
                yield neighbour, message


class DeafToRemovals(Router):
    """Passes over what a neighbour no longer wants."""

    def take(self, sender: NodeId, message: AdminS | AdminA, now: float) -> None:
        super().take(sender, AdminS(message.add, ()) if isinstance(message, AdminS) else message, now)


class LostUnsubscribe(Router):
    """Passes over what a client no longer wants."""

    def unsubscribe(self, source: Source, wanted: Filter) -> None:
        pass


class NeverExpires(Router):
    def expire(self, now: float) -> Expired:
        self.subscriptions.audit(now)
        return Expired([], set())


class Backwards(Router):
    """Sends events back to where they came from, too."""

    def wanting(self, found: Iterable[Entry], sender: NodeId) -> Targets:
        targets = super().wanting(found, sender)
        return targets._replace(neighbours=sorted({*targets.neighbours, *({sender} & set(self.neighbours))}))


class Twice(Router):
    """Hands an event to the first subscription twice."""

    def wanting(self, found: Iterable[Entry], sender: NodeId) -> Targets:
        targets = super().wanting(found, sender)
        return targets._replace(subscriptions=[*targets.subscriptions, *targets.subscriptions[:1]])


class WrongClient(Router):
    """Hands everything to the clients called d."""

    def wanting(self, found: Iterable[Entry], sender: NodeId) -> Targets:
        targets = super().wanting(found, sender)
        return targets._replace(subscriptions=[Source(f"d{s.node[1:]}", s.name) for s in targets.subscriptions])


class Dropping(Router):
    """Hands what comes from neighbours to one subscription only."""

    def wanting(self, found: Iterable[Entry], sender: NodeId) -> Targets:
        targets = super().wanting(found, sender)
        return targets._replace(subscriptions=targets.subscriptions[:1])


class WideForClients(Router):
    """Hands a local client the hull of what it and others want."""

    def subscribe(self, source: Source, wanted: Filter, expiry: float) -> None:
        super().subscribe(source, Filter.all(), expiry)

    def unsubscribe(self, source: Source, wanted: Filter) -> None:
        super().unsubscribe(source, Filter.all())


class OldFilterStays(Router):
    """Hands on what the former filter of a subscription wants."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._current: dict[Source, Filter] = {}

    def subscribe(self, source: Source, wanted: Filter, expiry: float) -> None:
        self._current[source] = wanted
        super().subscribe(source, wanted, expiry)

    def unsubscribe(self, source: Source, wanted: Filter) -> None:
        if self._current.get(source) == wanted:
            super().unsubscribe(source, wanted)


# --- advertisements ---


class NoAdmission(AdvertisingRouter):
    """Takes everything, advertised or not."""

    def conforms(self, client: NodeId) -> Callable[[Event], bool]:
        return lambda event: True


class AnybodysOffers(AdvertisingRouter):
    """Takes what some client advertised, not this one."""

    def conforms(self, client: NodeId) -> Callable[[Event], bool]:
        return lambda event: any(offered.matches(event) for offered in self.advertised.values())


class NothingAdmitted(AdvertisingRouter):
    def conforms(self, client: NodeId) -> Callable[[Event], bool]:
        return lambda event: False


class GateStaysShut(AdvertisingRouter):
    """A new advertisement pulls nothing that was held."""

    def _offer(self, entry: Entry, sender: NodeId, expiry: float) -> None:
        if self.advertisements.add(entry, Source(sender), expiry):
            self._gates[sender]._advertised[entry] = None


class GateStaysOpen(AdvertisingRouter):
    """A withdrawn advertisement releases nothing."""

    def _withdraw(self, entry: Entry, sender: NodeId) -> None:
        if self.advertisements.remove(entry, Source(sender)):
            del self._gates[sender]._advertised[entry]


class OffersNotTold(AdvertisingRouter):
    """Tells neighbours no advertisements."""

    def flush(self, now: float) -> Iterator[Told]:
        return ((neighbour, message) for neighbour, message in super().flush(now) if isinstance(message, AdminS))


class ShutTooEarly(AdvertisingRouter):
    """A withdrawn advertisement releases what others overlap, too."""

    def _withdraw(self, entry: Entry, sender: NodeId) -> None:
        gate: Gate = self._gates[sender]
        if self.advertisements.remove(entry, Source(sender)):
            others, gate._advertised = gate._advertised, {entry: None}
            self.subscriptions.note(sender, gate.close(entry))
            gate._advertised = {other: None for other in others if other != entry}


# --- the framework around strategies ---


def planted(table: type[Propagation]) -> type[Router]:
    """A router whose table of subscriptions is of a kind with a mistake."""

    class Planted(Router):
        def __init__(self, strategy: Strategy, leases: Leases) -> None:
            super().__init__(strategy, leases)
            self.subscriptions = table(strategy, leases)

    return Planted


class ConnectForgets(Propagation):
    """Tells a new neighbour nothing of the entries that were there."""

    def connect(self, neighbour: NodeId) -> None:
        there, self._nodes = self._nodes, {}
        super().connect(neighbour)
        self._nodes = there


class DisconnectKeeps(Propagation):
    """Thinks that a neighbour that comes back still knows what it was told."""

    def __init__(self, strategy: Strategy, leases: Leases) -> None:
        super().__init__(strategy, leases)
        self._kept: dict[NodeId, dict[Entry, float]] = {}

    def connect(self, neighbour: NodeId) -> None:
        super().connect(neighbour)
        kept = self._told[neighbour] = self._kept.pop(neighbour, {})
        change = self._pending.pop(neighbour, Net()).change()
        self.note(neighbour, change._replace(add=tuple(entry for entry in change.add if entry not in kept)))

    def disconnect(self, neighbour: NodeId) -> None:
        self._kept[neighbour] = self._told[neighbour]
        super().disconnect(neighbour)


class TooMuchSlack(Propagation):
    """Passes renewals on too late."""

    def __init__(self, strategy: Strategy, leases: Leases) -> None:
        super().__init__(strategy, leases._replace(slack=10 * leases.slack))


class NoAudit(Propagation):
    """Takes for granted that neighbours were told what it believes."""

    def audit(self, now: float) -> None:
        pass


class ShortestLease(Propagation):
    """Tells for as long as the first of all reasons lasts."""

    def _until(self, neighbour: NodeId, told: Entry, now: float) -> float:
        return min(self._expiry(neighbour, entry) for entry in self._reductions[neighbour].reasons(told))


class NoClamp(Propagation):
    """Believes leases that nobody can have given."""

    def expire(self, now: float) -> list[tuple[Entry, Source]]:
        return [(entry, source) for entry, held in self for source, expiry in held.items() if expiry <= now]


class Bug(NamedTuple):
    """Routers with a mistake, the rule that it breaks, a part of what is said, and a definition if it needs one."""

    make: MakeRouter
    rule: str
    said: str
    definition: Definition | None = None


BUGS: dict[str, Bug] = {
    "overlap taken for cover": Bug(routers(strategy(Covering, OverlapIsCover)), "remote validity", NOT_FORWARDED),
    "uncovered is not told": Bug(routers(strategy(Covering, NothingUncovered)), "remote validity", NOT_FORWARDED),
    "uncovered is forgotten": Bug(routers(strategy(Covering, UncoveredForgotten)), "raises", "KeyError"),
    "nothing is removed": Bug(routers(strategy(Identity, NeverRemoved)), "agreement", "thinks it has told"),
    "removals are not told": Bug(routers(strategy(Identity, RemovalNotTold)), "agreement", "should have told"),
    "only the first is told": Bug(routers(strategy(Identity, FirstOnly)), "remote validity", NOT_FORWARDED),
    "not renewed": Bug(routers(strategy(Identity, NotRenewed)), "remote validity", NOT_FORWARDED),
    "merging loses a part": Bug(routers(strategy(Merging, PartLost)), "remote validity", NOT_FORWARDED),
    "merging forgets parts": Bug(routers(strategy(Merging, PartsForgotten)), "remote validity", NOT_FORWARDED),
    "merging keeps what is gone": Bug(routers(strategy(Merging, PartsKept)), "agreement", "the definition", is_merged),
    "no way up": Bug(lambda above: Router(NoWayUp(Covering(), above), LEASES), "remote validity", NOT_FORWARDED),
    "nothing told upwards": Bug(
        lambda above: Router(NothingUp(Covering(), above), LEASES), "remote validity", NOT_FORWARDED
    ),
    "removal before addition": Bug(routers(Covering, RemovalFirst), "weak remote validity", NOT_FORWARDED),
    "told but not sent": Bug(routers(Covering, ToldNotSent), "remote validity", NOT_FORWARDED),
    "deaf to removals": Bug(routers(Identity, DeafToRemovals), "agreement", "thinks it has told"),
    "lost unsubscription": Bug(routers(Identity, LostUnsubscribe), "weak local validity", "more than it wants"),
    "never expires": Bug(routers(Identity, NeverExpires), "local validity", "more than it wants"),
    "back to the sender": Bug(routers(Covering, Backwards), "forwarding", "a second time"),
    "delivered twice": Bug(routers(Covering, Twice), "once", "a second time"),
    "to the wrong client": Bug(routers(Covering, WrongClient), "active", "had not subscribed"),
    "dropped": Bug(routers(Covering, Dropping), "liveness", "was not notified"),
    "more than the client wants": Bug(routers(Merging, WideForClients), "weak local validity", "more than it wants"),
    "the old filter stays": Bug(routers(Identity, OldFilterStays), "weak local validity", "more than it wants"),
    "advertisements ignored": Bug(routers(Covering, NoAdmission), "admission", "outside"),
    "advertisements of others": Bug(routers(Covering, AnybodysOffers), "admission", "outside"),
    "nothing admitted": Bug(routers(Covering, NothingAdmitted), "admission", "refuses"),
    "the gate stays shut": Bug(routers(Covering, GateStaysShut), "remote validity", NOT_FORWARDED),
    "the gate stays open": Bug(routers(Covering, GateStaysOpen), "agreement", "for the sake of"),
    "the gate shuts too early": Bug(routers(Covering, ShutTooEarly), "remote validity", NOT_FORWARDED),
    "advertisements are not told": Bug(routers(Identity, OffersNotTold), "agreement", "which knows nothing"),
    "a new neighbour is told nothing": Bug(
        routers(Identity, planted(ConnectForgets)), "remote validity", NOT_FORWARDED
    ),
    "a lost neighbour is kept": Bug(routers(Identity, planted(DisconnectKeeps)), "remote validity", NOT_FORWARDED),
    "too much slack": Bug(routers(Identity, planted(TooMuchSlack)), "remote validity", NOT_FORWARDED),
    "no audit": Bug(routers(Identity, planted(NoAudit)), "agreement", "should have told"),
    "the shortest lease counts": Bug(routers(Covering, planted(ShortestLease)), "leases", "it lasts until"),
    "leases are not cut": Bug(routers(Identity, planted(NoClamp)), "local validity", "more than it wants"),
    "a strategy that fails": Bug(routers(strategy(Identity, Failing)), "raises", "ZeroDivisionError"),
}
