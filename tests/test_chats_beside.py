"""What a chat has beside its answers, as two devices get it: what tools said, and its beginning in few words. Stored with the answer, sent again
with its proof when the server has forgotten the chat, and quoted where the proof does not hold."""

from __future__ import annotations

import json
import sys

import pytest
from chats_lab import PATIENCE, Lab, ask, lab, last_line, postgres
from conftest import TESTS, wait_until
from small_model import PREPARED
from test_chats import Person
from test_chats_answers import push_out

__all__ = ["lab", "postgres"]

FOUND, SUMMED = "quillwortbarge", "They settled on heliotropemere."
SERVER = json.dumps([sys.executable, str(TESTS / "tool_server.py")])
TOOLS = f"[tools.servers.odd]\ncommand = {SERVER}\n"


def lines(person: Person, chat: str, kind: str) -> list[dict]:
    """What a device shows of what tools said, or of what was summed up."""
    return [line for line in person.do(f"/open {chat}") if kind in line]


def prompt_of(lab: Lab, query: str) -> list[dict]:
    return [prompt for prompt in lab.model.prompts if last_line(prompt[-1]) == query][-1]


def speakers(lab: Lab, query: str, words: str) -> set[str]:
    return {message["role"] for message in prompt_of(lab, query) if words in message["content"]}



def test_what_a_tool_said_is_kept_and_sent_again(lab: Lab) -> None:
    lab.start(TOOLS, CONFIDANT_WEB__AI_CACHE_CHATS="1")
    one, two = lab.owner()
    first = ask(one, f'call odd.echo {{"text": "{FOUND}"}}')
    chat = first.chat
    for person in (one, two):
        (said,) = lines(person, chat, "tool")
        assert (said["tool"], FOUND in said["body"]) == ("odd.echo", True), said
    # The server's words and the devices' digest agree, at another gateway, too.
    assert ask(two, "from the cache", chat).resent is None
    push_out(one)
    # A question, what the tool said, the answer; and another question with its answer.
    assert ask(two, "sent again", chat).resent == 5
    blocks = "\n".join(message["content"] for message in prompt_of(lab, "sent again"))
    assert f"odd.echo: {FOUND}" in blocks, "it is told as what a tool said, not as a quotation"
    assert speakers(lab, "sent again", "noted: from the cache") == {"assistant"}, "and what came after it is proved"
    assert ask(one, "and again", chat).resent is None
    # Changed words are nobody's, and neither is what was said after them.
    tool = said["message"]
    assert tool.startswith("msg_")
    assert lab.leaks(FOUND) == []
    lab.stop()
    assert lab.leaks(FOUND) == []


@pytest.mark.parametrize("lab", ["sqlite", "gateways"], indirect=True)
def test_a_summary_takes_the_place_of_what_it_sums_up(lab: Lab) -> None:
    lab.small.replies["prepare_turn"] = PREPARED
    lab.small.replies["sum_up"] = {"summary": SUMMED}
    lab.start(CONFIDANT_WEB__AI_CACHE_CHATS="1", CONFIDANT_HISTORY__MAX_MESSAGES="16", **lab.small.environment)
    one, two = lab.owner()
    chat, asked = ask(one, "question 0").chat, 1
    while not lines(two, chat, "summary"):
        assert asked < 30, lab.logs()
        sums = len(lab.small.asked("sum_up"))
        assert ask(one, f"question {asked}", chat).resent is None, "the server's words agree all the time"
        asked += 1
        if sums == 0 and asked > 6:
            # It is summed up beside the answers.
            wait_until(lambda: len(lab.small.asked("sum_up")) > 0 or asked < 9, PATIENCE, lab.logs)
    (summary,) = lines(two, chat, "summary")
    assert summary["body"] == SUMMED and 0 < summary["messages"] < 2 * asked
    push_out(one)
    rest = 2 * asked - summary["messages"]
    assert ask(two, "sent again", chat).resent == 1 + rest
    prompt = "\n".join(message["content"] for message in prompt_of(lab, "sent again"))
    assert f"summary: {SUMMED}" in prompt and "question 0" not in prompt, prompt
    # What follows it is proved from there on.
    assert speakers(lab, "sent again", f"noted: question {asked - 1}") == {"assistant"}
    assert ask(one, "from the cache", chat).resent is None
    # A change of what it tells of: it goes, and everything is sent.
    one.do(f"/open {chat}", "/edit 1 question nought")
    assert lines(one, chat, "summary") == []
    assert ask(one, "all of it", chat).resent == 2 * asked + 4
    assert speakers(lab, "all of it", SUMMED) == set()
    assert lab.leaks(SUMMED, "question nought") == []
