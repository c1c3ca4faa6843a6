"""A private Matrix server: Synapse on a free loopback port, with its files in a temporary folder.

    python tests/matrix_server.py COMMAND…     runs a command that finds its address in CONFIDANT_TEST_MATRIX

`CONFIDANT_SYNAPSE` names the environment that has it; without that, `scripts/services synapse` makes it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NAME = "matrix.test"
START_SECONDS = 90
STOP_SECONDS = 60
SECRET = "the-shared-secret-of-the-tests"

FREELY = {"per_second": 10_000, "burst_count": 10_000}
# Limits that would slow tests down; an ordinary server's limit on messages is a variant.
LIMITS = {
    "rc_message": FREELY,
    "rc_registration": FREELY,
    "rc_login": {"address": FREELY, "account": FREELY, "failed_attempts": FREELY},
    "rc_admin_redaction": FREELY,
    "rc_joins": {"local": FREELY, "remote": FREELY},
    "rc_joins_per_room": FREELY,
    "rc_invites": {"per_room": FREELY, "per_user": FREELY, "per_issuer": FREELY},
    "rc_key_requests": FREELY,
    "rc_media_create": FREELY,
    "rc_room_creation": FREELY,
}


class Refused(Exception):
    """The server's answer to a call was an error."""

    def __init__(self, status: int, body: dict) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


def environment() -> Path:
    """Where Synapse is installed."""
    folder = os.environ.get("CONFIDANT_SYNAPSE")
    if not folder:
        services = Path(__file__).parent.parent / "scripts/services"
        made = subprocess.run([services, "synapse"], stdout=subprocess.PIPE, text=True, check=True)
        folder = made.stdout.strip().splitlines()[-1]
    return Path(folder)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Synapse:
    """One server. It can be stopped, started again on the same port, killed, and frozen."""

    folder: Path
    port: int = field(default_factory=free_port)
    # Whether messages are limited as on an ordinary server.
    limited: bool = False
    process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> str:
        return (self.folder / "synapse.log").read_text(errors="replace")[-20_000:]

    def _settings(self) -> Path:
        listener = {
            "port": self.port,
            "bind_addresses": ["127.0.0.1"],
            "type": "http",
            "tls": False,
            "resources": [{"names": ["client"]}],
        }
        settings = {
            "server_name": NAME,
            "public_baseurl": self.url,
            "pid_file": str(self.folder / "synapse.pid"),
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": str(self.folder / "synapse.db")}},
            "media_store_path": str(self.folder / "media"),
            "signing_key_path": str(self.folder / "signing.key"),
            "log_config": str(self.folder / "log.json"),
            "registration_shared_secret": SECRET,
            "macaroon_secret_key": SECRET,
            "form_secret": SECRET,
            "enable_registration": False,
            # In the place of a single sign-on: whoever is logged in can have a token to log in with.
            "login_via_existing_session": {"enabled": True, "require_ui_auth": False},
            "trusted_key_servers": [],
            "suppress_key_server_warning": True,
            "federation_domain_whitelist": [],
            "report_stats": False,
            "presence": {"enabled": False},
            "bcrypt_rounds": 4,
            # People here look now and then only, and want to see everything.
            "filter_timeline_limit": 10_000,
        } | {name: limit for name, limit in LIMITS.items() if not (self.limited and name == "rc_message")}
        key = self.folder / "signing.key"
        if not key.exists():
            seed = base64.b64encode(os.urandom(32)).decode().rstrip("=")
            key.write_text(f"ed25519 a_test {seed}\n")
        path = self.folder / "homeserver.yaml"
        # JSON is YAML.
        path.write_text(json.dumps(settings))
        root = {"level": "WARNING", "handlers": ["file"]}
        handler = {"class": "logging.FileHandler", "filename": str(self.folder / "synapse.log")}
        log = {"version": 1, "handlers": {"file": handler}, "root": root, "disable_existing_loggers": False}
        (self.folder / "log.json").write_text(json.dumps(log))
        return path

    def begin(self) -> None:
        """Starts it, without waiting."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self._settings()
        with (self.folder / "synapse.log").open("ab") as log:
            self.process = subprocess.Popen(
                [environment() / "bin/python", "-m", "synapse.app.homeserver", "-c", settings],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start(self) -> None:
        self.begin()
        assert self.process is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"Synapse did not start\nhint: scripts/services synapse\n{self.log()}")
            with contextlib.suppress(OSError, Refused):
                self.call("GET", "/_matrix/client/versions", seconds=2)
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"Synapse did not answer within {START_SECONDS} s\n{self.log()}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Connections stay open, and nothing is answered."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def call(self, method: str, path: str, body: dict | None = None, token: str = "", seconds: float = 60) -> dict:
        """One call of the client API."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, method=method, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as refused:
            with refused:
                raise Refused(refused.code, json.loads(refused.read() or b"{}")) from None

    def register(self, name: str, password: str, shown: str | None = None) -> str:
        """Makes an account; gives its id."""
        path = "/_synapse/admin/v1/register"
        nonce = self.call("GET", path)["nonce"]
        signed = "\0".join((nonce, name, password, "notadmin")).encode()
        mac = hmac.new(SECRET.encode(), signed, hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": name, "password": password, "admin": False, "mac": mac}
        self.call("POST", path, body | {"displayname": shown or name, "inhibit_login": True})
        return f"@{name}:{NAME}"

    def log_in(self, name: str, password: str) -> str:
        """A token of a device of its own."""
        who = {"type": "m.id.user", "user": name}
        body = {"type": "m.login.password", "identifier": who, "password": password}
        return self.call("POST", "/_matrix/client/v3/login", body)["access_token"]

    def tokens_run_out(self, user_id: str) -> None:
        """All tokens of an account are past their time, while its devices stay."""
        self.kill()
        with contextlib.closing(sqlite3.connect(self.folder / "synapse.db")) as database, database:
            database.execute("UPDATE access_tokens SET valid_until_ms = 1 WHERE user_id = ?", (user_id,))
        self.start()

    def tokens_of(self, user_id: str) -> list[str]:
        """The tokens of all devices of an account, from the server's own table."""
        with contextlib.closing(sqlite3.connect(self.folder / "synapse.db")) as database:
            return [token for (token,) in database.execute("SELECT token FROM access_tokens WHERE user_id = ?", (user_id,))]

    def devices_of(self, user_id: str, token: str) -> dict:
        """What the server tells others of an account's devices: `keys`, by device, and the `master` key."""
        asked = {"device_keys": {user_id: []}}
        told = self.call("POST", "/_matrix/client/v3/keys/query", asked, token)
        master = told.get("master_keys", {}).get(user_id, {}).get("keys", {})
        signing = told.get("self_signing_keys", {}).get(user_id, {}).get("keys", {})
        return {"keys": told["device_keys"].get(user_id, {}), "master": master, "signing": signing}


@contextlib.contextmanager
def synapse(limited: bool = False) -> Iterator[Synapse]:
    """A server that is there for as long as it is wanted."""
    with tempfile.TemporaryDirectory(prefix="confidant-synapse-") as folder:
        server = Synapse(Path(folder), limited=limited)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    with synapse() as server:
        return subprocess.run(command, env={**os.environ, "CONFIDANT_TEST_MATRIX": server.url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
