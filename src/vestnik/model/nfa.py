"""Regular expressions as values, and the one minimal automaton of each.

An expression becomes an NFA, the NFA a DFA by subset construction over classes of characters it does not tell apart,
the DFA a canonical `Table` by partition refinement. All work is bounded: beyond a limit `FilterTooComplex` is raised.

Characters are Unicode scalar values. The surrogates, which no text contains, go with U+D7FF, so that no range of a
table begins or ends among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from vestnik.errors import FilterTooComplex

POSITIONS = 4_000
STEPS = 500_000
END = 0x110000  # one past the last code point
_SURROGATES, _PAST_SURROGATES = 0xD800, 0xE000


class Budget:
    """Construction steps that are left; each stands for 100 to 300 nanoseconds of work."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise FilterTooComplex("automaton construction steps", STEPS)


class Table(NamedTuple):
    """A complete DFA that starts in state 0: state s moves to targets[s][i] from code point starts[s][i] on."""

    starts: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    accepting: tuple[bool, ...]


def after(code: int) -> int:
    """The code point at which a range that ends with `code` gives way to the next."""
    return _PAST_SURROGATES if code == _SURROGATES - 1 else code + 1


# --- expressions ---


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set; `cuts` are the code points where membership changes, beginning outside."""

    cuts: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Chars:
        """The characters of the inclusive `ranges`, surrogates left out."""
        cuts: list[int] = []
        for low, high in sorted(ranges):
            low = _PAST_SURROGATES if _SURROGATES <= low < _PAST_SURROGATES else low
            end = _PAST_SURROGATES if _SURROGATES <= high + 1 < _PAST_SURROGATES else high + 1
            if cuts and low <= cuts[-1]:
                cuts[-1] = max(cuts[-1], end)
            elif low < end:
                cuts += (low, end)
        return cls(tuple(cuts[:-1] if cuts and cuts[-1] == END else cuts))

    @classmethod
    def one(cls, char: str) -> Chars:
        """Just `char`; a lone surrogate is in no text and matches nothing."""
        return cls.of([(ord(char), ord(char))])

    def ranges(self) -> list[tuple[int, int]]:
        return [(low, end - 1) for low, end in zip(self.cuts[::2], (*self.cuts, END)[1::2], strict=False)]

    def negated(self) -> Chars:
        return Chars(self.cuts[1:] if self.cuts[:1] == (0,) else (0, *self.cuts))


@dataclass(frozen=True, slots=True)
class Concat:
    """One part after the other; with none, the empty string."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of the parts; with none, no string at all."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`part` from `low` to `high` times; no end to it with None."""

    part: Expression
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """The empty string, but only at the end of the text, or else only at its beginning."""

    at_end: bool


Expression: TypeAlias = "Chars | Concat | Choice | Repeat | Edge"
ANY = Chars((0,))
ANYTHING = Repeat(ANY, 0, None)
EMPTY = Concat(())


# --- expression -> NFA ---

_ACCEPT, _SPLIT, _BEGIN, _END = -1, -2, -3, -4  # kinds of nodes that consume nothing


class _Nfa:
    """Nodes numbered from the end of the expression to its beginning, node 0 the accepting one.

    A node's kind is the number of its character set, or negative. `loops` are the nodes of `.*` and `.+` that every
    way to the end has to pass: in their company, nodes before them (of higher numbers) add nothing.
    """

    def __init__(self, expression: Expression, budget: Budget) -> None:
        self.budget = budget
        self.sets: dict[tuple[int, ...], int] = {}
        self.kinds = [_ACCEPT]
        self.nexts: list[tuple[int, ...]] = [()]
        self.loops: set[int] = set()
        self.positions = 0
        self.first = self._emit(expression, 0, passed=True)

    def _node(self, kind: int, *nexts: int) -> int:
        self.kinds.append(kind)
        self.nexts.append(nexts)
        return len(self.kinds) - 1

    def _position(self, kind: int, following: int) -> int:
        self.positions += 1
        if self.positions > POSITIONS:
            raise FilterTooComplex("automaton positions", POSITIONS)
        return self._node(kind, following)

    def _emit(self, expression: Expression, following: int, passed: bool) -> int:
        """The node where `expression`, then `following`, begins; `passed` says that no way goes around it."""
        self.budget.spend(10)
        match expression:
            case Chars(cuts):
                return self._position(self.sets.setdefault(cuts, len(self.sets)), following)
            case Edge(at_end):
                return self._position(_END if at_end else _BEGIN, following)
            case Concat(parts):
                for part in reversed(parts):
                    following = self._emit(part, following, passed)
                return following
            case Choice(parts):
                return self._node(_SPLIT, *[self._emit(part, following, False) for part in parts])
            case Repeat(part, low, high):
                if high is None:
                    return self._emit_loop(part, low, following, passed)
                return self._emit_times(part, low, high, following, passed)

    def _emit_loop(self, part: Expression, low: int, following: int, passed: bool) -> int:
        loop = self._node(_SPLIT)
        body = self._emit(part, loop, False)
        self.nexts[loop] = (body, following)
        if passed and part == ANY:
            self.loops.add(body)
        return self._emit_times(part, low - 1, low - 1, body, passed) if low else loop

    def _emit_times(self, part: Expression, low: int, high: int, following: int, passed: bool) -> int:
        begin = following
        for _ in range(high - low):
            begin = self._node(_SPLIT, self._emit(part, begin, False), following)
        for _ in range(low):
            begin = self._emit(part, begin, passed)
        return begin

    def closure(self, node: int, begin: bool) -> frozenset[int]:
        """The positions reached from `node` without a character; an end edge leads to nothing but acceptance."""
        if self.kinds[node] >= _ACCEPT:
            return frozenset((node,))
        passable = (_SPLIT, _END, _BEGIN) if begin else (_SPLIT, _END)
        found: set[int] = set()
        todo = [(node, False)]
        seen = set(todo)
        while todo:
            node, ended = todo.pop()
            kind = self.kinds[node]
            if kind in passable:
                reached = {(following, ended or kind == _END) for following in self.nexts[node]} - seen
                seen |= reached
                todo += reached
            elif kind == _ACCEPT or (kind >= 0 and not ended):
                found.add(node)
        self.budget.spend(3 * len(seen))
        return frozenset(found)

    def essential(self, state: set[int] | frozenset[int]) -> frozenset[int]:
        """`state` without the nodes that a loop among them makes superfluous."""
        loops = self.loops & state
        if not loops:
            return frozenset(state)
        last = min(loops)
        return frozenset([node for node in state if node <= last])


# --- NFA -> DFA ---


class _Classes:
    """The code points in classes that no set tells apart.

    The class of the last code point is the rest, which has no number. A set is `wide` if it holds the rest;
    `odd` are the classes in which it differs from the rest: those it holds, or lacks if wide.
    """

    def __init__(self, sets: Iterable[tuple[int, ...]]) -> None:
        changes: dict[int, int] = {0: 0}
        for number, cuts in enumerate(sets):
            for cut in cuts:
                changes[cut] = changes.get(cut, 0) ^ (1 << number)
        holders = 0
        pieces: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for start, end in pairwise([*sorted(changes), END]):
            holders ^= changes[start]
            pieces[holders].append((start, end))
        del pieces[holders]
        self.pieces = list(pieces.values())
        self.wide = holders
        odd: dict[int, list[int]] = defaultdict(list)
        for number, members in enumerate(pieces):
            differing = members ^ holders
            while differing:
                lowest = differing & -differing
                odd[lowest.bit_length() - 1].append(number)
                differing ^= lowest
        self.odd = {number: frozenset(members) for number, members in odd.items()}

    def spelt_out(self, starts: tuple[int, ...], targets: tuple[int, ...]) -> Row:
        """The row over code points for one over numbers of classes, the rest after the last of them."""
        rest = targets[-1]
        runs = [run for run in zip(starts, starts[1:], targets, strict=False) if run[2] != rest]
        row = Row(rest)
        for start, end, target in sorted(
            [(*p, t) for low, high, t in runs for c in range(low, high) for p in self.pieces[c]]
        ):
            row.put(start, target)
            row.put(end, rest)
        return row


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


class _Step(NamedTuple):
    """What the character at a position does: over a `wide` set all but the `odd` classes lead on, else just those."""

    wide: bool
    odd: frozenset[int]
    follow: frozenset[int]


def compile_expression(expression: Expression) -> Table:
    """The canonical table of the strings that `expression` matches as a whole."""
    budget = Budget()
    nfa = _Nfa(expression, budget)
    classes = _Classes(nfa.sets)
    first, starts, targets, accepting = minimal(_subsets(nfa, classes), budget)
    rows = []
    for over_classes in zip(starts, targets, strict=True):
        rows.append(classes.spelt_out(*over_classes))
        budget.spend(len(rows[-1].starts))
    return numbered(first, [tuple(row.starts) for row in rows], [tuple(row.targets) for row in rows], accepting)


def _subsets(nfa: _Nfa, classes: _Classes) -> Table:
    """The DFA whose states are the sets of positions that `nfa` may be in; its rows are over numbers of classes."""
    steps = _steps(nfa, classes)
    begin = nfa.essential(nfa.closure(nfa.first, begin=True))
    numbers = {begin: 0}
    states = [begin]
    rows = []

    def number(reached: set[int]) -> int:
        state = nfa.essential(reached)
        if state not in numbers:
            numbers[state] = len(states)
            states.append(state)
        return numbers[state]

    for state in states:
        reached, moves = _moves([steps[position] for position in state], nfa.budget)
        rest = number(reached)
        row = Row(rest)
        for name in sorted(moves):
            row.put(name, number(moves[name]))
            row.put(name + 1, rest)
        rows.append(row)
        nfa.budget.spend(20 + len(row.starts))
    starts = tuple([tuple(row.starts) for row in rows])
    return Table(starts, tuple([tuple(row.targets) for row in rows]), tuple([0 in state for state in states]))


def _steps(nfa: _Nfa, classes: _Classes) -> list[_Step]:
    """The step of each node; empty for nodes that consume nothing."""
    nothing: frozenset[int] = frozenset()
    follows: dict[int, frozenset[int]] = {}
    steps = []
    for kind, nexts in zip(nfa.kinds, nfa.nexts, strict=True):
        if kind < 0:
            steps.append(_Step(False, nothing, nothing))
            continue
        if nexts[0] not in follows:
            follows[nexts[0]] = nfa.closure(nexts[0], begin=False)
        steps.append(_Step(bool(classes.wide >> kind & 1), classes.odd.get(kind, nothing), follows[nexts[0]]))
    return steps


def _moves(steps: list[_Step], budget: Budget) -> tuple[set[int], dict[int, set[int]]]:
    """What `steps` lead to over the rest of the characters, and over each class that matters to one of them."""
    budget.spend(sum([3 + len(odd) * len(follow) for _, odd, follow in steps]))
    rest: set[int] = set()
    moves: dict[int, set[int]] = {number: set() for _, odd, _ in steps for number in odd}
    for wide, odd, follow in steps:
        if wide:
            budget.spend((1 + len(moves)) * len(follow))
            rest |= follow
        for number in moves.keys() - odd if wide else odd:
            moves[number] |= follow
    return rest, moves


# --- DFA -> minimal DFA ---


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
