#!/usr/bin/env python3
"""The checkpoint saver of the seed document on Redis, as it stands there: one key a session, the whole state in it.

Each load and each save derives the session's key with PBKDF2 (100 000 rounds); a save is SET with an expiry. Variants as in
`seed_literal.py`: "literal", and "cached-keys" with one derivation per session and process.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from importlib.metadata import version

import redis
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from common import at_once, calibrate, measure
from seed_literal import NONCE_BYTES, Saver, message

TTL = 3600


class RedisSaver(Saver):
    """The same sealing with Redis in place of a table."""

    def __init__(self, url: str, cached_keys: bool) -> None:
        self.keys = {} if cached_keys else None
        self.client = redis.Redis.from_url(url, max_connections=128)

    def save(self, session: str, state: dict) -> None:
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + ChaCha20Poly1305(self._key(session)).encrypt(nonce, json.dumps(state, default=str).encode(), None)
        row = json.dumps({"_encrypted": True, "data": base64.b64encode(sealed).decode("ascii")})
        self.client.setex(f"seed:{session}:latest", TTL, row)

    def load(self, session: str) -> dict:
        found = self.client.get(f"seed:{session}:latest")
        if found is None:
            return {"messages": []}
        sealed = base64.b64decode(json.loads(found)["data"])
        return json.loads(ChaCha20Poly1305(self._key(session)).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None))


def turn(saver: RedisSaver, session: str) -> None:
    state = saver.load(session)
    state["messages"] += [message(0), message(1)]
    saver.save(session, state)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--redis", required=True)
    arguments.add_argument("--sessions", type=int, default=64)
    arguments.add_argument("--messages", type=int, default=100)
    arguments.add_argument("--turns", type=int, default=4)
    given = arguments.parse_args()
    variants, calibration = [], [calibrate()]
    for name in ("literal", "cached-keys"):
        print(f"seed-redis: {name}", file=sys.stderr, flush=True)
        saver = RedisSaver(given.redis, name == "cached-keys")
        for session in range(given.sessions):
            saver.save(f"{name}-{session}", {"messages": [message(i) for i in range(given.messages)]})
        alone = measure(lambda s=s: turn(saver, f"{name}-{s}") for s in range(given.sessions))
        busy = at_once(lambda s: turn(saver, f"{name}-{s}"), given.sessions, given.turns)
        cold = measure(lambda s=s: turn(RedisSaver(given.redis, name == "cached-keys"), f"{name}-{s}") for s in range(16))
        variants.append({"name": name, "at_once": busy, "alone": alone, "cold": cold})
    report = {
        "calibration_cpu_ms": calibration,
        "redis": variants,
        "versions": {name: version(name) for name in ("redis", "cryptography")},
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
