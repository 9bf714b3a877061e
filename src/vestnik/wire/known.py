"""All messages that travel."""

from __future__ import annotations

from typing import TypeAlias

from vestnik.wire.messages import (
    Accepted,
    Addressed,
    AdminA,
    AdminS,
    Advertise,
    Announce,
    Answer,
    Ask,
    Fetch,
    Fetched,
    FetchMore,
    Goodbye,
    Hello,
    Notify,
    Ping,
    Pong,
    Publish,
    Question,
    Recall,
    Recalled,
    Refused,
    Report,
    Review,
    Reviewed,
    Stored,
    Subscribe,
    Took,
    Unadvertise,
    Unknown,
    Unsubscribe,
    Welcome,
)
from vestnik.wire.origins import (
    FetchPage,
    Frontiers,
    OriginGone,
    OriginHere,
    OriginOffers,
    PageRead,
    Routed,
)

AnyMessage: TypeAlias = (
    Hello | Welcome | Goodbye | Ping | Pong | Routed | AdminS | AdminA | Announce | Addressed | OriginHere | OriginGone
    | OriginOffers | Frontiers | FetchPage | PageRead | Publish | Subscribe | Unsubscribe | Advertise | Unadvertise
    | Ask | Took | Fetch | FetchMore | Fetched | Notify | Answer | Unknown | Accepted | Refused | Stored | Question
    | Report | Review | Reviewed | Recall | Recalled
)  # fmt: skip
