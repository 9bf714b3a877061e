"""The oracle: every filter asked in turn. Never optimised; the indexes answer as it does."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from vestnik.model.events import Event
from vestnik.model.filters import Filter

Id = TypeVar("Id", bound=Hashable)


def match(filters: Mapping[Id, Filter], event: Event) -> set[Id]:
    """The ids of the filters that match `event`."""
    return {id for id, wanted in filters.items() if wanted.matches(event)}
