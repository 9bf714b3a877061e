"""Where the work on a lake is done: the same on many parts, here or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Runner(Protocol):
    """Does the same work on each of some parts, somewhere, and gives the results in order.

    Work may be done twice for a part, as where a machine is lost; one of the results counts.
    """

    def __call__(self, work: Callable[[A], B], parts: Sequence[A], /) -> list[B]: ...


def one_by_one(work: Callable[[A], B], parts: Sequence[A]) -> list[B]:
    """Here and now."""
    return [work(part) for part in parts]
