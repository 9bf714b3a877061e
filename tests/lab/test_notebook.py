"""What was measured is not measured again."""

from __future__ import annotations

import json
from pathlib import Path

from vestnik.lab.notebook import Notebook, Task, measure
from vestnik.lab.parallel import Bench, Cores
from vestnik.lab.routing import Measured, Setting

SETTING = Setting(strategy="covering", advertisements=True)


def measured(tasks: list[Task], folder: Path | None = None) -> list[list[Measured]]:
    return list(measure(tasks, Notebook(folder), Bench(Cores(1), lambda share: None)))


def test_rows_are_found_in_the_folder(tmp_path: Path) -> None:
    file = tmp_path / "new" / "routing.jsonl"
    first = measured([Task(SETTING, [10, 30], seed, 2) for seed in (1, 2)], file.parent)
    tasks = [Task(SETTING, [10, 20, 30], seed, 2) for seed in (1, 2)]
    again = measured(tasks, file.parent)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["subscriptions"] for line in lines] == [10, 30, 10, 30, 20, 20]
    assert [[rows[0], rows[2]] for rows in again] == first
    assert again == measured(tasks)


def test_what_is_no_row_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "routing.jsonl"
    file.write_text('{"strategy": "cov\n', encoding="utf-8")
    ((row,),) = measured([Task(SETTING, [10], 1, 2)], tmp_path)
    assert len(file.read_text(encoding="utf-8").splitlines()) == 2
    assert row.subscriptions == 10


def test_other_settings_are_measured(tmp_path: Path) -> None:
    for task in (Task(SETTING, [10], 1, 2), Task(SETTING, [10], 1, 3), Task(SETTING, [10], 2, 2)):
        ((row,),) = measured([task], tmp_path)
        assert (row.seed, row.operations) == (task.seed, task.operations)
