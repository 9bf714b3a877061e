"""Commands that look at brokers: `fetch adv history top link doctor bench`, as processes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from network.test_commands import vestnik
from network.test_durable import process

VESTNIK = Path(sys.executable).with_name("vestnik")


def lines(done: subprocess.CompletedProcess[str]) -> list[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_past_events_are_fetched(tmp_path: Path) -> None:
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path)) as (_, url):
        text = "".join(json.dumps({"type": "q", "data": {"n": n, "even": n % 2 == 0}}) + "\n" for n in range(10))
        assert vestnik("pub", "--url", url, text=text).returncode == 0
        found = vestnik("fetch", "n > 2", "--limit", "3", "--url", url)
        assert found.returncode == 0 and [event["data"]["n"] for event in lines(found)] == [7, 8, 9]
        latest = vestnik("fetch", "TRUE", "--latest-by", "even", "--url", url)
        assert [event["data"]["n"] for event in lines(latest)] == [8, 9]
        none = vestnik("fetch", "n > 100", "--url", url)
        assert (none.returncode, none.stdout, none.stderr) == (1, "", "")
        assert vestnik("fetch", "TRUE", "--since", "yesterday", "--url", url).returncode == 2


def test_what_is_stored_is_counted(tmp_path: Path) -> None:
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path)) as (running, url):
        assert vestnik("history", "--url", url).stdout == "nothing is stored\n"
        for name in ("quote", "quote", "trade"):
            assert vestnik("pub", name, "--url", url).returncode == 0
        found = vestnik("history", "--url", url)
        assert found.stdout.startswith("3 events of 1 source, from 20")
        assert found.stdout.splitlines()[1:] == ["  2  quote", "  1  trade"]
        locked = vestnik("history", "--data", str(tmp_path))
        assert locked.returncode == 2 and "ask that broker, with --url" in locked.stderr
        (online,) = lines(vestnik("history", "--url", url, "--json"))
        running.terminate()
        running.wait(20)
    (offline,) = lines(vestnik("history", "--data", str(tmp_path), "--json"))
    assert offline == online and offline["types"] == {"quote": 2, "trade": 1}
    nowhere = vestnik("history", "--data", str(tmp_path / "journal"))
    assert nowhere.returncode == 2 and "has no journal" in nowhere.stderr


def test_an_advertisement_lasts_as_long_as_the_command() -> None:
    with process("--listen", "127.0.0.1:0") as (_, url):
        command = [str(VESTNIK), "adv", "price > 1", "--url", url, "--name", "feed"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as running:
            assert running.stderr is not None
            assert running.stderr.readline() == "feed advertises price > 1\n"
            (row,) = lines(vestnik("top", "--once", "--json", "--url", url))
            assert (row["clients"], row["lagging"], row["lag"], row["gaps"], row["refused"]) == (1, 0, 0, 0, 0)
            assert row["queues"]["routing"] == 0 and row["fsync"] is None and row["loop_lag"] >= 0
            running.terminate()
        done = vestnik("adv", "price > 1", "--url", url, "-W", "0.1")
        assert (done.returncode, done.stdout) == (0, "")


def test_all_brokers_are_watched_and_linked() -> None:
    with process("--listen", "127.0.0.1:0") as (_, one), process("--name", "b2", "--listen", "127.0.0.1:0") as (_, two):
        made = vestnik("link", "add", one, "--url", two)
        assert (made.returncode, made.stdout, made.stderr) == (0, "", f"b2 is linked with the broker at {one}\n")
        for _ in range(50):
            rows = lines(vestnik("top", "--once", "--json", "--interval", "0.1", "--url", one))
            if len(rows) == 2:
                break
        assert [(row["broker"], row["links"]) for row in rows] == [("b", 1), ("b2", 1)]
        table = vestnik("top", "--once", "--url", one).stdout
        assert "passed/s" in table and "b2" in table and "\x1b" not in table
        ended = vestnik("link", "remove", one, "--url", two)
        assert ended.stderr == f"b2 ends the link to {one}\n"
        again = vestnik("link", "remove", one, "--url", two)
        assert again.returncode == 2 and "b2 made no such link" in again.stderr
        assert vestnik("history", "--to", "b9", "--url", one).returncode == 2


def test_the_doctor(tmp_path: Path) -> None:
    with process("--listen", "127.0.0.1:0") as (_, url):
        options = ["--url", url, "--listen", url, "--data", str(tmp_path / "new"), "--json"]
        done = vestnik("doctor", *options)
        found = {finding["what"]: finding for finding in lines(done)}
        assert done.returncode == 0, done.stdout
        assert found["broker"]["said"].startswith(f"b at {url} answers in ")
        assert found["port"]["said"] == f"{url}: in use, by a broker"
        assert found["spark"]["state"] == "ok"
        assert found["java"]["said"].endswith(": Spark would run on it")
        assert "can be written" in found["data"]["said"] and not (tmp_path / "new").exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        (tmp_path / "file").touch()
        done = vestnik("doctor", "--listen", address, "--data", str(tmp_path / "file" / "x"), "--url", "127.0.0.1:1")
    assert done.returncode == 1
    bad = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert bad == ["broker", "port", "data"]


@pytest.mark.parametrize("options", [[], ["--durable", "--subscribers", "2"]], ids=["plain", "durable"])
def test_a_quick_measurement(options: list[str]) -> None:
    done = vestnik("bench", "--events", "50", "--json", *options)
    (found,) = lines(done)
    assert done.returncode == 0 and found["delivered_per_second"] > 0 and found["p99_ms"] >= found["p50_ms"] > 0


def test_a_fetch_that_may_miss_something_says_so_and_by_its_exit_code(tmp_path: Path) -> None:
    with (
        process("--listen", "127.0.0.1:0", "--name", "b1") as (gone, other),
        process("--listen", "127.0.0.1:0", "--name", "b2", "--join", other) as (_, url),
    ):
        assert vestnik("pub", "q", "n=1", "--url", url).returncode == 0
        assert vestnik("fetch", "n = 1", "--url", url).returncode == 0
        gone.kill()
        gone.wait()
        found = vestnik("fetch", "n = 1", "--url", url)
        assert (found.returncode, len(lines(found))) == (1, 1)
        assert found.stderr.startswith("vestnik: not all of the past was found: ") and "b1" in found.stderr


def test_an_event_that_has_expired_is_not_published(tmp_path: Path) -> None:
    with process("--listen", "127.0.0.1:0", "--data", str(tmp_path)) as (_, url):
        past = vestnik("pub", "q", "n=1", "--expires", "2020-01-01T00:00:00Z", "--url", url)
        assert past.returncode == 2
        assert past.stderr == "vestnik: --expires 2020-01-01T00:00:00Z is past: nobody would be given the event\n"
        assert vestnik("pub", "q", "n=2", "--expires", "2099-01-01T00:00:00Z", "--url", url).returncode == 0
        assert [event["data"]["n"] for event in lines(vestnik("fetch", "TRUE", "--url", url))] == [2]
