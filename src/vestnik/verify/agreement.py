"""What neighbours should know, were told and know is one, and each entry of it is there for a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from vestnik.routing.declarative import entries_for
from vestnik.routing.propagation import Propagation, Source
from vestnik.routing.reductions import Entry, Reduction
from vestnik.routing.router import AdvertisingRouter
from vestnik.verify.validity import Routers
from vestnik.wire.messages import NodeId

Definition: TypeAlias = Callable[[set[Entry], set[Entry]], bool]
"""Whether what a neighbour knows, the first, is right for the entries of which it is to know, the second."""


def agreement(routers: Routers, definition: Definition | None = None) -> Iterator[str]:
    """What does not agree, or is not as defined, in sentences. It is asked where nothing is on its way."""
    for me, router in routers.items():
        for neighbour in router.neighbours:
            other = routers[neighbour]
            offers = None
            if isinstance(router, AdvertisingRouter) and isinstance(other, AdvertisingRouter):
                offers = router.advertisements
                entries = entries_for(neighbour, offers)
                yield from _agree(me, neighbour, offers, other.advertisements, entries, definition)
            entries = entries_for(neighbour, router.subscriptions, offers)
            yield from _agree(me, neighbour, router.subscriptions, other.subscriptions, entries, definition)


def _agree(
    me: NodeId,
    neighbour: NodeId,
    here: Propagation,
    there: Propagation,
    entries: set[Entry],
    definition: Definition | None,
) -> Iterator[str]:
    reduction = here.reduction(neighbour)
    known, told = set(reduction.entries()), set(here.told(neighbour))
    heard = {entry for entry, sources in there if Source(me) in sources}
    if known - told:
        yield f"{me} should have told {neighbour} {_shown(known - told)}"
    if told - known:
        yield f"{me} should have told {neighbour} that {_shown(told - known)} is over"
    if told - heard:
        yield f"{me} thinks it has told {neighbour} {_shown(told - heard)}, which knows nothing of it"
    if heard - told:
        yield f"{me} thinks it has told {neighbour} nothing of {_shown(heard - told)}, which knows it"
    if definition is not None and not definition(known, entries):
        instead = f"{_shown(known - entries)} instead of {_shown(entries - known)}"
        yield f"{me} tells {neighbour} {instead}, which is not what the definition makes of it"
    yield from sorted(_unfounded(me, neighbour, reduction, known, entries))
    yield from sorted(_misrepresented(me, neighbour, reduction, known, entries))


def _unfounded(
    me: NodeId, neighbour: NodeId, reduction: Reduction, known: set[Entry], entries: set[Entry]
) -> Iterator[str]:
    for entry in known:
        reasons = set(reduction.reasons(entry))
        if not reasons or not reasons <= entries:
            sake = f"for the sake of {_shown(reasons - entries)}, of which it is not to know"
            yield f"{me} tells {neighbour} {_shown([entry])} {sake}"


def _misrepresented(
    me: NodeId, neighbour: NodeId, reduction: Reduction, known: set[Entry], entries: set[Entry]
) -> Iterator[str]:
    for entry in entries:
        shown = reduction.representative(entry)
        if shown is not None and (shown not in known or not shown.filter.covers(entry.filter)):
            yield f"{me} takes {_shown([shown])} to stand for {_shown([entry])} at {neighbour}, which it does not"


def _shown(entries: Iterable[Entry]) -> str:
    texts = sorted(f"({entry.filter})" + (f" of {entry.tag}" if entry.tag else "") for entry in entries)
    return ", ".join(texts) or "nothing"
