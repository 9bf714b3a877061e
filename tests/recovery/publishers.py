"""Publishers of the random worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recovery.links import Connection
from recovery.nodes import EPOCH, Range, within
from vestnik import Event
from vestnik.model.times import FOREVER, MICROS
from vestnik.wire.messages import Advertise, Message, Publish, Refused, Stored, Unadvertise

if TYPE_CHECKING:
    from recovery.worlds import World

MOST_OPEN: Final = 6
RETRY: Final = 1.0


class Publisher:
    """Publishes values of a range, and repeats what was not acknowledged, maybe at another broker."""

    def __init__(self, world: World, name: str, values: Range) -> None:
        self.world, self.name, self.values = world, name, values
        self.broker = ""
        self.connection: Connection | None = None
        self.is_advertised = False
        self.lease = world.lease if world.rng.random() < 0.5 else FOREVER
        self.open: dict[str, Event] = {}
        self._published = 0
        self._requests: dict[int, tuple[Event, ...]] = {}

    def connect(self, broker: str) -> None:
        node, rng = self.world.nodes[broker], self.world.rng
        if self.connection is not None:
            self.connection.close()
        self.connection = None
        if not node.is_up:
            self.world.after(rng.uniform(0.5, 2), self._return, rng.choice(list(self.world.nodes)))
            return
        self.broker = broker
        self.connection = Connection(self.world, self.name, node, self._opened, self._hear)

    def _return(self, broker: str) -> None:
        if self.connection is None:
            self.connect(broker)

    def lose(self, broker: str) -> None:
        if self.broker == broker and self.connection is not None:
            rng = self.world.rng
            self.connection.close()
            self.connection = None
            again = broker if rng.random() < 0.6 else rng.choice(list(self.world.nodes))
            self.world.after(rng.uniform(0.3, 3), self._return, again)

    def _opened(self) -> None:
        self.advertise()
        self._renew(self.connection)
        self._repeat(self.connection)

    def _say(self, message: Message) -> None:
        if self.connection is not None:
            self.connection.say(message)

    # --- advertisements ---

    def advertise(self) -> None:
        self.is_advertised = True
        if self.world.advertises:
            self._say(Advertise("p", within(self.values), self.lease, request=next(self.world.ids)))

    def _renew(self, connection: Connection | None) -> None:
        if self.lease < FOREVER and connection is not None and connection is self.connection:
            if self.is_advertised:
                self.advertise()
            self.world.after(self.lease / 4, self._renew, connection)

    def advertise_again(self) -> None:
        """Withdraw the advertisement, and make it again after a while."""
        connection = self.connection
        self._say(Unadvertise("p", request=next(self.world.ids)))
        self.is_advertised = False

        def advertise() -> None:
            if self.connection is connection:
                self.advertise()
                self._repeat(connection)

        self.world.after(self.world.rng.choice([0.0, 0.1, 1.0]), advertise)

    # --- events ---

    def publish(self) -> None:
        rng = self.world.rng
        if self.connection is None or not self.is_advertised or len(self.open) >= MOST_OPEN:
            return
        events = []
        for _ in range(rng.choice([1, 1, 1, 3])):
            self._published += 1
            id, time = f"{self.name}-{self._published}", int((EPOCH + self.world.now) * MICROS)
            events.append(Event("q", {"v": rng.randint(*self.values)}, source=self.name, id=id, time=time))
        self.open |= {event.id: event for event in events}
        self._send(tuple(events))

    def _send(self, events: tuple[Event, ...]) -> None:
        request = next(self.world.ids)
        self._requests[request] = events
        self._say(Publish(events, request=request))

    def _repeat(self, connection: Connection | None) -> None:
        if self.connection is connection and self.is_advertised and self.open:
            self._send(tuple(self.open.values()))

    def _hear(self, message: Message) -> None:
        match message:
            case Stored(request, refused):
                ids = {one.id for one in refused}
                if ids:
                    self.world.after(RETRY, self._repeat, self.connection)
                for event in self._requests.pop(request):
                    if event.id not in ids:
                        self.open.pop(event.id, None)
            case Refused():
                self.world.after(RETRY, self._repeat, self.connection)
