"""`vestnik token new`, and what is made of it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from vestnik.cli import main
from vestnik.errors import InvalidAccess
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


def test_a_token_is_added_to_a_file_once(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    for name in ("anna", "bert"):
        done = CliRunner().invoke(main, ["token", "new", name, "--access", str(file)])
        assert (done.exit_code, done.stdout) == (0, "")
        found = Access.read(file).by_token(done.stderr.split()[-1])
        assert found is not None and found.name == name
    before = file.read_text()
    again = CliRunner().invoke(main, ["token", "new", "anna", "--access", str(file)])
    assert again.exit_code == 2 and "there is a table [anna] already; vestnik token new anna without" in again.stderr
    assert file.read_text() == before


def test_a_file_with_two_tables_of_a_name_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(2 * CliRunner().invoke(main, ["token", "new", "anna"]).stdout)
    with pytest.raises(InvalidAccess, match="an identity has one table, with all its hashes in the list tokens"):
        Access.read(file)
