"""The files that make Java start fast."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from vestnik.spark.java import NEEDED, Java
from vestnik.spark.launch import ACTIONS, MEMORY, STALE, VECTORS, Launch, cache_folder, keep, prepare


@pytest.fixture
def java(tmp_path: Path) -> Java:
    """A Java that prints its options, one a line, and has an archive of its own."""
    home = tmp_path / "it's java"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    return Java(home, "21.0.8", NEEDED, "java")


def said(launch: Launch, *options: str) -> list[str]:
    done = subprocess.run([launch.home / "bin" / "java", *options], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(("version", "left"), [("21.0.8", [ACTIONS, "a b", "$c"]), ("25", [MEMORY, "a b", "$c"])])
def test_java_is_started_without_what_it_does_not_know(
    tmp_path: Path, java: Java, version: str, left: list[str]
) -> None:
    launch = prepare(java._replace(version=version), "4.3", tmp_path / "cache")
    assert said(launch, VECTORS, ACTIONS, "a b", "$c") == left


def test_an_archive_is_written_once_and_used_then(tmp_path: Path, java: Java) -> None:
    first = prepare(java, "4.3", tmp_path / "cache")
    assert first.recorded is not None
    assert first.options[-1] == f"-XX:ArchiveClassesAtExit={first.recorded}"
    first.recorded.touch()
    keep(first)
    then = prepare(java, "4.3", tmp_path / "cache")
    assert then.recorded is None
    assert then.options[-1] == f"-XX:SharedArchiveFile={first.archive}"
    assert prepare(java, "4.4", tmp_path / "cache").recorded is not None


def test_two_that_start_at_once_do_not_meet(tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    one = prepare(java, "4.3", tmp_path / "cache")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    other = prepare(java, "4.3", tmp_path / "cache")
    assert one.recorded is not None
    assert other.recorded is not None
    one.recorded.write_text("one")
    other.recorded.write_text("other")
    keep(one)
    keep(other)
    assert one.archive.read_text() == "other"
    keep(one)  # which is gone
    assert one.archive.read_text() == "other"


def test_without_a_folder_to_write_java_starts_all_the_same(tmp_path: Path, java: Java) -> None:
    (tmp_path / "file").touch()
    launch = prepare(java, "4.3", tmp_path / "file" / "cache")
    assert launch.recorded is None
    assert said(launch, VECTORS, "-version") == ["-version"]
    assert not any("Archive" in option for option in launch.options)


def test_a_runtime_without_an_archive_gets_one_below(tmp_path: Path, java: Java) -> None:
    (java.home / "lib" / "server" / "classes.jsa").unlink()
    java.program.write_text('#!/bin/sh\n: >"${2#-XX:SharedArchiveFile=}"\n')
    launch = prepare(java, "4.3", tmp_path / "cache")
    below = next((tmp_path / "cache").glob("base-*.jsa"))
    assert f"-XX:SharedArchiveFile={below}" in launch.options
    launch.archive.touch()
    assert prepare(java, "4.3", tmp_path / "cache").options[-1] == f"-XX:SharedArchiveFile={below}:{launch.archive}"


def test_a_runtime_that_cannot_write_one_starts_all_the_same(tmp_path: Path, java: Java) -> None:
    (java.home / "lib" / "server" / "classes.jsa").unlink()
    java.program.write_text("#!/bin/sh\nexit 1\n")
    launch = prepare(java, "4.3", tmp_path / "cache")
    assert launch.recorded is None
    assert not any("Archive" in option for option in launch.options)


def test_what_nobody_finished_is_dropped(tmp_path: Path, java: Java) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    old, new = folder / "old.new", folder / "new.new"
    old.touch()
    new.touch()
    os.utime(old, (0, STALE))
    prepare(java, "4.3", folder)
    assert (old.exists(), new.exists()) == (False, True)


def test_the_cache_is_where_the_system_says() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/a"}) == Path("/a/vestnik/spark")
    assert cache_folder({}) == Path.home() / ".cache/vestnik/spark"
