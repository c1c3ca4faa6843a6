"""Packages for npm: the launcher, the program for one platform, and both in one for where there is no registry."""

from __future__ import annotations

import json
from pathlib import Path

from make.notices import FILE, notices
from make.program import ROOT, Program
from make.tars import Entry, write_tar_gz

NAME = "confidant-memory"
# Every platform that a release has a program for. npm skips those that are not this machine's.
PLATFORMS = frozenset({"linux-x64"})


def manifest(version: str, **more: object) -> dict[str, object]:
    common = {
        "version": version,
        "license": "MIT OR Apache-2.0",
        "engines": {"node": ">=18"},
    }
    return {**common, **more}


def make(program: Program, out: Path, time: int, level: int) -> list[Path]:
    """Writes the three of them."""
    platform = f"linux-{program.node_machine}"
    own = {"os": ["linux"], "cpu": [program.node_machine]}
    if program.glibc is not None:
        own["libc"] = ["glibc"]
    about = "Private memory for AI agents: the program confidant"
    bins = {"confidant": "confidant.js"}
    launcher = manifest(
        program.version,
        name=NAME,
        description=about,
        bin=bins,
        optionalDependencies={f"{NAME}-{one}": program.version for one in sorted(PLATFORMS | {platform})},
    )
    inner = manifest(program.version, name=f"{NAME}-{platform}", description=f"{about}, for {platform}", **own)
    # `os` and `cpu` of a package that somebody asks for by name are errors of npm, which is right here.
    whole = manifest(program.version, name=NAME, description=about, bin=bins, **own)
    others = Entry(f"package/{FILE}", notices())
    binary = Entry("package/bin/confidant", program.path.read_bytes(), 0o755)
    start = Entry("package/confidant.js", (ROOT / "packaging/npm/confidant.js").read_bytes(), 0o755)

    def tarball(stem: str, package: dict[str, object], *files: Entry) -> Path:
        described = Entry("package/package.json", f"{json.dumps(package, indent=2)}\n".encode())
        return write_tar_gz(out / f"{stem}.tgz", [described, *texts(), *files], time, level)

    return [
        tarball(f"{NAME}-{program.version}", launcher, start),
        tarball(f"{NAME}-{platform}-{program.version}", inner, others, binary),
        tarball(f"{NAME}-{program.version}-{platform}-offline", whole, others, start, binary),
    ]


def texts() -> list[Entry]:
    """What every package has to say."""
    readme = Entry("package/README.md", (ROOT / "packaging/README.md").read_bytes())
    return [readme, *(Entry(f"package/{name}", (ROOT / name).read_bytes()) for name in ("LICENSE-APACHE", "LICENSE-MIT"))]
