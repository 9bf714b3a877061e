"""Vestnik: content-based publish/subscribe. Names are imported when they are first used."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vestnik.client.connect import connect
    from vestnik.client.replays import ReplayRequest
    from vestnik.client.sync import connect_sync
    from vestnik.errors import (
        FilterError,
        FilterSyntaxError,
        FilterTooComplex,
        InvalidEvent,
        InvalidIndex,
        MissingExtra,
        PatternError,
        UnknownKind,
        VestnikError,
    )
    from vestnik.model.events import Event
    from vestnik.model.filters import Filter
    from vestnik.model.parser import Limits
    from vestnik.model.templates import ANY
    from vestnik.model.typed import TypedEvent
    from vestnik.services.history import History
    from vestnik.services.local import LocalBus
    from vestnik.session.checking import Adaptive, Constant, MultiplicativeDecrease, RandomInterval
    from vestnik.wire.replays import Replay

logging.getLogger(__name__).addHandler(logging.NullHandler())  # who embeds the package decides what is printed

__version__ = "0.1.0"
__all__ = [
    "ANY",
    "Adaptive",
    "Constant",
    "Event",
    "Filter",
    "FilterError",
    "FilterSyntaxError",
    "FilterTooComplex",
    "History",
    "InvalidEvent",
    "InvalidIndex",
    "Limits",
    "LocalBus",
    "MissingExtra",
    "MultiplicativeDecrease",
    "PatternError",
    "RandomInterval",
    "Replay",
    "ReplayRequest",
    "TypedEvent",
    "UnknownKind",
    "VestnikError",
    "connect",
    "connect_sync",
]

_HOMES = {
    "ANY": "vestnik.model.templates",
    "Adaptive": "vestnik.session.checking",
    "Constant": "vestnik.session.checking",
    "Event": "vestnik.model.events",
    "Filter": "vestnik.model.filters",
    "History": "vestnik.services.history",
    "Limits": "vestnik.model.parser",
    "LocalBus": "vestnik.services.local",
    "MultiplicativeDecrease": "vestnik.session.checking",
    "RandomInterval": "vestnik.session.checking",
    "Replay": "vestnik.wire.replays",
    "ReplayRequest": "vestnik.client.replays",
    "TypedEvent": "vestnik.model.typed",
    "connect": "vestnik.client.connect",
    "connect_sync": "vestnik.client.sync",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "vestnik.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
