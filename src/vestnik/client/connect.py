"""Connecting to a broker by its address."""

from __future__ import annotations

import logging
import os
import ssl
from pathlib import Path
from typing import Final

from vestnik.client.environment import CA, CERT, KEY, NAME, TOKEN, URL, VARIABLES, misspelt
from vestnik.client.services import ServiceBus
from vestnik.errors import InvalidSetting, WrongType
from vestnik.transport import tls
from vestnik.transport.addresses import is_loopback, read_url
from vestnik.transport.ends import End, Receiver
from vestnik.transport.tcp import dial

LOG: Final = logging.getLogger(__name__)
NO_TLS: Final = "TLS could not be agreed on; if it is not spoken there, write vestnik://"
DEFAULT_URL: Final = "vestnik://127.0.0.1:8020"


def connect(
    url: str | None = None,
    *,
    name: str | None = None,
    token: str | None = None,
    tls_ca: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    timeout: float | None = 10.0,
) -> ServiceBus:
    """A client of the broker at `url`, for `async with`; what is left out is taken from the environment.

    The variables are VESTNIK_URL, VESTNIK_NAME, VESTNIK_TOKEN, and VESTNIK_CA, VESTNIK_CERT and VESTNIK_KEY, which are
    files; without any the broker is sought on this machine. `vestniks://` means TLS: the broker shows a certificate of
    the authority `tls_ca`, or of one that the system trusts. With `tls_cert` this client shows one, too.

    Whoever enters it waits `timeout` seconds for the first connection, and with None as long as it takes; then it is
    told Unreachable, with the address and what was tried last. A connection that is lost later is waited for.
    """
    for said in misspelt(os.environ, VARIABLES):
        LOG.warning("%s", said)
    address, is_secure = read_url(default_url() if url is None or url == "" else url)
    token = token or os.environ.get(TOKEN)
    if not is_secure:
        if tls_ca or tls_cert or tls_key:
            raise InvalidSetting("url", f"certificates are for TLS: write vestniks://{address}")
        if token and not is_loopback(address.host):
            raise InvalidSetting("token", f"it is not sent where others can read it: write vestniks://{address}")
    ca, cert, key = _file(tls_ca, CA), _file(tls_cert, CERT), _file(tls_key, KEY)
    context = tls.dialling(ca, cert, key) if is_secure else None

    async def reach(receiver: Receiver) -> End:
        try:
            return await dial(receiver, *address, tls=context)
        except (ssl.SSLError, ConnectionResetError) as error:
            if context is None or isinstance(error, ssl.SSLCertVerificationError):
                raise
            raise OSError(0, f"{NO_TLS} ({error.strerror or type(error).__name__})") from None

    return ServiceBus(reach, str(address), name=name or os.environ.get(NAME), token=token, timeout=timeout)


def _file(given: str | Path | None, variable: str) -> Path | None:
    if given is not None and not isinstance(given, str | Path):
        raise WrongType("a certificate or key is the path of a file", given)
    found = given or os.environ.get(variable)
    return Path(found) if found else None


def default_url() -> str:
    """Where a broker is sought when nothing is said."""
    return os.environ.get(URL) or DEFAULT_URL
