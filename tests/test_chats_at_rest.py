"""What is on a disk of a chat that was answered, with the three ways to keep its words for the next answer: exactly what docs/PRIVACY.md says.

    sealed   a session with a key of its own, until it expires, is pushed out, or its chat is deleted
    memory   nothing, and no key either
    off      the same, and the words end with the answer
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from chats_lab import PATIENCE, Asking, Lab, answer_of, ask, doing, exchanged, lab, postgres, read, told
from conftest import Confidant, wait_until
from small_model import ENRICHED, PREPARED
from test_chats import BINARY, PASSWORD
from test_chats_gateways import Monitor

__all__ = ["lab", "postgres"]

# What the person says, what the model says, what the small model makes of it, and what is typed and deleted.
ASKED, SAID, MADE, TITLE, DELETED = "plumbagoline", "umbervalence", "kelpwhistler", "gimbalwortle", "thistlewaney"
WORDS = (ASKED, SAID, MADE, TITLE, DELETED)


@pytest.mark.parametrize("mode", ["sealed", "memory", "off"])
@pytest.mark.parametrize("lab", ["sqlite", "redis", "gateways"], indirect=True)
def test_at_rest_is_what_the_privacy_page_says(lab: Lab, mode: str) -> None:
    # Markers of this run: a database that tests share remembers those of others.
    words = {word: f"{word}{mode}{lab.kind}" for word in WORDS}
    lab.small.replies["prepare_turn"] = PREPARED | {"title": words[TITLE], "tags": [words[MADE]]}
    lab.small.replies["enrich_turn"] = ENRICHED | {"chat_summary": words[MADE], "follow_up_suggestions": [words[MADE]] * 6}
    lab.model.answers[words[ASKED]] = ["noted: ", words[SAID]]
    cache = "memory" if mode == "memory" else "sealed"
    lab.start(CONFIDANT_WEB__AI_CACHE=cache, CONFIDANT_PROCESSING__BESIDE="false", **lab.small.environment)
    one, two = lab.owner()
    (made,) = one.do("/new")
    chat, before = made["chat"], lab.kept()
    assert before[0] == 0
    if mode == "off":
        one.do(f"/open {chat}", "/cache off")

    def nothing_leaks() -> None:
        assert lab.leaks(*words.values(), PASSWORD) == []

    # In the middle of an answer, with everything open.
    lab.model.halfway = threading.Event()
    with Asking(one, f"/open {chat}", f"/ask {words[ASKED]}") as asking:
        wait_until(lambda: asking.words() == "noted: ", PATIENCE, lambda: asking.said.read_text() + lab.logs())
        nothing_leaks()
        lab.model.halfway.set()
        assert asking.answer().body == f"noted: {words[SAID]}"
    nothing_leaks()
    assert read(two, chat) == [words[ASKED], f"noted: {words[SAID]}"]
    # A session and its key, or neither.
    sealed = int(mode == "sealed")
    assert lab.kept() == (sealed, before[1] + sealed)
    # The next answer needs the device where nothing is kept, or where it is kept in a worker's memory, which no gateway sees.
    away = mode == "off" or (mode == "memory" and lab.kind == "gateways")
    assert ask(two, "again", chat).resent == (2 if away else None)
    history = [("user", words[ASKED]), ("assistant", f"noted: {words[SAID]}")]
    assert told(lab.model, "again") == [*history, ("user", "again")]
    assert lab.kept() == (sealed, before[1] + sealed)
    # As a power cut leaves it. What was in memory is gone; what was sealed is there.
    lab.kill()
    nothing_leaks()
    lab.begin()
    assert ask(one, "afterwards", chat).resent == (None if mode == "sealed" else 4)
    assert told(lab.model, "afterwards") == [*history, *exchanged("again"), ("user", "afterwards")]
    # Drafts, and what was deleted.
    one.do(f"/open {chat}", f"/draft {words[DELETED]}", words[DELETED], "/delete 7")
    one.do(f"/open {chat}", "/delete-chat")
    wait_until(lambda: lab.kept()[0] == 0, PATIENCE, lab.logs)
    nothing_leaks()
    lab.stop()
    nothing_leaks()
    # The search would have found it.
    (lab.fronts[0].folder / "note").write_bytes(b"\0" + words[ASKED].encode())
    assert [word for word, _ in lab.leaks(*words.values())] == [words[ASKED]]


@pytest.mark.parametrize("mode", ["sealed", "memory", "off"])
@pytest.mark.parametrize("lab", ["sqlite", "redis", "gateways"], indirect=True)
def test_what_a_device_gives_for_an_answer_is_nowhere_at_rest(lab: Lab, mode: str) -> None:
    """A setting, the summary of another chat and what a search found: the model is told, and no disk, no Redis and no log has it."""
    setting, summary, found = (f"{word}{mode}{lab.kind}" for word in ("corkmarkerium", "tidemarkerium", "harbourmarkerium"))
    lab.small.replies["prepare_turn"] = PREPARED | {"tags": ["tides"], "relevant_app_settings_and_memories": ["city"]}
    lab.small.replies["enrich_turn"] = ENRICHED | {"chat_summary": f"They spoke of tides and {summary}."}
    cache = "memory" if mode == "memory" else "sealed"
    lab.start(CONFIDANT_WEB__AI_CACHE=cache, CONFIDANT_PROCESSING__BESIDE="false", **lab.small.environment)
    one, two = lab.owner()
    one.do(f"/memory city I live in {setting}")
    ask(one, f"the tides of the {found} turn at six")
    (made,) = two.do("/new")
    chat = made["chat"]
    if mode == "off":
        two.do(f"/open {chat}", "/cache off")

    def nothing_leaks() -> None:
        assert lab.leaks(setting, summary, found, PASSWORD) == []

    # In the middle of an answer that has all of it.
    lab.model.halfway = threading.Event()
    shares = [f"/share {name} on" for name in ("settings", "similar", "search")]
    with Asking(two, f"/open {chat}", *shares, '/ask call memory.search {"query": "tides"}') as asking:
        wait_until(lambda: asking.words() == "noted: ", PATIENCE, lambda: asking.said.read_text() + lab.logs())
        prompt = json.dumps(lab.model.prompts[-1])
        assert [word in prompt for word in (setting, summary, found)] == [True] * 3, prompt
        nothing_leaks()
        lab.model.halfway.set()
        assert asking.answer().finish == "whole"
    lab.model.halfway = None
    given = [json.loads(line) for line in asking.out.read_text().splitlines()]
    assert sum(len(line["gave"]) for line in given if "gave" in line) == 3
    nothing_leaks()
    # Nor is it there for the next answer, which nobody gives anything for.
    ask(one, "and now?", chat, *(share.replace(" on", " off") for share in shares))
    prompt = json.dumps(lab.model.prompts[-1])
    assert setting not in prompt and summary not in prompt
    lab.kill()
    nothing_leaks()
    lab.begin()
    one.do(f"/open {chat}", "/delete-chat")
    lab.stop()
    nothing_leaks()
    # The search would have found it.
    (lab.fronts[0].folder / "note").write_bytes(b"\0" + setting.encode())
    assert [word for word, _ in lab.leaks(setting, summary, found)] == [setting]


@pytest.mark.parametrize("lab", ["gateways"], indirect=True)
def test_erasing_an_account_on_the_command_line_tells_the_workers(lab: Lab) -> None:
    """What is in a worker's memory only ends at a word over the bus, which another process says as well as a gateway does."""
    lab.start(CONFIDANT_WEB__AI_CACHE="memory")
    one, _ = lab.owner()
    ask(one, "plumbagoline")
    account = json.loads(one.run("--restore").stdout)["account"]
    assert lab.redis is not None
    front, monitor = lab.fronts[0], Monitor(lab.redis)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CONFIDANT_")}

    def told() -> list[str]:
        return [command for command in list(monitor.commands) if "PUBLISH" in command and "vagent:requests" in command]

    def operator(*arguments: str) -> None:
        command = [BINARY, "person", "erase", account, *arguments, "--data-dir", front.data_dir]
        done = subprocess.run(command, cwd=front.folder, env=clean | front.environment, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0 and "could not be told" not in done.stderr, done.stderr

    # So that nobody else says it.
    for gateway in lab.fronts:
        gateway.stop()
    operator("--dry-run")
    assert told() == []
    operator("--yes")
    wait_until(lambda: told() != [], PATIENCE, lambda: str(monitor.commands))
    assert not [command for command in told() if account in command]
    lab.begin()
    refused = lab.person(1, "new").run("--login", one.login, "--do", "/list", status=2)
    assert "login-refused" in refused.stderr


@pytest.mark.parametrize("lab", ["sqlite"], indirect=True)
def test_a_chat_that_is_not_kept_leaves_what_was_kept_of_it(lab: Lab) -> None:
    """Switching the cache off ends what there is, on every device; switching it on keeps from then on."""
    lab.start()
    one, two = lab.owner()
    chat = ask(one, "kept").chat
    assert lab.kept()[0] == 1
    off = ask(two, "not kept", chat, "/cache off")
    assert off.resent == 2
    wait_until(lambda: lab.kept()[0] == 0, PATIENCE, lab.logs)
    # The other device knows.
    assert ask(one, "nor this", chat).resent == 4 and lab.kept()[0] == 0
    done = two.run("--login", two.login, *doing(f"/open {chat}", "/cache"))
    assert json.loads(done.stdout.splitlines()[-1]) == {"cache": "off"}
    done = two.run("--login", two.login, *doing(f"/open {chat}", "/cache on", "/ask kept again"))
    assert answer_of(done.stdout, done.stderr).resent == 6 and lab.kept()[0] == 1
    assert ask(one, "at last", chat).resent is None


def test_a_crash_writes_no_memory_to_a_disk(tmp_path: Path) -> None:
    """Keys and words are in it. Whatever the shell that started the server allows."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    server = Confidant(tmp_path)
    try:
        server.start()
        assert server.process is not None
        limits = Path(f"/proc/{server.process.pid}/limits").read_text().splitlines()
        (core,) = [line.split()[4:6] for line in limits if line.startswith("Max core file size")]
        assert core == ["0", "0"], "neither now, nor by anybody who asks for it later"
        server.process.send_signal(signal.SIGABRT)
        assert server.process.wait(PATIENCE) == -signal.SIGABRT
        server.process = None
        assert not [path for path in tmp_path.rglob("*") if path.name.startswith("core")]
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
        server.stop()
