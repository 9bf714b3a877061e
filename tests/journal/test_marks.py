"""A dictionary that is not forgotten."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.journals import crashed, files, put
from vestnik.journal import Marks, marks

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abcdé"), st.integers(-(1 << 63), (1 << 63) - 1) | st.none()),
        st.sampled_from(["sync", "reopen"]),
    ),
    max_size=60,
)


def change(to: Marks | dict[str, int], name: str, value: int | None) -> None:
    """None removes the name."""
    if value is not None:
        to[name] = value
    elif name in to:
        del to[name]


@given(CHANGES, st.floats(0, 1))
def test_as_a_dictionary_and_after_a_crash_as_it_was_then(
    changes: list[tuple[str, int | None] | str], share: float
) -> None:
    """A crash forgets changes from the end, and none that was synced."""
    folder = Path(tempfile.mkdtemp())
    truth: dict[str, int] = {}
    since = [dict(truth)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marks, "LEAST_WRITTEN", 5)
        patch.setattr(marks, "MIB", 1_000)
        durable = Marks.open(folder / "marks", fsync=False)
        safe = files(folder / "marks")
        for one in changes:
            if isinstance(one, tuple):
                change(durable, *one)
                change(truth, *one)
                since.append(dict(truth))
                continue
            durable.sync()
            if one == "reopen":
                durable.close()
                durable = Marks.open(folder / "marks", fsync=False)
                assert durable.recovery.is_clean
            safe, since = files(folder / "marks"), [dict(truth)]
            assert dict(durable) == truth
        put(folder / "crashed", crashed(files(folder / "marks"), safe, share))
        durable.close()
        after = Marks.open(folder / "crashed", fsync=False)
        assert dict(after) in since
        after.close()
    shutil.rmtree(folder)


def test_it_stays_small_however_often_it_changes(tmp_path: Path) -> None:
    durable = Marks.open(tmp_path, fsync=False)
    for number in range(20_000):
        durable[f"link {number % 10}"] = number
        if number % 500 == 0:
            durable.sync()
    durable.close()
    assert sum(map(len, files(tmp_path).values())) < 200_000
    again = Marks.open(tmp_path, fsync=False)
    assert dict(again) == {f"link {number % 10}": number for number in range(19_990, 20_000)}
    again.close()


def test_numbers_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    durable = Marks.open(tmp_path, fsync=False)
    with pytest.raises(ValueError, match="64 bits"):
        durable["a"] = 1 << 63
    assert dict(durable) == {}
    durable.close()
