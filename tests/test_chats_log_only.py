"""An answer that is in the log only, since its server died: it comes with its title, its summary and its suggestions, once."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing

import pytest
from chats_lab import PATIENCE, Asking, Lab, lab, postgres
from conftest import wait_until
from small_model import ENRICHED
from test_chats import LOGIN, Person, operator

__all__ = ["lab", "postgres"]


def asked_and_gone(lab: Lab, person: Person) -> None:
    """A device asks, and goes before the answer is whole."""
    lab.model.halfway = threading.Event()
    with Asking(person, "/ask hello") as asking:
        wait_until(lambda: asking.words() == "noted: ", PATIENCE, lambda: asking.said.read_text() + lab.logs())
        asking.process.kill()
        asking.process.wait()
    lab.model.halfway.set()
    lab.model.halfway = None


def taken(person: Person) -> tuple[str, str, list[str], list[str]]:
    """What a device has of the chat: title, summary, suggestions and messages."""
    exported = json.loads(person.run("--login", LOGIN, "--do", "/export").stdout)
    (chat,) = exported["chats"]
    fields = chat["fields"]
    return fields["title"], fields["summary"], json.loads(fields["follow-ups"]), [one["body"] for one in chat["messages"]]


def letters(lab: Lab) -> int:
    with closing(sqlite3.connect(lab.fronts[0].data_dir / "chats.db", timeout=30)) as database:
        return database.execute("SELECT count(*) FROM letters").fetchone()[0]


@pytest.mark.parametrize("lab", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way", ["asked for", "left in the mailbox"])
def test_what_was_made_of_an_answer_comes_with_it(lab: Lab, way: str) -> None:
    lab.start(**lab.small.environment, CONFIDANT_WEB__UNSTORED_SECONDS="60" if way == "asked for" else "15")
    one = lab.person()
    lab.register(one)
    asked_and_gone(lab, one)
    wait_until(lambda: "session.enriched" in operator(lab.fronts[0], "audit", "show", "--json"), PATIENCE, lab.logs)
    lab.kill()
    lab.begin()
    if way == "asked for":
        one.do("/open 1", "/wait")
    else:
        wait_until(lambda: letters(lab) == 1, 2 * PATIENCE, lab.logs)
        one.do("/sync")
    title, summary, follow_ups, messages = taken(one)
    assert (title, summary, messages) == ("A test", ENRICHED["chat_summary"], ["hello", "noted: hello"])
    assert follow_ups == ENRICHED["follow_up_suggestions"]
    assert len(lab.small.asked("enrich_turn")) == 1, "it is made once"


@pytest.mark.parametrize("lab", ["sqlite"], indirect=True)
def test_what_nobody_made_of_an_answer_is_made_later(lab: Lab) -> None:
    gate = threading.Event()

    def enriched(_: str) -> dict:
        gate.wait(PATIENCE)
        return dict(ENRICHED)

    lab.small.replies["enrich_turn"] = enriched
    lab.start(**lab.small.environment, CONFIDANT_PROCESSING__TIMEOUT_SECONDS="4")
    one = lab.person()
    lab.register(one)
    asked_and_gone(lab, one)
    # The answer is in the log, and the server dies while something is being made of it.
    wait_until(lambda: len(lab.small.asked("enrich_turn")) == 1, PATIENCE, lab.logs)
    lab.kill()
    gate.set()
    lab.begin()
    one.do("/open 1", "/wait")
    _, summary, follow_ups, messages = taken(one)
    assert (summary, messages) == (ENRICHED["chat_summary"], ["hello", "noted: hello"])
    assert follow_ups == ENRICHED["follow_up_suggestions"]
    assert len(lab.small.asked("enrich_turn")) == 2
