"""An OpenAI-compatible model server that keeps every prompt it gets and streams back `noted: <query>`.

It calls tools when it is told to: a query whose last lines are `call NAME ARGUMENTS` (arguments as JSON, names as
Confidant has them) makes it call all of them at once, and its answer then ends with ` -> ` and what they gave back. Where
`concepts` has something for a query, it names that with its answer, in the same reply, if it was asked to.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RecordingModel:
    """Answers after a random delay of up to `delay` seconds. `prompts` has each request's messages, `offered` the names
    of the tools that came with it, both in order. While `hold` is an event that is not set, it answers nothing; while
    `halfway` is one, nothing after `noted: `. `bodies` has each request whole. Embeddings are the lengths of the texts and of
    their words. While it is `blind`, it refuses a request with an image or a file. A query that `answers` knows is answered in those pieces, with a call of
    `between` after each."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.prompts: list[list[dict]] = []
        self.offered: list[list[str]] = []
        self.bodies: list[dict] = []
        self.hold: threading.Event | None = None
        self.halfway: threading.Event | None = None
        self.concepts: dict[str, dict] = {}
        self.answers: dict[str, list[str]] = {}
        self.blind = False
        self.between: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with recorder._lock:
                    recorder.bodies.append(body)
                if self.path.endswith("/embeddings"):
                    self._embed(body)
                    return
                with recorder._lock:
                    recorder.prompts.append(body["messages"])
                    recorder.offered.append([tool["function"]["name"] for tool in body.get("tools", [])])
                time.sleep(random.uniform(0, recorder.delay))
                if recorder.hold is not None:
                    recorder.hold.wait(60)
                content = [m for m in body["messages"] if m["role"] == "user"][-1]["content"]
                asked = content if isinstance(content, str) else content[0]["text"]
                if recorder.blind and asked is not content:
                    self.send_response(400)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"{}")
                    return
                results = [m["content"] for m in body["messages"] if m["role"] == "tool"]
                calls = [] if results else orders(asked)
                query = asked.split("\n")[-1]
                answer = " -> ".join([query, *results])
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Connection", "close")
                    self.end_headers()
                    for index, (name, arguments) in enumerate(calls):
                        function = {"name": name, "arguments": arguments}
                        call = {"index": index, "id": f"call-{index}", "type": "function", "function": function}
                        self._delta({"tool_calls": [call]})
                    for piece in () if calls else recorder.answers.get(query, ("noted: ", answer)):
                        self._delta({"content": piece})
                        if piece == "noted: " and recorder.halfway is not None:
                            recorder.halfway.wait(60)
                        recorder.between()
                    named = recorder.concepts.get(query)
                    if named is not None and "capture_concepts" in recorder.offered[-1]:
                        function = {"name": "capture_concepts", "arguments": json.dumps(named)}
                        call = {"index": 0, "id": "call-concepts", "type": "function", "function": function}
                        self._delta({"tool_calls": [call]})
                    self._delta({}, "tool_calls" if calls else "stop")
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    pass  # The client was killed.
                self.close_connection = True

            def _embed(self, body: dict) -> None:
                vectors = [[float(len(text)), float(len(text.split()))] for text in body["input"]]
                data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
                usage = {"prompt_tokens": len(data), "total_tokens": len(data)}
                whole = {"object": "list", "data": data, "model": body["model"], "usage": usage}
                reply = json.dumps(whole).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _delta(self, delta: dict, finish_reason: str | None = None) -> None:
                self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

            def _event(self, data: dict) -> None:
                data |= {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "recorder"}
                self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """What makes a server ask this model."""
        return {
            "CONFIDANT_MODEL__PROVIDER": "openai",
            "CONFIDANT_MODEL__BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1",
            "CONFIDANT_MODEL__MODEL": "recorder",
            "OPENAI_API_KEY": "none",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def orders(query: str) -> list[tuple[str, str]]:
    """The calls that the last lines of a query order, with names as they go over the wire."""
    found: list[tuple[str, str]] = []
    for line in reversed(query.split("\n")):
        word, _, order = line.partition(" ")
        name, _, arguments = order.partition(" ")
        if word != "call" or not arguments:
            break
        found.insert(0, (re.sub(r"[^A-Za-z0-9_-]", "_", name), arguments))
    return found
