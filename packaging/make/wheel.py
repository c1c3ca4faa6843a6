"""A wheel for pip, uv and pipx: the program, which they put on the PATH of the environment, and the module confidant_memory."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import time as clock
import zipfile
from pathlib import Path

from make.notices import FILE, notices
from make.program import ROOT, CannotPackage, Program

NAME = "confidant-memory"
MODULE = ROOT / "clients/python/confidant_memory"


def module(version: str) -> dict[str, bytes]:
    """The client, with the version of the program that it goes with."""
    found = {f"{MODULE.name}/{path.name}": path.read_bytes() for path in sorted(MODULE.iterdir()) if path.is_file()}
    named = re.search(rb'^VERSION = "(.+)"$', found[f"{MODULE.name}/_wire.py"], re.MULTILINE)
    if named is None or named[1].decode() != version:
        raise CannotPackage(f"{MODULE}/_wire.py does not say that its version is {version}\nhint: set VERSION there")
    return found


def tag(program: Program) -> str:
    """The systems that it runs on, as pip calls them (PEP 600 and PEP 656)."""
    if program.glibc is None:
        return f"manylinux_2_17_{program.machine}.manylinux2014_{program.machine}.musllinux_1_1_{program.machine}"
    major, minor, *_ = program.glibc
    return f"manylinux_{major}_{minor}_{program.machine}"


def metadata(version: str) -> str:
    """What package indexes show."""
    readme = (ROOT / "packaging/README.md").read_text()
    return (
        "Metadata-Version: 2.4\n"
        f"Name: {NAME}\n"
        f"Version: {version}\n"
        "Summary: Private memory for AI agents: the program confidant, and its client\n"
        "License-Expression: MIT OR Apache-2.0\n"
        "License-File: LICENSE-APACHE\n"
        "License-File: LICENSE-MIT\n"
        f"License-File: {FILE}\n"
        "Classifier: Environment :: Console\n"
        "Classifier: Operating System :: POSIX :: Linux\n"
        "Classifier: Programming Language :: Python :: 3\n"
        "Classifier: Programming Language :: Rust\n"
        "Classifier: Typing :: Typed\n"
        "Requires-Python: >=3.11\n"
        "Requires-Dist: httpx2<3,>=2.10\n"
        "Provides-Extra: langchain\n"
        "Requires-Dist: langchain-core<2,>=1; extra == 'langchain'\n"
        "Description-Content-Type: text/markdown\n"
        f"\n{readme}"
    )


def make(program: Program, out: Path, time: int, level: int) -> list[Path]:
    """Writes the wheel."""
    stem = f"{NAME.replace('-', '_')}-{program.version}"
    about = f"{stem}.dist-info"
    tags = "".join(f"Tag: py3-none-{one}\n" for one in tag(program).split("."))
    files = {
        **module(program.version),
        f"{stem}.data/scripts/confidant": program.path.read_bytes(),
        f"{about}/licenses/LICENSE-APACHE": (ROOT / "LICENSE-APACHE").read_bytes(),
        f"{about}/licenses/LICENSE-MIT": (ROOT / "LICENSE-MIT").read_bytes(),
        f"{about}/licenses/{FILE}": notices(),
        f"{about}/METADATA": metadata(program.version).encode(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: confidant\nRoot-Is-Purelib: false\n{tags}".encode(),
    }
    record = f"{about}/RECORD"
    files[record] = recorded(files, record)
    path = out / f"{stem}-py3-none-{tag(program)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, clock.gmtime(time)[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            archive.writestr(info, content)
    return [path]


def recorded(files: dict[str, bytes], record: str) -> bytes:
    """Every file with its hash and size; of the record itself only the name."""
    rows = io.StringIO()
    lines = csv.writer(rows, lineterminator="\n")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.writerow([name, f"sha256={digest}", len(content)])
    lines.writerow([record, "", ""])
    return rows.getvalue().encode()
