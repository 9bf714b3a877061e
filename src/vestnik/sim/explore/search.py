"""Search through all states of a world, those that take the fewest moves first."""

from __future__ import annotations

import gc
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final, NamedTuple, TypeAlias

from vestnik.sim.explore.brokers import BrokerNode
from vestnik.sim.explore.clients import ClientNode
from vestnik.sim.explore.judge import wrongs
from vestnik.sim.explore.reduction import enough
from vestnik.sim.explore.settings import Wrong
from vestnik.sim.explore.world import Move, State, World

COLLECTED: Final = 100_000, 10, 1_000
Step: TypeAlias = tuple[State, Move]
"""A move, and the state in which it is made."""


class Outcome(NamedTuple):
    """The result of a search: the number of states, of quiescent ones among them, and of moves that were made.

    States without a choice are passed through, and not counted. `nodes` is the number of states of single nodes, and
    `longest` the number of moves of the longest run. If something is `wrong`, `path` says after which moves. If the
    search `is_complete`, there are no other states.
    """

    states: int
    quiescent: int
    moves: int
    nodes: int
    longest: int
    is_complete: bool
    wrong: str = ""
    path: tuple[str, ...] = ()


class _Waiting(NamedTuple):
    """A state from which the search has not gone on, its number, and after how many moves it was met."""

    number: int
    depth: int
    state: State


class Search:
    """A search, breadth first: what is wrong is found after as few choices as possible. If it `is_deep`, depth first.

    Unless it `is_reduced`, moves that commute are tried in every order.
    """

    def __init__(self, world: World, *, is_deep: bool = False, is_reduced: bool = True) -> None:
        self.world = world
        self.moves = self.longest = 0
        self._waiting: deque[_Waiting] = deque()
        self._is_deep = is_deep
        self._rng = Random(0)
        self._is_reduced = is_reduced
        self._parents = array("q")  # by the number of a state
        self._choices = array("H")  # which of the moves from there
        self._seen: set[int] = set()
        self.quiescent: set[int] = set()

    @property
    def states(self) -> int:
        return len(self._parents)

    @property
    def waiting(self) -> int:
        """How many states there are from which the search has not gone on."""
        return len(self._waiting)

    def run(self, goes_on: Callable[[Search], bool] = lambda search: True) -> Outcome:
        """Search until something is wrong, all is found, or `goes_on` says no."""
        with _rare_collections():
            return self._run(goes_on)

    def _run(self, goes_on: Callable[[Search], bool]) -> Outcome:
        begin = self.world.begin()
        self._seen.add(self.world.key(begin))
        waiting = self._waiting
        waiting.append(_Waiting(self._add(-1, 0), 0, begin))
        while waiting and goes_on(self):
            one = waiting.pop() if self._is_deep else waiting.popleft()
            self.longest = max(self.longest, one.depth)
            wrong = self._expand(one) or self._judge(one.state)
            if wrong:
                return self._outcome(wrong, self._path(one.number))
        return self._outcome(is_complete=not waiting)

    def _expand(self, one: _Waiting) -> str:
        """Add the states that follow; return what is wrong with one of them."""
        world, seen, found = self.world, self._seen, list[_Waiting]()
        for choice, move in enumerate(self._moves(one.state)):
            steps: list[Step] = []
            try:
                after = self._follow(one.state, move, steps)
            except Wrong as wrong:
                return str(wrong)
            self.moves += len(steps)
            key = world.key(after)
            if key not in seen:
                seen.add(key)
                found.append(_Waiting(self._add(one.number, choice), one.depth + len(steps), after))
        if self._is_deep:
            self._rng.shuffle(found)
        self._waiting += found
        return ""

    def _follow(self, state: State, move: Move, steps: list[Step]) -> State:
        """Do a move, and what follows without a choice. Note each move in `steps`, also one that is wrong."""
        while True:
            steps.append((state, move))
            state = self.world.after(state, move)
            moves = self._moves(state)
            if len(moves) != 1 or moves[0].is_operation:
                return state
            (move,) = moves

    def _moves(self, state: State) -> list[Move]:
        return (enough(self.world, state) if self._is_reduced else []) or list(self.world.moves(state))

    def _add(self, parent: int, choice: int) -> int:
        self._parents.append(parent)
        self._choices.append(choice)
        return len(self._parents) - 1

    def _judge(self, state: State) -> str:
        """Return what is wrong with a state if it is quiescent."""
        if next(self.world.moves_by_themselves(state), None) is not None:
            return ""
        self.quiescent.add(self.world.key(state))
        nodes = [self.world.places.node(place) for place in state.nodes]
        brokers = [node for node in nodes if isinstance(node, BrokerNode)]
        return "; ".join(wrongs(brokers, [node for node in nodes if isinstance(node, ClientNode)]))

    def _outcome(self, wrong: str = "", path: tuple[str, ...] = (), *, is_complete: bool = False) -> Outcome:
        nodes = self.world.places.count
        return Outcome(self.states, len(self.quiescent), self.moves, nodes, self.longest, is_complete, wrong, path)

    def _path(self, number: int) -> tuple[str, ...]:
        """Return the moves that led to a state, and the one after them that is wrong, if one is."""
        choices: list[int] = []
        while self._parents[number] >= 0:
            choices.append(self._choices[number])
            number = self._parents[number]
        state, steps = self.world.begin(), list[Step]()
        for choice in reversed(choices):
            state = self._follow(state, self._moves(state)[choice], steps)
        for move in self._moves(state):
            last: list[Step] = []
            try:
                self._follow(state, move, last)
            except Wrong:
                steps += last
                break
        return tuple([self.world.text(*step) for step in steps])


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Look for garbage less often: nearly everything that is made is kept, and looking at it takes half of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED)
    try:
        yield
    finally:
        gc.set_threshold(*before)
