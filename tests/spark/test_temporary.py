"""Temporary folders of killed processes are removed by the next one, and those of running ones never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from vestnik.cli.pipeline.outputs import replaced_whole, written_whole
from vestnik.spark.temporary import OWNER, lasting, sweep, temporary

HOLD = """
import sys
from pathlib import Path
from vestnik.spark.temporary import temporary
with temporary(sys.argv[1], Path(sys.argv[2])) as folder:
    (folder / "inner").mkdir()
    (folder / "inner" / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(prefix: str, parent: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that holds a temporary folder until its standard input ends."""
    words = [sys.executable, "-c", HOLD, prefix, str(parent)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_folder_of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    with holder("a-", tmp_path) as (process, folder):
        assert (folder / "inner" / "file").exists()
        with temporary("a-", tmp_path) as mine:
            assert folder.exists() and mine.exists(), "it runs"
        assert sweep("a-", tmp_path) == 0 and folder.exists() and not mine.exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert folder.exists()
        with temporary("b-", tmp_path):
            assert folder.exists(), "another's"
        with temporary("a-", tmp_path):
            assert not folder.exists()


def test_a_process_that_ends_removes_its_folder(tmp_path: Path) -> None:
    with holder("a-", tmp_path) as (process, folder):
        process.communicate("")
        assert not folder.exists()


def test_what_has_no_known_owner_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, elsewhere, linked = (tmp_path / f"a-{name}" for name in ("plain", "elsewhere", "linked"))
    for folder in (plain, elsewhere, tmp_path / "target"):
        folder.mkdir()
    (elsewhere / OWNER).write_text("another machine")
    with temporary("other-", tmp_path) as folder:
        (tmp_path / "target" / OWNER).write_bytes((folder / OWNER).read_bytes())
    linked.symlink_to(tmp_path / "target")
    assert sweep("a-", tmp_path) == 0
    assert plain.exists() and elsewhere.exists() and (tmp_path / "target").exists()


def test_folders_in_the_place_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with holder("vestnik-match-", tmp_path) as (process, left):
        process.kill()
        process.wait()
        made = lasting("vestnik-shards-")
        assert made.parent == tmp_path and not left.exists(), "whatever command it was of"


def test_results_take_their_place_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with ExitStack() as first:
        one = first.enter_context(written_whole(tmp_path / "out"))
        with written_whole(tmp_path / "out") as other:
            (other / "rows").touch()
            assert one.exists() and not any((tmp_path / "out").iterdir()), "two that run at once do not meet"
        with pytest.raises(OSError, match="not empty"):
            first.close()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["rows"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_results_that_are_replaced(tmp_path: Path) -> None:
    for number in range(2):
        with replaced_whole(tmp_path / "out") as new:
            (new / str(number)).touch()
            assert (tmp_path / "out" / "0").exists() == (number == 1)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1"]
    with pytest.raises(OSError, match="disk"), replaced_whole(tmp_path / "out"):
        raise OSError("disk")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["1"]


KILLED = """
import os, signal, sys
from pathlib import Path
from vestnik.cli.pipeline.outputs import replaced_whole
number, out, rename = [int(sys.argv[1])], Path(sys.argv[2]), Path.rename
def killed(self, target):
    number[0] -= 1
    if number[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
with replaced_whole(out) as new:
    (new / "new").touch()
    Path.rename = killed
"""


@pytest.mark.parametrize("point", [1, 2])
def test_who_is_killed_while_results_are_replaced_has_lost_neither(tmp_path: Path, point: int) -> None:
    out = tmp_path / "out"
    with replaced_whole(out) as new:
        (new / "old").touch()
    done = subprocess.run([sys.executable, "-c", KILLED, str(point), str(out)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(OSError, match="disk"), replaced_whole(out):
        raise OSError("disk" if (out / "old").exists() else "nothing was put back")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in out.iterdir()] == ["old"]


SPARK = """
import os, signal, sys
from pyspark import SparkContext
from vestnik.spark import session
spark = session("local[1]")
spark.range(4).count()
if sys.argv[1] == "killed":
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_spark_leaves_that_is_killed_is_removed_by_the_next_session(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SPARK, "killed"], env=environ, timeout=120)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert any(left.glob("blockmgr-*"))
    done = subprocess.run([sys.executable, "-c", SPARK, "ended"], env=environ, timeout=120)
    assert done.returncode == 0 and not left.exists()
