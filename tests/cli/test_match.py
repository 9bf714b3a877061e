"""`vestnik filter match`: many filters, many events, some of them bad."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from vestnik import Event, Filter, MissingExtra
from vestnik.cli import main
from vestnik.cli.finder import Finder
from vestnik.cli.lines import batches

FILTERS = """{"id": "cheap", "filter": "price < 10"}
{"id": 7, "filter": "symbol = 'ACME'"}
"""
EVENTS = """{"type": "q", "id": "e1", "source": "s", "data": {"symbol": "ACME", "price": 5}}
{"type": "q", "id": "e2", "source": "s", "data": {"symbol": "INIT", "price": 50}}

{"type": "q", "id": "e3", "source": "s", "data": {"symbol": "ACME", "price": 50}}
"""


@pytest.fixture
def filters(tmp_path: Path) -> str:
    path = tmp_path / "filters.jsonl"
    path.write_text(FILTERS)
    return str(path)


def match(*arguments: str, stdin: str | bytes = EVENTS) -> Result:
    return CliRunner().invoke(main, ["filter", "match", *arguments], input=stdin)


def test_columns(filters: str) -> None:
    result = match(filters, "-")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "1\te1\tcheap,7\n2\te2\t\n4\te3\t7\n"


def test_json_lines(filters: str) -> None:
    result = match(filters, "-", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"line": 1, "source": "s", "id": "e1", "filters": ["cheap", 7]},
        {"line": 2, "source": "s", "id": "e2", "filters": []},
        {"line": 4, "source": "s", "id": "e3", "filters": [7]},
    ]


def test_counts(filters: str) -> None:
    assert match(filters, "-", "--counts").stdout == "1\te1\t2\n2\te2\t0\n4\te3\t1\n"
    first = match(filters, "-", "--counts", "--json").stdout.splitlines()[0]
    assert json.loads(first) == {"line": 1, "source": "s", "id": "e1", "matches": 2}


def test_filters_may_be_standard_input(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text(EVENTS)
    assert match("-", str(events), stdin=FILTERS).stdout.startswith("1\te1\tcheap,7\n")
    result = match("-", "-")
    assert result.exit_code == 2 and "only one of the two" in result.stderr


def test_empty_files(filters: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    result = match(filters, str(empty))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    result = match(str(empty), "-")
    assert (result.exit_code, result.stdout) == (0, "1\te1\t\n2\te2\t\n4\te3\t\n")
    assert result.stderr == f"vestnik: {empty} holds no filters, so nothing matches\n"


def test_a_file_without_any_event(filters: str) -> None:
    result = match(filters, "-", stdin=json.dumps({"type": "q", "data": {"price": 5}}, indent=2))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("could not be read; no line holds an event; write each event on one line\n")


def test_unreadable_events_are_reported_and_the_rest_is_matched(filters: str) -> None:
    lines = [b'{"type": "q", "id": "a"}', b"nonsense", b'{"id": "b"}', b"\xff\xfe", b'{"type": "q", "id": "c"}']
    result = match(filters, "-", stdin=b"\r\n".join(lines))
    assert (result.exit_code, result.stdout) == (1, "1\ta\t\n5\tc\t\n")
    said = result.stderr.splitlines()
    assert [line.partition(": ")[0] for line in said[:3]] == [f"standard input:{number}" for number in (2, 3, 4)]
    assert said[1] == "standard input:3: type: is required"
    assert said[3:] == ["vestnik: standard input: 3 lines could not be read; the others were matched"]


def test_reports_are_bounded(filters: str) -> None:
    result = match(filters, "-", stdin=b"x\n" * 1000 + b'{"type": "q", "id": "a"}')
    assert (result.exit_code, result.stdout) == (1, "1001\ta\t\n")
    assert len(result.stderr.splitlines()) == 11
    assert "1,000 lines could not be read (the first 10 are shown)" in result.stderr


def test_a_long_reason_is_cut(filters: str) -> None:
    event = json.dumps({"type": "q", "data": {"x" * 100_000: 2**70}})
    assert len(match(filters, "-", stdin=event).stderr) < 1000


def test_a_line_beyond_all_measure(filters: str) -> None:
    huge = b'{"type": "q", "data": {"x": "' + b"y" * (17 << 20) + b'"}}'
    result = match(filters, "-", stdin=huge + b'\n{"type": "q", "id": "a"}')
    assert (result.exit_code, result.stdout) == (1, "2\ta\t\n")
    assert "standard input:1: the line is longer than 16 MiB" in result.stderr


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON text"),
        ("[]", 'expected {"id": ..., "filter": "..."}'),
        ('{"id": "x"}', 'expected {"id": ..., "filter": "..."}'),
        ('{"id": "x", "filter": "a = 1", "to": "y"}', '"to" is unknown; expected {"id": ..., "filter": "..."}'),
        ('{"filter": "a = 1"}', "expected an id that is a string or an integer"),
        ('{"id": true, "filter": "a = 1"}', "expected an id that is a string or an integer"),
        ('{"id": "cheap", "filter": "a = 1"}', 'the id "cheap" is taken by an earlier line'),
        ('{"id": "x", "filter": "a ="}', "column 4: expected a value"),
        ('{"id": "x", "filter": "' + "NOT " * 20 + 'a = 1"}', "16 levels of nesting"),
    ],
)
def test_a_bad_filter_stops_everything(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "filters.jsonl"
    path.write_text(f"{FILTERS}{line}\n")
    result = match(str(path), "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{path}:3: ") and reason in result.stderr
    assert result.stderr.endswith("1 line could not be read; correct the file: nothing was matched\n")


def test_ids_cannot_break_the_columns_or_the_terminal(filters: str) -> None:
    event = json.dumps({"type": "q", "source": "s", "id": "a\tb\n\x1b[31m\x9b"})
    assert match(filters, "-", stdin=event).stdout == "1\ta\\x09b\\x0a\\x1b[31m\\x9b\t\n"
    assert json.loads(match(filters, "-", "--json", stdin=event).stdout)["id"] == "a\tb\n\x1b[31m\x9b"


def test_ids_of_filters_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "filters.jsonl"
    ids = [1, "1", "-1", "a,b", "a b", 'a"b', "", "it's", "a\tb", "ä", "x-1"]
    path.write_text("".join(json.dumps({"id": id, "filter": "TRUE"}) + "\n" for id in ids))
    cell = match(str(path), "-", stdin='{"type": "q", "id": "e"}').stdout.removeprefix("1\te\t").rstrip("\n")
    assert cell == r"""1,"1","-1","a,b","a b","a\"b","",it's,"a\tb",ä,x-1"""


# --- the parts ---


def some_events(count: int) -> list[Event]:
    return [Event("q", {"n": number % 7, "tags": ["a"] * (number % 3)}, id=str(number)) for number in range(count)]


WANTED = [Filter.parse(text) for text in ("n < 3", "n = 5 OR n = 2", "ANY tags = 'a'", "TRUE", "FALSE", "NOT n = 1")]


@pytest.mark.parametrize("after", [0, 3, 1000])
def test_compiled_and_one_by_one_are_the_same(after: int) -> None:
    events = some_events(20)
    truth = [[at for at, wanted in enumerate(WANTED) if wanted.matches(event)] for event in events]
    finder, counter = Finder(WANTED, after), Finder(WANTED, after)
    assert [found for at in range(0, 20, 5) for found in finder.find(events[at : at + 5])] == truth
    assert [count for at in range(0, 20, 5) for count in counter.count(events[at : at + 5])] == list(map(len, truth))


def test_without_the_extra_events_are_matched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from vestnik import matching

    def refuse(name: str) -> None:
        raise MissingExtra("compiling", "fast")

    monkeypatch.delitem(vars(matching), "compile_filters", raising=False)
    monkeypatch.setattr(matching, "__getattr__", refuse)
    finder = Finder(WANTED, 0)
    assert finder.find(some_events(1)) == finder.find(some_events(1)) == [[0, 3, 5]]


class Trickle(BytesIO):
    """Gives a few bytes at a time, as a pipe does."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(3)


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b" "))), st.integers(1, 9))
def test_lines_come_whole_however_they_are_cut(lines: list[bytes], chunk: int) -> None:
    text = b"\n".join(lines)
    expected = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    assert [tuple(line) for batch in batches(BytesIO(text), chunk) for line in batch.lines] == expected
    assert sum(batch.size for batch in batches(Trickle(text))) == len(text)
    short = [(number, line if len(line) <= 5 else None) for number, line in enumerate(lines, 1)]
    kept = [(number, line) for number, line in short if line is None or line.strip()]
    assert [tuple(line) for batch in batches(BytesIO(text), chunk, 5) for line in batch.lines] == kept
