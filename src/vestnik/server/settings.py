"""How a broker is set up."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from vestnik.errors import FilterError, InvalidSetting
from vestnik.journal import Settings as Retention
from vestnik.journal.settings import GIB, MIB
from vestnik.model.times import MICROS
from vestnik.recovery.limits import REPEAT_WINDOW, REPEAT_WINDOW_AGE, RecoveryLimits
from vestnik.routing.registry import HIERARCHICAL, make_strategy
from vestnik.server.limits import Limits
from vestnik.server.names import unfit_name
from vestnik.transport.addresses import PORT, Address, is_loopback
from vestnik.wire.replays import Replay

ROLES: Final = ("broker", "router")
DEFAULT_ROUTING: Final = "merging"
WITH_ADVERTISEMENTS: Final = " with advertisements"
HEARTBEAT: Final = 15.0
"""Seconds in which everybody has to be heard from, unless told otherwise."""
SHORTEST_HEARTBEAT: Final = 0.05
LONGEST_HEARTBEAT: Final = 20.0
"""Seconds. A client takes a broker for dead that says nothing for twice that time."""
LARGEST_REPEAT_WINDOW: Final = 1_000_000
"""Events of the largest window. Each takes up to 300 bytes of memory."""
RETAINED_BY: Final = "retain_count", "retain_age", "retain_latest_by"
"""Settings that bound which events are kept, beside their size."""
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
LOG_FORMATS: Final = ("text", "json")


class Settings(Struct, frozen=True, kw_only=True):
    """One that cannot be is refused when it is made, with the reason.

    A broker `name`d so listens at `listen` and is a neighbour of those that it joins. Entries last for `lease` seconds
    unless renewed; every `sweep` seconds it looks for those that were not. A client or neighbour that is silent for two
    times `heartbeat` seconds is taken for dead, before its entries end. A repeat of an event at another broker is
    recognised among the last `repeat_window` events, and for `repeat_window_age` seconds.

    It stores what its clients publish in the folder `data`. It keeps at most `retain_size` bytes and `retain_count`
    events, for `retain_age` seconds, and in time only the latest by the value of the path `retain_latest_by`. It writes
    what happens to the file `trace`.

    At `http` it also has a gateway: pages of the sites `origin` may use it, and it pushes to the hosts `sink`.

    With the certificate `tls_cert` and its `tls_key` it speaks TLS and nothing else; `tls_ca` is the authority that the
    certificates of its neighbours are of. The file `access` says who may do what; `limits`, how much.

    `vestnik serve` logs what is of `log_level` or above, as `log_format` says.
    """

    name: str
    listen: Address = Address("127.0.0.1", PORT)
    join: tuple[Address, ...] = ()
    routing: str = DEFAULT_ROUTING
    advertisements: bool = False
    role: str = "broker"
    data: Path | None = None
    retain_size: int = GIB
    retain_count: int | None = None
    retain_age: float | None = None
    retain_latest_by: str | None = None
    lease: float = 60.0
    sweep: float = 5.0
    heartbeat: float = HEARTBEAT
    repeat_window: int = REPEAT_WINDOW
    repeat_window_age: float = REPEAT_WINDOW_AGE
    trace: Path | None = None
    http: Address | None = None
    origin: tuple[str, ...] = ()
    sink: tuple[str, ...] = ()
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None
    access: Path | None = None
    limits: Limits = Limits()
    log_level: str = "info"
    log_format: str = "text"

    def __post_init__(self) -> None:
        make_strategy(self.routing)
        if self.routing.startswith(HIERARCHICAL):
            raise InvalidSetting("routing", f"{self.routing} needs a root, which brokers that join freely have not")
        if self.role not in ROLES:
            raise InvalidSetting("role", f"is one of {', '.join(ROLES)}, not {self.role}")
        for name, known in (("log_level", LOG_LEVELS), ("log_format", LOG_FORMATS)):
            if getattr(self, name) not in known:
                raise InvalidSetting(name, f"is one of {', '.join(known)}, not {getattr(self, name)}")
        unfit = unfit_name(self.name, within="broker")
        if unfit:
            raise InvalidSetting("name", unfit)
        if self.http is not None and self.http == self.listen and self.http.port:
            reason = f"{self.http} is where the broker listens; its gateway needs a port of its own, such as 8080"
            raise InvalidSetting("http", reason)
        for name in ("origin", "sink"):
            if self.http is None and getattr(self, name):
                raise InvalidSetting(name, f"is for a gateway: set http (--http HOST:PORT), or leave {name} out")
        self._check_security()
        self.retention()
        self._check_times()
        if not 1 <= self.repeat_window <= LARGEST_REPEAT_WINDOW:
            reason = f"is from 1 to {LARGEST_REPEAT_WINDOW:,} events, not {self.repeat_window:,}"
            raise InvalidSetting("repeat_window", f"{reason}; a million of them take up to 300 MB of memory")
        if not 0 < self.repeat_window_age < float("inf"):
            reason = f"is longer than 0 seconds, and has an end, not {self.repeat_window_age:g}"
            raise InvalidSetting("repeat_window_age", f"{reason}; repeat_window bounds it by a number of events")

    def _check_times(self) -> None:
        sweep, lease, heartbeat = self.sweep, self.lease, self.heartbeat
        if not 0 < sweep < float("inf"):
            raise InvalidSetting("sweep", f"is longer than 0 seconds, and has an end, not {sweep:g}")
        if not SHORTEST_HEARTBEAT <= heartbeat <= LONGEST_HEARTBEAT:
            reason = f"is from {SHORTEST_HEARTBEAT:g} to {LONGEST_HEARTBEAT:g} seconds, not {heartbeat:g}"
            raise InvalidSetting("heartbeat", reason)
        if not 2 * SHORTEST_HEARTBEAT <= lease < float("inf"):
            reason = f"is at least {2 * SHORTEST_HEARTBEAT:g} seconds, and has an end, not {lease:g}"
            raise InvalidSetting("lease", reason)
        needs, mends = [], []
        if lease < 2 * heartbeat:
            needs.append(f"at least 2 heartbeats, which are {2 * heartbeat:g} seconds")
            mends.append(f"heartbeat to {lease / 2:g} or less")
        if lease <= sweep:
            needs.append(f"longer than sweep, which is {sweep:g} seconds")
            mends.append(f"sweep to less than {lease:g}")
        if needs:
            reason = f"is {', and '.join(needs)}, not {lease:g}; set {' and '.join(mends)}, or a longer lease"
            raise InvalidSetting("lease", reason)

    @property
    def recovery_limits(self) -> RecoveryLimits:
        """The bounds of what the core remembers, and of how long it waits for readers."""
        return RecoveryLimits(self.repeat_window, self.repeat_window_age, self.limits.stalled, self.limits.in_flight)

    def retention(self) -> Retention:
        """How the journal is kept; InvalidSetting where that cannot be."""
        for name, default in {"retain_size": GIB, **dict.fromkeys(RETAINED_BY)}.items():
            if self.data is None and getattr(self, name) != default:
                raise InvalidSetting(name, "is for a broker that stores: set data")
        if self.retain_age is not None and not self.retain_age > 0:
            raise InvalidSetting("retain_age", f"is longer than nothing, not {self.retain_age} seconds")
        if self.retain_latest_by is not None:
            try:
                Replay(latest_by=self.retain_latest_by).key()
            except (ValueError, FilterError) as error:
                raise InvalidSetting("retain_latest_by", str(error)) from None
        age = None if self.retain_age is None else int(self.retain_age * MICROS)
        segment = min(16 * MIB, max(MIB, self.retain_size // 8))
        return Retention(
            segment_size=segment,
            retain_size=self.retain_size,
            retain_count=self.retain_count,
            retain_age=age,
        )

    def _check_security(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidSetting("tls_cert", "a certificate and its key go together: set tls_cert and tls_key")
        if self.tls_ca is not None and self.tls_cert is None:
            raise InvalidSetting("tls_ca", "is for a broker with a certificate: set tls_cert and tls_key")
        needed = {"tls_cert": self.tls_cert, "tls_key": self.tls_key, "access": self.access}
        missing = [name for name, value in needed.items() if value is None]
        for place, at in (("listen", self.listen), ("http", self.http)):
            if missing and at is not None and not is_loopback(at.host):
                flags = " ".join(f"--{name.replace('_', '-')} FILE" for name in missing)
                raise InvalidSetting(
                    place,
                    f"{at.host} can be reached from other machines, which needs TLS and an access file: "
                    f"set {', '.join(missing)} ({flags}), or listen on 127.0.0.1",
                )

    @property
    def way_of_routing(self) -> str:
        """What neighbours must have in common."""
        return f"{self.routing}{WITH_ADVERTISEMENTS}" if self.advertisements else self.routing
