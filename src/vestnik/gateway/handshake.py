"""Asking a sink whether it wants to be pushed to, as the CloudEvents web hooks have it.

Without it, whoever may subscribe could have requests sent to any host. Whoever may subscribe also must not learn by it
which ports are open or what listens there: every failure has the same words and takes the same time.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import h11

from vestnik.errors import InvalidRequest
from vestnik.gateway.sinks import Answer, Sink, ask
from vestnik.logs import emit

LOG: Final = logging.getLogger(__name__)

ORIGIN: Final = "vestnik"
"""Who asks: sinks allow it by this name, or allow all with `*`."""
AGREE_WITHIN = 5.0
"""Seconds in which a sink has to agree. One that does not is reported when they are over, and not before."""
ENDLESS: Final = 10
"""Digits of a rate that is as good as no bound."""


class Disagreed(Exception):
    """A sink did not agree: the reason, for the operator only."""


async def permitted_rate(sink: Sink) -> float:
    """Return how many requests a minute a sink allows; InvalidRequest if it does not agree.

    The log tells the operator why it does not, and nobody else.
    """
    loop = asyncio.get_running_loop()
    told_at = loop.time() + AGREE_WITHIN
    try:
        return _rate(await ask(sink, "OPTIONS", {"webhook-request-origin": ORIGIN}, within=AGREE_WITHIN))
    except (OSError, h11.ProtocolError, Disagreed) as error:
        fields = {"sink": sink.url, "reason": reason_of(error)}
        emit(LOG, logging.WARNING, "webhook.refused", "a sink did not agree to a web hook", **fields)
    await asyncio.sleep(told_at - loop.time())
    raise InvalidRequest(
        f"the sink did not agree within {AGREE_WITHIN:g} seconds: it has to answer OPTIONS with 2xx and"
        f" WebHook-Allowed-Origin: {ORIGIN} or *; the broker tells its operator what went wrong",
        "sink",
        422,
    )


def _rate(answer: Answer) -> float:
    allowed = answer.headers.get("webhook-allowed-origin", "")
    if not 200 <= answer.status < 300 or allowed not in ("*", ORIGIN):
        raise Disagreed(f"it answered {answer.status} with WebHook-Allowed-Origin {allowed[:100]!r}")
    text = answer.headers.get("webhook-allowed-rate", "*").strip()
    digits = text.lstrip("0")
    if text == "*" or (digits.isascii() and digits.isdecimal() and len(digits) >= ENDLESS):
        return float("inf")
    if digits.isascii() and digits.isdecimal():
        return float(digits)
    raise Disagreed(f"it allows a rate of {text[:100]!r}, which is no number from 1 on")


def reason_of(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, h11.RemoteProtocolError):
        return "what answers there does not speak HTTP"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
