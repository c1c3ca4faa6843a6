"""Chats of which a server keeps nothing: temporary ones, and those that somebody asked to be forgotten, on the command line."""

from __future__ import annotations

import json

import pytest
from chats_lab import PATIENCE, Lab, answer_of, ask, doing, exchanged, lab, last_line, postgres, read, told
from conftest import wait_until
from test_chats import leaks

__all__ = ["lab", "postgres"]

# What the server has of a chat, by its tables.
OF_A_CHAT = ("chats", "items", "envelopes", "steps", "drafts", "letters", "safety", "marks", "snapshots")


@pytest.mark.parametrize("lab", ["sqlite", "redis", "gateways"], indirect=True)
def test_nothing_of_a_temporary_chat_is_stored(lab: Lab) -> None:
    asked = f"plumbagoline{lab.kind}"
    lab.start()
    one, two = lab.owner()
    kept = ask(one, "kept").chat
    before = (lab.kept(), lab.rows(*OF_A_CHAT))
    done = one.run("--login", one.login, *doing("/temporary", f"/ask {asked}", "/ask and then?", "/read", "/queue"))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["temporary"] and [line["finish"] for line in lines if "finish" in line] == ["whole", "whole"]
    # The device has the conversation, and sends it each time: the server has none of it.
    assert [line["body"] for line in lines if "role" in line] == [text for _, text in exchanged(asked, "and then?")]
    assert told(lab.model, "and then?") == [*exchanged(asked), ("user", "and then?")]
    assert "sent it 2 messages" in done.stderr
    assert (lab.kept(), lab.rows(*OF_A_CHAT)) == before
    # What is typed without a question would be stored, and is refused; so is whatever else is kept.
    for command in ("hello", "/rename secret", "/draft secret", "/cache on", "/share settings on"):
        refused = one.run("--login", one.login, *doing("/temporary", command), status=2)
        assert "in a temporary chat" in refused.stderr or "cannot be done in it" in refused.stderr, refused.stderr
    # It ends with its process: no device has it, and nothing of it waits.
    for person in (one, two):
        assert [line["chat"] for line in person.do("/list")] == [kept] and person.do("/queue") == []
    assert lab.leaks(asked) == [] and leaks(lab.folder / "people", (asked,)) == []
    lab.kill()
    assert lab.leaks(asked) == []
    lab.begin()
    assert ask(two, "go on", kept).finish == "whole", "other chats are not concerned"


@pytest.mark.parametrize("lab", ["sqlite", "redis", "gateways"], indirect=True)
def test_forgetting_a_conversation_is_deleting_its_chat(lab: Lab) -> None:
    """The server cannot erase what devices keep, and claims nothing: it offers that they delete the chat, which ends all it has."""
    lab.start()
    one, two = lab.owner()
    before = lab.kept()
    chat = ask(one, "periwinklet").chat
    done = one.run("--login", one.login, *doing(f"/open {chat}", "/ask forget our conversation"))
    answer = answer_of(done.stdout, done.stderr)
    assert answer.finish == "asked_to_forget" and "nothing has been erased" in answer.body
    assert "/delete-chat" in done.stderr
    assert all("forget our" not in last_line(prompt[-1]) for prompt in lab.model.prompts), "no model is asked"
    # So far all of it is there.
    said = ["periwinklet", "noted: periwinklet", "forget our conversation", answer.body]
    assert read(two, chat) == said
    assert ask(two, "still there?", chat).resent is None
    assert told(lab.model, "still there?")[:2] == exchanged("periwinklet")
    # The person takes the offer, at the other device.
    two.do(f"/open {chat}", "/delete-chat")
    wait_until(lambda: lab.kept() == before, PATIENCE, lambda: f"{lab.kept()} {before}\n{lab.logs()}")
    assert lab.rows(*OF_A_CHAT) == dict.fromkeys(OF_A_CHAT, 0)
    assert one.do("/list") == two.do("/list") == []
    refused = one.run("--login", one.login, *doing(f"/open {chat}"), status=2)
    assert "there is no such chat" in refused.stderr
    if lab.redis is not None:
        assert [key for key in lab.redis.client().scan_iter("*") if chat.encode() in key] == []
    assert lab.leaks("periwinklet") == []
