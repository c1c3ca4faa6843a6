"""What the OpenAI door gives, checked strictly: the official client takes nearly anything for an answer, its types do not.

Every response and every event of a stream is read from its bytes by the client's own types, and has no field that they do
not know, except `confidant`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from conftest import Confidant
from openai.types import CreateEmbeddingResponse, Model
from recording_model import RecordingModel
from strictly_openai import chunks, said, strictly, text_of, whole

SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "city",
        "schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "strict": True,
    },
}
OFF = {"X-Confidant-Memory": "off"}
TOOL = {"type": "function", "function": {"name": "get_weather"}}


@pytest.fixture
def remembering(tmp_path: Path, recorder: RecordingModel) -> Iterator[Confidant]:
    """A server that asks the recording model, also for embeddings."""
    environment = recorder.environment | {"CONFIDANT_MODEL__EMBEDDING_MODEL": "vectors"}
    server = Confidant(tmp_path, environment=environment)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def test_answers_and_chunks_are_what_the_types_say(remembering: Confidant) -> None:
    client = remembering.client()
    answer = whole(client, "hello", user="alice")
    assert answer.choices[0].message.content == "noted: hello"
    stream = chunks(client, "again", user="alice", stream_options={"include_usage": True})
    assert text_of(stream) == "noted: again"
    assert stream[-1].usage is not None and stream[-1].usage.total_tokens > 0


def test_how_to_answer_reaches_the_model_as_it_was_sent(remembering: Confidant, recorder: RecordingModel) -> None:
    asked = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_completion_tokens": 50,
        "stop": ["END"],
        "seed": 7,
        "presence_penalty": 0.25,
        "frequency_penalty": -0.5,
        "response_format": SCHEMA,
    }
    whole(remembering.client(), "where?", user="alice", **asked)
    chunks(remembering.client(), "where?", user="bob", **asked)
    for body in recorder.bodies:
        got = {name: body.get(name) for name in asked if name != "max_completion_tokens"}
        assert got == {name: value for name, value in asked.items() if name != "max_completion_tokens"}
        assert body["max_tokens"] == 50
    whole(remembering.client(), "plainly", user="alice")
    assert not set(asked) & set(recorder.bodies[-1])


IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\nkestrel-nine").decode()
PAPER = base64.b64encode(b"%PDF-1.4 kestrel-nine").decode()
LINES = "[image: image/png, 20 bytes]\n[file: secret plan.pdf, application/pdf, 21 bytes]\nwhat is it?"


def showing(text: str) -> list[dict]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
    paper = {"filename": "secret plan.pdf", "file_data": f"data:application/pdf;base64,{PAPER}"}
    return [{"role": "user", "content": [image, {"type": "file", "file": paper}, {"type": "text", "text": text}]}]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_images_and_files_go_to_the_model_and_are_not_kept(
    remembering: Confidant, recorder: RecordingModel, streamed: bool
) -> None:
    client = remembering.client()
    if streamed:
        assert text_of(chunks(client, showing("what is it?"), user="alice")) == "noted: what is it?"
    else:
        assert whole(client, showing("what is it?"), user="alice").choices[0].message.content == "noted: what is it?"
    text, image, paper = recorder.prompts[-1][-1]["content"]
    assert text["text"].endswith(LINES)
    assert image["image_url"]["url"] == f"data:image/png;base64,{IMAGE}"
    assert paper["file"] == {"filename": "secret plan.pdf", "file_data": f"data:application/pdf;base64,{PAPER}"}
    # Later there is only a line that says so, also for a client that sends it all again.
    answer = {"role": "assistant", "content": "noted: what is it?"}
    whole(client, [*showing("what is it?"), answer, *said("and now?")], user="alice")
    told = [message["content"] for message in recorder.prompts[-1] if message["role"] != "system"]
    assert told == [LINES, "noted: what is it?", "and now?"]
    export = remembering.request("GET", "/api/v1/person/alice/export").json()
    assert export["sessions"][0]["messages"][0]["content"] == LINES
    remembering.stop()
    for hidden in (IMAGE, PAPER, "kestrel-nine", "secret plan"):
        assert remembering.files_with(hidden) == [], hidden


def test_what_the_model_cannot_see_is_said(remembering: Confidant, recorder: RecordingModel) -> None:
    client = remembering.client()
    recorder.blind = True
    with pytest.raises(openai.BadRequestError) as refused:
        whole(client, showing("what is it?"), user="alice")
    assert "did not take the image or file" in refused.value.message and "leave it out" in refused.value.message
    asked = len(recorder.bodies)
    # Whoever runs this model would fetch it from inside its own network.
    far = {"type": "image_url", "image_url": {"url": "https://canary-7f3a.example/a.png"}}
    loud = {"type": "input_audio", "input_audio": {"data": "canary", "format": "wav"}}
    kept = {"type": "file", "file": {"file_id": "canary-7f3a"}}
    for part in (far, loud, kept):
        with pytest.raises(openai.BadRequestError) as refused:
            whole(client, [{"role": "user", "content": [part]}], user="alice")
        assert refused.value.param == "messages" and "canary" not in str(refused.value)
    assert len(recorder.bodies) == asked, "nothing of it went to the model"
    assert "canary" not in remembering.log() and IMAGE not in remembering.log()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_several_answers_are_given_and_one_is_remembered(
    remembering: Confidant, recorder: RecordingModel, streamed: bool
) -> None:
    recorder.answers["which?"] = ["one of several"]
    client, asked = remembering.client(), {"user": "alice", "n": 3, "temperature": 0.7}
    if streamed:
        texts, ended = ["", "", ""], []
        stream = chunks(client, "which?", stream_options={"include_usage": True}, **asked)
        for choice in (choice for chunk in stream for choice in chunk.choices):
            texts[choice.index] += choice.delta.content or ""
            ended += [choice.index] if choice.finish_reason == "stop" else []
        assert sorted(ended) == [0, 1, 2]
        usage = stream[-1].usage
    else:
        answer = whole(client, "which?", **asked)
        assert [(choice.index, choice.finish_reason) for choice in answer.choices] == [(n, "stop") for n in range(3)]
        texts, usage = [choice.message.content for choice in answer.choices], answer.usage
    assert texts == ["one of several"] * 3
    assert usage.prompt_tokens > 0 and usage.completion_tokens > 0
    assert len(recorder.prompts) == 3 and recorder.prompts[0] == recorder.prompts[1] == recorder.prompts[2]
    assert {body["temperature"] for body in recorder.bodies} == {0.7}
    export = remembering.request("GET", "/api/v1/person/alice/export").json()
    kept = [message["content"] for session in export["sessions"] for message in session["messages"]]
    assert kept == ["which?", "one of several"]
    # Also without memory.
    assert len(whole(client, "which?", extra_headers=OFF, n=2).choices) == 2


@pytest.mark.parametrize("options", [{"n": 0}, {"n": 9}, {"n": 2, "tools": [TOOL]}], ids=["none", "many", "tools"])
def test_more_answers_than_can_be_had_are_refused(remembering: Confidant, options: dict) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        whole(remembering.client(), "hello", user="alice", **options)
    assert refused.value.param == "n"


def test_a_request_without_memory_leaves_none(remembering: Confidant, recorder: RecordingModel) -> None:
    client = remembering.client()
    whole(client, "my name is Alice", user="alice")
    answer = whole(client, "unheard one", user="alice", extra_headers=OFF)
    assert answer.model_extra["confidant"]["memory"] == "off"
    stream = chunks(client, "unheard two", user="alice", extra_headers=OFF)
    assert text_of(stream) == "noted: unheard two"
    for prompt in recorder.prompts[1:]:
        assert "Alice" not in str(prompt)
    export = remembering.request("GET", "/api/v1/person/alice/export").body.decode()
    assert "my name is Alice" in export and "unheard" not in export
    whole(client, "what now?", user="alice")
    assert "my name is Alice" in str(recorder.prompts[-1]) and "unheard" not in str(recorder.prompts[-1])
    remembering.stop()
    assert remembering.files_with("unheard") == []


@pytest.mark.parametrize("packed", [False, True], ids=["numbers", "packed"])
def test_embeddings_are_passed_on(remembering: Confidant, recorder: RecordingModel, packed: bool) -> None:
    client = remembering.client()
    texts = ["one", "one two", "three of them"]
    form = {} if packed else {"encoding_format": "float"}
    raw = client.embeddings.with_raw_response.create(model="any", input=texts, **form)
    if not packed:
        strictly(CreateEmbeddingResponse, raw.http_response.text)
    made = raw.parse()
    assert [list(item.embedding) for item in made.data] == [[3.0, 1.0], [7.0, 2.0], [13.0, 3.0]]
    assert [item.index for item in made.data] == [0, 1, 2]
    assert (made.model, made.usage.total_tokens) == ("vectors", 3)
    asked = recorder.bodies[-1]
    assert (asked["model"], asked["input"]) == ("vectors", texts)
    remembering.stop()
    assert remembering.files_with("three of them") == []


def test_models_are_what_the_types_say(remembering: Confidant) -> None:
    client = remembering.client()
    ids = [model.id for model in client.models.list().data]
    assert ids == ["recorder", "vectors"]
    for name in ids:
        raw = client.models.with_raw_response.retrieve(name)
        assert strictly(Model, raw.http_response.text).id == name


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"response_format": SCHEMA}, "response_format"),
        ({"stop": ["canary-7f3a"]}, "stop"),
        ({"presence_penalty": 1}, "presence_penalty"),
        ({"n": 2}, "n"),
        ({"extra_headers": {"X-Confidant-Memory": "canary-7f3a"}}, "X-Confidant-Memory"),
    ],
    ids=["schema", "stop", "penalty", "two answers", "header"],
)
def test_what_the_built_in_model_cannot_do_is_named(server: Confidant, options: dict, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        whole(server.client(), "canary-7f3a", user="alice", **options)
    assert refused.value.param == param
    assert "canary-7f3a" not in str(refused.value)


def test_embeddings_without_a_model_say_what_to_set(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        client.embeddings.create(model="any", input="hello")
    assert refused.value.code == "no_embedding_model"
    assert "model.embedding_model" in refused.value.message
