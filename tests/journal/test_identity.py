"""Which log a journal is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from vestnik.journal.identity import identify, identity_in, log_of


def test_a_later_journal_has_a_greater_identity(tmp_path: Path) -> None:
    before = time.time_ns() // 1000
    made = identify(tmp_path)
    assert identify(tmp_path) == identity_in(tmp_path) == made
    assert before <= log_of(made) <= time.time_ns() // 1000
    (tmp_path / "identity").unlink()
    assert identity_in(tmp_path) == ""
    assert log_of(identify(tmp_path)) > log_of(made)


@pytest.mark.parametrize("damaged", [b"", b"\xff\xfe", b"?", b"-5", b"9f86d081884c7d65"])
def test_a_damaged_identity_is_replaced_by_a_later_one(tmp_path: Path, damaged: bytes) -> None:
    made = identify(tmp_path)
    (tmp_path / "identity").write_bytes(damaged)
    assert identity_in(tmp_path) == ""
    assert log_of(identify(tmp_path)) > log_of(made)


@pytest.mark.parametrize("identity", ["", "-1", "1.5", "9f86", "\u0663"])
def test_what_is_no_identity_is_refused(identity: str) -> None:
    with pytest.raises(ValueError, match="is a decimal number, not"):
        log_of(identity)
