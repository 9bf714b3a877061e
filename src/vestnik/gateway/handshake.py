"""Asking a sink whether it wants to be pushed to, as the CloudEvents web hooks have it.

Without it, whoever may subscribe could have requests sent to any host.
"""

from __future__ import annotations

from typing import Final

import h11

from vestnik.errors import InvalidRequest
from vestnik.gateway.sinks import Sink, ask

ORIGIN: Final = "vestnik"
"""Who asks: sinks allow it by this name, or allow all with `*`."""


async def permitted_rate(sink: Sink) -> float:
    """How many requests a minute a sink allows; InvalidRequest, with the reason, where it allows none."""
    try:
        answer = await ask(sink, "OPTIONS", {"webhook-request-origin": ORIGIN})
    except (OSError, h11.RemoteProtocolError) as error:
        raise InvalidRequest(f"the sink could not be asked: {reason_of(error)}", "sink", 422) from None
    allowed = answer.headers.get("webhook-allowed-origin", "")
    if not 200 <= answer.status < 300 or allowed not in ("*", ORIGIN):
        said = (
            f"it answered {answer.status} with {f'WebHook-Allowed-Origin: {allowed}' if allowed else 'no permission'}"
        )
        raise InvalidRequest(f"the sink did not agree: {said}; {ORIGIN} or * would permit it", "sink", 422)
    return _rate(answer.headers.get("webhook-allowed-rate", "*"))


def _rate(text: str) -> float:
    if text.strip() == "*":
        return float("inf")
    if text.strip().isdecimal() and int(text) > 0:
        return float(int(text))
    raise InvalidRequest(f"the sink allows a rate of {text!r}, which is no number", "sink", 422)


def reason_of(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, h11.RemoteProtocolError):
        return "what answers there does not speak HTTP"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
