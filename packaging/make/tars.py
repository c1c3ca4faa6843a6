"""Tar archives that are the same bytes each time they are made."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A file, a folder (no content), or a link in a package."""

    name: str
    content: bytes | None = None
    mode: int = 0o644
    user: int = 0
    link: str = ""


def write_tar(entries: Iterable[Entry], time: int) -> bytes:
    """The entries as they come, of root or of the user that they name, all from one time."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.mtime, info.mode, info.uid, info.gid = time, entry.mode, entry.user, entry.user
            if entry.user == 0:
                info.uname = info.gname = "root"
            if entry.link:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
                archive.addfile(info)
            elif entry.content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(entry.content)
                archive.addfile(info, io.BytesIO(entry.content))
    return whole.getvalue()


def write_tar_gz(path: Path, entries: Iterable[Entry], time: int, level: int) -> Path:
    """The same, packed."""
    path.write_bytes(packed(write_tar(entries, time), level))
    return path


def packed(content: bytes, level: int) -> bytes:
    """In gzip's form, without a name or a time of its own."""
    return gzip.compress(content, compresslevel=level, mtime=0)
