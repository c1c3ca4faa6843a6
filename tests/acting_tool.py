"""An MCP server whose tools do something: they append a name to a file, durably, and then answer after a moment.

    acting_tool.py FILE

Whoever dies between the deed and the answer has done it.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time

out = threading.Lock()


def send(message: dict) -> None:
    with out:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        sys.stdout.flush()


def act(id: object, name: str) -> None:
    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{name}\n".encode())
    os.fsync(file)
    os.close(file)
    time.sleep(random.uniform(0, 0.05))
    send({"id": id, "result": {"content": [{"type": "text", "text": f"did {name}"}]}})


schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
tools = [{"name": name, "description": "Does something.", "inputSchema": schema} for name in ("act", "expiring")]
for line in sys.stdin:
    message = json.loads(line)
    id, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "initialize":
            info = {"name": "acting_tool", "version": "1"}
            version = params["protocolVersion"]
            send({"id": id, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
        case "tools/list":
            send({"id": id, "result": {"tools": tools}})
        case "tools/call":
            threading.Thread(target=act, args=(id, params["arguments"]["name"]), daemon=True).start()
        case "ping":
            send({"id": id, "result": {}})
        case _ if id is not None:
            send({"id": id, "error": {"code": -32601, "message": "method not found"}})
