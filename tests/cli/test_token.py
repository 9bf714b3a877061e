"""`vestnik token new`, and what is made of it."""

from __future__ import annotations

import tomllib

import pytest
from click.testing import CliRunner

from vestnik.cli import main
from vestnik.server.access import Access


@pytest.mark.parametrize("name", ["anna", "desk-1", 'Jürgen "Q" O\'Hara', "a.b"])
def test_the_table_has_the_hash_of_the_token(name: str) -> None:
    done = CliRunner().invoke(main, ["token", "new", name])
    assert done.exit_code == 0
    token = done.stderr.split()[-1]
    assert token.startswith("vestnik_") and token not in done.stdout
    access = Access.of(tomllib.loads(done.stdout))
    found = access.by_token(token)
    assert found is not None and found.name == name
    assert access.by_token(token[:-1]) is None
    again = CliRunner().invoke(main, ["token", "new", name])
    assert again.stderr.split()[-1] != token


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "x" * 129])
def test_names_that_nobody_can_have(name: str) -> None:
    done = CliRunner().invoke(main, ["token", "new", name])
    assert done.exit_code == 2 and done.stdout == "" and "name" in done.stderr
