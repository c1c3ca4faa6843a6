"""Tools over the wire: a model that calls, and the program that answers it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Confidant, turns_path
from recording_model import RecordingModel


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
