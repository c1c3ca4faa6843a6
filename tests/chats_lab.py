"""Somewhere to ask questions in chats that only their owner can open, with models that keep everything they are told.

    sqlite     one server
    redis      one server that keeps conversations in a Redis, and chats in a file
    gateways   two gateways and a worker on one PostgreSQL and one Redis; devices come to either gateway
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import postgres_servers
import pytest
from conftest import Confidant, wait_until
from recording_model import RecordingModel
from small_model import SmallModel
from test_chats import BINARY, CODE, LOGIN, PASSWORD, Person, first_code
from test_nothing_at_rest import needles
from test_roles import KEY, RedisServer

PATIENCE = 120
RESENT = re.compile(r"sent it (\d+) messages? for this answer")


@dataclass
class Lab:
    """Servers, what they share, and the models that they ask."""

    kind: str
    folder: Path
    postgres: tuple[int, Path] | None = None
    redis: RedisServer | None = None
    model: RecordingModel = field(default_factory=RecordingModel)
    small: SmallModel = field(default_factory=SmallModel)
    fronts: list[Confidant] = field(default_factory=list)
    workers: list[Confidant] = field(default_factory=list)
    schema: str = field(default_factory=lambda: f"test_{os.urandom(6).hex()}")

    @property
    def servers(self) -> list[Confidant]:
        return [*self.fronts, *self.workers]

    def start(self, toml: str = "", **settings: str) -> None:
        """Starts it with these settings beside its own. `toml` is for what variables cannot say."""
        environment = self._environment() | settings
        is_many = self.kind == "gateways"
        self.fronts = [Confidant(self.folder / name, environment) for name in (("one", "two") if is_many else ("one",))]
        self.workers = [Confidant(self.folder / "worker", environment)] if is_many else []
        # One site, whichever gateway a request comes to.
        text = f"[web]\norigins = {json.dumps([front.url for front in self.fronts])}\n{toml}"
        for server in self.servers:
            server.folder.mkdir()
            path = server.folder / "lab.toml"
            path.write_text(text)
            server.arguments = ["--config", str(path)]
        for front in self.fronts if is_many else ():
            front.arguments += ["--role", "gateway"]
        for worker in self.workers:
            worker.arguments += ["--role", "worker", "--listen", f"127.0.0.1:{worker.port}"]
        self.begin()

    def begin(self) -> None:
        """Starts what does not run, and waits until questions can be answered."""
        for server in self.servers:
            if server.process is None:
                server.start()
        for front in self.fronts:
            wait_until(lambda front=front: front.request("GET", "/readyz").status == 200, PATIENCE, self.logs)

    def _environment(self) -> dict[str, str]:
        ours = self.model.environment | {
            "CONFIDANT_LOG__LEVEL": "trace",
            "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0",
            "CONFIDANT_WEB__REGISTRATION": "open",
        }
        if self.redis is None:
            return ours
        ours["CHECKPOINT_ENCRYPTION_KEY"] = KEY
        if self.postgres is None:
            return ours | {"CONFIDANT_STORE__URL": self.redis.url}
        at = f"{postgres_servers.ROLE}:{postgres_servers.PASSWORD}@127.0.0.1:{self.postgres[0]}"
        return ours | {
            "CONFIDANT_BUS__SILENCE_SECONDS": "2",
            "CONFIDANT_BUS__URL": self.redis.url,
            "CONFIDANT_STORE__SCHEMA": self.schema,
            "CONFIDANT_STORE__URL": f"postgres://{at}/{postgres_servers.DATABASE}",
        }

    def stop(self) -> None:
        """Fronts first: a gateway that stops may wait for an answer."""
        for server in self.servers:
            server.stop()

    def kill(self) -> None:
        """Ends whoever answers as a power cut does; `begin` starts it again."""
        for server in self.workers or self.fronts:
            assert server.process is not None
            server.process.kill()
            server.process.wait()
            server.process = None

    def close(self) -> None:
        for server in self.servers:
            with suppress(AssertionError):
                server.stop()
        if self.redis is not None:
            self.redis.stop()
        self.model.close()
        self.small.close()

    def logs(self) -> str:
        return "\n".join(server.log() for server in self.servers)

    def person(self, at: int = 0, name: str = "device", login: str = LOGIN) -> Person:
        """Somebody at a device that comes to one of the gateways, if there are two. Devices are outside of what is searched."""
        people = self.folder / "people"
        people.mkdir(exist_ok=True)
        return Person(self.fronts[at % len(self.fronts)], people / name, login=login, password=PASSWORD)

    def owner(self) -> tuple[Person, Person]:
        """The first account, at two devices."""
        one, two = self.person(0), self.person(1, "two")
        self.register(one)
        two.do("/list")
        return one, two

    def register(self, person: Person) -> None:
        """Makes the first account. A busy machine may not reach its database in time, to make the code or the account: then again."""
        front = person.server

        def is_made() -> bool:
            if not CODE.search(front.log()):
                front.restart()
                return False
            try:
                person.register(first_code(front))
            except AssertionError as refused:
                if "(unavailable)" not in str(refused):
                    raise
                return False
            return True

        wait_until(is_made, PATIENCE, self.logs)

    def psql(self, sql: str) -> str:
        assert self.postgres is not None
        port, folder = self.postgres
        options = ["-h", str(folder), "-p", str(port), "-U", "postgres", "-d", postgres_servers.DATABASE]
        program = [postgres_servers.program("psql"), "-qAt", "-v", "ON_ERROR_STOP=1", *options, "-c", sql]
        done = subprocess.run([*postgres_servers.as_server(), *map(str, program)], capture_output=True, text=True, cwd="/", timeout=180)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def kept(self) -> tuple[int, int]:
        """How many conversations are kept for models, and how many keys of conversations, accounts and chats there are."""
        if self.postgres is not None:
            return tuple(int(self.psql(f"SELECT count(*) FROM {self.schema}.{table}")) for table in ("sessions", "session_keys"))
        data = self.fronts[0].data_dir
        if self.redis is not None:
            store = self.redis.client()
            rows = "confidant:keys:{k??}:" + "?" * 32
            return len(list(store.scan_iter("*:messages:ai"))), len(list(store.scan_iter(rows)))
        counts = []
        for file, table in (("confidant.db", "sessions"), ("keyring.db", "session_keys")):
            with closing(sqlite3.connect(data / file, timeout=30)) as database:
                counts += database.execute(f"SELECT count(*) FROM {table}").fetchone()
        return counts[0], counts[1]

    def rows(self, *tables: str) -> dict[str, int]:
        """How many rows there are in these tables of chats."""
        if self.postgres is not None:
            return {table: int(self.psql(f"SELECT count(*) FROM {self.schema}_chats.{table}")) for table in tables}
        with closing(sqlite3.connect(self.fronts[0].data_dir / "chats.db", timeout=30)) as database:
            return {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}

    def damage(self) -> None:
        """Makes what is kept for models unreadable, as a stale key would. The servers have stopped."""
        if self.postgres is not None:
            for table, column in (("session_entries", "sealed"), ("sessions", "snapshot")):
                last = f"length({column}) - 1"
                flipped = f"set_byte({column}, {last}, get_byte({column}, {last}) # 1)"
                self.psql(f"UPDATE {self.schema}.{table} SET {column} = {flipped} WHERE {column} IS NOT NULL")
            return
        with closing(sqlite3.connect(self.fronts[0].data_dir / "confidant.db")) as database, database:
            changed = 0
            for table, where in (("records", "WHERE log IS NOT NULL"), ("session_snapshots", "")):
                for row, sealed in database.execute(f"SELECT rowid, sealed FROM {table} {where}").fetchall():
                    flipped = sealed[:-1] + bytes([sealed[-1] ^ 1])
                    database.execute(f"UPDATE {table} SET sealed = ? WHERE rowid = ?", (flipped, row))
                    changed += 1
            assert changed, "there is something to damage"

    def at_rest(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is on a disk: names and contents of files, and what a Redis gives when it is asked for all of it."""
        folders = [server.folder for server in self.servers]
        if self.redis is not None:
            store = self.redis.client()
            for key in store.scan_iter("*"):
                yield f"redis {key!r}", bytes(key) + (store.dump(key) or b"") + values(store, key)
            folders.append(self.redis.folder)
        if self.postgres is not None:
            self.psql("CHECKPOINT")
            folders.append(self.postgres[1])
        for folder in folders:
            for path in folder.rglob("*"):
                # Servers make and remove files while this looks.
                with suppress(FileNotFoundError):
                    yield str(path), path.name.encode() + (path.read_bytes() if path.is_file() else b"")

    def leaks(self, *words: str) -> list[tuple[str, str]]:
        """Every word with each place at rest that has it readably."""
        sought = {word: needles(word) for word in words}
        places = 0
        found = []
        for name, content in self.at_rest():
            places += 1
            found += [(word, name) for word in words if any(needle in content for needle in sought[word])]
        assert places > 5, "there is something to look at"
        return found


def values(store, key: bytes) -> bytes:
    """What a key holds, as commands tell it: a dump may be packed."""
    read = {
        b"string": lambda: [store.get(key)],
        b"hash": lambda: [part for pair in store.hgetall(key).items() for part in pair],
        b"set": lambda: store.smembers(key),
        b"zset": lambda: store.zrange(key, 0, -1),
        b"list": lambda: store.lrange(key, 0, -1),
        b"stream": lambda: [part for _, fields in store.xrange(key) for pair in fields.items() for part in pair],
    }
    # One that has just gone is of no kind.
    return b"\0".join(part for part in read.get(store.type(key), list)() if part)


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[int, Path]]:
    with postgres_servers.server() as server:
        yield server


@pytest.fixture(params=("sqlite", "gateways"))
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Not started yet: a test says with which settings."""
    made = Lab(request.param, tmp_path)
    if made.kind != "sqlite":
        (tmp_path / "store").mkdir()
        made.redis = RedisServer(tmp_path / "store")
        made.redis.start()
    if made.kind == "gateways":
        made.postgres = request.getfixturevalue("postgres")
    try:
        yield made
    finally:
        made.close()


@dataclass
class Answer:
    """What came of a question."""

    chat: str
    body: str
    finish: str
    resent: int | None
    """How many messages the device sent for it, if the server asked for them."""


def ask(person: Person, words: str, chat: str | None = None, *before: str) -> Answer:
    """Asks, in a chat that is there or in a new one, and waits for the answer."""
    opened = [f"/open {chat}"] if chat else []
    done = person.run("--login", person.login, *doing(*opened, *before, f"/ask {words}"))
    return answer_of(done.stdout, done.stderr)


def answer_of(out: str, said: str) -> Answer:
    lines = [json.loads(line) for line in out.splitlines()]
    ended = [line for line in lines if "finish" in line]
    assert len(ended) == 1, f"{out}\n{said}"
    resent = RESENT.search(said)
    return Answer(ended[0]["chat"], ended[0]["body"], ended[0]["finish"], int(resent[1]) if resent else None)


def doing(*commands: str) -> list[str]:
    return [part for command in commands for part in ("--do", command)]


def read(person: Person, chat: str) -> list[str]:
    return [line["body"] for line in person.do(f"/open {chat}")]


class Asking:
    """A device that asks, while it does."""

    def __init__(self, person: Person, *commands: str) -> None:
        home = person.device.parent / "home"
        home.mkdir(exist_ok=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CONFIDANT_")}
        self.out, self.said = (person.device.with_name(f"{person.device.name}.{end}") for end in ("out", "said"))
        with self.out.open("wb") as out, self.said.open("wb") as said:
            self.process = subprocess.Popen(
                [BINARY, "chat", "--json", "--server", person.server.url, "--device", person.device, "--login", person.login, *doing(*commands)],
                cwd=home,
                env=clean | {"HOME": str(home), "CHAT_PASSWORD": person.password},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=said,
            )

    def words(self) -> str:
        """The words of the answer that it has printed so far."""
        # The last line may be half there.
        lines = [json.loads(line) for line in self.out.read_text().split("\n")[:-1]]
        return "".join(line.get("words", "") for line in lines)

    def ends(self) -> int:
        """Waits for its end; its status."""
        return self.process.wait(PATIENCE)

    def answer(self) -> Answer:
        status, out, said = self.ends(), self.out.read_text(), self.said.read_text()
        assert status == 0, f"{out}\n{said}"
        return answer_of(out, said)

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def told(model: RecordingModel, query: str) -> list[tuple[str, str]]:
    """What the model was told when it was last asked this: who, and the last line of what, without the system's words."""
    prompts = [prompt for prompt in model.prompts if last_line(prompt[-1]) == query]
    assert prompts, f"the model was not asked {query!r}"
    return [(message["role"], last_line(message)) for message in prompts[-1] if message["role"] != "system"]


def last_line(message: dict) -> str:
    return message["content"].split("\n")[-1]


def exchanged(*queries: str) -> list[tuple[str, str]]:
    """Questions with the answers that the recording model gives."""
    return [line for query in queries for line in (("user", query), ("assistant", f"noted: {query}"))]
