"""An OpenAI-compatible small model: fills in the forms it is asked to fill in as it was told, and keeps every request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREPARED = {
    "language_code": "en",
    "category": "general",
    "selected_model": "default",
    "selection_reason": "A plain question.",
    "direct_self_harm": 0,
    "indirect_self_harm": 0,
    "gradual_escalation_patterns": 0,
    "emotional_distress_indicators": 0,
    "illegal": 0,
    "prompt_injection_chance": 0,
    "tags": ["test"],
    "relevant_app_skills": [],
    "relevant_app_focus_modes": [],
    "relevant_app_settings_and_memories": [],
    "title": "A test",
    "icon_names": ["flask-conical"],
}
ENRICHED = {
    "follow_up_suggestions": [f"follow up {n}" for n in range(6)],
    "new_chat_suggestions": [f"something new {n}" for n in range(6)],
    "chat_summary": "They tested something.",
    "chat_tags": ["test"],
    "harmful_response": 0,
}


class SmallModel:
    """`replies` has what each form is filled in with, or a function of what is asked; `requests` every request body;
    `at_once` the most at a time."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.replies: dict[str, dict | str | Callable[[str], dict]] = {
            "prepare_turn": dict(PREPARED),
            "enrich_turn": dict(ENRICHED),
        }
        self.requests: list[dict] = []
        self.at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        small = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with small._lock:
                    small.requests.append(body)
                    small._now += 1
                    small.at_once = max(small.at_once, small._now)
                time.sleep(small.delay)
                with small._lock:
                    small._now -= 1
                name = body["tool_choice"]["function"]["name"]
                reply = small.replies.get(name, {})
                if callable(reply):
                    reply = reply(body["messages"][-1]["content"])
                try:
                    if reply == "refuse":
                        self.send_error(500)
                        return
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Connection", "close")
                    self.end_headers()
                    if reply == "cut":
                        self._delta({"tool_calls": [call(name, '{"language_')]})
                    elif reply == "garbage":
                        self.wfile.write(b"data: \xff\xfe{]\n\n")
                    else:
                        self._delta({"tool_calls": [call(name, json.dumps(reply))]})
                        self._delta({}, "tool_calls")
                        self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    pass  # The client went away.
                self.close_connection = True

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _delta(self, delta: dict, finish_reason: str | None = None) -> None:
                choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
                data = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "small", "choices": [choice]}
                self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """What makes a server prepare and enrich with this model."""
        return {
            "CONFIDANT_MODELS__SMALL__PROVIDER": "openai",
            "CONFIDANT_MODELS__SMALL__BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1",
            "CONFIDANT_MODELS__SMALL__MODEL": "small",
            "CONFIDANT_PROCESSING__MODEL": "small",
            "OPENAI_API_KEY": "none",
        }

    def asked(self, form: str) -> list[dict]:
        """The requests to fill in this form."""
        return [body for body in self.requests if body["tool_choice"]["function"]["name"] == form]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def call(name: str, arguments: str) -> dict:
    return {"index": 0, "id": "call-0", "type": "function", "function": {"name": name, "arguments": arguments}}
