"""What an answer asks a person's device for: shown first, given by a word or a switch, in one request only, kept nowhere."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Confidant
from recording_model import RecordingModel
from test_chats import LOGIN, Person, first_code, leaks

CITY, SUMMARY, SAID = "corkmarkerium", "tidemarkerium", "harbourmarkerium"
QUESTION = "What city do I live in?"


@pytest.fixture
def model() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture
def server(tmp_path: Path, model: RecordingModel) -> Iterator[Confidant]:
    folder = tmp_path / "server"
    folder.mkdir()
    confidant = Confidant(folder, environment=model.environment)
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


@pytest.fixture
def ana(server: Confidant) -> Iterator[Person]:
    people = server.folder.parent / "ana"
    people.mkdir()
    person = Person(server, people / "device")
    person.register(first_code(server))
    person.do(f"/memory city I live in {CITY}")
    yield person
    shutil.rmtree(people)


def last(model: RecordingModel) -> str:
    """All that the model was told last."""
    return json.dumps(model.prompts[-1], ensure_ascii=False)


def test_without_anybody_there_only_what_is_switched_on_is_given(
    server: Confidant, ana: Person, model: RecordingModel
) -> None:
    lines = ana.do("/new trip", f"/ask {QUESTION}")
    assert CITY not in last(model) and not any("gave" in line for line in lines)
    lines = ana.do("/open 1", "/share settings on", f"/ask {QUESTION}")
    assert {"shares": "settings"} in lines
    (gave,) = [line["gave"] for line in lines if "gave" in line]
    assert gave == [{"name": "city", "text": f"I live in {CITY}"}]
    assert f"city: I live in {CITY}" in last(model)
    # The next answer has to ask again, and what is off is not asked for.
    ana.do("/open 1", "/switch settings off", f"/ask {QUESTION}")
    assert CITY not in last(model)
    assert leaks(server.folder, (CITY,)) == []


def test_a_person_is_shown_what_would_go_and_says_yes_or_no(server: Confidant, ana: Person, model: RecordingModel) -> None:
    ana.do("/new trip", "hello")
    typed = f"/open 1\n/ask {QUESTION}\ny\n/ask {QUESTION}\n/deny\n/quit\n"
    done = ana.run("--login", LOGIN, typed=typed)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    shown = [line for line in lines if "asks" in line]
    assert [line["asks"] for line in shown] == ["settings", "settings"], lines
    assert shown[0]["names"] == ["city"] and shown[0]["pieces"] == [{"name": "city", "text": f"I live in {CITY}"}]
    told = [json.dumps(prompt, ensure_ascii=False) for prompt in model.prompts]
    assert [CITY in prompt for prompt in told] == [True, False]
    # The answer notes what went with it.
    exported = json.loads(ana.run("--login", LOGIN, "--do", "/export").stdout)
    (chat,) = exported["chats"]
    replies = [message for message in chat["messages"] if message["role"] == "assistant"]
    noted = [message.get("shared", []) for message in replies]
    assert noted == [[{"what": "settings", "bytes": len(f"I live in {CITY}")}], []]
    assert json.loads(chat["safety"])["harm"] is not None
    assert leaks(server.folder, (CITY,)) == []


def test_an_answer_says_which_model_gave_it_and_why(server: Confidant, ana: Person) -> None:
    ana.do("/new trip", f"/ask {QUESTION}")
    why = ana.do("/open 1", "/why")[-1]
    assert why["model"] and len(why["reason"]) > 10, why
    assert "that is no answer" in ana.run("--login", LOGIN, "--do", "/open 1", "--do", "/why 1", status=2).stderr


def test_a_search_looks_through_the_chats_on_the_device(server: Confidant, ana: Person, model: RecordingModel) -> None:
    ana.do("/switch settings off", "/switch similar off", "/new sailing", f"the tides of the {SAID} turn at six")
    question = 'call memory.search {"query": "tides"}'
    ana.do("/new trip", "/ask What of the boat?")
    assert "memory_search" not in model.offered[-1], "nobody was there to say yes, and nothing else can be searched"
    lines = ana.do("/new other", "/share search on", f"/ask {question}")
    (gave,) = [line["gave"] for line in lines if "gave" in line]
    assert [piece["name"] for piece in gave] == ["sailing"] and SAID in gave[0]["text"]
    assert SAID in last(model), "the model has what was found"


def test_what_answers_may_use_is_listed_and_switched_off_by_name(server: Confidant, ana: Person) -> None:
    folder = server.data_dir / "instructions"
    folder.mkdir(exist_ok=True)
    mode = "---\nslot: focus\nfocus: web.research\nname: Research\ndescription: Cites sources.\n---\nCite every source."
    (folder / "research.md").write_text(mode)

    def switches() -> dict[str, dict]:
        return {line["switch"]: line for line in ana.do("/switch") if "switch" in line}

    deadline = time.monotonic() + 60
    while "focus:web.research" not in (listed := switches()):
        assert time.monotonic() < deadline, listed
    research = listed["focus:web.research"]
    assert research == {"switch": "focus:web.research", "on": True, "about": "Research: Cites sources."}
    assert listed["settings"]["on"] and listed["tools"]["on"]
    assert {"off": "focus:web.research"} in ana.do("/switch focus:web.research off")
    assert not switches()["focus:web.research"]["on"]
    assert "Cite every source" not in json.dumps(listed)
