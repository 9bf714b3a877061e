"""What a client has requested and is not answered: one at most about each subscription and each advertisement."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from vestnik.wire.messages import Advertise, Request, Subscribe, Unadvertise, Unsubscribe

Subject: TypeAlias = tuple[str, str | int]
"""A subscription or an advertisement by its name, or a publication by the number of its request."""


class Requests:
    """They are numbered from `first` on."""

    def __init__(self, first: int) -> None:
        self._open: dict[int, Request] = {}
        self._about: dict[Subject, int] = {}
        self._numbers = count(first)

    def __iter__(self) -> Iterator[Request]:
        return iter(list(self._open.values()))

    def new_number(self) -> int:
        return next(self._numbers)

    def get(self, number: int) -> Request | None:
        return self._open.get(number)

    def open(self, request: Request) -> int:
        """Take in a request; the number of the one about the same that it takes the place of, or its own."""
        number, subject = request.request, subject_of(request)
        before = self._about.get(subject, number)
        self._open.pop(before, None)
        self._about[subject] = number
        self._open[number] = request
        return before

    def close(self, number: int) -> Request | None:
        """A request is answered; None where it was, or another took its place."""
        request = self._open.pop(number, None)
        if request is not None:
            self._about.pop(subject_of(request), None)
        return request


def subject_of(request: Request) -> Subject:
    """What a request is about."""
    match request:
        case Subscribe(name) | Unsubscribe(name):
            return "subscription", name
        case Advertise(name) | Unadvertise(name):
            return "advertisement", name
    return "publication", request.request
