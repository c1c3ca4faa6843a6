"""What only whole processes can show: kills, two of them on one folder, rotation beside a server, a full disk."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import shutil
import subprocess
import threading
import time
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from conftest import FOREIGN, REQUEST_SECONDS, Confidant, turns_path
from recording_model import RecordingModel

KILLS = int(os.environ.get("CONFIDANT_KILLS", "100"))
BINARY = Path(os.environ["CONFIDANT_BIN"]).resolve()


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    try:
        yield model
    finally:
        model.close()


@pytest.fixture
def recorded(tmp_path: Path, recorder: RecordingModel) -> Iterator[Confidant]:
    """A server that asks the recording model and keeps all that is said."""
    environment = recorder.environment | {"CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0", "CONFIDANT_HISTORY__MAX_MESSAGES": "1000"}
    confidant = Confidant(tmp_path, environment=environment)
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


def run(server: Confidant, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """A command on the server's data folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ours = {"CONFIDANT_SERVER__DATA_DIR": str(server.data_dir)} | server.environment | environment
    return subprocess.run(
        [BINARY, *arguments], cwd=server.folder, env=clean | ours, capture_output=True, text=True, timeout=120
    )


def export(server: Confidant, session: str) -> list[dict]:
    path = turns_path(session).removesuffix("/turns") + "/export"
    reply = server.request("GET", path)
    return reply.json()["messages"] if reply.status == 200 else []


def test_promise_5_killed_at_any_point_nothing_is_lost_or_doubled(tmp_path: Path, recorder: RecordingModel) -> None:
    """kill -9 at random moments: every accepted turn is answered or reported exactly once."""
    recorder.delay = 0.03
    environment = recorder.environment | {"CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0"}
    server = Confidant(tmp_path, environment=environment)
    sessions = [f"http:room:main:user{i}" for i in range(6)]
    answered: dict[str, str] = {}
    asked: dict[str, tuple[str, str]] = {}
    lock = threading.Lock()

    def talk(lane: int, kill: int, stop: threading.Event) -> None:
        for i in range(1000):
            if stop.is_set():
                return
            session, request = random.choice(sessions), f"k{kill}-l{lane}-{i}"
            with lock:
                asked[request] = (session, f"say {request}")
            try:
                reply = server.request("POST", turns_path(session), {"query": f"say {request}", "request_id": request})
            except (OSError, urllib.error.URLError, http.client.HTTPException):
                return
            if reply.status == 200:
                with lock:
                    answered[request] = reply.json()["content"]

    for kill in range(KILLS):
        server.start()
        stop = threading.Event()
        with ThreadPoolExecutor(4) as pool:
            for lane in range(4):
                pool.submit(talk, lane, kill, stop)
            # On a busy machine a start takes longer than that: every other time something was answered before.
            heard, patience = len(answered), time.monotonic() + 10
            while kill % 2 and len(answered) == heard and time.monotonic() < patience:
                time.sleep(0.005)
            time.sleep(random.uniform(0, 0.25))
            assert server.process is not None
            server.process.kill()
            server.process.wait()
            stop.set()
    server.start()
    try:
        # The start takes up what was cut off; nothing stays open.
        deadline = time.monotonic() + 180
        while True:
            before = {session: export(server, session) for session in sessions}
            still_open = [m for messages in before.values() for m in messages if m.get("unanswered") == "open"]
            if not still_open:
                break
            assert time.monotonic() < deadline, f"{len(still_open)} turns are still open"
            time.sleep(0.05)
        accepted = {m["request_id"] for messages in before.values() for m in messages}
        # A client that was cut off asks again, with the same id: it gets the recorded answer, or one now.
        window = {request for request in asked if request in accepted or request not in answered}
        given_up: set[str] = set()
        for request in sorted(window, key=lambda r: random.random()):
            session, query = asked[request]
            reply = server.request("POST", turns_path(session), {"query": query, "request_id": request})
            if reply.status == 409:
                code = reply.json()["error"]["code"]
                assert code in {"answer_gone", "interrupted"}, reply.body
                if code == "interrupted":
                    # Its process died under it again and again, which is told, and it is not tried once more.
                    assert request not in answered
                    given_up.add(request)
                continue
            assert reply.status == 200, reply.body
            assert reply.json()["content"] == f"noted: {query}"
            if request in accepted and not reply.json()["metadata"].get("replayed"):
                failed = [m for m in before[session] if m["request_id"] == request and m.get("unanswered")]
                assert failed, f"{request} had an answer and got another"
        for session in sessions:
            seen: dict[str, list[str]] = {}
            for message in export(server, session):
                seen.setdefault(message["request_id"], []).append(message["type"])
            for request, kinds in seen.items():
                assert kinds == (["human"] if request in given_up else ["human", "ai"]), f"{request}: {kinds}"
        assert run(server, "audit", "verify").returncode == 0
    finally:
        server.stop()
    assert len(answered) > KILLS // 10, f"only {len(answered)} answers: the test has hardly talked"


def test_promise_5_two_processes_on_one_session_keep_order(recorded: Confidant, recorder: RecordingModel) -> None:
    """Two servers and the command line on one folder and one session, all at once."""
    second = Confidant(recorded.folder, environment=recorded.environment)
    second.start()
    session = "cli:room:main:alice"
    try:

        def serve(server: Confidant, lane: str) -> None:
            for i in range(15):
                server.turn(session, {"query": f"{lane}-{i}", "request_id": f"{lane}-{i}"})

        def chat(lane: str) -> None:
            for i in range(5):
                done = run(recorded, "chat", "--user", "alice", "--room", "room", "--once", f"{lane}-{i}")
                assert done.returncode == 0, done.stderr

        lanes = {"one": recorded, "two": second, "three": recorded, "four": second}
        with ThreadPoolExecutor(6) as pool:
            tasks = [pool.submit(serve, server, lane) for lane, server in lanes.items()]
            tasks.append(pool.submit(chat, "cli"))
            for task in tasks:
                task.result()
        for server in (recorded, second):
            messages = export(server, session)
            assert [m["type"] for m in messages] == ["human", "ai"] * 65
            for human, ai in zip(messages[::2], messages[1::2], strict=True):
                assert ai["content"] == f"noted: {human['content']}"
                assert ai["request_id"] == human["request_id"]
            for lane in [*lanes, "cli"]:
                own = [m["content"] for m in messages[::2] if m["content"].startswith(f"{lane}-")]
                assert own == [f"{lane}-{i}" for i in range(len(own))]
        assert len(recorder.prompts) == 65
    finally:
        second.stop()


def test_turns_that_are_sent_in_a_row_to_a_new_process_are_kept_in_that_order(recorded: Confidant) -> None:
    for burst in range(3):
        session, said = f"http:burst:{burst}:ann", [f"word {n}" for n in range(6)]
        turns = []
        # By one thread: several would be as quick as the machine lets each of them be.
        for query in said:
            link = http.client.HTTPConnection("127.0.0.1", recorded.port, timeout=REQUEST_SECONDS)
            headers = {"Authorization": f"Bearer {recorded.token}", "Content-Type": "application/json"}
            link.request("POST", turns_path(session), json.dumps({"query": query}), headers)
            turns.append(link)
            time.sleep(0.03)
        for link in turns:
            with closing(link):
                reply = link.getresponse()
                assert reply.status == 200, reply.read()
        asked = [message["content"] for message in export(recorded, session) if message["type"] == "human"]
        assert asked == said, burst
        # What is read at the first turn is read again by the next process.
        recorded.restart()


def test_promise_1_no_prompt_holds_anothers_marker(recorded: Confidant, recorder: RecordingModel) -> None:
    """200 interleaved sessions of 20 people, over HTTP, against a recording model endpoint."""
    picked = random.Random(7)
    steps = [(person, place, n) for n in range(3) for person in range(20) for place in range(10)]
    picked.shuffle(steps)

    def turn(step: tuple[int, int, int]) -> None:
        person, place, n = step
        session = f"discord_conv:{person}" if place == 0 else f"!r{place}:x.org:main:@p{person}:x.org"
        private = (person + place + n) % 3 == 0
        kind = "private" if private else "room"
        body = {"query": f"I say [{person}.{place}.{n}.{kind}]", "audience": kind}
        if not private:
            body["room_context"] = [{"sender": "@x:x.org", "content": f"[room.{place}]", "timestamp": 0, "is_bot": False}]
        recorded.turn(session, body)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(turn, steps))
    assert len(recorder.prompts) == 600
    recalled = 0
    for messages in recorder.prompts:
        query = messages[-1]["content"].split("\n")[-1]
        person, place, _, kind = re.search(r"\[(\d+)\.(\d+)\.(\d+)\.(\w+)\]", query).groups()
        whole = json.dumps(messages)
        for found in re.finditer(r"\[(\d+)\.(\d+)\.(\d+)\.(\w+)\]", whole):
            assert found[1] == person and found[2] == place, f"{found[0]} in a prompt for {query}"
            assert not (kind == "room" and found[4] == "private"), f"{found[0]} in a room turn"
            recalled += 1
        assert set(re.findall(r"\[room\.(\d+)\]", whole)) <= {place}
    assert recalled > 1000, "the test has hardly recalled anything"


def test_keys_rotate_beside_running_turns(recorded: Confidant) -> None:
    for i in range(60):
        recorded.turn(f"http:r:main:old{i}", {"query": "hello"})
    old_key = (recorded.data_dir / "master.key").read_text()
    stop, failures, done = threading.Event(), [], []

    def talk(lane: int) -> None:
        i = 0
        while not stop.is_set():
            session = f"http:r:main:{'old' if i % 2 else 'new'}{lane}-{i}" if i % 3 else f"http:r:main:old{i % 60}"
            reply = recorded.request("POST", turns_path(session), {"query": "still here?"})
            done.append(reply.status)
            if reply.status != 200 or reply.json()["metadata"]["memory"] != "kept":
                failures.append((reply.status, reply.body))
            i += 1

    with ThreadPoolExecutor(4) as pool:
        for lane in range(4):
            pool.submit(talk, lane)
        for _ in range(3):
            rotated = run(recorded, "keys", "rotate")
            assert rotated.returncode == 0, rotated.stderr
        time.sleep(0.3)
        stop.set()
    assert not failures and len(done) > 20, failures[:3]
    assert run(recorded, "keys", "verify").returncode == 0
    recorded.restart()
    assert recorded.turn("http:r:main:old7", {"query": "after"})["metadata"]["recalled"] > 0
    recorded.stop()
    new_key = (recorded.data_dir / "master.key").read_text()
    assert old_key.split()[0] not in new_key
    (recorded.data_dir / "master.key").write_text(old_key)
    refused = run(recorded, "keys", "verify")
    assert refused.returncode == 2 and "wrong master key" in refused.stderr and "hint:" in refused.stderr
    (recorded.data_dir / "master.key").write_text(new_key)
    recorded.start()


def test_promise_2_nothing_readable_at_rest(recorded: Confidant) -> None:
    """Markers in every message; a search of data folder, WAL, log and temporary files, running and stopped."""
    for i in range(30):
        room = [{"sender": "@MARKsender:x.org", "content": f"MARKroom {i}", "timestamp": 0, "is_bot": False}]
        body = {"query": f"MARKquery {i}", "room_context": room, "request_id": f"MARKrequest{i}"}
        recorded.turn("!MARKplace:x.org:main:@MARKuser:x.org", body)
    recorded.client().chat.completions.create(
        model="recorder", user="MARKuser", messages=[{"role": "user", "content": "MARKchat"}]
    )
    recorded.request("POST", turns_path("MARK bad id"), {"query": "MARKbad"})
    recorded.request("POST", turns_path("http:r:main:u"), {"query": ["MARKtype"], "MARKfield": 1})
    run(recorded, "chat", "--user", "MARKcli", "--once", "MARKonce")
    assert recorded.files_with("MARK") == []
    recorded.restart()
    recorded.stop()
    assert recorded.files_with("MARK") == []
    assert recorded.files_with("listening") != [], "the search cannot find what is there"
    recorded.start()


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """On a file system of 2 MB: the turn that does not fit gets a clear error, and all before it are there."""
    script = """
        mount -t tmpfs -o size=2m tmpfs "$1" && exec python3 - "$1" "$2" <<'PY'
import json, os, subprocess, sys
folder, binary = sys.argv[1:]
environment = {**os.environ, "CONFIDANT_SERVER__DATA_DIR": folder + "/data"}
def chat(text, *more):
    return subprocess.run([binary, "chat", "--user", "alice", "--room", "r", "--once", text, *more],
                          env=environment, capture_output=True, text=True)
first = chat("my name is Alice")
assert first.returncode == 0, first.stderr
ballast = os.open(folder + "/ballast", os.O_WRONLY | os.O_CREAT)
try:
    while os.write(ballast, b"x" * 4096):
        pass
except OSError:
    os.close(ballast)
full = chat("y" * 60000)
print(json.dumps({"code": full.returncode, "stderr": full.stderr}))
os.remove(folder + "/ballast")
after = chat("What is my name?")
print(json.dumps({"code": after.returncode, "stdout": after.stdout, "stderr": after.stderr}))
verify = subprocess.run([binary, "keys", "verify"], env=environment, capture_output=True, text=True)
print(json.dumps({"code": verify.returncode, "stderr": verify.stderr}))
PY
    """
    assert shutil.which("unshare"), "this test needs unshare (util-linux)"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    shell = ["unshare", "--map-root-user", "--mount", "bash", "-c", script, "bash", str(tmp_path), str(BINARY)]
    done = subprocess.run(shell, env=clean, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    full, after, verify = (json.loads(line) for line in done.stdout.splitlines())
    assert full["code"] == 2 and "the store is full, nothing was written" in full["stderr"] and "hint:" in full["stderr"], full
    assert "yyyy" not in full["stderr"]
    assert after["code"] == 0 and "Alice" in after["stdout"], after
    assert verify["code"] == 0, verify
