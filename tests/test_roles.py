"""Gateways and workers that meet on a Redis: our own, and foreign ones that speak the first system's JSON."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pytest
import redis
import redis_servers
from conftest import FOREIGN, Confidant, free_port, stop, turns_path, wait_until
from foreign_roles import ForeignBot, ForeignWorker
from recording_model import RecordingModel
from test_tools import HOSTILE, entry

BINARY = Path(os.environ["CONFIDANT_BIN"]).resolve()
SESSIONS, TURNS = (int(os.environ.get(f"CONFIDANT_ROLE_{of}", many)) for of, many in (("SESSIONS", "60"), ("TURNS", "1200")))
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass
class RedisServer:
    """A Redis of the test's own that keeps its data over a restart."""
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def start(self) -> None:
        program = shutil.which("redis-server")
        assert program, "redis-server is not installed\nhint: scripts/services apt"
        options = f"--port {self.port} --bind 127.0.0.1 --appendonly yes --appendfsync always".split()
        self.process = subprocess.Popen([program, *options, "--dir", str(self.folder), "--save", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, 120, lambda: "the Redis server did not start")

    def _answers(self) -> bool:
        try:
            return bool(self.client().ping())
        except redis.exceptions.RedisError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)
            self.process = None


@dataclass
class RedisCluster:
    """Three masters, each of which hears what is said on the others."""
    nodes: list[int]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{port}" for port in self.nodes)


@pytest.fixture
def cluster() -> Iterator[RedisCluster]:
    program = shutil.which("redis-server")
    assert program, "redis-server is not installed\nhint: scripts/services apt"
    with redis_servers.cluster(program) as nodes:
        yield RedisCluster(nodes)


@dataclass
class Role:
    """A `confidant serve --role …` with a folder of its own."""
    folder: Path
    role: str
    environment: dict[str, str]
    arguments: list[str] = field(default_factory=list)
    process: subprocess.Popen | None = None

    def start(self) -> None:
        mark = len(self.log())
        self.launch()
        wait_until(lambda: self._is_up(mark), 60, lambda: f"the {self.role} is not ready:\n{self.log()}")

    def launch(self) -> None:
        """Starts it without waiting for it."""
        self.folder.mkdir(exist_ok=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        ours = {"CONFIDANT_SERVER__DATA_DIR": str(self.folder / "data")}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [BINARY, "serve", "--role", self.role, *self.arguments],
                cwd=self.folder,
                env=clean | ours | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _is_up(self, mark: int) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the {self.role} ended:\n{self.log()}"
        return ("working: " if self.role == "worker" else "listening on ") in self.log()[mark:]

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        if self.process is not None:
            assert stop(self.process) == 0, self.log()
            self.process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def model() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


def settings(server: RedisServer | RedisCluster, model: RecordingModel | None, **more: str) -> dict[str, str]:
    common = {"REDIS_URL": server.url, "CHECKPOINT_ENCRYPTION_KEY": KEY, "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0"}
    return common | (model.environment if model else {}) | more


def gateway(folder: Path, environment: dict[str, str]) -> Confidant:
    folder.mkdir(exist_ok=True)
    return Confidant(folder, environment=environment, arguments=["--role", "gateway"])


@contextmanager
def running(*processes: Confidant | Role) -> Iterator[None]:
    """Starts them, and stops those that still run, the last first."""
    with ExitStack() as stack:
        for process in processes:
            process.start()
            stack.callback(process.stop)
        yield


@contextmanager
def gateway_and_worker(folder: Path, environment: dict[str, str]) -> Iterator[tuple[Confidant, Role]]:
    front, worker = gateway(folder / "g", environment), Role(folder / "w", "worker", environment)
    with running(front, worker):
        yield front, worker


def readiness(port: int) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_a_gateway_without_workers_says_so_and_with_one_answers(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__PATIENCE_SECONDS="5")
    front, worker = gateway(tmp_path / "g", environment), Role(tmp_path / "w", "worker", environment)
    with ExitStack() as stack:
        stack.enter_context(running(front))
        path = turns_path("http:room:main:ann")
        status, body = readiness(front.port)
        assert status == 503 and "no_worker" in body and "--role worker" in body, body
        refused = front.request("POST", path, {"query": "hello", "request_id": "r1"})
        assert refused.status == 503
        assert refused.json()["error"]["code"] == "no_worker"
        assert "--role worker" in refused.body.decode()
        stack.enter_context(running(worker))
        assert readiness(front.port)[0] == 200
        answered = front.request("POST", path, {"query": "hello", "request_id": "r1"})
        assert answered.status == 200, answered.body
        assert answered.json()["content"] == "noted: hello"
        assert answered.json()["metadata"]["memory"] == "kept"
        # Streamed, piece by piece, through two processes. Pieces that come at once may go as one.
        model.answers["again"], model.between = ["noted: ", *"again"], lambda: time.sleep(0.1)
        events = front.stream_turn("http:room:main:ann", {"query": "again"})
        pieces = [event.data["content"] for event in events if event.name == "delta"]
        assert "".join(pieces) == "noted: again" and len(pieces) > 1
        # What it remembers is in the log that both share.
        exported = front.request("GET", path.removesuffix("/turns") + "/export").json()["messages"]
        assert [message["content"] for message in exported] == ["hello", "noted: hello", "again", "noted: again"]
        # The same request again is the same answer.
        replayed = front.request("POST", path, {"query": "hello", "request_id": "r1"}).json()
        assert replayed["content"] == "noted: hello" and replayed["metadata"]["replayed"]


@pytest.mark.parametrize("mode", ["sealed", "compat"])
def test_promise_6_a_turn_whose_worker_was_killed_does_not_outlive_its_erasure(
    tmp_path: Path, server: RedisServer, model: RecordingModel, mode: str
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE=mode, CONFIDANT_BUS__SILENCE_SECONDS="2")
    front, worker = gateway(tmp_path / "g", environment), Role(tmp_path / "w", "worker", environment)
    session, go = "http:room:main:ann", threading.Event()
    model.answers["my name is Ann"], model.between = ["noted: ", "Ann"], lambda: go.wait(60)
    with running(front, worker), ThreadPoolExecutor(2) as pool:
        accepted = pool.submit(front.request, "POST", turns_path(session), {"query": "my name is Ann"})
        wait_until(lambda: len(model.prompts) > 0, 120, lambda: "the worker did not ask")
        waiting = pool.submit(front.request, "POST", turns_path(session), {"query": "I like tea"})
        # It waits at the gateway by then.
        time.sleep(3)
        worker.kill()
        erased = front.request("DELETE", "/api/v1/person/ann")
        assert erased.status == 200, erased.body
        go.set()
        worker.start()
        for turn in (accepted.result(), waiting.result()):
            assert turn.json()["error"]["code"] == "erased", turn.body
        path = turns_path(session).removesuffix("/turns")
        assert front.request("GET", path + "/export").status == 404
        # A turn of afterwards is no lie.
        front.turn(session, {"query": "hello"})
        exported = front.request("GET", path + "/export").json()["messages"]
        assert [message["content"] for message in exported] == ["hello", "noted: hello"]


def test_promise_8_over_http_a_store_that_is_away_costs_memory_not_answers(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    confidant = Confidant(tmp_path, environment=settings(server, model))
    with running(confidant):
        session = "http:room:main:ann"
        assert confidant.turn(session, {"query": "hello"})["metadata"]["memory"] == "kept"
        server.stop()
        # A session that cannot be loaded. What would be written to one that is known is reported instead.
        told = confidant.turn("http:room:main:bob", {"query": "are you there?"})
        assert told["content"] == "noted: are you there?"
        assert (told["metadata"]["memory"], told["metadata"]["memory_error"]) == ("unavailable", "store-unreachable")
        # Nothing but turns, and nobody who was not known before.
        for method, path in (("GET", turns_path(session).removesuffix("/turns") + "/export"), ("GET", "/v1/models")):
            assert confidant.request(method, path).status == 503
        stranger = confidant.request("POST", turns_path(session), {"query": "me too"}, Authorization="Bearer cft_none")
        assert stranger.status == 503
        server.start()
        back = confidant.turn(session, {"query": "and now?"})
        assert back["metadata"]["memory"] == "kept" and back["metadata"]["recalled"] == 2
        # A look-up that works decides.
        wait_until(lambda: readiness(confidant.port)[0] == 200, 120, confidant.log)
        server.client().delete("confidant:tokens")
        assert confidant.request("POST", turns_path(session), {"query": "revoked"}).status == 401
        server.stop()
        assert confidant.request("POST", turns_path(session), {"query": "revoked"}).status == 503
        server.start()


def test_on_a_cluster_it_does_not_matter_which_server_one_listens_on(
    tmp_path: Path, cluster: RedisCluster, model: RecordingModel
) -> None:
    """A server counts only those who listen on itself. Gateways, workers and what they say are spread over three."""
    for compat in ({}, {"CONFIDANT_BUS__MODE": "compat"}):
        folder = tmp_path / f"mode{len(compat)}"
        folder.mkdir()

        def at(node: int, **more: str) -> dict[str, str]:
            nodes = cluster.nodes[node:] + cluster.nodes[:node]
            return settings(RedisCluster(nodes), model, CONFIDANT_BUS__PATIENCE_SECONDS="30", **more)

        fronts = [gateway(folder / f"g{i}", at(i, **compat)) for i in range(2)]
        workers = [Role(folder / f"w{i}", "worker", at(i, **compat)) for i in range(1, 3)]
        with running(*workers, *fronts):
            before = len(model.prompts)
            for i in range(12):
                told = fronts[i % 2].turn(f"http:room:main:u{i % 3}", {"query": f"m{len(compat)} q{i}"})
                assert told["content"] == f"noted: m{len(compat)} q{i}" and told["metadata"]["memory"] == "kept"
            assert len(model.prompts) == before + 12, "a turn ran twice"


def test_a_bus_that_cannot_be_heard_is_not_ready_and_says_why(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """A Redis user who may do all that the store needs, and may not listen."""
    rights = ["on", ">pw", "~*", "resetchannels", "+@read", "+@write", "+@scripting", "+@connection", "+info", "+time"]
    server.client().execute_command("ACL", "SETUSER", "deaf", *rights, "+@pubsub")
    environment = settings(server, model) | {"REDIS_URL": f"redis://deaf:pw@127.0.0.1:{server.port}"}
    ports = {"worker": free_port(), "gateway": free_port()}
    roles = [Role(tmp_path / role, role, environment, ["--listen", f"127.0.0.1:{port}"]) for role, port in ports.items()]
    with ExitStack() as stack:
        for role in roles:
            role.start()
            stack.callback(role.stop)
            status, body = readiness(ports[role.role])
            assert status == 503 and "bus_unheard" in body, body
            assert "cannot listen on the bus" in role.log() and "+@pubsub" in role.log(), role.log()
        server.client().execute_command("ACL", "SETUSER", "deaf", "&vagent:*")
        for role in roles:
            wait_until(lambda role=role: readiness(ports[role.role])[0] == 200, 120, role.log)
            # Told once, not at every try.
            assert role.log().count("cannot listen on the bus") == 1
        front = Confidant(tmp_path / "gateway", port=ports["gateway"])
        assert front.turn("http:room:main:ann", {"query": "hello"})["content"] == "noted: hello"


def test_a_gateway_and_a_worker_that_start_before_their_redis_wait_for_it(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    server.stop()
    environment, port = settings(server, model), free_port()
    front = Role(tmp_path / "g", "gateway", environment, ["--listen", f"127.0.0.1:{port}"])
    worker = Role(tmp_path / "w", "worker", environment)

    def starts(role: Role) -> None:
        role.launch()
        wait_until(lambda: "waiting: " in role.log(), 60, lambda: f"it does not wait:\n{role.log()}")
        assert role.process is not None and role.process.poll() is None

    with ExitStack() as stack:
        for role in (front, worker):
            starts(role)
            stack.callback(role.stop)
        # It lives, says that it is not ready, and why.
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as response:
            assert response.status == 200
        status, body = readiness(port)
        assert status == 503 and "starting" in body and "store.url" in body, body
        # One that is told to stop meanwhile does.
        early = Role(tmp_path / "e", "worker", environment)
        starts(early)
        early.stop()
        server.start()
        wait_until(lambda: readiness(port)[0] == 200, 60, lambda: front.log() + worker.log())
        assert Confidant(tmp_path / "g", port=port).turn("http:room:main:ann", {"query": "hello"})["content"] == "noted: hello"
        for role in (front, worker):
            assert role.log().count("waiting: ") == 1, role.log()
        # A password that is wrong does not become right by waiting.
        server.client().config_set("requirepass", "other")
        wrong = Role(tmp_path / "x", "gateway", environment, ["--listen", f"127.0.0.1:{free_port()}"])
        wrong.launch()
        assert wrong.process is not None and wrong.process.wait(60) == 2, wrong.log()
        redis.Redis(port=server.port, password="other").config_set("requirepass", "")


def test_a_bus_that_is_away_is_said_by_name(tmp_path: Path, server: RedisServer, model: RecordingModel) -> None:
    """A gateway has no model, so it cannot answer without memory either."""
    with gateway_and_worker(tmp_path, settings(server, model, CONFIDANT_BUS__PATIENCE_SECONDS="10")) as (front, _):
        assert front.turn("http:room:main:ann", {"query": "hello"})["content"] == "noted: hello"
        server.stop()
        refused = front.request("POST", turns_path("http:room:main:ann"), {"query": "still?", "request_id": "r1"})
        assert (refused.status, refused.json()["error"]["code"]) == (503, "bus_unreachable"), refused.body
        server.start()
        wait_until(lambda: readiness(front.port)[0] == 200, 120, front.log)
        told = front.turn("http:room:main:ann", {"query": "still?", "request_id": "r1"})
        assert told["content"] == "noted: still?" and told["metadata"]["recalled"] == 2


def test_workers_that_are_full_leave_requests_to_others_and_a_gateway_says_busy(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    model.delay = 0.0
    with closing(RecordingModel()) as slow:
        environment = settings(server, slow, CONFIDANT_BUS__PATIENCE_SECONDS="10", CONFIDANT_BUS__TURNS="2")
        with gateway_and_worker(tmp_path, environment) as (front, _):
            # Warm up, so that what follows is about room and not about starting.
            assert front.turn("http:room:main:zoe", {"query": "hello"})["content"] == "noted: hello"
            slow.hold = threading.Event()
            with ThreadPoolExecutor(6) as pool:
                asked = [
                    pool.submit(front.request, "POST", turns_path(f"http:room:main:u{i}"), {"query": f"q{i}"})
                    for i in range(6)
                ]
                wait_until(lambda: sum(f.done() for f in asked) == 4, 60, lambda: "nobody was told that it is busy")
                slow.hold.set()
                statuses = Counter(future.result().status for future in asked)
            assert statuses == {200: 2, 503: 4}


def test_what_a_gateway_gave_up_is_not_run_by_a_worker_that_wakes_up_later(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """The request is asked for several times, and each time is taken back before the next."""
    environment = settings(server, model, CONFIDANT_BUS__PATIENCE_SECONDS="6")
    with gateway_and_worker(tmp_path, environment) as (front, worker):
        assert front.turn("http:room:main:zoe", {"query": "hello"})["content"] == "noted: hello"
        assert worker.process is not None
        worker.process.send_signal(signal.SIGSTOP)
        refused = front.request("POST", turns_path("http:room:main:ann"), {"query": "zq7late"})
        worker.process.send_signal(signal.SIGCONT)
        assert (refused.status, refused.json()["error"]["code"]) == (503, "no_worker"), refused.body
        # It hears what was said meanwhile in its order; this comes after.
        for i in range(3):
            front.turn("http:room:main:bob", {"query": f"still there {i}"})
        assert not [prompt for prompt in model.prompts if "zq7late" in str(prompt)]


def test_a_request_that_is_heard_twice_is_run_once(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """What is said again because a reply was lost, or by somebody who listened. No log knows a turn without memory."""
    with (
        gateway_and_worker(tmp_path, settings(server, model)) as (front, _),
        closing(server.client().pubsub(ignore_subscribe_messages=True)) as ear,
    ):
        ear.subscribe("vagent:requests")
        chat = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}
        assert front.request("POST", "/v1/chat/completions", chat).status == 200
        heard: list[bytes] = []

        def has_heard() -> bool:
            message = ear.get_message(timeout=0.1)
            heard.extend([message["data"]] if message else [])
            return bool(heard)

        wait_until(has_heard, 120, lambda: "nothing was said")
        for _ in range(3):
            server.client().publish("vagent:requests", heard[0])
        # What is said after it is heard after it.
        for i in range(3):
            front.turn("http:room:main:bob", {"query": f"still there {i}"})
        assert len(model.prompts) == 4


def test_a_turn_without_memory_is_its_tenants_and_ends_with_whoever_asked(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """Nobody can ask for it again, so a worker that is left with it stops; and another turn of the same name goes on."""
    environment = settings(server, model)
    worker_folder = tmp_path / "w"
    worker_folder.mkdir()
    rule = '[[tools.rules]]\ntool = "bad.*"\ntenant = "other"\nthen = "deny"\n'
    (worker_folder / "confidant.toml").write_text("[tools]\n" + entry("bad", command=HOSTILE, tools=["echo"]) + rule)
    port = free_port()
    front = gateway(tmp_path / "g", environment)
    worker = Role(worker_folder, "worker", environment, ["--listen", f"127.0.0.1:{port}"])
    chat = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}

    def cancelled() -> bool:
        headers = {"Authorization": f"Bearer {front.token}"}
        metrics = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=headers)
        with urllib.request.urlopen(metrics, timeout=60) as response:
            return "confidant_turns_cancelled_total 1\n" in response.read().decode()

    with running(front, worker):

        def has_tool() -> bool:
            assert front.request("POST", "/v1/chat/completions", chat).status == 200
            return model.offered[-1] == ["bad_echo"]

        # A rule that forbids something to one tenant forbids it to nobody else.
        wait_until(has_tool, 60, lambda: f"the tool did not come:\n{worker.log()}")
        before, model.hold = len(model.prompts), threading.Event()
        names = {"Authorization": f"Bearer {front.token}", "Content-Type": "application/json", "Idempotency-Key": "r1"}
        asking = [http.client.HTTPConnection("127.0.0.1", front.port, timeout=180) for _ in range(2)]
        for connection in asking:
            connection.request("POST", "/v1/chat/completions", json.dumps(chat), names)
        wait_until(lambda: len(model.prompts) == before + 2, 60, worker.log)
        asking[0].close()
        wait_until(cancelled, 60, lambda: f"it was not called off:\n{worker.log()}")
        model.hold.set()
        answered = asking[1].getresponse()
        assert answered.status == 200 and b"noted: hello" in answered.read()
        asking[1].close()


def test_a_worker_written_against_the_seeds_json_answers_our_gateway(tmp_path: Path, server: RedisServer) -> None:
    front = gateway(tmp_path / "g", settings(server, None, CONFIDANT_BUS__MODE="compat"))
    with closing(ForeignWorker(server.url)) as worker, running(front):
        room = [{"sender": "@bob:m.org", "content": "PostgreSQL", "timestamp": int(time.time()), "is_bot": False}]
        session = "!abc123:matrix.org:main:@alice:matrix.org"
        reply = front.turn(session, {"query": "what database?", "room_context": room})
        assert reply["content"] == "foreign: what database? (PostgreSQL)"
        (request,) = worker.seen
        assert {"request_id", "query", "session_id", "room_context", "metadata"} == set(request)
        assert request["session_id"] == session
        assert request["metadata"]["user_id"] == "@alice:matrix.org"
        line = request["room_context"][0]
        assert line | {"sender": "@bob:m.org", "content": "PostgreSQL", "is_bot": False} == line
        with ThreadPoolExecutor(8) as pool:
            replies = pool.map(lambda i: front.turn(f"http:room:main:u{i}", {"query": f"q{i}"})["content"], range(16))
        assert list(replies) == [f"foreign: q{i} ()" for i in range(16)]


def test_a_foreign_workers_question_keeps_its_options_and_the_next_message_answers_it(
    tmp_path: Path, server: RedisServer
) -> None:
    front = gateway(tmp_path / "g", settings(server, None, CONFIDANT_BUS__MODE="compat"))
    with closing(ForeignWorker(server.url)) as worker, running(front):
        options = {"options": ["approve", "deny"], "timeout_seconds": 3600}
        worker.questions["delete my records"] = ("Delete 3 records?", options)
        session = "http:room:main:alice"
        asked = front.turn(session, {"query": "delete my records", "request_id": "r1"})
        assert (asked["message_type"], asked["request_id"]) == ("hitl_request", "r1"), asked
        assert asked["metadata"] == {"question": "Delete 3 records?"} | options
        assert asked["content"].startswith("Delete 3 records?") and "approve, deny" in asked["content"]
        events = front.stream_turn(session, {"query": "delete my records"})
        assert events[-1].name == "hitl_request" and events[-1].data["metadata"]["options"] == ["approve", "deny"]
        # Nothing waits here, so this is a message, and the worker's to understand.
        assert front.turn(session, {"query": "approve"})["content"] == "foreign: approve ()"


def test_forgetting_at_a_compat_gateway_reaches_the_worker_and_claims_no_more_than_is_known(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat", CONFIDANT_BUS__PATIENCE_SECONDS="5")
    front, session = gateway(tmp_path / "g", environment), "http:room:main:alice"
    claim = "nothing of it can be read again"
    with running(front):
        with closing(ForeignWorker(server.url)) as foreign:
            front.turn(session, {"query": "I am Alice"})
            forgotten = front.turn(session, {"query": "!forget"})
            assert foreign.seen[-1]["query"] == "!forget" and foreign.seen[-1]["session_id"] == session
            assert claim not in forgotten["content"] and "foreign: !forget" in forgotten["content"], forgotten
            assert forgotten["metadata"]["receipt"]
        # Nobody hears it: then that is said.
        unheard = front.turn(session, {"query": "!forget"})
        assert claim not in unheard["content"] and "did not answer" in unheard["content"], unheard
        # A worker of ours keeps what it keeps in the store that was erased.
        with running(Role(tmp_path / "w", "worker", environment)):
            front.turn(session, {"query": "I am Alice"})
            ours = front.turn(session, {"query": "!forget"})
            assert claim in ours["content"], ours
            assert front.turn(session, {"query": "who am I?"})["metadata"]["recalled"] == 0


def test_a_foreign_bot_hears_what_came_of_an_approval_later(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """A decision from the command line, and an approval that ran out: told on the bus, under the name that was asked for."""
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat")
    worker = Role(tmp_path / "w", "worker", environment)
    worker.folder.mkdir()
    rules = "".join(
        f'[[tools.rules]]\ntool = "bad.{tool}"\nthen = "approve"\nexpires_seconds = {seconds}\n'
        for tool, seconds in (("echo", 600), ("call", 4))
    )
    tools = entry("bad", command=HOSTILE, tools=["echo", "call"])
    (worker.folder / "confidant.toml").write_text("[tools]\n" + tools + rules)
    session = "!abc123:matrix.org:main:@alice:matrix.org"
    with running(worker), closing(ForeignBot(server.url)) as bot:

        def has_tools() -> bool:
            bot.ask("!probe:matrix.org:main:@bob:matrix.org", "hello")
            return {"bad_echo", "bad_call"} <= set(model.offered[-1])

        wait_until(has_tools, 60, lambda: f"the tools did not come:\n{worker.log()}")
        (*_, asked) = bot.ask(session, 'call bad.echo {"text": "hello there"}')
        assert asked["message_type"] == "hitl_request", asked
        (*_, short) = bot.ask(session, "call bad.call {}")
        assert short["message_type"] == "hitl_request", short

        def said_later(request_id: str) -> list[dict]:
            heard = [one for one in bot.heard(request_id) if one["message_type"] != "progress"]
            return heard[1:]

        wait_until(lambda: bool(said_later(short["request_id"])), 60, lambda: f"nobody said that it ran out:\n{worker.log()}")
        (over,) = said_later(short["request_id"])
        assert over["message_type"] == "final_response" and "expired" in over["content"], over
        command = [BINARY, "session", "approve", session, asked["metadata"]["approval_id"], "--as", "@alice:matrix.org"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        folder = {"CONFIDANT_SERVER__DATA_DIR": str(tmp_path / "cli")}
        decided = subprocess.run(command, cwd=tmp_path, env=clean | environment | folder, capture_output=True, text=True)
        assert decided.returncode == 0, decided.stderr
        wait_until(lambda: bool(said_later(asked["request_id"])), 60, lambda: f"nobody said what came of it:\n{worker.log()}")
        (late,) = said_later(asked["request_id"])
        assert late["message_type"] == "final_response" and "hello there" in late["content"], late


def test_our_workers_answer_a_bot_written_against_the_seeds_json(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat")
    workers = [Role(tmp_path / f"w{i}", "worker", environment) for i in range(2)]
    with running(*workers), closing(ForeignBot(server.url)) as bot:
        session = "!abc123:matrix.org:main:@alice:matrix.org"
        room = [{"sender": "@bob:m.org", "content": "We chose PostgreSQL", "timestamp": int(time.time()), "is_bot": False}]
        heard = bot.ask(session, "what database?", room)
        final = heard[-1]
        assert final["message_type"] == "final_response" and final["content"] == "noted: what database?"
        assert {message["message_type"] for message in heard} <= {"progress", "final_response"}
        assert any("We chose PostgreSQL" in m["content"] for m in model.prompts[-1])
        # It remembers, whichever worker answers.
        for i in range(6):
            bot.ask(session, f"q{i}")
        assert [m["content"] for m in model.prompts[-1] if m["role"] == "user"][:2] == ["what database?", "q0"]
        # Two workers hear every request; one answers.
        time.sleep(0.5)
        assert len(model.prompts) == 7
        # What is wrong is said once, and quotes nothing.
        bot.publish({"request_id": "bad", "query": "hush hush", "session_id": "no session"})
        (error,) = bot.responses("bad")
        assert error["message_type"] == "error" and "hush" not in error["content"]


def test_promise_2_nothing_on_the_bus_or_in_redis_can_be_read(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """Everything that goes over the wire and everything that is on disk, searched for what was said."""
    environment = settings(server, model, CONFIDANT_STORE__OPAQUE_NAMES="true")
    heard: list[bytes] = []
    client = server.client()
    ear = client.pubsub()
    ear.psubscribe("*")
    with gateway_and_worker(tmp_path, environment) as (front, worker):
        marker, person = "zq7marker7qz", "zq7person7qz"
        room = [{"sender": "@bob:m.org", "content": f"room {marker}", "timestamp": int(time.time()), "is_bot": False}]
        body = {"query": f"say {marker}", "room_context": room}
        for _ in range(3):
            assert marker in front.turn(f"http:room:main:{person}", body)["content"]
        while (message := ear.get_message(timeout=0.2)) is not None:
            if message["type"] == "pmessage":
                heard.append(message["channel"] + message["data"])
        assert len(heard) > 6
        client.bgsave()
        wait_until(lambda: any(server.folder.glob("*.rdb")), 120, lambda: "no dump was made")
        time.sleep(0.5)
        files = [path for path in server.folder.rglob("*") if path.is_file()]
        assert any("aof" in path.name for path in files) and any(path.suffix == ".rdb" for path in files)
        for secret in (marker, person):
            assert not [i for i, bytes in enumerate(heard) if secret.encode() in bytes]
            assert not [path.name for path in files if secret.encode() in path.read_bytes()]
            assert secret not in front.log() and secret not in worker.log()


def test_an_approval_is_asked_by_one_worker_and_carried_out_by_another(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model)
    front = gateway(tmp_path / "g", environment)
    workers = [Role(tmp_path / f"w{i}", "worker", environment) for i in range(2)]
    rule = '[[tools.rules]]\ntool = "bad.echo"\nthen = "approve"\n'
    for worker in workers:
        worker.folder.mkdir()
        (worker.folder / "confidant.toml").write_text("[tools]\n" + entry("bad", command=HOSTILE, tools=["echo"]) + rule)
    with running(front, workers[0]), ExitStack() as stack:
        session = "http:r:main:alice"

        def has_tool() -> bool:
            front.turn("http:probe:main:nobody", {"query": "hello"})
            return model.offered[-1] == ["bad_echo"]

        wait_until(has_tool, 60, lambda: f"the tool did not come:\n{workers[0].log()}")
        asked = front.turn(session, {"query": 'call bad.echo {"text": "hello there"}', "request_id": "r1"})
        assert asked["message_type"] == "hitl_request", asked
        # The one that asked dies; the question is in the log, and another worker takes up the decision.
        workers[0].kill()
        stack.enter_context(running(workers[1]))
        wait_until(has_tool, 60, lambda: f"the tool did not come:\n{workers[1].log()}")
        path = turns_path(session).removesuffix("/turns")
        decision = {"approval_id": asked["metadata"]["approval_id"], "decision": "approve", "user_id": "alice"}
        reply = front.request("POST", f"{path}/decisions", decision)
        assert reply.status == 200, reply.body
        assert "hello there" in reply.json()["content"].split(" -> ")[1], reply.body
        again = front.request("POST", f"{path}/decisions", decision)
        assert again.status in (404, 409), again.body
        # With no worker a decision counts, and whoever gave it is told that nobody takes it up now.
        body = {"query": 'call bad.echo {"text": "later then"}', "request_id": "r2"}
        decision["approval_id"] = front.turn(session, body)["metadata"]["approval_id"]
        workers[1].stop()
        unheard = front.request("POST", f"{path}/decisions", decision)
        assert (unheard.status, unheard.json()["error"]["code"]) == (503, "no_worker"), unheard.body
        assert "your decision stands (approved)" in unheard.body.decode()
        # Who repeats it hears the same, and who changes their mind that the first word counted.
        unheard = front.request("POST", f"{path}/decisions", decision)
        assert "your decision stands (approved)" in unheard.body.decode(), unheard.body
        changed = front.request("POST", f"{path}/decisions", decision | {"decision": "deny"})
        assert changed.status == 409 and "your decision counted" in changed.body.decode(), changed.body
        workers[1].start()

        def carried_out() -> bool:
            told = front.request("POST", turns_path(session), body)
            return told.status == 200 and "later then" in told.json()["content"].partition(" -> ")[2]

        wait_until(carried_out, 60, lambda: f"it was not carried out:\n{workers[1].log()}")


def test_promise_5_killed_workers_a_restarted_redis_and_cut_connections_lose_and_double_nothing(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """Two gateways and three workers, many sessions, while everything between them breaks."""
    model.delay = 0.02
    environment = settings(server, model)
    fronts = [gateway(tmp_path / f"g{i}", environment) for i in range(2)]
    workers = [Role(tmp_path / f"w{i}", "worker", environment) for i in range(3)]
    with running(*workers, *fronts):
        per_session = max(1, TURNS // SESSIONS)
        done, lock = Counter(), threading.Lock()
        unkept: set[str] = set()
        finished = threading.Event()

        def talk(number: int) -> list[str]:
            """One person's conversation: each turn waits for the one before, and is asked again until it is answered."""
            answers = []
            for i in range(per_session):
                request = f"s{number}-t{i}"
                body = {"query": f"say {request}", "request_id": request}
                given_up = 0
                deadline = time.monotonic() + 240
                while True:
                    assert time.monotonic() < deadline, f"{request} was never answered"
                    front = random.choice(fronts)
                    try:
                        reply = front.request("POST", turns_path(f"http:room:main:user{number}"), body)
                    except (OSError, urllib.error.URLError, http.client.HTTPException):
                        time.sleep(0.2)
                        continue
                    if reply.status == 200:
                        answers.append(reply.json()["content"])
                        if reply.json()["metadata"]["memory"] == "unavailable":
                            # The store was just out of reach: answered without memory, which it says. It is in the log only
                            # if it was asked before and the answer was lost on its way.
                            with lock:
                                done["without memory"] += 1
                                unkept.add(f"say {request}")
                        break
                    # Told clearly that it did not work this time.
                    code = reply.json()["error"]["code"]
                    if code == "interrupted":
                        # Its workers were killed too often: reported as over, so it is asked as a new one, as it says.
                        given_up += 1
                        body["request_id"] = f"{request}-again{given_up}"
                    else:
                        told_clearly = {"no_worker", "bus_unreachable", "storage_failed", "busy", "stopping", "timeout", "model_failed"}
                        assert code in told_clearly, reply.body
                    with lock:
                        done[code] += 1
                    time.sleep(0.2)
                with lock:
                    done["answered"] += 1
            return answers

        def break_things() -> None:
            rounds = 0
            while not finished.wait(random.uniform(1.0, 2.5)):
                rounds += 1
                victim = random.choice(workers)
                victim.kill()
                victim.start()
                client = server.client()
                if rounds % 3 == 1:
                    for kind in ("normal", "pubsub"):
                        client.execute_command("CLIENT", "KILL", "TYPE", kind)
                if rounds % 4 == 2:
                    server.stop()
                    time.sleep(random.uniform(0.1, 1.0))
                    server.start()

        breaker = threading.Thread(target=break_things)
        breaker.start()
        try:
            with ThreadPoolExecutor(32) as pool:
                answers = list(pool.map(talk, range(SESSIONS)))
        finally:
            finished.set()
            breaker.join()
        print("campaign:", dict(done))
        for number, told in enumerate(answers):
            assert told == [f"noted: say s{number}-t{i}" for i in range(per_session)]
        # What the log has: every turn that was said to be kept once, in order, nobody else's.
        front = random.choice(fronts)
        for number in range(SESSIONS):
            path = turns_path(f"http:room:main:user{number}").removesuffix("/turns") + "/export"
            messages = front.request("GET", path).json()["messages"]
            # One that was reported as over and asked again is there twice, one after the other.
            asked = [text for text, _ in groupby(m["content"] for m in messages if m["type"] == "human")]
            replied = [text.removeprefix("noted: ") for text in (m["content"] for m in messages if m["type"] == "ai")]
            queries = [f"say s{number}-t{i}" for i in range(per_session)]
            queries, asked, replied = ([text for text in texts if text not in unkept] for texts in (queries, asked, replied))
            lost = [query for query in queries if query not in asked]
            assert asked == queries[-len(asked) :], f"not in the log: {lost}"
            assert replied == queries[-len(replied) :]
        # No prompt had another person's words.
        for prompt in model.prompts:
            people = set(re.findall(r"\bs(\d+)-t\d+", " ".join(m["content"] for m in prompt)))
            assert len(people) == 1
