"""The fake Discord of the Rust tests, as a process beside the real program: what people do there, and what goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

from conftest import wait_until

PROGRAM = Path(os.environ["CONFIDANT_BIN"]).resolve().parent / "examples" / "fake_discord"
PATIENCE = 60


class FakeDiscord:
    """`bots` has the ids and tokens that may sign in, `general` is a channel of the one server, `guild`."""

    def __init__(self) -> None:
        assert PROGRAM.is_file(), f"no {PROGRAM}\nhint: cargo build -p confidant-discord --examples"
        self._process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        here = json.loads(self._process.stdout.readline())
        self.api_url: str = here["api_url"]
        self.gateway_url: str = here["gateway_url"]
        self._control: str = here["control_url"]
        self.bots: list[tuple[int, str]] = [(bot["id"], bot["token"]) for bot in here["bots"]]
        self.guild: int = here["guild"]
        self.general: int = here["general"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)

    def pull(self, lever: str, **values: object):
        """Does what people do (`say`, `edit`, …), or makes something go wrong (`cut`, `invalidate`, …)."""
        request = urllib.request.Request(
            f"{self._control}/{lever}",
            method="POST",
            data=json.dumps(values).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def direct(self, user: int, bot: int = 0) -> int:
        return self.pull("direct", user=user, bot=self.bots[bot][0])

    def say(self, user: int, channel: int, text: str) -> int:
        return self.pull("say", user=user, channel=channel, text=text)

    def to_bot(self, user: int, text: str, bot: int = 0) -> int:
        """Says something to a bot in the server."""
        return self.say(user, self.general, f"<@{self.bots[bot][0]}> {text}")

    def _get(self, path: str, **query: object):
        with urllib.request.urlopen(f"{self._control}/{path}?{urllib.parse.urlencode(query)}", timeout=60) as response:
            return json.load(response)

    def counts(self) -> dict:
        return self._get("counts")

    def interaction(self, token: str) -> list[str]:
        return self._get("interaction", token=token)

    def answers(self, channel: int) -> list[dict]:
        ours = {bot for bot, _ in self.bots}
        return [message for message in self._get("messages", channel=channel) if message["author"] in ours]

    def texts(self, channel: int) -> list[str]:
        return [answer["text"] for answer in self.answers(channel)]

    def answered(self, channel: int, texts: list[str]) -> None:
        """Waits until the bots have said exactly this in a channel."""
        wait_until(
            lambda: self.texts(channel) == texts,
            PATIENCE,
            lambda: f"never so in {channel}: {texts}\nbut: {self.texts(channel)}",
        )
