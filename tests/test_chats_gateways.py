"""Two gateways on one PostgreSQL and one Redis: a person's devices come to either, and hear at once what happens at the other."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import postgres_servers
import pytest
import redis
from conftest import Confidant, wait_until
from recording_model import RecordingModel
from test_chats import BINARY, DRAFT, EDITED, LOGIN, PASSWORD, TITLE, WORDS, Person, first_code, leaks
from test_roles import KEY, RedisServer, Role

PATIENCE = 120


@dataclass
class Installation:
    """Two gateways, and what they share."""

    folder: Path
    redis: RedisServer
    postgres: tuple[int, Path]
    gateways: tuple[Confidant, Confidant]

    def person(self, at: int, name: str = "device", password: str = PASSWORD) -> Person:
        """The account's owner, at a device that comes to one of the gateways."""
        people = self.folder / "people"
        people.mkdir(exist_ok=True)
        return Person(self.gateways[at], people / name, password=password)

    def psql(self, sql: str) -> str:
        port, folder = self.postgres
        options = ["-h", str(folder), "-p", str(port), "-U", "postgres", "-d", postgres_servers.DATABASE]
        program = [postgres_servers.program("psql"), "-qAt", "-v", "ON_ERROR_STOP=1", *options, "-c", sql]
        done = subprocess.run([*postgres_servers.as_server(), *map(str, program)], capture_output=True, text=True, cwd="/", timeout=180)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def logs(self) -> str:
        return "\n".join(gateway.log() for gateway in self.gateways)


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[int, Path]]:
    with postgres_servers.server() as server:
        yield server


@pytest.fixture
def both(tmp_path: Path, postgres: tuple[int, Path]) -> Iterator[Installation]:
    (tmp_path / "redis").mkdir()
    store = RedisServer(tmp_path / "redis")
    store.start()
    schema = f"test_{os.urandom(6).hex()}"
    environment = {
        "CHECKPOINT_ENCRYPTION_KEY": KEY,
        "CONFIDANT_BUS__URL": store.url,
        "CONFIDANT_LOG__LEVEL": "debug",
        "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0",
        "CONFIDANT_STORE__SCHEMA": schema,
        "CONFIDANT_STORE__URL": f"postgres://{postgres_servers.ROLE}:{postgres_servers.PASSWORD}@127.0.0.1:{postgres[0]}/{postgres_servers.DATABASE}",
        "CONFIDANT_WEB__SYNC_CACHE_SECONDS": "20",
    }
    gateways = tuple(Confidant(tmp_path / name, environment=environment) for name in ("one", "two"))
    for gateway in gateways:
        gateway.folder.mkdir()
        # One site, whichever gateway a request comes to.
        path = gateway.folder / "gateway.toml"
        path.write_text(f"[web]\norigins = {json.dumps([one.url for one in gateways])}\n")
        gateway.arguments = ["--role", "gateway", "--config", str(path)]
    installation = Installation(tmp_path, store, postgres, gateways)
    try:
        for gateway in gateways:
            gateway.start()
        yield installation
    finally:
        for gateway in gateways:
            with suppress(AssertionError):
                gateway.stop()
        store.stop()


class Terminal:
    """A device that stays connected: what is typed is done, and what it hears is printed."""

    def __init__(self, person: Person, *commands: str) -> None:
        home = person.device.parent / "home"
        home.mkdir(exist_ok=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CONFIDANT_")}
        self.path = person.device.with_name(f"{person.device.name}.out")
        with self.path.open("wb") as out:
            self.process = subprocess.Popen(
                [BINARY, "chat", "--server", person.server.url, "--device", person.device, "--login", person.login],
                cwd=home,
                env=clean | {"HOME": str(home), "CHAT_PASSWORD": person.password},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
            )
        self.type(*commands)

    def type(self, *lines: str) -> None:
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def heard(self, text: str, times: int = 1) -> None:
        """Waits until it has printed this."""
        said = self.path.read_text
        wait_until(lambda: said(errors="replace").count(text) >= times, PATIENCE, lambda: f"{text!r} is not heard:\n{said()}")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def test_a_person_has_one_account_at_both_gateways(both: Installation) -> None:
    one = both.person(0)
    recovery = one.register(first_code(both.gateways[0]))
    one.do(f"/new {TITLE}", WORDS, "second", f"/draft {DRAFT}")
    # By the password, by the recovery code, by another device: that is bound to the address, which people have in common behind one.
    two = both.person(1, "two")
    assert two.read() == [WORDS, "second"]
    (line,) = two.do("/list")
    assert (line["title"], line["messages"], line["draft"]) == (TITLE, 2, DRAFT)
    three = both.person(1, "three")
    done = three.run("--login", LOGIN, "--recover", "--do", "/open 1", CHAT_RECOVERY_CODE=recovery, CHAT_PASSWORD="")
    assert [json.loads(line)["body"] for line in done.stdout.splitlines()] == [WORDS, "second"]
    assert pair(both, two, both.person(1, "four")) == [WORDS, "second"]
    assert len(one.do("/devices")) == 4
    # Edits, conflicts and what was written offline.
    two.do("/open 1", "/edit 2 changed", "/rename better", "third")
    assert one.read() == [WORDS, "changed", "third"]
    assert one.do("/list")[0]["title"] == "better"
    both.gateways[1].stop()
    assert any("waits" in line for line in two.do("/open 1", "/edit 1 here", "offline words", "/queue"))
    one.do("/open 1", "/edit 1 there", "/delete 3", "online words")
    both.gateways[1].start()
    two.do("/sync")
    found = two.read()
    assert found == one.read() and set(found) == {"there", "changed", "online words", "offline words"}
    copies = [line for line in two.do("/queue") if "copy" in line]
    assert [(copy["text"], copy["why"]) for copy in copies] == [("here", "another device changed it first")]
    # A new password at one gateway is the only one at the other; and so after the recovery code was used.
    changed = "changed-" + PASSWORD
    one.run("--login", LOGIN, "--do", "/password", typed=changed)
    assert "login-refused" in both.person(1, "old").run("--login", LOGIN, "--do", "/list", status=2).stderr
    assert both.person(1, "new", password=changed).read() == found
    fresh = "another-" + PASSWORD
    done = one.run("--login", LOGIN, "--do", "/recover", CHAT_RECOVERY_CODE=recovery, CHAT_PASSWORD=fresh)
    again = json.loads(done.stdout)["recovery_code"]
    refused = both.person(1, "changed", password=changed).run("--login", LOGIN, "--do", "/list", status=2)
    assert "login-refused" in refused.stderr
    five = both.person(1, "five", password=fresh)
    assert five.read() == found
    # A new account key, made at one: the other's devices are out, and the new code opens it there.
    done = five.run("--login", LOGIN, "--do", "/rotate")
    rotated = json.loads(done.stdout)["recovery_code"]
    six = both.person(0, "six")
    refused = six.run("--login", LOGIN, "--recover", "--do", "/list", status=2, CHAT_RECOVERY_CODE=again, CHAT_PASSWORD="")
    assert "login-refused" in refused.stderr
    done = six.run("--login", LOGIN, "--recover", "--do", "/open 1", CHAT_RECOVERY_CODE=rotated, CHAT_PASSWORD="")
    assert [json.loads(line)["body"] for line in done.stdout.splitlines()] == found
    # Erased at one, it is gone at the other.
    six.password = fresh
    six.run("--login", LOGIN, "--do", "/erase everything")
    assert "login-refused" in both.person(1, "seven", password=fresh).run("--login", LOGIN, "--do", "/list", status=2).stderr


def pair(both: Installation, old: Person, new: Person) -> list[str]:
    """Adds a device by another one; what it then reads."""
    home = new.device.parent / "home"
    home.mkdir(exist_ok=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CONFIDANT_")}
    command = [BINARY, "chat", "--json", "--server", new.server.url, "--device", new.device, "--pair", "--do", "/open 1"]
    with subprocess.Popen(
        command, cwd=home, env=clean | {"HOME": str(home)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            digits = process.stdout.readline().strip()
            old.do(f"/pair {digits}")
            out, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, f"{said}\n{both.logs()}"
    return [json.loads(line)["body"] for line in out.splitlines()]


def test_news_go_from_one_gateway_to_the_other_whatever_breaks(both: Installation) -> None:
    both.person(0).register(first_code(both.gateways[0]))
    both.person(0).do(f"/new {TITLE}", "begin")
    both.person(1, "two").read()
    with Terminal(both.person(0), "/open 1") as near, Terminal(both.person(1, "two"), "/open 1") as far:
        near.heard("begin")
        far.heard("begin")
        near.type("from near")
        far.heard("you: from near")
        far.type("from far")
        near.heard("you: from far")
        # More than one notification takes.
        long = "long " * 4000 + "end"
        near.type(long)
        far.heard(long)
        # The connections that listen are cut by the server; what is written afterwards is heard all the same.
        before = listeners(both)
        assert len(before) == 2
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN ({','.join(before)})"
        assert both.psql(cut).split() == ["t", "t"]
        wait_until(lambda: len(listeners(both) - before) == 2, PATIENCE, both.logs)
        near.type("after the cut")
        far.heard("you: after the cut")
        far.type("and back")
        near.heard("you: and back")
        # Redis is not needed for it.
        assert both.redis.process is not None
        both.redis.process.send_signal(signal.SIGKILL)
        both.redis.process.wait()
        near.type("without Redis")
        far.heard("you: without Redis")
        assert both.person(1, "three").read()[-1] == "without Redis"
        both.redis.start()
        far.type("with Redis")
        near.heard("you: with Redis")
        # A device is revoked at one gateway, and told at once at the other.
        four = both.person(0, "four")
        others = [device["device"] for device in four.do("/devices") if not device["this"]]
        assert len(others) == 3
        four.do(*(f"/revoke {device}" for device in others))
        far.heard("logged out")
        near.heard("logged out")


def listeners(both: Installation) -> set[str]:
    schema = both.gateways[0].environment["CONFIDANT_STORE__SCHEMA"]
    return set(both.psql(f"SELECT pid FROM pg_stat_activity WHERE application_name = 'confidant news {schema}_chats'").split())


class Monitor:
    """What a Redis is asked, as it is asked."""

    def __init__(self, server: RedisServer) -> None:
        self.commands: list[str] = []
        self.client = server.client()
        self.monitor = self.client.monitor()
        self.monitor.__enter__()
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        with suppress(redis.exceptions.RedisError, OSError, ValueError, AttributeError):
            for command in self.monitor.listen():
                self.commands.append(str(command["command"]))

    def asked(self, *words: str) -> bool:
        return any(all(word in command for word in words) for command in list(self.commands))


def test_what_is_read_ahead_is_ciphertext_and_never_believed(both: Installation) -> None:
    one = both.person(0)
    one.register(first_code(both.gateways[0]))
    one.do(f"/new {TITLE}", WORDS, f"/draft {DRAFT}")
    schema = both.gateways[0].environment["CONFIDANT_STORE__SCHEMA"] + "_chats"
    chat, account = both.psql(f"SELECT chat, account FROM {schema}.chats").split("|")
    key, index = f"user:{account}:chat:{chat}:messages:sync", f"user:{account}:sync"
    monitor = Monitor(both.redis)
    assert both.person(1, "two").read() == [WORDS]
    wait_until(lambda: monitor.asked("SET", key, "PX") or monitor.asked("EVALSHA", index), PATIENCE, lambda: str(monitor.commands))
    store = both.redis.client()
    wait_until(lambda: not list(store.scan_iter("user:*")), PATIENCE, lambda: str(list(store.scan_iter("user:*"))))
    # An old envelope, put back by hand where gateways look first; and an index so full that they do not replace it.
    old = [row.split("|") for row in both.psql(f"SELECT item, encode(envelope, 'hex') FROM {schema}.envelopes").splitlines()]
    one.do("/open 1", f"/edit 1 {EDITED}")
    value = b"\x01"
    for item, envelope in old:
        sealed = bytes.fromhex(envelope)
        value += struct.pack(">H", len(item)) + item.encode() + struct.pack(">I", len(sealed)) + sealed
    full = {f"c:chat_{number}": 1 for number in range(200)} | {"d:somebody": 1}
    store.set(key, value)
    for at, name in enumerate(("three", "four")):
        mark = len(monitor.commands)
        store.hset(index, mapping=full)
        assert both.person(at, name).read() == [EDITED]
        wait_until(lambda mark=mark: any("GETRANGE" in one and key in one for one in monitor.commands[mark:]), PATIENCE, lambda: str(monitor.commands))
        assert store.get(key) == value
    # What is foreign, too long or broken is not there.
    for broken in (b"\x01\xff", b"\x02", b"x" * 100_000, b""):
        store.hset(index, mapping=full)
        store.set(key, broken)
        assert both.person(0, f"device{len(broken)}").read() == [EDITED]
    store.delete(key, index)
    # A deleted chat and an erased account leave nothing there.
    store.hset(index, mapping={f"c:{chat}": 1, "d:somebody": 1})
    store.set(key, value)
    one.do("/open 1", "/delete-chat")
    assert not store.exists(key) and not store.hexists(index, f"c:{chat}")
    store.hset(index, mapping={f"c:{chat}": 1, "d:somebody": 1})
    store.set(key, value)
    one.run("--login", LOGIN, "--do", "/erase everything")
    assert not list(store.scan_iter("user:*"))
    store.save()
    assert leaks(both.redis.folder, (TITLE, WORDS, EDITED, DRAFT, PASSWORD)) == []
    for gateway in both.gateways:
        assert leaks(gateway.folder, (TITLE, WORDS, EDITED, DRAFT, PASSWORD, account)) == []


class Everything(dict):
    """Pieces of an answer, whatever is asked."""

    def get(self, _: object, __: object = None) -> list[str]:
        return self["pieces"]


SPOKEN = "quincewhistle"


def test_an_answer_goes_on_at_the_other_gateway_when_the_one_that_was_asked_is_killed(both: Installation) -> None:
    model, pace = RecordingModel(), threading.Semaphore(0)
    pieces = [f"{SPOKEN}{number} " for number in range(12)]
    model.answers = Everything(pieces=pieces)
    # The first piece, and one more for each permit.
    model.between = lambda: pace.acquire(timeout=PATIENCE)
    # The model waits until a second device has come, which takes a busy machine more than a minute.
    patient = {"CONFIDANT_MODEL__TIMEOUT_SECONDS": "500", "CONFIDANT_TURN__ANSWER_TIMEOUT_SECONDS": "550"}
    worker = Role(both.folder / "worker", "worker", both.gateways[0].environment | model.environment | patient)
    worker.start()
    try:
        both.person(0).register(first_code(both.gateways[0]))
        both.person(0).do(f"/new {TITLE}", "begin")
        two = both.person(1, "two")
        two.read()
        with Terminal(both.person(0), "/open 1") as near:
            near.heard("begin")
            near.type(f"/ask {WORDS}")
            pace.release(3)
            near.heard(pieces[3].strip())
            with Terminal(two, "/open 1", "/wait") as far:
                far.heard(pieces[3].strip())
                asked = both.gateways[0].process
                assert asked is not None
                asked.kill()
                asked.wait()
                both.gateways[0].process = None
                # Word by word: the model waits.
                pace.release(2)
                far.heard(pieces[5].strip())
                assert pieces[6].strip() not in far.path.read_text(errors="replace")
                pace.release(20)
                far.heard(pieces[11].strip())
                far.type("/sync", "/queue")
        wait_until(lambda: two.read()[-1].strip() == "".join(pieces).strip(), PATIENCE, lambda: f"{both.logs()}\n{worker.log()}")
        assert two.read()[:-1] == ["begin", WORDS]
        both.gateways[0].start()
        assert both.person(0).read() == two.read()
        # What went over Redis is sealed, and goes by itself.
        store = both.redis.client()
        buffers = [key for key in store.scan_iter("vagent:relay:*") if not key.endswith(b":ears")]
        assert buffers and all(0 < store.ttl(key) <= 600 for key in buffers)
        store.save()
        folders = [both.redis.folder, worker.folder, *(gateway.folder for gateway in both.gateways)]
        assert [leaks(folder, (SPOKEN, WORDS, TITLE)) for folder in folders] == [[]] * 4
        # The chat goes, and with it what is left of its words.
        two.do("/open 1", "/delete-chat")
        assert not [key for key in store.scan_iter("vagent:relay:*") if not key.endswith(b":ears")]
    finally:
        pace.release(1000)
        worker.stop()
        model.close()
