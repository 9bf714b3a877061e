"""The inbox of a client: hands notifications over in their order, each once, and asks for what is missing."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Final, TypeAlias

from vestnik.model.reserved import asks
from vestnik.session.acts import Act, Hand, Missing, Say
from vestnik.session.agenda import PATIENCE, Agenda, Errand
from vestnik.session.subscriptions import Subscription
from vestnik.wire.messages import Answer, Ask, Delivery, NodeId, each_of
from vestnik.wire.origins import Origin

ERRANDS: Final = ("renew", "check", "ask")
"""Errands about a subscription."""

UNLOGGED: Final = "the broker started the subscription again; no log holds what brokers announced meanwhile"

Logs: TypeAlias = Mapping[NodeId | None, str]
"""The log of each broker whose events a message holds, as "broker/log"."""


class Inbox:
    """The subscriptions of a client by name, and by numbering: the one that is followed, and the one to come."""

    def __init__(self, agenda: Agenda[Errand], uniform: Callable[[float, float], float]) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self.by_epoch: dict[int, Subscription] = {}
        self._agenda = agenda
        self._uniform = uniform
        self._missing: set[str] = set()  # the subscriptions of which something is missing
        self._is_whole_again = False  # nothing is missing any more, and what waited for that was not handed over
        self._arrivals = count()
        self._epochs = count(int(uniform(1, 2**52)))
        self._said_logs: tuple[tuple[NodeId, int], ...] = ()
        self._logs: Logs = {}

    def add(self, name: str) -> Subscription:
        known = self.subscriptions[name] = Subscription(name, next(self._epochs))
        self.by_epoch[known.afresh] = known
        return known

    def propose_others(self) -> None:
        """Propose numberings that no broker knows yet.

        A broker may have begun those proposed on an earlier connection, and its answer was lost. Another broker would
        then begin the same, with other events under the same numbers.
        """
        for known in self.subscriptions.values():
            del self.by_epoch[known.afresh]
            known.propose(next(self._epochs))
            self.by_epoch[known.afresh] = known

    def ask_for_all(self, now: float) -> list[Act]:
        """Ask what was missed of all subscriptions; effects wait for the answer."""
        for known in self.subscriptions.values():
            self.no_longer_ask(known)
        followed = [known for known in self.subscriptions.values() if known.epoch]
        self._missing.update(known.name for known in followed)
        return self.ask(followed, now)

    def logs_of(self, said: tuple[tuple[NodeId, int], ...]) -> Logs:
        """Return the log of each broker as text. Nearly always they are the same as in the last message."""
        if said != self._said_logs:
            self._said_logs, self._logs = said, {broker: str(Origin(broker, log)) for broker, log in said}
        return self._logs

    def take(self, deliveries: Iterable[Delivery], logs: Logs, now: float) -> Iterator[Act]:
        """Hand over what is in turn; keep what is early, and ask for what is missing before it.

        The application may act after each notification.
        """
        by_epoch, missing = self.by_epoch, self._missing
        for delivery in deliveries:
            events, numbers, replayed = delivery.events, delivery.numbers, delivery.replayed
            log = None if not events or events[0].seq is None else logs.get(events[0].broker)
            if len(numbers) > 1 or not events:
                for one in delivery.each():
                    yield from self._take(one, log, now)
                continue
            ((epoch, first),) = numbers
            for number, event in enumerate(events, first):
                known = by_epoch.get(epoch)
                if (
                    known is not None
                    and known.epoch == epoch
                    and not known.early
                    and known.takes(number, event, log, now, replayed=replayed, hold=bool(missing))
                ):
                    yield Hand(event, ((known.name, known.given),), replayed)
                else:
                    yield from self._take(delivery.part(number - first, number - first + 1), log, now)

    def _take(self, delivery: Delivery, log: str | None, now: float) -> list[Act]:
        """Take a single notification."""
        event = delivery.event
        acts: list[Act] = []
        in_turn: list[tuple[str, int]] = []
        early: list[Subscription] = []
        for epoch, number in delivery.numbers:
            known = self.by_epoch.get(epoch)
            if known is None:
                continue
            if epoch != known.epoch:
                acts += self.follow(epoch, now)
            hold = bool(self._missing)
            if event is not None and known.takes(number, event, log, now, replayed=delivery.replayed, hold=hold):
                in_turn.append((known.name, known.given))
            elif number > known.last:
                known.keep_early(number, delivery, log, next(self._arrivals), now)
            if known.early:
                early.append(known)
        if in_turn and event is not None:
            acts.append(Hand(event, tuple(in_turn), delivery.replayed))
        return acts + self._release(early, now) if early else acts

    def follow(self, epoch: int, now: float) -> list[Act]:
        """Begin a new numbering if the broker has. It goes on at the cursors; events of brokers are in no log."""
        known = self.by_epoch.get(epoch)
        if known is None or epoch == known.epoch:
            return []
        has_lost = bool(known.epoch) and asks(known.filter)
        self.by_epoch.pop(known.epoch, None)
        self.no_longer_ask(known)
        self._check_later(known, now)
        known.begin(next(self._epochs))
        self.by_epoch[known.afresh] = known
        return [Missing(known.name, UNLOGGED)] if has_lost else []

    def adopt(self, name: str, epoch: int, taken: int, now: float) -> list[Act]:
        """If the broker goes on with a numbering from before this client's life, ask for what was not taken."""
        known = self.subscriptions.get(name)
        if known is None or not known.adopts:
            return []
        if not epoch or epoch in (known.epoch, known.afresh):  # which may have begun before it was accepted
            known.adopt_nothing()
            return []
        known.adopt(epoch, taken)
        self.by_epoch[epoch] = known
        return self.ask([known], now)

    def reach(self, known: Subscription, number: int, now: float) -> list[Act]:
        """Ask for what is missing up to a number that the broker has sent; effects wait for the answer."""
        if known.last >= number or known.early:
            return []
        self._missing.add(known.name)
        return self.ask([known], now)

    def _release(self, subscriptions: Iterable[Subscription], now: float) -> list[Act]:
        """Hand over what came early and is in turn, in the order of arrival in all, and ask for what is missing.

        Effects wait for the answer, which may bring their causes.
        """
        known = list(subscriptions)
        acts = [act for subscription in known for act in subscription.pass_lost()]
        self._missing.update(subscription.name for subscription in known if subscription.has_gap)
        queue: list[tuple[int, int]] = []

        def turn(place: int) -> None:
            acts.extend(known[place].pass_lost())
            found = known[place].in_turn(hold=bool(self._missing))
            if found is not None:
                heapq.heappush(queue, (found.arrival, place))

        for place in range(len(known)):
            turn(place)
        while queue:
            _, place = heapq.heappop(queue)
            acts.append(known[place].hand_next())
            turn(place)
        gaps = [subscription for subscription in known if subscription.has_gap]
        self._missing.update(subscription.name for subscription in gaps)
        return acts + self.ask(gaps, now)

    def ask(self, subscriptions: Iterable[Subscription], now: float) -> list[Act]:
        """Ask what there is, unless that was asked already."""
        positions = [known.position for known in subscriptions if Errand("ask", known.name) not in self._agenda]
        for position in positions:
            self._agenda.put(Errand("ask", position.name), now + PATIENCE)
        return [Say(Ask(tuple(positions)))] if positions else []

    def no_longer_ask(self, known: Subscription) -> None:
        """Forget a question that is answered, or has become pointless."""
        self._not_missing(known)
        self._agenda.drop(Errand("ask", known.name))

    def _not_missing(self, known: Subscription) -> None:
        if known.name in self._missing:
            self._missing.discard(known.name)
            self._is_whole_again = self._is_whole_again or not self._missing

    def release_held(self, now: float) -> list[Act]:
        """Hand over the effects that waited for what was missing, if nothing is any more."""
        if self._missing or not self._is_whole_again:
            return []
        self._is_whole_again = False
        return self._release([known for known in self.subscriptions.values() if known.early], now)

    def answered(self, answer: Answer, logs: Logs, now: float) -> list[Act]:
        """Hand over what was missed, in the order of all subscriptions, and tell what is lost.

        What had to be asked for is older than everything that has arrived since. If an answer before this one has not
        come, nothing is lost yet: what is missing is asked for again.
        """
        last, kept = answer.last, answer.kept
        acts = [act for epoch, _ in last for act in self.follow(epoch, now)]
        each = list(each_of(kept))
        for arrival, delivery in enumerate(each, start=-len(each)):
            event = delivery.event
            log = None if event is None or event.seq is None else logs.get(event.broker)
            for epoch, number in delivery.numbers:
                known = self.by_epoch.get(epoch)
                if known is not None:
                    known.recover(number, delivery, log, arrival)
        named = [(known, number) for epoch, number in last if (known := self.by_epoch.get(epoch))]
        answered = [(known, number) for known, number in named if answer.after <= max(known.last, known.closed)]
        for known, number in answered:
            known.close(number)
            self.no_longer_ask(known)
        waiting = [known for known in self.subscriptions.values() if known.early or known.last < known.closed]
        acts += self._release(waiting, now)
        for known, _ in answered:
            self._check_later(known, now)
        return acts

    def forgotten(self, known: Subscription, now: float) -> None:
        """Drop what came early of a numbering that the broker does not know: it comes again, after the cursors."""
        known.drop_early()
        self.no_longer_ask(known)
        self._check_later(known, now)

    def check(self, known: Subscription, now: float) -> list[Act]:
        """Ask whether anything was lost. If a notification has come meanwhile, wait as long again from then on."""
        due = known.heard_at + known.interval
        if due <= now:
            return self.ask([known], now)
        self._agenda.put(Errand("check", known.name), due)
        return []

    def _check_later(self, known: Subscription, now: float) -> None:
        """After a check, decide when the next is due."""
        check = Errand("check", known.name)
        if known.checking is not None and check not in self._agenda:
            self._agenda.put(check, now + known.next_interval(known.checking, self._uniform))

    def forget(self, known: Subscription) -> None:
        del self.subscriptions[known.name]
        for epoch in (known.epoch, known.afresh):
            self.by_epoch.pop(epoch, None)
        self._not_missing(known)
        for what in ERRANDS:
            self._agenda.drop(Errand(what, known.name))
