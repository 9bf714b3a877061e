"""Files of a broker are private to their owner, however wide the umask is."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import httpx

import vestnik
from network.processes import HTTP, VESTNIK, serving, told
from network.worlds import quote

WIDE = "import os; os.umask(0)"


def open_to_others(folder: Path) -> list[str]:
    """The files and folders below `folder` that others than their owner may read or change."""
    everything = list(folder.rglob("*"))
    assert everything
    return [f"{path} {stat.filemode(path.stat().st_mode)}" for path in everything if path.stat().st_mode & 0o077]


async def test_what_a_broker_stores_traces_and_remembers(tmp_path: Path) -> None:
    options = ["--data", str(tmp_path / "data"), "--trace", str(tmp_path / "trace.jsonl"), "--http", "127.0.0.1:0"]
    with serving(*options, "--retain-latest-by", "price", patch=WIDE) as (running, address):
        gateway = f"http://{told(running.stderr, HTTP)}"
        async with vestnik.connect(address) as bus:
            await bus.publish_many([quote(1), quote(2, not_before=4_000_000_000_000_000)])
        hook = {"filter": "price > 0", "sink": "http://127.0.0.1:9/", "token": "secret"}
        httpx.post(f"{gateway}/subscriptions", json=hook, trust_env=False)
        running.terminate()
        assert running.wait(20) == 0
    written = {path.name for path in tmp_path.rglob("*")}
    assert {"trace.jsonl", "journal", "held", "identity", "name", "webhooks.json"} <= written
    assert open_to_others(tmp_path) == []


def test_an_access_file(tmp_path: Path) -> None:
    command = [str(VESTNIK), "token", "new", "desk", "--access", str(tmp_path / "access.toml")]
    subprocess.run(command, check=True, umask=0, stderr=subprocess.DEVNULL)
    assert open_to_others(tmp_path) == []


def test_what_is_there_stays_as_it_was_set(tmp_path: Path) -> None:
    """An operator may let a group read the access file."""
    access = tmp_path / "access.toml"
    access.touch()
    access.chmod(0o640)
    subprocess.run(
        [str(VESTNIK), "token", "new", "desk", "--access", str(access)], check=True, stderr=subprocess.DEVNULL
    )
    assert stat.S_IMODE(access.stat().st_mode) == 0o640
