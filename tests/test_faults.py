"""What an attacker without a token, a full disk and a crash can do to a whole process: not much."""

from __future__ import annotations

import http.client
import json
import os
import resource
import shutil
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from conftest import FOREIGN, Confidant

BINARY = Path(os.environ["CONFIDANT_BIN"]).resolve()
HALF_SENT = 4200


def health(port: int, path: str = "/healthz") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_half_sent_requests_take_nobodys_place(tmp_path: Path) -> None:
    """4,200 connections that never send a whole head, from one address, which is also a proxy's."""
    most = HALF_SENT + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard >= most, "this test needs 5,000 files: ulimit -Hn"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    server = Confidant(tmp_path)
    with ExitStack() as stack:
        stack.callback(server.stop)
        server.start()
        for _ in range(HALF_SENT):
            silent = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=120))
            silent.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        assert [health(server.port), health(server.port, "/readyz")] == [200, 200]
        assert server.request("GET", "/v1/models").status == 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_nothing_of_the_process_is_dumped(tmp_path: Path) -> None:
    """Whatever was allowed before: no core files, and no other process of the same person can look inside."""
    server = Confidant(tmp_path)
    try:
        server.start()
        process = Path(f"/proc/{server.process.pid}")
        limits = process.joinpath("limits").read_text().splitlines()
        core = next(line for line in limits if line.startswith("Max core file size"))
        assert core.split()[4:6] == ["0", "0"], core
        # Files of a process that cannot be dumped are root's.
        assert process.joinpath("mem").stat().st_uid == 0
        if os.getuid() == 0:
            as_somebody = ["setpriv", "--reuid=65534", "--clear-groups", "cat", str(process / "environ")]
            assert subprocess.run(as_somebody, capture_output=True).returncode != 0
    finally:
        server.stop()


def test_on_a_full_disk_people_are_answered_and_can_be_listed_exported_and_erased(tmp_path: Path) -> None:
    """On a file system of 24 MB without a byte left: only what has to be written is not, and hints fit the command."""
    script = """
        mount -t tmpfs -o size=24m tmpfs "$1" && exec python3 - "$1" "$2" <<'PY'
import json, os, subprocess, sys
folder, binary = sys.argv[1:]
environment = {**os.environ, "CONFIDANT_SERVER__DATA_DIR": folder + "/data"}
def run(*words):
    done = subprocess.run([binary, *words], env=environment, capture_output=True, text=True)
    print(json.dumps({"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}))
    return done
def chat(user, text):
    return run("chat", "--user", user, "--room", "r", "--once", text)
def fill():
    ballast = os.open(folder + "/ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for size in (65536, 4096, 512, 1):
            try:
                while os.write(ballast, b"x" * size):
                    pass
            except OSError:
                pass
    finally:
        os.close(ballast)
chat("alice", "my name is Alice")
chat("bob", "my name is Bob")
fill()
run("session", "list")
run("person", "export", "alice")
chat("bob", "What is my name?")
fill()
erased = run("person", "erase", "alice")
with open("/dev/shm/" + os.path.basename(folder) + ".receipt", "w") as receipt:
    receipt.write(erased.stdout)
fill()
run("session", "list")
run("audit", "verify", "--receipt", receipt.name)
os.remove(receipt.name)
os.remove(folder + "/ballast")
chat("bob", "What is my name?")
PY
    """
    assert shutil.which("unshare"), "this test needs unshare (util-linux)"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    shell = ["unshare", "--map-root-user", "--mount", "bash", "-c", script, "bash", str(tmp_path), str(BINARY)]
    done = subprocess.run(shell, env=clean, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    _, _, listed, exported, answered, erased, again, verified, after = steps
    assert [step["code"] for step in steps] == [0] * len(steps), steps
    assert "alice" in listed["stdout"] and "my name is Alice" in exported["stdout"]
    assert "memory" in answered["stderr"] and "store-full" in answered["stderr"], answered
    assert json.loads(erased["stdout"])["sessions"] == 1, erased
    assert "alice" not in again["stdout"] and "bob" in again["stdout"], again
    assert "the receipt is genuine" in verified["stdout"], verified
    assert "Bob" in after["stdout"], after
    assert not any("send the turn again" in step["stderr"] for step in steps), steps
