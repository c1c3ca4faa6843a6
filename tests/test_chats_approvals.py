"""Tools that wait for a word, in a chat that only its owner can open: a real server, a real tool that does something, and devices on the
command line. The exact call is shown; what is approved is done once; what is denied, decided already, or too late is not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chats_lab import PATIENCE, Lab, lab, postgres, read
from conftest import TESTS, wait_until
from test_chats import Person
from test_chats_gateways import Terminal
from test_tools import entry

__all__ = ["lab", "postgres"]

RULE = '[[tools.rules]]\ntool = "{}"\nthen = "approve"\nexpires_seconds = {}\n'


@pytest.fixture
def done(lab: Lab) -> Iterator[Path]:
    """Where the tool writes down what it did, a line each. The servers are started with it."""
    path = lab.folder / "done"
    tool = [sys.executable, str(TESTS / "acting_tool.py"), str(path)]
    lab.start(entry("world", command=tool) + RULE.format("world.act", 86_400) + RULE.format("world.expiring", 3))
    return path


def deeds(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def question(name: str, tool: str = "world.act") -> str:
    return f"/ask call {tool} {json.dumps({'name': name})}"


def asked(lines: list[dict]) -> dict:
    (line,) = [line for line in lines if "approval" in line]
    return line


def ended(lines: list[dict]) -> str:
    (line,) = [line for line in lines if "finish" in line]
    return line["body"]


def is_offered(lab: Lab, person: Person) -> bool:
    """A tool of a server that has just started may not be connected yet."""
    person.do("/new", "/ask hello")
    return "world_act" in lab.model.offered[-1]


def test_a_tool_does_what_was_shown_and_approved_and_nothing_else(lab: Lab, done: Path) -> None:
    one, two = lab.owner()
    wait_until(lambda: is_offered(lab, one), PATIENCE, lab.logs)
    (made,) = one.do("/new")
    chat = f"/open {made['chat']}"
    # The exact call is shown, and nothing is done before the word.
    lines = one.do(chat, question("one"))
    shown = asked(lines)
    assert (shown["tool"], json.loads(shown["input"])) == ("world.act", {"name": "one"})
    assert shown["why"] and not [line for line in lines if "finish" in line]
    assert deeds(done) == []
    # Another device is shown the same when it asks what came of the question, and its word counts.
    lines = two.do(chat, "/wait", "/approve")
    again = asked(lines)
    assert again.pop("expires_ms") <= shown.pop("expires_ms") and again == shown
    assert "did one" in ended(lines)
    assert deeds(done) == ["one"]
    # It is stored for the device that asked; there is nothing left to decide.
    said = read(one, made["chat"])
    assert said[0].startswith("call world.act") and "did one" in said[1] and said[2] == ended(lines)
    for word in ("/approve", "/deny"):
        refused = one.run("--login", one.login, "--do", chat, "--do", word, status=2)
        assert "no tool waits for your decision" in refused.stderr
    # What is denied is not done, and the answer says so.
    lines = one.do(chat, question("two"), "/deny")
    assert json.loads(asked(lines)["input"]) == {"name": "two"} and "it was denied" in ended(lines)
    assert deeds(done) == ["one"]
    # What the person says in words is no decision.
    lines = one.do(chat, question("three"), f"/ask approve {shown['approval']}")
    assert deeds(done) == ["one"]
    assert ended(lines).startswith("noted: ")


@pytest.mark.parametrize("lab", ["sqlite"], indirect=True)
def test_a_word_that_comes_too_late_is_refused(lab: Lab, done: Path) -> None:
    one, two = lab.owner()
    wait_until(lambda: is_offered(lab, one), PATIENCE, lab.logs)
    (made,) = one.do("/new")
    with Terminal(one, f"/open {made['chat']}", question("late", "world.expiring")) as terminal:
        terminal.heard('world.expiring wants to run with {"name":"late"}')
        # Nobody says a word: the turn ends by itself, and what is said then is refused.
        wait_until(lambda: len(read(two, made["chat"])) == 2, PATIENCE, lambda: lab.logs() + terminal.path.read_text())
        terminal.type("/approve")
        terminal.heard("not-found")
        # Decided on another device: the first hears the answer, and its own word is refused.
        terminal.type(question("twice"))
        terminal.heard('world.act wants to run with {"name":"twice"}')
        lines = two.do(f"/open {made['chat']}", "/wait", "/approve")
        assert "did twice" in ended(lines)
        terminal.heard("did twice")
        terminal.type("/deny")
        terminal.heard("not-found", 2)
    assert deeds(done) == ["twice"]
    # Two questions, two answers, and what the tool said that was allowed.
    assert "late" not in " ".join(deeds(done)) and len(read(one, made["chat"])) == 5
