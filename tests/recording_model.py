"""An OpenAI-compatible model server that keeps every prompt it gets and streams back `noted: <query>`."""

from __future__ import annotations

import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RecordingModel:
    """Answers after a random delay of up to `delay` seconds. `prompts` has each request's messages, in order."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.prompts: list[list[dict]] = []
        self._lock = threading.Lock()
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with recorder._lock:
                    recorder.prompts.append(body["messages"])
                time.sleep(random.uniform(0, recorder.delay))
                query = body["messages"][-1]["content"].split("\n")[-1]
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Connection", "close")
                    self.end_headers()
                    for piece in ("noted: ", query):
                        self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
                    self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    pass  # The client was killed.
                self.close_connection = True

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

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
