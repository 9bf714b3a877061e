"""What is in a request: its body, within a limit, its token, and its parameters."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from vestnik.errors import InvalidEvent, InvalidRequest, VestnikError
from vestnik.model.nearest import meant
from vestnik.model.strict_json import read_json
from vestnik.model.tables import Misfit, read_table
from vestnik.wire.replays import Replay

BODY_WITHIN = 30.0
"""Seconds in which a body has to come."""

DIGITS = 18
"""The most digits of a number in a request."""

REPLAYS = ("all", "last", "since", "latest_by")
"""What a replay may be of."""

Shape = TypeVar("Shape")


def announced(request: Request, largest: int) -> int:
    """Return the bytes that a body may have by its header; InvalidRequest if they are more than `largest`."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise InvalidRequest("a body is read as it is; send it without an encoding", "content-encoding", 415)
    length = request.headers.get("content-length")
    if length is None:
        return largest
    size = read_number(length)
    if size is None or size > largest:
        raise _too_large(largest)
    return size


async def read_body(request: Request, largest: int) -> bytes:
    """Return the whole body; of one that is too large no more is read than is allowed."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_WITHIN):
            async for part in request.stream():
                size += len(part)
                if size > largest:
                    raise _too_large(largest)
                parts.append(part)
    except ClientDisconnect:
        raise InvalidRequest("the body was cut off") from None
    except TimeoutError:
        raise InvalidRequest(f"the body did not come in {BODY_WITHIN:g} seconds", status=408) from None
    return b"".join(parts)


def _too_large(largest: int) -> InvalidRequest:
    return InvalidRequest(f"the body is too large: at most {largest:,} bytes are read", status=413)


def read_token(headers: Headers) -> str | None:
    """The token in `Authorization: Bearer TOKEN`."""
    given = headers.get("authorization")
    if given is None:
        return None
    kind, _, token = given.partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise InvalidRequest("send Authorization: Bearer TOKEN; nothing else is understood", "authorization", 401)
    return token.strip()


def read_as(shape: type[Shape], text: str | bytes) -> Shape:
    """JSON text as a value of a type; InvalidRequest, with the place, where it is none."""
    found: Shape = shaped(shape, read_value(text))
    return found


def read_value(text: str | bytes) -> Any:
    try:
        return read_json(text)
    except InvalidEvent as error:
        raise InvalidRequest(error.reason, error.path) from None


def shaped(shape: Any, value: Any) -> Any:
    try:
        return read_table(value, shape)
    except Misfit as error:
        raise InvalidRequest(error.reason, error.path) from None


def read_replay(text: str) -> Replay:
    """What `last=10`, `since=TIME`, `latest_by=PATH`, `all`, or some of these with commas in between, ask for."""
    given: dict[str, Any] = {}
    for word in text.split(","):
        name, is_given, value = word.partition("=")
        if name in given or (name == "all" and is_given):
            raise InvalidRequest(f"{name} is there twice, or has a value", "replay")
        given[name] = True if name == "all" else value
    number = read_number(str(given.get("last", "")))
    if number is not None:
        given["last"] = number
    return replay_of(given)


def read_number(text: str) -> int | None:
    """Return the whole number in `text`, from 0 on; None if the text is anything else, or has more than DIGITS."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else None


def replay_of(given: dict[str, Any]) -> Replay:
    for name in given.keys() - set(REPLAYS):
        raise InvalidRequest(f"there is no {name!r}{meant(name, REPLAYS)}", "replay")
    try:
        return Replay(**given)
    except (TypeError, ValueError, VestnikError) as error:
        raise InvalidRequest(f"all, last=N, since=TIME or latest_by=PATH: {error}", "replay") from None
