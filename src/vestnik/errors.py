"""Every error that Vestnik raises on purpose.

VestnikError
├── FilterError
│   ├── FilterSyntaxError    text that is no filter: where, and what was expected
│   ├── PatternError         a LIKE, GLOB or MATCHES pattern that is no pattern: where, and why
│   ├── UnknownKind          a constraint of a kind that this process does not know: its name
│   └── FilterTooComplex     a filter beyond a limit: which limit, and how large it is
├── WrongType                what a program handed over is of the wrong type: what was expected, and what was given
├── WrongValue               what a program handed over cannot be meant: what was expected, and what was given
├── InvalidEvent             an event refused at the door: what is wrong, and where in the event
├── InvalidIndex             a file that holds no index that can be used: which, and why
├── InvalidTrace             a file that holds no trace: its name, the line, and why
├── MissingTrace             traces of a run without those of some brokers: which brokers
├── RepeatedTrace            files that hold the same trace of a broker: which files, and which broker
├── InvalidAddress           text that says not where a broker is: the text, and why
├── InvalidAccess            an access file that cannot be used: which, and why
├── Untrusted                a broker that did not prove who it is: where, and why
├── Unreachable              no broker answered: where, and why
│   └── NoBroker             something else answered: where, and what it speaks
├── TurnedAway               a broker did not let somebody in, or sent it away: the code, and why
├── Disconnected             there is no connection to a broker: what could not be done
├── NotAccepted              a broker refused what it was asked for: what, and why
├── OutcomeUnknown           a broker cannot tell whether it has stored what was published: what, and why
├── InvalidRequest           what came over HTTP and cannot be used: why, and where in it
├── InvalidFrame             bytes from another process that are no message: why
├── InvalidScenario          a scenario that cannot be simulated: what is wrong, and where in it
├── JournalError
│   ├── InvalidJournal       a file of a journal that cannot be read: which, and why
│   ├── JournalLocked        a journal that somebody else has: which, and who
│   ├── JournalFailed        a disk that refused: which file, what was tried, and why
│   ├── TooManyOpenFiles     no descriptor is left to open a file of a journal: which; it passes
│   ├── JournalClosed        a journal that is being closed: which
│   └── MissingEvents        events of a journal that are not to be had: whose, the positions, and why
├── InvalidLake              a folder or file that is no lake, or none that can be used: which, and why
├── NotStaged                what was to be published is not where it was staged: where, and why
├── NotDerived               a query that derives events has failed: why
├── DamagedCheckpoint        a checkpoint that no query can go on from: which file, and why
├── CannotListen             a broker cannot be reached at its address: which, and why
├── InvalidSetting           a setting that means nothing: its name, and why
├── UnknownStrategy          a routing strategy that nobody registered: its name, and those that are known
├── InvalidPlan              a plan of the pipeline that cannot be done: why
├── NoMaster                 no master of a cluster answered: where, and why
├── MissingJava              no Java that Spark can run on: what was looked at, and why not
└── MissingExtra             a part that needs an optional dependency: the line that installs it

Each carries its data as attributes and survives pickling.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import NamedTuple


class VestnikError(Exception):
    """Base of all errors raised on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[VestnikError], args: tuple[object, ...], state: dict[str, object]) -> VestnikError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class FilterError(VestnikError):
    """Something is wrong with a filter."""


class FilterSyntaxError(FilterError):
    """`text` is no filter: at `column` (from 1) something else was `expected`."""

    def __init__(self, text: str, column: int, expected: str) -> None:
        self.text = text
        self.column = column
        self.expected = expected
        super().__init__(f"column {column}: expected {expected}\n{caret(text, column)}")


class PatternError(FilterError):
    """`pattern` is no pattern: at `position` (from 0) `reason`."""

    def __init__(self, pattern: str, position: int, reason: str) -> None:
        self.pattern = pattern
        self.position = position
        self.reason = reason
        super().__init__(f"pattern {pattern!r} at position {position}: {reason}")


class UnknownKind(FilterError):
    """No constraint kind called `name` is registered in this process."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"the constraint kind {name} is not known here; see register_kind")


class FilterTooComplex(FilterError):
    """A filter is beyond `limit`, which allows `allowed`."""

    def __init__(self, limit: str, allowed: int) -> None:
        self.limit = limit
        self.allowed = allowed
        super().__init__(
            f"the filter is too complex: more than {allowed:,} {limit}; write it shorter or as several filters"
        )


class WrongType(VestnikError, TypeError):
    """A program handed over something else than is `expected`; `given` is what it was, in words, `hint` what to do."""

    def __init__(self, expected: str, given: object, hint: str = "") -> None:
        self.expected = expected
        self.given = shown(given)
        self.hint = hint
        super().__init__(f"{expected}, not {self.given}{'; ' if hint else ''}{hint}")


class WrongValue(VestnikError, ValueError):
    """A program handed over something of the right type that cannot be meant; as `WrongType`."""

    def __init__(self, expected: str, given: object, hint: str = "") -> None:
        self.expected = expected
        self.given = shown(given)
        self.hint = hint
        super().__init__(f"{expected}, not {self.given}{'; ' if hint else ''}{hint}")


class InvalidEvent(VestnikError):
    """An event was refused: `reason`, at `path` inside the event (empty for the whole)."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path}: {reason}" if path else reason)


class InvalidIndex(VestnikError):
    """The file at `path` holds no index that can be used: `reason`."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        self.path = fspath(path)
        self.reason = reason
        super().__init__(f"{self.path} {reason}")


class InvalidTrace(VestnikError):
    """`name` holds no trace: at `line` (from 1) `reason`."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        self.name = name
        self.line = line
        self.reason = reason
        super().__init__(f"{name}:{line}: {reason}")


class MissingTrace(VestnikError):
    """Clients were notified of events that these `brokers` accepted, and there is no trace of the brokers."""

    def __init__(self, brokers: Sequence[str]) -> None:
        self.brokers = tuple(brokers)
        if len(brokers) == 1:
            which, who, what = f"the trace of {brokers[0]} is", brokers[0], f"the trace of {brokers[0]}"
        else:
            which, who, what = f"the traces of {' and '.join(brokers)} are", "these brokers", "their traces"
        super().__init__(f"{which} missing: clients were notified of events that {who} accepted; give {what}, too")


class RepeatedTrace(VestnikError):
    """The files `one` and `other` hold the same trace of `broker`, or the same file holds it twice."""

    def __init__(self, one: str, other: str, broker: str) -> None:
        self.one = one
        self.other = other
        self.broker = broker
        if one == other:
            said = f"{one} holds the same trace of {broker} twice; it may be there only once"
        else:
            said = f"{one} and {other} hold the same trace of {broker}; give only one of them"
        super().__init__(said)


ADDRESSES = "vestnik://HOST:PORT, vestniks://HOST:PORT for TLS, or HOST:PORT"


class InvalidAddress(VestnikError):
    """`text` does not say where a broker is: `reason`."""

    def __init__(self, text: str, reason: str, expected: str = ADDRESSES) -> None:
        self.text = text
        self.reason = reason
        self.expected = expected
        super().__init__(f"{text!r} is no address: {reason}; expected {expected}")


class InvalidAccess(VestnikError):
    """The access file at `path` cannot be used: `reason`."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        self.path = fspath(path)
        self.reason = reason
        super().__init__(f"{self.path}: {reason}")


class Untrusted(VestnikError):
    """What answers at `address` did not prove that it is the broker there: `reason`."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        is_unknown = any(word in reason for word in ("issuer", "self-signed", "self signed"))
        hint = "; tls_ca or VESTNIK_CA names the authority to trust" if is_unknown else ""
        super().__init__(f"the broker at {address} is not trusted: {reason}{hint}")


class NoMaster(VestnikError):
    """No master of Spark answered at `address`: `reason`."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"no Spark master at {address}: {reason}; is one running there? local[*] is this machine")


class Unreachable(VestnikError):
    """No broker answered at `address`: `reason`."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"no broker at {address}: {reason}; is one running there? vestnik serve starts one")


class NoBroker(Unreachable):
    """What answers at `address` is no broker: `reason`."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super(Unreachable, self).__init__(f"what answers at {address} is no broker: {reason}")


class TurnedAway(VestnikError):
    """The broker at `address` ended the connection: `code`, a word for programs, and `reason`."""

    def __init__(self, address: str, code: str, reason: str) -> None:
        self.address = address
        self.code = code
        self.reason = reason
        super().__init__(f"the broker at {address} ended the connection: {reason} ({code})")


class Disconnected(VestnikError):
    """There is no connection to a broker: `what` could not be done."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)


class RefusedEvent(NamedTuple):
    """An event that a broker refused: its source and id, and why."""

    source: str
    id: str
    reason: str


def _verb(events: tuple[RefusedEvent, ...]) -> str:
    return "were" if len(events) > 1 else "was"


class NotAccepted(VestnikError):
    """A broker refused `what`: `reason`. Of several events, `refused` are those that it refused, each with why."""

    def __init__(self, what: str, reason: str, refused: tuple[RefusedEvent, ...] = ()) -> None:
        self.what = what
        self.reason = reason
        self.refused = refused
        super().__init__(f"{what} {_verb(refused)} refused: {reason}")


class OutcomeUnknown(VestnikError):
    """The disk of a broker failed while it stored `what`, for `reason`: after a restart it may be there, or not.

    `unknown` lists the events that may be stored, and `refused` those that are surely not.
    """

    def __init__(
        self,
        what: str,
        reason: str,
        unknown: tuple[RefusedEvent, ...] = (),
        refused: tuple[RefusedEvent, ...] = (),
    ) -> None:
        self.what = what
        self.reason = reason
        self.unknown = unknown
        self.refused = refused
        super().__init__(
            f"nobody knows whether {what} {_verb(unknown)} stored: {reason}; publish the same again, with the same "
            "source and id, when the broker was started again: what it has, it takes no second time"
        )


class InvalidRequest(VestnikError):
    """What came over HTTP cannot be used: `reason`, at `where` in it (empty for the whole). `status` answers it."""

    def __init__(self, reason: str, where: str = "", status: int = 400) -> None:
        self.reason = reason
        self.where = where
        self.status = status
        super().__init__(f"{where}: {reason}" if where else reason)


class InvalidFrame(VestnikError):
    """What came from another process is no message, or one cannot be sent: `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class InvalidScenario(VestnikError):
    """A scenario cannot be simulated: `reason`, at `path` inside the scenario (empty for the whole)."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path}: {reason}" if path else reason)


class JournalError(VestnikError):
    """Something is wrong with a journal."""


class InvalidJournal(JournalError):
    """The file at `path`, of a journal, cannot be read: `reason`."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        self.path = fspath(path)
        self.reason = reason
        super().__init__(f"{self.path} {reason}")


class JournalLocked(JournalError):
    """The journal in `directory` belongs to `holder`."""

    def __init__(self, directory: str | PathLike[str], holder: str) -> None:
        self.directory = fspath(directory)
        self.holder = holder
        super().__init__(f"{self.directory} is in use by {holder}; stop it, or choose another directory")


class JournalFailed(JournalError):
    """The disk refused to `action` the file at `path`: `reason`. What was committed before is kept.

    If something `is_left` of what was to be written, it may be read after the next opening.
    """

    def __init__(self, path: str | PathLike[str], action: str, reason: str, *, is_left: bool = False) -> None:
        self.path = fspath(path)
        self.action = action
        self.reason = reason
        self.is_left = is_left
        super().__init__(
            f"could not {action} {self.path}: {reason}; make room or repair the disk, then start again: "
            "what was committed before is kept"
        )


class TooManyOpenFiles(JournalError):
    """The process has no descriptor left to open the file at `path`: `reason`. It passes, and nothing was changed."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        self.path = fspath(path)
        self.reason = reason
        super().__init__(
            f"no descriptor is left to open {self.path}: {reason}; this passes when files or connections are closed: "
            "lower limits.connections, or raise the limit of open files (ulimit -n, LimitNOFILE=)"
        )


class JournalClosed(JournalError):
    """The journal in `directory` is being closed, and is not read any further."""

    def __init__(self, directory: str | PathLike[str]) -> None:
        self.directory = fspath(directory)
        super().__init__(f"the journal in {self.directory} is being closed")


class MissingEvents(JournalError):
    """Events of the journal of `broker`, from position `first` to `last` (None: to its end), are not to be had."""

    def __init__(self, broker: str, first: int, last: int | None, reason: str) -> None:
        self.broker = broker
        self.first = first
        self.last = last
        self.reason = reason
        upto = "on" if last is None else f"to {last} ({last - first + 1:,} positions)"
        super().__init__(
            f"the journal of {broker} cannot be read from position {first} {upto}: {reason}; to go on without these "
            "events, set the option failOnDataLoss to false; to begin a query with what is kept, startingOffsets to "
            "earliest"
        )


class NotStaged(VestnikError):
    """What was to be published is not where it was staged, at `path`: `reason`."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        self.path = fspath(path)
        self.reason = reason
        super().__init__(f"{self.path}: {reason}")


class NotDerived(VestnikError):
    """A query that derives events has failed, for `reason`; what it derived before is where it belongs."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"deriving stopped: {reason}")


class InvalidPlan(VestnikError):
    """A plan for the pipeline is none, for `reason`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class DamagedCheckpoint(VestnikError):
    """No query can go on from a checkpoint, since of its files that at `path` is not as it was written: `reason`."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        self.path = fspath(path)
        self.reason = reason
        super().__init__(
            f"the checkpoint is damaged at {self.path}: {reason}; put the whole folder back from a copy, or name a new "
            "one, with which all is read again from the start, and what a broker does not remember is published again"
        )


class InvalidLake(VestnikError):
    """What is at `path` is no lake, or cannot be used as one: `reason`."""

    def __init__(self, path: str | PathLike[str], reason: str) -> None:
        self.path = fspath(path)
        self.reason = reason
        super().__init__(f"{self.path} {reason}")


class CannotListen(VestnikError):
    """A broker cannot listen at `address`: `reason`."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        self.reason = reason
        super().__init__(f"cannot listen on {address}: {reason}")


class InvalidSetting(VestnikError):
    """The setting `name` means nothing: `reason`."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


class UnknownStrategy(VestnikError):
    """No routing strategy is called `name`; `known` are."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"there is no routing strategy called {name!r}; known are {', '.join(known)}")


class MissingJava(VestnikError):
    """There is no Java that Spark can run on; `looked` says of each place why it is not the one."""

    def __init__(self, looked: list[str]) -> None:
        self.looked = looked
        super().__init__(
            f"Spark needs Java 17 or newer, and found none: {'; '.join(looked)}. Install one with "
            "pip install 'vestnik[spark-jre]', or set JAVA_HOME to one"
        )


class MissingExtra(VestnikError):
    """`feature` needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs an optional part: pip install 'vestnik[{extra}]'")


def shown(value: object) -> str:
    """A value in words: itself where it is short and plain, else what it is."""
    if value is None or isinstance(value, bool | int | float | str):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}" if isinstance(value, str) else f"{text[:40]}..."
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return type(value).__name__


def caret(text: str, column: int) -> str:
    """The line of `text` around `column` with a caret under it, cut to what fits a terminal."""
    line_start = text.rfind("\n", 0, column - 1) + 1
    line_end = text.find("\n", column - 1)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    at = column - 1 - line_start
    first = max(0, at - 50)
    shown = "".join(c if c.isprintable() else " " for c in line[first : first + 100])
    return f"  {shown}\n  {' ' * (at - first)}^"
