"""Prints tests/fixtures/legacy.json: checkpoints as the first system wrote them.

Needs the `cryptography` package. Derivation, encryption and wrapping are copied from its EncryptedRedisSaver.

    python legacy_python.py > fixtures/legacy.json
"""

import base64
import json
import os

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

MASTER_KEY_B64 = base64.b64encode(bytes(range(32))).decode("ascii")


def derive_thread_key(master_key: bytes, thread_id: str) -> bytes:
    kdf = PBKDF2HMAC(algorithm=hashes.SHA256(), length=32, salt=thread_id.encode("utf-8"), iterations=100_000)
    return kdf.derive(master_key)


def encrypt_data(master_key: bytes, thread_id: str, plaintext: bytes) -> bytes:
    nonce = os.urandom(12)
    return nonce + ChaCha20Poly1305(derive_thread_key(master_key, thread_id)).encrypt(nonce, plaintext, None)


def row(encrypted: bytes) -> dict:
    return {"_encrypted": True, "data": base64.b64encode(encrypted).decode("ascii")}


def main() -> None:
    master_key = base64.b64decode(MASTER_KEY_B64)
    thread_id = "!abc123:matrix.org:main:@alice:matrix.org"
    checkpoint = {"v": 1, "channel_values": {"messages": [{"role": "user", "content": "Grüße, \U0001f44b"}]}}
    plaintext = json.dumps(checkpoint, default=str)
    encrypted = encrypt_data(master_key, thread_id, plaintext.encode("utf-8"))
    flipped = bytearray(encrypted)
    flipped[20] ^= 1
    good = row(encrypted)
    cases = [
        ("valid", thread_id, good, None),
        ("valid, with another field", thread_id, {**good, "ts": 1}, None),
        ("empty plaintext", thread_id, row(encrypt_data(master_key, thread_id, b"")), None),
        ("other thread id", "!abc123:matrix.org:main:@bob:matrix.org", good, "open"),
        ("flipped byte", thread_id, row(bytes(flipped)), "open"),
        ("cut", thread_id, row(encrypted[:-1]), "open"),
        ("no flag", thread_id, {"data": good["data"]}, "not encrypted"),
        ("flag is false", thread_id, {**good, "_encrypted": False}, "not encrypted"),
        ("flag is text", thread_id, {**good, "_encrypted": "true"}, "format"),
        ("plaintext", thread_id, checkpoint, "not encrypted"),
        ("short data", thread_id, row(encrypted[:27]), "format"),
        ("no data", thread_id, {"_encrypted": True}, "format"),
        ("not base64", thread_id, {**good, "data": "!" + good["data"]}, "format"),
        ("not an object", thread_id, [True], "format"),
    ]
    plaintexts = {"empty plaintext": ""}
    out = {
        "master": MASTER_KEY_B64,
        "cases": [
            {"name": name, "thread_id": thread, "row": json.dumps(value)}
            | ({"error": error} if error else {"plaintext": plaintexts.get(name, plaintext)})
            for name, thread, value, error in cases
        ],
    }
    print(json.dumps(out, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
