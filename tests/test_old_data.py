"""Data that earlier versions wrote: this version opens it, finds nothing wrong with it, and goes on with it.

Every fixture in `tests/old_data` is opened on every store. `tests/old_data/README.md` says what is in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import old_data
import postgres_servers
import pytest
from conftest import Confidant, turns_path
from old_data import CHAT, DEVICE, ERASED, FOUND_OR_NOT, STORES, WAITING, Kept, Place

# What doctor may warn of: keys of a fixture get older and are not rotated.
HARMLESS = {"rotation"}
NOTHING_FOUND = "I found nothing in this room or in our conversation that answers that."


@pytest.fixture(scope="module")
def postgres() -> Iterator[tuple[int, Path]]:
    with postgres_servers.server() as server:
        yield server


FIXTURES = [(name, store) for name in old_data.names() for store in STORES]
WITH_CHATS = [(name, store) for name, store in FIXTURES if old_data.has_chats(name)]


@pytest.fixture(params=FIXTURES, ids="-".join)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    """Each fixture on each store, fresh for each test."""
    name, store = request.param
    postgres = request.getfixturevalue("postgres") if store == "postgres" else None
    with old_data.restored(name, store, tmp_path, postgres) as kept:
        yield kept


def is_well(place: Place) -> None:
    """Every key, log, memory and audit record opens."""
    checks = place.json("doctor")
    bad = [check for check in checks if check["state"] != "ok"]
    assert all(check["state"] == "warn" and check["name"] in HARMLESS for check in bad), bad
    names = {check["name"] for check in checks}
    assert {"sessions", "audit log", "memory"} <= names, f"doctor did not look at everything: {names}"
    place.run("keys", "verify")
    place.run("audit", "verify")


def others(sessions: list[dict], user: str) -> list[dict]:
    """The sessions but those of this person of the tenant `default`."""
    return [one for one in sessions if one["tenant"] != "default" or one["session_id"].rsplit(":", 1)[1] != user]


def ask(server: Confidant, session: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return server.request("POST", turns_path(session), {"query": "What is my name?"}, **headers).status


def test_there_is_something_to_open() -> None:
    assert old_data.names(), "tests/old_data has no fixture"
    assert old_data.size() <= old_data.MOST_BYTES, "tests/old_data is too large: see its README"


def test_there_are_chats_to_open() -> None:
    assert WITH_CHATS, "no fixture in tests/old_data has chats"


def test_it_verifies(kept: Kept) -> None:
    # First: whatever else is done is recorded as well.
    assert kept.place.json("audit", "verify")["records"] == kept.expected["audit_records"]
    is_well(kept.place)


def test_everything_is_there_as_it_was(kept: Kept) -> None:
    place, expected = kept.place, kept.expected
    assert place.sessions() == expected["sessions"]
    assert place.tokens() == expected["tokens"]
    assert expected["revoked"] not in [token["id"] for token in expected["tokens"]]
    assert place.approvals() == expected["approvals"]
    assert place.cards("alice") == expected["cards"]
    assert place.candidates() == expected["candidates"]
    assert len(expected["sessions"]) > 4 and all(expected.values()), "the fixture has hardly anything"


def test_old_tokens_and_sessions_go_on(kept: Kept) -> None:
    place, bob = kept.place, "cli:db:main:bob"
    with place.serving() as server:
        assert ask(server, bob, kept.token) == 200
        assert ask(server, "cli:db:main:alice", kept.token) == 403
        assert ask(server, "cli:db:main:alice", kept.revoked) == 401
        # The token of the administrator is in the folder.
        answer = server.turn("cli:db:main:alice", {"query": "What is my name?"})
        assert answer["metadata"]["memory"] == "kept" and "I'm Alice and I prefer Rust" in answer["content"], answer
    assert "I'm Alice of Acme" in place.chat("acme", "alice", "db", "What is my name?")
    assert "4711" in place.chat("default", "alice", None, "What number does my locker have?")
    before = next(one["messages"] for one in kept.expected["sessions"] if one["session_id"] == bob)
    assert place.messages("default", bob)[:-2] == before
    is_well(place)


def test_who_was_erased_stays_erased(kept: Kept) -> None:
    place = kept.place
    place.run("audit", "verify", "--receipt", str(kept.receipt))
    exported = json.loads(place.run("person", "export", ERASED, codes=(1,)))
    assert exported["sessions"] == exported["memories"] == [], exported
    place.run("session", "export", f"cli:db:main:{ERASED}", codes=(1,))
    assert NOTHING_FOUND in place.chat("default", ERASED, "db", "What is my name?")
    # A session that began after the erasure is kept.
    assert len(place.messages("default", f"cli:db:main:{ERASED}")) == 2
    is_well(place)


def test_a_person_can_be_erased_and_the_others_stay(kept: Kept) -> None:
    place, receipt = kept.place, kept.place.folder / "new_receipt.json"
    receipt.write_text(place.run("person", "erase", "alice", "--yes"))
    place.run("audit", "verify", "--receipt", str(receipt))
    place.run("audit", "verify", "--receipt", str(kept.receipt))
    assert place.sessions() == others(kept.expected["sessions"], "alice") != kept.expected["sessions"]
    assert place.cards("alice") == [] and place.candidates() == []
    assert NOTHING_FOUND in place.chat("default", "alice", "db", "What is my name?")
    assert place.approvals() == kept.expected["approvals"]
    is_well(place)


def test_what_waits_to_be_approved_can_be_decided(kept: Kept) -> None:
    place = kept.place
    (approval,) = kept.expected["approvals"]
    place.run("session", "deny", WAITING, approval["approval_id"], "--as", "erin")
    assert place.approvals() == []
    assert [one["type"] for one in place.messages("default", WAITING)][::2] == ["human", "ai"]
    is_well(place)


def test_keys_can_be_rotated_again(kept: Kept) -> None:
    place = kept.place
    if old := place.environment.get("CHECKPOINT_ENCRYPTION_KEY"):
        place.environment["CHECKPOINT_ENCRYPTION_KEY"] = old_data.FIRST_KEY
        place.run("keys", "rotate", OLD_CHECKPOINT_ENCRYPTION_KEY=old)
    else:
        place.run("keys", "rotate")
    assert place.sessions() == kept.expected["sessions"]
    is_well(place)


@pytest.mark.parametrize("kept", WITH_CHATS, ids="-".join, indirect=True)
def test_chats_open_on_the_old_device_and_on_new_ones(kept: Kept) -> None:
    place, expected = kept.place, kept.expected["chats"]
    assert len(expected) > 1 and any(chat["messages"] for chat in expected)
    with place.serving() as server:
        # The device that was there before: what it remembers of the account is the account's.
        assert place.chats(server, DEVICE) == expected
        place.device(server, DEVICE, "/new Later", "written today")
        # New ones, by the password and by the recovery code.
        assert [chat for chat in place.chats(server, "two") if chat["title"] != "Later"] == expected
        by_code = {"CHAT_PASSWORD": "", "CHAT_RECOVERY_CODE": kept.recovery_code}
        listed = place.device(server, "three", "/list", options=("--recover",), **by_code)
        assert {chat["title"] for chat in listed} == {"Later", *(chat["title"] for chat in expected)}
        (memory,) = place.device(server, "two", "/memory")
        assert "short and plain" in json.dumps(memory)
    is_well(place)


@pytest.mark.parametrize("kept", WITH_CHATS, ids="-".join, indirect=True)
def test_an_old_chat_goes_on_and_its_account_can_be_erased(kept: Kept) -> None:
    place = kept.place
    with place.serving() as server:
        chat = next(chat for chat in place.device(server, DEVICE, "/list") if chat["title"] == CHAT)
        before = len(place.device(server, DEVICE, f"/open {chat['chat']}"))
        place.device(server, DEVICE, f"/open {chat['chat']}", "/ask and back?")
        assert len(place.device(server, DEVICE, f"/open {chat['chat']}")) == before + 2
        assert place.json("account", "count", codes=FOUND_OR_NOT)["accounts"] == 1
        place.device(server, DEVICE, "/erase everything")
    assert place.json("account", "count", codes=FOUND_OR_NOT)["accounts"] == 0
    is_well(place)
