"""What comes to a client: its notifications in their order, each once, and what is missing asked for."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final

from vestnik.session.acts import Act, Hand, Say
from vestnik.session.agenda import PATIENCE, Agenda, Errand
from vestnik.session.subscriptions import Subscription
from vestnik.wire.messages import Ask, Delivery

ERRANDS: Final = ("renew", "check", "ask")
"""That are about a subscription."""


class Inbox:
    """The subscriptions of a client by name, and by numbering: the one that there is, and the one that there may be."""

    def __init__(self, agenda: Agenda[Errand], uniform: Callable[[float, float], float]) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self.by_epoch: dict[int, Subscription] = {}
        self._agenda = agenda
        self._uniform = uniform
        self._missing: set[str] = set()  # the subscriptions of which something is missing
        self._arrivals = count()
        self._epochs = count(int(uniform(1, 2**52)))

    def add(self, name: str) -> Subscription:
        known = self.subscriptions[name] = Subscription(name, next(self._epochs))
        self.by_epoch[known.afresh] = known
        return known

    def ask_for_all(self, now: float) -> list[Act]:
        """Ask what was missed of all subscriptions; effects wait for the answer."""
        for known in self.subscriptions.values():
            self.no_longer_ask(known)
        followed = [known for known in self.subscriptions.values() if known.epoch and not known.is_paused]
        self._missing.update(known.name for known in followed)
        return self.ask(followed, now)

    def lacking(self, last: Iterable[tuple[int, int]]) -> list[Subscription]:
        """Those that have not come to the last numbers."""
        known = [(self.by_epoch.get(epoch), number) for epoch, number in last]
        return [one for one, number in known if one is not None and one.last < number]

    def take(self, delivery: Delivery, now: float) -> list[Act]:
        """Hand over what is in turn; keep what is early, and ask for what is missing before it."""
        event = delivery.event
        in_turn: list[tuple[str, int]] = []
        early: list[Subscription] = []
        for epoch, number in delivery.numbers:
            known = self.by_epoch.get(epoch)
            if known is None:
                continue
            if epoch != known.epoch:
                self.follow(epoch, now)
            if not known.is_paused:
                known.heard_at = now
                if known.takes(number, delivery, hold=bool(self._missing)):
                    in_turn.append((known.name, known.given))
                elif number > known.last:
                    known.keep_early(number, delivery, next(self._arrivals))
                if known.early:
                    early.append(known)
        acts: list[Act] = [Hand(event, tuple(in_turn), delivery.replayed)] if in_turn and event is not None else []
        return acts + self._release(early, now) if early else acts

    def follow(self, epoch: int, now: float) -> None:
        """Where the broker has begun to number a subscription anew, begin too."""
        known = self.by_epoch.get(epoch)
        if known is None or epoch == known.epoch:
            return
        self.by_epoch.pop(known.epoch, None)
        self.no_longer_ask(known)
        self._check_later(known, now)
        known.begin(next(self._epochs))
        self.by_epoch[known.afresh] = known

    def adopt(self, name: str, epoch: int, taken: int, now: float) -> list[Act]:
        """Where the broker goes on with a numbering from before this client's life, ask for what was not taken."""
        known = self.subscriptions.get(name)
        if known is None or not known.adopts:
            return []
        known.adopts = False
        if not epoch or epoch in (known.epoch, known.afresh):  # which may have begun before it was accepted
            return []
        known.adopt(epoch, taken)
        self.by_epoch[epoch] = known
        return self.ask([known], now)

    def _release(self, subscriptions: Iterable[Subscription], now: float) -> list[Act]:
        """Hand over what came early and is in turn, as it arrived in all of these, and ask for what is missing.

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
            acts += known[place].hand_next()
            turn(place)
        gaps = [subscription for subscription in known if subscription.has_gap]
        self._missing.update(subscription.name for subscription in gaps)
        return acts + self.ask(gaps, now)

    def ask(self, subscriptions: Iterable[Subscription], now: float) -> list[Act]:
        """Ask what there is, unless that was asked already."""
        wanted = [known for known in subscriptions if not known.is_paused]
        positions = [known.position for known in wanted if Errand("ask", known.name) not in self._agenda]
        for position in positions:
            self._agenda.put(Errand("ask", position.name), now + PATIENCE)
        return [Say(Ask(tuple(positions)))] if positions else []

    def no_longer_ask(self, known: Subscription) -> None:
        """A question is answered, or it has become pointless."""
        self._missing.discard(known.name)
        self._agenda.drop(Errand("ask", known.name))

    def answered(self, last: tuple[tuple[int, int], ...], kept: tuple[Delivery, ...], now: float) -> list[Act]:
        """Hand over what was missed, in the order of all subscriptions, and say what is lost.

        What had to be asked for is older than all that has arrived since.
        """
        for epoch, _ in last:
            self.follow(epoch, now)
        for arrival, delivery in enumerate(kept, start=-len(kept)):
            for epoch, number in delivery.numbers:
                known = self.by_epoch.get(epoch)
                if known is not None and not known.is_paused:
                    known.recover(number, delivery, arrival)
        answered = [(known, number) for epoch, number in last if (known := self.by_epoch.get(epoch))]
        answered = [(known, number) for known, number in answered if not known.is_paused]
        for known, number in answered:
            known.closed = max(known.closed, number)
            self.no_longer_ask(known)
        waiting = [known for known in self.subscriptions.values() if known.early or known.last < known.closed]
        acts = self._release(waiting, now)
        for known, _ in answered:
            known.was_paused = False
            self._check_later(known, now)
        return acts

    def forgotten(self, known: Subscription, now: float) -> list[Act]:
        """The broker does not know a subscription that it was asked about: what is missing of it is lost."""
        known.closed = max(known.early, default=known.last)
        self.no_longer_ask(known)
        self._check_later(known, now)
        return self._release([known], now)

    def check(self, known: Subscription, now: float) -> list[Act]:
        """Ask whether anything was lost, unless a notification has come that tells: then wait as long again from it."""
        due = known.heard_at + known.interval
        if due <= now:
            return self.ask([known], now)
        self._agenda.put(Errand("check", known.name), due)
        return []

    def _check_later(self, known: Subscription, now: float) -> None:
        """After a check, decide when the next is due."""
        check = Errand("check", known.name)
        if known.checking is not None and check not in self._agenda:
            known.interval = known.checking.next(known.interval, known.missed, self._uniform)
            known.missed = 0
            self._agenda.put(check, now + known.interval)

    def forget(self, known: Subscription) -> None:
        del self.subscriptions[known.name]
        for epoch in (known.epoch, known.afresh):
            self.by_epoch.pop(epoch, None)
        self._missing.discard(known.name)
        for what in ERRANDS:
            self._agenda.drop(Errand(what, known.name))
