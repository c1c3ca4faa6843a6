"""A worker and a bot written against the first system's JSON alone, as its users have them.

They know the two channels and the fields of the messages, and nothing of Confidant.
"""

from __future__ import annotations

import json
import threading
import time
import uuid

import redis

REQUESTS, RESPONSES = "vagent:requests", "vagent:responses"


class ForeignWorker:
    """Answers every request with what it got of it; those that `questions` knows with that question and its metadata."""

    def __init__(self, url: str) -> None:
        self.seen: list[dict] = []
        self.questions: dict[str, tuple[str, dict]] = {}
        self._redis = redis.Redis.from_url(url)
        self._pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        self._pubsub.subscribe(**{REQUESTS: self._answer})
        self._thread = self._pubsub.run_in_thread(sleep_time=0.01, daemon=True)

    def _answer(self, message: dict) -> None:
        request = json.loads(message["data"])
        self.seen.append(request)
        room = ", ".join(line["content"] for line in request.get("room_context", []))
        self._say(request, "progress", "🧠 Thinking...")
        if request["query"] in self.questions:
            return self._say(request, "hitl_request", *self.questions[request["query"]])
        self._say(request, "final_response", f"foreign: {request['query']} ({room})", {"latency": 1})

    def _say(self, request: dict, message_type: str, content: str, metadata: dict | None = None) -> None:
        message = {"request_id": request["request_id"], "message_type": message_type, "content": content}
        if metadata:
            message["metadata"] = metadata
        self._redis.publish(RESPONSES, json.dumps(message))

    def close(self) -> None:
        self._thread.stop()
        self._thread.join(5)
        self._redis.close()


class ForeignBot:
    """Asks and waits for the answer."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        self._pubsub.subscribe(RESPONSES)
        self._heard: dict[str, list[dict]] = {}
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        time.sleep(0.1)

    def _listen(self) -> None:
        while not self._stop.is_set():
            message = self._pubsub.get_message(timeout=0.1)
            if message is None:
                continue
            response = json.loads(message["data"])
            with self._changed:
                self._heard.setdefault(response["request_id"], []).append(response)
                self._changed.notify_all()

    def publish(self, request: dict) -> None:
        self._redis.publish(REQUESTS, json.dumps(request))

    def ask(self, session: str, query: str, room: list[dict] | None = None, seconds: float = 60) -> list[dict]:
        """All responses up to the last."""
        request_id = str(uuid.uuid4())
        request = {"request_id": request_id, "query": query, "session_id": session, "room_context": room or []}
        self.publish(request | {"metadata": {"timestamp": int(time.time())}})
        return self.responses(request_id, seconds)

    def heard(self, request_id: str) -> list[dict]:
        """All that has been said of a request so far."""
        with self._changed:
            return list(self._heard.get(request_id, []))

    def responses(self, request_id: str, seconds: float = 60) -> list[dict]:
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                heard = self._heard.get(request_id, [])
                if heard and heard[-1]["message_type"] != "progress":
                    return list(heard)
                left = deadline - time.monotonic()
                assert left > 0, f"no answer within {seconds} s; heard {[h['message_type'] for h in heard]}"
                self._changed.wait(left)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(5)
        self._redis.close()
