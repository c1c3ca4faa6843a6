"""Starts what the tests talk to: the built program, and a real language model behind an OpenAI-compatible server.

`CONFIDANT_BIN` names the program. Without it nothing here can be tested, and that is an error, never a skip.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import matrix_server
import openai
import pytest
from matrix_server import Synapse
from recording_model import RecordingModel

if TYPE_CHECKING:
    from matrix_people import People

TESTS = Path(__file__).parent
START_SECONDS = 120
MODEL_START_SECONDS = 400
STOP_SECONDS = 60
REQUEST_SECONDS = 600

# What would change the program's behaviour behind a test's back.
FOREIGN = ("CONFIDANT_", "CHECKPOINT_", "OLD_CHECKPOINT_", "OPENAI_", "ROOM_CONTEXT_", "LUMERA_", "MATRIX_", "REDIS_")


def pytest_configure(config: pytest.Config) -> None:
    binary = os.environ.get("CONFIDANT_BIN")
    if not binary:
        raise pytest.UsageError("CONFIDANT_BIN is not set\nhint: CONFIDANT_BIN=target/debug/confidant")
    if not os.access(binary, os.X_OK) or not Path(binary).is_file():
        raise pytest.UsageError(f"CONFIDANT_BIN names no program: {binary}\nhint: cargo build first")


@pytest.fixture(scope="session")
def npm() -> Path:
    """Where the programs from npm are: `CONFIDANT_NPM`, or made now."""
    folder = os.environ.get("CONFIDANT_NPM")
    if not folder:
        made = subprocess.run([TESTS.parent / "scripts/services", "npm"], capture_output=True, text=True, check=True)
        folder = made.stdout.strip().splitlines()[-1]
    return Path(folder)


@pytest.fixture(scope="session")
def synapse() -> Iterator[Synapse]:
    """A real Matrix server for all tests; each has accounts of its own on it."""
    with matrix_server.synapse() as server:
        yield server


@pytest.fixture(scope="session")
def people(synapse: Synapse) -> Iterator[People]:
    """Makes people on it."""
    from matrix_people import People

    made = People(synapse)
    yield made
    made.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(ready: Callable[[], bool], seconds: float, failure: Callable[[], str]) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            pytest.fail(failure(), pytrace=False)
        time.sleep(0.02)


def stop(process: subprocess.Popen) -> int:
    """Asks a process that a fixture started to end, and waits for it."""
    if process.poll() is None:
        process.terminate()
    try:
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        pytest.fail(f"still running {STOP_SECONDS} s after SIGTERM: {process.args}", pytrace=False)


@dataclass
class Reply:
    status: int
    body: bytes

    def json(self) -> dict:
        return json.loads(self.body)


@dataclass
class Event:
    """One server-sent event."""

    name: str
    data: dict


@dataclass
class Confidant:
    """A `confidant serve` of its own, with its own data folder. Restarting keeps folder and port."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen | None = None
    arguments: list[str] = field(default_factory=list)

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def log_file(self) -> Path:
        return self.folder / "confidant.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return (self.data_dir / "admin.token").read_text().strip()

    def start(self) -> None:
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        ours = {
            "CONFIDANT_SERVER__DATA_DIR": str(self.data_dir),
            "CONFIDANT_SERVER__LISTEN": f"127.0.0.1:{self.port}",
            "TMPDIR": str(temporary),
        }
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [Path(os.environ["CONFIDANT_BIN"]).resolve(), "serve", *self.arguments],
                cwd=self.folder,
                env=clean | ours | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(self._is_ready, START_SECONDS, lambda: f"confidant is not ready:\n{self.log()}")

    def _is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            pytest.fail(f"confidant ended with {self.process.returncode}:\n{self.log()}", pytrace=False)
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=60) as response:
                return response.status == 200
        except urllib.error.HTTPError as refused:
            # A gateway that only lacks a worker has started.
            with refused:
                return b'"no_worker"' in refused.read()
        except (urllib.error.URLError, ConnectionError, TimeoutError, http.client.HTTPException):
            return False

    def stop(self) -> None:
        if self.process is not None:
            code = stop(self.process)
            self.process = None
            assert code == 0, f"confidant ended with {code} after SIGTERM:\n{self.log()}"

    def restart(self) -> None:
        self.stop()
        self.start()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def client(self, token: str | None = None) -> openai.OpenAI:
        """The official client. It does not retry, so that a test sees the first answer."""
        return openai.OpenAI(
            base_url=f"{self.url}/v1",
            api_key=token or self.token,
            max_retries=0,
            timeout=REQUEST_SECONDS,
        )

    def _open(self, method: str, path: str, body: dict | None, headers: dict[str, str]):
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"} | headers,
        )
        return urllib.request.urlopen(request, timeout=REQUEST_SECONDS)

    def request(self, method: str, path: str, body: dict | None = None, **headers: str) -> Reply:
        try:
            with self._open(method, path, body, headers) as response:
                return Reply(response.status, response.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Reply(refused.code, refused.read())

    def turn(self, session: str, body: dict) -> dict:
        reply = self.request("POST", turns_path(session), body)
        assert reply.status == 200, f"{reply.status}: {reply.body.decode(errors='replace')}\n{self.log()}"
        return reply.json()

    def stream_turn(self, session: str, body: dict) -> list[Event]:
        with self._open("POST", turns_path(session), body, {"Accept": "text/event-stream"}) as response:
            assert response.headers.get_content_type() == "text/event-stream"
            return list(events(response))

    def files_with(self, text: str) -> list[str]:
        """Every file below the folder (data, WAL, log, temporary) that holds the text readably."""
        needles = [text.encode("utf-8"), text.encode("utf-16-le")]
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(
            str(path.relative_to(self.folder))
            for path in files
            if any(needle in path.read_bytes() for needle in needles)
        )


def turns_path(session: str) -> str:
    return f"/api/v1/session/{quote(session, safe='')}/turns"


def events(lines: Iterator[bytes]) -> Iterator[Event]:
    """Parses server-sent events; comments (keep-alives) are dropped, a cut-off event is an error."""
    name, data = "message", []
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if line.startswith(":"):
            continue
        if line:
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if key == "event":
                name = value
            elif key == "data":
                data.append(value)
        elif data:
            yield Event(name, json.loads("\n".join(data)))
            name, data = "message", []
    assert not data, "the stream ended inside an event"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Confidant]:
    """A server with the built-in model, fresh for each test."""
    confidant = Confidant(tmp_path)
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


@pytest.fixture
def client(server: Confidant) -> openai.OpenAI:
    return server.client()


@pytest.fixture
def model(client: openai.OpenAI) -> str:
    """The name of a model that the server says it has."""
    return client.models.list().data[0].id


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    """A model that keeps what it is asked."""
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture
def recording(tmp_path: Path, recorder: RecordingModel) -> Iterator[Confidant]:
    """A server that asks that model, fresh for each test."""
    confidant = Confidant(tmp_path, environment=recorder.environment)
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a real, small language model."""
    port = free_port()
    log_file = tmp_path_factory.mktemp("model") / "model.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, TESTS / "llm_server.py", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    said: queue.Queue[str | None] = queue.Queue()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.put(line.strip())
        said.put(None)

    threading.Thread(target=listen, daemon=True).start()
    try:
        deadline = time.monotonic() + MODEL_START_SECONDS
        line: str | None = ""
        while line != "ready":
            try:
                line = said.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                line = None
            if line is None:
                pytest.fail(f"the language model did not start:\n{log_file.read_text(errors='replace')}", pytrace=False)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def real_server(tmp_path: Path, language_model: str) -> Iterator[Confidant]:
    """A server that asks the real language model."""
    confidant = Confidant(
        tmp_path,
        environment={
            "CONFIDANT_MODEL__PROVIDER": "openai",
            "CONFIDANT_MODEL__BASE_URL": language_model,
            "CONFIDANT_MODEL__MODEL": "smollm2",
            "CONFIDANT_MODEL__TEMPERATURE": "0",
            # However slow the machine is.
            "CONFIDANT_MODEL__TIMEOUT_SECONDS": "500",
            "CONFIDANT_TURN__ANSWER_TIMEOUT_SECONDS": "550",
            "CONFIDANT_SERVER__REQUEST_TIMEOUT_SECONDS": "600",
            "OPENAI_API_KEY": "the-test-model-wants-none",
        },
    )
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()
