"""A package for Debian and Ubuntu: the program as a service of its own user, with manual pages and completions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from email.utils import formatdate
from pathlib import Path

from make.archive import COMPLETIONS, manual_pages
from make.notices import FILE, notices
from make.program import ROOT, CannotPackage, Program, needed
from make.tars import packed

PARTS = ROOT / "packaging/debian"
# The package that has each library. glibc has the same version for all of its own.
LIBC = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
OTHERS = {"libgcc_s.so.1": "libgcc-s1 (>= 4.2)"}
MAINTAINER = "The Confidant developers <maintainers@confidant.invalid>"
# What a package that is built a second time from one version would count up.
REVISION = "1"


def depends(program: Program) -> list[str]:
    """What has to be installed before, from what the program's file asks for."""
    found = {"adduser", "init-system-helpers (>= 1.54~)"}
    for library in program.libraries:
        if library in LIBC and program.glibc:
            found.add(f"libc6 (>= {'.'.join(map(str, program.glibc))})")
        elif library in OTHERS:
            found.add(OTHERS[library])
        else:
            raise CannotPackage(f"the program needs {library}\nhint: say in packaging/make/deb.py which Debian package has it")
    return sorted(found)


def make(program: Program, out: Path, time: int, level: int) -> list[Path]:
    """Writes the package."""
    needed("dpkg-deb", "dpkg")
    version = f"{program.version}-{REVISION}"
    path = out / f"confidant_{version}_{program.debian_machine}.deb"
    with tempfile.TemporaryDirectory() as folder:
        # Not the folder itself, which only this user may enter: it is the package's root.
        tree = Path(folder) / "root"
        files = content(program, version, time)
        for name, (bytes_, mode) in files.items():
            put(tree / name, bytes_, mode)
        # Folders take space, too: dpkg counts each as one KiB.
        folders = {parent for name in files for parent in Path(name).parents}
        size = sum(-(-len(bytes_) // 1024) for bytes_, _ in files.values()) + len(folders)
        sums = "".join(f"{hashlib.md5(bytes_).hexdigest()}  {name}\n" for name, (bytes_, _) in sorted(files.items()) if not name.startswith("etc/"))
        put(tree / "DEBIAN/control", control(program, version, size).encode())
        put(tree / "DEBIAN/md5sums", sums.encode())
        put(tree / "DEBIAN/conffiles", b"/etc/confidant/confidant.toml\n")
        for script in ("postinst", "prerm", "postrm"):
            put(tree / f"DEBIAN/{script}", (PARTS / script).read_bytes(), 0o755)
        form = ["-Zxz"] if level else ["-Znone"]
        made = subprocess.run(
            ["dpkg-deb", "--root-owner-group", *form, "--build", tree, path],
            env=os.environ | {"SOURCE_DATE_EPOCH": str(time)},
            capture_output=True,
            text=True,
            check=False,
        )
    if made.returncode != 0:
        raise CannotPackage(f"dpkg-deb: {made.stderr.strip()}")
    return [path]


def content(program: Program, version: str, time: int) -> dict[str, tuple[bytes, int]]:
    """Every file that is installed, by its path."""
    doc = "usr/share/doc/confidant"
    # One wording of the newest change is enough for Debian's own: the rest is in ours.
    changed = f"confidant ({version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {MAINTAINER}  {formatdate(time)}\n"
    plain = {
        "usr/lib/systemd/system/confidant.service": (PARTS / "confidant.service").read_bytes(),
        "etc/confidant/confidant.toml": (PARTS / "confidant.toml").read_bytes(),
        f"{doc}/{FILE}.gz": packed(notices(), 9),
        f"{doc}/copyright": copyright_().encode(),
        f"{doc}/changelog.gz": packed((ROOT / "CHANGELOG.md").read_bytes(), 9),
        f"{doc}/changelog.Debian.gz": packed(changed.encode(), 9),
        f"{doc}/examples/confidant.example.toml": program.run("config").encode(),
    }
    for shell, place in COMPLETIONS.items():
        plain[f"usr/share/{place}"] = program.run("completions", shell).encode()
    with tempfile.TemporaryDirectory() as folder:
        for name, page in manual_pages(program, Path(folder)).items():
            plain[f"usr/share/man/man1/{name}.gz"] = packed(page, 9)
    files = {name: (bytes_, 0o644) for name, bytes_ in plain.items()}
    files["usr/bin/confidant"] = (program.path.read_bytes(), 0o755)
    return files


def control(program: Program, version: str, size: int) -> str:
    """What apt knows of it."""
    return (
        "Package: confidant\n"
        f"Version: {version}\n"
        f"Architecture: {program.debian_machine}\n"
        f"Maintainer: {MAINTAINER}\n"
        f"Installed-Size: {size}\n"
        f"Depends: {', '.join(depends(program))}\n"
        "Recommends: ca-certificates\n"
        "Suggests: postgresql, redis-server\n"
        "Section: net\n"
        "Priority: optional\n"
        "Description: private memory for AI agents\n"
        " A bot or agent remembers every person that it talks to, in every room and\n"
        " thread, and never mixes them up. Each conversation is encrypted with its own\n"
        " key; erasing a person gives a receipt that can be checked.\n"
        " .\n"
        " This package has the program, its manual pages and completions, and a service\n"
        " that listens on 127.0.0.1:7367 and keeps its data in /var/lib/confidant.\n"
    )


def copyright_() -> str:
    """Debian's form of both licences: Apache's is on every Debian system, MIT's is here as a whole."""
    mit = (ROOT / "LICENSE-MIT").read_text().strip()
    body = "".join(f" {line}\n" if line.strip() else " .\n" for line in mit.splitlines())
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: Confidant\n"
        f"Comment: {FILE}.gz beside this file lists the works of others that are in the program, with their licences.\n\n"
        "Files: *\n"
        f"Copyright: {next(line for line in mit.splitlines() if 'Copyright' in line).strip()}\n"
        "License: MIT or Apache-2.0\n\n"
        f"License: MIT\n{body}\n"
        "License: Apache-2.0\n On Debian systems it is in /usr/share/common-licenses/Apache-2.0.\n"
    )


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
