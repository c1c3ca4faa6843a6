"""Who may have what over MCP, and that no secret comes back, whatever field it was put in."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import mcp
import pytest
from conftest import Confidant
from mcp_client import SESSION, Endpoint, call, environment, fails, run

MARKER = "zqxjkv4711"
EMAIL = f"{MARKER}@example.com"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n-----END OPENSSH PRIVATE KEY-----"


def token(server: Confidant, role: str) -> str:
    made = subprocess.run(
        [Path(os.environ["CONFIDANT_BIN"]).resolve(), "token", "new", "--role", role, "--data-dir", server.data_dir],
        cwd=server.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip().splitlines()[-1]


@pytest.fixture
def roles(server: Confidant) -> Iterator[dict[str, Endpoint]]:
    """The same server for an administrator, an agent that asks for alice, alice and bob."""
    yield {
        "admin": Endpoint("http", server, user="alice"),
        "agent": Endpoint("http", server, user="alice", token=token(server, "agent")),
        "alice": Endpoint("http", server, user="", token=token(server, "user:alice")),
        "bob": Endpoint("http", server, user="", token=token(server, "user:bob")),
    }


def post(server: Confidant, message: dict | bytes, bearer: str | None = None, **headers: str) -> tuple[int, dict, bytes]:
    """A request without the client's help."""
    request = urllib.request.Request(
        f"{server.url}/mcp",
        data=message if isinstance(message, bytes) else json.dumps(message).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
        | {name.replace("_", "-"): value for name, value in headers.items()},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, dict(refused.headers), refused.read()


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def test_one_person_never_sees_another(roles: dict[str, Endpoint]) -> None:
    async def work() -> None:
        async with roles["alice"].connect() as alice, roles["bob"].connect() as bob:
            asked = {"session_id": "demo-001", "session": SESSION}
            uri = (await call(alice, "store_session_to_cascade", asked))["cascade_uri"]
            assert (await call(bob, "query_memories", {"query": "JWT auth bug"}))["hits"] == []
            assert (await call(bob, "list_memories"))["hits"] == []
            assert (await bob.list_resources()).resources == []
            assert (await fails(bob, "retrieve_session_from_cascade", {"cascade_uri": uri}))["code"] == "not_found"
            with pytest.raises(mcp.MCPError):
                await bob.read_resource(uri.replace("cascade://", "memory://"))
            for what in ({"cascade_uri": uri}, {"session_id": "demo-001"}):
                result = await bob.call_tool("forget_memory", what)
                assert result.is_error or result.structured_content["forgotten"] == 0
            assert len((await call(alice, "list_memories"))["hits"]) == 1
        # An agent and an administrator that say for whom they ask have the same memory as alice.
        for role in ("agent", "admin"):
            async with roles[role].connect() as client:
                assert [hit["cascade_uri"] for hit in (await call(client, "list_memories"))["hits"]] == [uri]

    run(work)


def test_an_agent_may_not_forget_and_that_is_audited(roles: dict[str, Endpoint], server: Confidant) -> None:
    async def work() -> None:
        asked = {"session_id": "demo-001", "session": SESSION}
        async with roles["agent"].connect() as agent:
            uri = (await call(agent, "store_session_to_cascade", asked))["cascade_uri"]
            for dry_run in (True, False):
                refused = await fails(agent, "forget_memory", {"cascade_uri": uri, "dry_run": dry_run})
                assert refused["code"] == "not_allowed"
        async with roles["alice"].connect() as alice:
            assert (await call(alice, "forget_memory", {"cascade_uri": uri}))["forgotten"] == 1

    run(work)
    log = subprocess.run(
        [Path(os.environ["CONFIDANT_BIN"]).resolve(), "audit", "show", "--json", "--data-dir", server.data_dir],
        cwd=server.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "refused" in log.stdout, log.stdout


def test_nobody_over_http_names_files_of_the_server(roles: dict[str, Endpoint], tmp_path: Path) -> None:
    (tmp_path / "fixtures.json").write_text(json.dumps({"s": {"session_id": "s", "summary": "Looked at the logs."}}))
    os.mkfifo(tmp_path / "pipe")
    places = ["fixtures.json", "nothing.json", "pipe", ".", "../../../../etc/passwd"]

    async def work() -> None:
        for role in ("agent", "alice", "admin"):
            async with roles[role].connect() as client:
                answers = []
                for place in places:
                    for dry_run in (True, False):
                        asked = {"path": str(tmp_path / place), "agent": "fixture", "dry_run": dry_run}
                        answers.append(await fails(client, "import_sessions", asked))
                answers.append(await fails(client, "import_sessions", {}))
                assert answers[0]["code"] == "not_allowed", answers[0]
                # The same answer whether a file is there or not.
                assert all(answer == answers[0] for answer in answers), answers
                # Nor is a session looked for by its id.
                unknown = [
                    await fails(client, "store_session_to_cascade", {"session_id": name}) for name in ("s", "no-such")
                ]
                assert unknown[0] == unknown[1] and unknown[0]["code"] == "not_found", unknown

    run(work)


def test_a_token_is_wanted_and_a_person(roles: dict[str, Endpoint], server: Confidant) -> None:
    status, headers, body = post(server, HELLO)
    assert status == 401 and headers["www-authenticate"].startswith("Bearer")
    assert json.loads(body)["error"]["data"]["code"] == "unauthenticated"
    status, _, body = post(server, HELLO, server.token)
    assert status == 400 and b"X-Confidant-User" in body, body
    agent = roles["agent"].token
    assert post(server, HELLO, agent)[0] == 400
    assert post(server, HELLO, agent, X_Confidant_User="alice")[0] == 200
    bob = roles["bob"].token
    assert post(server, HELLO, bob)[0] == 200
    assert post(server, HELLO, bob, X_Confidant_User="bob")[0] == 200
    status, _, body = post(server, HELLO, bob, X_Confidant_User="alice")
    assert status == 403 and b"alice" not in body


def test_a_session_is_of_its_token_and_person(roles: dict[str, Endpoint], server: Confidant) -> None:
    alice, bob, agent = (roles[name].token for name in ("alice", "bob", "agent"))
    session = post(server, HELLO, alice)[1]["mcp-session-id"]
    assert post(server, LIST, alice, Mcp_Session_Id=session)[0] == 200
    assert post(server, LIST, bob, Mcp_Session_Id=session)[0] == 404
    # The same person, but not the same token.
    assert post(server, LIST, agent, Mcp_Session_Id=session, X_Confidant_User="alice")[0] == 404
    own = post(server, HELLO, agent, X_Confidant_User="alice")[1]["mcp-session-id"]
    assert post(server, LIST, agent, Mcp_Session_Id=own, X_Confidant_User="alice")[0] == 200
    # The same token, but not the same person.
    assert post(server, LIST, agent, Mcp_Session_Id=own, X_Confidant_User="bob")[0] == 404


def test_pages_of_other_sites_and_other_hosts_are_refused(server: Confidant) -> None:
    asked = {"X_Confidant_User": "alice"}
    assert post(server, HELLO, server.token, Origin="http://evil.example", **asked)[0] == 403
    assert post(server, HELLO, server.token, Host="evil.example", **asked)[0] == 403
    own = f"127.0.0.1:{server.port}"
    assert post(server, HELLO, server.token, Origin=f"http://{own}", Host=own, **asked)[0] == 200


def test_a_body_that_is_too_large_or_no_message_is_refused_unquoted(server: Confidant) -> None:
    asked = {"X_Confidant_User": "alice"}
    big = LIST | {"params": {"_meta": {"x": MARKER * 200_000}}}
    status, _, body = post(server, big, server.token, **asked)
    assert status == 413 and MARKER.encode() not in body
    for message in ({MARKER: MARKER}, [MARKER], {"jsonrpc": MARKER, "method": MARKER, "id": MARKER}):
        status, _, body = post(server, message, server.token, **asked)
        assert 400 <= status < 500 and MARKER.encode() not in body, body
    deep = '{"jsonrpc":"2.0","method":"ping","params":%s"%s"%s,"id":7}' % ("[" * 200, MARKER, "]" * 200)
    status, _, body = post(server, deep.encode(), server.token, **asked)
    assert status == 400 and MARKER.encode() not in body, body
    assert (json.loads(body)["id"], json.loads(body)["error"]["code"]) == (7, -32700)


def test_a_stop_ends_sessions_and_streams(server: Confidant) -> None:
    session = post(server, HELLO, server.token, X_Confidant_User="alice")[1]["mcp-session-id"]
    request = urllib.request.Request(
        f"{server.url}/mcp",
        headers={
            "Accept": "text/event-stream",
            "Authorization": f"Bearer {server.token}",
            "X-Confidant-User": "alice",
            "Mcp-Session-Id": session,
        },
    )
    with urllib.request.urlopen(request, timeout=120) as stream:
        server.stop()
        stream.read()
    server.start()


FIELDS = {
    "session_id": {"session_id": "{}", "session": SESSION},
    "summary": {"session_id": "s", "session": {"summary": "{} wrote."}},
    "output": {"session_id": "s", "session": SESSION | {"output": "{}"}},
    "error_message": {"session_id": "s", "session": SESSION | {"error_message": "{}"}},
    "tool_name": {"session_id": "s", "session": SESSION | {"tool_name": "{}"}},
    "a key": {"session_id": "s", "session": SESSION | {"{}": "x"}},
    "a nested leaf": {"session_id": "s", "session": SESSION | {"more": [{"deep": ["{}"]}]}},
    "a message": {"session_id": "s", "session": {"messages": [{"role": "user", "content": "{}"}]}},
    "the session's tags": {"session_id": "s", "session": SESSION | {"tags": ["{}"]}},
    "tags": {"session_id": "s", "session": SESSION, "tags": ["{}"]},
    "metadata": {"session_id": "s", "session": SESSION, "metadata": {"who": "{}"}},
    "a key of the metadata": {"session_id": "s", "session": SESSION, "metadata": {"{}": "x"}},
}


def planted(arguments: object, secret: str) -> object:
    if isinstance(arguments, str):
        return arguments.replace("{}", secret)
    if isinstance(arguments, list):
        return [planted(item, secret) for item in arguments]
    if isinstance(arguments, dict):
        return {planted(name, secret): planted(item, secret) for name, item in arguments.items()}
    return arguments


@pytest.mark.parametrize("field", FIELDS)
def test_a_secret_in_any_field_is_nowhere_afterwards(server: Confidant, field: str) -> None:
    endpoint = Endpoint("http", server)
    metadata = {"allow_raw_export": True, "raw_export_ack": "I understand the risk"}

    async def work() -> None:
        said = []
        async with endpoint.connect() as client:
            asked = planted(FIELDS[field], EMAIL)
            raw = asked | {"metadata": asked.get("metadata", {}) | metadata}
            for arguments in (asked | {"dry_run": True}, asked, raw):
                result = await client.call_tool("store_session_to_cascade", arguments)
                said.append(result.model_dump_json())
                assert not result.is_error, said[-1]
            for hit in (await call(client, "list_memories"))["hits"]:
                said.append(json.dumps(hit))
                found = await client.call_tool("retrieve_session_from_cascade", {"cascade_uri": hit["cascade_uri"]})
                said.append(found.model_dump_json())
            blocked = await fails(client, "store_session_to_cascade", planted(FIELDS[field], KEY + MARKER))
            # An id with line breaks is no id in the first place.
            assert blocked["code"] == ("invalid" if field == "session_id" else "blocked"), blocked
            assert blocked.get("places") or field == "session_id"
            assert all(place["rule"] and place["path"] for place in blocked.get("places", []))
            said.append(json.dumps(blocked))
        for text in said:
            assert MARKER not in text and "BEGIN OPENSSH" not in text, text

    run(work)
    assert server.files_with(MARKER) == []


def test_a_secret_in_the_wrong_field_does_not_come_back(server: Confidant, tmp_path: Path) -> None:
    wrong = [None, 7, True, MARKER, [MARKER], {MARKER: MARKER}]
    tools = {
        "store_session_to_cascade": ["session", "tags", "metadata", "mode", "dry_run", "expect_sha256", MARKER],
        "remember": ["tags", MARKER],
        "recall": ["limit", MARKER],
        "query_memories": ["tags", "limit", "offset", "time_range", MARKER],
        "list_memories": ["tags", "limit", "offset", "time_range", MARKER],
        "retrieve_session_from_cascade": ["cascade_uri", "mode", MARKER],
        "forget_memory": ["cascade_uri", "session_id", "dry_run", MARKER],
        "import_sessions": ["agent", "tags", "mode", MARKER],
        "estimate_storage_cost": ["bytes", "redundancy", "provider", MARKER],
    }
    words = {"query": "x"}
    needed = {"store_session_to_cascade": {"session_id": "s"}, "query_memories": words, "recall": words, "remember": {"text": "x"}}

    async def work() -> None:
        for endpoint in (Endpoint("http", server), Endpoint("stdio", Confidant(tmp_path / "stdio"))):
            endpoint.server.folder.mkdir(exist_ok=True)
            async with endpoint.connect() as client:
                for tool, names in tools.items():
                    for name in names:
                        for value in wrong:
                            arguments = needed.get(tool, {}) | {name: value}
                            result = await client.call_tool(tool, arguments)
                            # A tag may well come back; what is wrong may not.
                            assert not result.is_error or MARKER not in result.model_dump_json(), (tool, name, value)

    run(work)
    assert server.files_with(MARKER) == []
