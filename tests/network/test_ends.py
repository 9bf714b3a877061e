"""What arrives at the end of a connection is handed over in its order, in turns, and to the last message."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from network.security import Authority
from network.worlds import broker, client, until
from vestnik import Event
from vestnik.server.presence import Presence
from vestnik.transport import heavy, tcp, tls
from vestnik.transport.ends import CLOSED, UNHANDLED, End
from vestnik.transport.tcp import listen
from vestnik.transport.turns import Turns
from vestnik.wire import frames
from vestnik.wire.bounds import Bounds
from vestnik.wire.frames import VERSION, frame
from vestnik.wire.messages import Hello, Message, Ping, Publish


class Recorder:
    """Takes one message at a time, and pauses the connection at each `pausing`-th."""

    def __init__(self, pausing: int = 0) -> None:
        self.messages: list[Message] = []
        self.reasons: list[str] = []
        self._pausing = pausing

    def connected(self, end: End) -> None: ...

    def received(self, end: End, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, Hello):
                end.know(Bounds())
            self.messages.append(message)
            if self._pausing and len(self.messages) % self._pausing == 0:
                end.pause()
                asyncio.get_running_loop().call_later(0.001, end.resume)

    def closed(self, end: End, reason: str, code: str = "") -> None:
        self.reasons.append(reason)

    def full(self, end: End) -> None: ...

    def drained(self, end: End) -> None: ...


@pytest.mark.parametrize("pausing", [0, 7], ids=["in turns", "paused"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_all_that_came_before_the_end_is_handed_over(
    secure: bool, pausing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "TURN", 0.0)  # a message a turn
    receiver = Recorder(pausing)
    here, there = _contexts(tmp_path) if secure else (None, None)
    server = await listen(receiver, "127.0.0.1", 0, tls=here)
    large = Publish((Event("t", {"x": "x" * 300_000}, id="large"),))  # is read on another thread
    said: list[Message] = [Hello(VERSION, "c"), *[Publish((Event("t", {"n": n}, id=str(n)),)) for n in range(100)]]
    said[50:50] = [large, Ping()]
    try:
        _, writer = await asyncio.open_connection(*server.address, ssl=there)
        writer.write(b"".join(map(frame, said)))
        writer.close()
        await writer.wait_closed()
        async with asyncio.timeout(20):
            await until(lambda: bool(receiver.reasons))
    finally:
        await server.close()
    assert receiver.messages == said
    assert receiver.reasons == [CLOSED]


def _contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = Authority(folder)
    papers = authority.issue("127.0.0.1")
    return tls.listening(papers.cert, papers.key, None), ssl.create_default_context(cafile=str(authority.file))


LARGE = Publish((Event("t", {"x": "x" * 300_000}, id="large"),))  # is decoded on another thread


class Acting(Recorder):
    """Does something with each message that it takes."""

    def __init__(self, act: Callable[[End, Message], None]) -> None:
        super().__init__()
        self.end: End | None = None
        self._act = act

    def connected(self, end: End) -> None:
        self.end = end

    def received(self, end: End, messages: Iterable[Message]) -> None:
        super().received(end, self._acted_on(end, messages))

    def _acted_on(self, end: End, messages: Iterable[Message]) -> Iterator[Message]:
        for message in messages:
            yield message
            self._act(end, message)


@asynccontextmanager
async def heard(receiver: Recorder, *said: Message) -> AsyncIterator[asyncio.StreamWriter]:
    """Somebody who says Hello, and something after it."""
    server = await listen(receiver, "127.0.0.1", 0)
    try:
        _, writer = await asyncio.open_connection(*server.address)
        writer.write(b"".join(map(frame, [Hello(VERSION, "c"), *said])))
        yield writer
        writer.close()
    finally:
        await server.close()


@contextmanager
def busy_thread() -> Iterator[None]:
    """Keep the heavy thread from doing anything."""
    begun, go_on = threading.Event(), threading.Event()

    def keep() -> None:
        begun.set()
        go_on.wait(60)

    heavy.submit(keep)
    assert begun.wait(60)
    try:
        yield
    finally:
        go_on.set()


def numbered(count: int) -> list[Message]:
    return [Publish((Event("t", {"n": n}, id=str(n)),)) for n in range(count)]


@pytest.mark.parametrize("turn", [0.0, 60.0], ids=["a message a turn", "all in one"])
async def test_order_is_kept_if_reading_resumes_while_messages_are_received(
    turn: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "TURN", turn)

    def act(end: End, message: Message) -> None:
        end.pause()
        end.resume()

    monkeypatch.setattr(frames, "QUICKLY", 500)
    large = Publish((Event("t", {"x": "x" * 1000}, id="large"),))  # arrives with the others
    receiver, said = Acting(act), [*numbered(3), large, *numbered(3), large, Ping()]
    async with heard(receiver, *said):
        await until(lambda: len(receiver.messages) > len(said))
    assert receiver.messages[1:] == said


async def test_a_message_that_is_decoded_while_the_end_is_paused_waits() -> None:
    receiver = Acting(lambda end, message: None)
    async with heard(receiver) as writer:
        await until(lambda: bool(receiver.messages))
        assert receiver.end is not None
        with busy_thread():
            writer.write(frame(LARGE) + frame(Ping()))
            await until(lambda: receiver.end is not None and receiver.end.is_behind)
            receiver.end.pause()
        await until(lambda: receiver.end is not None and not receiver.end.is_behind)
        assert len(receiver.messages) == 1
        receiver.end.resume()
        await until(lambda: len(receiver.messages) == 3)
    assert receiver.messages[1:] == [LARGE, Ping()]


@pytest.mark.parametrize("said", [numbered(3), [*numbered(2), LARGE]], ids=["short", "decoded on the thread"])
async def test_what_fails_in_a_later_turn_ends_the_connection_and_no_other(
    said: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(end: End, message: Message) -> None:
        if message == said[-1]:
            raise RuntimeError("once")

    monkeypatch.setattr(tcp, "TURN", 0.0)
    receiver, errors = Acting(act), _errors()
    async with heard(receiver, *said):
        await until(lambda: bool(receiver.reasons))
        assert receiver.reasons == [UNHANDLED] and receiver.messages[1:] == said
        assert [str(error) for error in errors] == ["once"]
        assert receiver.end is not None
        async with asyncio.timeout(20):
            await receiver.end.over()
    other = Acting(lambda end, message: None)
    async with heard(other, Ping()):
        await until(lambda: len(other.messages) == 2)


async def test_what_fails_as_it_is_decoded_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> Message:
        raise RuntimeError("once")

    monkeypatch.setattr(tcp, "_understood", fail)
    receiver, errors = Acting(lambda end, message: None), _errors()
    async with heard(receiver, LARGE, Ping()):
        await until(lambda: bool(receiver.reasons))
    assert receiver.reasons == [UNHANDLED] and len(receiver.messages) == 1
    assert [str(error) for error in errors] == ["once"]


async def test_decoded_messages_do_not_pile_up_before_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of several connections are decoded one at a time: decoding takes a hundred times their bytes."""
    begin, begun = heavy.begin, list[asyncio.Future[Any]]()

    def noted(work: Callable[[], Any], *, first: bool = False) -> asyncio.Future[Any]:
        begun.append(begin(work, first=first))
        return begun[-1]

    monkeypatch.setattr(heavy, "begin", noted)
    ends = list[End]()
    receiver = Acting(lambda end, message: ends.append(end) if isinstance(message, Hello) else None)
    server = await listen(receiver, "127.0.0.1", 0)
    try:
        with busy_thread():
            writers = [(await asyncio.open_connection(*server.address))[1] for _ in range(5)]
            for writer in writers:
                writer.write(frame(Hello(VERSION, "c")) + frame(LARGE))
            await until(lambda: len(ends) == 5 and all(end.is_behind for end in ends))
            assert len(begun) == 1
            ends[0].close()  # whoever leaves lets the next one go on
            await until(lambda: len(begun) == 2)
            assert begun[0].cancelled()
        await until(lambda: receiver.messages.count(LARGE) == 4)
        for writer in writers:
            writer.close()
    finally:
        await server.close()


async def test_a_large_message_comes_in_turns_with_other_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = list[Callable[[], None]]()
    monkeypatch.setattr(Turns, "wait", lambda turns, go_on: waiting.append(go_on))
    receiver, packed = Acting(lambda end, message: None), frame(LARGE)
    assert len(packed) > tcp.MUCH
    async with heard(receiver) as writer:
        await until(lambda: bool(receiver.messages))
        writer.write(packed[:-1])
        await until(lambda: bool(waiting))
        assert receiver.end is not None and receiver.end.is_behind, "nothing is read from it meanwhile"
        writer.write(packed[-1:] + frame(Ping()))
        while len(receiver.messages) < 3:
            await until(lambda: bool(waiting) or len(receiver.messages) == 3)
            for go_on in [waiting.pop() for _ in tuple(waiting)]:
                go_on()
    assert receiver.messages[1:] == [LARGE, Ping()]


async def test_each_has_a_turn_of_the_event_loop_also_if_one_before_it_failed() -> None:
    turns, loop, errors, seen = Turns(), asyncio.get_running_loop(), _errors(), list[str]()

    def take(name: str) -> None:
        seen.append(name)
        loop.call_soon(seen.append, f"after {name}")
        if name == "b":
            raise RuntimeError("once")

    for name in "abc":
        turns.wait(partial(take, name))
    await until(lambda: "after c" in seen)
    assert seen == ["a", "after a", "b", "after b", "c", "after c"]
    assert [str(error) for error in errors] == ["once"]
    turns.wait(partial(take, "d"))
    await until(lambda: "after d" in seen)


async def test_what_waits_to_be_decoded_is_dropped_when_the_connection_is_closed() -> None:
    receiver = Acting(lambda end, message: None)
    async with heard(receiver, LARGE, Ping()):
        with busy_thread():
            await until(lambda: receiver.end is not None and receiver.end.is_behind)
            assert isinstance(receiver.end, tcp.TcpEnd) and receiver.end._decoding is not None
            decoding = receiver.end._decoding
            receiver.end.close()
            await until(decoding.cancelled)  # while the thread is busy
    assert len(receiver.messages) == 1


async def test_a_client_whose_message_waits_for_the_thread_is_not_taken_as_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beat, beats = Presence._beat, list[Presence]()

    def counted(of: Presence) -> None:
        beats.append(of)
        beat(of)

    monkeypatch.setattr(Presence, "_beat", counted)
    async with broker(heartbeat=0.05) as b, client(b, "honest") as c:
        (before,) = b.host._guests
        with busy_thread():
            publishing = asyncio.create_task(c.publish(LARGE.events[0]))
            await until(lambda: before.is_behind)
            reached = len(beats) + 5
            await until(lambda: len(beats) > reached)
            assert list(b.host._guests) == [before]
        async with asyncio.timeout(20):
            await publishing
        assert list(b.host._guests) == [before]


def _errors() -> list[BaseException]:
    """The exceptions that the event loop is told of from now on."""
    found: list[BaseException] = []

    def note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        found.append(context["exception"])

    asyncio.get_running_loop().set_exception_handler(note)
    return found
