"""Entries of a batch that are nested deeper than the decoder goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.test_sockets import talk
from gateway.webs import World, cloudevent
from vestnik.errors import InvalidEvent
from vestnik.gateway.entries import EVENTS, read_shallow

BATCH = {"content-type": "application/cloudevents-batch+json"}
JSON = {"content-type": "application/json"}
DEEP = "[" * 5_000 + "]" * 5_000
TRICKY = json.dumps('], [{"events": [\\' + "[" * 300)
"""A string that looks nested."""


def batch(*entries: Any) -> str:
    """JSON text of a list, with deep entries in place of None."""
    deep = f'{{"type": "q", "id": "deep", "data": {{"x": {DEEP}, "y": {TRICKY}}}}}'
    return "[" + ", ".join(deep if one is None else json.dumps(one) for one in entries) + "]"


@pytest.mark.parametrize("headers", [BATCH, JSON], ids=["batch", "short form"])
async def test_a_deep_entry_of_a_request_is_refused_alone(fresh: World, headers: dict[str, str]) -> None:
    async with await fresh.bus.subscribe("TRUE") as subscription:
        content = batch(cloudevent("e0"), None, cloudevent("e2", note="[[,"), 5, None, cloudevent("e5"))
        answer = await fresh.http.post("/events", content=content, headers=headers)
        said = answer.json()
        assert (answer.status_code, said["published"], said["refused_count"]) == (207, 3, 3)
        assert [(one["index"], one["reason"]) for one in said["refused"] if one["index"] != 3] == [
            (1, "nested deeper than 32"),
            (4, "nested deeper than 32"),
        ]
        assert [(await subscription.get(20)).event.id for _ in range(3)] == ["e0", "e2", "e5"]


async def test_a_deep_entry_of_a_message_is_refused_alone(fresh: World) -> None:
    async with talk(fresh) as one:
        for text in (
            f'{{"op": "publish", "events": {batch(cloudevent("e0"), None)}, "request": 7}}',
            f'{{"request": 7, "events": {batch(cloudevent("e1"), None)}, "op": "publish"}}',
        ):
            await one.socket.send(text)
            said = await one.next()
            assert (said["op"], said["request"], said["published"]) == ("accepted", 7, 1)
            assert [(refused["index"], refused["reason"]) for refused in said["refused"]] == [
                (1, "nested deeper than 32")
            ]


@pytest.mark.parametrize(
    "text",
    [
        f'{{"op": "subscribe", "filter": "TRUE", "handback": [{DEEP}]}}',
        f'{{"op": "publish", "events": {{"a": {DEEP}}}}}',
        f'{{"op": "publish", "events": [], "durable": {DEEP}}}',
        f'[{{"events": [{DEEP}]}}]',
        DEEP,
        "[" * 5_000,
        "]" * 5_000,
        "[{}" * 5_000,
    ],
)
async def test_what_else_is_too_deep_is_refused_and_the_socket_goes_on(fresh: World, text: str) -> None:
    async with talk(fresh) as one:
        await one.socket.send(text)
        assert (await one.next())["op"] == "refused"
        assert (await one.ask(op="publish", events=[{"type": "q"}]))["op"] == "accepted"


@pytest.mark.parametrize("text", [f'{{"type": "q", "data": {{"x": {DEEP}}}}}', "[" * 5_000, "[{}" * 5_000])
async def test_one_event_that_is_too_deep_is_refused(fresh: World, text: str) -> None:
    answer = await fresh.http.post("/events", content=text, headers=JSON)
    assert answer.status_code == 400 and "error" in answer.json()


def test_the_places_of_deep_entries_are_found() -> None:
    value, shallow = read_shallow(f"[1, {DEEP}, [[]], {TRICKY}, {{}}, {DEEP}]".encode())
    assert shallow.places == (1, 5)
    entries = shallow.restored(value)
    assert [isinstance(entry, InvalidEvent) for entry in entries] == [False, True, False, False, False, True]
    value, shallow = read_shallow(f'{{"a": [1, 2], "events": [3, {DEEP}], "b": [4]}}'.encode(), EVENTS)
    assert (value, shallow.places) == ({"a": [1, 2], "events": [3, None], "b": [4]}, (1,))
