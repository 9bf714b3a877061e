"""Who is let in, and what of their messages.

With an access file everybody proves an identity. A client's session belongs to its identity: the broker calls it
`identity/name`, so nobody can take over the session of another, and nobody is taken for a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final, NamedTuple

from msgspec.structs import replace

from vestnik.broker.clients import Subscription
from vestnik.broker.core import BrokerCore
from vestnik.broker.rights import Rights
from vestnik.server.access import Access, Identity
from vestnik.server.limits import Limits
from vestnik.server.names import APART, LONGEST, unfit_name
from vestnik.wire.messages import Advertise, Fetch, Hello, Malformed, Message, NodeId, Review, Subscribe

LIMITED: Final = frozenset({Subscribe, Advertise, Fetch, Review})
"""Messages of which there may be too many."""
MOST_CHANGES: Final = 100
"""Filters that are remembered of a subscription that lags and was changed."""


class Guest(NamedTuple):
    """Who is at the other end of a connection, brokers in which life. Without an access file nobody has an identity."""

    name: NodeId
    is_broker: bool
    identity: Identity | None = None
    life: int = 0


class Denied(NamedTuple):
    """Why somebody is not let in, in a word and in a sentence."""

    code: str
    reason: str


class Door:
    """Keeps count of who is inside."""

    def __init__(self, access: Access | None = None, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._access = access
        self._inside: Counter[str] = Counter()  # connections of each identity

    def admit_by(self, access: Access) -> set[str]:
        """Who comes in from now on; the identities that are not as they were."""
        before = {} if self._access is None else {identity.name: identity for identity in self._access.identities}
        after = {identity.name: identity for identity in access.identities}
        self._access = access
        return {name for name in before | after if before.get(name) != after.get(name)}

    # --- who comes in ---

    def who(self, hello: Hello, certificates: Collection[str]) -> Guest | Denied:
        """Who has said Hello, and showed a certificate with these names."""
        if hello.is_broker:
            return self.neighbour(hello.name, certificates, hello.life)
        unfit = unfit_name(hello.name)
        if unfit:
            return Denied("name", unfit)
        if self._access is None:
            return Guest(hello.name, False)
        if hello.token:
            identity = self._access.by_token(hello.token)
            why = "the token is not known here"
        else:
            identity = self._access.by_certificate(certificates)
            why = "say who you are: with a token (VESTNIK_TOKEN), or a certificate that is known here"
        if identity is None:
            return Denied("token", why)
        return Guest(f"{identity.name}{APART}{hello.name}", False, identity)

    def neighbour(self, name: NodeId, certificates: Collection[str], life: int = 0) -> Guest | Denied:
        """A broker that says so, or that was connected to."""
        unfit = unfit_name(name, within="broker")
        if unfit:
            return Denied("name", unfit)
        if self._access is None:
            return Guest(name, True, life=life)
        identity = self._access.by_certificate(certificates)
        if identity is None or identity.name != name or not identity.rights.broker:
            shown = ", ".join(sorted(certificates)) or "none"
            return Denied("rights", f"{name} may not be a neighbour by its certificate ({shown})")
        return Guest(name, True, identity, life)

    def crowded(self, guest: Guest, inside: int) -> Denied | None:
        """Whether there is no room for one more, where so many are inside."""
        limits = self.limits
        if inside >= limits.connections:
            return Denied("busy", f"there are {limits.connections:,} connections, which is the limit connections")
        if guest.identity and self._inside[guest.identity.name] >= limits.identity_connections:
            most = f"{limits.identity_connections:,} connections, which is the limit identity_connections"
            return Denied("busy", f"{guest.identity.name} has {most}")
        return None

    def entered(self, guest: Guest) -> None:
        if guest.identity:
            self._inside[guest.identity.name] += 1

    def left(self, guest: Guest) -> None:
        if guest.identity:
            self._inside[guest.identity.name] -= 1

    # --- what clients say ---

    def permitted(self, message: Message, guest: Guest, core: BrokerCore) -> Message:
        """What is to become of a message: itself, what of it there is a right to, or a refusal."""
        if guest.identity is not None:
            message = guest.identity.rights.permitted(message)
        if type(message) not in LIMITED:
            return message
        client = core.clients.get(guest.name)
        match message:
            case Subscribe(name, window=window):
                known = client.subscriptions if client else {}
                wrong = self._too_many(name, known, "subscriptions")
                if name in known:
                    wrong = wrong or _changed_too_often(known[name], message)
                if guest.identity is not None and name in known:
                    is_past = core.recovery.readers.is_in_past((guest.name, name))
                    wrong = wrong or (
                        _changed_too_early(known[name], message, guest.identity.rights) if is_past else ""
                    )
                if window > self.limits.keep:
                    wrong = f"{window:,} notifications in flight; the limit keep is {self.limits.keep:,}"
                return _refused(message, wrong) if wrong else self._bounded(message)
            case Advertise(name):
                wrong = self._too_many(name, client.advertisements if client else (), "advertisements")
                return _refused(message, wrong) if wrong else message
            case Fetch() | Review():
                open, most = core.under_way(guest.name), self.limits.fetches
                if len(open) >= most and message.request not in open:
                    return _refused(message, f"{len(open)} others are under way; the limit fetches is {most}")
                return self._bounded(message) if isinstance(message, Fetch) else message
        return message

    def _too_many(self, name: str, known: Collection[str], what: str) -> str:
        if len(name) > LONGEST:
            return f"a name of {len(name):,} characters; at most {LONGEST} are allowed"
        most = self.limits.subscriptions
        if name not in known and len(known) >= most:
            return f"this client has {len(known):,} {what}; the limit subscriptions is {most:,}"
        return ""

    def _bounded(self, message: Subscribe | Fetch) -> Message:
        """With a replay of no more than there may be."""
        replay, most = message.replay, self.limits.replay
        if replay is None:
            return message
        if replay.last is not None and replay.last > most:
            return _refused(message, f"a replay of {replay.last:,} events; the limit replay is {most:,}")
        return replace(message, replay=replace(replay, most=min(replay.most or most, most)))


def unlike_lease(own: float, hello: Hello) -> Denied | None:
    """Return why a broker with another lease is no neighbour: with the shorter one, entries expire before a renewal.

    A broker of an earlier release does not say its lease, and is let in.
    """
    if hello.lease in (0.0, own):
        return None
    both = f"this broker has a lease of {own:g} seconds, {hello.name} one of {hello.lease:g}"
    return Denied("lease", f"{both}; give all linked brokers the same --lease")


def _changed_too_early(before: Subscription, message: Subscribe, rights: Rights) -> str:
    """Why a subscription cannot be changed: what it is still to get of the past would be that of another filter."""
    if not before.goes_on_with(message):
        return ""
    if before.filter.covers(message.filter) or rights.may_replay(message.filter):
        return ""
    return "it is still to get some of the past, and there is no right to replay that of another filter: subscribe anew"


def _changed_too_often(before: Subscription, message: Subscribe) -> str:
    """Why a subscription cannot be changed: the filters that it had are remembered until it comes to the present."""
    if len(before.reader.earlier) < MOST_CHANGES or before.filter == message.filter or not before.goes_on_with(message):
        return ""
    return f"it was changed {MOST_CHANGES} times and lags: take what it was sent, or subscribe anew"


def _refused(message: Subscribe | Advertise | Fetch | Review, reason: str) -> Malformed:
    return Malformed(reason, request=message.request)
