"""Objects with large arrays in one file, mapped into memory when read.

The file is a pickle whose arrays lie beside it, aligned, so that reading copies nothing and processes share the pages.
Like every pickle it is for files of our own making.
"""

from __future__ import annotations

import pickle
import struct
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from vestnik.errors import InvalidIndex

FORMAT = 2
"""To be raised when what is written changes: objects of another release cannot be trusted to fit."""

_NAME = b"vestnik-mapped-"
_MAGIC = b"%s%04d" % (_NAME, FORMAT)
_ALIGN = 64
_CUT_SHORT = "is cut short: write it again"


def write_mapped(path: str | PathLike[str], value: Any) -> None:
    """Write `value` to a file beside `path`, then put it in its place; an OSError names `path` itself."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    sizes = struct.pack(f"<{len(views) + 2}Q", len(head), len(views), *(view.nbytes for view in views))
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        with part.open("wb") as file:
            for piece in (memoryview(_MAGIC + sizes + head), *views):
                file.write(piece)
                file.write(b"\0" * (-file.tell() % _ALIGN))
        part.replace(target)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise OSError(error.errno, error.strerror, fspath(path)) from error


def read_mapped(path: str | PathLike[str]) -> Any:
    """The value that `write_mapped` wrote, its arrays mapped read-only; InvalidIndex for another file."""
    data = memoryview(np.memmap(path, np.uint8, "r").data) if Path(path).stat().st_size else memoryview(b"")
    at = len(_MAGIC)
    if data[:at] != _MAGIC:
        ours = data[: len(_NAME)] == _NAME
        raise InvalidIndex(path, "was written by another release: write it again" if ours else "is no saved index")
    try:
        head, count = struct.unpack_from("<2Q", data, at)
        sizes = struct.unpack_from(f"<{count}Q", data, at + 16)
    except struct.error:
        raise InvalidIndex(path, _CUT_SHORT) from None
    at += 16 + 8 * count
    buffers = []
    end = at + head
    for size in sizes:
        start = -(-end // _ALIGN) * _ALIGN
        end = start + size
        buffers.append(data[start:end])
    if end > len(data):
        raise InvalidIndex(path, _CUT_SHORT)
    return pickle.loads(data[at : at + head], buffers=buffers)
