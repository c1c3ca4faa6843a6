"""The official `openai` client is a drop-in, and is remembered.

Memory is kept per `user`, or per session named in `X-Confidant-Session`; the client sends only what is new.
"""

from __future__ import annotations

import re

import openai
import pytest
from conftest import Confidant

HELLO = "Hello, I'm Alice and I prefer Rust"
NAME = "What is my name?"


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def ask(client: openai.OpenAI, model: str, text: str, **options) -> str:
    completion = client.chat.completions.create(model=model, messages=said(text), **options)
    assert completion.object == "chat.completion"
    assert [choice.finish_reason for choice in completion.choices] == ["stop"]
    assert completion.choices[0].message.role == "assistant"
    return completion.choices[0].message.content


def stream(client: openai.OpenAI, model: str, text: str, **options) -> list:
    chunks = list(client.chat.completions.create(model=model, messages=said(text), stream=True, **options))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1, "every chunk of an answer has its id"
    return chunks


def text_of(chunks: list) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def test_models_are_listed(client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert models
    assert all(model.id and model.object == "model" for model in models)


def test_a_streamed_turn_is_remembered_for_that_user_only(client: openai.OpenAI, model: str) -> None:
    chunks = stream(client, model, HELLO, user="alice")
    assert text_of(chunks).strip()
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert reasons == ["stop"]

    assert "Alice" in ask(client, model, NAME, user="alice")
    assert "Alice" not in ask(client, model, NAME, user="bob")


def test_streamed_and_whole_answers_are_the_same_text(client: openai.OpenAI, model: str) -> None:
    for user in ("carol", "dave"):
        ask(client, model, "Our release day is Thursday.", user=user)
    whole = ask(client, model, "Which day is our release day?", user="carol")
    streamed = text_of(stream(client, model, "Which day is our release day?", user="dave"))
    assert streamed == whole
    assert "Thursday" in whole


def test_a_session_header_is_a_memory_of_its_own(client: openai.OpenAI, model: str) -> None:
    one = {"X-Confidant-Session": "!abc123:matrix.org:main:@alice:matrix.org"}
    two = {"X-Confidant-Session": "!abc123:matrix.org:$thread1:@alice:matrix.org"}
    ask(client, model, HELLO, extra_headers=one)

    assert "Alice" in ask(client, model, NAME, extra_headers=one)
    assert "Alice" not in ask(client, model, NAME, extra_headers=two)
    assert "Alice" not in ask(client, model, NAME, user="alice")


def test_the_header_goes_before_the_user_field(client: openai.OpenAI, model: str) -> None:
    session = {"X-Confidant-Session": "!abc123:matrix.org:main:@erin:matrix.org"}
    ask(client, model, HELLO, extra_headers=session, user="frank")
    assert "Alice" in ask(client, model, NAME, extra_headers=session)
    assert "Alice" not in ask(client, model, NAME, user="frank")


def test_a_session_header_that_is_no_session_id_is_refused(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, model, HELLO, extra_headers={"X-Confidant-Session": "!:::"})
    assert "session" in readable(refused.value)


def test_history_that_the_client_sends_along_is_used(client: openai.OpenAI, model: str) -> None:
    messages = [
        {"role": "system", "content": "You are brief."},
        {"role": "user", "content": "Hello, I'm Grace and I prefer Ada"},
        {"role": "assistant", "content": "Hello Grace."},
        {"role": "user", "content": NAME},
    ]
    completion = client.chat.completions.create(model=model, messages=messages, user="grace")
    assert "Grace" in completion.choices[0].message.content


@pytest.mark.parametrize("token", ["no-such-token", "confidant_00000000000000000000000000000000"])
def test_a_wrong_token_is_refused(server: Confidant, token: str) -> None:
    with pytest.raises(openai.AuthenticationError):
        server.client(token).models.list()
    with pytest.raises(openai.AuthenticationError) as refused:
        ask(server.client(token), "any", HELLO)
    assert token not in refused.value.message
    assert token not in server.log()


def test_memory_outlives_the_process_and_is_readable_in_no_file(server: Confidant, client: openai.OpenAI, model: str) -> None:
    ask(client, model, HELLO, user="alice")
    assert server.files_with(HELLO) == []
    server.restart()
    assert "Alice" in ask(server.client(), model, NAME, user="alice")
    assert "Alice" not in ask(server.client(), model, NAME, user="bob")
    server.stop()
    assert server.files_with("prefer Rust") == []


def test_usage_comes_last_when_asked_for(client: openai.OpenAI, model: str) -> None:
    chunks = stream(client, model, HELLO, user="alice", stream_options={"include_usage": True})
    *before, last = chunks
    assert last.choices == []
    assert last.usage.prompt_tokens > 0
    assert last.usage.completion_tokens > 0
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens
    assert all(chunk.usage is None and chunk.choices for chunk in before)


def test_usage_does_not_come_unasked(client: openai.OpenAI, model: str) -> None:
    assert all(chunk.usage is None and chunk.choices for chunk in stream(client, model, HELLO, user="alice"))


def test_a_whole_answer_has_usage(client: openai.OpenAI, model: str) -> None:
    usage = client.chat.completions.create(model=model, messages=said(HELLO), user="alice").usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"n": 2}, "n"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "canary-7f3a"}]}, "role"),
        ({"messages": [{"role": "assistant", "content": "canary-7f3a"}]}, "user"),
    ],
    ids=["two answers", "no message", "unknown role", "nothing from the user"],
)
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
def test_bad_requests_say_what_is_wrong(
    server: Confidant, client: openai.OpenAI, model: str, change: dict, word: str, streaming: bool
) -> None:
    request = {"model": model, "messages": said("canary-7f3a"), "user": "alice", "stream": streaming} | change
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**request)
    assert word in re.findall(r"\w+", readable(refused.value))
    assert "canary-7f3a" not in str(refused.value)
    assert "canary-7f3a" not in server.log()


def readable(error: openai.APIStatusError) -> str:
    """The message of an error in OpenAI's shape."""
    assert isinstance(error.body, dict), error.body
    assert error.body["type"] == "invalid_request_error"
    message = error.body["message"]
    assert isinstance(message, str)
    assert message.strip()
    return message
