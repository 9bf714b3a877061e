"""What was found as events, whose ids tell what they were made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2s
from math import isfinite
from typing import Any

from msgspec import json

from vestnik.model.events import Event
from vestnik.model.times import MICROS, format_rfc3339
from vestnik.spark.derive.series import Candle, Firing, Rate
from vestnik.spark.derive.triggers import Relative, Trigger

ID_BYTES = 16


@dataclass(frozen=True)
class Naming:
    """Derived events are of this type and source; `how` is all that says what they are derived from, and how."""

    type: str
    source: str
    how: tuple[Any, ...]

    @classmethod
    def derived(cls, type: str, source: str, *how: Any, of: str) -> Naming:
        """Where `of` is not empty, it says of which events."""
        return cls(type, source, (*how, of) if of else how)

    def event(self, place: tuple[Any, ...], key: str, time: int, data: dict[str, Any], **envelope: Any) -> Event:
        """The event for what was found at `place`, which nothing else was."""
        digest = blake2s(json.encode((self.how, place)), digest_size=ID_BYTES).hexdigest()
        id = f"{self.type}-{digest}"
        return Event(self.type, data, source=self.source, id=id, subject=key or None, time=time, **envelope)


def candle_event(candle: Candle, naming: Naming) -> Event:
    """It happens at the end of the window."""
    data = asdict(candle) | _span(candle)
    if candle.volume is None or not isfinite(candle.volume):
        del data["volume"]
    return naming.event((candle.key, candle.start), candle.key, candle.end, data)


def rate_event(rate: Rate, naming: Naming) -> Event:
    """It happens at the end of the window."""
    data = asdict(rate) | _span(rate) | {"per_second": rate.count * MICROS / (rate.end - rate.start)}
    return naming.event((rate.key, rate.start), rate.key, rate.end, data)


def firing_event(trigger: Trigger, firing: Firing, naming: Naming) -> Event:
    """It happens at the reading, whose event and that of the base are the causes."""
    reading, base = firing
    data: dict[str, Any] = {"key": reading.key, "value": reading.value, "base": base.value}
    data["base_time"] = format_rfc3339(base.time)
    if isinstance(trigger, Relative) and isfinite(change := (reading.value - base.value) / base.value * 100):
        data["change"] = change
    causes = list(dict.fromkeys([(base.source, base.id), (reading.source, reading.id)]))
    place = (reading.key, reading.source, reading.id)
    return naming.event(place, reading.key, reading.time, data | trigger.said(), causes=causes)


def _span(found: Candle | Rate) -> dict[str, str]:
    return {"start": format_rfc3339(found.start), "end": format_rfc3339(found.end)}
