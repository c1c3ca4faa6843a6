"""What the OpenAI door gives, read from its bytes by the official client's own types: the client itself takes nearly anything.

No field may be there that they do not know, except `confidant`.
"""

from __future__ import annotations

import openai
import pydantic
from openai.types.chat import ChatCompletion, ChatCompletionChunk


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def messages(asked: str | list[dict]) -> list[dict]:
    return said(asked) if isinstance(asked, str) else asked


def strictly(kind: type[pydantic.BaseModel], data: str) -> pydantic.BaseModel:
    """The bytes as this type, with nothing converted and nothing unknown but `confidant`."""
    read = kind.model_validate_json(data, strict=True)
    assert unknown(read) <= {"confidant"}, data
    return read


def unknown(value: object) -> set[str]:
    """The names of fields that the types do not know, however deep."""
    if isinstance(value, list):
        return set().union(*(unknown(item) for item in value))
    if not isinstance(value, pydantic.BaseModel):
        return set()
    known = (getattr(value, name) for name in type(value).model_fields)
    return set(value.model_extra or {}).union(*(unknown(item) for item in known))


def whole(client: openai.OpenAI, asked: str | list[dict], **options) -> ChatCompletion:
    """The whole answer to a text, or to a list of messages."""
    reply = client.chat.completions.with_raw_response.create(model="any", messages=messages(asked), **options)
    return strictly(ChatCompletion, reply.http_response.text)


def chunks(client: openai.OpenAI, asked: str | list[dict], **options) -> list[ChatCompletionChunk]:
    create = client.chat.completions.with_streaming_response.create
    with create(model="any", messages=messages(asked), stream=True, **options) as reply:
        data = [line.removeprefix("data: ") for line in reply.iter_lines() if line.startswith("data: ")]
    assert data.pop() == "[DONE]"
    return [strictly(ChatCompletionChunk, event) for event in data]


def text_of(stream: list[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices)
