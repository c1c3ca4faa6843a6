#!/usr/bin/env python3
"""The checkpoint saver of the seed document, taken literally: the whole state is one encrypted JSON document.

Each load and each save derives the session's key with PBKDF2 (100 000 rounds), and the state goes through `json.dumps`,
ChaCha20-Poly1305 and base64 into a `{"_encrypted": true, "data": …}` wrapper that is stored as JSON again. The document
keeps it in Redis, which replaces the value; here it is one row of an SQLite table (WAL), replaced the same way, so that
every contender has the same kind of store. Variants:

* literal: as written.
* cached-keys: the obvious repair, one derivation per session and process, with synchronous NORMAL. Cold pays for it.

Warm keeps one connection; cold opens one for each turn, while earlier ones stay open. Since the row is replaced,
`stored_bytes` is the same for a seeded and a grown conversation, and `grown` shows it.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from common import LENGTHS, PLAN, calibrate, measure, stored_bytes, text, wchar

MASTER_KEY = bytes(range(32))
NONCE_BYTES = 12
ROUNDS = 100_000


class Saver:
    def __init__(self, database: Path, cached_keys: bool) -> None:
        self.keys: dict[str, bytes] | None = {} if cached_keys else None
        self.connection = sqlite3.connect(database, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        if cached_keys:
            self.connection.execute("PRAGMA synchronous=NORMAL")
        self.connection.execute("CREATE TABLE IF NOT EXISTS checkpoint (session TEXT PRIMARY KEY, value TEXT NOT NULL)")

    def _key(self, session: str) -> bytes:
        if self.keys is not None and session in self.keys:
            return self.keys[session]
        kdf = PBKDF2HMAC(algorithm=hashes.SHA256(), length=32, salt=session.encode(), iterations=ROUNDS)
        key = kdf.derive(MASTER_KEY)
        if self.keys is not None:
            self.keys[session] = key
        return key

    def save(self, session: str, state: dict) -> None:
        nonce = os.urandom(NONCE_BYTES)
        plaintext = json.dumps(state, default=str).encode()
        sealed = nonce + ChaCha20Poly1305(self._key(session)).encrypt(nonce, plaintext, None)
        row = json.dumps({"_encrypted": True, "data": base64.b64encode(sealed).decode("ascii")})
        self.connection.execute("INSERT OR REPLACE INTO checkpoint VALUES (?, ?)", (session, row))

    def load(self, session: str) -> dict:
        found = self.connection.execute("SELECT value FROM checkpoint WHERE session = ?", (session,)).fetchone()
        if found is None:
            return {"messages": []}
        sealed = base64.b64decode(json.loads(found[0])["data"])
        cipher = ChaCha20Poly1305(self._key(session))
        return json.loads(cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None))


def message(index: int) -> dict:
    return {"type": "ai" if index % 2 else "human", "content": text()}


def turn(saver: Saver, session: str) -> None:
    state = saver.load(session)
    state["messages"] += [message(0), message(1)]
    saver.save(session, state)


def point(name: str, length: int, folder: Path) -> dict:
    conversations, turns = PLAN[length]
    cached = name == "cached-keys"
    result: dict = {"messages": length}
    for heat in ("warm", "cold"):
        database = folder / f"{name}-{length}-{heat}.db"
        savers = [Saver(database, cached)]
        for i in range(conversations):
            savers[0].save(f"s{i}", {"messages": [message(k) for k in range(length)]})

        def one(session: str) -> None:
            if heat == "cold":
                savers.append(Saver(database, cached))
            turn(savers[-1], session)

        result[heat] = measure(lambda i=i: one(f"s{i}") for i in range(conversations) for _ in range(turns))
        assert len(savers[-1].load("s0")["messages"]) == length + 2 * turns
        for saver in savers:
            saver.connection.close()
    single = folder / f"{name}-{length}-one.db"
    saver = Saver(single, cached)
    saver.save("one", {"messages": [message(k) for k in range(length)]})
    saver.connection.close()
    result["stored_bytes"] = stored_bytes(single)
    return result


def grow(name: str, folder: Path, lengths: tuple[int, ...]) -> list[dict]:
    database = folder / f"{name}-grown.db"
    saver, points, length = Saver(database, name == "cached-keys"), [], 0
    cpu_before, bytes_before = time.process_time(), wchar()
    for target in lengths:
        while length < target:
            turn(saver, "grown")
            length += 2
        cpu, written = time.process_time() - cpu_before, wchar() - bytes_before
        saver.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        points.append(
            {
                "variant": name,
                "messages": length,
                "stored_bytes": stored_bytes(database),
                "wchar_total": written,
                "cpu_ms_total": round(cpu * 1e3, 1),
            }
        )
        # The fold is the measurement's, not the turn's.
        cpu_before, bytes_before = time.process_time() - cpu, wchar() - written
    saver.connection.close()
    return points


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--dir", help="folder for the databases (default: a temporary one)")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as temporary:
        folder = Path(temporary)
        variants, grown, calibration = [], [], [calibrate()]
        for name, grow_to in (("literal", (20, 100)), ("cached-keys", (20, 100, 500, 2000))):
            print(f"seed-literal: {name}", file=sys.stderr, flush=True)
            variants.append({"name": name, "points": [point(name, n, folder) for n in LENGTHS]})
            grown += grow(name, folder, grow_to)
            calibration.append(calibrate())
    versions = {
        "cryptography": version("cryptography"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    report = {
        "peer": "seed document, taken literally",
        "versions": versions,
        "calibration_cpu_ms": calibration,
        "variants": variants,
        "grown": grown,
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
