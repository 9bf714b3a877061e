"""Which names clients, brokers and identities may have."""

from __future__ import annotations

from typing import Final

LONGEST: Final = 128
"""Characters of a name."""
APART: Final = "/"
"""Between an identity and the name of its session: so nobody's session has the name of another's, or of a broker."""


def unfit_name(name: str, *, within: str = "client") -> str:
    """Why a `client`, a `broker` or an `identity` cannot be called so; empty where it can."""
    if not name:
        return f"a {within} without a name; choose one"
    if len(name) > LONGEST:
        return f"a name of {len(name):,} characters; at most {LONGEST} are allowed"
    if not name.isprintable():
        return f"the name {name!a} has characters that cannot be printed"
    if within != "client" and APART in name:
        return f"the {within} name {name} has a {APART}, which is between an identity and its session"
    return ""
