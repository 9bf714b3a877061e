"""Is a trace right: all rules over what happened."""

from __future__ import annotations

from collections.abc import Sequence

from vestnik.trace.records import AnyRecord
from vestnik.verify.cuts import CUTS, Demands
from vestnik.verify.histories import History
from vestnik.verify.safety import ALWAYS
from vestnik.verify.violations import Violation


def check_trace(
    records: Sequence[AnyRecord],
    *,
    settling: float | None = None,
    since: float = ALWAYS,
    advertisements: bool = False,
    stored: bool = False,
) -> list[Violation]:
    """What is wrong with a trace, in the order in which it went wrong.

    `settling` is the time in seconds after which an operation has taken effect; without it, only Settled records tell.
    Where the system may begin in any state, `since` is the time from which on it is held to the rules. Where brokers
    have `stored` what they accept, and links lose nothing unless they are cut, nothing of it may be missing in the end.
    """
    history = History(records, settling)
    demands = Demands(settling, since, advertisements, stored)
    found = [violation for cut in CUTS.values() for violation in cut.rules(history, demands)]
    return sorted(found, key=lambda violation: violation.records[-1].at)
