"""Is a trace right: all rules over what happened."""

from __future__ import annotations

from collections.abc import Sequence

from vestnik.trace.records import AnyRecord
from vestnik.verify.histories import History
from vestnik.verify.kept import acknowledged, kept
from vestnik.verify.liveness import liveness
from vestnik.verify.order import causal, fifo, numbers, streams
from vestnik.verify.presence import losses, presence
from vestnik.verify.publications import admission
from vestnik.verify.replays import replays
from vestnik.verify.safety import ALWAYS, eventual_safety
from vestnik.verify.timely import timely
from vestnik.verify.violations import Violation

RULES = eventual_safety, streams, fifo, causal, numbers, timely, presence, losses


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
    found = [violation for rule in RULES for violation in rule(history, since)]
    found += liveness(history, since, advertisements=advertisements)
    if stored:
        found += kept(history, since, advertisements=advertisements)
        found += acknowledged(history, since)
        found += replays(records, since, advertisements=advertisements)
    if advertisements:
        found += admission(history, since)
    return sorted(found, key=lambda violation: violation.records[-1].at)
