"""`vestnik pub` and `vestnik sub`, as processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from network.test_durable import process
from vestnik.wire.pages import LARGEST_EVENT

VESTNIK = Path(sys.executable).with_name("vestnik")


def vestnik(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [VESTNIK, *arguments], input=text, capture_output=True, encoding="utf-8", timeout=60, check=False
    )


def test_events_go_through_pipes(tmp_path: Path) -> None:
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path)) as (_, url):
        lines = "".join(json.dumps({"type": "q", "data": {"price": price}}) + "\n" for price in range(3000))
        published = vestnik("pub", "--url", url, text=lines + "no event\n")
        assert published.returncode == 1 and "3001" in published.stderr
        one = vestnik("pub", "trade", "price=-1", "symbol=ACME", "--url", url, "--source", "me")
        assert (one.returncode, one.stdout, one.stderr) == (0, "", "")
        found = vestnik("sub", "EXISTS price", "--url", url, "--replay", "all", "-c", "3001", "-W", "30")
        prices = [json.loads(line)["data"]["price"] for line in found.stdout.splitlines()]
        assert (prices, found.returncode, found.stderr) == ([*range(3000), -1], 0, "")
        few = vestnik("sub", "EXISTS price", "--url", url, "--replay", "last=2", "-c", "3", "-W", "1")
        assert (len(few.stdout.splitlines()), few.returncode) == (2, 1)


def test_an_event_that_is_too_large_is_named_by_its_line_and_the_others_are_published() -> None:
    with process("--listen", "127.0.0.1:0") as (_, url):
        events = [{"type": "q", "data": {"text": text}} for text in ("a", "x" * LARGEST_EVENT, "b")]
        published = vestnik("pub", "--url", url, text="".join(json.dumps(event) + "\n" for event in events))
        assert published.returncode == 1 and "standard input:2: event" in published.stderr
        found = vestnik("sub", "TRUE", "--url", url, "--replay", "all", "-c", "2", "-W", "30")
        assert [json.loads(line)["data"]["text"] for line in found.stdout.splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["sub", "price >"], "column"),
        (["sub", "price > 1", "--replay", "last=x"], "--replay"),
        (["sub", "price > 1", "--replay", "nothing=1"], "--replay"),
        (["sub", "price > 1", "--url", "http://x"], "no address"),
        (["pub", "t", "price"], "KEY=VALUE"),
        (["pub", "quotes.jsonl"], "vestnik pub < quotes.jsonl"),
        (["pub", "t", "--advertise", "price >"], "the filter of --advertise is wrong at column 8"),
        (["serve", "--retain-count", "10"], "retain_count: is for a broker that stores: set data"),
        (["pub", "price=1"], "vestnik pub TYPE price=1"),
        (["pub", "t", "a=1", "a=2"], "a is given twice"),
        (["pub", "t", "a=1", "a.b=2"], "which has a value of its own"),
        (["pub", "t", "--time", "yesterday"], "time"),
        (["pub", "--id", "e", "--source", "s"], "--source, --id: that is for an event that is given by its type"),
    ],
)
def test_wrong_input_is_refused_at_once(arguments: list[str], reason: str) -> None:
    done = vestnik(*arguments)
    assert done.returncode == 2 and reason in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_ends_who_waits_for_input() -> None:
    with process("--listen", "127.0.0.1:0") as (_, url):
        command = [str(VESTNIK), "pub", "--url", url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as running:
            assert running.stdin is not None and running.stderr is not None
            running.stdin.write('{"type": "q"}\nbad\n')
            running.stdin.flush()
            assert "bad" not in running.stderr.readline()
            running.send_signal(signal.SIGINT)
            assert running.wait(20) == 130
            assert "Traceback" not in running.stderr.read()


def test_an_event_has_what_it_is_given() -> None:
    with process("--listen", "127.0.0.1:0") as (_, url):
        given = ["--id", "e1", "--subject", "x", "--time", "2026-05-01T12:30:00Z", "--priority", "7", "--source", "me"]
        assert vestnik("pub", "t", "a.b=3", "a.c=no", "d=[1]", *given, "--url", url).returncode == 0
        event = json.loads(vestnik("fetch", "TRUE", "--url", url).stdout)
        assert event["data"] == {"a": {"b": 3, "c": "no"}, "d": [1]}
        shown = event["id"], event["subject"], event["time"], event["priority"], event["source"]
        assert shown == ("e1", "x", "2026-05-01T12:30:00Z", 7, "me")


def test_who_waits_is_told_that_the_broker_is_away_and_back_and_what_is_lost() -> None:
    with process("--listen", "127.0.0.1:0") as (first, url):
        command = [str(VESTNIK), "sub", "TRUE", "--url", url, "-c", "2", "--name", "c"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as running:
            assert running.stdout is not None and running.stderr is not None
            while not json.loads(vestnik("top", "--once", "--json", "--url", url).stdout)["subscriptions"]:
                pass
            assert vestnik("pub", "t", "--url", url).returncode == 0
            assert json.loads(running.stdout.readline())["type"] == "t"
            first.kill()
            first.wait(20)
            assert running.stderr.readline() == f"vestnik: the broker at {url} is away; waiting for it\n"
            with process("--listen", url):
                assert running.stderr.readline() == f"vestnik: the broker at {url} is back\n"
                assert vestnik("pub", "t", "--url", url).returncode == 0
                assert json.loads(running.stdout.readline())["type"] == "t"
                assert running.wait(20) == 1 and "notifications may be lost: " in running.stderr.read()


def test_no_broker_is_said_soon() -> None:
    command = [str(VESTNIK), "sub", "TRUE", "--url", "127.0.0.1:1", "-W", "0.8"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "vestnik: no broker at 127.0.0.1:1 yet; trying for 0.8 seconds\n"
        assert running.wait(20) == 2 and running.stderr.read().startswith("vestnik: no broker at 127.0.0.1:1: Connect")
