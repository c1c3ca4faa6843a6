"""A real language model, small but real, answers from what was said in the room.

SmolLM2 (135 M parameters) runs in llama.cpp's OpenAI-compatible server at temperature 0. What it is asked is easy on
purpose: the point is that the room reaches the model, and that its answer comes back whole, whichever way it is read.
"""

from __future__ import annotations

import time

from conftest import Confidant, Event

SESSION = "!abc123:matrix.org:main:@dave:matrix.org"
QUERY = "what database did we choose?"
LINES = (
    ("@alice:matrix.org", "I think we should use PostgreSQL"),
    ("@bob:matrix.org", "Good choice, it's ACID compliant"),
    ("@carol:matrix.org", "Should we use RDS or self-hosted?"),
    ("@alice:matrix.org", "Let's use RDS for easier maintenance"),
)


def request(request_id: str) -> dict:
    start = int(time.time()) - 60 * len(LINES)
    room = [
        {"sender": sender, "content": content, "timestamp": start + 60 * i, "is_bot": False}
        for i, (sender, content) in enumerate(LINES)
    ]
    return {"query": QUERY, "request_id": request_id, "room_context": room}


def test_it_answers_from_the_room(real_server: Confidant) -> None:
    reply = real_server.turn(SESSION, request("req-json"))
    assert reply["request_id"] == "req-json"
    assert reply["message_type"] == "final_response"
    assert "PostgreSQL" in reply["content"]
    assert isinstance(reply["metadata"], dict)


def test_it_answers_as_a_stream_of_events(real_server: Confidant) -> None:
    received = real_server.stream_turn(SESSION, request("req-sse"))
    names = [event.name for event in received]
    assert set(names) <= {"progress", "delta", "final_response"}, received
    assert names.count("final_response") == 1
    assert names[-1] == "final_response"
    assert names.count("delta") > 1, "an answer of several tokens comes in pieces"

    final = received[-1].data
    assert final["request_id"] == "req-sse"
    assert final["message_type"] == "final_response"
    assert "PostgreSQL" in final["content"]
    assert joined(received) == final["content"]


def test_a_retry_returns_the_recorded_answer(real_server: Confidant) -> None:
    first = real_server.turn(SESSION, request("req-twice"))
    assert real_server.turn(SESSION, request("req-twice"))["content"] == first["content"]


def test_the_room_is_in_no_file(real_server: Confidant) -> None:
    real_server.turn(SESSION, request("req-files"))
    assert [real_server.files_with(line) for _, line in LINES] == [[]] * len(LINES)
    real_server.stop()
    assert [real_server.files_with(line) for _, line in LINES] == [[]] * len(LINES)


def test_the_openai_client_streams_through_it(real_server: Confidant) -> None:
    client = real_server.client()
    model = client.models.list().data[0].id
    question = [{"role": "user", "content": "Count from one to five in words."}]
    chunks = list(client.chat.completions.create(model=model, messages=question, user="alice", stream=True))
    pieces = [choice.delta.content for chunk in chunks for choice in chunk.choices if choice.delta.content]
    assert len(pieces) > 1
    assert "".join(pieces).strip()


def joined(received: list[Event]) -> str:
    return "".join(event.data["content"] for event in received if event.name == "delta")
