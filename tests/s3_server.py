"""Starts S3 servers for tests on free loopback ports, runs a command with their addresses, and stops them.

    python tests/s3_server.py cargo test --workspace

The command finds `CONFIDANT_TEST_S3`, the address of a server that serves everybody, and `CONFIDANT_TEST_S3_STRICT`, that
of one that knows no key and so refuses all. Both are `moto`: in memory, nothing leaves the machine, and nothing is left.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

START_SECONDS = 120
STOP_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(*, strict: bool = False) -> Iterator[str]:
    """One server; gives its address once it answers."""
    port = free_port()
    # After so many requests moto asks who is asking. Its own credentials and proxies are none of our business.
    foreign = ("AWS_", "MOTO_", "INITIAL_NO_AUTH_ACTION_COUNT")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    if strict:
        env["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait(process, url)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait(process: subprocess.Popen, url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while True:
        if process.poll() is not None:
            raise SystemExit("the S3 server did not start\nhint: pip install 'moto[server]' into this Python")
        with contextlib.suppress(OSError):
            opener.open(f"{url}/moto-api/data.json", timeout=5).close()
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"the S3 server did not answer within {START_SECONDS} s")
        time.sleep(0.05)


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    with server() as open_to_all, server(strict=True) as strict:
        env = {**os.environ, "CONFIDANT_TEST_S3": open_to_all, "CONFIDANT_TEST_S3_STRICT": strict}
        return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
