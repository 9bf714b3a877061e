"""Tables of deterministic automata, and the one minimal table of each language.

Characters are Unicode scalar values. The surrogates, which no text contains, go with U+D7FF, so that no range of a
table begins or ends among them. All work is bounded: beyond the limit `FilterTooComplex` is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from vestnik.errors import FilterTooComplex
from vestnik.model.work import spend

STEPS = 500_000
STEPS_OF_ONE = 5  # construction steps that count as one of box algebra
END = 0x110000  # one past the last code point
SURROGATES, PAST_SURROGATES = 0xD800, 0xE000


class Budget:
    """Construction steps that are left for one automaton; each stands for 100 to 300 nanoseconds of work.

    They count against the bound on the whole work, too.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise FilterTooComplex("construction steps for the states of a pattern", STEPS)
        spend(steps / STEPS_OF_ONE)


class Table(NamedTuple):
    """A complete DFA that starts in state 0: state s moves to targets[s][i] from code point starts[s][i] on."""

    starts: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    accepting: tuple[bool, ...]


def after(code: int) -> int:
    """The code point at which a range that ends with `code` gives way to the next."""
    return PAST_SURROGATES if code == SURROGATES - 1 else code + 1


class Row:
    """The moves of one state while they are written from left to right."""

    __slots__ = ("starts", "targets")

    def __init__(self, target: int) -> None:
        self.starts = [0]
        self.targets = [target]

    def put(self, start: int, target: int) -> None:
        """From `start` on, go to `target`."""
        if self.starts[-1] == start:
            self.starts.pop()
            self.targets.pop()
        if not self.targets or self.targets[-1] != target:
            self.starts.append(start)
            self.targets.append(target)


def canonical(table: Table, budget: Budget) -> Table:
    """The minimal table of the same language, its states numbered breadth first.

    The states of `table` must all be reachable, and neighbours in a row must differ.
    """
    return numbered(*minimal(table, budget))


_States: TypeAlias = tuple[int, Sequence[tuple[int, ...]], Sequence[tuple[int, ...]], Sequence[bool]]


def minimal(table: Table, budget: Budget) -> _States:
    """The first of the states of the minimal table, in no order, and their starts, targets and acceptance."""
    block = _blocks(table, budget)
    if max(block) + 1 == len(block):
        return 0, *table
    chosen = {number: state for state, number in enumerate(block)}
    states = [chosen[number] for number in range(len(chosen))]
    rows = [_row_of_blocks(table.starts[state], table.targets[state], block) for state in states]
    accepting = [table.accepting[state] for state in states]
    return block[0], [row[::2] for row in rows], [row[1::2] for row in rows], accepting


def numbered(
    first: int, starts: Sequence[tuple[int, ...]], targets: Sequence[tuple[int, ...]], accepting: Sequence[bool]
) -> Table:
    """The states that `first` reaches, numbered breadth first from it."""
    numbers = {first: 0}
    order = [first]
    for state in order:
        for target in targets[state]:
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
    return Table(
        tuple([starts[state] for state in order]),
        tuple([tuple([numbers[target] for target in targets[state]]) for state in order]),
        tuple([accepting[state] for state in order]),
    )


def _row_of_blocks(starts: tuple[int, ...], targets: tuple[int, ...], block: list[int]) -> tuple[int, ...]:
    """Start, block, start, block, ...: the row of a state, its targets seen as blocks."""
    row = [0, block[targets[0]]]
    for start, target in zip(starts, targets, strict=True):
        if block[target] != row[-1]:
            row += (start, block[target])
    return tuple(row)


def _blocks(table: Table, budget: Budget) -> list[int]:
    """The number of each state's block of equivalent states.

    Blocks begin as the states equally far from acceptance, and are split by the rows of their states until no row
    tells two states of a block apart. The largest part keeps its number, so only states that lead to the other
    parts have to be looked at again.
    """
    sources: list[list[int]] = [[] for _ in table.targets]
    for state, row in enumerate(table.targets):
        for target in {*row}:
            sources[target].append(state)
    members = _by_distance(table.accepting, sources)
    block = [0] * len(sources)
    for number, states in enumerate(members):
        for state in states:
            block[state] = number
    unsure = {number: set(states) for number, states in enumerate(members) if len(states) > 1}
    while unsure:
        number, states = unsure.popitem()
        moved = _split(table, block, members, number, states, budget)
        for source in [source for state in moved for source in sources[state]]:
            if len(members[block[source]]) > 1:
                unsure.setdefault(block[source], set()).add(source)
    return block


def _by_distance(accepting: Sequence[bool], sources: list[list[int]]) -> list[set[int]]:
    """The states in groups by the length of their shortest way to acceptance, those without any last."""
    group = {state for state, flag in enumerate(accepting) if flag}
    left = set(range(len(accepting))) - group
    groups = []
    while group:
        groups.append(group)
        group = {source for state in group for source in sources[state]} & left
        left -= group
    return [*groups, left] if left else groups


def _split(
    table: Table, block: list[int], members: list[set[int]], number: int, unsure: set[int], budget: Budget
) -> list[int]:
    """Split block `number`, whose rows agree but for its `unsure` states; return the states that left it."""
    starts, targets, _ = table
    parts: dict[tuple[int, ...], set[int]] = {}
    if len(unsure) < len(members[number]):
        sure = next(state for state in members[number] if state not in unsure)
        parts[_row_of_blocks(starts[sure], targets[sure], block)] = set()
        budget.spend(len(targets[sure]))
    for state in unsure:
        parts.setdefault(_row_of_blocks(starts[state], targets[state], block), set()).add(state)
        budget.spend(3 + len(targets[state]))
    if len(parts) == 1:
        return []
    if len(unsure) < len(members[number]):
        next(iter(parts.values())).update(members[number] - unsure)
    staying = max(parts.values(), key=len)
    moved: list[int] = []
    for part in parts.values():
        if part is not staying:
            for state in part:
                block[state] = len(members)
            members.append(part)
            moved += part
    members[number] = staying
    return moved
