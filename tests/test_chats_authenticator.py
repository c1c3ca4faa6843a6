"""A password that needs a code of an authenticator app as well, from the terminal where a person types it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import pty
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import Confidant
from test_chat_terminal import SECONDS, Terminal
from test_chats import BINARY, PASSWORD, Person, first_code

STEP = 30


class Authenticator:
    """The app: RFC 6238, with a code for each half minute, none of them twice."""

    def __init__(self, address: str) -> None:
        secret = re.search(r"secret=([A-Z2-7]+)", address)[1]
        self.secret = base64.b32decode(secret + "=" * (-len(secret) % 8))
        self.used: set[int] = set()

    def code(self) -> str:
        while True:
            step, into = divmod(int(time.time()), STEP)
            # The one before, only while it will not be two before by the time that it arrives.
            steps = ([step - 1] if into < STEP // 2 else []) + [step, step + 1]
            if fresh := [each for each in steps if each not in self.used]:
                self.used.add(fresh[0])
                return self.at(fresh[0])
            time.sleep(0.5)

    def at(self, step: int) -> str:
        digest = hmac.digest(self.secret, step.to_bytes(8, "big"), hashlib.sha1)
        at = digest[-1] & 15
        return f"{(int.from_bytes(digest[at : at + 4], 'big') & 0x7FFFFFFF) % 1_000_000:06}"


@contextmanager
def at_terminal(person: Person, *arguments: str) -> Iterator[Terminal]:
    """A device at a terminal; it ends well."""
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CONFIDANT_")}
    environment = clean | {"HOME": str(person.device.parent), "CHAT_PASSWORD": PASSWORD, "TERM": "xterm"}
    command = [BINARY, "chat", "--json", "--server", person.server.url, "--device", person.device, "--login", person.login, *arguments]
    process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, cwd=person.device.parent)
    os.close(theirs)
    try:
        terminal = Terminal(ours)
        yield terminal
        assert process.wait(SECONDS) == 0, terminal.seen
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def ana(server: Confidant, tmp_path: Path) -> Person:
    home = tmp_path / "ana"
    home.mkdir()
    return Person(server, home / "device")


def test_a_password_needs_a_code_as_well(server: Confidant, ana: Person) -> None:
    recovery = ana.register(first_code(server))
    ana.do("/new plans", "marzipanther")
    with at_terminal(ana, "--do", "/authenticator on") as terminal:
        app = Authenticator(terminal.until("Code: "))
        code = app.code()
        terminal.type(code)
        terminal.until("needs a code of this app as well")
        assert code not in terminal.seen

    # The password alone opens nothing, and nobody is told which of the two was wrong.
    two = Person(server, ana.device.with_name("two"))
    assert "login-refused" in two.run("--login", two.login, "--do", "/list", status=2).stderr
    with at_terminal(two, "--do", "/open 1") as terminal:
        terminal.until("Code: ")
        terminal.type(app.code())
        terminal.until("marzipanther")
    # The recovery code needs none.
    three = Person(server, ana.device.with_name("three"))
    done = three.run("--login", ana.login, "--recover", "--do", "/list", CHAT_RECOVERY_CODE=recovery, CHAT_PASSWORD="")
    assert json.loads(done.stdout)["title"] == "plans"

    # A new account key is two steps, and one code.
    with at_terminal(ana, "--do", "/rotate") as terminal:
        terminal.until("Code: ")
        terminal.type(app.code())
        terminal.until("the account key is replaced")

    # Whatever changes the account asks for one, too.
    assert "login-refused" in ana.run("--login", ana.login, "--do", "/authenticator off", status=2).stderr
    with at_terminal(ana, "--do", "/authenticator off") as terminal:
        terminal.until("Code: ")
        terminal.type(app.code())
        terminal.until("needs no code from now on")
    Person(server, ana.device.with_name("four")).do("/list")


def test_erasing_everything_asks_for_the_code_first(server: Confidant, ana: Person) -> None:
    ana.register(first_code(server))
    with at_terminal(ana, "--do", "/authenticator on") as terminal:
        app = Authenticator(terminal.until("Code: "))
        terminal.type(app.code())
        terminal.until("needs a code of this app as well")
    with at_terminal(ana, "--do", "/erase everything") as terminal:
        terminal.until("else Enter): ")
        terminal.type(app.code())
        terminal.until("this is the receipt")


def test_a_code_that_is_none_changes_nothing(server: Confidant, ana: Person) -> None:
    ana.register(first_code(server))
    failed = ana.run("--login", ana.login, "--do", "/authenticator on", status=2, typed="12345\n")
    assert "six digits" in failed.stderr and "otpauth://" in json.loads(failed.stdout)["authenticator"]
    refused = ana.run("--login", ana.login, "--do", "/authenticator on", status=2, typed="000000\n")
    assert "refused" in refused.stderr
    assert "say which" in ana.run("--login", ana.login, "--do", "/authenticator", status=2).stderr
    Person(server, ana.device.with_name("two")).do("/list")
