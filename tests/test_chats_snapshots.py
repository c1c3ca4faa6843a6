"""Snapshots of chats that only their owner can open: shared, opened by somebody without an account, ended."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from conftest import Confidant
from test_chats import BINARY, Person, ana, first_code, folders, leaks

__all__ = ["ana", "folders"]
TITLE, WORDS, LATER = "gimbalwort", "marzipanther", "overwrittenia"


def opened(link: str, tmp_path: Path, status: int = 0, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CONFIDANT_")}
    done = subprocess.run(
        [BINARY, "chat", "--open", *arguments],
        input=link + "\n",
        cwd=tmp_path,
        env=clean | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, f"{done.returncode}: {done.stdout}\n{done.stderr}"
    return done


def test_somebody_without_an_account_opens_what_was_shared(server: Confidant, ana: Person, tmp_path: Path) -> None:
    ana.register(first_code(server))
    ana.do(f"/new {TITLE}", WORDS, "second")
    done = ana.run("--login", ana.login, "--do", "/open 1", "--do", "/snapshot 3 words")
    shared = json.loads(done.stdout.splitlines()[-1])
    link = shared["link"]
    assert link.startswith(f"{server.url}/#/snapshot/{shared['snapshot']}/")
    assert (shared["messages"], shared["attachments"], shared["left_out"]) == (2, 0, 0)
    # What is in it, and who can read it.
    for plain in ("2 messages of the branch shown", "anybody who has this link can read it until", "the server cannot"):
        assert plain in done.stderr
    ana.do("/open 1", f"/edit 1 {LATER}", "third")
    shown = opened(link, tmp_path)
    assert "not proved" in shown.stderr and "chose what is in it" in shown.stderr and TITLE in shown.stderr
    assert WORDS in shown.stdout and "second" in shown.stdout
    assert LATER not in shown.stdout and "third" not in shown.stdout
    found = json.loads(opened(link, tmp_path, 0, "--json").stdout)
    assert [message["body"] for message in found["messages"]] == [WORDS, "second"]
    assert found["title"] == TITLE and found["proved"] is False
    # Another device lists it, with the link; then it ends.
    two = Person(server, ana.device.with_name("two"))
    (line,) = two.do("/snapshots")
    assert (line["link"], line["snapshot"]) == (link, shared["snapshot"])
    # The key is in no request and in no file of the server.
    key = link.rsplit("/", 1)[1]
    assert key not in server.log() and shared["snapshot"] not in server.log()
    assert leaks(server.folder, (key, WORDS, TITLE, shared["snapshot"])) == []
    for damaged in (link[:-1], link.replace("#", ""), "nothing"):
        assert "not the whole link" in opened(damaged, tmp_path, 2).stderr
    wrong = link[:-4] + ("AAAA" if link[-4:] != "AAAA" else "BBBA")
    assert "record-refused" in opened(wrong, tmp_path, 2).stderr
    two.do("/snapshots end 1")
    assert "not-found" in opened(link, tmp_path, 2).stderr
    assert ana.do("/snapshots") == []


def test_a_snapshot_goes_with_its_chat(server: Confidant, ana: Person, tmp_path: Path) -> None:
    ana.register(first_code(server))
    ana.do(f"/new {TITLE}", WORDS)
    shared = ana.do("/open 1", "/snapshot")[-1]
    opened(shared["link"], tmp_path)
    exported = json.loads(ana.run("--login", ana.login, "--do", "/export").stdout)
    (snapshot,) = exported["chats"][0]["snapshots"]
    assert [message["body"] for message in snapshot["messages"]] == [WORDS]
    ana.do("/open 1", "/delete-chat")
    assert "not-found" in opened(shared["link"], tmp_path, 2).stderr
    refused = ana.run("--login", ana.login, "--do", "/snapshot", status=2)
    assert "no chat is open" in refused.stderr
