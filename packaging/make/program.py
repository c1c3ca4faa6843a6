"""The program that is packaged, and what its file says of where it runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# By the machine that readelf names: what Python, npm, Debian and OCI call it.
MACHINES = {
    "Advanced Micro Devices X86-64": ("x86_64", "x64", "amd64"),
    "AArch64": ("aarch64", "arm64", "arm64"),
}


class CannotPackage(Exception):
    """Why a package cannot be made, with a hint."""


@dataclass(frozen=True)
class Program:
    """One executable file for Linux."""

    path: Path
    version: str
    machine: str
    node_machine: str
    debian_machine: str
    # The libraries that it is linked with; none if it is static.
    libraries: tuple[str, ...]
    # The oldest glibc that has all it asks for; none if it is static.
    glibc: tuple[int, ...] | None

    @property
    def libc(self) -> str:
        """What its file is named by: it runs on every Linux, or where glibc is."""
        return "static" if self.glibc is None else "gnu"

    def run(self, *arguments: str) -> str:
        """What it prints, asked away from anybody's settings."""
        clean = {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent"}
        done = subprocess.run([self.path, *arguments], cwd="/", env=clean, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotPackage(f"{self.path} {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout


def workspace_version() -> str:
    """The version in Cargo.toml."""
    found = re.search(r'^\[workspace\.package\]\nversion = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if found is None:
        raise CannotPackage("Cargo.toml has no workspace version")
    return found[1]


def source_time() -> int:
    """The time that files in packages have: SOURCE_DATE_EPOCH, or that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        asked = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        given = said or "315532800"
    if not given.isdecimal():
        raise CannotPackage(f"SOURCE_DATE_EPOCH is not a number of seconds: {given}\nhint: date +%s prints one")
    # Zip knows no time before 1980.
    return max(int(given), 315_532_800)


def take(binary: Path, folder: Path) -> Program:
    """Copies the program into the folder, without symbols, and looks into it."""
    if not os.access(binary, os.X_OK) or not binary.is_file():
        raise CannotPackage(f"there is no program {binary}\nhint: leave --binary out to build one")
    path = folder / "confidant"
    needed("strip", "binutils")
    subprocess.run(["strip", "--strip-all", "-o", path, binary], check=True)
    path.chmod(0o755)
    return look(path)


def needed(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        raise CannotPackage(f"{tool} is not installed\nhint: apt-get install {package}")


def look(path: Path) -> Program:
    """Reads from the file what it needs, and asks it for its version."""
    needed("readelf", "binutils")
    asked = ["readelf", "--wide", "--file-header", "--dynamic", "--program-headers", "--version-info", str(path)]
    done = subprocess.run(asked, env=os.environ | {"LC_ALL": "C"}, capture_output=True, text=True, check=False)
    machine = re.search(r"^ *Machine: +(.+)$", done.stdout, re.MULTILINE)
    names = MACHINES.get(machine[1].strip()) if machine else None
    if names is None:
        raise CannotPackage(f"{path} is no program for Linux on {' or '.join(sorted(n[0] for n in MACHINES.values()))}")
    libraries = tuple(sorted(re.findall(r"\(NEEDED\) +Shared library: \[(.+?)\]", done.stdout)))
    program = Program(path, "", *names, libraries, oldest_glibc(done.stdout) if libraries else None)
    words = program.run("--version").split()
    if words != ["confidant", workspace_version()]:
        raise CannotPackage(f"{path} says it is {' '.join(words)}, and Cargo.toml has {workspace_version()}\nhint: build it again")
    return Program(path, words[1], *names, libraries, program.glibc)


def oldest_glibc(said: str) -> tuple[int, ...]:
    """The highest version that a needed symbol has, which is the lowest glibc that will do."""
    numbers = [tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_([0-9.]+)\b", said)]
    if "GLIBC_ABI_DT_RELR" in said:
        numbers.append((2, 36))
    if not numbers:
        raise CannotPackage("the program is linked with libraries and names no version of glibc: it is for another libc")
    return max(numbers)
