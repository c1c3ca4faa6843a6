"""The approval campaign: whole processes, killed at random, with racing answers, wrong people and approvals that run out.

Every approval ends in one way, and what was done in the world is exactly what was approved, once. The tool appends a line to
a file for each call, before it answers, so that a process that dies right after the call has done it all the same.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.error
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import TESTS, Confidant, Reply, turns_path, wait_until
from recording_model import RecordingModel
from test_processes import run
from test_tools import entry

APPROVALS = int(os.environ.get("CONFIDANT_APPROVALS", "60"))
LANES = 6
SESSIONS = 24
# What nobody decides runs out after this; what is to run out is asked with a rule of its own.
SHORT_SECONDS = 3
CUT_OFF = (OSError, urllib.error.URLError, http.client.HTTPException)


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@dataclass
class Case:
    """One approval: what is to become of it, and what did."""

    name: str
    session: str
    user: str
    fate: str  # approve, deny, race, expire
    approval_id: str | None = None
    hash: str | None = None
    # What the server said of decisions: `approve` or `deny` for one that counted.
    counted: list[str] = field(default_factory=list)
    # Decisions whose replies were lost with the process: they may count.
    unheard: list[str] = field(default_factory=list)


class Campaign:
    def __init__(self, server: Confidant, done: Path) -> None:
        self.server, self.done = server, done
        fates = ["approve"] * 4 + ["deny"] * 2 + ["race"] * 3 + ["expire"]
        self.cases = [
            Case(f"case-{n}", f"http:room{n % SESSIONS}:main:user{n % SESSIONS}", f"user{n % SESSIONS}", fates[n % 10])
            for n in range(APPROVALS)
        ]
        self.refused: Counter[str] = Counter()
        self.up = threading.Event()
        self.over = threading.Event()
        self.kills = 0
        self.heard = 0

    def calls(self) -> list[str]:
        return self.done.read_text().split() if self.done.exists() else []

    def request(self, method: str, path: str, body: dict) -> Reply | None:
        """Asks while the server is there; nothing where it went away meanwhile."""
        self.up.wait(60)
        try:
            reply = self.server.request(method, path, body)
            self.heard += 1
            return reply
        except CUT_OFF:
            time.sleep(0.02)
            return None

    def ask(self, case: Case) -> None:
        """Asks for something that must be approved until the question is there, with the same request id."""
        tool = "world.expiring" if case.fate == "expire" else "world.act"
        query = f'call {tool} {json.dumps({"name": case.name})}'
        while case.approval_id is None:
            reply = self.request("POST", turns_path(case.session), {"query": query, "request_id": case.name})
            if reply is None or reply.status in (503, 500, 409, 502):
                continue
            assert reply.status == 200, reply.body
            message = reply.json()
            if message["message_type"] == "final_response" and "there is no tool" in message["content"]:
                # It is not connected yet, so nothing was asked.
                case.name += "+"
                query = f'call {tool} {json.dumps({"name": case.name})}'
                continue
            if case.fate == "expire" and message["message_type"] == "final_response":
                # It ran out before anybody heard the question.
                return
            assert message["message_type"] == "hitl_request" and message["metadata"]["tool"] == tool, message
            case.approval_id, case.hash = message["metadata"]["approval_id"], message["metadata"]["hash"]

    def decide(self, case: Case, decision: str, user: str) -> str:
        """Decides until somebody says what became of it; gives the code of the answer, `counted` or `unheard`."""
        path = turns_path(case.session).removesuffix("/turns") + "/decisions"
        body = {"approval_id": case.approval_id, "decision": decision, "hash": case.hash, "user_id": user}
        heard = True
        while True:
            reply = self.request("POST", path, body)
            if reply is None:
                heard = False
                continue
            if reply.status == 200:
                return "counted"
            code = reply.json()["error"]["code"]
            if reply.status in (500, 502, 503) or code == "busy":
                heard = False
                continue
            return code if heard else f"unheard:{code}"

    def work(self, case: Case, luck: random.Random) -> None:
        self.ask(case)
        if case.fate == "expire":
            return
        if luck.random() < 0.5:
            code = self.decide(case, luck.choice(["approve", "deny"]), "mallory")
            assert code.removeprefix("unheard:") in ("not_your_approval", "no_such_approval"), code
            self.refused[code] += 1
        time.sleep(luck.uniform(0, 0.05))
        wishes = ["approve", "deny", "approve"] if case.fate == "race" else [case.fate]
        with ThreadPoolExecutor(len(wishes)) as racers:
            outcomes = list(racers.map(lambda wish: (wish, self.decide(case, wish, case.user)), wishes))
        for wish, outcome in outcomes:
            if outcome == "counted":
                case.counted.append(wish)
            elif outcome.startswith("unheard:"):
                case.unheard.append(wish)
            else:
                assert outcome in ("already_decided", "no_such_approval"), outcome

    def kill_now_and_then(self, luck: random.Random) -> None:
        while not self.over.is_set():
            # After some replies, however slow the machine is, and at any moment of the next ones.
            enough, deadline = self.heard + luck.randint(1, 25), time.monotonic() + 10
            while self.heard < enough and time.monotonic() < deadline and not self.over.is_set():
                time.sleep(0.01)
            time.sleep(luck.uniform(0, 0.2))
            if self.over.is_set():
                return
            self.up.clear()
            assert self.server.process is not None
            self.server.process.kill()
            self.server.process.wait()
            self.kills += 1
            self.server.start()
            self.up.set()


def test_no_approval_is_lost_doubled_or_made_up(tmp_path: Path, recorder: RecordingModel) -> None:
    seed = int(os.environ.get("CONFIDANT_SEED", str(random.randrange(1 << 32))))
    print(f"CONFIDANT_SEED={seed}")
    done = tmp_path / "done"
    rule = '[[tools.rules]]\ntool = "{}"\nthen = "approve"\napprovers = ["asker"]\nexpires_seconds = {}\n'
    (tmp_path / "confidant.toml").write_text(
        entry("world", command=[sys.executable, str(TESTS / "acting_tool.py"), str(done)])
        + rule.format("world.act", 86_400)
        + rule.format("world.expiring", SHORT_SECONDS)
    )
    environment = recorder.environment | {
        "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0",
        "CONFIDANT_HISTORY__MAX_MESSAGES": "100000",
        "CONFIDANT_STORE__DURABILITY": "process",
    }
    server = Confidant(tmp_path, environment=environment)
    server.start()
    campaign = Campaign(server, done)
    campaign.up.set()
    killer = threading.Thread(target=campaign.kill_now_and_then, args=(random.Random(seed),))
    killer.start()
    try:
        with ThreadPoolExecutor(LANES) as lanes:
            tasks = [
                lanes.submit(campaign.work, case, random.Random(seed + n)) for n, case in enumerate(campaign.cases)
            ]
            for task in tasks:
                task.result()
    finally:
        campaign.over.set()
        killer.join()
    try:
        settle(server, campaign)
        check(server, campaign)
    finally:
        server.stop()
    assert campaign.kills > 0, "nothing was killed"


def messages(server: Confidant, session: str) -> list[dict]:
    reply = server.request("GET", turns_path(session).removesuffix("/turns") + "/export")
    return reply.json()["messages"] if reply.status == 200 else []


def settle(server: Confidant, campaign: Campaign) -> None:
    """Waits until every turn has its end: decisions are carried out, and what nobody decided has run out."""
    sessions = {case.session for case in campaign.cases}

    def open_turns() -> list[dict]:
        return [m for session in sessions for m in messages(server, session) if m.get("unanswered")]

    def is_settled() -> bool:
        return not open_turns()

    wait_until(is_settled, 180, lambda: f"{open_turns()[:3]} have no end:\n{server.log()[-4000:]}")


def check(server: Confidant, campaign: Campaign) -> None:
    calls = Counter(campaign.calls())
    assert max(calls.values(), default=0) <= 1, f"done twice: {[name for name, n in calls.items() if n > 1]}"
    answers: dict[str, str] = {}
    for session in {case.session for case in campaign.cases}:
        for message in messages(server, session):
            if message["type"] == "ai":
                assert message["request_id"] not in answers, "answered twice"
                answers[message["request_id"]] = message["content"]
    ends: Counter[str] = Counter()
    for case in campaign.cases:
        answer = answers.get(case.name)
        assert answer is not None, f"{case.name} was lost"
        assert len(case.counted) <= 1, f"{case.name} was decided twice: {case.counted}"
        may_be_approved = "approve" in case.counted or (not case.counted and "approve" in case.unheard)
        was_done = calls[case.name] == 1
        assert may_be_approved or not was_done, f"{case.name} was done and not approved"
        if case.counted == ["approve"]:
            # Done, or nobody knows, or killed too often before it could be: the answer says so, never silently left out.
            assert was_done or "is not known" in answer or "It was not called" in answer, f"{case.name}: {answer}"
        if case.counted == ["deny"]:
            assert "it was denied" in answer, answer
        if case.fate == "expire":
            assert not was_done
        ends["done" if was_done else "expired" if case.fate == "expire" else "not done"] += 1
    assert set(calls) <= {case.name for case in campaign.cases}, "something was done that nobody asked for"
    assert run(server, "audit", "verify").returncode == 0
    print(f"{dict(ends)}, {campaign.kills} kills, refused {dict(campaign.refused)}")
    assert ends["done"] > APPROVALS // 5 and ends["expired"] > 0
