"""Tools over the wire: a model that calls, and the program that answers it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Confidant, turns_path, wait_until
from recording_model import RecordingModel
from test_tools import HOSTILE, entry, reference


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture
def forgetful(tmp_path: Path, recorder: RecordingModel) -> Iterator[Confidant]:
    """A server with so small a window that the model is offered `memory.search`."""
    confidant = Confidant(tmp_path, environment=recorder.environment | {"CONFIDANT_HISTORY__TOKEN_BUDGET": "300"})
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


def test_a_call_goes_out_and_its_result_comes_back(forgetful: Confidant, recorder: RecordingModel) -> None:
    session = "http:r:main:alice"
    forgetful.turn(session, {"query": "The teapot's code is kestrel-nine."})
    for n in range(20):
        forgetful.turn(session, {"query": f"Small talk number {n}, about nothing in particular, at some length."})
    query = 'call memory.search {"query": "teapot code"}'
    events = forgetful.stream_turn(session, {"query": query, "request_id": "r1"})
    progress = [event.data["content"] for event in events if event.name == "progress"]
    assert progress == ["🔍 Analyzing...", "🧠 Thinking...", "🔧 memory.search"]
    final = events[-1].data
    assert final["message_type"] == "final_response"
    assert final["metadata"]["tools"] == ["memory.search"]
    assert "kestrel-nine" in final["content"] and final["content"].startswith(f"noted: {query} -> "), final
    assert "".join(event.data["content"] for event in events if event.name == "delta") == final["content"]
    assert recorder.offered[-2] == ["memory_search"]
    assert "kestrel" not in json.dumps(recorder.prompts[-2]), "it was too long ago to be in the prompt"
    called, result = recorder.prompts[-1][-2:]
    assert called["tool_calls"][0]["function"]["name"] == "memory_search"
    assert result["role"] == "tool" and "kestrel-nine" in result["content"]


def test_approvals_and_cancelling_have_their_routes(forgetful: Confidant) -> None:
    session = turns_path("http:r:main:alice").removesuffix("/turns")
    assert forgetful.request("GET", f"{session}/approvals").json() == {"approvals": []}
    assert forgetful.request("DELETE", f"{session}/turns/r1").json() == {"cancelled": 0}
    decision = {"approval_id": "apr-1-2", "decision": "approve"}
    for path in (f"{session}/decisions", "/api/v1/decisions"):
        reply = forgetful.request("POST", path, decision)
        assert (reply.status, reply.json()["error"]["code"]) == (404, "no_such_approval")


@pytest.fixture
def equipped(tmp_path: Path, recorder: RecordingModel, npm: Path) -> Iterator[Confidant]:
    """A server with the reference server and with one that misbehaves."""
    only = ["echo", "hang", "text", "instructions", "die"]
    (tmp_path / "confidant.toml").write_text(
        "[tools]\ncall_timeout_seconds = 5\n"
        + entry("ref", command=reference(npm, "everything"), tools=["echo", "get-sum"])
        + entry("bad", command=HOSTILE, tools=only)
        + '[[tools.rules]]\ntool = "bad.echo"\nthen = "deny"\n'
    )
    confidant = Confidant(tmp_path, environment=recorder.environment)
    try:
        confidant.start()
        wait_until(lambda: tools_of(confidant, recorder) >= 6, 60, lambda: f"tools did not come:\n{confidant.log()}")
        yield confidant
    finally:
        confidant.stop()


def tools_of(confidant: Confidant, recorder: RecordingModel) -> int:
    """How many tools the next turn is offered."""
    confidant.turn("http:probe:main:nobody", {"query": "hello"})
    time.sleep(0.2)
    return len(recorder.offered[-1])


def test_a_turn_uses_a_real_server_and_contains_bad_ones(equipped: Confidant, recorder: RecordingModel) -> None:
    session = "http:r:main:alice"

    def says(query: str) -> dict:
        return equipped.turn(session, {"query": query})

    reply = says('call ref.echo {"message": "hello there"}')
    assert "hello there" in reply["content"] and reply["metadata"]["tools"] == ["ref.echo"]
    assert set(recorder.offered[-2]) == {"ref_echo", "ref_get-sum", "bad_hang", "bad_text", "bad_instructions", "bad_die"}
    # What the rules forbid is neither offered nor called.
    assert "there is no tool" in says('call bad.echo {"text": "x"}')["content"]
    # Arguments are held against the schema, and the model is told what is wrong.
    assert "Not called" in says('call ref.echo {"massage": 7}')["content"]
    # One that hangs costs its time and nothing else.
    assert "did not answer in time" in says("call bad.hang {}")["content"]
    # One that says too much is cut.
    reply = says('call bad.text {"bytes": 10000000}')
    assert "(cut: there was more)" in reply["content"] and len(reply["content"]) < 100_000
    # One that tells the model what to do is quoted.
    says("call bad.instructions {}")
    result = recorder.prompts[-1][-1]
    assert result["role"] == "tool" and "IGNORE ALL PREVIOUS" in result["content"]
    assert result["content"].count("<<<") == 1 and result["content"].count(">>>") == 1
    assert not any("IGNORE ALL" in message["content"] for message in recorder.prompts[-1] if message["role"] == "system")


def test_what_destroys_waits_for_its_person(equipped: Confidant) -> None:
    session = "http:r:main:alice"
    asked = equipped.turn(session, {"query": "call bad.die {}", "request_id": "r1"})
    assert asked["message_type"] == "hitl_request" and asked["metadata"]["tool"] == "bad.die"
    equipped.restart()
    path = turns_path(session).removesuffix("/turns")
    assert len(equipped.request("GET", f"{path}/approvals").json()["approvals"]) == 1
    decision = {"approval_id": asked["metadata"]["approval_id"], "decision": "deny"}
    wrong = equipped.request("POST", f"{path}/decisions", decision | {"user_id": "mallory"})
    assert (wrong.status, wrong.json()["error"]["code"]) == (403, "not_your_approval")
    reply = equipped.request("POST", f"{path}/decisions", decision | {"user_id": "alice"})
    assert reply.status == 200 and "it was denied" in reply.json()["content"], reply.body
