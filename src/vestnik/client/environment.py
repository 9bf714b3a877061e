"""The variables by which a client finds its broker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from vestnik.model.nearest import nearest

PREFIX: Final = "VESTNIK_"
URL, NAME, TOKEN = "VESTNIK_URL", "VESTNIK_NAME", "VESTNIK_TOKEN"
CA, CERT, KEY = "VESTNIK_CA", "VESTNIK_CERT", "VESTNIK_KEY"
VARIABLES: Final = URL, NAME, TOKEN, CA, CERT, KEY
OF_BROKERS: Final = "VESTNIK_TLS_CA", "VESTNIK_TLS_CERT", "VESTNIK_TLS_KEY"
"""Variables that look like those of clients."""


def misspelt(environment: Mapping[str, str], known: Collection[str]) -> list[str]:
    """What is to be said of variables that nobody reads and that are like one of those known."""
    names = [name.removeprefix(PREFIX) for name in known]
    said: list[str] = []
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in known and variable not in OF_BROKERS:
            found = nearest(variable.removeprefix(PREFIX), names)
            if found:
                said.append(f"the variable {variable} means nothing; did you mean {PREFIX}{found}?")
    return said
