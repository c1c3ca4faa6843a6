"""How the tests talk MCP: the public Python client, over both transports and in all its modes."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conftest import FOREIGN, Confidant
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

MODES = ("legacy", "auto", "2026-07-28")
TRANSPORTS = ("stdio", "http")
USER = "alice"

# Seed 001's example, with something in it to redact.
SESSION = {
    "timestamp": "2025-12-21T12:00:00Z",
    "tool_name": "bug-tracker",
    "success": False,
    "summary": "Investigated a production bug: john.doe@example.com cannot log in because JWT validation of the "
    "auth-service fails. We decided to roll back to v2.3.1. TODO: fix JWT validation before next deploy.",
    "error_message": "Invalid token format",
    "output": "rolled back",
    "tags": ["bug-fix"],
}


@dataclass
class Endpoint:
    """Where a memory is served: a program to start, or a server that runs."""

    transport: str
    server: Confidant
    user: str = USER
    token: str | None = None

    @contextlib.asynccontextmanager
    async def connect(self, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
        options.setdefault("read_timeout_seconds", 60)
        if self.transport == "stdio":
            async with Client(self.parameters(), mode=mode, **options) as client:
                yield client
            return
        headers = {"Authorization": f"Bearer {self.token or self.server.token}"}
        if self.user:
            headers["X-Confidant-User"] = self.user
        async with create_mcp_http_client(headers=headers) as http:
            target = streamable_http_client(f"{self.server.url}/mcp", http_client=http)
            async with Client(target, mode=mode, **options) as client:
                yield client

    def parameters(self) -> StdioServerParameters:
        settings = self.server.folder / "confidant.toml"
        named = ["--config", str(settings)] if settings.exists() else []
        return StdioServerParameters(
            command=str(Path(os.environ["CONFIDANT_BIN"]).resolve()),
            args=["mcp", "--user", self.user, "--data-dir", str(self.server.data_dir), *named],
            env=environment(),
            cwd=self.server.folder,
        )


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 120))


async def call(client: Client, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Calls a tool that must succeed. The client itself checks the result against the output schema."""
    result = await client.call_tool(tool, arguments or {}, **options)
    assert not result.is_error, result.content
    assert result.structured_content["ok"] is True
    assert result.content and result.content[0].type == "text" and result.content[0].text
    return result.structured_content


async def fails(client: Client, tool: str, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Calls a tool that must fail, as a result with a code, a message and a hint."""
    result = await client.call_tool(tool, arguments, **options)
    assert result.is_error, result.structured_content
    structured = result.structured_content
    assert structured["ok"] is False
    error = structured["error"]
    assert error["code"] and error["message"] and error["hint"]
    assert error["message"] in result.content[0].text and error["hint"] in result.content[0].text
    return error
