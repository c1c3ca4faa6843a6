"""The program as a bot on Matrix: with an account of its own, in a folder of its own."""

from __future__ import annotations

import functools
import json
import os
import pty
import re
import secrets
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import FOREIGN, REQUEST_SECONDS, Confidant, wait_until
from matrix_people import PATIENCE, Message, Person
from matrix_server import NAME, Synapse

EXTRACTIVE = "(Extractive answer"
ROOM = re.compile(r"The people in this room said[^\n]*\n<<<room \w+\n(.*?)\n\w+ room>>>", re.DOTALL)


def of_room(prompt: list[dict]) -> str:
    """What a prompt quotes of the room."""
    return "\n".join(found for line in prompt for found in ROOM.findall(str(line["content"])))


def of_conversation(prompt: list[dict]) -> str:
    """What a prompt has of the person and the agent alone."""
    return "\n".join(ROOM.sub("", str(line["content"])) for line in prompt if line["role"] != "system")


@dataclass
class Bot(Confidant):
    """`confidant serve` with `[channels.matrix]`."""

    server: Synapse = field(kw_only=True)
    # Of `[channels.matrix]`, in the place of what stands there otherwise; what is None is left out.
    settings: dict[str, Any] = field(default_factory=dict, kw_only=True)
    # Other sections.
    more: str = field(default="", kw_only=True)
    name: str = field(default="Robin", kw_only=True)
    # Made here, unless it is one that there is.
    account: str = field(default="", kw_only=True)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not self.account:
            self.account = f"{self.name.lower()}-{secrets.token_hex(3)}"
            self.server.register(self.account, self.password, self.name)
        self.id = f"@{self.account}:{NAME}"
        self.folder.mkdir(parents=True, exist_ok=True)
        # Beside the folder, not in it: what is in it is searched for secrets.
        self.password_file = self.folder.parent / f"{self.account}.password"
        self.password_file.write_text(self.password + "\n")
        self.password_file.chmod(0o600)

    @property
    def pill(self) -> tuple[str, str]:
        return self.id, self.name

    def configure(self) -> None:
        usual = {
            "homeserver": self.server.url,
            "user": self.id,
            "password_file": str(self.password_file),
            "allowed_users": [f"*:{NAME}"],
        }
        set_here = {key: value for key, value in (usual | self.settings).items() if value is not None}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in set_here.items()]
        (self.folder / "confidant.toml").write_text(self.more + "[channels.matrix]\n" + "".join(lines))

    def start(self, condition: str = "up") -> None:
        self.configure()
        super().start()
        self.wait_for(condition)

    def channel(self) -> dict:
        """What `/readyz` says of the channel."""
        channels = self.request("GET", "/readyz").json().get("channels", [])
        return next((one for one in channels if one["platform"] == "matrix"), {"condition": "missing"})

    def wait_for(self, *conditions: str) -> dict:
        wait_until(
            lambda: self.channel()["condition"] in conditions,
            PATIENCE,
            lambda: f"the channel is {self.channel()}, not {conditions}:\n{self.log()}",
        )
        return self.channel()

    def wait_for_log(self, *words: str, count: int = 1) -> str:
        """Waits for so many lines of the log that have all these words; gives the last."""

        def found() -> list[str]:
            return [line for line in self.log().splitlines() if all(word in line for word in words)]

        wait_until(lambda: len(found()) >= count, PATIENCE, lambda: f"too few lines have {words}:\n{self.log()}")
        return found()[-1]

    def kill(self) -> None:
        """As a power cut does it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def run(self, *arguments: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
        """A command beside the server; on a terminal, if something is typed."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        ours = {"CONFIDANT_SERVER__DATA_DIR": str(self.data_dir), "CONFIDANT_SERVER__LISTEN": f"127.0.0.1:{self.port}"}
        person, terminal = pty.openpty() if typed is not None else (None, None)
        if person is not None:
            os.write(person, typed.encode())
        done = subprocess.run(
            [Path(os.environ["CONFIDANT_BIN"]).resolve(), *arguments],
            cwd=self.folder,
            env=clean | ours | self.environment,
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            capture_output=True,
            text=True,
            timeout=REQUEST_SECONDS,
        )
        for end in (person, terminal):
            if end is not None:
                os.close(end)
        return done

    def recovery_key(self) -> str:
        """Makes one, with a device if there is none yet."""
        self.configure()
        shown = self.run("matrix", "recovery-key")
        assert shown.returncode == 0, shown
        return shown.stdout.strip().splitlines()[-1].strip()

    # Rooms

    def room(self, host: Person, *others: Person, **options: Any) -> str:
        """A room of the host's with the others and the bot in it."""
        room = host.room(self.id, *(other.id for other in others), **options)
        host.people.together([functools.partial(other.join, room) for other in others])
        for person in (host, *others):
            person.wait_for_member(room, self.id)
        for other in others:
            host.wait_for_member(room, other.id)
        return room

    def direct(self, person: Person, **options: Any) -> str:
        return self.room(person, direct=True, **options)

    def asked(self, person: Person, room: str, text: str, wanted: str | None = None, **how: Any) -> Message:
        """Somebody asks with a pill (`to=None` without), and waits for the end of the one new answer."""
        before = {message.id for message in person.messages(room, self.id)}
        ends = f"noted: {text}" if wanted is None else wanted

        def is_answer(message: Message) -> bool:
            return message.id not in before and ends in message.text

        try:
            person.say(room, text, **({"to": self.pill} | how))
            return person.hears(room, self.id, is_answer)[0]
        except AssertionError as error:
            pytest.fail(f"{error}\n{self.log()[-6000:]}", pytrace=True)

    def said(self, person: Person, room: str, fits: Callable[[Message], bool] = lambda _: True) -> list[Message]:
        return [message for message in person.messages(room, self.id) if fits(message)]
