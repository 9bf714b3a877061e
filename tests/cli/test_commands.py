"""What the commands print and how they end, in one process."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from vestnik import Filter
from vestnik.cli import main

QUOTE = '{"type": "market.quote", "source": "nyse", "id": "q1", "data": {"symbol": "ACME", "price": 12.5}}'


def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin)


def printed(*arguments: str, stdin: str | bytes | None = None) -> Any:
    """The JSON object that a command prints."""
    result = run(*arguments, "--json", stdin=stdin)
    assert result.stderr == ""
    return json.loads(result.stdout)


# --- help ---


@pytest.mark.parametrize(
    "words", ["", "filter", "filter check", "filter explain", "filter relate", "filter match", "demo", "demo filters"]
)
def test_every_command_has_help(words: str) -> None:
    result = run(*words.split(), "--help")
    assert result.exit_code == 0 and f"Usage: main {words}".rstrip() in result.stdout


@pytest.mark.parametrize("words", ["", "filter check", "filter explain", "filter relate", "filter match", "demo"])
def test_help_names_the_exit_codes(words: str) -> None:
    assert "Exit codes: 0 " in run(*words.split(), "--help").stdout


def test_version() -> None:
    assert run("--version").stdout == "vestnik, version 0.1.0\n"


@pytest.mark.parametrize(
    "words",
    [
        "nonsense",
        "filter nonsense",
        "filter check",
        "filter relate a=1",
        "demo x",
        "demo filters x",
        "demo --seconds 0",
    ],
)
def test_wrong_usage(words: str) -> None:
    result = run(*words.split())
    assert result.exit_code == 2 and result.stdout == "" and "Usage:" in result.stderr


# --- check ---


def test_check_prints_the_normal_form() -> None:
    result = run("filter", "check", "price > 5 and (price > 3 and EXISTS data.price)")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "price > 5\n1 box, 1 path\n", "")


def test_check_in_json() -> None:
    assert printed("filter", "check", "a.b = 1 OR WIDE = 'x' AND type = 't'") == {
        "filter": "WIDE = 'x' AND type = 't' OR a.b = 1",
        "boxes": 2,
        "paths": ["WIDE", "a.b", "type"],
        "matches": "some",
    }


@pytest.mark.parametrize(
    ("text", "matches", "said"),
    [
        ("FALSE", "none", "matches nothing, its conditions contradict each other or are never true"),
        ("a = 1 AND a = 2", "none", "matches nothing"),
        ("TRUE", "all", "matches every event"),
        ("a = 1 OR b = 2 OR NOT a = 1 AND NOT b = 2", "all", "matches every event"),
    ],
)
def test_check_points_out_what_matches_all_or_nothing(text: str, matches: str, said: str) -> None:
    assert said in run("filter", "check", text).stdout
    assert printed("filter", "check", text)["matches"] == matches


INSTANT = "an instant, written TIMESTAMP '2026-05-01T12:30:00Z'"


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("time > '2026-05-01T12:30:00Z'", "time", INSTANT),
        ("a = 1 OR NOT expires = 'x' AND expires = 'y'", "expires", INSTANT),
        ("priority = 'high'", "priority", "an integer from 0 to 9"),
        ("priority = 12", "priority", "an integer from 0 to 9"),
        ("type = 5", "type", "a string that is not empty"),
        ("ANY subject = 'x'", "subject", "a string that is not empty"),
        ("seq = 0", "seq", "an integer from 1"),
    ],
)
def test_check_points_out_what_is_never_true(text: str, name: str, kind: str) -> None:
    result = run("filter", "check", text)
    assert result.exit_code == 0
    assert result.stderr == f"vestnik: a condition on {name} is never true: {name} is {kind}\n"


@pytest.mark.parametrize("text", ["time > 5", "priority != 12", "NOT EXISTS subject", "x = 1 AND x = 2", "ANY x = 1"])
def test_check_says_nothing_of_other_conditions(text: str) -> None:
    assert run("filter", "check", text).stderr == ""


def test_a_filter_from_standard_input(tmp_path: Path) -> None:
    odd = """ "my-attr" != 'it''s'\n"""
    assert run("filter", "check", "-", stdin=odd).stdout.startswith("\"my-attr\" != 'it''s'\n")
    assert printed("filter", "relate", "-", "x > 2", stdin="x > 1")["covers"] is True
    assert printed("filter", "relate", "x > 1", "-", stdin="x > 2")["covers"] is True
    event = tmp_path / "event.json"
    event.write_text(QUOTE)
    assert printed("filter", "explain", "-", str(event), stdin="price > 10")["matches"] is True
    for words in ("relate - -", "explain - -"):
        result = run("filter", *words.split(), stdin="x > 1")
        assert (result.exit_code, result.stdout) == (2, "") and "only one of the two" in result.stderr
    assert run("filter", "check", "-", stdin=b"a = '\xff'").exit_code == 2


def test_check_shows_where_the_syntax_is_wrong() -> None:
    result = run("filter", "check", "price > 5 AND AND x = 1")
    assert (result.exit_code, result.stdout) == (2, "")
    expected = 'a path, NOT, EXISTS, ANY, ALL, TRUE, FALSE or ( (put "..." around reserved names)'
    assert result.stderr.splitlines() == [
        f"vestnik: the filter is wrong at column 15: expected {expected}",
        "  price > 5 AND AND x = 1",
        "                ^",
    ]


@pytest.mark.parametrize("words", ["run plan.toml", "match --help", "derive candles", "verify trace.jsonl"])
def test_commands_on_spark_say_what_to_install(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("vestnik.spark.session"), "MODULES", ("pyarrow", "no_such_module"))
    result = run("pipeline", *words.split())
    assert result.exit_code == 2
    assert "Spark (no_such_module) needs an optional part: pip install 'vestnik[spark]'" in result.stderr


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("a = '" + "x" * 9000 + "'", "8,192 bytes of text"),
        (" OR ".join(f"a{i} = 1" for i in range(65)), "64 comparisons"),
        ("NOT " * 17 + "a = 1", "16 levels of nesting"),
        (" AND ".join(f"({' OR '.join(f'{x}{i} = 1' for i in range(17))})" for x in "ab"), "256 boxes"),
        (" AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(20)), "256 boxes"),
        ("a MATCHES '((x{0,30}){0,30}){0,30}'", "4,000"),
    ],
)
def test_check_names_the_limit(text: str, limit: str) -> None:
    result = run("filter", "check", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"vestnik: the filter is too complex: more than {limit}")


@pytest.mark.parametrize("text", ["", " ", "\x1b[31m", "a = '\ud800'", "'", "a = 1e999", "a MATCHES '('", "NOPE(a)"])
def test_check_survives_odd_text(text: str) -> None:
    result = run("filter", "check", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("vestnik: the filter is wrong at column ") and "\x1b" not in result.stderr


# --- explain ---


def test_explain_a_match() -> None:
    result = run("filter", "explain", "type IS market AND price < 20", "-", stdin=QUOTE)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("matches\n") and "saw 12.5" in result.stdout


def test_explain_a_near_miss(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(QUOTE)
    result = run("filter", "explain", "symbol = 'ACME' AND price > 20", str(event))
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.splitlines()[-1] == "it would match if: price > 20"


def test_explain_in_json() -> None:
    result = run("filter", "explain", "price > 20 AND EXISTS volume", "-", "--json", stdin=QUOTE)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "matches": False,
        "boxes": [
            [
                {"path": "price", "constraint": "price > 20", "holds": False, "value": 12.5},
                {"path": "volume", "constraint": "EXISTS volume", "holds": False},
            ]
        ],
        "failed": [
            {"path": "price", "constraint": "price > 20", "holds": False, "value": 12.5},
            {"path": "volume", "constraint": "EXISTS volume", "holds": False},
        ],
    }


def test_explain_shows_values_for_people() -> None:
    event = {"type": "t", "time": "2026-01-02T03:04:05Z", "data": {"halted": True, "none": None, "long": "x" * 5000}}
    text = "time > TIMESTAMP '2026-01-01T00:00:00Z' AND halted = TRUE AND EXISTS none AND long LIKE 'x%'"
    result = run("filter", "explain", text, "-", stdin=json.dumps(event))
    assert "saw '2026-01-02T03:04:05Z'" in result.stdout and "saw TRUE" in result.stdout and "saw NULL" in result.stdout
    assert max(map(len, result.stdout.splitlines())) < 200


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (b"", "the JSON text is empty"),
        (b"[]", "an event is a JSON object, not list"),
        (b"{}", "type: is required"),
        (b'{"type": "t", "data": {"x": 1, "x": 2}}', "twice"),
        (b'{"type": "t", "data": {"x": "\xff"}}', "UTF-8"),
    ],
)
def test_explain_refuses_what_is_no_event(event: bytes, reason: str) -> None:
    result = run("filter", "explain", "TRUE", "-", stdin=event)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("vestnik: standard input holds no event: ") and reason in result.stderr


def test_explain_takes_one_event() -> None:
    result = run("filter", "explain", "TRUE", "-", stdin=f"{QUOTE}\n{QUOTE}\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "vestnik: standard input holds several events, one a line; give one\n"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing, folder = str(tmp_path / "missing.json"), str(tmp_path)
    for arguments in (["explain", "TRUE", missing], ["match", missing, "-"], ["match", "-", missing]):
        result = run("filter", *arguments, stdin='{"id": 1, "filter": "TRUE"}')
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"vestnik: {missing}: there is no such file\n"
    result = run("filter", "explain", "TRUE", folder)
    assert result.exit_code == 2 and result.stderr == f"vestnik: {folder}: this is a folder; name a file in it\n"


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    result = run("filter", "explain", "TRUE", "secret.json")
    assert (result.exit_code, result.stderr) == (2, "vestnik: secret.json: no permission to read it\n")


# --- relate ---


def test_relate() -> None:
    assert printed("filter", "relate", "x BETWEEN 1 AND 5", "x BETWEEN 2 AND 3") == {
        "covers": True,
        "covered": False,
        "same": False,
        "overlaps": True,
        "merge": "x BETWEEN 1 AND 5",
        "hull": {"filter": "x BETWEEN 1 AND 5", "unwanted": 0.0},
    }


def test_relate_for_people() -> None:
    result = run("filter", "relate", "x = 1 AND y = 1", "x = 2 AND y = 2")
    assert result.exit_code == 0
    answers = [line[30:] for line in result.stdout.splitlines()]
    assert answers == ["no", "no", "no", "no", "none shorter than the two", "x IN (1, 2) AND y IN (1, 2)", "50.0%"]


@pytest.mark.parametrize(("first", "second", "name"), [("x =", "x = 1", "first"), ("x = 1", "x =", "second")])
def test_relate_says_which_filter_is_wrong(first: str, second: str, name: str) -> None:
    result = run("filter", "relate", first, second)
    assert result.exit_code == 2 and f"the {name} filter is wrong at column 4" in result.stderr


def test_relate_answers_as_the_filters_do() -> None:
    first, second = "name LIKE 'a%'", "name MATCHES '[ab]+' AND EXISTS x"
    F, G = Filter.parse(first), Filter.parse(second)
    found = printed("filter", "relate", first, second)
    assert found["covers"] is F.covers(G) and found["overlaps"] is F.overlaps(G)
    assert found["hull"]["filter"] == str(F.hull(G))
