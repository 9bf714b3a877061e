"""Pages of what was taken: filled at once or one by one, they are the same."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from strategies_events import events
from vestnik.journal import Record
from vestnik.model.events import Event
from vestnik.wire.leaves import Leaf, columns_of, opened
from vestnik.wire.messages import Taken
from vestnik.wire.packing import TAKEN, pack_taken

seqs = st.sampled_from([1, 0xC0, 0xC0C0, 2**40 + 0xC0])
numbered = st.builds(lambda event, seq: event.stamped("b", seq), events(), seqs)
payloads = st.one_of(
    st.builds(pack_taken, st.text(), numbered),
    st.builds(pack_taken, st.text(), events().map(lambda event: event.replace(stream=None, seq=None))),
    st.sampled_from([b"", b"\xc0", b"\x92\xa1c\x01", b"\x92\xa1c\xc0", b"\x92\xa1c\x97\x01"]),
)
ordinary = st.lists(st.builds(pack_taken, st.text(), numbered), max_size=8)


def records(payloads: list[bytes], kind: int = TAKEN) -> list[Record]:
    return [Record(place, kind, 10 * place, payload) for place, payload in enumerate(payloads, start=1)]


def one_by_one(given: list[Record]) -> Leaf:
    leaf = Leaf()
    assert all(leaf.put(record) for record in given)
    return leaf


@given(st.one_of(ordinary, st.lists(payloads, max_size=8)))
def test_what_is_taken_in_at_once_is_what_is_taken_in_one_by_one(payloads: list[bytes]) -> None:
    leaf, given = Leaf(), records(payloads)
    put = leaf.put_all(given)
    assert put in (0, len(given))
    assert leaf.page(9) == one_by_one(given[:put]).page(9)


@given(ordinary)
def test_what_is_nothing_but_events_is_taken_in_at_once(payloads: list[bytes]) -> None:
    assert Leaf().put_all(records(payloads)) == len(payloads)
    assert not payloads or not Leaf().put_all(records(payloads, kind=TAKEN + 1))


@given(st.lists(payloads, max_size=8))
def test_everything_on_a_page_is_an_event_or_said_to_be_none(payloads: list[bytes]) -> None:
    page = one_by_one(records(payloads)).page(9)
    taken, unread = opened(page)
    seen: list[Any] = [one.position for one in taken] + [one.first for one in unread]
    assert len(seen) == len(set(seen))
    for place, payload in enumerate(payloads, start=1):
        assert place in seen or payload[-1] == 0xC0  # held
    positions, times, found, _ = columns_of(page)
    assert taken == [Taken(*one) for one in zip(positions, times, found, strict=True)]


def test_a_page_has_room_for_so_many() -> None:
    packed = [pack_taken("c", Event("t", source="s", id=str(seq)).stamped("b", seq)) for seq in (1, 2, 3)]
    leaf = Leaf(most=2)
    assert [leaf.put(record) for record in records(packed)] == [True, True, False]
    assert leaf.page(2).positions == (1, 2)
    other = Leaf(most=2)
    assert other.put_all(records(packed)) == 2 and other.put_all(records(packed)) == 0
    assert other.page(2) == leaf.page(2)


@given(ordinary, st.integers(0, 2000))
def test_what_there_is_no_room_for_is_left(payloads: list[bytes], size: int) -> None:
    with patch("vestnik.wire.leaves.PAGE_SIZE", size):
        for first in (0, 1):
            given, (leaf, slow) = records(payloads), (Leaf(), Leaf())
            assert [leaf.put(one) for one in given[:first]] == [slow.put(one) for one in given[:first]]
            put = leaf.put_all(given[first:])
            fitting = next((n for n, one in enumerate(given[first:]) if not slow.put(one)), len(given[first:]))
            assert put == fitting or (put, fitting, first) == (0, 1, 0)  # one that is alone may be of any size
            assert leaf.page(9) == slow.page(9) or put < fitting
