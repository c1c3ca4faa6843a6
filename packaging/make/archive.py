"""An archive for everybody else: the program, its manual pages and completions, and a sum to check it by."""

from __future__ import annotations

import hashlib
from pathlib import Path

from make.notices import FILE, notices
from make.program import ROOT, Program
from make.tars import Entry, write_tar_gz

# The shell, and where Debian and most others look for its completions.
COMPLETIONS = {
    "bash": "bash-completion/completions/confidant",
    "fish": "fish/vendor_completions.d/confidant.fish",
    "zsh": "zsh/vendor-completions/_confidant",
}


def manual_pages(program: Program, folder: Path) -> dict[str, bytes]:
    """Every page by its file's name, as the program writes them."""
    pages = folder / "man1"
    program.run("man", str(pages))
    return {page.name: page.read_bytes() for page in sorted(pages.iterdir())}


def make(program: Program, out: Path, time: int, level: int) -> list[Path]:
    """Writes the archive, named by what its program is, and its SHA-256 as `sha256sum --check` takes it."""
    stem = f"confidant-{program.version}-{program.machine}-linux-{program.libc}"
    files = [Entry(f"{stem}/confidant", program.path.read_bytes(), 0o755)]
    files += [Entry(f"{stem}/{name}", (ROOT / name).read_bytes()) for name in ("LICENSE-APACHE", "LICENSE-MIT")]
    files.append(Entry(f"{stem}/{FILE}", notices()))
    files.append(Entry(f"{stem}/README.md", (ROOT / "packaging/README.md").read_bytes()))
    files.append(Entry(f"{stem}/confidant.example.toml", program.run("config").encode()))
    pages = manual_pages(program, program.path.parent)
    files += [Entry(f"{stem}/man/man1/{name}", page) for name, page in pages.items()]
    files += [Entry(f"{stem}/share/{place}", program.run("completions", shell).encode()) for shell, place in COMPLETIONS.items()]
    path = write_tar_gz(out / f"{stem}.tar.gz", files, time, level)
    sums = path.with_name(f"{path.name}.sha256")
    sums.write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    return [path, sums]
