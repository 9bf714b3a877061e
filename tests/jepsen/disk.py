"""A small disk for the data of one broker, which can be filled and freed.

It is a tmpfs in a mount namespace that all processes of a run share, so it is gone when they are: `script/jepsen` runs
itself again under `unshare`. If the system does not allow that, no disk gets full.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

SIZE = 256 << 20
CHUNK = 1 << 20
INSIDE = "VESTNIK_JEPSEN_NAMESPACE"
"""The environment variable that is set within the namespace."""
UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")


def enter_namespace() -> bool:
    """Run this process again within a mount namespace; return whether it is in one by now."""
    if os.environ.get(INSIDE):
        return True
    try:
        allowed = (
            subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True).returncode == 0
        )
    except OSError:
        return False
    if allowed:
        os.execvpe(UNSHARE[0], [*UNSHARE, *sys.orig_argv], os.environ | {INSIDE: "yes"})
    return False


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ballast = folder / "ballast"

    def mount(self) -> None:
        self._folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(self._folder)], check=True)

    def fill(self) -> None:
        """Write until there is no room left."""
        with self._ballast.open("wb", buffering=0) as file:
            for size in (CHUNK, 4096, 1):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)
