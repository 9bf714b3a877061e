"""What one run of the pipeline does, as a TOML file says."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from vestnik.errors import InvalidPlan, VestnikError
from vestnik.lake.journals import is_address, open_journal
from vestnik.model.filters import Filter
from vestnik.model.tables import Misfit, read_table
from vestnik.spark.derive import Above, Below, Fall, Rise, candles, rates, triggers
from vestnik.spark.derive.durations import millis
from vestnik.spark.derive.readings import path_of
from vestnik.spark.derive.running import Derivation
from vestnik.spark.derive.triggers import Trigger

PATIENCE: Final = 10.0
"""Seconds in which a broker has to answer."""


class Match(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of subscriptions, a line each."""

    subscriptions: str


class _Derived(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="what"):
    """New events of those that `filter` matches; published at the broker `to`, or else written to a folder.

    `how` of each kind is the function of events; WrongValue where a setting is none.
    """

    filter: str = "TRUE"
    watermark: str = "10s"
    source: str = "derive"
    to: str | None = None

    @property
    def what(self) -> str:
        return type(self).__name__.lower()

    @property
    def _rest(self) -> dict[str, Any]:
        """What all derivations take. Where nothing is published, what is not over yet is shown, too."""
        of = "" if self.filter == "TRUE" else str(Filter.parse(self.filter))
        return {"watermark": self.watermark, "source": self.source, "early": self.to is None, "of": of}


class Candles(_Derived, frozen=True, kw_only=True, tag="candles"):
    key: str
    value: str
    volume: str | None = None
    window: str = "1m"
    type: str = "candle"

    def how(self) -> Derivation:
        _check(self.window, self.watermark, self.key, self.value, *([self.volume] if self.volume else []))
        given: dict[str, Any] = {"key": self.key, "value": self.value, "volume": self.volume, "window": self.window}
        return partial(candles, **given, type=self.type, **self._rest)


class Rates(_Derived, frozen=True, kw_only=True, tag="rates"):
    key: str = "type"
    window: str = "1m"
    type: str = "rate"

    def how(self) -> Derivation:
        _check(self.window, self.watermark, self.key)
        return partial(rates, key=self.key, window=self.window, type=self.type, **self._rest)


class Triggers(_Derived, frozen=True, kw_only=True, tag="triggers"):
    key: str
    value: str
    above: list[float] = []
    below: list[float] = []
    rise: list[float] = []
    fall: list[float] = []
    within: str = "1m"
    type: str | None = None

    def how(self) -> Derivation:
        _check(self.within, self.watermark, self.key, self.value)
        wanted: list[Trigger] = [*map(Above, self.above), *map(Below, self.below)]
        wanted += [Rise(percent, self.within) for percent in self.rise]
        wanted += [Fall(percent, self.within) for percent in self.fall]
        if not wanted:
            raise InvalidPlan("triggers need one at least of above, below, rise and fall")
        return partial(triggers, wanted=wanted, key=self.key, value=self.value, type=self.type, **self._rest)


class Verify(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The traces of the brokers, and what they are held to, as for `vestnik check`."""

    traces: list[str]
    settling: float | None = None
    since: float | None = None
    advertisements: bool = False
    stored: bool = False


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Journals into a lake, and what is to be done with what is there. Paths are as the file has them."""

    journals: list[str] = field(name="from")
    lake: str
    out: str
    types: str | None = None
    match: Match | None = None
    derive: list[Candles | Rates | Triggers] = []
    verify: Verify | None = None


def read_plan(path: Path) -> Plan:
    """The plan in a file, with all paths from the file's folder on; InvalidPlan where it is none."""
    try:
        plan = read_table(tomllib.loads(path.read_text(encoding="utf-8")), Plan)
        for one in plan.derive:
            Filter.parse(one.filter)
            one.how()
    except OSError as error:
        raise InvalidPlan(f"{path}: {error.strerror or error}") from None
    except (VestnikError, Misfit, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidPlan(f"{path}: {error}") from None
    return _checked(_placed(plan, path.absolute().parent), path)


def _placed(plan: Plan, folder: Path) -> Plan:
    def at(name: str) -> str:
        return name if is_address(name) else str(folder / name)

    match, verify = plan.match, plan.verify
    return replace(
        plan,
        journals=[at(name) for name in plan.journals],
        lake=at(plan.lake),
        out=at(plan.out),
        types=None if plan.types is None else at(plan.types),
        match=None if match is None else replace(match, subscriptions=at(match.subscriptions)),
        verify=None if verify is None else replace(verify, traces=[at(name) for name in verify.traces]),
    )


def _checked(plan: Plan, path: Path) -> Plan:
    """The plan, where all that it reads is there, and what it writes has a place."""
    if not plan.journals:
        raise InvalidPlan(f"{path}: from names no data folder and no broker")
    for name in plan.journals:
        try:
            open_journal(name, **({"timeout": PATIENCE} if is_address(name) else {})).close()
        except VestnikError as error:
            raise InvalidPlan(f"{path}: {error}") from None
    read = [plan.match.subscriptions] if plan.match is not None else []
    read += plan.verify.traces if plan.verify is not None else []
    for name in [*read, *([plan.types] if plan.types else [])]:
        if not Path(name).is_file():
            raise InvalidPlan(f"{path}: there is no file {name}")
    if Path(plan.lake).is_relative_to(plan.out) or Path(plan.out).is_relative_to(plan.lake):
        raise InvalidPlan(f"{path}: lake and out are folders apart: what is in out is replaced by the next run")
    return plan


def _check(window: str, watermark: str, *paths: str) -> None:
    millis(window, 1)
    millis(watermark)
    for path in paths:
        path_of(path)
