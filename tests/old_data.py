"""Keeps data that a version of the program wrote, so that later versions can be tested on it.

    python tests/old_data.py make PROGRAM NAME

writes the fixture `tests/old_data/NAME`: for each store a data folder and what is on its server, and `expected.json`,
which says what is in them. `test_old_data.py` opens every fixture. `tests/old_data/README.md` says when to make one.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import postgres_servers
import redis
import redis_servers
from conftest import FOREIGN, TESTS, Confidant, free_port
from recording_model import RecordingModel

FIXTURES = TESTS / "old_data"
STORES = ("sqlite", "redis", "postgres")
MOST_BYTES = 1_500_000
COMMAND_SECONDS = 120
# Commands that look for something end with 1 if there is nothing.
FOUND_OR_NOT = (0, 1)

# Made for tests: each is 32 bytes that say so.
FIRST_KEY = base64.b64encode(b"tests only: the first master key").decode()
OTHER_KEY = base64.b64encode(b"tests only: the other master key").decode()

# Nothing in a fixture may end before the fixture does.
CENTURY_SECONDS, CENTURY_DAYS = 3_153_600_000, 36_500
SETTINGS = {
    "CONFIDANT_CHECKPOINT__TTL_SECONDS": str(CENTURY_SECONDS),
    "CONFIDANT_STORE__AUDIT_DAYS": str(CENTURY_DAYS),
    "CONFIDANT_CONCEPTS__ARCHIVE_AFTER_DAYS": str(CENTURY_DAYS),
    "CONFIDANT_CONCEPTS__DELETE_AFTER_DAYS": str(CENTURY_DAYS),
}
# A key on Redis that ends sooner is a lease or a claim of a process that has ended.
YEAR_MILLISECONDS = 31_536_000_000

# Who said what, on the command line: tenant, user, room (None: their memory follows them), sentences.
SAID = [
    ("default", "alice", "db", ["Hello, I'm Alice and I prefer Rust", "What is my name?"]),
    ("default", "alice", None, ["My locker has the number 4711", "What number does my locker have?"]),
    ("default", "bob", "db", ["Hello, I'm Bob and I prefer Python", "What is my name?"]),
    ("acme", "alice", "db", ["Hello, I'm Alice of Acme and I prefer Go", "What is my name?"]),
    ("acme", "carol", "ops", ["Hello, I'm Carol and I am on call on Tuesdays"]),
    ("default", "dora", "db", ["Hello, I'm Dora and nobody shall remember it"]),
]
ERASED = "dora"
# A session so long that its log was replaced by a snapshot.
LONG, LONG_TURNS, LONG_KEPT = "http:team:main:frank", 72, 8
WAITING = "http:desk:main:erin"
CONVERSATION, TAXES = "car", "What do I pay when I import a car?"
# Somebody whose chats only they can open, at a device in the folder.
LOGIN, PASSWORD, DEVICE = "gina", "tests only: a long password", "device"
CHAT = "Travel"
CODE = re.compile(r"needs this code, today: ([0-9a-f]{32})")
CARD = {"summary": "JWT validation failed in auth-service. Decided to roll back to v2.3.1."}


@dataclass
class Place:
    """A data folder, and the settings under which the program uses it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,), **environment: str) -> str:
        """A command of the program that `CONFIDANT_BIN` names, which ends with one of the codes; gives its output."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        ours = {"CONFIDANT_SERVER__DATA_DIR": str(self.folder / "data")} | self.environment | environment
        command = [Path(os.environ["CONFIDANT_BIN"]).resolve(), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=clean | ours, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        assert done.returncode in codes, f"{arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict | list:
        return json.loads(self.run(*arguments, "--json", codes=codes))

    def chat(self, tenant: str, user: str, room: str | None, text: str) -> str:
        return self.run("chat", "--tenant", tenant, "--user", user, *(["--room", room] if room else []), "--once", text)

    def device(self, server: Confidant, name: str, *commands: str, options: tuple[str, ...] = (), **environment: str) -> list[dict]:
        """What a device prints for these commands of its owner, a JSON object per line."""
        arguments = ["--login", LOGIN, *options, *(part for command in commands for part in ("--do", command))]
        secrets = {"CHAT_PASSWORD": PASSWORD, "HOME": str(self.folder)} | environment
        printed = self.run("chat", "--json", "--server", server.url, "--device", str(self.folder / name), *arguments, **secrets)
        return [json.loads(line) for line in printed.splitlines()]

    def chats(self, server: Confidant, name: str, **environment: str) -> list[dict]:
        """What a device shows of each chat, in the order of their titles."""
        listed = sorted(self.device(server, name, "/list", **environment), key=lambda one: one["title"])
        return [
            {
                "title": one["title"],
                "draft": one["draft"],
                "messages": [
                    [line["role"], line["body"]] for line in self.device(server, name, f"/open {one['chat']}", **environment) if "role" in line
                ],
            }
            for one in listed
        ]

    @contextlib.contextmanager
    def serving(self, **environment: str) -> Iterator[Confidant]:
        port = free_port()
        listen = {"CONFIDANT_SERVER__LISTEN": f"127.0.0.1:{port}"}
        server = Confidant(self.folder, environment=self.environment | listen | environment, port=port)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    def sessions(self) -> list[dict]:
        """What each session exports: who said what, in the order of the sessions' names."""
        # What is kept of a chat for its next answer ends after a day, wherever the chat is.
        listed = sorted((one["tenant"], one["session_id"]) for one in self.json("session", "list") if not one["session_id"].startswith("web:"))
        return [
            {"tenant": tenant, "session_id": session, "messages": self.messages(tenant, session)}
            for tenant, session in listed
        ]

    def messages(self, tenant: str, session: str) -> list[dict]:
        exported = self.json("session", "export", "--tenant", tenant, session)
        return [{"type": one["type"], "content": one["content"]} for one in exported["messages"]]

    def approvals(self) -> list[dict]:
        listed = self.json("session", "approvals", codes=FOUND_OR_NOT)
        return [{key: one[key] for key in ("session_id", "approval_id", "tool")} for one in listed]

    def cards(self, user: str) -> list[str]:
        found = self.json("memory", "query", "--user", user, "why did we roll back", codes=FOUND_OR_NOT)
        return [hit["title"] for hit in found["hits"]]

    def candidates(self) -> list[str]:
        return sorted(one["id"] for one in self.json("concepts", "list", "--candidates", codes=FOUND_OR_NOT))

    def tokens(self) -> list[dict]:
        listed = [{key: one[key] for key in ("id", "tenant", "role")} for one in self.json("token", "list")]
        return sorted(listed, key=lambda one: one["id"])


# -- Servers


@contextlib.contextmanager
def redis_server(program: str | None = None) -> Iterator[int]:
    program = program or shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not installed\nhint: scripts/services apt")
    with redis_servers.server(program) as port:
        yield port


def dump_redis(port: int) -> dict[str, dict]:
    """Every key that lasts, with its value as DUMP gives it and the time of its end (0: it has none)."""
    client, kept = redis.Redis(port=port), {}
    seconds, microseconds = client.time()
    for name in sorted(client.scan_iter(count=1000)):
        left = client.pttl(name)
        if left == -1 or left > YEAR_MILLISECONDS:
            ends = 0 if left == -1 else seconds * 1000 + microseconds // 1000 + left
            kept[text(name)] = {"ends": ends, "value": text(client.dump(name))}
    return kept


def restore_redis(port: int, kept: dict[str, dict]) -> None:
    client = redis.Redis(port=port)
    for name, key in kept.items():
        client.restore(base64.b64decode(name), key["ends"], base64.b64decode(key["value"]), absttl=True)


def text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def psql(port: int, folder: Path, user: str, database: str, script: str) -> None:
    options = ["-q", "-X", "-v", "ON_ERROR_STOP=1", "-h", folder, "-p", port, "-U", user, "-d", database]
    postgres_servers.run(postgres_servers.program("psql"), *options, input=script.encode())


def dump_postgres(port: int, folder: Path) -> str:
    """The program's schemas as SQL that its own role can run, on any later PostgreSQL."""
    file = folder / "kept.sql"
    how = ["--inserts", "--no-owner", "--no-privileges", "--schema=confidant", "--schema=confidant_chats", "-f", file]
    where = ["-h", folder, "-p", port, "-U", "postgres", "-d", postgres_servers.DATABASE]
    postgres_servers.run(postgres_servers.program("pg_dump"), *how, *where)
    # What a newer pg_dump sets and an older server does not know, and what only psql of the same age does.
    unknown = ("SET transaction_timeout", "\\restrict", "\\unrestrict")
    return "".join(line for line in file.read_text().splitlines(keepends=True) if not line.startswith(unknown))


def postgres_url(port: int, database: str) -> str:
    return f"postgres://{postgres_servers.ROLE}:{postgres_servers.PASSWORD}@127.0.0.1:{port}/{database}"


# -- Folders


def pack(folder: Path, file: Path) -> None:
    """The same files make the same archive."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            info = tar.gettarinfo(path, str(path.relative_to(folder)))
            info.uid = info.gid = info.mtime = 0
            info.uname = info.gname = ""
            with path.open("rb") if info.isfile() else contextlib.nullcontext() as content:
                tar.addfile(info, content)
    write_gzip(file, archive.getvalue())


def unpack(file: Path, folder: Path) -> None:
    with tarfile.open(file) as tar:
        # Data folders are their owner's only, and the program looks at that.
        tar.extractall(folder, filter="tar")


def write_gzip(file: Path, content: bytes) -> None:
    file.write_bytes(gzip.compress(content, mtime=0))


def read_gzip(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes())


# -- Opening


def names() -> list[str]:
    return sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())


def has_chats(name: str) -> bool:
    return all("chats" in store for store in json.loads((FIXTURES / name / "expected.json").read_text())["stores"].values())


def size() -> int:
    return sum(file.stat().st_size for file in FIXTURES.rglob("*") if file.is_file())


@dataclass
class Kept:
    """A fixture's data of one store, in a place of its own, and what is known of it."""

    place: Place
    expected: dict
    token: str
    revoked: str
    receipt: Path
    # Of the account that has chats, if the fixture has some.
    recovery_code: str | None


@contextlib.contextmanager
def restored(name: str, store: str, folder: Path, postgres: tuple[int, Path] | None = None) -> Iterator[Kept]:
    """Puts a fixture back: files into the folder, the rest onto a private Redis or this PostgreSQL server."""
    fixture = FIXTURES / name
    unpack(fixture / f"{store}.tar.gz", folder)
    secrets = json.loads((folder / "fixture.json").read_text())
    receipt = folder / "receipt.json"
    receipt.write_text(json.dumps(secrets["receipt"]))
    environment = SETTINGS | {"CONFIDANT_SERVER__LISTEN": f"127.0.0.1:{free_port()}"}
    if secrets["master_key"]:
        environment["CHECKPOINT_ENCRYPTION_KEY"] = secrets["master_key"]
    with contextlib.ExitStack() as stack:
        if store == "redis":
            port = stack.enter_context(redis_server())
            restore_redis(port, json.loads(read_gzip(fixture / "redis.json.gz")))
            environment["CONFIDANT_STORE__URL"] = f"redis://127.0.0.1:{port}"
        elif store == "postgres":
            assert postgres is not None
            port, its_folder = postgres
            database = f"old_{os.urandom(6).hex()}"
            owner = f"CREATE DATABASE {database} OWNER {postgres_servers.ROLE}"
            psql(port, its_folder, "postgres", "postgres", owner)
            script = read_gzip(fixture / "postgres.sql.gz").decode()
            psql(port, its_folder, postgres_servers.ROLE, database, script)
            environment["CONFIDANT_STORE__URL"] = postgres_url(port, database)
        expected = json.loads((fixture / "expected.json").read_text())["stores"][store]
        yield Kept(Place(folder, environment), expected, secrets["token"], secrets["revoked"], receipt, secrets.get("recovery_code"))


# -- Making


@contextlib.contextmanager
def empty(store: str, folder: Path, fixture: Path) -> Iterator[Place]:
    """A store with nothing in it; what was written is kept once this ends."""
    if store == "sqlite":
        (folder / "data").mkdir(mode=0o700)
        (folder / "data/master.key").touch(mode=0o600)
        (folder / "data/master.key").write_text(FIRST_KEY + "\n")
        yield Place(folder, SETTINGS)
        return
    keyed = SETTINGS | {"CHECKPOINT_ENCRYPTION_KEY": FIRST_KEY}
    if store == "redis":
        # An older server does not read what a newer one dumps.
        with redis_server(redis_servers.redis_6()) as port:
            yield Place(folder, keyed | {"CONFIDANT_STORE__URL": f"redis://127.0.0.1:{port}"})
            write_gzip(fixture / "redis.json.gz", json.dumps(dump_redis(port), indent=0).encode())
    else:
        with postgres_servers.server() as (port, its_folder):
            yield Place(folder, keyed | {"CONFIDANT_STORE__URL": postgres_url(port, postgres_servers.DATABASE)})
            write_gzip(fixture / "postgres.sql.gz", dump_postgres(port, its_folder).encode())


def talk(place: Place) -> None:
    for tenant, user, room, sentences in SAID:
        for sentence in sentences:
            place.chat(tenant, user, room, sentence)
    many = {"CONFIDANT_HISTORY__MAX_MESSAGES": str(LONG_KEPT), "CONFIDANT_SERVER__REQUESTS_PER_MINUTE": "0"}
    with place.serving(**many) as server:
        for number in range(LONG_TURNS):
            server.turn(LONG, {"query": f"Box {number} is full"})
    kept = place.messages("default", LONG)
    assert len(kept) < LONG_TURNS, f"the log was not folded: {len(kept)} messages"


def ask_a_model(place: Place) -> None:
    """What the built-in model does not do: it calls no tool that waits to be approved, and names no concepts."""
    tool = json.dumps([sys.executable, str(TESTS / "acting_tool.py"), str(place.folder / "done")])
    rule = f'tool = "world.act"\nthen = "approve"\napprovers = ["asker"]\nexpires_seconds = {CENTURY_SECONDS}\n'
    settings = place.folder / "confidant.toml"
    settings.write_text(f"[tools.servers.world]\ncommand = {tool}\n[[tools.rules]]\n{rule}")
    model = RecordingModel()
    tax = {"domain": "TAX", "kind": "VRT", "jurisdiction": "IE", "prefLabel": "Vehicle Registration Tax"}
    model.concepts[TAXES] = {"concepts": [tax | {"definition": "tax levied on registration of vehicles in Ireland."}]}
    try:
        with place.serving(**model.environment) as server:
            asked = server.turn(WAITING, {"query": 'call world.act {"name": "water the plants"}'})
            assert asked["message_type"] == "hitl_request", asked
            identity = {"conversationId": CONVERSATION, "userId": "alice"}
            chat = {"messages": [{"role": "user", "content": TAXES}], "identity": identity}
            reply = server.request("POST", "/api/chat", chat)
            assert reply.status == 200 and reply.json()["referencedNodes"] == ["TAX:IE:VRT"], reply.body
    finally:
        model.close()
        settings.unlink()


def keep_chats(place: Place) -> str:
    """Chats that only their owner can open, one of them with an answer; gives the recovery code."""
    model = RecordingModel()
    try:
        with place.serving(**model.environment) as server:
            code = CODE.findall(server.log())[-1]
            (made,) = place.device(server, DEVICE, "/label first", options=("--register", code))
            place.device(server, DEVICE, f"/new {CHAT}", "/ask remember the ferry of 7:40", "/draft and the way back?")
            place.device(server, DEVICE, "/new Notes", "written down", "second", "/edit 2 changed", "/memory tone short and plain")
            return made["recovery_code"]
    finally:
        model.close()


def finish(place: Place, recovery_code: str) -> tuple[dict, str]:
    """Tokens, a card, an erasure and a rotation; gives what opens them, and the id of the revoked token."""
    token = place.json("token", "new", "--role", "user:bob")
    revoked = place.json("token", "new", "--role", "agent", "--tenant", "acme")
    place.run("token", "revoke", revoked["id"])
    session = place.folder / "session.json"
    session.write_text(json.dumps(CARD))
    place.run("memory", "store", "demo-001", "--session", str(session), "--user", "alice")
    session.unlink()
    receipt = json.loads(place.run("person", "erase", ERASED, "--yes"))
    if "CHECKPOINT_ENCRYPTION_KEY" in place.environment:
        place.run("keys", "rotate", CHECKPOINT_ENCRYPTION_KEY=OTHER_KEY, OLD_CHECKPOINT_ENCRYPTION_KEY=FIRST_KEY)
        place.environment["CHECKPOINT_ENCRYPTION_KEY"] = OTHER_KEY
    else:
        place.run("keys", "rotate")
    secrets = {
        "master_key": place.environment.get("CHECKPOINT_ENCRYPTION_KEY"),
        "token": token["token"],
        "revoked": revoked["token"],
        "receipt": receipt,
        "recovery_code": recovery_code,
    }
    return secrets, revoked["id"]


def expected(place: Place) -> dict:
    found = {
        "sessions": place.sessions(),
        "approvals": place.approvals(),
        "cards": place.cards("alice"),
        "candidates": place.candidates(),
        "tokens": place.tokens(),
    }
    # Last: reading is recorded as well.
    return found | {"audit_records": place.json("audit", "verify")["records"]}


def make_store(store: str, fixture: Path) -> dict:
    with tempfile.TemporaryDirectory(prefix="confidant-old-") as name:
        folder = Path(name)
        with empty(store, folder, fixture) as place:
            talk(place)
            ask_a_model(place)
            secrets, revoked = finish(place, keep_chats(place))
            with place.serving() as server:
                chats = place.chats(server, DEVICE)
            found = expected(place) | {"revoked": revoked, "chats": chats}
        shutil.rmtree(folder / "tmp", ignore_errors=True)
        (folder / "confidant.log").unlink()
        # In the archive, where nobody takes them for secrets of anything else.
        (folder / "fixture.json").write_text(json.dumps(secrets, indent=2) + "\n")
        pack(folder, fixture / f"{store}.tar.gz")
        return found


def make(program: str, name: str) -> None:
    fixture = FIXTURES / name
    if fixture.exists():
        raise SystemExit(f"tests/old_data/{name} exists\nhint: fixtures are kept as they are; choose another name")
    if not os.access(program, os.X_OK):
        raise SystemExit(f"{program} is not a program\nhint: cargo build first")
    os.environ["CONFIDANT_BIN"] = program
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    fixture.mkdir(parents=True)
    try:
        stores = {store: make_store(store, fixture) for store in STORES}
        (fixture / "expected.json").write_text(json.dumps({"program": version, "stores": stores}, indent=2) + "\n")
    except BaseException:
        shutil.rmtree(fixture)
        raise
    for file in sorted(fixture.iterdir()):
        print(f"{file.stat().st_size:>9} {file.relative_to(TESTS)}")
    if size() > MOST_BYTES:
        raise SystemExit(f"all fixtures together have {size()} bytes, more than {MOST_BYTES}\nhint: remove the oldest one")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", program, name]:
            make(program, name)
        case _:
            sys.exit(__doc__)
