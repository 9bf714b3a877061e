"""Regular sets of strings: one canonical automaton for each, and the algebra over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vestnik.model.regular.expressions import Expression
from vestnik.model.regular.nfa import compile_expression
from vestnik.model.regular.tables import END, STEPS_OF_ONE, Budget, Row, Table, after, canonical, numbered
from vestnik.model.work import spend

MAX_CUTS = 4096  # end points of intervals up to which a set is given as such
_MEMO = 256  # characters that a state remembers the move of
_DEAD = (-1, -1)  # stands for all pairs of states one of which accepts nothing more
_PREFERRED = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_./ "


@dataclass(frozen=True, slots=True, repr=False)
class Automaton:
    """A regular set of strings of Unicode scalar values, as its minimal complete DFA.

    State 0 is the start; state s moves to targets[s][i] from code point starts[s][i] on. The states are numbered
    breadth first in the order of code points, so equal sets are equal objects. Made by `matching`, `from_intervals`
    and the operations, never from tables by hand. An operation whose product goes beyond the limit on construction
    steps raises `FilterTooComplex`.
    """

    starts: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]
    accepting: tuple[bool, ...]
    _none: int = field(init=False, compare=False)  # the state that accepts nothing more, or -1
    _all: int = field(init=False, compare=False)  # the state that accepts whatever comes, or -1
    _hash: int = field(init=False, compare=False)
    _moves: dict[int, _Moves] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        sinks = {self.accepting[s]: s for s, targets in enumerate(self.targets) if targets == (s,)}
        object.__setattr__(self, "_none", sinks.get(False, -1))
        object.__setattr__(self, "_all", sinks.get(True, -1))
        object.__setattr__(self, "_hash", hash((self.starts, self.targets, self.accepting)))
        object.__setattr__(self, "_moves", {})

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Automaton, (self.starts, self.targets, self.accepting)

    def __repr__(self) -> str:
        return f"<Automaton of {len(self.accepting)} states, for example {self.example()!r}>"

    @classmethod
    def matching(cls, expression: Expression) -> Automaton:
        """The strings that `expression` matches as a whole."""
        return cls(*compile_expression(expression))

    @classmethod
    def nothing(cls) -> Automaton:
        return cls(((0,),), ((0,),), (False,))

    @classmethod
    def everything(cls) -> Automaton:
        return cls(((0,),), ((0,),), (True,))

    @classmethod
    def from_intervals(cls, intervals: Iterable[tuple[str, str | None]]) -> Automaton:
        """The union of half-open `intervals` [low, high) in code-point order, sorted and disjoint; None is no end."""
        return cls(*_table_of_cuts([cut for interval in intervals for cut in interval if cut is not None]))

    @property
    def is_empty(self) -> bool:
        return self._none == 0

    @property
    def is_universal(self) -> bool:
        return self._all == 0

    def accepts(self, text: str) -> bool:
        """Whether `text` is in the set; linear in its length."""
        moves = self._moves_of(0)
        for char in text:
            moves = moves[char]
            if moves.final:
                break
        return moves.accepting

    def _moves_of(self, state: int) -> _Moves:
        if state not in self._moves:
            self._moves[state] = _Moves(self, state)
        return self._moves[state]

    def complement(self) -> Automaton:
        spend(len(self.accepting) / STEPS_OF_ONE)
        return Automaton(self.starts, self.targets, tuple([not flag for flag in self.accepting]))

    def union(self, other: Automaton) -> Automaton:
        return self.complement().intersection(other.complement()).complement()

    def intersection(self, other: Automaton) -> Automaton:
        if self.is_empty or other.is_universal or self == other:
            return self
        if other.is_empty or self.is_universal:
            return other
        return Automaton(*_product(self, other))

    def includes(self, other: Automaton) -> bool:
        """Whether every string of `other` is in this set."""
        return not other.overlaps(self.complement())

    def overlaps(self, other: Automaton) -> bool:
        """Whether some string is in both sets."""
        budget = Budget()
        seen = {(0, 0)}
        todo = [(0, 0)]
        while todo:
            one, two = todo.pop()
            if one == self._none or two == other._none:
                continue
            if one == self._all or two == other._all or (self.accepting[one] and other.accepting[two]):
                return True
            reached = {(to, too) for _, to, too in _side_by_side(self, one, other, two)} - seen
            seen |= reached
            todo += reached
            budget.spend(len(self.starts[one]) + len(other.starts[two]))
        return False

    def example(self) -> str | None:
        """A shortest string of the set, of readable characters where there is a choice; None if there is none."""
        if self.is_empty:
            return None
        found = {0: ""}
        order = [0]
        for state in order:
            if self.accepting[state]:
                return found[state]
            for target in dict.fromkeys(self.targets[state]):
                if target not in found:
                    found[target] = found[state] + self._readable(state, target)
                    order.append(target)
        raise AssertionError("a state of a minimal automaton other than its sink leads to acceptance")

    def _readable(self, state: int, target: int) -> str:
        """The most readable character that leads from `state` to `target`."""
        ranges = [(start, end) for start, end, to in _ranges(self, state) if to == target]
        for char in _PREFERRED:
            if any(start <= ord(char) < end for start, end in ranges):
                return char
        near = [chr(code) for start, end in ranges for code in range(start, min(end, start + 64))]
        return next(filter(str.isprintable, near), near[0])

    def intervals(self, limit: int = MAX_CUTS) -> tuple[tuple[str, str | None], ...] | None:
        """The set as sorted, disjoint, non-adjacent intervals [low, high) in code-point order; None is no end.

        None if there is no such list with at most `limit` end points. The answer depends on the set alone.
        """
        if _count_cuts(self, limit) > limit:
            return None
        cuts: list[str] = []
        for text, inside in _turns(self):
            if inside != len(cuts) % 2:
                cuts.append(text)
        return tuple(zip(cuts[::2], [*cuts[1::2], None], strict=False))


class _Moves(dict[str, "_Moves"]):
    """The moves of one state by character, filled in as they are asked for."""

    __slots__ = ("accepting", "automaton", "final", "state")

    def __init__(self, automaton: Automaton, state: int) -> None:
        self.automaton = automaton
        self.state = state
        self.accepting = automaton.accepting[state]
        self.final = automaton.targets[state] == (state,)

    def __missing__(self, char: str) -> _Moves:
        automaton, state = self.automaton, self.state
        target = automaton.targets[state][bisect_right(automaton.starts[state], ord(char)) - 1]
        moves = automaton._moves_of(target)
        if len(self) < _MEMO:
            self[char] = moves
        return moves


def _ranges(automaton: Automaton, state: int) -> list[tuple[int, int, int]]:
    """The moves of `state`: from a start to before an end, the target."""
    starts = automaton.starts[state]
    return list(zip(starts, (*starts[1:], END), automaton.targets[state], strict=True))


def _side_by_side(left: Automaton, one: int, right: Automaton, two: int) -> Iterator[tuple[int, int, int]]:
    """The moves of state `one` of `left` and `two` of `right`: from a start on, where the one and the other go."""
    starts, targets = left.starts[one], left.targets[one]
    others, goals = right.starts[two], right.targets[two]
    i = j = start = 0
    while True:
        yield start, targets[i], goals[j]
        next_start = starts[i + 1] if i + 1 < len(starts) else END
        next_other = others[j + 1] if j + 1 < len(others) else END
        start = min(next_start, next_other)
        if start == END:
            return
        i += next_start == start
        j += next_other == start


def _product(left: Automaton, right: Automaton) -> Table:
    """The canonical table of the strings that are in both sets."""
    budget = Budget()
    numbers = {(0, 0): 0}
    pairs = [(0, 0)]
    rows: list[Row] = []
    for one, two in pairs:
        row = Row(len(rows))
        if (one, two) != _DEAD:
            for start, to, too in _side_by_side(left, one, right, two):
                pair = _DEAD if to == left._none or too == right._none else (to, too)
                if pair not in numbers:
                    numbers[pair] = len(pairs)
                    pairs.append(pair)
                row.put(start, numbers[pair])
            budget.spend(len(left.starts[one]) + len(right.starts[two]))
        rows.append(row)
    starts = tuple([tuple(row.starts) for row in rows])
    targets = tuple([tuple(row.targets) for row in rows])
    accepting = [pair != _DEAD and left.accepting[pair[0]] and right.accepting[pair[1]] for pair in pairs]
    return canonical(Table(starts, targets, tuple(accepting)), budget)


# --- intervals ---


def _inner_states(automaton: Automaton) -> list[int] | None:
    """The states but the sinks, each before those it leads to; None if some lead back to themselves."""
    sinks = (automaton._none, automaton._all)
    targets = automaton.targets
    incoming = [0] * len(targets)
    for state, row in enumerate(targets):
        for target in row:
            incoming[target] += state not in sinks
    order = [0] if incoming[0] == 0 and 0 not in sinks else []
    for state in order:
        for target in targets[state]:
            incoming[target] -= 1
            if incoming[target] == 0 and target not in sinks:
                order.append(target)
    return order if len(order) == len(targets) - sum(sink >= 0 for sink in sinks) else None


def _count_cuts(automaton: Automaton, limit: int) -> int:
    """How many end points the set has as intervals in code-point order, counted to `limit` + 1."""
    order = _inner_states(automaton)
    if order is None:
        return limit + 1
    accepting = automaton.accepting
    last = list(accepting)  # by state: whether the last strings that begin there are in the set
    cuts = [0] * len(accepting)  # by state: how often membership changes among those strings
    for state in reversed(order):
        for start, end, target in _ranges(automaton, state):
            again = _characters(start, end) - 1 if cuts[target] else 0
            cuts[state] += (last[state] != accepting[target]) + cuts[target]
            cuts[state] += again * ((last[target] != accepting[target]) + cuts[target])
            last[state] = last[target]
        cuts[state] = min(cuts[state], limit + 1)
    return accepting[0] + cuts[0]


def _characters(start: int, end: int) -> int:
    """How many characters there are in a range of a row."""
    return end - start - (0x800 if start < 0xD800 < end else 0)


def _turns(automaton: Automaton) -> Iterator[tuple[str, bool]]:
    """In order, strings such that membership changes at none but these, each with the membership from it on."""
    todo = [("", 0)]
    while todo:
        prefix, state = todo.pop()
        yield prefix, automaton.accepting[state]
        if automaton.targets[state] == (state,):
            continue
        for start, end, target in reversed(_ranges(automaton, state)):
            if automaton.targets[target] == (target,):
                todo.append((prefix + chr(start), target))
            else:
                todo += [(prefix + chr(c), target) for c in reversed(range(start, end)) if not 0xD800 <= c < 0xE000]


def _common_prefix(one: str, two: str) -> int:
    """How many characters the two begin with in common."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((length for length, (a, b) in pairs if a != b), min(len(one), len(two)))


def _table_of_cuts(cuts: list[str]) -> Table:
    """The canonical table of the strings that an odd number of the sorted `cuts` precede or equal.

    Walks the tree of the cuts, the states of the current one open, and closes a state when its last cut has passed:
    equal states then become one, which for a table without cycles makes it minimal.
    """
    budget = Budget()
    closed: dict[tuple[tuple[int, ...], tuple[int, ...], bool], int] = {((0,), (0,), False): 0, ((0,), (1,), True): 1}
    inside = False
    path = [(Row(0), False)]
    previous = ""

    def close(length: int) -> None:
        while len(path) > length:
            row, accepting = path.pop()
            state = (tuple(row.starts), tuple(row.targets), accepting)
            number = closed.setdefault(state, len(closed))
            code = ord(previous[len(path) - 1])
            path[-1][0].put(code, number)
            if after(code) < END:
                path[-1][0].put(after(code), int(inside))
            budget.spend(5)

    for cut in cuts:
        common = _common_prefix(previous, cut)
        close(common + 1)
        path += [(Row(int(inside)), inside) for _ in cut[common:]]
        inside = not inside
        path[-1] = (Row(int(inside)), inside)
        previous = cut
    close(1)
    row, accepting = path.pop()
    first = closed.setdefault((tuple(row.starts), tuple(row.targets), accepting), len(closed))
    starts, targets, flags = zip(*closed, strict=True)
    return numbered(first, starts, targets, flags)
