"""What a server keeps of a chat beyond its words: concepts, only where its owner switched them on, as docs/PRIVACY.md says."""

from __future__ import annotations

import json

import pytest
from chats_lab import PATIENCE, Lab, ask, lab, postgres
from conftest import wait_until
from test_chats import LOGIN, Person, operator

__all__ = ["lab", "postgres"]

LABEL, DEFINITION, KIND = "Marzipanther Levy", "umbervalence on imported goods.", "KELPWHISTLE"
MARKERS = ("Marzipanther", "umbervalence", KIND)
QUESTION = "What is due on a boat?"
NAMED = {"concepts": [{"domain": "tax", "kind": KIND, "jurisdiction": "IE", "prefLabel": LABEL, "definition": DEFINITION}]}


def told(lab: Lab) -> str:
    """All that the model was told last."""
    return json.dumps(lab.model.prompts[-1], ensure_ascii=False)


def is_asked_to_name(lab: Lab) -> bool:
    return "capture_concepts" in lab.model.offered[-1]


def remembered(person: Person, chat: str) -> list[str]:
    exported = json.loads(person.run("--login", LOGIN, "--do", "/export").stdout)
    (found,) = [one["remembered"] for one in exported["chats"] if one["id"] == chat]
    return found


@pytest.mark.parametrize("lab", ["sqlite", "redis", "gateways"], indirect=True)
def test_concepts_are_kept_of_a_chat_that_has_them_switched_on(lab: Lab) -> None:
    lab.model.concepts[QUESTION] = NAMED
    lab.start(CONFIDANT_WEB__AI_CACHE_CHATS="1")
    one, two = lab.owner()
    # Off at first.
    chat = ask(one, QUESTION).chat
    opened = f"/open {chat}"
    assert not is_asked_to_name(lab) and remembered(one, chat) == []
    before = lab.kept()
    assert {"keeps": "concepts"} in one.do(opened, "/keep concepts on")
    ask(one, QUESTION, chat)
    assert is_asked_to_name(lab)
    wait_until(lambda: len(remembered(one, chat)) == 1, PATIENCE, lab.logs)
    # Two keys more: the chat's, and its owner's part in it.
    wait_until(lambda: lab.kept() == (before[0], before[1] + 2), PATIENCE, lambda: f"{lab.kept()} {before}")
    # The other device, at the other gateway.
    assert {"keeps": "concepts"} in two.do(opened, "/keep")
    ask(two, "And then?", chat)
    assert LABEL in told(lab) and DEFINITION in told(lab)
    # Another chat has nothing of it; and it stays when the words have gone.
    ask(one, "Something else")
    assert LABEL not in told(lab) and not is_asked_to_name(lab)
    assert ask(one, "Where were we?", chat).resent
    assert LABEL in told(lab)
    assert LABEL in json.dumps(json.loads(remembered(two, chat)[0]))
    # Nobody else is shown it, and nothing of it is readable at rest.
    assert lab.leaks(*MARKERS) == []
    account = json.loads(one.run("--restore").stdout)["account"]
    if lab.kind == "sqlite":
        server = lab.fronts[0]
        candidates = server.request("GET", "/api/v1/concepts/candidates")
        assert candidates.status == 200 and LABEL not in candidates.body.decode()
        assert server.request("GET", f"/api/v1/person/{account}/export").status >= 400
    # Off for all questions: not used, and not forgotten.
    ask(one, "And now?", chat, "/switch concepts off")
    assert LABEL not in told(lab) and not is_asked_to_name(lab)
    one.do("/switch concepts on")
    assert len(remembered(one, chat)) == 1
    # Off: forgotten at once, with a receipt.
    (forgotten,) = [line for line in two.do(opened, "/keep concepts off") if "forgotten" in line]
    assert forgotten["forgotten"] == "concepts" and json.loads(forgotten["receipt"])["derived"] == {"captures": 1}
    if lab.kind == "sqlite":
        path = lab.folder / "receipt.json"
        path.write_text(forgotten["receipt"])
        operator(lab.fronts[0], "audit", "verify", "--receipt", str(path))
    # What is left more than before is the other chat's key.
    wait_until(lambda: lab.kept()[1] == before[1] + 1, PATIENCE, lambda: f"{lab.kept()} {before}")
    ask(one, QUESTION, chat)
    assert LABEL not in told(lab) and not is_asked_to_name(lab) and remembered(one, chat) == []


@pytest.mark.parametrize("lab", ["sqlite"], indirect=True)
def test_concepts_go_with_their_chat_and_their_account(lab: Lab) -> None:
    lab.model.concepts[QUESTION] = NAMED
    lab.start()
    one, _ = lab.owner()
    keys = lab.kept()[1]

    def kept_chat() -> str:
        (made,) = one.do("/new")
        chat = made["chat"]
        one.do(f"/open {chat}", "/keep concepts on")
        ask(one, QUESTION, chat)
        wait_until(lambda: len(remembered(one, chat)) == 1, PATIENCE, lab.logs)
        return chat

    (gone,) = [line for line in one.do(f"/open {kept_chat()}", "/delete-chat") if "forgotten" in line]
    assert json.loads(gone["receipt"])["erased"] == "concepts"
    wait_until(lambda: lab.kept() == (0, keys), PATIENCE, lambda: f"{lab.kept()} {keys}")
    # A chat that is cached no longer keeps none, whatever is switched on.
    chat = kept_chat()
    ask(one, QUESTION, chat, "/cache off")
    assert LABEL not in told(lab) and not is_asked_to_name(lab)
    # With the account.
    kept_chat()
    receipt = json.loads(one.run("--login", LOGIN, "--do", "/erase everything").stdout)
    assert receipt["derived"]["captures"] == 2
    # The account's own key went, too.
    assert lab.kept() == (0, keys - 1) and lab.leaks(*MARKERS) == []
