"""OpenAI's doors at a gateway, whose workers answer: what a client asks for reaches them, and what they say reaches it."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest
from openai.types.responses import Response
from recording_model import RecordingModel
from strictly_openai import strictly, whole
from test_roles import RedisServer, gateway_and_worker, model, server, settings  # noqa: F401

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}


def test_what_a_client_asks_for_reaches_the_worker(tmp_path: Path, server: RedisServer, model: RecordingModel) -> None:  # noqa: F811
    asked = [{"role": "user", "content": [IMAGE, {"type": "text", "text": "what is it?"}]}]
    with gateway_and_worker(tmp_path, settings(server, model)) as (front, worker):
        client = front.client()
        answer = whole(client, asked, user="alice", n=2)
        assert [choice.message.content for choice in answer.choices] == ["noted: what is it?"] * 2
        assert [part["type"] for part in model.prompts[-1][-1]["content"]] == ["text", "image_url"]
        export = front.request("GET", "/api/v1/person/alice/export").json()
        kept = [message["content"] for session in export["sessions"] for message in session["messages"]]
        assert kept == ["[image: image/png, 5 bytes]\nwhat is it?", "noted: what is it?"]

        create = client.responses.with_raw_response.create
        raw = create(model="any", input="one", user="bob", temperature=0.5, instructions="be brief")
        first = strictly(Response, raw.http_response.text)
        raw = client.responses.with_raw_response.retrieve(first.id)
        again = strictly(Response, raw.http_response.text)
        assert (again.temperature, again.instructions, again.usage) == (0.5, "be brief", first.usage)
        assert again.output == first.output

        model.blind = True
        with pytest.raises(openai.BadRequestError) as refused:
            whole(client, asked, user="carol")
        assert "did not take the image or file" in refused.value.message
        for log in (front.log(), worker.log()):
            assert "aGVsbG8" not in log and "be brief" not in log
