"""The states of single nodes, each computed once.

What happens at a node depends on the node alone: on its state, on what it is told, and on the time. So the step of a
node is computed once, by the real core or session, and remembered. A state of the world is then a few references, and
most of its steps are looked up.

Cores cannot be copied cheaply. A node in some state is made by repeating the steps that led there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

from vestnik.sim.explore.brokers import BrokerNode, Sent
from vestnik.sim.explore.channels import Channels, Letter
from vestnik.sim.explore.clients import ClientNode
from vestnik.sim.explore.forms import Shape, form_of
from vestnik.sim.explore.names import Name
from vestnik.sim.explore.settings import Operation, Wrong
from vestnik.wire.messages import NodeId

Node: TypeAlias = BrokerNode | ClientNode
Input: TypeAlias = tuple[str | Letter, ...]
"""An input of a node: the name of a method, and its arguments. A letter stands for its message."""
Post: TypeAlias = tuple[NodeId, Letter | None]
"""A letter for a node; None if the link to it is to end."""
KEPT: Final = 4_000
"""Nodes that are kept as they are, for the next step."""


class Place:
    """A state of one node: what may happen there, and how it came about."""

    __slots__ = ("before", "by", "make", "moves", "names", "node", "now", "operations", "shape", "steps")

    def __init__(self, make: Callable[[], Node], before: Place | None, by: Input, now: float) -> None:
        self.make = make
        self.before = before
        self.by = by
        self.now = now
        self.node: Node | None = None
        self.shape = 0
        self.names: tuple[Name, ...] = ()
        self.moves: tuple[str, ...] = ()
        self.operations: tuple[Operation, ...] = ()
        self.steps: dict[tuple[Input, float], Step] = {}


Step: TypeAlias = tuple[Place, tuple[Post, ...]] | Wrong
"""The state after a step and what is sent; or what went wrong."""


class Places:
    """All states of nodes that were met."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._known: dict[Hashable, Place] = {}
        self._shapes: dict[Shape, int] = {}
        self._kept: deque[Place] = deque()

    @property
    def count(self) -> int:
        """How many states there are that do not differ in names alone."""
        return len(self._shapes)

    def begin(self, make: Callable[[], Node]) -> Place:
        return self._place(make(), Place(make, None, (), 0.0))

    def step(self, place: Place, what: Input, now: float) -> Step:
        known = place.steps.get((what, now))
        if known is None:
            known = place.steps[what, now] = self._step(place, what, now)
        return known

    def _step(self, place: Place, what: Input, now: float) -> Step:
        node = self._taken(place)
        try:
            sent = _perform(node, what, now)
        except Wrong as wrong:
            return wrong
        except Exception as error:  # whatever a core does not expect
            return Wrong(f"{node.name} fails: {type(error).__name__}: {error}")
        letter = self._channels.letter
        posts = [(to, None if message is None else letter(message)) for to, message in sent]
        return self._place(node, Place(place.make, place, what, now)), tuple(posts)

    def node(self, place: Place) -> Node:
        """Return a node in this state, to be looked at."""
        node = place.node = self._taken(place)
        self._keep(place)
        return node

    def _taken(self, place: Place) -> Node:
        """Return a node in this state, to be changed."""
        if place.node is not None:
            node, place.node = place.node, None
            return node
        steps: list[Place] = []
        at = place
        while at.before is not None:
            steps.append(at)
            at = at.before
        node = place.make()
        for one in reversed(steps):
            _perform(node, one.by, one.now)
        return node

    def _place(self, node: Node, place: Place) -> Place:
        form = form_of(node)
        shape = self._shapes.setdefault(form.shape, len(self._shapes))
        known = self._known.setdefault((shape, form.names, form.counters), place)
        if known is place:
            place.shape, place.names = shape, form.names
            place.moves, place.operations = node.moves, node.operations
        if known.node is None:
            known.node = node
            self._keep(known)
        return known

    def _keep(self, place: Place) -> None:
        self._kept.append(place)
        if len(self._kept) > KEPT:
            self._kept.popleft().node = None


def _perform(node: Node, what: Input, now: float) -> list[Sent]:
    name, *arguments = [one.message if isinstance(one, Letter) else one for one in what]
    act: Callable[..., list[Sent]] = getattr(node, str(name))
    return act(now, *arguments)
