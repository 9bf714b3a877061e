"""Files: what a broker must not forget, as records in segments. It knows nothing of what they mean."""

from vestnik.journal.commit import GroupCommit
from vestnik.journal.compaction import Compacted
from vestnik.journal.cursor import Cursor
from vestnik.journal.journal import Journal
from vestnik.journal.observer import Observer, Stretch
from vestnik.journal.records import Entry, Record
from vestnik.journal.register import Register
from vestnik.journal.reports import Cut, Dropped, Lost, Recovery
from vestnik.journal.settings import Settings

__all__ = [
    "Compacted",
    "Cursor",
    "Cut",
    "Dropped",
    "Entry",
    "GroupCommit",
    "Journal",
    "Lost",
    "Observer",
    "Record",
    "Recovery",
    "Register",
    "Settings",
    "Stretch",
]
