"""The licences of what is built into the program: each asks that its text goes along."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from make.program import ROOT, CannotPackage, needed

FILE = "LICENSES-OF-DEPENDENCIES.txt"
TEXT = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


@dataclass(frozen=True)
class Work:
    """Something of somebody else that is in the program, and where its sources are."""

    name: str
    licence: str
    home: str
    folder: Path

    def texts(self) -> list[Path]:
        """The files that have its licence: those of C libraries are beside these, further down."""
        files = self.folder.rglob("*") if self.name.split()[0].endswith("-sys") else self.folder.iterdir()
        return sorted(path for path in files if TEXT.match(path.name) and path.is_file() and path.suffix not in (".rs", ".h", ".c", ".py"))


@functools.cache
def notices() -> bytes:
    """Every work by its licence, and every text once."""
    works = [*crates(), *scripts()]
    lines = ["The program confidant contains these works of others, each under its own licence.", ""]
    texts: dict[str, list[str]] = {}
    for work in works:
        lines.append(f"{work.name}: {work.licence}  {work.home}".rstrip())
        if not work.folder.is_dir():
            raise CannotPackage(f"the sources of {work.name} are not on this machine, and its licence with them\nhint: cargo fetch --locked")
        for path in work.texts():
            text = path.read_text(errors="replace").replace("\r\n", "\n").strip()
            texts.setdefault(text, []).append(work.name)
    for text, names in sorted(texts.items(), key=lambda pair: (pair[1], pair[0])):
        lines += ["", "=" * 100, ", ".join(dict.fromkeys(names)), "-" * 100, "", text]
    return ("\n".join(lines) + "\n").encode()


def crates() -> list[Work]:
    """What the program is linked with."""
    found = [
        Work(f"{one['name']} {one['version']}", one["license"] or "see its text", one["repository"] or "", Path(one["manifest_path"]).parent)
        for one in linked()
    ]
    return sorted(found, key=lambda work: work.name)


def scripts() -> list[Work]:
    """What the page of chats is made of, if it was built here: then it is in the program."""
    if not (ROOT / "web/dist/index.html").is_file():
        return []
    locked = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    inside = [(place, one) for place, one in locked.items() if place and not one.get("dev") and not one.get("optional")]
    return [
        Work(f"{place.rpartition('node_modules/')[2]} {one['version']} (page)", one.get("license", "see its text"), "", ROOT / "web" / place)
        for place, one in sorted(inside)
    ]


def linked() -> list[dict[str, Any]]:
    """What the program depends on, however deep, without what only builds it."""
    needed("cargo", "cargo")
    asked = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotPackage(f"cargo metadata: {done.stderr.strip()}")
    whole = json.loads(done.stdout)
    packages = {package["id"]: package for package in whole["packages"]}
    nodes = {node["id"]: node for node in whole["resolve"]["nodes"]}
    left = [id_ for id_, package in packages.items() if package["name"] == "confidant" and package["source"] is None]
    found: set[str] = set()
    while left:
        id_ = left.pop()
        if id_ not in found:
            found.add(id_)
            left += [one["pkg"] for one in nodes[id_]["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])]
    # Our own are under the licences beside this file.
    return [packages[id_] for id_ in found if packages[id_]["source"] is not None]
