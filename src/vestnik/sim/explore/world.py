"""The explored world: brokers in a line and clients at them, and what may happen next.

A state of the world is the states of its nodes and channels, which links there are, and how much may still happen. All
of it is shared between states of the world, so a state is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, count
from typing import Final, NamedTuple, TypeAlias

from vestnik.sim.explore.brokers import BrokerNode
from vestnik.sim.explore.channels import CUT, MADE, Channel, Channels
from vestnik.sim.explore.clients import ClientNode
from vestnik.sim.explore.places import Input, Node, Place, Places
from vestnik.sim.explore.settings import CLOCK, FAULTS, JUMP, Kind, Settings, Wrong

COSTS: Final = {kind.value: (1, int(kind in FAULTS)) for kind in Kind}
"""How many operations and faults a move is."""
WORDS: Final = {"lease": "ends all leases: nothing was renewed", "start": "starts", "crash": "crashes"}


class State(NamedTuple):
    """A state of the world. Each link has two channels: towards its first end, and towards its second.

    The first links are those between brokers; then comes one for each client, whose second end is the client. Clocks
    have gone on by so many `jumps`.
    """

    nodes: tuple[Place, ...]
    channels: tuple[Channel, ...]
    linked: tuple[bool, ...]
    operations: int
    faults: int
    jumps: int


class Move(NamedTuple):
    """Something that may happen: what, and to which node, channel or link; for an operation, with more about it."""

    what: str
    where: int
    more: tuple[str, ...] = ()

    @property
    def is_operation(self) -> bool:
        """Whether it does not happen by itself."""
        return self.what in COSTS


class Speaker(NamedTuple):
    """A channel to a node, and the node that speaks there."""

    channel: int
    node: int


Parts: TypeAlias = tuple[list[Place], list[Channel], list[bool]]
"""The nodes, channels and links of a state that is being made."""


class World:
    """`settings` says how large it is."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        brokers, clients = settings.brokers, settings.clients
        self.channels = Channels()
        self.places = Places(self.channels)
        self._makes: list[Callable[[], Node]] = [
            *[partial(BrokerNode, place, settings) for place in range(brokers)],
            *[partial(ClientNode, place, settings) for place in range(clients)],
        ]
        self.names = [make().name for make in self._makes]
        self.links = [
            *[(place, place + 1) for place in range(brokers - 1)],
            *[(place % brokers, brokers + place) for place in range(clients)],
        ]
        self._receivers = [end for link in self.links for end in link]
        self.speakers: list[list[Speaker]] = [[] for _ in self.names]
        for channel, receiver in enumerate(self._receivers):
            self.speakers[receiver].append(Speaker(channel, self._receivers[channel ^ 1]))
        self._channel_to = [
            {self.names[other]: channel ^ 1 for channel, other in speakers} for speakers in self.speakers
        ]

    def is_broker(self, node: int) -> bool:
        return node < self.settings.brokers

    def is_up(self, state: State, node: int) -> bool:
        return _is_up(state.nodes[node])

    def begin(self) -> State:
        """Return the state in which everything is up and nothing is on its way, maybe with subscriptions."""
        settings, links = self.settings, len(self.links)
        nodes = tuple([self.places.begin(make) for make in self._makes])
        linked = tuple([not self.is_broker(second) for _, second in self.links])
        state = State(nodes, (self.channels.empty,) * 2 * links, linked, settings.operations, settings.faults, 0)
        state = self._settled(state)
        for move in self._preparations() if settings.subscribed else ():
            state = self._settled(self.after(state, move))
        return state._replace(operations=settings.operations)

    def _preparations(self) -> Iterator[Move]:
        for client in range(self.settings.brokers, len(self.names)):
            if self.settings.advertisements:
                yield Move("advertise", client)
            yield Move("subscribe", client, ("wide",))

    def _settled(self, state: State) -> State:
        """Return the state after all that happens by itself, in one of all orders."""
        while (move := next(self.moves_by_themselves(state), None)) is not None:
            state = self.after(state, move)
        return state

    # --- what may happen ---

    def moves(self, state: State) -> Iterator[Move]:
        yield from self.moves_by_themselves(state)
        if state.operations:
            yield from self._operations(state)
        if state.operations and state.faults:
            yield from self._faults(state)

    def moves_by_themselves(self, state: State) -> Iterator[Move]:
        """Yield what happens if nobody does anything. If there is nothing, the world is quiescent."""
        for node in range(len(state.nodes)):
            yield from self.moves_at(state, node)
        for link, is_linked in enumerate(state.linked):
            if not is_linked and all(_is_up(state.nodes[end]) for end in self.links[link]):
                yield Move("heal", link)

    def moves_at(self, state: State, node: int) -> Iterator[Move]:
        for channel, _ in self.speakers[node]:
            if state.channels[channel].letters:
                yield Move("deliver", channel)
        for name in state.nodes[node].moves:
            yield Move(name, node)

    def _operations(self, state: State) -> Iterator[Move]:
        for node in range(self.settings.brokers, len(state.nodes)):
            for kind, *more in state.nodes[node].operations:
                if kind in self.settings.kinds:
                    yield Move(kind.value, node, tuple(more))

    def _faults(self, state: State) -> Iterator[Move]:
        kinds = self.settings.kinds
        up = [broker for broker in range(self.settings.brokers) if _is_up(state.nodes[broker])]
        if Kind.CRASH in kinds:
            yield from [Move("crash", broker) for broker in up]
        if Kind.LEASE in kinds:
            yield from [Move("lease", broker) for broker in up]
        if Kind.CUT in kinds:
            yield from [Move("cut", link) for link, is_linked in enumerate(state.linked) if is_linked]

    # --- what it comes to ---

    def after(self, state: State, move: Move) -> State:
        """Return the state after a move; raise Wrong if it must not happen."""
        nodes, channels, linked = parts = [*state.nodes], [*state.channels], [*state.linked]
        jumps = state.jumps
        what, where, more = move
        match what:
            case "deliver":
                self._deliver(parts, where, jumps)
            case "start":
                self._step(parts, where, ("start",), jumps)
                for link, ends in enumerate(self.links):
                    if where in ends and not linked[link] and all(_is_up(nodes[end]) for end in ends):
                        self._heal(parts, link, jumps)
            case "heal":
                self._heal(parts, where, jumps)
            case "crash":
                for link, ends in enumerate(self.links):
                    if where in ends:
                        self._cut(parts, link, jumps)
                for channel, _ in self.speakers[where]:
                    channels[channel] = self.channels.empty
                self._step(parts, where, ("crash",), jumps)
            case "cut":
                self._cut(parts, where, jumps)
            case "lease":
                jumps += 1
                for node in range(len(nodes)):
                    told = "alarm" if not self.is_broker(node) else "end_leases" if node == where else "keep_leases"
                    self._step(parts, node, (told,), jumps)
            case "publish":
                for node in range(self.settings.brokers, len(nodes)):
                    self._step(parts, node, ("expect", *more), jumps)
                self._step(parts, where, (what, *more), jumps)
            case _:
                self._step(parts, where, (what, *more), jumps)
        operations, faults = COSTS.get(what, (0, 0))
        return State(
            tuple(nodes), tuple(channels), tuple(linked), state.operations - operations, state.faults - faults, jumps
        )

    def _deliver(self, parts: Parts, channel: int, jumps: int) -> None:
        _, channels, _ = parts
        speaker = self._receivers[channel ^ 1]
        letter, name = channels[channel].letters[0], self.names[speaker]
        channels[channel] = self.channels.pop(channels[channel])
        what: Input = ("hear", name, letter)
        if letter is MADE:
            what = ("link_up", name)
        elif letter is CUT:
            what = ("link_down" if self.is_broker(speaker) else "lose", name)
        self._step(parts, self._receivers[channel], what, jumps)

    def _step(self, parts: Parts, node: int, what: Input, jumps: int) -> None:
        nodes, channels, linked = parts
        step = self.places.step(nodes[node], what, CLOCK + JUMP * jumps)
        if isinstance(step, Wrong):
            raise step
        nodes[node], posts = step
        for to, letter in posts:
            channel = self._channel_to[node][to]
            if letter is None:
                self._cut(parts, channel // 2, jumps)
                channels[channel ^ 1] = self.channels.empty  # it has noticed already
            elif linked[channel // 2] and not channels[channel ^ 1].is_cut:
                channels[channel] = self.channels.push(channels[channel], letter)

    def _cut(self, parts: Parts, link: int, jumps: int) -> None:
        """Cut a link, and lose what is on its way. A client notices at once; a broker does when it hears of it."""
        _, channels, linked = parts
        if not linked[link]:
            return
        linked[link] = False
        for channel in (2 * link, 2 * link + 1):
            receiver = self._receivers[channel]
            if self.is_broker(receiver):
                channels[channel] = self.channels.of(CUT)
            else:
                channels[channel] = self.channels.empty
                self._step(parts, receiver, ("disconnect",), jumps)

    def _heal(self, parts: Parts, link: int, jumps: int) -> None:
        _, channels, linked = parts
        linked[link] = True
        second = self.links[link][1]
        if self.is_broker(second):
            for channel in (2 * link, 2 * link + 1):
                channels[channel] = self.channels.push(channels[channel], MADE)
        else:
            self._step(parts, second, ("resume",), jumps)

    # --- for the search ---

    def key(self, state: State) -> int:
        """Return a hash that is equal for states that differ in names alone."""
        parts: tuple[Place | Channel, ...] = (*state.nodes, *state.channels)
        names = list(chain.from_iterable([one.names for one in parts]))
        renamed = dict(zip(dict.fromkeys(names), count()))
        return hash((*[one.shape for one in parts], *map(renamed.__getitem__, names), state[2:]))

    def text(self, state: State, move: Move) -> str:
        """Return a move in words."""
        what, where, more = move
        match what:
            case "deliver":
                receiver, speaker = self.names[self._receivers[where]], self.names[self._receivers[where ^ 1]]
                return f"{receiver} hears {speaker}: {state.channels[where].letters[0].message}"
            case "cut" | "heal":
                return f"{what} {' - '.join([self.names[end] for end in self.links[where]])}"
        return " ".join([self.names[where], WORDS.get(what, what), *more])


def _is_up(node: Place) -> bool:
    return "start" not in node.moves
