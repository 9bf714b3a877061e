"""A compact memory knows at least the last events, and never an event that it was not told of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vestnik.recovery.fingerprints import FEWEST, Fingerprints, Table


@given(st.sets(st.integers(1, (1 << 64) - 1), max_size=200), st.sets(st.integers(1, (1 << 64) - 1), max_size=50))
def test_a_table_has_what_was_added(added: set[int], others: set[int]) -> None:
    table = Table()
    for fingerprint in [*added, *added]:
        table.add(fingerprint)
    assert table.count == len(added)
    assert all(fingerprint in table for fingerprint in added)
    assert not any(fingerprint in table for fingerprint in others - added)


def test_fingerprints_that_share_a_slot_are_told_apart() -> None:
    table = Table()
    alike = [1 + place * FEWEST * 64 for place in range(10)]
    for fingerprint in alike[:9]:
        table.add(fingerprint)
    assert all(one in table for one in alike[:9]) and alike[9] not in table


def test_the_last_events_are_known_and_twice_as_many_at_most() -> None:
    known = Fingerprints(100)
    for number in range(1_000):
        known.add(("s", str(number)))
        assert all(("s", str(one)) in known for one in range(max(0, number - 99), number + 1))
    assert sum(("s", str(number)) in known for number in range(1_000)) <= 200
    assert ("s", "new") not in known and ("t", "999") not in known
