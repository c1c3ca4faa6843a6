"""Responses and conversations through the OpenAI door, with the official client and the Agents SDK: sessions stand behind them.

Every response, item and event is read from its bytes by the client's own types, and has no field that they do not know, except
`confidant`.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import openai
import pydantic
import pytest
from agents import (
    Agent,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from conftest import FOREIGN, Confidant
from openai.types.conversations import Conversation, ConversationDeletedResource, ConversationItem, ConversationItemList
from openai.types.responses import Response, ResponseItemList, ResponseStreamEvent
from recording_model import RecordingModel
from strictly_openai import strictly, unknown

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}
ASKED = 'what is it like?\ncall get_weather {"city": "Cork"}'
MARKER = "kestrel-nine rain"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NOBODY = "(conversation)"
EVENT = pydantic.TypeAdapter(ResponseStreamEvent)
ITEM = pydantic.TypeAdapter(ConversationItem)


def respond(client: openai.OpenAI, asked: str | list[dict], streamed: bool = False, **options) -> Response:
    """The response, whole or as its events tell it."""
    if not streamed:
        raw = client.responses.with_raw_response.create(model="any", input=asked, **options)
        return strictly(Response, raw.http_response.text)
    create = client.responses.with_streaming_response.create
    with create(model="any", input=asked, stream=True, **options) as reply:
        data = [line.removeprefix("data: ") for line in reply.iter_lines() if line.startswith("data: ")]
    events = [EVENT.validate_json(event, strict=True) for event in data]
    assert all(unknown(event) <= {"confidant"} for event in events)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    last = events[-1].response
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert done == last.output and events[0].response.id == last.id
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert said == last.output_text
    return last


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def kept(server: Confidant, person: str) -> list[list[tuple[str, str]]]:
    """What is remembered of a person, session by session: who speaks, and what."""
    export = json.loads(server.request("GET", f"/api/v1/person/{person}/export").body)
    sessions = [[(said["type"], said["content"]) for said in one["messages"]] for one in export["sessions"]]
    return sorted(sessions, key=len)


def token_of(server: Confidant, role: str) -> str:
    program = Path(os.environ["CONFIDANT_BIN"]).resolve()
    command = [program, "--data-dir", server.data_dir, "token", "new", "--role", role]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    made = subprocess.run(command, cwd=server.folder, env=clean, capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def said(prompt: list[dict]) -> list[str]:
    return [message["content"] for message in prompt if message["role"] != "system"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_response_follows_another(recording: Confidant, recorder: RecordingModel, streamed: bool) -> None:
    client = recording.client()
    first = respond(client, "one", streamed, user="alice", metadata={"k": "v"}, instructions="be brief")
    assert (first.output_text, first.metadata, first.status) == ("noted: one", {"k": "v"}, "completed")
    assert "be brief" in str(recorder.prompts[-1])
    second = respond(client, "two", streamed, previous_response_id=first.id)
    assert said(recorder.prompts[-1])[-3:] == ["one", "noted: one", "two"]
    recording.restart()
    client = recording.client()
    other = respond(client, "other", streamed, previous_response_id=first.id)
    assert said(recorder.prompts[-1])[-3:] == ["one", "noted: one", "other"]
    respond(client, "three", streamed, previous_response_id=second.id)
    assert said(recorder.prompts[-1])[-5:] == ["one", "noted: one", "two", "noted: two", "three"]
    respond(client, "on", streamed, previous_response_id=other.id)
    assert [len(session) for session in kept(recording, "alice")] == [6, 6]

    again = strictly(Response, client.responses.with_raw_response.retrieve(first.id).http_response.text)
    assert (again.output, again.metadata) == (first.output, first.metadata)
    items = client.responses.input_items.with_raw_response.list(first.id)
    listed = strictly(ResponseItemList, items.http_response.text)
    assert [part.text for item in listed.data for part in item.content] == ["one"]
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)
    assert [len(session) for session in kept(recording, "alice")] == [4, 6]


def retrieved(client: openai.OpenAI, response: Response) -> Response:
    return strictly(Response, client.responses.with_raw_response.retrieve(response.id).http_response.text)


ASKED_AGAIN = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "model",
    "output",
    "parallel_tool_calls",
    "previous_response_id",
    "conversation",
    "status",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
    "usage",
    "user",
)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_what_was_asked_is_given_back(recording: Confidant, streamed: bool) -> None:
    client = recording.client()
    form = {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}
    options = {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 50, "text": {"format": form}}
    options |= {"instructions": "kestrel-nine brief", "tools": [WEATHER], "tool_choice": "auto", "metadata": {"k": "v"}}
    first = respond(client, ASKED, streamed, user="alice", **options)
    (call,) = [item for item in first.output if item.type == "function_call"]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": MARKER}
    second = respond(client, [result], streamed, previous_response_id=first.id, temperature=0.25)
    conversation = client.conversations.create(extra_body={"user": "alice"})
    third = respond(client, "three", streamed, conversation=conversation.id, parallel_tool_calls=False)
    recording.restart()
    client = recording.client()
    for response in (first, second, third):
        again = retrieved(client, response)
        for name in ASKED_AGAIN:
            assert getattr(again, name) == getattr(response, name), name
        assert again.usage is not None and again.usage.total_tokens > 0
        assert response.created_at - 2 <= again.created_at <= again.completed_at
    export = json.loads(recording.request("GET", "/api/v1/person/alice/export").body)
    assert "kestrel-nine brief" in str(export), "what is kept is the person's to see"
    recording.stop()
    for text in ("kestrel-nine brief", MARKER, "json_schema"):
        assert recording.files_with(text) == [], text


def test_long_instructions_are_used_and_not_kept(recording: Confidant, recorder: RecordingModel) -> None:
    client = recording.client()
    response = respond(client, "one", user="alice", temperature=0.5, instructions="be brief " * 3000)
    assert "be brief" in str(recorder.prompts[-1])
    again = retrieved(client, response)
    assert (again.instructions, again.temperature, again.output) == (None, 0.5, response.output)


def test_a_conversation_is_listed_updated_and_deleted(recording: Confidant) -> None:
    client = recording.client()
    create = client.conversations.with_raw_response.create
    raw = create(metadata={"topic": "weather"}, items=[user("before")], extra_body={"user": "alice"})
    conversation = strictly(Conversation, raw.http_response.text)
    first = respond(client, "one", conversation=conversation.id)
    assert first.conversation is not None and first.conversation.id == conversation.id
    raw = client.conversations.items.with_raw_response.list(conversation.id, order="asc")
    page = strictly(ConversationItemList, raw.http_response.text)
    assert [part.text for item in page.data for part in item.content] == ["before", "one", "noted: one"]
    # Page by page, as the client turns them.
    ids = [item.id for item in client.conversations.items.list(conversation.id, limit=1)]
    assert ids == [item.id for item in reversed(page.data)]
    raw = client.conversations.items.with_raw_response.retrieve(ids[0], conversation_id=conversation.id)
    assert ITEM.validate_json(raw.http_response.text, strict=True).id == ids[0]
    raw = client.conversations.items.with_raw_response.create(conversation.id, items=[user("after"), user("that")])
    assert len(strictly(ConversationItemList, raw.http_response.text).data) == 2
    raw = client.conversations.items.with_raw_response.delete(ids[-1], conversation_id=conversation.id)
    assert strictly(Conversation, raw.http_response.text).id == conversation.id
    assert [text for _, text in kept(recording, "alice")[0]] == ["one", "noted: one", "after", "that"]
    raw = client.conversations.with_raw_response.update(conversation.id, metadata={"topic": "time"})
    assert strictly(Conversation, raw.http_response.text).metadata == {"topic": "time"}
    raw = client.conversations.with_raw_response.retrieve(conversation.id)
    assert strictly(Conversation, raw.http_response.text).metadata == {"topic": "time"}
    raw = client.conversations.with_raw_response.delete(conversation.id)
    assert strictly(ConversationDeletedResource, raw.http_response.text).deleted
    assert kept(recording, "alice") == []


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_calls_are_handed_over_and_nothing_stays_readable(
    recording: Confidant, recorder: RecordingModel, streamed: bool
) -> None:
    client = recording.client()
    conversation = client.conversations.create(metadata={"secret": MARKER}, extra_body={"user": "alice"})
    options = {"conversation": conversation.id, "tools": [WEATHER], "metadata": {"secret": MARKER}}
    first = respond(client, ASKED, streamed, **options)
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Cork"})
    recording.stop()
    assert recording.files_with(MARKER) == [] and recording.files_with("Cork") == []
    recording.start()
    client = recording.client()
    result = {"type": "function_call_output", "call_id": call.call_id, "output": MARKER}
    second = respond(client, [result], streamed, **options)
    assert MARKER in second.output_text
    prompts = len(recorder.prompts)
    assert respond(client, [result], streamed, **options).output == second.output
    assert len(recorder.prompts) == prompts, "what was answered is not asked again"
    assert [who for who, _ in kept(recording, "alice")[0]] == ["human", "tool", "ai"]
    kinds = [item.type for item in client.conversations.items.list(conversation.id, order="asc")]
    assert kinds == ["message", "function_call", "function_call_output", "message"]
    for response in (first, second):
        assert client.responses.retrieve(response.id).output == response.output
    recording.stop()
    for text in (MARKER, "Cork", "get_weather", conversation.id, first.id):
        assert recording.files_with(text) == [], text
    recording.start()
    assert recording.request("DELETE", "/api/v1/person/alice").status == 200
    for path in (f"conversations/{conversation.id}", f"responses/{first.id}"):
        assert recording.request("GET", f"/v1/{path}").status == 404


def test_a_person_reaches_nobody_elses(recording: Confidant) -> None:
    client = recording.client()
    first = respond(client, "secret", user="bob")
    conversation = client.conversations.create(extra_body={"user": "bob"})
    alice = recording.client(token_of(recording, "user:alice"))
    for missing in (
        lambda: alice.responses.retrieve(first.id),
        lambda: alice.responses.delete(first.id),
        lambda: alice.responses.create(model="any", input="x", previous_response_id=first.id),
        lambda: alice.responses.create(model="any", input="x", conversation=conversation.id),
        lambda: alice.conversations.retrieve(conversation.id),
        lambda: alice.conversations.delete(conversation.id),
        lambda: alice.conversations.items.list(conversation.id),
        lambda: alice.conversations.items.create(conversation.id, items=[user("x")]),
    ):
        with pytest.raises(openai.NotFoundError) as refused:
            missing()
        assert first.id not in refused.value.message and conversation.id not in refused.value.message
    own = respond(alice, "mine")
    assert kept(recording, "alice") == [[("human", "mine"), ("ai", "noted: mine")]]
    assert alice.responses.retrieve(own.id).output == own.output


IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\nkestrel-nine").decode()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_images_go_to_the_model_and_are_not_kept(recording: Confidant, recorder: RecordingModel, streamed: bool) -> None:
    client = recording.client()
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}", "detail": "auto"}
    paper = {"type": "input_file", "filename": "plan.pdf", "file_data": IMAGE}
    shown = [{"role": "user", "content": [image, paper, {"type": "input_text", "text": "what is it?"}]}]
    first = respond(client, shown, streamed, user="alice")
    assert first.output_text == "noted: what is it?"
    sent = recorder.prompts[-1][-1]["content"]
    assert [part["type"] for part in sent] == ["text", "image_url", "file"]
    respond(client, "and now?", streamed, previous_response_id=first.id)
    line = "[image: image/png, 20 bytes]\n[file: plan.pdf, application/pdf, 20 bytes]\nwhat is it?"
    assert said(recorder.prompts[-1]) == [line, "noted: what is it?", "and now?"]
    items = client.responses.input_items.list(first.id)
    assert [part.text for item in items.data for part in item.content] == [line]
    # Put into a conversation, it is known that there was one.
    conversation = client.conversations.create(items=shown, extra_body={"user": "bob"})
    items = client.conversations.items.list(conversation.id)
    assert [part.text for item in items.data for part in item.content] == [line]
    recording.stop()
    assert recording.files_with(IMAGE) == [] and recording.files_with("plan.pdf") == []


def test_what_is_not_stored_leaves_nothing(recording: Confidant, recorder: RecordingModel) -> None:
    client = recording.client()
    first = respond(client, "one", user="alice")
    response = respond(client, "unheard", previous_response_id=first.id, store=False)
    assert said(recorder.prompts[-1])[-3:] == ["one", "noted: one", "unheard"]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)
    recording.stop()
    assert recording.files_with("unheard") == []


def test_how_to_answer_reaches_the_model(recording: Confidant, recorder: RecordingModel) -> None:
    form = {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}
    options = {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 50, "text": {"format": form}}
    answer = respond(recording.client(), "where?", **options)
    body = recorder.bodies[-1]
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 50)
    assert body["response_format"]["json_schema"] == {"name": "city", "schema": CITY, "strict": True}
    assert (answer.temperature, answer.top_p, answer.max_output_tokens) == (0.5, 0.9, 50)
    assert answer.text.format.type == "json_schema"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"tools": [WEATHER]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"background": True}, "background"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "canary-7f3a"}]}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "canary-7f3a"}]}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]}]}, "input"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"metadata": {"canary-7f3a": "x" * 513}}, "metadata"),
    ],
    ids=["form", "tools", "web search", "background", "address", "file", "image", "logprobs", "metadata"],
)
def test_what_cannot_be_honoured_is_named(server: Confidant, options: dict, param: str) -> None:
    asked = {"input": "canary-7f3a"} | options
    with pytest.raises(openai.BadRequestError) as refused:
        respond(server.client(), asked.pop("input"), **asked)
    assert refused.value.param == param and "canary" not in str(refused.value)


def agent(server: Confidant, tools: list | None = None) -> tuple[Agent, openai.AsyncOpenAI]:
    client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.token, max_retries=0)
    return Agent(name="helper", model=OpenAIResponsesModel("any", client), tools=tools or []), client


def run(helper: Agent, asked: str | list, **options) -> object:
    return Runner.run_sync(helper, asked, run_config=RunConfig(tracing_disabled=True), **options)


def test_the_agents_sdk_sends_its_list_again(recording: Confidant, recorder: RecordingModel) -> None:
    helper, _ = agent(recording)
    result = run(helper, "one")
    for text in ("two", "three"):
        result = run(helper, [*result.to_input_list(), user(text)])
    assert result.final_output == "noted: three"
    assert said(recorder.prompts[-1]) == ["one", "noted: one", "two", "noted: two", "three"]
    (session,) = kept(recording, NOBODY)
    assert [text for _, text in session] == ["one", "noted: one", "two", "noted: two", "three", "noted: three"]


def test_the_agents_sdk_keeps_a_session_of_its_own(recording: Confidant) -> None:
    helper, _ = agent(recording)
    session = SQLiteSession("s")
    for text in ("one", "two", "three"):
        run(helper, text, session=session)
    (kept_session,) = kept(recording, NOBODY)
    assert len(kept_session) == 6


def test_the_agents_sdk_calls_its_tools(recording: Confidant) -> None:
    @function_tool
    def get_weather(city: str) -> str:
        return f"{MARKER} in {city}"

    helper, _ = agent(recording, [get_weather])
    result = run(helper, ASKED)
    assert MARKER in result.final_output
    result = run(helper, [*result.to_input_list(), user("and now?")])
    (session,) = kept(recording, NOBODY)
    assert [who for who, _ in session] == ["human", "tool", "ai", "human", "ai"]


def test_the_agents_sdk_names_its_conversation(recording: Confidant, recorder: RecordingModel) -> None:
    helper, _ = agent(recording)
    conversation = recording.client().conversations.create()
    for text in ("one", "two"):
        run(helper, text, conversation_id=conversation.id)
    assert said(recorder.prompts[-1]) == ["one", "noted: one", "two"]
    (session,) = kept(recording, NOBODY)
    assert len(session) == 4


def test_the_agents_sdk_puts_items_into_a_conversation(recording: Confidant, recorder: RecordingModel) -> None:
    helper, client = agent(recording)
    session = OpenAIConversationsSession(openai_client=client)
    for text in ("one", "two", "three"):
        run(helper, text, session=session)
    assert said(recorder.prompts[-1]) == ["one", "noted: one", "two", "noted: two", "three"]
    # The first answer was given before its client named a conversation.
    first, conversation = kept(recording, NOBODY)
    assert [text for _, text in first] == ["one", "noted: one"]
    assert [text for _, text in conversation] == ["one", "noted: one", "two", "noted: two", "three", "noted: three"]
