"""What was probably meant where a name is misspelt."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

ALIKE: Final = 0.66
"""How much two names have to have in common, from 0 to 1."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The name that is most like this one; empty where none is."""
    return next(iter(get_close_matches(name, list(known), 1, ALIKE)), "")


def meant(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is not known: what it may be instead."""
    names = list(known)
    found = nearest(name, names)
    return f"; did you mean {found}?" if found else f"; known are {', '.join(names)}"
