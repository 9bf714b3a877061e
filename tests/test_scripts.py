"""script/test-pythons: which interpreters it takes, what it runs with each, and what it reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "script" / "test-pythons"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose script/test writes down how it was called, and fails on Python 3.12."""
    (tmp_path / "script").mkdir()
    shutil.copy(SCRIPT, tmp_path / "script")
    program(tmp_path / "script" / "test", 'echo "$VENV $PYTHON $*" >>calls; [[ $VENV != *3.12* ]]')
    return tmp_path


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def interpreter(path: Path, version: str) -> Path:
    """A program that answers like an interpreter of this version, asked for its version and its path."""
    return program(path, f"echo {version} $0")


def run(clone: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it where it finds only the interpreters of this test."""
    found = {
        "HOME": str(clone), "PYENV_ROOT": str(clone / "pyenv"), "PATH": f"{clone}/bin:/usr/bin:/bin", "PYTHONS": ""
    }  # fmt: skip
    script = str(clone / "script" / "test-pythons")
    return subprocess.run(
        [script, *arguments], capture_output=True, encoding="utf-8", timeout=60, env=os.environ | found | environment
    )


def named(clone: Path, *versions: str) -> str:
    return " ".join(str(interpreter(clone / version / "python", version)) for version in versions)


def test_the_suite_runs_on_each_interpreter_in_an_environment_of_its_own(clone: Path) -> None:
    done = run(clone, "-k", "parser", PYTHONS=named(clone, "3.13.0", "3.11.2"))
    assert done.returncode == 0, done.stderr
    assert (clone / "calls").read_text("utf-8").splitlines() == [
        f".venvs/{version} {clone}/{version}/python -k parser" for version in ("3.11.2", "3.13.0")
    ]
    assert done.stdout.splitlines()[-2:] == ["3.11.2  passed", "3.13.0  passed"]


def test_one_that_fails_is_reported_and_the_others_run(clone: Path) -> None:
    done = run(clone, PYTHONS=named(clone, "3.11.2", "3.12.1", "3.13.0"))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-3:] == ["3.11.2  passed", "3.12.1  failed (exit code 1)", "3.13.0  passed"]


def test_interpreters_are_found_on_the_path_and_in_pyenv(clone: Path) -> None:
    interpreter(clone / "bin" / "python3.12", "3.12.99")
    interpreter(clone / "pyenv" / "versions" / "3.13.99" / "bin" / "python3", "3.13.99")
    interpreter(clone / "pyenv" / "versions" / "3.12.99" / "bin" / "python3", "3.12.99")  # known from the PATH
    interpreter(clone / "pyenv" / "versions" / "3.10.99" / "bin" / "python3", "3.10.99")
    interpreter(clone / "pyenv" / "versions" / "3.14.99" / "bin" / "python3", "3.14.99")
    program(clone / "bin" / "python3.11", "exit 127")  # a shim of an interpreter that is not there
    done = run(clone)
    found = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [one for one in found if one[0].endswith(".99")] == [
        ["3.12.99", f"{clone}/bin/python3.12"],
        ["3.13.99", f"{clone}/pyenv/versions/3.13.99/bin/python3"],
    ]


def test_no_interpreter_is_an_error(clone: Path) -> None:
    done = run(clone, PYTHONS=named(clone, "3.10.1"))
    assert done.returncode == 2 and "no Python 3.11 to 3.13" in done.stderr and "PYTHONS=" in done.stderr


def test_an_environment_is_no_interpreter(clone: Path) -> None:
    """Its interpreter is found elsewhere; an environment that is made of another one ends with that one."""
    venv.create(clone / "env", with_pip=False)
    done = run(clone, PYTHONS=str(clone / "env" / "bin" / "python"))
    assert done.returncode == 2 and not (clone / "calls").exists()


def test_ctrl_c_ends_the_whole_run(clone: Path) -> None:
    """pytest ends by itself then, so the shell that waits for it would go on with the next interpreter."""
    program(clone / "script" / "test", "echo called >>calls; kill -INT $PPID; exit 2")
    done = run(clone, PYTHONS=named(clone, "3.11.2", "3.13.0"))
    assert (done.returncode, (clone / "calls").read_text("utf-8")) == (130, "called\n")
