"""Asks brokers for the past of a subscription, and hands it over as the client takes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import structs

from vestnik.broker.catching import Replaying
from vestnik.broker.clients import Subscription, has_expired
from vestnik.broker.confluence import Confluence
from vestnik.broker.effects import Effect, Send
from vestnik.broker.handover import Handover
from vestnik.broker.reach import Surroundings
from vestnik.broker.recalls import Asked, Asker, Recalls, Request
from vestnik.broker.sequences import place_of
from vestnik.model.envelope import Pair
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.reserved import announcements, others
from vestnik.routing.propagation import Source
from vestnik.wire.messages import UNBOUND, Delivery, Last, NodeId, Recall, Recalled
from vestnik.wire.replays import Replay

EVERYTHING: Final = Replay(all=True)


class Errand(NamedTuple):
    """What a request waits for, and what is to be done when it is there."""

    replaying: Replaying
    finish: Callable[[Replaying], list[Effect]]


class Replays:
    """All that are under way, for subscriptions and for requests."""

    def __init__(self, recalls: Recalls, handover: Handover, surroundings: Surroundings) -> None:
        self._recalls = recalls
        self._handover = handover
        self._surroundings = surroundings
        self._errands: dict[Request, Errand] = {}

    # --- asking ---

    def begin(self, source: Source, wanted: Filter, replaying: Replaying, replay: Replay) -> list[Effect]:
        """What comes for a subscription waits for the past."""
        subscription = self._handover.subscription(source)
        assert subscription is not None
        subscription.replaying = replaying
        self._handover.clients[source.node].begin_behind(subscription)
        return self._ask_all(source, Recall(0, (wanted,), replay))

    def tell_open(self, source: Source, told: Filter) -> list[Effect]:
        """Tell a subscription what is open, and was not told when it wanted something else; behind what is replayed."""
        subscription = self._handover.subscription(source)
        wanted = Filter.none() if subscription is None else announcements(subscription.filter)
        if subscription is None or not wanted.region or told.covers(wanted):
            return []
        if subscription.replaying is not None:
            if subscription.replaying.told_next is None:
                subscription.replaying.told_next = told
            return []
        return self.begin(source, wanted, Replaying(EVERYTHING, told=told), EVERYTHING)

    def begin_errand(self, request: Request, errand: Errand, recall: Recall) -> list[Effect]:
        self._errands[request] = errand
        return self._ask_all(request, recall)

    def requests(self) -> Iterator[Request]:
        """Those that wait."""
        return iter(self._errands)

    def _ask_all(self, asker: Asker, recall: Recall) -> list[Effect]:
        """Ask all brokers within reach, and those that will be once a neighbour has said who is behind it."""
        replaying, epochs = self._replaying(asker), self._epochs(asker)
        if replaying is not None:
            unmet = self._surroundings.unmet
            replaying.waiting |= {self._recalls.expect(near, recall, [asker], epochs) for near in unmet}
        within_reach = sorted(self._surroundings.positions)
        return [effect for broker in within_reach for effect in self._ask(broker, recall, asker)]

    def met(self, neighbours: Collection[NodeId], now: float) -> list[Effect]:
        """Neighbours have said who is behind them: ask these what is to be asked of all."""
        effects: list[Effect] = []
        for number, asked in self._recalls.no_longer_expect(neighbours).items():
            for asker, replaying in list(self._awaiting(number, asked)):
                replaying.waiting.discard(number)
                for broker in self._surroundings.behind(asked.broker):
                    effects += [] if broker in replaying.left_out else self._ask(broker, asked.recall, asker)
                effects += self._advance(asker, replaying, now)
        return effects

    def parted(self, neighbour: NodeId, now: float) -> list[Effect]:
        """A neighbour is gone. Where it has not said who was behind it, what these would have sent is lost."""
        effects: list[Effect] = []
        for number, asked in self._recalls.no_longer_expect([neighbour]).items():
            effects += self.lose(number, asked, now, but=())
        return effects

    def _ask(self, broker: NodeId, recall: Recall, asker: Asker) -> list[Effect]:
        replaying = self._replaying(asker)
        number, effects = self._recalls.ask(broker, recall, [asker], self._epochs(asker), replays=True)
        if replaying is not None:
            replaying.waiting.add(number)
            replaying.asked.add(broker)
        return effects

    def _epochs(self, asker: Asker) -> list[int]:
        subscription = self._handover.subscription(asker)
        return [] if subscription is None else [subscription.epoch]

    # --- answers ---

    def is_awaited(self, number: int, asked: Asked) -> bool:
        """Whether somebody still wants the rest."""
        return any(True for _ in self._awaiting(number, asked))

    def _awaiting(self, number: int, asked: Asked) -> Iterator[tuple[Asker, Replaying]]:
        for asker in sorted(asked.askers):
            replaying = self._replaying(asker)
            if replaying is not None and number in replaying.waiting:
                yield asker, replaying

    def _replaying(self, asker: Asker) -> Replaying | None:
        if isinstance(asker, Request):
            return self._errands[asker].replaying if asker in self._errands else None
        subscription = self._handover.subscription(asker)
        return None if subscription is None else subscription.replaying

    def take(self, asked: Asked, message: Recalled, now: float) -> list[Effect]:
        """A part of an answer, or the rest of it. What nobody waits for is not asked for any further."""
        number, effects = message.number, list[Effect]()
        awaiting = list(self._awaiting(number, asked))
        for _, replaying in awaiting:
            replaying.take(asked.broker, message)
        if not awaiting or not message.is_part:
            self._recalls.pop(number)
            return self.answered(number, asked, now)
        self._recalls.advance(number, asked.rest(message), asked.askers)
        if not message.more:
            self._recalls.hold(number)
        for asker, replaying in awaiting:
            effects += self.go_on(asker, now) if replaying.can_flow else self._release(replaying)
        return effects

    def answered(self, number: int, asked: Asked, now: float) -> list[Effect]:
        """A broker has sent all, or will not: with the last of them nothing is missing any more."""
        effects: list[Effect] = []
        for asker, replaying in list(self._awaiting(number, asked)):
            replaying.waiting.discard(number)
            if replaying.flow is not None:
                replaying.flow.end(asked.broker)
            effects += self._advance(asker, replaying, now)
        return effects

    def _advance(self, asker: Asker, replaying: Replaying, now: float) -> list[Effect]:
        """One is waited for no more."""
        if isinstance(asker, Source) and replaying.can_flow:
            return self.go_on(asker, now)
        return [*self._release(replaying), *([] if replaying.waiting else self._replayed(asker, replaying, now))]

    def interrupt(self, number: int, asked: Asked, *, but: Collection[Asker]) -> set[Source]:
        """A broker is out of reach. Who wants all that it has lacks what it has not sent, and will ask again for it.

        Where it has sent nothing, nobody will know by then what it should have.
        """
        found: set[Source] = set()
        for asker, replaying in self._awaiting(number, asked):
            if isinstance(asker, Source) and asker not in but and replaying.wants_all:
                position = self._lack(asker, replaying, asked.broker)
                found.update([] if position == UNBOUND else [asker])
        return found

    def interrupt_later(self, source: Source, brokers: Iterable[NodeId]) -> list[NodeId]:
        """The brokers of which a subscription lacks what waited for the past and is not here."""
        replaying = self._replaying(source)
        if replaying is None or not (replaying.is_behind or replaying.is_later):
            return []
        found = [broker for broker in brokers if broker in replaying.reached]
        for broker in found:
            self._lack(source, replaying, broker)
        return found

    def _lack(self, source: Source, replaying: Replaying, broker: NodeId) -> int:
        """All of a broker is missing behind the position up to which it has sent the past, also what waits of it."""
        client, subscription = self._handover.clients[source.node], self._handover.subscription(source)
        assert subscription is not None
        position = subscription.lacks[broker] = replaying.interrupted(broker)
        if client.making_up is not None:
            client.making_up.without(subscription, broker)
        return position

    def lose(self, number: int, asked: Asked, now: float, *, but: Iterable[Asker]) -> list[Effect]:
        """A broker is out of reach: what it would have sent is lost, but for those who will ask again."""
        for asker, replaying in self._awaiting(number, asked):
            if asker not in but:
                replaying.lost.append(out_of_reach(asked.broker))
        return self.answered(number, asked, now)

    def _release(self, replaying: Replaying) -> list[Effect]:
        """Ask for all that was not asked for yet."""
        held = self._recalls.held(replaying.waiting)
        return [effect for number in held for effect in self._recalls.resume(number)]

    # --- the past flows ---

    def go_on(self, asker: Asker, now: float) -> list[Effect]:
        """Hand over what there is room for of the past, and ask for more of it."""
        replaying, subscription = self._replaying(asker), self._handover.subscription(asker)
        if replaying is None or subscription is None or not isinstance(asker, Source) or not replaying.can_flow:
            return []
        flow = replaying.flow or self._flow_of(replaying)
        if flow is None:
            return []
        effects = self._handover.notify(asker.node, self._flown(subscription, replaying, flow, now))
        for number, asked in self._recalls.held(replaying.waiting).items():
            effects += self._recalls.resume(number) if flow.wants(asked.broker) else []
        if flow.is_over:
            return effects + self._caught_up(asker, replaying, now)
        client = self._handover.clients[asker.node]
        if subscription.room <= 0 and client.takes:
            effects.append(Send(asker.node, Last(((subscription.epoch, client.told(subscription)),))))
        return effects

    def _flow_of(self, replaying: Replaying) -> Confluence | None:
        """The past, once all brokers have begun to send it."""
        open = {asked.broker for asked in self._recalls.held(replaying.waiting).values()}
        if len(open) < len(replaying.waiting):
            return None
        flow = replaying.begin_flow()
        for broker in replaying.reached.keys() - open:
            flow.end(broker)
        return flow

    def _flown(self, subscription: Subscription, replaying: Replaying, flow: Confluence, now: float) -> list[Delivery]:
        """What there is room for, numbered."""
        lost, replaying.lost = replaying.lost, []
        deliveries = self._handover.gaps(subscription, lost)
        subscription.make_room(max(0, subscription.room))
        while subscription.room > 0 and (found := flow.next()) is not None:
            _, taken = found
            event = taken.event
            if _follows(event, replaying.newest) and subscription.filter.matches(event) and not has_expired(event, now):
                replaying.newest[event.stream] = event.seq or 0
                replayed = replaying.is_past(taken)
                deliveries.append(self._handover.add(subscription, event, replayed=replayed, again=True))
        return deliveries

    def _replayed(self, asker: Asker, replaying: Replaying, now: float) -> list[Effect]:
        """What is missing for good, then the past, then what came meanwhile.

        Of a stream, that is what follows the past. What came before and is not among it was not asked for, unless the
        subscription had begun before. What is missing of brokers that were cut off may come too late: others may have
        copies of what followed it.
        """
        if isinstance(asker, Request):
            return self._errands.pop(asker).finish(replaying)
        subscription = self._handover.subscription(asker)
        assert subscription is not None
        past = [event for event in replaying.past(subscription.filter) if not has_expired(event, now)]
        lost = list(dict.fromkeys([*replaying.lost, *map(out_of_reach, sorted(replaying.cut_off))]))
        replaying.lost = []
        subscription.make_room(len(lost) + len(past))
        deliveries = self._handover.gaps(subscription, lost)
        begins, newest = replaying.told is None, replaying.newest
        for event in past:
            deliveries.append(self._handover.add(subscription, event, replayed=True, again=begins))
            replaying.handed.add(place_of(event))
        for event in past if begins else ():
            newest[event.stream] = max(newest.get(event.stream, 0), event.seq or 0)
        return [*self._handover.notify(asker.node, deliveries), *self._caught_up(asker, replaying, now)]

    def _caught_up(self, source: Source, replaying: Replaying, now: float) -> list[Effect]:
        """All of the past was handed over: what waits comes next, and where some of it is not here, it is recalled."""
        client, subscription = self._handover.clients[source.node], self._handover.subscription(source)
        assert subscription is not None
        within_reach = self._surroundings.positions
        reached = {broker: at for broker, at in sorted(replaying.reached.items()) if broker in within_reach}
        for broker in sorted(replaying.reached.keys() - reached) if replaying.is_behind else ():
            self._lack(source, replaying, broker)
        if replaying.is_behind and reached:
            wanted = Recall(0, (others(subscription.filter),), EVERYTHING)
            replaying.is_behind, replaying.is_later, replaying.flow = False, True, Confluence(reached)
            return [
                effect
                for broker, at in reached.items()
                for effect in self._ask(broker, structs.replace(wanted, after=at), source)
            ]
        subscription.replaying = None
        known = replaying.handed
        deliveries = self._handover.gaps(subscription, replaying.lost)
        live = [(event, again) for event, again in replaying.live if _follows(event, replaying.newest)]
        subscription.make_room(len(live))
        if client.making_up is not None:
            client.making_up.only(subscription, lambda event: _follows(event, replaying.newest))
        if client.behind is not None:
            client.behind.ends(subscription)
        for event, again in live:
            if place_of(event) not in known and not has_expired(event, now):
                known.add(place_of(event))
                deliveries += self._handover.hand_out(client, event, [subscription], again=again)
        effects = [*self._handover.notify(source.node, deliveries), *self._handover.look_again(source.node, now)]
        return effects if replaying.told_next is None else effects + self.tell_open(source, replaying.told_next)


def out_of_reach(broker: NodeId) -> str:
    return f"{broker}: it cannot be reached"


def _follows(event: Event, newest: Mapping[Pair | None, int]) -> bool:
    """Whether an event comes after the newest of its stream."""
    return event.seq is None or event.seq > newest.get(event.stream, 0)
