"""A thread does one job after the other, and holds nothing of those that are dropped or done."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from functools import partial

import pytest

from vestnik.threads import Worker


class Large:
    """Something that a job holds."""

    def itself(self) -> Large:
        return self


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A worker, and a collector that does not come round meanwhile."""
    gc.disable()
    worker = Worker("test")
    yield worker
    worker.end()
    gc.enable()


def held(worker: Worker) -> threading.Event:
    """Keep the thread busy until the event is set."""
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait(30)

    worker.submit(wait)
    assert begun.wait(30)
    return go_on


def test_a_job_that_is_cancelled_before_it_begins_holds_nothing(worker: Worker) -> None:
    go_on, large = held(worker), Large()
    known = weakref.ref(large)
    done = worker.submit(large.itself)
    del large
    assert known() is not None
    assert done.cancel()
    assert known() is None
    go_on.set()
    assert worker.submit(lambda: 1).result(30) == 1


def test_a_thread_that_waits_holds_nothing_of_the_last_job(worker: Worker) -> None:
    large = Large()
    known = weakref.ref(large)
    assert worker.submit(large.itself).result(30) is large
    del large
    for _ in range(1000):  # until the thread waits again
        if known() is None:
            break
        threading.Event().wait(0.01)
    assert known() is None


def test_what_is_to_come_first_does(worker: Worker) -> None:
    go_on, order = held(worker), list[str]()
    worker.submit(partial(order.append, "third"))
    worker.submit(partial(order.append, "first"), first=True)
    worker.submit(partial(order.append, "second"), first=True)
    last = worker.submit(lambda: None)
    go_on.set()
    last.result(30)
    assert order == ["first", "second", "third"], "what comes first keeps its order, or some of it would wait for ever"
