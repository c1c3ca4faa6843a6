"""The real program as a bot on a Discord that speaks Discord's protocol: restarts, kills, refusals, and what is left on disk."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import FOREIGN, Confidant, wait_until
from fake_discord import PATIENCE, FakeDiscord
from recording_model import RecordingModel

BINARY = Path(os.environ["CONFIDANT_BIN"]).resolve()
GUIDE = (Path(__file__).parent.parent / "docs" / "DISCORD.md").read_text()
ALICE = 111
BOB = 222


class Bots(Confidant):
    """A server with bots, whose settings and tokens are outside of the folder that is searched for what leaked."""

    def __init__(self, folder: Path, fake: FakeDiscord, model: RecordingModel) -> None:
        self.fake = fake
        self.settings = folder / "settings" / "confidant.toml"
        self.settings.parent.mkdir()
        (folder / "served").mkdir()
        environment = model.environment | {"CONFIDANT_LOG__LEVEL": "trace"}
        super().__init__(folder / "served", environment, arguments=["--config", str(self.settings)])

    def configure(self, *bots: str, addresses: bool = True) -> None:
        """One table for each; `{0}` stands for the first bot's token."""
        where = f'api_url = "{self.fake.api_url}"\ngateway_url = "{self.fake.gateway_url}"\n' if addresses else ""
        tokens = [token for _, token in self.fake.bots]
        tables = ["[[channels.discord]]\n" + bot.format(*tokens) + "\n" + where for bot in bots]
        self.settings.write_text("\n".join(tables))
        self.settings.chmod(0o600)

    def channels(self) -> list[dict]:
        return self.request("GET", "/readyz").json().get("channels", [])

    def until(self, *conditions: str) -> list[dict]:
        wait_until(
            lambda: [channel["condition"] for channel in self.channels()] == list(conditions),
            PATIENCE,
            lambda: f"never {conditions}: {self.channels()}\n{self.log()}",
        )
        return self.channels()

    def begin(self, *conditions: str) -> None:
        self.start()
        self.until(*(conditions or ("up",)))

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        ours = {"CONFIDANT_SERVER__DATA_DIR": str(self.data_dir)} | self.environment
        command = [BINARY, "--config", str(self.settings), *arguments]
        return subprocess.run(command, cwd=self.folder, env=clean | ours, capture_output=True, text=True, timeout=120)

    def metric(self, name: str, label: str = "bot-1") -> int:
        text = self.request("GET", "/metrics").body.decode()
        found = re.search(rf'^confidant_{name}{{platform="discord",label="{label}"}} (\d+)$', text, re.MULTILINE)
        assert found, text
        return int(found[1])


BOT = 'bot_token = "{0}"\nallowed_users = ["*"]\nload_past_conversations = 20'


@pytest.fixture
def fake() -> Iterator[FakeDiscord]:
    discord = FakeDiscord()
    try:
        yield discord
    finally:
        discord.close()


@pytest.fixture
def model() -> Iterator[RecordingModel]:
    recorder = RecordingModel()
    try:
        yield recorder
    finally:
        recorder.close()


@pytest.fixture
def bots(tmp_path: Path, fake: FakeDiscord, model: RecordingModel) -> Iterator[Bots]:
    """Bots that are configured, not started."""
    server = Bots(tmp_path, fake, model)
    server.configure(BOT)
    try:
        yield server
    finally:
        server.stop()


def prompt(model: RecordingModel, query: str) -> str:
    """The last prompt with this query."""
    for messages in reversed(model.prompts):
        if messages[-1]["content"].split("\n")[-1] == query:
            return json.dumps(messages)
    pytest.fail(f"never asked: {query}")


def test_seed_002_step_1_isolation_with_a_restart(bots: Bots, fake: FakeDiscord, model: RecordingModel) -> None:
    a, b = fake.direct(ALICE), fake.direct(BOB)
    bots.begin()
    fake.say(ALICE, a, "I want to talk about rust programming")
    fake.say(BOB, b, "I want to talk about python programming")
    fake.answered(a, ["noted: I want to talk about rust programming"])
    fake.answered(b, ["noted: I want to talk about python programming"])
    bots.stop()
    bots.begin()
    fake.say(ALICE, a, "continue")
    fake.answered(a, ["noted: I want to talk about rust programming", "noted: continue"])
    asked = prompt(model, "continue")
    assert "rust programming" in asked and "python" not in asked
    fake.say(BOB, b, "continue")
    fake.answered(b, ["noted: I want to talk about python programming", "noted: continue"])
    asked = prompt(model, "continue")
    assert "python programming" in asked and "rust" not in asked
    listed = bots.run("session", "list").stdout
    assert "discord_conv:111" in listed and "discord_conv:222" in listed
    assert fake.counts()["pings"] == 0 and fake.counts()["typing"] >= 4


def test_seed_002_steps_2_and_4_the_newest_come_back_in_order_and_none_is_deleted(
    bots: Bots, fake: FakeDiscord, model: RecordingModel
) -> None:
    a = fake.direct(ALICE)
    said: list[str] = []

    def ask(text: str) -> list[int]:
        """Which of the numbered messages the model was shown, in the order in which it was."""
        fake.say(ALICE, a, text)
        said.append(f"noted: {text}")
        fake.answered(a, said)
        return [int(n) for n in re.findall(r'"user", "content": "message number (\d+)"', prompt(model, text))]

    for limit, asked, want in ((5, 10, None), (5, 0, [6, 7, 8, 9, 10]), (0, 0, []), (20, 0, list(range(1, 11)))):
        bots.configure(BOT.replace("20", str(limit)))
        bots.begin()
        for n in range(1, asked + 1):
            ask(f"message number {n}")
        if want is not None:
            assert ask(f"what do you remember, with {limit}?") == want
        bots.stop()


def test_killed_in_the_middle_of_an_answer_it_is_answered_once(
    bots: Bots, fake: FakeDiscord, model: RecordingModel
) -> None:
    a, b = fake.direct(ALICE), fake.direct(BOB)
    bots.begin()
    model.halfway = threading.Event()
    for n in range(3):
        # Alice's answer can be seen already when the process is killed, Bob's cannot.
        fake.say(ALICE, a, f"a long story {n}")
        done = [f"noted: a long story {before}" for before in range(n)]
        wait_until(lambda: len(fake.texts(a)) == n + 1, PATIENCE, lambda: f"no draft\n{bots.log()}")
        asked = len(model.prompts)
        fake.say(BOB, b, f"a short one {n}")
        wait_until(lambda: len(model.prompts) > asked, PATIENCE, lambda: "never asked")
        bots.kill()
        assert fake.texts(a)[:-1] == done
        # Nobody is there to hear this.
        fake.say(BOB, b, f"while you were away {n}")
        model.halfway.set()
        bots.begin()
        fake.answered(a, [*done, f"noted: a long story {n}"])
        wait_until(lambda: len(fake.texts(b)) == 2 * n + 2, PATIENCE, lambda: f"{fake.texts(b)}\n{bots.log()}")
        model.halfway = threading.Event()
    model.halfway.set()
    fake.answered(b, [f"noted: {what} {n}" for n in range(3) for what in ("a short one", "while you were away")])
    for user, turns in ((ALICE, 3), (BOB, 6)):
        exported = json.loads(bots.run("session", "export", f"discord_conv:{user}").stdout)
        assert [message["type"] for message in exported["messages"]] == ["human", "ai"] * turns
    bots.stop()
    assert (len(fake.texts(a)), len(fake.texts(b))) == (3, 6), "nothing came after that"


def test_a_stop_in_the_middle_loses_and_doubles_nothing(bots: Bots, fake: FakeDiscord, model: RecordingModel) -> None:
    people = range(300, 310)
    channels = [fake.direct(user) for user in people]
    bots.environment["CONFIDANT_SERVER__SHUTDOWN_GRACE_SECONDS"] = "10"
    bots.begin()
    # Answers that come within the grace are told before the end; the others are told after the next start.
    for round, within in enumerate((True, False)):
        model.hold = threading.Event()
        asked = len(model.prompts)
        for user, channel in zip(people, channels, strict=True):
            fake.say(user, channel, f"question {round} of {user}")
        wait_until(lambda: len(model.prompts) == asked + len(channels), PATIENCE, lambda: "never asked")
        stopping = threading.Thread(target=bots.stop)
        stopping.start()
        wait_until(lambda: "stopping" in bots.log().rsplit("listening", 1)[-1], PATIENCE, lambda: bots.log())
        if within:
            model.hold.set()
        stopping.join()
        if within:
            assert all(len(fake.texts(channel)) == 1 for channel in channels)
        model.hold.set()
        bots.begin()
        for user, channel in zip(people, channels, strict=True):
            fake.answered(channel, [f"noted: question {n} of {user}" for n in range(round + 1)])
    bots.stop()
    assert all(len(fake.texts(channel)) == 2 for channel in channels), "nothing came after that"


def test_the_connection_may_end_in_any_way(bots: Bots, fake: FakeDiscord) -> None:
    a = fake.direct(ALICE)
    bots.begin()
    want = []
    for lever, values in (
        ("cut", {}),
        ("reconnect", {}),
        ("invalidate", {}),
        ("close", {"code": 4000}),
        ("limit", {"seconds": 0.3}),
    ):
        if lever == "invalidate":
            # Nobody is told of it, and nothing is replayed: it is read back.
            fake.pull("post", user=ALICE, channel=a, text=f"around {lever}")
        fake.pull(lever, **values)
        if lever != "invalidate":
            fake.say(ALICE, a, f"around {lever}")
        want.append(f"noted: around {lever}")
        fake.answered(a, want)
    bots.until("up")
    assert fake.counts()["429"] >= 1 and fake.counts()["resumes"] >= 2
    fake.pull("down", down=True)
    (channel,) = bots.until("down")
    assert "; hint: " in channel["trouble"]
    assert bots.metric("channel_up") == 0
    fake.pull("post", user=ALICE, channel=a, text="when you are back")
    fake.pull("down", down=False)
    bots.until("up")
    fake.pull("invalidate")
    fake.answered(a, [*want, "noted: when you are back"])
    answered = lambda: bots.metric("channel_events_answered_total")  # noqa: E731
    wait_until(lambda: answered() == len(want) + 1, PATIENCE, lambda: f"{answered()} answered")
    assert bots.metric("channel_up") == 1
    assert bots.metric("channel_reconnects_total") >= 1


def test_what_an_operator_got_wrong_is_said_and_the_server_lives_on(bots: Bots, fake: FakeDiscord, tmp_path: Path) -> None:
    bots.configure(
        'bot_token = "MTAw.wrong.hush-hush"\nallowed_users = ["*"]',
        f'bot_token_file = "{tmp_path}/nowhere"\nallowed_users = ["*"]',
        'bot_token = "{0}"\nguild_id = "7"\nallowed_users = []',
        'bot_token = "{1}"\nallowed_users = ["*"]',
        'bot_token = "{1}"\nallowed_users = ["*"]',
    )
    bots.start()
    # Which of the two that are the same signs in first is left to chance.
    wait_until(
        lambda: sorted(channel["condition"] for channel in bots.channels()) == ["refused"] * 4 + ["up"],
        PATIENCE,
        lambda: f"{bots.channels()}\n{bots.log()}",
    )
    wrong, gone, elsewhere, *same = bots.channels()
    assert "does not know this bot token; hint: copy a new one" in wrong["trouble"]
    assert "nowhere" in gone["trouble"] and "hint: " in gone["trouble"]
    assert "not in the server that guild_id names" in elsewhere["trouble"] and "; hint: " in elsewhere["trouble"]
    (twice,) = (channel["trouble"] for channel in same if channel["condition"] == "refused")
    assert re.match("this is the same account as discord bot-[45]; hint: remove one", twice)
    log = bots.log()
    assert "does not know this bot token; hint: " in log and "allowed_users is empty; hint: " in log
    assert "lacks the permission Send Messages in Threads; hint: " in log
    # Everything else works.
    assert bots.turn("http:team:main:alice", {"query": "hello"})["content"] == "noted: hello"
    doctor = bots.run("doctor")
    assert doctor.returncode != 0
    for line in (
        "fail  channel: discord bot-1: Discord does not know this bot token\n      hint: copy a new one",
        "fail  channel: discord bot-2: bot_token_file",
        "fail  channel: discord bot-3: the bot is not in the server that guild_id names\n      hint: invite it",
        "fail  channel: discord bot-3: nobody may talk to the bot",
        "fail  channel: discord bot-4: in 1 of 1 servers the bot lacks the permission Send Messages in Threads",
        "ok    channel: discord bot-4: the Message Content intent is on",
    ):
        assert line in doctor.stdout, doctor.stdout
    assert "hush-hush" not in log + doctor.stdout + doctor.stderr + json.dumps(bots.channels())
    bots.stop()
    fake.pull("intents", allowed=False)
    bots.configure(BOT)
    bots.start()
    (channel,) = bots.until("refused")
    assert "Message Content intent is off; hint: switch it on" in channel["trouble"]
    assert "fail  channel: discord bot-1: the bot may not read messages" in bots.run("doctor").stdout


def test_nothing_readable_is_left_behind(bots: Bots, fake: FakeDiscord, model: RecordingModel) -> None:
    alice, bob = 111_222_333_444_555_666, 222_333_444_555_666_777
    a = fake.direct(alice)
    bots.begin()
    messages = [
        fake.say(bob, fake.general, "zebra-room-line"),
        fake.to_bot(alice, "zebra-in-the-room"),
        fake.say(alice, a, "zebra-in-private"),
    ]
    wait_until(lambda: len(fake.texts(fake.general)) >= 2, PATIENCE, bots.log)
    fake.answered(a, ["noted: zebra-in-private"])
    token = fake.pull("slash", user=alice, channel=fake.general, name="export")
    wait_until(lambda: any("zebra-in-private" in s for s in fake.interaction(token)), PATIENCE, lambda: "no export")
    fake.pull("edit", id=messages[2], text="zebra-in-private, edited")
    # Left open, so that the inbox has something in it, too.
    model.hold = threading.Event()
    asked = len(model.prompts)
    messages.append(fake.say(alice, a, "zebra-unanswered"))
    wait_until(lambda: len(model.prompts) > asked, PATIENCE, lambda: "never asked")
    bots.kill()
    secrets = ["zebra", token, *(secret for _, secret in fake.bots)]
    ids = [alice, bob, a, *messages, *(answer["id"] for answer in fake.answers(a))]
    for text in [*secrets, *(str(one) for one in ids)]:
        assert bots.files_with(text) == [], text
    files = [path.read_bytes() for path in bots.folder.rglob("*") if path.is_file()]
    for one in ids:
        for form in (struct.pack(">q", one), struct.pack("<q", one)):
            assert not any(form in content for content in files), "an id, as a number"
    assert "a channel signed in" in bots.log()
    model.hold.set()
    bots.begin()
    wait_until(lambda: "noted: zebra-unanswered" in fake.texts(a), PATIENCE, bots.log)


def test_two_bots_in_one_process(bots: Bots, fake: FakeDiscord, model: RecordingModel) -> None:
    bots.configure(BOT + "\nmention_only = true", BOT.replace("{0}", "{1}") + "\nmention_only = true")
    bots.begin("up", "up")
    first, second = fake.direct(ALICE, 0), fake.direct(ALICE, 1)
    fake.to_bot(ALICE, "are you the first?", 0)
    fake.to_bot(BOB, "are you the second?", 1)
    # Whether it is answered yet: "Analyzing..." stands there before.
    both = ["noted: are you the first?", "noted: are you the second?"]
    wait_until(lambda: sorted(fake.texts(fake.general)) == both, PATIENCE, bots.log)
    answers = {answer["text"]: answer["author"] for answer in fake.answers(fake.general)}
    assert answers == {"noted: are you the first?": fake.bots[0][0], "noted: are you the second?": fake.bots[1][0]}
    fake.say(ALICE, first, "my cat is called Mia")
    fake.answered(first, ["noted: my cat is called Mia"])
    # Two bots of one installation are one agent with one memory of each person.
    fake.say(ALICE, second, "what is my cat called?")
    fake.answered(second, ["noted: what is my cat called?"])
    assert "Mia" in prompt(model, "what is my cat called?")
    fake.say(BOB, fake.direct(BOB, 1), "what do you know?")
    fake.answered(fake.direct(BOB, 1), ["noted: what do you know?"])
    assert "Mia" not in prompt(model, "what do you know?")
    counted = lambda: [bots.metric("channel_events_answered_total", label) for label in ("bot-1", "bot-2")]  # noqa: E731
    wait_until(lambda: counted() == [2, 3], PATIENCE, lambda: f"{counted()}")


def test_the_guide_is_real(bots: Bots, fake: FakeDiscord) -> None:
    """The settings of docs/DISCORD.md, as they stand; only where Discord is must be told."""
    block = re.search(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert block is not None
    (bots.folder / "discord.token").write_text(fake.bots[0][1] + "\n")
    (bots.folder / "discord.token").chmod(0o600)
    bots.settings.write_text(block[1] + f'api_url = "{fake.api_url}"\ngateway_url = "{fake.gateway_url}"\n')
    a = fake.direct(ALICE)
    bots.begin()
    fake.say(ALICE, a, "hello")
    fake.answered(a, ["noted: hello"])
    fake.to_bot(ALICE, "hello, there")
    fake.answered(fake.general, ["noted: hello, there"])
    shown = re.search(r"```console\n\s*\$ confidant doctor\n(.*?)```", GUIDE, re.DOTALL)
    assert shown is not None
    doctor = bots.run("doctor").stdout
    lines = [line.strip() for line in shown[1].splitlines()]
    # The fake's server does not give every right.
    reported = [line for line in lines if line.startswith("ok    channel") and "permissions" not in line]
    assert len(reported) == 3 and all(line in doctor for line in reported), doctor
    assert fake.counts()["commands"] == re.findall(r"^\| `/(\w+)`", GUIDE, re.MULTILINE)
