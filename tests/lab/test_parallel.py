from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from vestnik.lab.parallel import Bench, Cores, done, each


@pytest.mark.parametrize("jobs", [1, 2])
def test_outcomes_come_in_the_order_of_the_tasks(jobs: int) -> None:
    shares: list[float] = []
    assert list(each(math.sqrt, [9.0, 4.0, 1.0], Bench(Cores(jobs), shares.append))) == [3.0, 2.0, 1.0]
    assert shares == [1 / 3, 2 / 3, 1.0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_goes_wrong_is_noted_and_the_others_go_on(jobs: int) -> None:
    bench = Bench(Cores(jobs), lambda share: None)
    assert list(each(math.sqrt, [1.0, -1.0, 4.0], bench)) == [1.0, None, 2.0]
    (failed,) = bench.failed
    assert (failed.of, failed.task) == ("sqrt", "-1.0") and failed.error.startswith("ValueError: ")


def root(number: float) -> float:
    ASKED.append(number)
    return math.sqrt(number)


ASKED: list[float] = []


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    bench = Bench(Cores(1), lambda share: None, tmp_path)
    assert done(root, [9.0, -1.0], bench) == [3.0]
    with next(tmp_path.iterdir()).open("ab") as file:
        file.write(b'{"version":"0.')  # it was killed as it wrote
    ASKED.clear()
    assert list(each(root, [4.0, 9.0, -1.0], bench)) == [2.0, 3.0, None]
    assert ASKED == [4.0, -1.0], "what failed is tried again"


def test_a_part_of_the_work_advances_within_its_share() -> None:
    shares: list[float] = []
    list(each(math.sqrt, [9.0, 4.0], Bench(Cores(1), shares.append).part(0.5, 1.0)))
    assert shares == [0.75, 1.0]


def test_what_was_half_written_is_done_again_and_spoils_nothing(tmp_path: Path) -> None:
    bench = Bench(Cores(1), lambda share: None, tmp_path)
    assert done(root, [1.0, 4.0], bench) == [1.0, 2.0]
    file = tmp_path / "done.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    for expected in ([4.0, 9.0], []):
        ASKED.clear()
        assert done(root, [1.0, 4.0, 9.0], bench) == [1.0, 2.0, 3.0]
        assert expected == ASKED


def test_a_worker_needs_no_installation() -> None:
    """Clusters are sent the modules of the package and nothing else."""
    code = "import importlib.metadata as m; del m.version; m.version = lambda name: 1 / 0; import vestnik.lab.parallel"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
