"""From an expression to its canonical table.

An expression becomes an NFA, the NFA a DFA by subset construction over classes of characters it does not tell apart,
the DFA a canonical `Table`. All work is bounded: beyond a limit `FilterTooComplex` is raised.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from vestnik.errors import FilterTooComplex
from vestnik.model.regular.expressions import ANY, Chars, Choice, Concat, Edge, Expression, Repeat
from vestnik.model.regular.tables import END, Budget, Row, Table, minimal, numbered

POSITIONS = 4_000


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
