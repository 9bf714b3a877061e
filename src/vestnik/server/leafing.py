"""Pages of a journal, for clients that read what a broker took."""

from __future__ import annotations

from typing import Final

from vestnik.broker.effects import Look, Seen
from vestnik.journal import Journal
from vestnik.wire.leaves import Leaf
from vestnik.wire.messages import Page

SCANNED: Final = 10_000
"""Records that are read for one page, whatever is wanted of them: nobody keeps a broker busy for long."""


def leaf_through(journal: Journal, what: Look, last: int, identity: str) -> Seen:
    """The page of `journal` that is asked for, of what there is up to position `last`."""
    review = what.review
    upto = min(review.upto, last) if review.upto > 0 else last
    start = after = review.after if review.after >= 0 else journal.first - 1
    leaf = Leaf(review.filter, review.most if review.most > 0 else None)
    cursor = journal.read(start, upto)
    for number, record in enumerate(cursor, start=1):
        journal.check_reading()
        if not leaf.put(record):
            break
        after = record.position
        if number == SCANNED:
            break
    else:
        after = max(start, upto)
    leaf.miss(cursor.lost, journal.first, after)
    return Seen(what, journal.first, last, leaf.page(after), journal=identity)


def unseen(what: Look, reason: str) -> Seen:
    """There is no page, for a reason."""
    return Seen(what, 0, 0, Page(what.review.after), reason)
