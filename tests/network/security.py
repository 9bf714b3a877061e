"""Certificates, tokens and access files, for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import trustme

import vestnik
from network.worlds import ANYWHERE
from vestnik.client.bus import Bus
from vestnik.server.access import hash_of
from vestnik.server.process import Broker
from vestnik.server.settings import Settings
from vestnik.transport.addresses import read_address

PAST = datetime(2020, 1, 1, tzinfo=UTC)


class Papers(NamedTuple):
    """A certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """Issues certificates into a folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._ca = trustme.CA()
        self._folder = folder
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def issue(self, *names: str, expired: bool = False) -> Papers:
        issued = self._ca.issue_cert(*names, not_before=PAST if expired else None, not_after=PAST if expired else None)
        papers = Papers(self._folder / f"{names[0]}.{expired}.pem", self._folder / f"{names[0]}.{expired}.key")
        for number, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(str(papers.cert), append=number > 0)
        issued.private_key_pem.write_to_path(str(papers.key))
        return papers


def access_file(folder: Path, text: str, **tokens: str) -> Path:
    """An access file, in which {name} stands for the hash of the token of that name."""
    path = folder / "access.toml"
    path.write_text(text.format(**{name: hash_of(token) for name, token in tokens.items()}), encoding="utf-8")
    return path


def secure_broker(name: str, authority: Authority, access: Path, join: tuple[Broker, ...] = (), **more: Any) -> Broker:
    """A broker that speaks TLS, with a certificate for its name and for this machine."""
    papers = more.pop("papers", None) or authority.issue(name, "127.0.0.1")
    addresses = tuple(read_address(other.address) for other in join)
    return Broker(
        Settings(
            name=name,
            listen=ANYWHERE,
            join=addresses,
            tls_cert=papers.cert,
            tls_key=papers.key,
            tls_ca=authority.file,
            access=access,
            **more,
        )
    )


def secure_client(at: Broker, authority: Authority, name: str | None = None, **options: Any) -> Bus:
    return vestnik.connect(f"vestniks://{at.address}", name=name, tls_ca=authority.file, **options)
