"""What the gateway answers, and how it says that something is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from vestnik.errors import (
    FilterError,
    InvalidEvent,
    InvalidRequest,
    NotAccepted,
    OutcomeUnknown,
    TurnedAway,
    VestnikError,
)

UNKNOWN: Final = 500
"""The status of a publication that may have been stored, or not. It is not 503, which says that nothing was done."""
_STRANGER: Final = "token"
"""The word with which a broker turns away somebody that it does not know."""


def answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, dict(headers or {}), "application/json")


def problem(status: int, reason: str, where: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """What is wrong, and where in the request."""
    return answer({"error": reason, **({"where": where} if where else {})}, status, headers)


def wrong(_: HTTPConnection, error: Exception) -> Response:
    """The answer to a request that ended with an error."""
    match error:
        case InvalidRequest():
            return problem(error.status, error.reason, error.where)
        case InvalidEvent():
            return problem(400, error.reason, error.path)
        case FilterError():
            return problem(400, str(error), "filter")
        case NotAccepted():
            return problem(403, error.reason)
        case OutcomeUnknown():
            return problem(UNKNOWN, str(error))
        case TurnedAway(code=code) if code == _STRANGER:
            return problem(401, error.reason, "authorization", {"www-authenticate": "Bearer"})
        case HTTPException():
            return problem(error.status_code, error.detail, headers=error.headers)
    reason = "the broker did not answer in time; try again" if isinstance(error, TimeoutError) else str(error)
    return problem(503, reason, headers={"retry-after": "1"})


HANDLERS: Final[Mapping[Any, Any]] = {VestnikError: wrong, TimeoutError: wrong, HTTPException: wrong}
