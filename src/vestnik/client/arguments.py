"""What programs hand over, checked where they do: what is of the wrong kind is said at once, and in their own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any

from vestnik.errors import WrongType, WrongValue
from vestnik.model.events import Event
from vestnik.model.filters import Filter
from vestnik.model.frozen import MAX_INT
from vestnik.wire.origins import ENDLESS, Origin
from vestnik.wire.pages import fitting


def as_filter(given: Filter | str) -> Filter:
    """What is wanted or offered; FilterTooComplex where it is too large to be sent."""
    if not isinstance(given, Filter | str):
        raise WrongType("a filter is a Filter or its text, such as 'price > 10'", given)
    return fitting(Filter.parse(given) if isinstance(given, str) else given)


def check_event(given: object, what: str) -> None:
    if not isinstance(given, Event):
        raise WrongType(what, given)


def check_events(given: object) -> None:
    if isinstance(given, Event):
        raise WrongType("publish_many takes several events, such as a list", given, "publish takes one")
    if not isinstance(given, Iterable):
        raise WrongType("publish_many takes several events, such as a list", given)


def check_text(what: str, given: str | None) -> None:
    """None stands for what is so unless said otherwise."""
    if given is not None and not isinstance(given, str):
        raise WrongType(f"{what} is text", given)
    if given is not None and any("\ud800" <= letter <= "\udfff" for letter in given):
        raise WrongValue(f"{what} is text that can be sent, without lone surrogates", ascii(given))


def check_timeout(what: str, given: float | None) -> None:
    """None stands for as long as it takes; what is less than 0 is over."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | float)):
        raise WrongType(f"{what} is a number of seconds", given)


def check_seconds(what: str, given: float | None) -> None:
    """None stands for any number."""
    check_timeout(what, given)
    if given is not None and not given >= 0:
        raise WrongValue(f"{what} is 0 seconds or more", given)


def check_number(what: str, given: int | None, least: int = 1) -> None:
    """None stands for any number."""
    if given is None:
        return
    if isinstance(given, bool) or not isinstance(given, int):
        raise WrongType(f"{what} is a whole number", given)
    if given < least:
        raise WrongValue(f"{what} is {least} or more", given)
    if given > MAX_INT:
        raise WrongValue(f"{what} is {MAX_INT:,} or less", given)


def check_flag(what: str, given: bool) -> None:
    if not isinstance(given, bool):
        raise WrongType(f"{what} is True or False", given)


def check_cursors(what: str, given: Mapping[str, int] | None) -> None:
    """Check offsets by log, as `Subscription.seen` has them. None stands for no cursors."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise WrongType(f"{what} is a mapping of logs to offsets, such as {{'b1/1': 17}}", given)
    if not given:
        raise WrongValue(f"{what} has 1 cursor or more", 0, "subscribe without it, or with a replay")
    for log, offset in given.items():
        if not isinstance(log, str):
            raise WrongType(f"a log in {what} is text, such as 'b1/1'", log)
        check_log(what, log)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise WrongType(f"the offset of {log} in {what} is a whole number", offset)
        if not 0 <= offset < ENDLESS:
            raise WrongValue(f"the offset of {log} in {what} is from 0 to 2**63 - 2", offset)


def check_log(what: str, log: str) -> None:
    """Check the name of a log. A plain broker name is what earlier releases noted: its number means something else."""
    try:
        Origin.parse(log)
    except ValueError:
        raise WrongValue(
            f"a log in {what} is broker/log, such as 'b1/1'",
            log,
            "positions by the name of a broker are of an earlier release: subscribe with a replay, and note seen again",
        ) from None


def check_callable(what: str, given: Callable[..., Any] | None) -> None:
    if given is not None and not callable(given):
        raise WrongType(f"{what} is a function", given)


def is_async(given: object) -> bool:
    """Whether it is an async function, or an object that is called as one."""
    return iscoroutinefunction(given) or iscoroutinefunction(getattr(given, "__call__", None))  # noqa: B004
