"""Who may come in, and with which rights: the access file.

It is TOML, with a table for each identity. An identity is proved by a token, of which the file has only the hash, or
by a name in a certificate. Tokens are drawn, not chosen, so a plain hash is enough: there is nothing to guess.
"""

from __future__ import annotations

import hmac
import secrets
import tomllib
from collections import Counter
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, ValidationError, convert

from vestnik.broker.rights import EVERYTHING, NOTHING, Rights
from vestnik.errors import FilterError, InvalidAccess
from vestnik.model.filters import Filter
from vestnik.server.names import unfit_name

HASH: Final = "sha256:"
TOKEN: Final = "vestnik_"
"""How tokens begin, so that who finds one knows what it is."""


class Identity(Struct, frozen=True, kw_only=True):
    """Somebody who is known. A broker's name is that of its identity."""

    name: str
    rights: Rights
    tokens: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()


class Access(Struct, frozen=True):
    """All who may come in. No two have a token or the name of a certificate in common."""

    identities: tuple[Identity, ...]

    @staticmethod
    def read(path: Path) -> Access:
        """InvalidAccess where the file cannot be read, or says something that means nothing."""
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
            return Access.of(tables)
        except OSError as error:
            raise InvalidAccess(path, error.strerror or str(error)) from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            hint = "; an identity has one table, with all its hashes in the list tokens"
            raise InvalidAccess(path, f"it is no TOML: {error}{hint if 'twice' in str(error) else ''}") from None
        except InvalidAccess as error:
            raise InvalidAccess(path, error.reason) from None

    @staticmethod
    def of(tables: dict[str, Any]) -> Access:
        """The identities in the tables of an access file."""
        identities = tuple([_identity(name, table) for name, table in tables.items()])
        proofs = Counter([proof for identity in identities for proof in (*identity.tokens, *identity.certificates)])
        twice = [proof for proof, count in proofs.items() if count > 1]
        if twice:
            raise InvalidAccess("", f"{twice[0]} is there twice: it would not say who somebody is")
        return Access(identities)

    def by_token(self, token: str) -> Identity | None:
        """Whose token it is. This takes as long for a wrong one as for a right one."""
        hashed = hash_of(token).encode()
        found = None
        for identity in self.identities:
            for known in identity.tokens:
                if hmac.compare_digest(known.encode(), hashed):
                    found = identity
        return found

    def by_certificate(self, names: Collection[str]) -> Identity | None:
        """Whose certificate has these names."""
        shown = set(names)
        return next((identity for identity in self.identities if shown.intersection(identity.certificates)), None)


def new_token() -> str:
    return TOKEN + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """What the access file has of a token."""
    return HASH + sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a table may say. A right is a filter in text, or all of it, or nothing."""

    tokens: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    publish: str | bool = False
    subscribe: str | bool = False
    replay: str | bool = False
    subscriptions: str | bool = False
    administer: bool = False
    broker: bool = False


def _identity(name: str, data: object) -> Identity:
    try:
        table = convert(data, _Table)
    except ValidationError as error:
        known = ", ".join(_Table.__struct_fields__)
        raise InvalidAccess("", f"[{name}]: {error}; a table for an identity has {known}") from None
    unfit = unfit_name(name, within="identity")
    if unfit:
        raise InvalidAccess("", unfit)
    if not table.tokens and not table.certificates:
        raise InvalidAccess("", f"[{name}]: neither tokens nor certificates; vestnik token new {name} makes a token")
    if table.broker and not table.certificates:
        raise InvalidAccess("", f"[{name}]: a broker proves who it is by a certificate; name it in certificates")
    for token in table.tokens:
        if not _is_hash(token):
            raise InvalidAccess("", f"[{name}]: a token is there as {HASH} and 64 hexadecimal digits, not as itself")
    rights = Rights(
        publish=_bound(name, "publish", table.publish),
        subscribe=_bound(name, "subscribe", table.subscribe),
        replay=_bound(name, "replay", table.replay),
        subscriptions=_bound(name, "subscriptions", table.subscriptions),
        administer=table.administer,
        broker=table.broker,
    )
    return Identity(name=name, rights=rights, tokens=table.tokens, certificates=table.certificates)


def _is_hash(text: str) -> bool:
    digits = text.removeprefix(HASH)
    return text.startswith(HASH) and len(digits) == 64 and set(digits) <= set("0123456789abcdef")


def _bound(name: str, right: str, said: str | bool) -> Filter:
    if isinstance(said, bool):
        return EVERYTHING if said else NOTHING
    try:
        return Filter.parse(said, limits=None)
    except FilterError as error:
        raise InvalidAccess("", f"[{name}] {right}: {error}") from None
