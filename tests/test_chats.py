"""Chats that only their owner can open, as people have them: `confidant chat --server` against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Confidant
from test_nothing_at_rest import needles

BINARY = Path(os.environ["CONFIDANT_BIN"]).resolve()
PASSWORD, LOGIN = "correct-horse-9-battery", "quillfeather"
TITLE, WORDS, DRAFT, EDITED = "gimbalwort", "marzipanther", "draftlingium", "overwrittenia"
CODE = re.compile(r"needs this code, today: ([0-9a-f]{32})")


@dataclass
class Person:
    """Somebody with an account, at one of their devices."""

    server: Confidant
    device: Path
    login: str = LOGIN
    password: str = PASSWORD

    def run(self, *arguments: str, status: int = 0, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        home = self.device.parent / "home"
        home.mkdir(exist_ok=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CONFIDANT_")}
        done = subprocess.run(
            [BINARY, "chat", "--json", "--server", self.server.url, "--device", self.device, *arguments],
            cwd=home,
            env=clean | {"HOME": str(home), "CHAT_PASSWORD": self.password} | environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == status, f"{done.returncode}: {done.stdout}\n{done.stderr}\n{self.server.log()}"
        return done

    def do(self, *commands: str, **environment: str) -> list[dict]:
        """What these commands print, a JSON object per line."""
        arguments = [part for command in commands for part in ("--do", command)]
        done = self.run("--login", self.login, *arguments, **environment)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def read(self, number: int = 1) -> list[str]:
        return [line["body"] for line in self.do(f"/open {number}")]

    def register(self, code: str) -> str:
        """Makes the account; the recovery code."""
        done = self.run("--login", self.login, "--register", code, "--do", "/list")
        return json.loads(done.stdout)["recovery_code"]


def first_code(server: Confidant) -> str:
    return CODE.findall(server.log())[-1]


@pytest.fixture
def ana(server: Confidant) -> Iterator[Person]:
    yield Person(server, server.folder.parent / f"{server.folder.name}-ana" / "device")


@pytest.fixture(autouse=True)
def folders(server: Confidant) -> Iterator[None]:
    # Beside the server's folder, which is searched for what must not be there.
    people = server.folder.parent / f"{server.folder.name}-ana"
    people.mkdir()
    yield
    shutil.rmtree(people)


def operator(server: Confidant, *arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [BINARY, *arguments, "--data-dir", server.data_dir], cwd=server.folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == status, f"{done.returncode}: {done.stdout}\n{done.stderr}"
    return done.stdout


def leaks(folder: Path, words: tuple[str, ...]) -> list[tuple[str, str]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [
        (word, str(path.relative_to(folder)))
        for path in files
        for word in words
        if any(needle in path.read_bytes() for needle in needles(word))
    ]


def test_two_devices_have_the_same_chats(server: Confidant, ana: Person) -> None:
    recovery = ana.register(first_code(server))
    ana.do(f"/new {TITLE}", WORDS, "second", f"/draft {DRAFT}")
    two = Person(server, ana.device.with_name("two"))
    assert two.read() == [WORDS, "second"]
    (line,) = two.do("/list")
    assert (line["title"], line["messages"], line["draft"]) == (TITLE, 2, DRAFT)
    two.do("/open 1", "/edit 2 changed", "/rename better", "third")
    assert ana.read() == [WORDS, "changed", "third"]
    assert ana.do("/list")[0]["title"] == "better"
    ana.do("/open 1", "/delete 3")
    assert two.read() == [WORDS, "changed"]
    # A third device by the recovery code alone, a fourth by another device.
    three = Person(server, ana.device.with_name("three"))
    done = three.run("--login", LOGIN, "--recover", "--do", "/open 1", CHAT_RECOVERY_CODE=recovery, CHAT_PASSWORD="")
    assert [json.loads(line)["body"] for line in done.stdout.splitlines()] == [WORDS, "changed"]
    devices = ana.do("/devices")
    assert len(devices) == 3 and sum(device["this"] for device in devices) == 1
    other = next(device["device"] for device in devices if not device["this"])
    ana.do(f"/revoke {other}")
    assert len(ana.do("/devices")) == 2


def test_ways_to_log_in_are_listed_and_named_for_devices_only(server: Confidant, ana: Person) -> None:
    ana.register(first_code(server))
    ways = {way["kind"]: way for way in ana.do("/ways")}
    assert set(ways) == {"password", "recovery"} and ways["password"]["id"] is None
    ana.do(f"/ways {ways['recovery']['id']} {WORDS}")
    two = Person(server, ana.device.with_name("two"))
    assert {way["kind"]: way["name"] for way in two.do("/ways")} == {"password": None, "recovery": WORDS}
    assert leaks(server.folder, (WORDS,)) == []
    unknown = f"/ways cred_{'a' * 26} name"
    assert "there is no such way to log in" in ana.run("--login", LOGIN, "--do", unknown, status=2).stderr


def test_what_is_written_offline_waits_and_loses_nothing(server: Confidant, ana: Person) -> None:
    ana.register(first_code(server))
    ana.do("/new plans", "one")
    two = Person(server, ana.device.with_name("two"))
    assert two.read() == ["one"]
    server.stop()
    assert [line["waits"] for line in ana.do("/open 1", "/edit 1 here", "offline words", "/queue") if "waits" in line][-2:]
    server.start()
    two.do("/open 1", "/edit 1 there", "online words")
    ana.do("/sync")
    found = ana.read()
    assert found == two.read() and set(found) == {"there", "online words", "offline words"}
    copies = [line for line in ana.do("/queue") if "copy" in line]
    assert [(copy["text"], copy["why"]) for copy in copies] == [("here", "another device changed it first")]


def test_the_server_has_nothing_readable_and_erases_for_good(server: Confidant, ana: Person) -> None:
    server.environment |= {"CONFIDANT_LOG__LEVEL": "trace"}
    server.restart()
    recovery = ana.register(first_code(server))
    ana.do(f"/new {TITLE}", WORDS, "/edit 1 " + EDITED, f"/draft {DRAFT}", "/label " + DRAFT)
    refused = Person(server, ana.device.with_name("thief"), password="wrong-" + PASSWORD)
    assert "login-refused" in refused.run("--login", LOGIN, "--do", "/list", status=2).stderr
    assert Person(server, ana.device.with_name("two")).read() == [EDITED]
    exported = ana.run("--login", LOGIN, "--do", "/export").stdout
    assert EDITED in exported and TITLE in exported
    secrets = (PASSWORD, LOGIN, recovery, TITLE, WORDS, EDITED, DRAFT)
    assert leaks(server.folder, secrets) == []
    account = json.loads(exported)["account"]
    said = operator(server, "audit", "show", "--json")
    assert account not in said and account not in server.log()
    for action in ("account.registered", "account.logged_in", "account.refused", "account.exported"):
        assert action in said
    assert "1 account" in operator(server, "account", "count")
    assert "chats" in operator(server, "doctor")
    operator(server, "keys", "verify")
    # An operator may count and erase, and nothing else.
    assert '"chats": 1' in operator(server, "person", "erase", account, "--dry-run", "--json")
    operator(server, "person", "export", account, status=2)
    backup = server.folder.parent / f"{server.folder.name}-ana" / "backup"
    shutil.copytree(server.data_dir, backup)
    receipt = ana.run("--login", LOGIN, "--do", "/erase everything").stdout
    assert json.loads(receipt)["derived"]["chats"] == 1
    path = ana.device.with_name("receipt.json")
    path.write_text(receipt)
    operator(server, "audit", "verify", "--receipt", str(path))
    assert list(ana.device.iterdir()) == [] or not ana.device.exists()
    assert "login-refused" in ana.run("--login", LOGIN, "--do", "/list", status=2).stderr
    # The database of before, put back beside the keys of now, with the right password.
    server.stop()
    for name in ("chats.db", "chats.db-wal", "chats.db-shm"):
        (server.data_dir / name).unlink(missing_ok=True)
        if (backup / name).exists():
            shutil.copy(backup / name, server.data_dir / name)
    assert sqlite3.connect(server.data_dir / "chats.db").execute("SELECT count(*) FROM accounts").fetchone() == (1,)
    server.start()
    assert "login-refused" in ana.run("--login", LOGIN, "--do", "/list", status=2).stderr


def test_others_register_by_invitation_and_an_operator_rotates_keys(server: Confidant, ana: Person) -> None:
    first = first_code(server)
    assert "hint" in subprocess.run(
        [BINARY, "account", "invite", "--data-dir", server.data_dir], capture_output=True, text=True, timeout=180
    ).stderr
    ana.register(first)
    ben = Person(server, ana.device.with_name("ben"), login="ben", password="another-password-7")
    assert "login-refused" in ben.run("--login", "ben", "--register", first, "--do", "/list", status=2).stderr
    invite = operator(server, "account", "invite").strip()
    ben.register(invite)
    carl = Person(server, ana.device.with_name("carl"), login="carl")
    refused = carl.run("--login", "carl", "--register", invite, "--do", "/list", status=2).stderr
    assert "login-refused" in refused and "confidant account invite" in refused
    ben.do("/new his", "words of ben")
    ana.do("/new hers", "words of ana")
    assert ana.read() == ["words of ana"] and ben.read() == ["words of ben"]
    assert len(ana.do("/list")) == 1
    server.stop()
    operator(server, "keys", "rotate")
    server.start()
    again = Person(server, ana.device.with_name("again"))
    assert again.read() == ["words of ana"]
    assert ben.read() == ["words of ben"]
    # Ana's account is ended by an operator; Ben's goes on.
    exported = json.loads(ana.run("--login", LOGIN, "--do", "/export").stdout)
    receipt = json.loads(operator(server, "person", "erase", exported["account"], "--yes"))
    assert receipt["derived"]["chats"] == 1 and len(receipt["keys"]) == 2
    assert ana.run("--login", LOGIN, "--do", "/sync", status=2).stderr
    assert ben.read() == ["words of ben"]


def lose(server: Confidant, *names: str) -> None:
    """Stops the server and removes these files."""
    server.stop()
    for name in names:
        for path in server.data_dir.glob(f"{name}*"):
            path.unlink()


def test_a_lost_account_is_put_back_from_a_device(server: Confidant, ana: Person) -> None:
    ana.register(first_code(server))
    ana.do(f"/new {TITLE}", WORDS, "second", f"/draft {DRAFT}")
    two = Person(server, ana.device.with_name("two"))
    assert two.read() == [WORDS, "second"]
    (asked,) = [json.loads(line) for line in ana.run("--restore").stdout.splitlines()]
    account = asked["account"]
    refused = subprocess.run(
        [BINARY, "account", "restore", account, "--data-dir", server.data_dir], capture_output=True, text=True, timeout=180
    )
    assert refused.returncode == 2 and "still opens" in refused.stderr, refused.stderr
    # The keyring is lost, and the chats are there.
    lose(server, "keyring.db", "confidant.db")
    server.start()
    assert "account-missing" in ana.run("--login", LOGIN, "--do", "/list", status=2).stderr
    code = operator(server, "account", "restore", account).strip()
    new = Person(server, ana.device, password="another-" + PASSWORD)
    done = new.run("--login", LOGIN, "--restore", code, "--do", "/open 1")
    first, *read = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(first["recovery_code"]) > 20 and [line["body"] for line in read] == [WORDS, "second"]
    assert "refused this code" in new.run("--login", LOGIN, "--restore", code, status=2).stderr
    assert "login-refused" in Person(server, ana.device.with_name("thief")).run("--login", LOGIN, "--do", "/list", status=2).stderr
    assert "account.restored" in operator(server, "audit", "show", "--json")
    third = Person(server, ana.device.with_name("three"), password=new.password)
    assert third.read() == [WORDS, "second"]
    assert third.do("/list")[0]["draft"] == DRAFT
    new.do("/open 1", "third")
    # Everything is lost. The other device was not here since.
    lose(server, "keyring.db", "confidant.db", "chats.db")
    server.start()
    code = operator(server, "account", "restore", account, "--json")
    done = new.run("--login", LOGIN, "--restore", json.loads(code)["code"], "--do", "/open 1")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told[1] == {"chats": 1, "written": 5, "removed": 0, "copies": 0, "missing": 0, "refused": 0}
    assert [line["body"] for line in told[2:]] == [WORDS, "second", "third"]
    two.password = new.password
    two.run("--login", LOGIN, "--do", "/put-back")
    assert two.read() == [WORDS, "second", "third"]
    assert "1 account" in operator(server, "account", "count")
    operator(server, "doctor")


def test_an_old_backup_is_told_and_sent_again_only_if_the_person_says_so(server: Confidant, ana: Person) -> None:
    ana.register(first_code(server))
    ana.do(f"/new {TITLE}", WORDS, "second")
    server.stop()
    backup = ana.device.with_name("backup")
    shutil.copytree(server.data_dir, backup)
    server.start()
    ana.do("/open 1", "/edit 1 " + EDITED, "/delete 2", "third")
    server.stop()
    shutil.rmtree(server.data_dir)
    shutil.copytree(backup, server.data_dir)
    server.start()
    done = ana.run("--login", LOGIN, "--do", "/open 1", status=2)
    assert "older state than this device has seen on 2" in done.stderr and "/put-back" in done.stderr
    assert Person(server, ana.device.with_name("two")).read() == [WORDS, "second"], "nothing happened by itself"
    (told,) = ana.do("/put-back")
    assert (told["chats"], told["removed"], told["copies"]) == (0, 1, 0) and told["written"] == 2
    assert ana.read() == [EDITED, "third"]
    assert Person(server, ana.device.with_name("three")).read() == [EDITED, "third"]
