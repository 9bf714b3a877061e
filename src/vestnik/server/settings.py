"""How a broker is set up."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from vestnik.errors import InvalidSetting
from vestnik.routing.registry import HIERARCHICAL, make_strategy
from vestnik.transport.addresses import PORT, Address, is_loopback

ROLES: Final = ("broker", "router")


class Settings(Struct, frozen=True, kw_only=True):
    """One that cannot be is refused when it is made, with the reason.

    A broker `name`d so listens at `listen` and is a neighbour of those that it joins. Entries last for `lease` seconds
    unless renewed; every `sweep` seconds it looks for those that were not. What its clients publish it stores in the
    folder `data`; what happens it writes to the file `trace`.

    At `http` it also has a gateway: pages of the sites `origin` may use it, and it pushes to the hosts `sink`.
    """

    name: str
    listen: Address = Address("127.0.0.1", PORT)
    join: tuple[Address, ...] = ()
    routing: str = "merging"
    advertisements: bool = False
    role: str = "broker"
    data: Path | None = None
    lease: float = 60.0
    sweep: float = 5.0
    trace: Path | None = None
    http: Address | None = None
    origin: tuple[str, ...] = ()
    sink: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        make_strategy(self.routing)
        if self.routing.startswith(HIERARCHICAL):
            raise InvalidSetting("routing", f"{self.routing} needs a root, which brokers that join freely have not")
        if self.role not in ROLES:
            raise InvalidSetting("role", f"is one of {', '.join(ROLES)}, not {self.role}")
        for name, at in (("listen", self.listen), ("http", self.http)):
            if at is not None and not is_loopback(at.host):
                raise InvalidSetting(name, f"{at.host} can be reached by others, and there is no security yet")
        if not self.name:
            raise InvalidSetting("name", "must not be empty")
        if not 0 < self.sweep < self.lease < float("inf"):
            raise InvalidSetting("lease", "must be longer than sweep, and that longer than nothing")

    @property
    def way_of_routing(self) -> str:
        """What neighbours must have in common."""
        return f"{self.routing} with advertisements" if self.advertisements else self.routing
