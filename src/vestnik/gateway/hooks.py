"""Web hooks, and the file in which they outlive the gateway."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from vestnik.errors import InvalidSetting
from vestnik.threads import Worker
from vestnik.wire.origins import Origin


class Hook(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is pushed where, for whom, and at most how often a minute.

    The broker is shown the token `owner`, the sink `token`. Everything wanted of a log, as "broker/log", below the
    offset that is `seen` was pushed. Without cursors, pushing starts with the `replay`.
    """

    id: str
    filter: str
    sink: str
    seen: dict[str, int] = {}
    replay: str | None = None
    rate: float | None = None
    owner: str | None = None
    token: str | None = None


class HookFile:
    """Holds all hooks, or nothing where there is no file to be. Only its owner reads it: there are tokens in it."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._writing = asyncio.Lock()
        self._disk = Worker("vestnik-hooks")

    def read(self) -> list[Hook]:
        """Return the hooks in the file; InvalidSetting if it is damaged."""
        if self._path is None or not self._path.exists():
            return []
        try:
            hooks = msgspec.json.decode(self._path.read_bytes(), type=list[Hook])
        except (msgspec.DecodeError, OSError) as error:
            reason = f"{self._path} holds no web hooks: {error}; repair it, or remove it to begin without any"
            raise InvalidSetting("hooks", reason) from None
        return [hook if all(map(_is_log, hook.seen)) else replace(hook, seen={}) for hook in hooks]

    async def write(self, hooks: Iterable[Hook]) -> None:
        """When this returns, they are on disk."""
        if self._path is not None:
            async with self._writing:
                await self._disk.start(
                    partial(_replace, self._path, msgspec.json.encode(list(hooks))), asyncio.get_running_loop()
                )

    def close(self) -> None:
        """Let the thread that writes end when it is ready."""
        self._disk.end()


def _is_log(name: str) -> bool:
    """Return whether this names a log. Earlier releases noted positions by the name of a broker: they say nothing."""
    try:
        Origin.parse(name)
    except ValueError:
        return False
    return True


def _replace(path: Path, content: bytes) -> None:
    """A crash leaves the old content or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
