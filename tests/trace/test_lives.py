"""The lives of brokers in files, and what ends with them."""

from __future__ import annotations

from itertools import accumulate
from operator import itemgetter
from random import Random

import pytest
from msgspec import structs

from vestnik import Filter
from vestnik.errors import InvalidTrace
from vestnik.trace.files import Begin, End, from_lines, parts, to_line
from vestnik.trace.lives import Life, read_lives, timed, together
from vestnik.trace.records import (
    Advertised,
    Attached,
    Crashed,
    Detached,
    Settled,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)

ALL = Filter.all()


def lines(*parts: object) -> list[bytes]:
    return [part if isinstance(part, bytes) else to_line(part) for part in parts]  # type: ignore[arg-type]


def test_a_file_may_hold_several() -> None:
    half = b'{"op":"Settled","at":\n'
    file = lines(Begin("b1"), Settled(1.0), half, Begin("b1"), Settled(2.0), End(), Begin("b2"), half)
    assert list(read_lives(file)) == [
        Life("b1", [Settled(1.0)], False),
        Life("b1", [Settled(2.0)], True),
        Life("b2", [], False),
    ]
    assert list(from_lines(lines(Begin(), Settled(1.0), End(), b"\n"))) == [Settled(1.0)]


@pytest.mark.parametrize(
    "file",
    [
        lines(Begin("b1"), b"{\n", Settled(1.0)),
        lines(Begin("b1"), b"{\n", End()),
        lines(Begin(), b"{\n"),
        lines(Begin("b1"), End(), Settled(1.0)),
        lines(End()),
    ],
    ids=["half a line in the middle", "before an end", "of no broker", "after an end", "an end alone"],
)
def test_what_is_no_trace(file: list[bytes]) -> None:
    with pytest.raises(InvalidTrace):
        list(read_lives(file))


def test_with_a_broker_ends_what_its_clients_had_there() -> None:
    first = Life(
        "b1",
        [
            Attached(1.0, "c", "b1"),
            Attached(1.0, "gone", "b1"),
            Subscribed(2.0, "c", "s", ALL),
            Subscribed(2.0, "c", "over", ALL),
            Advertised(3.0, "c", "a", ALL),
            Unsubscribed(4.0, "c", "over"),
            Detached(5.0, "gone", "b1"),
        ],
        False,
    )
    other = Life("", [Settled(2.5), Settled(9.0)], True)
    found = together([first, other])
    assert [record.at for record in found] == sorted(record.at for record in found)
    assert found[-5:] == [
        Crashed(5.0, "b1"),
        Detached(5.0, "c", "b1"),
        Unsubscribed(5.0, "c", "s"),
        Unadvertised(5.0, "c", "a"),
        Settled(9.0),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_one_by_one_they_come_to_the_same(seed: int) -> None:
    """Also where the clock of a broker was set back."""
    rng = Random(seed)
    files = []
    for node in ("b1", "", "b2"):
        kinds = [Attached(0.0, node, node), Detached(0.0, node, node), Subscribed(0.0, node, "s", ALL), Settled(0.0)]
        records = [structs.replace(rng.choice(kinds), at=float(rng.randrange(8))) for _ in range(12)]
        files.append(lines(Begin(node), *records[:6], End(), Begin(node), *records[6:]))
    found = [
        (clock, file, place, record)
        for file, of_file in enumerate(files)
        for place, (_, clock, record) in enumerate(timed(parts(of_file)))
        if not isinstance(record, End)
    ]
    found.sort(key=itemgetter(0, 1, 2))
    assert [record for *_, record in found] == together(life for file in files for life in read_lives(file))
    assert [clock for clock, *_ in found] == list(accumulate((record.at for *_, record in found), max))
