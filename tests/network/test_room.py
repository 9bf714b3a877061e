"""Messages enter a room in the order in which they came, and a message that is cancelled leaves it."""

from __future__ import annotations

import asyncio

from vestnik.server.room import Room


async def entering(room: Room, size: int) -> asyncio.Task[None]:
    task = asyncio.create_task(room.enter(size))
    await asyncio.sleep(0)
    return task


async def test_who_does_not_fit_waits_and_so_do_those_after_it() -> None:
    room = Room(10)
    await room.enter(6)
    large, small = await entering(room, 5), await entering(room, 1)
    assert not large.done() and not small.done()
    room.leave(6)
    async with asyncio.timeout(5):
        await asyncio.gather(large, small)
    assert room.has_room(4) and not room.has_room(5)


async def test_what_is_too_large_has_the_room_to_itself() -> None:
    room = Room(10)
    await room.enter(100)
    assert not room.has_room(1)
    room.leave(100)
    assert room.has_room(100)


async def test_who_gives_up_does_not_keep_others_waiting() -> None:
    room = Room(10)
    await room.enter(6)
    large, small = await entering(room, 5), await entering(room, 4)
    large.cancel()
    async with asyncio.timeout(5):
        await small
    assert not room.has_room(1)
    room.leave(6)
    room.leave(4)
    assert room.has_room(10)


async def test_who_gives_up_as_it_is_let_in_leaves() -> None:
    room = Room(10)
    await room.enter(10)
    late = await entering(room, 10)
    room.leave(10)
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    assert late.cancelled() and room.has_room(10)
