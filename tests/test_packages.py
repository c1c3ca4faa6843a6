"""Every package that scripts/package makes, installed where nothing else is, and started.

They are made once, of the program that is tested. The commands are those of docs/INSTALL.md, pasted as they stand.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import FOREIGN, free_port, stop, wait_until
from test_readme import blocks

ROOT = Path(__file__).parent.parent
INSTALL = (ROOT / "docs/INSTALL.md").read_text()
KINDS = ("wheel", "npm", "deb", "archive", "image")
START_SECONDS = 120
NOT_TRIED = "# not tried by the tests: "

# The client that came with the package, and what it says.
CLIENT = """\
from pathlib import Path
from confidant_memory import Confidant, redact
token = Path("confidant-data/admin.token").read_text()
with Confidant("http://127.0.0.1:7367", token=token) as confidant:
    print(confidant.session("http:t:m:eve").ask("Hello, I'm Eve").memory)
print(redact("write to jane@example.org").text)
"""
MODULE = """\
import { readFileSync } from "node:fs";
import { Confidant } from "confidant-memory";
import { Redactor } from "confidant-memory/redact";
const token = readFileSync("confidant-data/admin.token", "utf8");
const confidant = new Confidant({ url: "http://127.0.0.1:7367", token });
console.log((await confidant.session("http:t:m:eve").ask("Hello, I'm Eve")).memory);
console.log((await new Redactor().redact("write to jane@example.org")).value);
"""
SAID = "kept\nwrite to <REDACTED:EMAIL>\n"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root of a process")


def environment(home: Path, *programs: Path) -> dict[str, str]:
    """That of somebody who has just come, with these folders first on the PATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*FOREIGN, "npm_config_", "PIP_", "XDG_", "CARGO_"))}
    path = os.pathsep.join([*map(str, programs), kept.get("PATH", "")])
    npm = {"npm_config_update_notifier": "false", "npm_config_cache": str(home / "npm")}
    return kept | npm | {"HOME": str(home), "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def package(out: Path, *kinds: str, **more: str) -> list[Path]:
    """Makes packages of the program that is tested."""
    command = [ROOT / "scripts/package", "--binary", os.environ["CONFIDANT_BIN"], "--out", out, "--quick", *kinds]
    done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that has them all."""
    folder = tmp_path_factory.mktemp("packages")
    made = package(folder, *KINDS)
    assert sorted(made) == sorted(folder.iterdir()) and len(made) == 8
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder that is gone afterwards: programs for tests are large."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture(scope="module")
def debian(packages: Path) -> Path:
    """The Debian package."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("this is no Debian")
    (found,) = packages.glob("*.deb")
    return found


def sections() -> dict[str, list[str]]:
    """The commands of docs/INSTALL.md that are tried, by the heading above them."""
    found: dict[str, list[str]] = {}
    for part in INSTALL.split("\n## ")[1:]:
        commands = [block for block in re.findall(r"```sh\n(.*?)```", part, re.DOTALL) if not block.startswith(NOT_TRIED)]
        if commands:
            found[part.splitlines()[0]] = commands
    return found


def paste(commands: str, folder: Path, env: dict[str, str]) -> str:
    """Runs commands as they stand and gives what they print."""
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail"], input=commands, cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def served(*program: str | Path, env: dict[str, str], folder: Path, arguments: tuple[str, ...] = ("serve",), port: int = 0) -> Iterator[int]:
    """A server that this program started; gives its port once the program itself finds it ready."""
    port = port or free_port()
    listen = {"CONFIDANT_SERVER__LISTEN": f"127.0.0.1:{port}"}
    log_file = folder / f"log-{port}"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*program, *arguments], cwd=folder, env=env | listen, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def is_ready() -> bool:
        assert process.poll() is None, log_file.read_text()
        return ask_whether_ready(*program, env=env | listen, folder=folder).returncode == 0

    try:
        wait_until(is_ready, START_SECONDS, log_file.read_text)
        yield port
    finally:
        code = stop(process)
        assert code == 0, log_file.read_text()


def ask_whether_ready(*program: str | Path, env: dict[str, str], folder: Path) -> subprocess.CompletedProcess:
    """The health check, by the settings."""
    return subprocess.run([*program, "doctor", "--ready"], cwd=folder, env=env, capture_output=True, text=True, check=False)


def first_answer(port: int, data: Path) -> None:
    """README's first example of an agent."""
    (example,) = blocks("python")
    example = example.replace("127.0.0.1:7367", f"127.0.0.1:{port}").replace("confidant-data/admin.token", str(data / "admin.token"))
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "Alice" in done.stdout, done.stderr


@contextmanager
def reported(what: str, capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Says how long it took from the first command to the first answer."""
    begun = time.monotonic()
    yield
    with capsys.disabled():
        print(f"\n{what}: {time.monotonic() - begun:.1f} s from the first command to the first answer")


def test_every_command_is_tried_or_says_why_not() -> None:
    fences = set(re.findall(r"^```.*$", INSTALL, re.MULTILINE))
    assert fences == {"```", "```sh"}, fences
    counts = {heading: len(commands) for heading, commands in sections().items()}
    assert counts == {"pip": 1, "npm": 2, "Debian and Ubuntu": 2, "Archive": 1, "Completions and manual pages": 1}
    for block in re.findall(r"```sh\n(.*?)```", INSTALL, re.DOTALL):
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)


def test_packages_of_one_program_are_the_same_bytes(packages: Path, place: Path) -> None:
    before = os.umask(0o077)
    try:
        again = package(place, "wheel", "deb", TZ="Asia/Tokyo", LC_ALL="C")
    finally:
        os.umask(before)
    assert len(again) == 2
    for path in again:
        assert digest(path) == digest(packages / path.name), path.name


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_cannot_be_packaged_is_said_with_a_hint(place: Path) -> None:
    def refused(*arguments: object) -> str:
        done = subprocess.run([ROOT / "scripts/package", "--out", place, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stdout == "", done.stdout
        return done.stderr

    assert "leave --binary out" in refused("--binary", place / "nothing", "wheel")
    assert "confidant" in refused("--binary", shutil.which("true"), "wheel"), "another program"
    assert "choose from wheel, npm" in refused("rpm")
    assert "leave out --binary" in refused("--binary", os.environ["CONFIDANT_BIN"], "static")


def test_the_wheel_installs_into_an_empty_environment_and_answers(
    packages: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in archive.infolist()}
    (record,) = (name for name in files if name.endswith("/RECORD"))
    rows = {name: (sum_, size) for name, sum_, size in csv.reader(io.StringIO(files[record].decode()))}
    assert rows.keys() == files.keys() and rows.pop(record) == ("", "")
    for name, (sum_, size) in rows.items():
        digest_ = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode().rstrip("=")
        assert (sum_, size) == (f"sha256={digest_}", str(len(files[name]))), name
    # Works of others that are in the program want their licences beside it.
    (others,) = (files[name].decode() for name in files if name.endswith("/LICENSES-OF-DEPENDENCIES.txt"))
    assert "\nserde 1." in others and "\ntokio 1." in others and "\npytest " not in others and "Apache License" in others
    assert ("\npreact " in others) == (ROOT / "web/dist/index.html").is_file()
    assert [name for name, mode in modes.items() if mode != 0o644] == [next(name for name in files if name.endswith("/scripts/confidant"))]
    # What another reader of the file finds to be the newest symbol.
    symbols = subprocess.run(["objdump", "-T", os.environ["CONFIDANT_BIN"]], capture_output=True, text=True, check=True).stdout
    newest = max(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", symbols))
    assert wheel.name.endswith(f"-py3-none-manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}.whl")

    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    env = environment(place, place / "venv/bin") | {"VIRTUAL_ENV": str(place / "venv")}
    with reported("wheel", capsys):
        (commands,) = sections()["pip"]
        assert paste(commands, packages, env).endswith(f"confidant {version()}\n")
        with served("confidant", env=env, folder=place) as port:
            first_answer(port, place / "confidant-data")
            # The module asks the server that came with it, and redacts with the program that came with it.
            asked = CLIENT.replace("7367", str(port))
            assert paste(f"python - <<'END'\n{asked}END", place, env) == SAID
    said = paste("pip check && pip uninstall --yes --quiet confidant-memory", place, env)
    assert said == "No broken requirements found.\n" and not (place / "venv/bin/confidant").exists()
    assert not list((place / "venv").rglob("confidant_memory"))
    # Where no index can be reached, the program alone.
    assert paste(f"pip install --quiet --no-index --no-deps {wheel} && confidant --version", place, env) == f"confidant {version()}\n"


def version() -> str:
    found = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


def test_the_npm_packages_install_offline_and_answer(packages: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two, one = sections()["npm"]
    for commands, project in ((two, place / "two"), (one, place / "one")):
        project.mkdir()
        # Packages in the folder where they are wanted, as the page has it.
        for name in re.findall(r"\./(\S+\.tgz)", commands):
            (project / name).symlink_to(packages / name)
        with reported(f"npm, {project.name}", capsys):
            env = environment(project)
            assert paste(commands, project, env).endswith(f"confidant {version()}\n")
            with served(project / "node_modules/.bin/confidant", env=env, folder=project) as port:
                first_answer(port, project / "confidant-data")
                (project / "client.mjs").write_text(MODULE.replace("7367", str(port)))
                assert paste("node client.mjs", project, env) == SAID


def test_the_launcher_passes_on_how_the_program_ends(packages: Path, place: Path) -> None:
    (tarball,) = packages.glob("*-offline.tgz")
    unpack(gzip.decompress(tarball.read_bytes()), place)
    start = ["node", place / "package/confidant.js"]
    env = environment(place)
    done = subprocess.run([*start, "redact", "--no-names"], input="mail a@example.org", env=env, cwd=place, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "mail <REDACTED:EMAIL>"), done.stderr
    assert subprocess.run([*start, "session", "list"], env=env, cwd=place, capture_output=True).returncode == 2
    (place / "package/bin/confidant").write_text("#!/bin/sh\nkill -KILL $$\n")
    assert subprocess.run(start, env=env, cwd=place).returncode == 128 + signal.SIGKILL


def test_the_launcher_says_what_is_missing(packages: Path, place: Path) -> None:
    name = f"confidant-memory-{version()}.tgz"
    env = environment(place)
    # npm leaves out what it cannot get, and says nothing.
    paste(f"npm install --offline --silent {packages / name}", place, env)
    done = subprocess.run(["npx", "--offline", "confidant", "--version"], cwd=place, env=env, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "", done.stdout
    missing = f"confidant-memory-linux-{ {'x86_64': 'x64', 'aarch64': 'arm64'}[os.uname().machine] }"
    assert f"error: the package {missing}, " in done.stderr and f"npm install {missing}@{version()}" in done.stderr
    launcher = place / "node_modules/confidant-memory/confidant.js"
    elsewhere = f"Object.defineProperty(process, 'platform', {{ value: 'aix' }}); require({json.dumps(str(launcher))})"
    done = subprocess.run(["node", "-e", elsewhere], env=env, capture_output=True, text=True)
    assert done.returncode == 2 and "no program for aix" in done.stderr and "cargo install" in done.stderr, done.stderr


def unpack(archive: bytes, folder: Path) -> None:
    """As root with the owners that it names."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["tar", "-x", "--preserve-permissions", "--numeric-owner", "-C", folder], input=archive, check=True)


def test_the_archive_is_what_its_sum_says_and_runs(packages: Path, place: Path) -> None:
    for path in packages.glob("*-linux-gnu.tar.gz*"):
        shutil.copy(path, place)
    (commands,) = sections()["Archive"]
    env = environment(place)
    assert paste(commands, place, env).endswith(f"confidant {version()}\n")
    (folder,) = (path for path in place.iterdir() if path.is_dir())
    assert {path.name for path in folder.iterdir()} >= {"confidant", "LICENSE-MIT", "LICENSE-APACHE", "LICENSES-OF-DEPENDENCIES.txt", "README.md", "man", "share"}
    # The example of settings is one.
    paste("./confidant --config confidant.example.toml config --effective", folder, env)
    (archive,) = place.glob("*.tar.gz")
    archive.write_bytes(archive.read_bytes()[:-1] + b"?")
    with pytest.raises(AssertionError, match="FAILED"):
        paste(commands, place, env)


def test_completions_and_manual_pages_are_usable(place: Path) -> None:
    programs = place / "bin"
    programs.mkdir()
    (programs / "confidant").symlink_to(Path(os.environ["CONFIDANT_BIN"]).resolve())
    env = environment(place, programs)
    (commands,) = sections()["Completions and manual pages"]
    paste(commands, place, env)
    said = paste('. ./confidant.bash; COMP_WORDS=(confidant person er) COMP_CWORD=2; _confidant confidant er person; echo "${COMPREPLY[@]}"', place, env)
    assert said == "erase\n"
    pages = {page.name for page in (place / "man1").iterdir()}
    assert {"confidant.1", "confidant-serve.1", "confidant-keys-rotate.1"} <= pages
    if shutil.which("groff"):
        for page in sorted((place / "man1").iterdir()):
            done = subprocess.run(["groff", "-K", "utf8", "-man", "-ww", "-z", page], capture_output=True, text=True, check=True)
            assert done.stderr == "", page.name


def test_the_debian_package_keeps_debians_rules(debian: Path, place: Path) -> None:
    def member(kind: str) -> tarfile.TarFile:
        return tarfile.open(fileobj=io.BytesIO(subprocess.run(["dpkg-deb", kind, debian], capture_output=True, check=True).stdout))

    with member("--fsys-tarfile") as files:
        entries = {entry.name.removeprefix("."): entry for entry in files}
        sums = {name.lstrip("/"): hashlib.md5(files.extractfile(entry).read()).hexdigest() for name, entry in entries.items() if entry.isfile()}  # type: ignore[union-attr]
    assert {(entry.uname, entry.gname) for entry in entries.values()} == {("root", "root")}
    executable = {name for name, entry in entries.items() if entry.isfile() and entry.mode & 0o111}
    assert executable == {"/usr/bin/confidant"} and not any(entry.mode & 0o022 for entry in entries.values())
    assert {entry.mode for entry in entries.values() if entry.isdir()} == {0o755}
    for name in (
        "/usr/share/man/man1/confidant.1.gz",
        "/usr/share/man/man1/confidant-serve.1.gz",
        "/usr/share/bash-completion/completions/confidant",
        "/usr/share/zsh/vendor-completions/_confidant",
        "/usr/share/fish/vendor_completions.d/confidant.fish",
        "/usr/share/doc/confidant/copyright",
        "/usr/share/doc/confidant/LICENSES-OF-DEPENDENCIES.txt.gz",
        "/usr/share/doc/confidant/changelog.Debian.gz",
        "/usr/lib/systemd/system/confidant.service",
    ):
        assert name in entries, name
    with member("--ctrl-tarfile") as files:
        control = {entry.name.removeprefix("./"): files.extractfile(entry).read().decode() for entry in files if entry.isfile()}  # type: ignore[union-attr]
        modes = {entry.name.removeprefix("./"): entry.mode for entry in files}
    assert control["conffiles"] == "/etc/confidant/confidant.toml\n"
    assert dict(reversed(line.split("  ")) for line in control["md5sums"].splitlines()) == {
        name: sum_ for name, sum_ in sums.items() if not name.startswith("etc/")
    }
    for script in ("postinst", "prerm", "postrm"):
        assert modes[script] == 0o755 and "set -e" in control[script]
        subprocess.run(["sh", "-n"], input=control[script], text=True, check=True)
    fields = dict(line.split(": ", 1) for line in control["control"].splitlines() if not line.startswith(" "))
    assert (fields["Package"], fields["Version"]) == ("confidant", f"{version()}-1")
    assert depended(place, debian) <= set(fields["Depends"].split(", ")), "Debian's own tool finds more"
    check_unit(debian, place)


def depended(place: Path, debian: Path) -> set[str]:
    """What Debian's own tool finds that the program needs."""
    if shutil.which("dpkg-shlibdeps") is None:
        pytest.skip("dpkg-dev is not installed")
    subprocess.run(["dpkg", "-x", debian, place / "tree"], check=True)
    (place / "debian").mkdir()
    (place / "debian/control").write_text("Source: confidant\n\nPackage: confidant\nArchitecture: any\n")
    command = ["dpkg-shlibdeps", "-O", "--ignore-missing-info", "tree/usr/bin/confidant"]
    said = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    return set(said.strip().removeprefix("shlibs:Depends=").split(", "))


def check_unit(debian: Path, place: Path) -> None:
    """The unit is one, and as confined as the page says."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    unit = place / "tree/usr/lib/systemd/system/confidant.service"
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", unit]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    figure = re.search(r"Overall exposure level for confidant.service: ([0-9.]+) ", said)
    claimed = re.search(r"rates its exposure at ([0-9.]+) of 10 or less", INSTALL)
    assert figure and claimed and float(figure[1]) <= float(claimed[1]), said[-300:]
    # It complains of every line that it does not understand; and here also of units and pages that are not in this folder.
    command = ["systemd-analyze", "verify", f"--root={place / 'tree'}", "confidant.service"]
    verified = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert not re.search(r"confidant\.service:\d+:", verified), verified


def test_the_program_of_the_debian_package_answers(debian: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with reported("deb, unpacked", capsys):
        subprocess.run(["dpkg", "-x", debian, place / "tree"], check=True)
        settings = place / "tree/etc/confidant/confidant.toml"
        env = environment(place)
        # All that the service's settings say but the folder, which would be the system's.
        with served(place / "tree/usr/bin/confidant", "--config", settings, "--data-dir", place / "data", env=env, folder=place) as port:
            first_answer(port, place / "data")


FRESH_SYSTEM = r"""
set -eu
mount -t tmpfs -o mode=755 tmpfs "$1" && mkdir "$1/new" "$1/work" "$1/root" || exit 77
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/new,workdir=$1/work" "$1/root" || exit 77
mount --rbind /dev "$1/root/dev"
mount -t proc proc "$1/root/proc"
mkdir "$1/root/inside"
cp "$2" "$3" "$1/root/inside/"
exec chroot "$1/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root APT_CONFIG=/inside/apt.conf DEBIAN_FRONTEND=noninteractive \
  bash -c 'cd /inside && exec bash -eu -o pipefail /inside/commands'
"""


@as_root
def test_the_debian_package_is_installed_upgraded_removed_and_purged(debian: Path, place: Path) -> None:
    """In this system, as it would be afterwards: a layer above it takes what is written, and goes with the test."""
    if shutil.which("apt-get") is None or subprocess.run(["dpkg", "-s", "adduser"], capture_output=True).returncode:
        pytest.skip("this system has no apt-get or no adduser")
    install, use = sections()["Debian and Ubuntu"]
    recall = 'runuser -u confidant -- confidant --config /etc/confidant/confidant.toml chat --user alice --once "What is my name?"'
    enabled = "/etc/systemd/system/multi-user.target.wants/confidant.service"
    commands = f"""
cat > apt.conf <<'END'
APT::Get::Assume-Yes "true";
APT::Sandbox::User "root";
DPkg::Options {{ "--force-unsafe-io"; }};
END
rm -f /var/lib/man-db/auto-update
{install}
say() {{ echo "== $*"; }}
say "$(stat -c '%U:%G %a' /var/lib/confidant) $(readlink {enabled})"
{use}
echo '# mine' >> /etc/confidant/confidant.toml
echo 'CHECKPOINT_ENCRYPTION_KEY=' > /etc/confidant/environment
rm {enabled}
dpkg --force-unsafe-io -i ./confidant_*.deb
say "$(tail -n 1 /etc/confidant/confidant.toml) $(test -e {enabled} || echo disabled)"
say "$({recall} | head -n 1)"
apt-get remove confidant
say "$(ls /usr/bin/confidant 2>/dev/null || echo gone) $(ls /etc/confidant | tr '\\n' ' ')$(ls /var/lib/confidant/master.key)"
apt-get install ./confidant_*.deb
say "$({recall} | head -n 1)"
apt-get purge confidant
say "$(ls -d /var/lib/confidant /etc/confidant 2>/dev/null || echo gone) $(id -un confidant)"
"""
    script = place / "commands"
    script.write_text(commands)
    here = place / "here"
    here.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", FRESH_SYSTEM, "sh", here, debian, script],
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode == 77:
        pytest.skip(f"no layer can be put above this system: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(("== ", "cli_"))] == [
        "== confidant:confidant 700 /lib/systemd/system/confidant.service",
        "cli_conv:alice\tdefault\t2 records\tkept",
        "== # mine disabled",
        '== You said: "Hello, I\'m Alice"',
        "== gone confidant.toml environment /var/lib/confidant/master.key",
        '== You said: "Hello, I\'m Alice"',
        "== gone confidant",
    ], done.stdout


@as_root
def test_the_image_starts_as_its_user_and_finds_itself_healthy(
    packages: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (image,) = packages.glob("*-image.tar")
    layout = place / "layout"
    unpack(image.read_bytes(), layout)
    (listed,) = json.loads((layout / "manifest.json").read_text())
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(layout, described))
    config = json.loads(blob(layout, manifest["config"]))
    (layer,) = (gzip.decompress(blob(layout, one)) for one in manifest["layers"])
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert [listed["Config"], *listed["Layers"]] == [f"blobs/{one['digest'].replace(':', '/')}" for one in (manifest["config"], *manifest["layers"])]

    how = config["config"]
    root = place / "root"
    unpack(layer, root)
    # From nothing: no shell, and nothing of this user's that root could be tricked by.
    assert sorted(path.name for path in (root / "usr/bin").iterdir()) == ["confidant"]
    start = ["chroot", f"--userspec={how['User']}", root, *how["Entrypoint"]]
    env = dict(variable.split("=", 1) for variable in how["Env"])
    assert env["CONFIDANT_SERVER__LISTEN"] == "0.0.0.0:7367" and how["Healthcheck"]["Test"] == ["CMD", *how["Entrypoint"], "doctor", "--ready"]
    # `env` is not in the image: what starts it is on this machine's PATH.
    with reported("image", capsys), served(*start, env=env | {"PATH": os.environ["PATH"]}, folder=place, arguments=tuple(how["Cmd"])) as port:
        first_answer(port, root / "data")
    assert (root / "data").stat().st_mode & 0o077 == 0
    assert {path.stat().st_uid for path in (root / "data").rglob("*")} == {int(how["User"].split(":")[0])}


def blob(layout: Path, described: dict) -> bytes:
    """What is described, if it is that."""
    content = (layout / "blobs" / described["digest"].replace(":", "/")).read_bytes()
    assert len(content) == described["size"] and f"sha256:{hashlib.sha256(content).hexdigest()}" == described["digest"]
    return content
