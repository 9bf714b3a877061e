"""How what subscriptions have missed is asked for, and the past.

A subscription lacks something of a broker that was out of reach, or that took events while the subscription was at
another broker, or at none. When that broker is within reach, it is asked to send again what it took since. What comes
for the subscription meanwhile waits, so that nothing comes before what it follows. A replay is the same, of all brokers
and of what they took before there was the subscription.

What is recalled comes behind the entries of the routing tables, which go the same way: what is not in the answer finds
them there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from vestnik.broker.amends import Amends
from vestnik.broker.catching import Replaying
from vestnik.broker.clients import Client, Subscription
from vestnik.broker.effects import Effect
from vestnik.broker.errands import Errands
from vestnik.broker.handover import Handover
from vestnik.broker.reach import Surroundings
from vestnik.broker.recalls import ANSWER_WITHIN, Recalls
from vestnik.broker.replays import EVERYTHING, Replays, out_of_reach
from vestnik.model.filters import Filter
from vestnik.model.reserved import announcements
from vestnik.model.streams import Arrivals
from vestnik.routing.propagation import Source
from vestnik.routing.router import Router
from vestnik.wire.messages import UNBOUND, NodeId, Recalled, Subscribe
from vestnik.wire.replays import Replay

TOGETHER: Final = 500
"""Subscriptions for which one recall is made."""
FORGOTTEN: Final = "the broker had forgotten the subscription"


class CatchUp:
    """The recalls of one broker. Numbers of recalls begin with `first`, which no earlier life has come to.

    What begins and ends them is here; `amends` is how what was missed comes, `replays` how the past does, and `errands`
    are those of requests.
    """

    def __init__(
        self,
        name: NodeId,
        clients: Mapping[NodeId, Client],
        surroundings: Surroundings,
        router: Router,
        arrivals: Arrivals,
        places: Iterator[int],
        first: int = 1,
    ) -> None:
        self._clients = clients
        self._surroundings = surroundings
        self._arrivals = arrivals
        self._recalls = Recalls(name, surroundings, first)
        self._handover = Handover(clients, places)
        self._amends = Amends(self._recalls, self._handover, surroundings, router)
        self._replays = Replays(self._recalls, self._handover, surroundings)
        self.errands = Errands(self._replays)

    # --- what begins it ---

    def begin(self, source: Source, message: Subscribe) -> list[Effect]:
        """A subscription is new: begin with what it lacks of brokers within reach, or else with what is replayed.

        Who was replayed something and has not got all of it lacks what brokers took since, and the rest of that.
        Who asks for announcements is told what is open. Who had notifications before, and has not seen anything of
        what brokers took, is told that some may be missing.
        """
        subscription = self._subscription(source)
        wanted, replay = message.filter, message.replay
        lost = [FORGOTTEN] if message.epoch else []
        if subscription.lacks:
            if replay is None or message.replayed:
                return self._amend(source, subscription)
            if replay.picks:  # what it would pick by now is not what it picked
                gap = self._handover.gaps(subscription, lost)
                return [*self._handover.notify(source.node, gap), *self._amend(source, subscription)]
            lost += self._leave_out(subscription, replay)
        partial = replay is None
        if replay is None:
            wanted, replay = announcements(wanted), EVERYTHING
        if not wanted.region:
            return self._handover.notify(source.node, self._handover.gaps(subscription, lost))
        replaying = Replaying(replay, partial=partial)
        replaying.lost += lost
        replaying.left_out = set(subscription.lacks)
        return self._replays.begin(source, wanted, replaying, replay)

    def _amend(self, source: Source, subscription: Subscription) -> list[Effect]:
        """Ask brokers within reach for what a subscription lacks of them."""
        lacking = [broker for broker in sorted(self._surroundings.positions) if broker in subscription.lacks]
        asking = [effect for broker in lacking for effect in self._amends.begin(broker, [source])]
        return [*asking, *self._forget(source, subscription)]

    def _leave_out(self, subscription: Subscription, replay: Replay) -> list[str]:
        """Of what was being replayed, brokers within reach replay all again. What others have comes when they do.

        Where only some of it is wanted, that is what they took since. What is lost is said.
        """
        within_reach = self._surroundings.positions
        some = replay.since is not None
        away = {broker: at for broker, at in subscription.lacks.items() if broker not in within_reach}
        subscription.lacks = {broker: at if some else UNBOUND for broker, at in away.items()}
        return [out_of_reach(broker) for broker in away] if some else []

    def changed(self, source: Source, before: Filter) -> list[Effect]:
        """A subscription wants something else than before: what is open and was not told is told."""
        return self._replays.tell_open(source, before)

    def parted(self, neighbour: NodeId, now: float) -> list[Effect]:
        """A link is gone; who was behind it may not be known."""
        return self._replays.parted(neighbour, now)

    def appeared(self, brokers: Collection[NodeId], now: float) -> list[Effect]:
        """Brokers are within reach that were not."""
        effects = self._replays.met(brokers, now)
        for broker in sorted(brokers):
            found = self._handover.subscriptions()
            lacking = [source for source, subscription in found if broker in subscription.lacks]
            for start in range(0, len(lacking), TOGETHER):
                effects += self._amends.begin(broker, lacking[start : start + TOGETHER])
        return effects

    # --- what goes on with it ---

    def go_on(self, client: NodeId, names: Iterable[str], now: float) -> list[Effect]:
        """There may be room for more of what these subscriptions of a client are to get."""
        replayed = [effect for name in names for effect in self._replays.go_on(Source(client, name), now)]
        return replayed + self._amends.go_on(client, now)

    def look_again(self, client: NodeId, now: float) -> list[Effect]:
        """Some subscriptions of a client are there no more, or have begun anew."""
        return [*self._amends.go_on(client, now), *self._handover.look_again(client, now)]

    def recalled(self, broker: NodeId, message: Recalled, now: float) -> list[Effect]:
        """A broker has answered; where there is more that has to be asked for, ask."""
        asked = self._recalls.get(message.number)
        if asked is None or asked.broker != broker or asked.has(message):
            return []
        return (self._replays if asked.replays else self._amends).take(asked, message, now)

    # --- what ends it ---

    def vanished(self, brokers: Mapping[NodeId, int], now: float) -> list[Effect]:
        """Brokers are out of reach; what they took up to a position has come."""
        effects: list[Effect] = []
        had = {broker: self._arrivals.of(broker) for broker in brokers}
        for source, subscription in self._handover.subscriptions():
            has_all = self._clients[source.node].making_up is None and subscription.replaying is None
            if has_all and not subscription.lacks:
                subscription.has_past()
            for broker, position in brokers.items():
                if broker not in subscription.lacks:
                    subscription.lacks[broker] = position
                    subscription.had |= {broker: had[broker]} if has_all else {}
            effects += self._forget(source, subscription)
        asking_again: dict[NodeId, set[Source]] = {broker: set() for broker in brokers}
        for source, _ in self._handover.subscriptions():
            for broker in self._replays.interrupt_later(source, brokers):
                asking_again[broker].add(source)
        for number in self._recalls.of(brokers):
            asked = self._recalls.pop(number)
            if asked.replays:
                again = asking_again[asked.broker]
                again |= self._replays.interrupt(number, asked, but=again)
                effects += self._replays.lose(number, asked, now, but=again)
        return effects + self._amends.vanished(list(brokers), now)

    def _forget(self, source: Source, subscription: Subscription) -> list[Effect]:
        """Who has been out of reach for the longest is not waited for where there are too many."""
        client, lost = self._clients[source.node], subscription.forget(self._surroundings.positions)
        if client.making_up is not None:
            client.making_up.lost += [(subscription, reason) for reason in lost]
            return []
        if subscription.replaying is not None:
            subscription.replaying.lost += lost
            return []
        return self._handover.notify(source.node, self._handover.gaps(subscription, lost))

    def tick(self, now: float) -> list[Effect]:
        """Who does not answer for too long is not waited for: what it would have sent is lost."""
        self._recalls.forget(lambda number, asked: not self._replays.is_awaited(number, asked))
        reason = f"it has not answered for {ANSWER_WITHIN:g} seconds"
        return [
            effect
            for number, asked in self._recalls.late(now)
            for at in [max(asked.recall.after, 0)]
            for effect in self.recalled(asked.broker, Recalled(number, (), at, at, reason), now)
        ]

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._recalls.shift(by)

    def _subscription(self, source: Source) -> Subscription:
        return self._clients[source.node].subscriptions[source.name]
