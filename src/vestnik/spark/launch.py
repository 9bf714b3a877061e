"""How a Java is started for Spark, so that it is quick and says nothing.

Once, its classes are written to an archive in the cache folder, as the first session ends; later ones start from that.
Files appear there whole, by renaming, so that any number of processes may do this at once. Where the folder cannot be
written, all works, more slowly.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple

from vestnik.spark.java import Java
from vestnik.spark.temporary import lasting

PUSHES: Final = "PYSPARK_VESTNIK_PUSHES"
"""In the environment of a Java whose sessions let a data source filter; those of plain PySpark do not."""
DUMP_WITHIN: Final = 60.0
"""Seconds after which a Java that writes an archive is given up."""
STALE: Final = 3600.0
"""Seconds after which nobody finishes a file that was begun."""
VECTORS: Final = "--add-modules=jdk.incubator.vector"
"""Asks for a module that Spark can do without: trimmed runtimes have it not, others warn about it."""
ACTIONS: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""Opens a package that Java has had up to version 23; later ones warn about it."""
MEMORY: Final = "--sun-misc-unsafe-memory-access=allow"
"""Does not warn of what Spark does to memory, as later ones do."""
_WRAPPER: Final = """#!/bin/sh
for word do shift; case $word in {dropped}) ;; *) set -- "$@" "$word" ;; esac; done
exec {java} {options} "$@"
"""


class Launch(NamedTuple):
    """What Spark is to take for JAVA_HOME, and the options of its Java.

    `recorded` is where the archive is written as Java ends, to become `archive` then; None where there is one.
    """

    home: Path
    options: tuple[str, ...]
    archive: Path
    recorded: Path | None


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where files are kept that are made again when they are missing."""
    given = environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "vestnik" / "spark"


def is_first(java: Java, spark_version: str, folder: Path) -> bool:
    """Return whether there is no archive yet from which this Java starts Spark."""
    return not (folder / f"classes-{_key(java, spark_version)}.jsa").exists()


def _key(java: Java, spark_version: str) -> str:
    return hashlib.sha256(repr((_WRAPPER, str(java.home), java.version, spark_version)).encode()).hexdigest()[:16]


def prepare(java: Java, spark_version: str, folder: Path) -> Launch:
    """Make what is missing of the files that a launch needs."""
    key = _key(java, spark_version)
    archive = folder / f"classes-{key}.jsa"
    quick = ("-XX:TieredStopAtLevel=1", "-Xlog:disable")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _tidy(folder)
        home = _wrapped(java, folder / f"java-{key}")
        below = _base(java, folder / f"base-{key}.jsa")
    except OSError:
        return Launch(_wrapped(java, lasting("vestnik-java-") / "java"), quick, archive, None)
    if below is None:
        return Launch(home, quick, archive, None)
    if archive.exists():
        shared = os.pathsep.join([str(below), str(archive)]) if below.parent == folder else str(archive)
        return Launch(home, (*quick, f"-XX:SharedArchiveFile={shared}"), archive, None)
    recorded = folder / f"{archive.stem}-{os.getpid()}.new"
    own = (f"-XX:SharedArchiveFile={below}",) if below.parent == folder else ()
    return Launch(home, (*quick, *own, f"-XX:ArchiveClassesAtExit={recorded}"), archive, recorded)


def keep(launch: Launch) -> None:
    """Make an archive that was written the one to start from."""
    if launch.recorded is not None:
        with suppress(OSError):
            launch.recorded.replace(launch.archive)


def _tidy(folder: Path) -> None:
    """Drop what was begun by those who did not come to its end."""
    for begun in folder.glob("*.new"):
        with suppress(FileNotFoundError):
            if time.time() - begun.stat().st_mtime > STALE:
                begun.unlink()


def _wrapped(java: Java, home: Path) -> Path:
    """A folder whose `bin/java` starts `java` without the options that Spark can do without."""
    program = home / "bin" / "java"
    if os.name == "nt":
        return java.home
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        dropped, options = (f"{VECTORS}|{ACTIONS}", MEMORY) if java.feature >= 24 else (VECTORS, "")
        new = program.with_name(f"java-{os.getpid()}.new")
        new.write_text(
            _WRAPPER.format(dropped=dropped, java=quote(str(java.program)), options=options), encoding="utf-8"
        )
        new.chmod(0o755)
        new.replace(program)
    return home


def _base(java: Java, made: Path) -> Path | None:
    """The archive of Java's own classes, which trimmed runtimes come without; None where it cannot be made."""
    own = java.home / "lib" / "server" / "classes.jsa"
    if own.exists() or made.exists():
        return own if own.exists() else made
    new = made.with_name(f"{made.stem}-{os.getpid()}.new")
    try:
        subprocess.run(
            [java.program, "-Xshare:dump", f"-XX:SharedArchiveFile={new}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DUMP_WITHIN,
            check=True,
        )
        new.replace(made)
    except (OSError, subprocess.SubprocessError):
        new.unlink(missing_ok=True)
        return None
    return made
