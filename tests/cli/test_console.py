"""The console script itself: streams, signals, pipes and what it loads."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from vestnik import Event
from vestnik.cli.demo.filters import tour
from vestnik.matching import Matcher

VESTNIK = Path(sys.executable).with_name("vestnik")
EVENT = '{"type": "q", "id": "e%d", "data": {"n": %d}}\n'


@pytest.fixture
def filters(tmp_path: Path) -> Path:
    path = tmp_path / "filters.jsonl"
    path.write_text('{"id": "all", "filter": "TRUE"}\n{"id": "ä", "filter": "n > 2"}\n', encoding="utf-8")
    return path


def run(
    *arguments: str | Path, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [VESTNIK, *arguments], input=stdin, capture_output=True, timeout=60, env=os.environ | (env or {})
    )


def test_results_and_messages_are_apart(filters: Path) -> None:
    done = run("filter", "match", filters, "-", "--json", stdin=b"{}\n" + (EVENT % (1, 5)).encode())
    assert done.returncode == 1
    assert json.loads(done.stdout) == {"line": 2, "source": "local", "id": "e1", "filters": ["all", "ä"]}
    assert done.stderr.startswith(b"standard input:1: type: is required\n")


def test_a_wrong_filter() -> None:
    done = run("filter", "check", "price >")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines() == [
        "vestnik: the filter is wrong at column 8: expected a value",
        "  price >",
        "         ^",
    ]


def test_an_argument_that_is_not_utf8() -> None:
    done = subprocess.run([VESTNIK, "filter", "check", b"a = '\xff'"], capture_output=True, timeout=60)
    assert done.returncode == 2 and b"expected text without lone surrogates" in done.stderr


def test_an_encoding_that_lacks_the_characters(filters: Path) -> None:
    plain = {"PYTHONIOENCODING": "ascii"}
    done = run("filter", "match", filters, "-", stdin=(EVENT % (1, 5)).encode(), env=plain)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\te1\tall,\\xe4\n", b"")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_json_is_ascii_whatever_the_encoding(encoding: str, filters: Path, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text('{"type": "q", "id": "e€", "data": {"n": 5, "s": "€ä"}}', encoding="utf-8")
    for command in (
        ["check", "s = '€ä'"],
        ["explain", "s = '€ä'", event],
        ["relate", "s = '€ä'", "s = 'ä'"],
        ["match", filters, event],
    ):
        done = run("filter", *command, "--json", env={"PYTHONIOENCODING": encoding})
        assert done.returncode == 0 and done.stdout.isascii()
        assert "ä" in str(json.loads(done.stdout))


def test_a_reader_that_goes_away(filters: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("".join(EVENT % (number, number) for number in range(20_000)))
    command = f"{VESTNIK} filter match {filters} {events} | head -1; echo ${{PIPESTATUS[0]}}"
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, env=buffered)
    assert done.stdout.splitlines() == [b"1\te0\tall", b"141"] and done.stderr == b""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("filter", "check", "TRUE"), ("filter", "--help"), ("--help",), ("--version",)])
def test_a_full_disk(arguments: tuple[str, ...], unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([VESTNIK, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60, env=environment)
    assert (done.returncode, done.stderr) == (2, b"vestnik: [Errno 28] No space left on device\n")


@pytest.mark.parametrize(
    "arguments", [("filter", "check", "price >"), ("filter", "check"), ("serve", "--listen", "x:y")]
)
def test_messages_that_cannot_be_written_leave_the_exit_code(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([VESTNIK, *arguments], stdout=subprocess.PIPE, stderr=full, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")


def test_closed_streams(filters: Path) -> None:
    command = f"{VESTNIK} filter match {filters} - <&-; echo $?; {VESTNIK} filter check TRUE >&-; echo $?"
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"2\n0\n", b"vestnik: standard input is closed; name a file\n")


def test_a_live_stream_is_answered_at_once_and_ctrl_c_ends_it(filters: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([VESTNIK, "filter", "match", filters, "-"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin and process.stdout and process.stderr
        for number in range(3):
            process.stdin.write((EVENT % (number, number)).encode())
            process.stdin.flush()
            assert process.stdout.readline() == f"{number + 1}\te{number}\tall\n".encode()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b"vestnik: interrupted\n"


def test_progress_is_for_a_terminal(filters: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("".join(EVENT % (number, number) for number in range(100)))
    shown, screen = pty.openpty()
    command = [str(VESTNIK), "filter", "match", str(filters), str(events)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=screen, timeout=60, env=os.environ | {"TERM": "xterm"}
    )
    os.close(screen)
    drawn = os.read(shown, 100_000)
    os.close(shown)
    assert done.returncode == 0 and b"matching" in drawn
    assert done.stdout == run("filter", "match", filters, events).stdout and b"\x1b" not in done.stdout
    assert run("filter", "match", filters, events).stderr == b""


@pytest.mark.parametrize("words", ["--help", "filter --help", "filter match --help", "filter check TRUE"])
def test_what_is_slow_to_load_is_not_loaded(words: str) -> None:
    code = (
        f"import sys\nfrom vestnik.cli import main\ntry:\n    main({words.split()!r})\nexcept SystemExit:\n    pass\n"
    )
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert not {"numpy", "numba", "pyarrow", "rich"} & set(done.stdout.splitlines()[-1].split())


def test_a_filter_that_the_shell_cut_in_two(tmp_path: Path) -> None:
    with (tmp_path / "10").open("wb") as file:
        command = [str(VESTNIK), "sub", "price"]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, timeout=60, encoding="utf-8")
    assert done.returncode == 2 and done.stderr.endswith("put the filter in quotes\n")
    assert b"quotes" not in run("sub", "price").stderr


def test_the_demo_in_a_pipe() -> None:
    done = run("demo", "filters")
    assert done.returncode == 0 and done.stderr == b"" and b"\x1b" not in done.stdout
    assert "it would match if: price < 12" in done.stdout.decode()


def test_the_demo_does_not_measure_what_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    class Loading(Matcher[int]):
        loaded = False

        def match(self, event: Event) -> set[int]:
            nonlocal now
            now += 0.00001 if self.loaded else 1
            self.loaded = True
            return super().match(event)

    monkeypatch.setattr("vestnik.cli.demo.filters.Matcher", Loading)
    page = StringIO()
    tour(Console(file=page, width=80, highlight=False), lambda: now)
    assert "1,000 events, 10.0 us each" in page.getvalue()


def test_the_demo_is_the_same_each_time() -> None:
    ticks = iter(range(1000))

    def shown() -> str:
        page = StringIO()
        tour(Console(file=page, width=80, highlight=False), lambda: next(ticks) * 0.001)
        return page.getvalue()

    assert shown() == shown()
