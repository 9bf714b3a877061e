"""What the gateway answers, and how it says that something is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from vestnik.errors import (
    FilterError,
    InvalidEvent,
    InvalidRequest,
    NotAccepted,
    OutcomeUnknown,
    TurnedAway,
    VestnikError,
)
from vestnik.gateway.notices import tell_refused

UNKNOWN: Final = 500
"""The status of a publication that may have been stored, or not. It is not 503, which says that nothing was done."""
UNAVAILABLE: Final = 503
STRANGER: Final = "token"
"""The word with which a broker turns away somebody that it does not know."""
NO_TOKEN: Final = "a token is needed: send the header Authorization: Bearer TOKEN"
WRONG_TOKEN: Final = "the broker does not know the token in the header Authorization: Bearer TOKEN"


def answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, dict(headers or {}), "application/json")


class Problem(Response):
    """An answer that says what is wrong, and where in the request. Sending it tells the gateway."""

    def __init__(self, status: int, reason: str, where: str, headers: Mapping[str, str]) -> None:
        content = msgspec.json.encode({"error": reason, **({"where": where} if where else {})})
        super().__init__(content, status, dict(headers), "application/json")
        self._reason = f"{where}: {reason}" if where else reason

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tell_refused(scope, self.status_code, self._reason)
        await super().__call__(scope, receive, send)


def problem(status: int, reason: str, where: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer that says what is wrong, and where in the request."""
    return Problem(status, reason, where, headers or {})


def wrong(request: HTTPConnection, error: Exception) -> Response:
    """The answer to a request that ended with an error."""
    match error:
        case InvalidRequest():
            later = {"retry-after": "1"} if error.status == UNAVAILABLE else {}
            return problem(error.status, error.reason, error.where, later)
        case InvalidEvent():
            return problem(400, error.reason, error.path)
        case FilterError():
            return problem(400, str(error), "filter")
        case NotAccepted():
            return problem(403, error.reason)
        case OutcomeUnknown():
            return problem(UNKNOWN, str(error))
        case TurnedAway(code=code) if code == STRANGER:
            reason = WRONG_TOKEN if "authorization" in request.headers else NO_TOKEN
            return problem(401, reason, "authorization", {"www-authenticate": "Bearer"})
        case HTTPException(status_code=404):
            return problem(
                404, f"there is nothing at {request.url.path[:100]}; /openapi.json says what there is", "path"
            )
        case HTTPException(status_code=405):
            allowed = ", ".join(_methods(request))
            return problem(405, f"it takes {allowed}", "method", {"allow": allowed})
        case HTTPException():
            return problem(error.status_code, error.detail, headers=error.headers)
    reason = "the broker did not answer in time; try again" if isinstance(error, TimeoutError) else str(error)
    return problem(UNAVAILABLE, reason, headers={"retry-after": "1"})


def _methods(request: HTTPConnection) -> list[str]:
    """Return the methods of all routes to the address of a request."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    return sorted({method for one in routes if one.path_regex.match(request.url.path) for method in one.methods or ()})


HANDLERS: Final[Mapping[Any, Any]] = {VestnikError: wrong, TimeoutError: wrong, HTTPException: wrong}
