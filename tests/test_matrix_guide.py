"""A Matrix bot as docs/QUICKSTART.md and docs/MATRIX.md say it: their settings and commands, with this server's names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest
from conftest import Confidant
from matrix_bot import EXTRACTIVE, Bot
from matrix_people import People, Person
from matrix_server import Synapse

ROOT = Path(__file__).parent.parent


@pytest.fixture
def bot(tmp_path: Path, synapse: Synapse):
    bot = Bot(tmp_path / "home", server=synapse)
    # The guide does this.
    bot.password_file.unlink()
    yield bot
    bot.stop()


def settings(document: str, bot: Bot, you: Person) -> str:
    """The settings that a document shows, with other names."""
    (block,) = (
        textwrap.dedent(block)
        for block in re.findall(r"^ *```toml\n(.*?)^ *```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
        if "[channels.matrix]" in block
    )
    names = {
        "https://matrix.example.org": bot.server.url,
        'user = "bot"': f"user = {json.dumps(bot.account)}",
        "@you:example.org": you.id,
        "/etc/confidant/matrix.password": str(bot.folder / "matrix.password"),
    }
    for shown, real in names.items():
        assert shown in block or shown.startswith("/etc"), f"{document} does not show {shown}"
        block = block.replace(shown, real)
    return block


def serve(bot: Bot) -> None:
    Confidant.start(bot)
    bot.wait_for("up")


def talk(bot: Bot, you: Person) -> None:
    """An invitation is enough; elsewhere it is mentioned."""
    direct = bot.direct(you, encrypted=True)
    assert EXTRACTIVE in bot.asked(you, direct, "Hello, I'm Alice", EXTRACTIVE, to=None).text
    assert "I'm Alice" in bot.asked(you, direct, "What is my name?", EXTRACTIVE, to=None).text
    guest = you.people.person("guest")
    room = bot.room(you, guest)
    guest.say(room, "I think we should use PostgreSQL")
    assert "PostgreSQL" in bot.asked(you, room, "what database did we choose?", EXTRACTIVE).text


def test_the_quick_start_connects_a_bot(bot: Bot, people: People) -> None:
    you = people.person("alice")
    (bot.folder / "matrix.password").write_text(bot.password)
    (bot.folder / "matrix.password").chmod(0o600)
    (bot.folder / "confidant.toml").write_text(settings("docs/QUICKSTART.md", bot, you))
    serve(bot)
    talk(bot, you)


def test_the_guide_leads_from_nothing_to_a_bot(bot: Bot, people: People) -> None:
    you = people.person("alice")
    guide = (ROOT / "docs/MATRIX.md").read_text()
    steps = guide.split("five minutes\n")[1].split("\n## ")[0]
    said = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", steps, flags=re.DOTALL))
    (file,) = (command for command in said if command.startswith("install "))
    subprocess.run(file, shell=True, cwd=bot.folder, input=bot.password, text=True, check=True, timeout=180)
    (bot.folder / "confidant.toml").write_text(settings("docs/MATRIX.md", bot, you))
    for command in ("confidant doctor", "confidant serve", "confidant matrix recovery-key"):
        assert command in said, f"the guide does not say `{command}`"
    found = bot.run("doctor")
    assert found.returncode == 0 and "matrix" in found.stdout.lower(), found
    serve(bot)
    talk(bot, you)
    bot.stop()
    key = bot.run("matrix", "recovery-key")
    assert key.returncode == 0 and len(key.stdout.split()) > 5, key
    # What the key is for.
    shutil.rmtree(bot.data_dir / "matrix")
    serve(bot)
    bot.asked(you, bot.direct(you, encrypted=True), "Hello again", EXTRACTIVE, to=None)
