"""What brokers took is read by position, from their folders and from themselves."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

import vestnik
from network.test_durable import process
from network.worlds import broker, client, until
from vestnik import Event, Filter
from vestnik.broker.core import BrokerCore
from vestnik.broker.effects import Look, Seen, Send
from vestnik.errors import InvalidAddress, InvalidJournal, NotAccepted, Unreachable, WrongType
from vestnik.journal import Journal as Segments
from vestnik.journal import Settings
from vestnik.lake.journals import Journal, open_journal
from vestnik.lake.rows import batch_of_page, batch_of_taken
from vestnik.routing.registry import make_strategy
from vestnik.routing.router import Router
from vestnik.server.history import Bounds, HistoryStore
from vestnik.server.limits import Limits
from vestnik.server.process import Broker
from vestnik.transport.addresses import read_address
from vestnik.wire import leaves
from vestnik.wire.leaves import opened
from vestnik.wire.messages import Page, Refused, Review, Reviewed, Taken, Unread
from vestnik.wire.packing import TAKEN, pack_taken, split_all

Result = TypeVar("Result")


def url(of: Broker) -> str:
    return f"vestnik://{of.address.removeprefix('vestnik://')}"


def events(count: int, start: int = 1) -> list[Event]:
    return [Event("t", {"n": n}, source="s", id=str(n)).stamped("b", n) for n in range(start, start + count)]


def write(folder: Path, stored: list[Event], **settings: Any) -> None:
    """A journal as a broker leaves it."""
    with Segments.open(folder / "journal", Settings(**settings)) as journal:
        for event in stored:
            journal.append([(TAKEN, 1_000 + (event.seq or 0), pack_taken("c", event))])


def segment(folder: Path, number: int = -1) -> Path:
    return sorted((folder / "journal").glob("*.segment"))[number]


def damage(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def whole(journal: Journal, after: int | None = None, **how: Any) -> tuple[list[Taken], list[Unread]]:
    unread: list[Unread] = []
    return list(journal.read(after, unread=unread.append, **how)), unread


def ids(taken: list[Taken]) -> list[int]:
    return [int(one.event.id) for one in taken]


async def apart(work: Callable[[], Result]) -> Result:
    """A journal blocks, and the broker it asks is on this loop."""
    return await asyncio.to_thread(work)


def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "MOST", 7)


# --- folders ---


def test_what_was_taken_is_read_in_order_with_positions_and_times(tmp_path: Path) -> None:
    write(tmp_path, events(20))
    with open_journal(tmp_path) as journal:
        taken, unread = whole(journal)
        assert (journal.broker, journal.first(), journal.last()) == ("b", 1, 20)
    assert [(one.position, one.time) for one in taken] == [(n, 1_000 + n) for n in range(1, 21)]
    assert [one.event for one in taken] == events(20) and unread == []


def test_reading_begins_and_ends_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    write(tmp_path, events(50))
    journal = open_journal(tmp_path)
    assert ids(whole(journal, 10, upto=40)[0]) == list(range(11, 41))
    assert ids(whole(journal, 10, upto=40, most=9)[0]) == list(range(11, 20))
    assert ids(whole(journal, 10, filter="n > 45")[0]) == list(range(46, 51))
    assert whole(journal, 50)[0] == whole(journal, 60)[0] == []
    after, found = 0, []
    while after < journal.last():
        page = next(iter(journal.pages(after)))
        found += opened(page)[0]
        after = page.after
    assert ids(found) == list(range(1, 51))


def test_reading_from_anywhere_in_a_large_segment(tmp_path: Path) -> None:
    many = [Event("t", {"x": "y" * 10_000}, source="s", id=str(n)).stamped("b", n) for n in range(1, 501)]
    write(tmp_path, many)
    journal = open_journal(tmp_path)
    assert journal.last() == 500
    for after in (0, 1, 99, 100, 333, 498, 499):
        assert ids(whole(journal, after)[0]) == list(range(after + 1, 501))


def test_pages_hold_events_packed(tmp_path: Path) -> None:
    write(tmp_path, events(5))
    (page,) = open_journal(tmp_path).pages()
    assert (page.positions, len(split_all(page.packed)), page.after) == ((1, 2, 3, 4, 5), 5, 5)


def test_a_page_has_a_size(tmp_path: Path) -> None:
    large = [Event("t", {"x": "y" * 400_000}, source="s", id=str(n)).stamped("b", n) for n in range(1, 8)]
    write(tmp_path, large)
    sizes = [len(page.positions) for page in open_journal(tmp_path).pages()]
    assert sizes == [2, 2, 2, 1]


def test_what_waits_for_its_time_is_no_event_yet_and_what_expired_was_one(tmp_path: Path) -> None:
    held = Event("t", {}, source="s", id="2", not_before=4_000_000_000_000_000)
    expired = Event("t", {}, source="s", id="3", expires=1).stamped("b", 0xC0)
    one, four = events(1)[0], events(1, 0xC0C0)[0]
    write(tmp_path, [one, held, expired, four])
    journal = open_journal(tmp_path)
    taken, unread = whole(journal)
    assert [one.position for one in taken] == [1, 3, 4] and not unread
    assert journal.last() == 4


def test_what_is_damaged_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    write(tmp_path, events(30))
    path = segment(tmp_path)
    before = path.read_bytes()
    damage(path, len(before) // 2)
    content = path.read_bytes()
    taken, unread = whole(open_journal(tmp_path))
    (lost,) = unread
    assert ids(taken) == [n for n in range(1, 31) if n != lost.first]
    assert lost.first == lost.last and not lost.dropped and "are damaged" in lost.reason
    assert path.read_bytes() == content, "nothing is repaired"
    assert whole(open_journal(tmp_path), lost.first)[1] == []
    assert whole(open_journal(tmp_path), lost.first - 1, upto=lost.first) == ([], [lost])


def test_a_page_says_no_more_than_it_is_up_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    write(tmp_path, events(30))
    damage(segment(tmp_path), segment(tmp_path).stat().st_size // 4)
    for page in open_journal(tmp_path).pages(0):
        assert all(one.last <= page.after for one in page.unread)
        assert all(position <= page.after for position in page.positions)


def test_a_record_that_is_no_event_is_named_with_its_bytes(tmp_path: Path) -> None:
    write(tmp_path, events(3))
    with Segments.open(tmp_path / "journal") as journal:
        journal.append([(TAKEN, 2_005, b"\x92\xa1c\x01"), (TAKEN, 2_006, b"nonsense"), (9, 2_007, b"of another kind")])
    write(tmp_path, events(2, 4))
    taken, unread = whole(open_journal(tmp_path))
    assert ids(taken) == [1, 2, 3, 4, 5]
    assert [(one.first, one.last, one.time, one.payload) for one in unread] == [
        (4, 4, 2_005, b"\x01"),
        (5, 5, 2_006, b"nonsense"),
        (6, 6, 2_007, b"of another kind"),
    ]
    assert "of the kind 9, which this version does not know" in unread[-1].reason
    assert all(one.reason.startswith("it is no event: ") for one in unread)


def test_rows_of_pages(tmp_path: Path) -> None:
    write(tmp_path, events(60), segment_size=600, retain_size=3_000)
    with Segments.open(tmp_path / "journal") as journal:
        journal.append([(TAKEN, 2_005, b"\x92\xa1c\x01")])
    damage(segment(tmp_path, 1), 300)
    reader = open_journal(tmp_path)
    taken, unread = whole(reader, 0)
    batches = [batch_of_page(page, "b") for page in reader.pages(0)]
    assert [row for batch, _ in batches for row in batch.to_pylist()] == batch_of_taken(taken, "b").to_pylist()
    assert [one.dropped for one in unread] == [True, False, False]
    bad = [(one.position, one.kind, one.time, one.payload) for _, some in batches for one in some]
    gone, damaged = unread[:2]
    assert bad == [(1, "dropped", None, None), (damaged.first, "damaged", None, None), (61, "no event", 2_005, b"\x01")]
    assert [one.positions for _, some in batches for one in some] == [gone.last, damaged.last - damaged.first + 1, 1]


def test_what_is_half_written_is_not_there_yet(tmp_path: Path) -> None:
    write(tmp_path, events(10))
    (tmp_path / "journal" / "watermark").unlink()  # it says that all is written
    path = segment(tmp_path)
    content = path.read_bytes()
    for size in (len(content) - 1, len(content) - 30, len(content) - len(content) // 10):
        path.write_bytes(content[:size])
        journal = open_journal(tmp_path)
        taken, unread = whole(journal)
        assert ids(taken) == list(range(1, journal.last() + 1)) and journal.last() < 10 and not unread
        assert path.stat().st_size == size, "nothing is cut off"


def test_what_is_missing_at_either_end_is_told_by_a_folder_and_by_its_broker_alike(tmp_path: Path) -> None:
    for name, harm in (("end", lambda path: path.unlink()), ("start", lambda path: damage(path, 9))):
        folder = tmp_path / name
        write(folder, events(40), segment_size=600)
        path = segment(folder, -1 if name == "end" else 0)
        gone = (int(path.stem), 40 if name == "end" else int(segment(folder, 1).stem) - 1)
        harm(path)
        kept = [n for n in range(1, 41) if not gone[0] <= n <= gone[1]]
        for _ in range(2):
            taken, unread = whole(open_journal(folder))
            assert [(one.first, one.last, one.dropped) for one in unread] == [(*gone, False)]
            assert ids(taken) == kept

            async def ask(folder: Path = folder) -> tuple[list[Taken], list[Unread], int]:
                async with broker("b", data=folder) as b:
                    return await asyncio.to_thread(lambda: with_last(open_journal(url(b))))

            taken, unread, last = asyncio.run(ask())
            assert [(one.first, one.last, one.dropped) for one in unread] == [(*gone, False)]
            assert ids(taken) == kept and last == 40


def with_last(journal: Journal) -> tuple[list[Taken], list[Unread], int]:
    with journal:
        return (*whole(journal), journal.last())


def test_a_segment_that_others_follow_and_that_ends_too_early_has_lost_something(tmp_path: Path) -> None:
    write(tmp_path, events(40), segment_size=600)
    path = segment(tmp_path, 2)
    first = int(path.stem)
    following = int(segment(tmp_path, 3).stem)
    path.write_bytes(path.read_bytes()[:-20])
    taken, unread = whole(open_journal(tmp_path))
    assert [(one.first, one.last) for one in unread] == [(following - 1, following - 1)]
    assert ids(taken) == [n for n in range(1, 41) if n != following - 1]
    damage(path, 9)
    taken, unread = whole(open_journal(tmp_path))
    assert [(one.first, one.last) for one in unread] == [(first, following - 1)]
    assert "header" in unread[0].reason
    path.unlink()
    taken, unread = whole(open_journal(tmp_path))
    assert [(one.first, one.last) for one in unread] == [(first, following - 1)]
    assert ids(taken) == [n for n in range(1, 41) if not first <= n < following]


def test_what_was_dropped_is_said_to_whoever_wants_it(tmp_path: Path) -> None:
    write(tmp_path, events(60), segment_size=600, retain_size=2_400)
    journal = open_journal(tmp_path)
    first = journal.first()
    assert 1 < first < 60
    taken, unread = whole(journal)
    assert ids(taken) == list(range(first, 61)) and not unread
    taken, (lost,) = whole(journal, 3)
    assert ids(taken) == list(range(first, 61))
    assert (lost.first, lost.last, lost.dropped) == (4, first - 1, True)


def test_segments_that_were_rewritten(tmp_path: Path) -> None:
    write(tmp_path, events(60), segment_size=600)
    with Segments.open(tmp_path / "journal", Settings(segment_size=600)) as journal:
        journal.compact(lambda record: record.position % 5)
        kept = [record.position for record in journal.read()]
    assert len(kept) < 60
    reader = open_journal(tmp_path)
    taken, unread = whole(reader)
    assert [one.position for one in taken] == kept and not unread
    for after in range(60):
        assert [one.position for one in whole(reader, after)[0]] == [one for one in kept if one > after]


def test_what_is_unread_is_logged_where_nobody_asks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, events(10))
    damage(segment(tmp_path), segment(tmp_path).stat().st_size // 2)
    with caplog.at_level(logging.WARNING, logger="vestnik"):
        assert len(list(open_journal(tmp_path).read())) == 9
    assert "cannot be read" in caplog.text


def test_folders_that_are_none(tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InvalidJournal, match="is no"):
            open_journal(wrong)
    with pytest.raises(WrongType):
        open_journal(3)  # type: ignore[arg-type]
    write(tmp_path, [])
    with pytest.raises(InvalidAddress):
        open_journal(tmp_path, token="x")
    with pytest.raises(InvalidJournal, match="is no data folder"):
        open_journal(tmp_path / "journal")
    journal = open_journal(tmp_path)
    assert (journal.first(), journal.last(), whole(journal)) == (1, 0, ([], []))
    with pytest.raises(InvalidJournal, match="whose"):
        _ = journal.broker
    segment(tmp_path).unlink()
    assert (journal.first(), journal.last(), whole(journal)) == (1, 0, ([], []))


# --- beside a broker ---


async def test_a_folder_is_read_while_its_broker_writes(tmp_path: Path) -> None:
    with process("--data", str(tmp_path), "--name", "b1") as (_, address):
        found: list[Taken] = []
        is_over = asyncio.Event()

        async def follow() -> None:
            with open_journal(tmp_path) as journal:
                assert journal.broker == "b1"
                after = 0
                while True:
                    last_round = is_over.is_set()
                    for page in await asyncio.to_thread(list, journal.pages(after)):
                        taken, unread = opened(page)
                        assert not unread
                        found.extend(taken)
                        after = page.after
                    if last_round:
                        return

        following = asyncio.create_task(follow())
        async with vestnik.connect(address) as bus:
            for start in range(0, 20_000, 500):
                many = [Event("t", {"x": "y" * (n % 300)}, source="s", id=str(n)) for n in range(start, start + 500)]
                await bus.publish_many(many)
        is_over.set()
        await following
    assert ids(found) == list(range(20_000))


async def test_what_was_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    acknowledged = 0
    with process("--data", str(tmp_path)) as (running, address):
        async with vestnik.connect(address) as bus:

            async def publish() -> None:
                nonlocal acknowledged
                for n in range(100_000):
                    await bus.publish(Event("t", {}, source="s", id=str(n)))
                    acknowledged = n + 1

            publishing = asyncio.create_task(publish())
            await until(lambda: acknowledged > 100)
            running.kill()
            running.wait()
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)
    with open_journal(tmp_path) as journal:
        dead, unread = await apart(lambda: whole(journal))
        assert ids(dead) == list(range(len(dead))) and len(dead) >= acknowledged and not unread
        async with broker("b", data=tmp_path) as again, client(again) as bus:
            await bus.publish(Event("t", {}, source="s", id="100000"))
            assert ids((await apart(lambda: whole(journal, len(dead))))[0]) == [100_000]


# --- brokers ---


async def test_both_ways_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    write(tmp_path, events(60), segment_size=600, retain_size=3_000)
    with Segments.open(tmp_path / "journal") as journal:
        journal.append(
            [(TAKEN, 5, b"\x92\xa1c\x01"), (TAKEN, 6, pack_taken("c", Event("later", not_before=4 * 10**15)))]
        )
    write(tmp_path, events(10, 63))
    damage(segment(tmp_path, 1), 300)
    async with broker("b", data=tmp_path) as running:

        def compare() -> None:
            with open_journal(tmp_path) as folder, open_journal(url(running)) as asked:
                assert (folder.broker, folder.first(), folder.last()) == (asked.broker, asked.first(), asked.last())
                for wanted in (None, "n > 55"):
                    for after in (None, 3, folder.first() - 1, 29, 30, 31, 60, 61, 72, 80):
                        for upto in (None, folder.first() + 9):
                            how = {"filter": wanted, "upto": upto}
                            assert whole(folder, after, **how) == whole(asked, after, **how), (after, how)
                    assert whole(folder, 0, most=11, filter=wanted)[0] == whole(asked, 0, most=11, filter=wanted)[0]
                assert len(whole(folder, 0)[1]) == 3

        await apart(compare)


async def test_a_broker_without_a_folder_tells_what_it_has() -> None:
    async with broker("b") as running, client(running) as bus:
        await bus.publish_many([Event("t", {"n": n}, source="s", id=str(n)) for n in range(70)])
        tail = running.host.core.recovery.tail
        tail.room = 0
        await bus.publish(Event("t", {"n": 70}, source="s", id="70"))
        tail.room = 1_000_000
        await bus.publish_many([Event("t", {"n": n}, source="s", id=str(n)) for n in range(71, 100)])

        def read() -> None:
            with open_journal(url(running)) as journal:
                first = journal.first()
                assert (journal.broker, journal.last() - first) == ("b", 29)
                assert ids(whole(journal)[0]) == list(range(70, 100))
                assert ids(whole(journal, first + 9, filter="n > 95")[0]) == [96, 97, 98, 99]
                taken, (lost,) = whole(journal, first - 5)
                assert ids(taken) == list(range(70, 100))
                assert (lost.first, lost.last, lost.dropped) == (first - 4, first - 1, True)

        await apart(read)


async def test_a_filter_that_nothing_matches_brings_the_reader_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestnik.server.leafing.SCANNED", 10)
    write(tmp_path, events(95))
    async with broker("b", data=tmp_path) as running, client(running) as bus:
        found = await bus.review("n > 1000", after=0)
        assert (found.page.after, found.page.positions, found.last) == (10, (), 95)

        def read() -> list[int]:
            with open_journal(url(running)) as journal:
                return [page.after for page in journal.pages(0, filter=Filter.parse("n > 1000"))]

        assert await apart(read) == [*range(10, 91, 10), 95]


async def test_a_broker_that_restarts_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    write(tmp_path, events(50))
    async with broker("b", data=tmp_path) as first:
        journal = await apart(lambda: open_journal(url(first)))
        address = first.address
        reading = journal.read(0)
        found = await apart(lambda: [next(reading) for _ in range(7)])
    rest = asyncio.create_task(apart(lambda: list(reading)))
    await asyncio.sleep(0.05)
    async with broker("b", data=tmp_path, listen=read_address(address)):
        found += await rest
        assert ids(found) == list(range(1, 51))
        await apart(journal.close)


async def test_another_broker_at_the_same_address_is_not_taken_for_it(tmp_path: Path) -> None:
    async with broker("b") as first:
        journal = await apart(lambda: open_journal(url(first)))
        address = first.address
    async with broker("other", listen=read_address(address)):
        with pytest.raises(ValueError, match="other"):
            await apart(journal.last)
        await apart(journal.close)


async def test_no_broker_no_journal() -> None:
    with pytest.raises(Unreachable):
        await apart(lambda: open_journal("vestnik://127.0.0.1:1", timeout=0.2))
    with pytest.raises(Unreachable):
        await apart(lambda: open_journal("127.0.0.1:1", timeout=0.2))


def test_a_folder_may_look_like_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "b:1", events(2))
    assert open_journal("b:1").last() == 2


async def test_a_review_that_means_nothing_is_refused_here() -> None:
    async with broker("b") as running, client(running) as bus:
        for after, upto, most in ((-2, 0, 0), (0, -1, 0), (0, 0, -1)):
            with pytest.raises(ValueError, match="of a review is"):
                await bus.review(after=after, upto=upto, most=most)
        with pytest.raises(TypeError):
            await bus.review(after=1.5)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            await bus.review(3)  # type: ignore[arg-type]


async def test_reviews_are_few_at_a_time(tmp_path: Path) -> None:
    async with broker("b", data=tmp_path, limits=Limits(fetches=2)) as running, client(running) as bus:
        found = await asyncio.gather(*[bus.review() for _ in range(5)], return_exceptions=True)
        refused = [one for one in found if isinstance(one, NotAccepted)]
        assert 1 <= len(refused) <= 3 and "the limit fetches is 2" in str(refused[0])
        assert (await bus.review()).broker == "b"


async def test_a_disk_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, events(3))
    async with broker("b", data=tmp_path) as running, client(running) as bus:

        def fail(*_: object) -> None:
            raise OSError(5, "the disk is broken")

        monkeypatch.setattr("vestnik.journal.disk.os.pread", fail)
        with pytest.raises(NotAccepted, match=r"review was refused: what it has stored cannot be read: .*broken"):
            await bus.review()
        monkeypatch.undo()
        assert (await bus.review()).page.positions == (1, 2, 3)


def test_a_history_has_no_journal() -> None:
    seen: list[Seen] = []
    HistoryStore(Bounds()).review(Look("c", Review(Filter.all(), request=1)), seen.append)
    assert "ask the brokers" in seen[0].reason


def test_who_asks_again_is_answered_once() -> None:
    core = BrokerCore("b", Router(make_strategy("merging")))
    asked = Review(Filter.all(), request=1)
    (look,) = core.handle(asked, "c", 0.0)
    assert look == Look("c", asked) and core.under_way("c") == {1}
    assert core.handle(asked, "c", 1.0) == []
    page = Page(9)
    assert core.handle(Seen(look, 5, 9, page), "b", 2.0) == [Send("c", Reviewed(1, "b", 5, 9, page))]
    assert core.under_way("c") == set()
    assert core.handle(asked, "c", 3.0) == [look]
    assert core.handle(Seen(look, 0, 0, page, "no"), "b", 4.0) == [Send("c", Refused(1, "no"))]


async def test_a_journal_that_is_begun_anew_is_another(tmp_path: Path) -> None:
    async def identities() -> tuple[str, str]:
        async with broker("b", data=tmp_path / "data") as running:
            url = f"vestnik://{running.address.removeprefix('vestnik://')}"
            with await asyncio.to_thread(open_journal, url) as journal, open_journal(tmp_path / "data") as folder:
                return journal.identity, folder.identity

    first, again = await identities(), await identities()
    assert first == again and first[0] == first[1] != ""
    shutil.rmtree(tmp_path / "data" / "journal")
    assert (await identities())[0] not in ("", first[0])
