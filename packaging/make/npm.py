"""Packages for npm: the launcher with the client, the program for one platform, and both in one for where there is no registry."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

from make.notices import FILE, notices
from make.program import ROOT, CannotPackage, Program
from make.tars import Entry, write_tar_gz

NAME = "confidant-memory"
# Every platform that a release has a program for. npm skips those that are not this machine's.
PLATFORMS = frozenset({"linux-x64"})
CLIENT = ROOT / "clients/typescript"
# What `import` finds: the client everywhere, redaction in Node only.
EXPORTS = {
    ".": {"types": "./client/index.d.mts", "default": "./client/index.mjs"},
    "./redact": {"types": "./client/redact.d.mts", "node": "./client/redact.mjs"},
    "./package.json": "./package.json",
}


def manifest(version: str, **more: object) -> dict[str, object]:
    common = {
        "version": version,
        "license": "MIT OR Apache-2.0",
        "engines": {"node": ">=20"},
    }
    return {**common, **more}


def make(program: Program, out: Path, time: int, level: int) -> list[Path]:
    """Writes the three of them."""
    platform = f"linux-{program.node_machine}"
    own = {"os": ["linux"], "cpu": [program.node_machine]}
    if program.glibc is not None:
        own["libc"] = ["glibc"]
    about = "Private memory for AI agents: the program confidant"
    both = {"description": f"{about}, and its client", "bin": {"confidant": "confidant.js"}, "exports": EXPORTS}
    launcher = manifest(
        program.version,
        name=NAME,
        **both,
        optionalDependencies={f"{NAME}-{one}": program.version for one in sorted(PLATFORMS | {platform})},
    )
    inner = manifest(program.version, name=f"{NAME}-{platform}", description=f"{about}, for {platform}", **own)
    # `os` and `cpu` of a package that somebody asks for by name are errors of npm, which is right here.
    whole = manifest(program.version, name=NAME, **both, **own)
    others = Entry(f"package/{FILE}", notices())
    binary = Entry("package/bin/confidant", program.path.read_bytes(), 0o755)
    start = Entry("package/confidant.js", (ROOT / "packaging/npm/confidant.js").read_bytes(), 0o755)
    modules = client(program.version)

    def tarball(stem: str, package: dict[str, object], *files: Entry) -> Path:
        described = Entry("package/package.json", f"{json.dumps(package, indent=2)}\n".encode())
        return write_tar_gz(out / f"{stem}.tgz", [described, *texts(), *files], time, level)

    return [
        tarball(f"{NAME}-{program.version}", launcher, start, *modules),
        tarball(f"{NAME}-{platform}-{program.version}", inner, others, binary),
        tarball(f"{NAME}-{program.version}-{platform}-offline", whole, others, start, binary, *modules),
    ]


def client(version: str) -> list[Entry]:
    """The client as JavaScript, with its types."""
    if f'VERSION = "{version}"' not in (CLIENT / "src/wire.mts").read_text():
        raise CannotPackage(f"{CLIENT}/src/wire.mts does not say that its version is {version}\nhint: set VERSION there")
    compiler = ROOT / "web/node_modules/.bin/tsc"
    if not compiler.exists():
        raise CannotPackage("TypeScript is not installed, which compiles the client\nhint: npm --prefix web install --ignore-scripts")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([compiler, "--project", CLIENT, "--outDir", folder], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotPackage(f"the client does not compile: {done.stdout.strip()}")
        made = sorted(Path(folder).iterdir())
        return [Entry(f"package/client/{path.name}", path.read_bytes()) for path in made if re.search(r"\.m(js|ts)$", path.name)]


def texts() -> list[Entry]:
    """What every package has to say."""
    readme = Entry("package/README.md", (ROOT / "packaging/README.md").read_bytes())
    return [readme, *(Entry(f"package/{name}", (ROOT / name).read_bytes()) for name in ("LICENSE-APACHE", "LICENSE-MIT"))]
