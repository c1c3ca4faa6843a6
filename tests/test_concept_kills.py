"""kill -9 at random moments between an answer and its place in scope: every concept of an answer comes into scope, once."""

from __future__ import annotations

import http.client
import os
import random
import threading
import time
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Confidant, turns_path, wait_until
from recording_model import RecordingModel
from test_concepts import concept, context
from test_roles import KEY, RedisServer

KILLS = int(os.environ.get("CONFIDANT_CONCEPT_KILLS", "25"))
USERS = 4


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        yield {}
        return
    server = RedisServer(tmp_path)
    server.start()
    yield {"CONFIDANT_STORE__URL": server.url, "CHECKPOINT_ENCRYPTION_KEY": KEY}
    server.stop()


def test_no_concept_of_an_answer_is_lost(tmp_path: Path, store: dict[str, str], recorder: RecordingModel) -> None:
    environment = recorder.environment | store | {
        "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0",
        "CONFIDANT_CONCEPTS__MAX_NODES": "100000",
        "CONFIDANT_HISTORY__MAX_MESSAGES": "100000",
    }
    server = Confidant(tmp_path, environment=environment)
    answered: dict[str, set[str]] = {f"user{n}": set() for n in range(USERS)}
    lock = threading.Lock()

    def talk(user: str, kill: int, stop: threading.Event) -> None:
        for n in range(1000):
            if stop.is_set():
                return
            name = f"K{kill}X{n}"
            recorder.concepts[f"tell me of {name}"] = {"concepts": [concept(name, f"Tax named {name}")]}
            identity = {"conversationId": user, "userId": user}
            ask = {"messages": [{"role": "user", "content": f"tell me of {name}"}], "identity": identity}
            try:
                reply = server.request("POST", "/api/chat", ask | {"request_id": name})
            except (OSError, urllib.error.URLError, http.client.HTTPException):
                return
            if reply.status == 200:
                with lock:
                    answered[user].add(name)

    for kill in range(KILLS):
        server.start()
        stop = threading.Event()
        with ThreadPoolExecutor(USERS) as pool:
            for user in answered:
                pool.submit(talk, user, kill, stop)
            # After a few answers, at any moment of the next ones.
            enough = sum(map(len, answered.values())) + random.randint(1, 8)
            deadline = time.monotonic() + 20
            while sum(map(len, answered.values())) < enough and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(random.uniform(0, 0.05))
            assert server.process is not None
            server.process.kill()
            server.process.wait()
            stop.set()
    server.start()
    try:
        for user, heard in answered.items():
            wait_until(lambda: named(server, user) is not None, 60, lambda: f"turns are still open:\n{server.log()}")
            wanted = heard | (named(server, user) or set())
            missing = lambda: sorted(wanted - in_scope(server, user).keys())  # noqa: E731
            wait_until(lambda: not missing(), 60, lambda: f"{missing()} are not in scope:\n{server.log()}")
            assert set(in_scope(server, user).values()) == {1}, "something came into scope twice"
    finally:
        server.stop()
    assert sum(map(len, answered.values())) > KILLS, "the test has hardly talked"


def named(server: Confidant, user: str) -> set[str] | None:
    """The turns whose answers named a concept, as the log has them; nothing while one is open."""
    path = turns_path(f"chat:{user}:main:{user}").removesuffix("/turns") + "/export"
    reply = server.request("GET", path)
    turns = reply.json()["messages"] if reply.status == 200 else []
    if any(turn.get("unanswered") == "open" for turn in turns):
        return None
    return {turn["request_id"] for turn in turns if turn.get("name") == "capture_concepts"}


def in_scope(server: Confidant, user: str) -> dict[str, int]:
    """How often each concept was used."""
    return {one["id"].removeprefix("TAX:IE:"): one["uses"] for one in context(server, user, user)["concepts"]}
