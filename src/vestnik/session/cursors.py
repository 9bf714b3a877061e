"""Cursors: how far a subscription has come in each log."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from vestnik.model.events import Event
from vestnik.wire.messages import Gap
from vestnik.wire.origins import ENDLESS
from vestnik.wire.replays import Replay


class _Claim(NamedTuple):
    """Offsets that hold once everything up to a number was handed over."""

    number: int
    offsets: Mapping[str, int]


class Cursors:
    """For each log, as "broker/log", the offset below which everything wanted was handed over.

    A broker that forgot the subscription, or another one, starts at these offsets. The broker of a replay says where
    all logs stand once it knows; until then `said` is empty, and another broker replays from the start. Events that
    were handed over before are recognised: a log is read in the order of its offsets, and of picked events the few
    addresses are remembered.
    """

    def __init__(self) -> None:
        self.offsets: dict[str, int] = {}
        self.is_picking = False  # replayed events are picked: they say nothing of the offsets between
        self._is_replaying = False  # the broker has not said where all logs stand
        self._picked: set[tuple[str, int]] = set()
        self._claims: deque[_Claim] = deque()
        self._over: set[str] = set()  # logs that nothing more comes of
        self.begun: Mapping[str, int] = {}  # where live events start after the picked ones, if the broker said so

    def start(self, seen: Mapping[str, int], replay: Replay | None) -> None:
        """Start at cursors that were noted earlier, or with a replay."""
        self.offsets.update(seen)
        self._is_replaying = replay is not None and not self.offsets
        self.is_picking = replay is not None and replay.picks and self._is_replaying

    @property
    def said(self) -> dict[str, int]:
        """The cursors to hand over to a broker."""
        return {} if self._is_replaying else self.offsets

    def claim(self, number: int, offsets: Mapping[str, int]) -> None:
        """Note that these offsets hold once everything up to a number was handed over."""
        if not offsets:
            return
        if self.is_picking and not self.offsets:
            self.begun = offsets
        self._claims.append(_Claim(number, offsets))

    def settle(self, last: int) -> None:
        """Merge the claims up to a number: everything up to it was handed over."""
        while self._claims and self._claims[0].number <= last:
            claimed = self._claims.popleft().offsets
            for log in [one for one in self.offsets if one not in claimed and is_of_client(one)]:
                del self.offsets[log]  # it was read to its end
            for log, offset in claimed.items():
                if log not in self._over:
                    self.offsets[log] = max(offset, self.offsets.get(log, 0))
            self._is_replaying = self.is_picking = False
            self._picked.clear()

    def drop_claims(self) -> None:
        """Forget the claims about numbers that will not be reached."""
        self._claims.clear()

    def takes(self, event: Event, log: str | None, *, replayed: bool) -> bool:
        """Move beyond an event; return False if it was handed over before. Events without a log move nothing."""
        offset = event.seq
        if log is None or offset is None:
            return True
        if offset < self.offsets.get(log, 0) or (log, offset) in self._picked:
            return False
        if replayed and self.is_picking:
            self._picked.add((log, offset))
        else:
            self.offsets[log] = offset + 1
        return True

    def skip(self, gap: Gap) -> None:
        """Move to the end of a gap, or back to the end of a log that has lost its end.

        A log that is over has no cursor any more.
        """
        if gap.rewinds:
            self.offsets[gap.log] = min(gap.first, self.offsets.get(gap.log, gap.first))
        elif gap.end == ENDLESS:
            self._over.add(gap.log)
            self.offsets.pop(gap.log, None)
        elif gap.log:
            self.offsets[gap.log] = max(gap.end, self.offsets.get(gap.log, 0))


def is_of_client(log: str) -> bool:
    """Return whether a log is the past for which a client answers: "broker/client/name/log"."""
    return log.count("/") > 1
