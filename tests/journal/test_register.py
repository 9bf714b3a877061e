"""A dictionary that is not forgotten."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.journals import crashed, files, put
from vestnik.journal import Register, register

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([b"", b"a", b"bc", b"d\xff"]), st.binary(max_size=40) | st.none()),
        st.sampled_from(["sync", "reopen"]),
    ),
    max_size=60,
)


def change(to: Register | dict[bytes, bytes], name: bytes, value: bytes | None) -> None:
    """None removes the name."""
    if value is not None:
        to[name] = value
    elif name in to:
        del to[name]


@given(CHANGES, st.floats(0, 1))
def test_as_a_dictionary_and_after_a_crash_as_it_was_then(
    changes: list[tuple[bytes, bytes | None] | str], share: float
) -> None:
    """A crash forgets changes from the end, and none that was synced."""
    folder = Path(tempfile.mkdtemp())
    truth: dict[bytes, bytes] = {}
    since = [dict(truth)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(register, "LEAST_WRITTEN", 300)
        patch.setattr(register, "MIB", 1_000)
        durable = Register.open(folder / "register", fsync=False)
        safe = files(folder / "register")
        for one in changes:
            if isinstance(one, tuple):
                change(durable, *one)
                change(truth, *one)
                since.append(dict(truth))
                continue
            durable.sync()
            if one == "reopen":
                durable.close()
                durable = Register.open(folder / "register", fsync=False)
                assert durable.recovery.is_clean
            safe, since = files(folder / "register"), [dict(truth)]
            assert dict(durable) == truth
        put(folder / "crashed", crashed(files(folder / "register"), safe, share))
        durable.close()
        after = Register.open(folder / "crashed", fsync=False)
        assert dict(after) in since
        after.close()
    shutil.rmtree(folder)


def test_it_stays_small_however_often_it_changes(tmp_path: Path) -> None:
    durable = Register.open(tmp_path, fsync=False)
    for number in range(20_000):
        durable[b"name %d" % (number % 10)] = b"%d" % number * 100
        if number % 500 == 0:
            durable.sync()
    durable.close()
    assert sum(map(len, files(tmp_path).values())) < 4_000_000
    again = Register.open(tmp_path, fsync=False)
    assert dict(again) == {b"name %d" % (number % 10): b"%d" % number * 100 for number in range(19_990, 20_000)}
    again.close()


def test_what_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    durable = Register.open(tmp_path, fsync=False)
    with pytest.raises(KeyError):
        del durable[b"a"]
    durable[b"a"] = b"1"
    del durable[b"a"]
    assert dict(durable) == {}
    durable.close()
