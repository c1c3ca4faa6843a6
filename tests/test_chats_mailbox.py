"""Answers that nobody was there for, when the server that was asked goes before it has left them: each is there once, in the mailbox,
whoever leaves it there."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing

from chats_lab import PATIENCE, Asking, Lab, ask, lab, postgres, read
from conftest import Confidant, wait_until

__all__ = ["lab", "postgres"]

WORDS = "periwinklet"


def rows(lab: Lab, table: str) -> int:
    """How many rows a table of chats has."""
    if lab.postgres is not None:
        return int(lab.psql(f"SELECT count(*) FROM {lab.schema}_chats.{table}"))
    with closing(sqlite3.connect(lab.fronts[0].data_dir / "chats.db", timeout=30)) as database:
        return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def asked_and_gone(lab: Lab, *before: str) -> None:
    """A device asks, and is killed in the middle of the answer; a moment later the answer is whole."""
    lab.model.halfway = threading.Event()
    with Asking(lab.person(0), *before, f"/ask {WORDS}") as asking:
        wait_until(lambda: asking.words() == "noted: ", PATIENCE, lambda: asking.said.read_text() + lab.logs())
    wait_until(lambda: (rows(lab, "marks"), rows(lab, "letters")) == (1, 0), PATIENCE, lab.logs)
    lab.model.halfway.set()
    time.sleep(1)


def kill(server: Confidant) -> None:
    assert server.process is not None
    server.process.kill()
    server.process.wait()
    server.process = None


def left(lab: Lab) -> None:
    wait_until(lambda: (rows(lab, "letters"), rows(lab, "marks")) == (1, 0), PATIENCE, lab.logs)


def test_an_answer_is_left_by_whoever_finds_it_when_its_server_was_killed(lab: Lab) -> None:
    lab.start(CONFIDANT_WEB__UNSTORED_SECONDS="6")
    one, two = lab.owner()
    chat = ask(one, "first").chat
    asked_and_gone(lab, f"/open {chat}")
    kill(lab.fronts[0])
    if lab.kind == "sqlite":
        lab.begin()
    # The other gateway does it, and the one that comes back finds nothing to do.
    left(lab)
    lab.begin()
    assert lab.leaks(WORDS) == []
    # What is kept for models is gone: it is the letter that the device opens.
    lab.stop()
    lab.damage()
    lab.begin()
    assert rows(lab, "letters") == 1
    answered = ["first", "noted: first", WORDS, f"noted: {WORDS}"]
    assert read(two, chat) == answered
    assert (rows(lab, "letters"), rows(lab, "marks")) == (0, 0)
    assert read(one, chat) == answered
    assert read(lab.person(1, "three"), chat) == answered


def test_a_server_that_stops_leaves_what_was_answered(lab: Lab) -> None:
    lab.start()
    one, two = lab.owner()
    chat = ask(one, "first").chat
    # Its words are in the memory of this process only.
    one.do(f"/open {chat}", "/cache off")
    asked_and_gone(lab, f"/open {chat}")
    lab.fronts[0].stop()
    assert (rows(lab, "letters"), rows(lab, "marks")) == (1, 0)
    lab.stop()
    lab.begin()
    assert lab.leaks(WORDS) == []
    assert read(two, chat) == ["first", "noted: first", WORDS, f"noted: {WORDS}"]
    assert rows(lab, "letters") == 0


def test_an_answer_that_is_not_kept_comes_at_the_other_gateway_with_its_letter(lab: Lab) -> None:
    lab.start(CONFIDANT_WEB__UNSTORED_SECONDS="6")
    one, two = lab.owner()
    chat = ask(one, "first").chat
    one.do(f"/open {chat}", "/cache off")
    lab.model.halfway = threading.Event()
    with Asking(one, f"/open {chat}", f"/ask {WORDS}") as asking:
        wait_until(lambda: asking.words() == "noted: ", PATIENCE, lambda: asking.said.read_text() + lab.logs())
    with Asking(two, f"/open {chat}", "/wait") as waiting:
        lab.model.halfway.set()
        assert waiting.ends() == 0, waiting.said.read_text()
    assert read(two, chat) == ["first", "noted: first", WORDS, f"noted: {WORDS}"]
    # It was answered once, and nothing is left of it.
    assert len([prompt for prompt in lab.model.prompts if prompt[-1]["content"].endswith(WORDS)]) == 1
    assert (rows(lab, "letters"), rows(lab, "marks")) == (0, 0)
