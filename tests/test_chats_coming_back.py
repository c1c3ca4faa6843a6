"""A device on the command line when the server goes and comes again, and a command that ends when all of its answer is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Confidant
from recording_model import RecordingModel
from small_model import SmallModel
from test_chats import LOGIN, Person, first_code
from test_chats_gateways import Terminal


@pytest.fixture
def small() -> Iterator[SmallModel]:
    model = SmallModel()
    yield model
    model.close()


@pytest.fixture
def large() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture
def ana(tmp_path: Path, large: RecordingModel, small: SmallModel) -> Iterator[Person]:
    """Somebody with an account at a server with both models."""
    (tmp_path / "server").mkdir()
    (tmp_path / "ana").mkdir()
    server = Confidant(tmp_path / "server", environment=large.environment | small.environment)
    person = Person(server, tmp_path / "ana" / "device")
    try:
        server.start()
        person.register(first_code(server))
        yield person
    finally:
        server.stop()


def exported(person: Person) -> dict:
    return json.loads(person.run("--login", LOGIN, "--do", "/export").stdout)


def test_a_command_ends_when_all_of_its_answer_is_stored(ana: Person, small: SmallModel) -> None:
    # What is made of an answer comes a while after it.
    small.delay = 1.0
    *_, answer = ana.do("/ask hello")
    assert (answer["finish"], answer["body"]) == ("whole", "noted: hello")
    two = Person(ana.server, ana.device.with_name("two"))
    assert two.do("/list")[0]["title"] == "A test"
    (chat,) = exported(two)["chats"]
    assert chat["fields"]["summary"] == "They tested something."
    assert len(json.loads(chat["fields"]["follow-ups"])) == 6 and not chat["letters"]
    # Where nothing is made, nobody waits for it.
    ana.do("/switch suggestions off")
    asked = len(small.asked("enrich_turn"))
    *_, answer = ana.do("/open 1", "/ask and again")
    assert answer["body"] == "noted: and again"
    assert len(small.asked("enrich_turn")) == asked
    assert two.read() == ["hello", "noted: hello", "and again", "noted: and again"]


def test_a_conversation_comes_back_by_itself(ana: Person) -> None:
    two = Person(ana.server, ana.device.with_name("two"))
    two.do("/list")
    with Terminal(ana, "/new trip", "before") as terminal:
        while not any(line.get("messages") for line in two.do("/sync", "/list")):
            pass
        ana.server.stop()
        terminal.heard("the connection is lost (offline); trying again until the server is back")
        terminal.type("while nobody was there")
        terminal.heard("1 change is kept on this device")
        ana.server.start()
        terminal.heard("connected again")
        # What waited is there, and news come again.
        assert two.read() == ["before", "while nobody was there"]
        two.do("/open 1", "and back")
        terminal.heard("you: and back")
        terminal.type("/ask hello")
        terminal.heard("noted: hello")
    assert two.read()[-2:] == ["hello", "noted: hello"]
