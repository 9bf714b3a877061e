"""What carries messages in the random worlds: links between brokers, and connections of clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vestnik.wire.messages import Message

if TYPE_CHECKING:
    from recovery.nodes import Node
    from recovery.worlds import World


class Link:
    """A link between two brokers: messages arrive in order, in one session, or not at all."""

    def __init__(self, world: World, a: str, b: str) -> None:
        self.world, self.ends = world, (a, b)
        self.session: int | None = None
        self.is_removed = False
        self.latest = {a: 0.0, b: 0.0}
        self.stalled = {a: 0.0, b: 0.0}

    def other(self, name: str) -> str:
        return self.ends[1] if name == self.ends[0] else self.ends[0]

    def up(self) -> None:
        if self.session is None and not self.is_removed and all(self.world.nodes[end].is_up for end in self.ends):
            self.session = next(self.world.ids)
            for end in self.ends:
                self._later(end, None)

    def send(self, sender: str, session: int, message: Message) -> None:
        if self.session == session:
            self._later(self.other(sender), message)

    def _later(self, to: str, message: Message | None) -> None:
        delay = self.world.rng.uniform(0.05, 0.05 + self.world.delay)
        at = max(self.latest[to], self.stalled[to], self.world.now + delay) + 1e-6
        self.latest[to] = at
        self.world.after(at - self.world.now, self.arrive, self.session, to, message)

    def arrive(self, session: int, to: str, message: Message | None) -> None:
        node, sender = self.world.nodes[to], self.other(to)
        if self.session != session or not node.is_up:
            return
        if message is None:
            node.link_up(self, sender, session)
        elif sender in node.links and node.links[sender][1] == session:
            node.receive(sender, message)

    def cut(self, back: float | None = None) -> None:
        session, self.session = self.session, None
        if session is not None:
            for end in self.ends:
                self.world.after(
                    self.world.rng.uniform(0, 1), self.world.nodes[end].link_down, self.other(end), session
                )
        if back is not None:
            self.world.after(back, self.up)


class Connection:
    """A connection of a client to one life of a broker: messages arrive in order, or not at all once it is closed."""

    def __init__(
        self, world: World, client: str, node: Node, opened: Callable[[], None], hear: Callable[[Message], None]
    ) -> None:
        self.world, self.client, self.node, self.life = world, client, node, node.life
        self.is_open = True
        self._hear = hear
        self._latest = {True: 0.0, False: 0.0}
        self._later(to_client=False, act=lambda: self._reach(opened))

    def _later(self, *, to_client: bool, act: Callable[[], None]) -> None:
        delay = self.world.rng.uniform(0.02, 0.3)
        at = self._latest[to_client] = max(self._latest[to_client], self.world.now + delay) + 1e-6
        self.world.after(at - self.world.now, self._if_open, act)

    def _if_open(self, act: Callable[[], None]) -> None:
        if self.is_open:
            act()

    def _reach(self, opened: Callable[[], None]) -> None:
        self.node.connected(self)
        opened()

    def say(self, message: Message) -> None:
        """Send a message of the client."""
        self._later(to_client=False, act=lambda: self.node.hear(self.client, message))

    def send(self, message: Message) -> None:
        """Send a message to the client."""
        self._later(to_client=True, act=lambda: self._hear(message))

    def close(self) -> None:
        """End the connection; the broker notices later, unless the client is back before."""
        self.is_open = False
        self.world.after(self.world.rng.uniform(0, 1), self.node.disconnected, self)
