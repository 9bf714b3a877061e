"""TLS: certificates for connections, and who the other end is by its own."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

from vestnik.errors import InvalidSetting

OLDEST: Final = ssl.TLSVersion.TLSv1_2


def listening(cert: Path, key: Path, ca: Path | None = None) -> ssl.SSLContext:
    """For who is connected to. With `ca`, who connects may show a certificate, which must be one of that authority."""
    context = _context(ssl.Purpose.CLIENT_AUTH, ca)
    load(context, cert, key)
    context.verify_mode = ssl.CERT_NONE if ca is None else ssl.CERT_OPTIONAL
    return context


def dialling(ca: Path | None = None, cert: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """For who connects: the other end shows a certificate for its host, of `ca` or of an authority of the system."""
    context = _context(ssl.Purpose.SERVER_AUTH, ca)
    if cert is not None:
        load(context, cert, key)
    return context


def _context(purpose: ssl.Purpose, ca: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(purpose, cafile=ca)
    except OSError as error:
        raise InvalidSetting("tls_ca", f"{ca} holds no certificates: {error.strerror or error}") from None
    context.minimum_version = OLDEST
    return context


def load(context: ssl.SSLContext, cert: Path, key: Path | None) -> None:
    """Show this certificate from now on; connections that there are go on."""
    try:
        context.load_cert_chain(cert, key, password=lambda: "")  # and not by asking at the terminal
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidSetting("tls_cert", f"{cert} with the key {key or cert} cannot be used: {reason}") from None


def names(certificate: dict[str, Any] | None) -> frozenset[str]:
    """The names in a certificate that was verified: its DNS names, and the common name of its subject."""
    if not certificate:
        return frozenset()
    alternative = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    subject = [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
    return frozenset([*alternative, *subject])
