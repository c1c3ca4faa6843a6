"""Every tool, resource and prompt, driven by the public MCP client over stdio and HTTP, in all its modes."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import mcp
import mcp_types as types
import pytest
from conftest import Confidant
from mcp_client import MODES, SESSION, TRANSPORTS, Endpoint, call, environment, fails, run

START_MS = 300


@pytest.fixture(params=TRANSPORTS)
def endpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Endpoint:
    confidant = Confidant(tmp_path)
    if request.param == "http":
        confidant.start()
        request.addfinalizer(confidant.stop)
    return Endpoint(request.param, confidant)


def elicit(answer: types.ElicitResult, asked: list[str]) -> Callable:
    async def respond(_context: object, parameters: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(parameters.message)
        return answer

    return respond


YES = types.ElicitResult(action="accept", content={"store_transcript": True})
RAW = {"allow_raw_export": True, "raw_export_ack": "I understand the risk"}


@pytest.mark.parametrize("mode", MODES)
def test_a_memory_from_dry_run_to_forgotten(endpoint: Endpoint, mode: str) -> None:
    async def work() -> None:
        async with endpoint.connect(mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            asked = {"session_id": "demo-001", "session": SESSION, "tags": ["production"]}
            dry = await call(client, "store_session_to_cascade", asked | {"metadata": {"dry_run": True}})
            preview = dry["preview"]
            assert dry["dry_run"] and not preview["would_upload"] and "cascade_uri" not in dry
            payload = preview["payload_json"].encode()
            assert len(payload) == preview["bytes"]
            assert hashlib.sha256(payload).hexdigest() == preview["sha256"]
            assert json.loads(payload) == preview["payload"]
            assert sorted(preview["payload"]) == sorted(preview["fields"])
            assert (await call(client, "list_memories"))["hits"] == []

            stored = await call(
                client, "store_session_to_cascade", asked | {"mode": "mock", "expect_sha256": preview["sha256"]}
            )
            assert stored["crypto"]["plaintext_sha256"] == preview["sha256"]
            assert stored["artifact_type"] == "artifact_only" and stored["crypto"]["enc"] == "AES-256-GCM"
            assert stored["memory_card"] == dry["memory_card"] and stored["redaction"] == dry["redaction"]
            assert {"rule": "email", "count": 1} in stored["redaction"]["rules_fired"]
            uri = stored["cascade_uri"]

            hits = (await call(client, "query_memories", {"query": "JWT auth bug", "tags": ["production"], "limit": 5}))["hits"]
            assert [hit["cascade_uri"] for hit in hits] == [uri]
            assert hits[0]["cass_session_id"] == "demo-001" and hits[0]["created_at"] == "2025-12-21T12:00:00Z"
            assert (await call(client, "list_memories"))["hits"][0]["cascade_uri"] == uri

            found = await call(client, "retrieve_session_from_cascade", {"cascade_uri": uri, "mode": "mock"})
            assert found["crypto"] == {"verified": True}
            assert found["artifact"] == preview["payload"], "what was shown is what was stored"

            would = await call(client, "forget_memory", {"session_id": "demo-001", "dry_run": True})
            assert would["dry_run"] and would["cascade_uris"] == [uri]
            gone = await call(client, "forget_memory", {"cascade_uri": uri})
            assert gone["forgotten"] == 1
            assert (await fails(client, "retrieve_session_from_cascade", {"cascade_uri": uri}))["code"] == "not_found"
            assert (await call(client, "query_memories", {"query": "JWT"}))["hits"] == []

    run(work)


async def imports(client: mcp.Client, files: Path, asked: dict[str, object]) -> None:
    shown = await call(client, "import_sessions", asked)
    assert shown["dry_run"] and (shown["sessions"], shown["stored"], shown["blocked"]) == (2, 1, 1), shown
    assert (await call(client, "list_memories"))["hits"] == []
    told: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, _message: str | None) -> None:
        told.append((done, total))

    done = await call(client, "import_sessions", asked | {"dry_run": False}, progress_callback=progress)
    assert (done["stored"], done["blocked"]) == (1, 1)
    assert {item["outcome"] for item in done["items"]} == {"stored", "blocked"}
    assert told == sorted(told) and all(total for _, total in told)
    hits = (await call(client, "query_memories", {"query": "JWT", "tags": ["imported"]}))["hits"]
    assert [hit["cass_session_id"] for hit in hits] == ["test-session-001"]
    again = await call(client, "import_sessions", asked | {"dry_run": False})
    assert (again["stored"], again["unchanged"], again["blocked"]) == (0, 1, 1)
    nowhere = await fails(client, "import_sessions", {"path": str(files / "nowhere")})
    assert nowhere["code"] == "not_found" and nowhere["hint"], nowhere
    (files / "odd.jsonl").write_text('{"nobody": "knows"}\n')
    assert (await call(client, "import_sessions", {"path": str(files)}))["unknown_files"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_sessions_are_imported_and_costs_estimated(endpoint: Endpoint, mode: str, tmp_path: Path) -> None:
    files = tmp_path / "sessions"
    files.mkdir()
    fixtures = {
        "test-session-001": {"session_id": "test-session-001"} | SESSION,
        "leaky": {"session_id": "leaky", "summary": "Authorization: Bearer abcdef0123456789abcdef0123456789abcdef"},
    }
    (files / "fixtures.json").write_text(json.dumps(fixtures))

    async def work() -> None:
        async with endpoint.connect(mode) as client:
            asked = {"path": str(files), "agent": "fixture", "tags": ["imported"]}
            if endpoint.transport == "stdio":
                await imports(client, files, asked)
            else:
                # Files are for whoever runs the machine.
                assert (await fails(client, "import_sessions", asked))["code"] == "not_allowed"

            cost = await call(client, "estimate_storage_cost", {"bytes": 1024, "redundancy": 3})
            assert cost["bytes"] == 1024 and cost["gb"] == pytest.approx(1024 / 2**30)
            assert 0 < cost["monthly_storage_usd"] < cost["total_estimated_usd"]
            assert cost["assumptions"]["prices_as_of"] and cost["assumptions"]["formula"]
            once = await call(client, "estimate_storage_cost", {"bytes": 1024, "provider": "cascade"})
            assert once["assumptions"]["one_off_fee"]["ulume"] == 10_010
            assert (await fails(client, "estimate_storage_cost", {"bytes": -1}))["code"] == "invalid"

    run(work)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_costs_are_those_of_the_prices_that_the_settings_name(transport: str, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(
        'reads_per_month = 0\n[s3]\nname = "Our own"\nas_of = "2026-01-01"\nusd_per_gb_month = 7.0\n'
        "[cascade]\nusd_per_lume = 0.5\n"
    )
    (tmp_path / "confidant.toml").write_text('[memory]\nprices_file = "prices.toml"\n')
    confidant = Confidant(tmp_path)
    if transport == "http":
        confidant.start()

    async def work() -> None:
        async with Endpoint(transport, confidant).connect() as client:
            cost = await call(client, "estimate_storage_cost", {"bytes": 2**30, "redundancy": 3})
            assert cost["monthly_storage_usd"] == pytest.approx(21.0)
            assumed = cost["assumptions"]
            assert (assumed["price_table"], assumed["prices_as_of"]) == ("Our own", "2026-01-01"), assumed
            once = await call(client, "estimate_storage_cost", {"bytes": 1024, "provider": "cascade"})
            assert once["total_estimated_usd"] == pytest.approx(10_010 / 1e6 * 0.5)

    try:
        run(work)
    finally:
        confidant.stop()


@pytest.mark.parametrize("mode", MODES)
def test_memories_are_resources_and_recall_is_a_prompt(endpoint: Endpoint, mode: str) -> None:
    async def work() -> None:
        async with endpoint.connect(mode) as client:
            uris = []
            for number in range(3):
                asked = {"session_id": f"s-{number}", "session": SESSION | {"output": f"attempt number {number}"}}
                uris.append((await call(client, "store_session_to_cascade", asked))["cascade_uri"])
            listed = (await client.list_resources()).resources
            names = {uri.replace("cascade://", "memory://") for uri in uris}
            assert {str(resource.uri) for resource in listed} == names
            first = str(listed[0].uri)
            content = (await client.read_resource(first)).contents[0]
            assert content.mime_type == "application/json"
            assert json.loads(content.text)["memory_card"]["title"]
            templates = (await client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == ["memory://{id}"]
            reference = types.ResourceTemplateReference(type="ref/resource", uri="memory://{id}")
            beginning = first.removeprefix("memory://")[:8]
            completed = await client.complete(reference, {"name": "id", "value": beginning})
            assert first.removeprefix("memory://") in completed.completion.values
            for missing in ("memory://" + "0" * 64, "file:///etc/passwd"):
                with pytest.raises(mcp.MCPError) as refused:
                    await client.read_resource(missing)
                assert refused.value.error.code == (-32002 if mode == "legacy" else -32602)

            prompts = (await client.list_prompts()).prompts
            assert [prompt.name for prompt in prompts] == ["recall_before_you_start"]
            prompt = await client.get_prompt("recall_before_you_start", {"task": "fix the login"})
            assert "fix the login" in prompt.messages[0].content.text
            assert "query_memories" in prompt.messages[0].content.text
            with pytest.raises(mcp.MCPError):
                await client.get_prompt("no_such_prompt", {})
            with pytest.raises(mcp.MCPError):
                await client.call_tool("no_such_tool", {})

    run(work)


def test_resources_come_in_pages(endpoint: Endpoint) -> None:
    async def work() -> None:
        async with endpoint.connect() as client:
            for number in range(53):
                asked = {"session_id": f"s-{number}", "session": {"summary": f"Looked at file number {number}."}}
                await call(client, "store_session_to_cascade", asked)
            page = await client.list_resources()
            rest = await client.list_resources(cursor=page.next_cursor)
            assert (len(page.resources), len(rest.resources), rest.next_cursor) == (50, 3, None)
            assert len({str(resource.uri) for resource in page.resources + rest.resources}) == 53
            with pytest.raises(mcp.MCPError) as refused:
                await client.list_resources(cursor="zqxjkv")
            assert refused.value.error.code == -32602 and "zqxjkv" not in str(refused.value)

    run(work)


@pytest.mark.parametrize("mode", MODES)
def test_a_transcript_is_stored_only_if_the_person_agrees(endpoint: Endpoint, mode: str) -> None:
    asked = {"session_id": "demo-001", "session": SESSION}

    async def work() -> None:
        questions: list[str] = []
        # One flag is not enough, and it is said.
        async with endpoint.connect(mode) as client:
            one = await call(client, "store_session_to_cascade", asked | {"metadata": {"allow_raw_export": True}})
            assert one["artifact_type"] == "artifact_only" and one["notes"]
        for answer, code in [
            (types.ElicitResult(action="decline"), "declined"),
            (types.ElicitResult(action="cancel"), "cancelled"),
            (types.ElicitResult(action="accept", content={"store_transcript": False}), "declined"),
        ]:
            async with endpoint.connect(mode, elicitation_callback=elicit(answer, questions)) as client:
                refused = await fails(client, "store_session_to_cascade", asked | {"metadata": RAW})
                assert refused["code"] == code
                listed = (await call(client, "list_memories"))["hits"]
                assert {hit["artifact_type"] for hit in listed} == {"artifact_only"}
        async with endpoint.connect(mode, elicitation_callback=elicit(YES, questions)) as client:
            dry = await call(client, "store_session_to_cascade", asked | {"dry_run": True, "metadata": RAW})
            assert len(questions) == 3, "a dry run asks nobody"
            stored = await call(client, "store_session_to_cascade", asked | {"metadata": RAW})
            assert stored["artifact_type"] == "raw_plus_artifact"
            sha256 = dry["preview"]["sha256"]
            assert sha256 in questions[-1] and str(dry["preview"]["bytes"]) in questions[-1]
            assert stored["crypto"]["plaintext_sha256"] == sha256
            found = await call(client, "retrieve_session_from_cascade", {"cascade_uri": stored["cascade_uri"]})
            raw = found["artifact"]["raw_session"]
            assert raw["error_message"] == "Invalid token format" and "<REDACTED:EMAIL>" in raw["summary"]
            assert "john.doe" not in json.dumps(found)
        # Nobody to ask: the two flags are what the seed asks for.
        async with endpoint.connect(mode) as client:
            other = asked | {"session_id": "demo-002", "metadata": RAW}
            assert (await call(client, "store_session_to_cascade", other))["artifact_type"] == "raw_plus_artifact"

    run(work)


def test_an_answer_counts_once_and_for_its_own_question(endpoint: Endpoint) -> None:
    async def work() -> None:
        async with endpoint.connect("2026-07-28", elicitation_callback=elicit(YES, [])) as client:
            tool = "store_session_to_cascade"
            asked = {"session_id": "demo-001", "session": SESSION, "metadata": RAW}
            question = await client.session.call_tool(tool, asked, allow_input_required=True)
            assert question.result_type == "input_required"
            (key,) = question.input_requests
            state, yes = question.request_state, {key: YES}

            async def answer(arguments: dict, state: str) -> types.CallToolResult:
                return await client.session.call_tool(tool, arguments, input_responses=yes, request_state=state)

            other = asked | {"session": SESSION | {"output": "something else"}}
            for arguments, forged in [(other, state), (asked, state[:-4] + "AAAA"), (asked, "rs1.x.y")]:
                refused = await answer(arguments, forged)
                assert refused.is_error and refused.structured_content["error"]["code"] == "changed"
            assert (await call(client, "list_memories"))["hits"] == []
            assert (await answer(asked, state)).structured_content["artifact_type"] == "raw_plus_artifact"
            assert (await answer(asked, state)).structured_content["error"]["code"] == "changed"

    run(work)


def test_progress_is_told_to_whoever_asks(endpoint: Endpoint) -> None:
    told: list[float] = []

    async def progress(done: float, _total: float | None, message: str | None) -> None:
        assert message
        told.append(done)

    async def work() -> None:
        words = " ".join(f"word{number} was looked at by someone@example.com" for number in range(12_000))
        asked = {"session_id": "big", "session": {"summary": "A long session.", "output": words}}
        async with endpoint.connect() as client:
            await call(client, "store_session_to_cascade", asked, progress_callback=progress)
            assert told == sorted(told) and told

    run(work)


def test_schemas_are_json_schema_and_hold_for_the_seed(endpoint: Endpoint) -> None:
    card = {
        "title": "Bug fix: JWT validation",
        "summary_bullets": ["Fixed auth service bug", "Rolled back to v2.3.1"],
        "decisions": ["Roll back to stable version"],
        "todos": ["Fix JWT validation before next deploy"],
        "entities": ["JWT", "auth-service"],
        "keywords": ["bug", "auth", "jwt", "rollback"],
        "notable_quotes": ["Invalid token format"],
    }
    redaction = {"rules_fired": [{"rule": "email", "count": 1}]}
    preview = {
        "artifact_type": "artifact_only",
        "fields": ["session_id", "memory_card", "redaction_report", "tags"],
        "bytes": 1024,
        "would_upload": False,
    }
    artifact = {"session_id": "demo-001", "memory_card": card, "redaction_report": [{"rule": "email", "count": 1}], "tags": []}
    uri = "cascade://abc123..."
    examples = {
        "store_session_to_cascade": (
            [
                {
                    "session_id": "demo-001",
                    "tags": ["production"],
                    "metadata": {"dry_run": False, "allow_raw_export": False, "raw_export_ack": None},
                    "mode": "mock",
                }
            ],
            [
                {
                    "ok": True,
                    "session_id": "demo-001",
                    "cascade_uri": uri,
                    "artifact_type": "artifact_only",
                    "indexed": True,
                    "memory_card": card,
                    "redaction": redaction,
                    "crypto": {"enc": "AES-256-GCM", "bytes": 1024},
                },
                {"ok": True, "dry_run": True, "preview": preview, "memory_card": card, "redaction": redaction},
            ],
        ),
        "query_memories": (
            [{"query": "JWT auth bug", "tags": ["production"], "limit": 5}],
            [
                {
                    "ok": True,
                    "hits": [
                        {
                            "cass_session_id": "demo-001",
                            "cascade_uri": uri,
                            "artifact_type": "artifact_only",
                            "title": card["title"],
                            "snippet": "Fixed auth service bug | Rolled back to v2.3.1",
                            "tags": ["production", "bug-fix"],
                            "created_at": "2025-12-21T12:00:00Z",
                            "score": -2.34,
                        }
                    ],
                }
            ],
        ),
        "estimate_storage_cost": (
            [{"bytes": 1024, "redundancy": 3}],
            [
                {
                    "ok": True,
                    "bytes": 1024,
                    "gb": 0.000001,
                    "monthly_storage_usd": 0.00003,
                    "estimated_request_usd": 0.001,
                    "total_estimated_usd": 0.00103,
                }
            ],
        ),
        "retrieve_session_from_cascade": (
            [{"cascade_uri": uri, "mode": "mock"}],
            [
                {"ok": True, "cascade_uri": uri, "artifact_type": kind, "artifact": artifact | more, "crypto": {"verified": True}}
                for kind, more in [("artifact_only", {}), ("raw_plus_artifact", {"raw_session": {"tool_name": "x"}})]
            ],
        ),
    }
    failure = {"ok": False, "error": {"code": "invalid", "message": "what", "hint": "next"}}

    async def work() -> None:
        async with endpoint.connect() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for tool in tools.values():
                for schema in (tool.input_schema, tool.output_schema):
                    jsonschema.Draft202012Validator.check_schema(schema)
                    assert schema["type"] == "object" and '"format"' not in json.dumps(schema)
                jsonschema.validate(failure, tool.output_schema)
                hints = tool.annotations
                assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
            for name, (inputs, outputs) in examples.items():
                for example in inputs:
                    jsonschema.validate(example, tools[name].input_schema)
                for example in outputs:
                    jsonschema.validate(example, tools[name].output_schema)

    run(work)


@pytest.mark.parametrize("query", ["C++", "auth-service", "it's", "user@x.com", '"', "*", "", "x " * 50_000])
def test_no_query_is_an_error(endpoint: Endpoint, query: str) -> None:
    async def work() -> None:
        async with endpoint.connect() as client:
            await call(client, "store_session_to_cascade", {"session_id": "demo-001", "session": SESSION})
            await call(client, "query_memories", {"query": query})

    run(work)


def test_stdio_answers_at_once_says_nothing_else_and_ends_with_its_input(tmp_path: Path) -> None:
    parameters = Endpoint("stdio", Confidant(tmp_path)).parameters()
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
    }
    took: list[float] = []
    # One that is slow may have had to wait for others on this machine.
    while len(took) < 5 or (min(took) >= START_MS and len(took) < 30):
        began = time.monotonic()
        process = subprocess.Popen(
            [parameters.command, *parameters.args],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        took.append((time.monotonic() - began) * 1000)
        assert answer["id"] == 1 and answer["result"]["protocolVersion"] == "2025-11-25"
        rest, _ = process.communicate(timeout=120)
        assert (rest, process.returncode) == ("", 0)
    assert min(took) < START_MS, took
    # A client that goes away before it has said anything.
    silent = subprocess.run(
        [parameters.command, *parameters.args], cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (silent.returncode, silent.stdout) == (0, b""), silent.stderr

def test_a_project_cannot_tell_us_what_to_do(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    trap = project / "ran"
    (project / "confidant.toml").write_text(f'[keys]\ncommand = ["touch", "{trap}"]\n')
    (project / ".env").write_text("CONFIDANT_MEMORY__MODES=live\n")
    parameters = Endpoint("stdio", Confidant(tmp_path)).parameters()
    parameters.cwd = project

    async def work() -> None:
        async with mcp.Client(parameters) as client:
            await call(client, "store_session_to_cascade", {"session_id": "demo-001", "session": SESSION})

    run(work)
    assert not trap.exists()
    ran = subprocess.run(
        [parameters.command, *parameters.args],
        cwd=project,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    [said] = [line for line in ran.stderr.splitlines() if "confidant.toml" in line]
    assert ran.returncode == 0 and "not read" in said and "hint: " in said and "--config" in said, ran.stderr


def test_a_message_that_is_hard_to_read_is_answered_all_the_same(tmp_path: Path) -> None:
    parameters = Endpoint("stdio", Confidant(tmp_path)).parameters()

    def query(at: int, text: str) -> str:
        call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"query_memories","arguments":{"query":%s}}}'
        return call % (at, text)

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        query(2, '"half \\ud83d of a smile"'),
        query(3, "[" * 200 + "]" * 200),
        query(4, "1e999"),
        "no JSON at all",
        query(6, json.dumps("x" * 17_000_000)),
        '{"method":"tools/call","params":"%s","jsonrpc":"2.0","id":7}' % ("x" * 17_000_000),
        query(5, '"whole \\ud83d\\ude00 smile"'),
    ]
    process = subprocess.Popen(
        [parameters.command, *parameters.args], cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    # All that it says before it ends: an answer that does not come is not waited for.
    said, _ = process.communicate(timeout=180)
    answers = {answer["id"]: answer for answer in map(json.loads, said.splitlines())}
    assert process.returncode == 0 and sorted(answers) == [1, 2, 3, 4, 5, 6, 7], said
    assert answers[2]["result"]["structuredContent"]["ok"] and answers[5]["result"]["structuredContent"]["ok"]
    for refused in (3, 4, 6, 7):
        assert answers[refused]["error"]["code"] == -32700 and "hint" in answers[refused]["error"]["message"]
