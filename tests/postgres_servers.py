"""Starts PostgreSQL servers for tests on free loopback ports, runs a command with their addresses, and stops them.

    python tests/postgres_servers.py cargo test --workspace

The command finds `CONFIDANT_TEST_POSTGRES` and, for the same server over TLS, `CONFIDANT_TEST_POSTGRES_TLS`, whose certificate
`CONFIDANT_TEST_POSTGRES_CA` signs, and for its superuser, `CONFIDANT_TEST_POSTGRES_SUPERUSER`; `CONFIDANT_TEST_POSTGRES_FILES` is the folder of its files. `CONFIDANT_TEST_POSTGRES_BREAKABLE` is a
server for tests that need one to break, and `CONFIDANT_TEST_POSTGRES_BREAK` a program that does it: `restart`, `stop` or `start`.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import redis_servers

ROLE, PASSWORD, DATABASE = "confidant", "secret", "confidant"


def program(name: str) -> str:
    """A program of the newest PostgreSQL that is installed; Debian keeps them out of the path."""
    versions = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: float(path.split("/")[4]))
    found = shutil.which(name, path=os.pathsep.join([*reversed(versions), os.environ.get("PATH", "")]))
    if found is None:
        raise SystemExit(f"{name} of PostgreSQL is not installed\nhint: scripts/services apt")
    return found


def as_server() -> list[str]:
    """PostgreSQL does not run as root, so there it runs as the user that its package made."""
    if os.geteuid() != 0:
        return []
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        raise SystemExit("PostgreSQL does not run as root, and there is no user postgres\nhint: scripts/services apt") from None
    return ["runuser", "-u", "postgres", "--"]


def run(*command: object, **more) -> None:
    done = subprocess.run([*as_server(), *map(str, command)], capture_output=True, check=False, cwd="/", **more)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed\n{done.stderr.decode()}")


@contextlib.contextmanager
def server(waits_for_the_disk: bool = False) -> Iterator[tuple[int, Path]]:
    """One server with a role and a database of ours; gives its port and its folder. It keeps what it was given when it is killed; when the
    machine is, only if it waits for the disk."""
    folder = Path(tempfile.mkdtemp(prefix="confidant-postgres-"))
    try:
        files = redis_servers.certificates(folder)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for path in [folder, *folder.iterdir()]:
                os.chown(path, user.pw_uid, user.pw_gid)
        files["key"].chmod(0o600)
        data, port = folder / "data", redis_servers.free_port()
        run(program("initdb"), "-D", data, "-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync")
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": folder,
            "max_connections": 300,
            "ssl": "on",
            "ssl_cert_file": files["certificate"],
            "ssl_key_file": files["key"],
            "deadlock_timeout": "1s",
        }
        if not waits_for_the_disk:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        with (data / "postgresql.auto.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        pg_ctl = [program("pg_ctl"), "-D", data, "-w", "-s", "-l", folder / "log"]
        run(*pg_ctl, "start")
        try:
            psql = [program("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-p", port, "-U", "postgres"]
            run(*psql, "-c", f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'", "-c", f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
            run(*psql, "-c", f"ALTER ROLE postgres PASSWORD '{PASSWORD}'")
            yield port, folder
        finally:
            with contextlib.suppress(SystemExit):
                run(*pg_ctl, "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def breaker(folder: Path) -> Path:
    """A program that breaks the server in this folder: as a loss of power would, not in good order."""
    path = folder / "break"
    control = " ".join([*as_server(), program("pg_ctl"), "-D", str(folder / "data"), "-w", "-s", "-l", str(folder / "log")])
    path.write_text(f'#!/bin/sh\ncd /\ncase "$1" in start) exec {control} start ;; *) exec {control} "$1" -m immediate ;; esac\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """All of them; gives the variables that say where they are."""
    with server() as (port, folder), server(waits_for_the_disk=True) as (breakable, its_folder):
        at = f"postgres://{ROLE}:{PASSWORD}@127.0.0.1"
        yield {
            "CONFIDANT_TEST_POSTGRES": f"{at}:{port}/{DATABASE}",
            "CONFIDANT_TEST_POSTGRES_TLS": f"{at}:{port}/{DATABASE}?sslmode=verify-full",
            "CONFIDANT_TEST_POSTGRES_SUPERUSER": f"postgres://postgres:{PASSWORD}@127.0.0.1:{port}/{DATABASE}",
            "CONFIDANT_TEST_POSTGRES_CA": str(folder / "ca.pem"),
            "CONFIDANT_TEST_POSTGRES_FILES": str(folder / "data"),
            "CONFIDANT_TEST_POSTGRES_BREAKABLE": f"{at}:{breakable}/{DATABASE}",
            "CONFIDANT_TEST_POSTGRES_BREAK": str(breaker(its_folder)),
        }


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    with servers() as env:
        return subprocess.run(command, env={**os.environ, **env}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
