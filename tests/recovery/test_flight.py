"""Giving runs of events is the same as giving their events one by one."""

from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event, Filter
from vestnik.recovery.allowance import Allowance
from vestnik.recovery.flight import together
from vestnik.recovery.reader import Reader
from vestnik.wire.messages import Gap
from vestnik.wire.origins import Origin

LOG = Origin("b", 1)
RUN = st.lists(st.integers(1, 400), min_size=1, max_size=6)
STEPS = st.lists(RUN | st.integers(0, 20) | st.just("gap"), max_size=30)


class OneByOne:
    """The slow twin: a list of the bytes of what is in flight."""

    def __init__(self, window: int, most: int) -> None:
        self.window, self.most = window, most
        self.number = 0
        self.sizes: list[int] = []

    def give(self, sizes: list[int]) -> int:
        for count, size in enumerate(sizes):
            if len(self.sizes) >= self.window or sum(self.sizes) >= self.most:
                return count
            self.sizes.append(size)
            self.number += 1
        return len(sizes)

    def tell(self) -> None:
        self.sizes.append(0)
        self.number += 1

    def take(self, number: int) -> None:
        del self.sizes[: max(0, number - (self.number - len(self.sizes)))]


@given(STEPS, st.integers(1, 8), st.integers(1, 1000))
def test_a_reader_takes_of_a_run_what_it_takes_of_single_events(steps: list[object], window: int, most: int) -> None:
    allowance = Allowance(most)
    reader, twin = Reader(("c", "s"), Filter.all(), 0, window), OneByOne(window, most)
    reader.join(allowance)
    offset = 1
    for step in steps:
        if isinstance(step, list):
            events = tuple([Event("q", {"n": n}, id=str(n)).stamped("b", n) for n in range(offset, offset + len(step))])
            part = reader.give(together(events, step, LOG))
            count = twin.give(step)
            assert (part.events if part else ()) == events[:count] and (part is None or part.size == sum(step[:count]))
            offset += len(step)
        elif isinstance(step, int):
            reader.take(step)
            twin.take(step)
        else:
            reader.tell(Gap("b/1", 1, 2, "it was dropped"))
            twin.tell()
        assert (reader.number, reader.in_flight, allowance.size) == (twin.number, len(twin.sizes), sum(twin.sizes))
        found = list(reader.after(0))
        assert [number for number, _ in found] == list(range(reader.first_in_flight, reader.number + 1))
        assert [one.size for _, one in found] == twin.sizes
