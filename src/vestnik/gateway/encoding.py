"""Events as CloudEvents in JSON: each is encoded once, however many get it."""

from __future__ import annotations

from typing import Final

from vestnik.model.envelope import Pair
from vestnik.model.events import Event

_MOST: Final = 256
_LARGEST: Final = 16 * 1024


class Encoder:
    """Remembers the texts of the last events; not those of large ones."""

    def __init__(self) -> None:
        self._texts: dict[tuple[Pair | None, int], bytes] = {}

    def text(self, event: Event) -> bytes:
        """One line."""
        if event.seq is None:
            return event.to_json().encode()
        key = event.stream, event.seq
        text = self._texts.get(key)
        if text is None:
            text = event.to_json().encode()
            if len(text) <= _LARGEST:
                self._texts[key] = text
                if len(self._texts) > _MOST:
                    del self._texts[next(iter(self._texts))]
        return text
