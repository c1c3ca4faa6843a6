"""Checks vectors/chats-v1.json with an implementation that shares no code with ours.

Needs the `cryptography` package, version 44 or later, built with Argon2.

    python chats_vectors.py [path of chats-v1.json]
"""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import sys
import unicodedata

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

unhex = bytes.fromhex


class Refused(Exception):
    """Raised with the name of the error."""


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def lp(text):
    data = text.encode()
    return len(data).to_bytes(2, "big") + data


def u32(number):
    return number.to_bytes(4, "big")


def hkdf(ikm, salt, info, length):
    prk = hmac.digest(salt or bytes(32), ikm, "sha256")
    out, block, count = b"", b"", 0
    while len(out) < length:
        count += 1
        block = hmac.digest(prk, block + info + bytes([count]), "sha256")
        out += block
    return out[:length]


def sub(key, label):
    return hkdf(key, b"", b"seal/v1/sub/" + label.encode(), 32)


def kid(key):
    return hkdf(key, b"", b"seal/v1/kid", 8)


def mac(key, domain, data):
    return hmac.digest(key, len(domain).to_bytes(8, "big") + domain.encode() + data, "sha256")


def base32(data):
    return base64.b32encode(data).decode().rstrip("=").lower()


# The envelope.


def padded(length):
    if length <= 64:
        return 64
    e = length.bit_length() - 1
    step = 1 << (e - e.bit_length())
    return -(-length // step) * step


def context_bytes(context):
    return b"".join(lp(part) for part in context)


def seal(key, context, rev, data, salt):
    okm = hkdf(key, salt, b"seal/v1/aead/1", 64)
    head = b"\x01\x01" + kid(key) + u32(rev)
    plain = u32(len(data)) + data
    plain += bytes(padded(len(plain)) - len(plain))
    return head + salt + okm[32:] + AESGCM(okm[:32]).encrypt(bytes(12), plain, head + context_bytes(context))


def open_envelope(key, context, sealed, error):
    """Revision and data; suite 1 only."""
    if len(sealed) < 150 or sealed[:2] != b"\x01\x01" or sealed[2:10] != kid(key):
        raise Refused(error)
    okm = hkdf(key, sealed[14:38], b"seal/v1/aead/1", 64)
    if okm[32:] != sealed[38:70]:
        raise Refused(error)
    try:
        plain = AESGCM(okm[:32]).decrypt(bytes(12), sealed[70:], sealed[:14] + context_bytes(context))
    except InvalidTag:
        raise Refused(error) from None
    length = int.from_bytes(plain[:4], "big")
    if len(plain) != padded(4 + length) or any(plain[4 + length :]):
        raise Refused(error)
    return int.from_bytes(sealed[10:14], "big"), plain[4 : 4 + length]


# Strict JSON.


def need(condition, error="record-refused"):
    if not condition:
        raise Refused(error)


def unique(pairs):
    need(len({name for name, _ in pairs}) == len(pairs))
    for name, _ in pairs:
        whole(name)
    return dict(pairs)


def whole(text):
    need(isinstance(text, str))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("record-refused") from None
    return text


def strict(text):
    def no(_):
        raise Refused("record-refused")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_float=no, parse_constant=no)
    except ValueError:
        raise Refused("record-refused") from None


def an_id(prefix, text, error="record-refused"):
    need(isinstance(text, str) and text.startswith(prefix + "_") and len(text) == len(prefix) + 27, error)
    digits = text[len(prefix) + 1 :]
    need(all(c in "abcdefghijklmnopqrstuvwxyz234567" for c in digits), error)
    need(base32(base64.b32decode(digits.upper() + "======")) == digits, error)


def number(value, limit=2**32):
    need(type(value) is int and 0 <= value < limit)


def bytes32(text):
    need(isinstance(text, str) and len(text) == 43)
    try:
        data = base64.b64decode(text + "=", altchars=b"-_", validate=True)
    except ValueError:
        raise Refused("record-refused") from None
    need(base64.urlsafe_b64encode(data).decode().rstrip("=") == text)


def fields(value, names, optional=()):
    need(isinstance(value, dict) and value.get("v") == 1 and type(value["v"]) is int)
    need(set(names) <= set(value) <= set(names) | set(optional))


def read_message(value):
    fields(value, ["v", "role", "parent", "created_at", "body", "refs"], ["model", "proof", "shared"])
    need(value["role"] in ("user", "assistant", "tool", "summary"))
    value["parent"] is None or an_id("msg", value["parent"])
    number(value["created_at"], 2**64)
    whole(value["body"])
    need(isinstance(value["refs"], list))
    for ref in value["refs"]:
        an_id("emb", ref)
    "model" not in value or whole(value["model"])
    "proof" not in value or bytes32(value["proof"])


def read_head(value):
    fields(value, ["v", "key", "kid", "count", "live", "chain", "leaf", "pending", "at", "device"])
    number(value["key"]), number(value["count"]), number(value["at"], 2**64)
    need(isinstance(value["kid"], str) and len(value["kid"]) == 16 and set(value["kid"]) <= set("0123456789abcdef"))
    bytes32(value["live"]), bytes32(value["chain"]), an_id("dev", value["device"])
    value["leaf"] is None or an_id("msg", value["leaf"])
    need(isinstance(value["pending"], list))
    for item in value["pending"]:
        need(isinstance(item, dict) and set(item) == {"turn", "parent", "reply"})
        an_id("turn", item["turn"]), an_id("msg", item["parent"]), an_id("msg", item["reply"])
    replies = [item["reply"] for item in value["pending"]]
    need(len(set(replies)) == len(replies))


def read_manifest(value):
    fields(value, ["v", "g", "uk", "box", "box_pub", "floors", "chain", "at", "device"])
    for name in ("g", "uk", "box"):
        number(value[name])
    number(value["at"], 2**64), bytes32(value["box_pub"]), bytes32(value["chain"]), an_id("dev", value["device"])
    need(isinstance(value["floors"], list) and len(value["floors"]) == 16)
    for floor in value["floors"]:
        bytes32(floor)


def shelf(chat):
    return sha(chat.encode()).hex()[0]


def read_floor(value):
    fields(value, ["v", "chats"])
    need(isinstance(value["chats"], dict))
    for chat, mark in value["chats"].items():
        an_id("chat", chat), need(shelf(chat) == shelf("chat_" + base32(b"\1" * 16)))
        need(isinstance(mark, dict) and set(mark) == {"rev", "envelope"})
        number(mark["rev"]), bytes32(mark["envelope"])


def read_text(value):
    fields(value, ["v", "body"])
    whole(value["body"])


def read_list(value):
    fields(value, ["v", "at", "until", "count", "live", "leaf"], ["title"])
    number(value["at"], 2**64), number(value["until"], 2**64), number(value["count"])
    bytes32(value["live"]), an_id("msg", value["leaf"])
    "title" not in value or whole(value["title"])


READERS = {"list": read_list, "message": read_message, "head": read_head, "manifest": read_manifest, "floor": read_floor}


def read(record, text):
    value = strict(text)
    READERS.get(record, read_text)(value)
    return value


# The constructions.


def statement(case):
    parts = lp(case["origin"]) + lp(case["purpose"]) + lp(case["signer"])
    return b"seal/v1/proof" + parts + unhex(case["challenge"]) + sha(unhex(case["body"]))


def verify(case):
    try:
        key = Ed25519PublicKey.from_public_bytes(unhex(case["public_key"]))
        key.verify(unhex(case["proof"]), statement(case))
    except (InvalidSignature, ValueError):
        raise Refused("login-refused") from None


def unwrap(case, field):
    need(case["sealed"] is not None, "account-missing")
    need(case["generation"] >= case["seen_generation"], "key-refused")
    context = ["key", case["account"], "", f"account:{case['generation']}", field]
    rev, data = open_envelope(unhex(case["kek"]), context, unhex(case["sealed"]), "key-refused")
    need(rev >= case["seen_rev"], "rolled-back")
    need(len(data) == 32, "key-refused")
    return data


LABELS = {"chat": ["msg", "meta", "embed"], "account": ["meta"], "box": []}


def open_ring(ak, generation, account, container, field, rows):
    numbers = sorted({row["n"] for row in rows})
    need(numbers and numbers == list(range(1, len(numbers) + 1)), "ring-gap")
    need(len(numbers) == len(rows), "ring-forked")
    return [open_entry(ak, generation, account, container, field, row) for row in rows]


def open_entry(ak, generation, account, container, field, row):
    context = ["key", account, container, f"{row['n']}:{row['kid']}", field]
    rev, data = open_envelope(sub(ak, "wrap"), context, unhex(row["sealed"]), "key-refused")
    key, born = data[:32], int.from_bytes(data[32:], "big")
    subs = [kid(sub(key, label)).hex() for label in LABELS[field]]
    fits = rev == generation and len(data) == 36 and 1 <= born <= generation
    need(fits and kid(key).hex() == row["kid"] and subs == row["subs"], "key-refused")
    return key, born


def live(items):
    return sha(b"seal/v1/live", u32(len(items)), *(lp(name) + unhex(envelope) for name, envelope in sorted(items)))


def agree(private, public, error):
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise Refused(error) from None


def public_of(private):
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def letter_key(private, other, point, box_pub):
    return hkdf(agree(private, other, "record-refused"), b"", b"seal/v1/box" + point + box_pub, 32)


def open_letter(case, head, listed):
    purpose, _, _, reply, turn = case["context"]
    need(reply not in listed or purpose != "reply", "duplicate")
    waited = [item for item in head["pending"] if item["reply"] == reply and item["turn"] == turn]
    need(waited, "unasked")
    wire, own = unhex(case["wire"]), unhex(case["box_key"])
    need(len(wire) > 32)
    key = letter_key(own, wire[:32], wire[:32], public_of(own))
    rev, data = open_envelope(key, case["context"], wire[32:], "record-refused")
    need(rev == 1)
    if purpose != "reply":
        read("text", data.decode())
        return data
    message = read("message", data.decode())
    need(message["role"] == "assistant")
    need(message["parent"] == waited[0]["parent"], "unasked")
    return data


def pair_id(secret):
    return hkdf(secret, b"", b"seal/v1/pair/id", 16).hex()


def pair_key(case, private, other, new, old):
    info = b"seal/v1/pair/key" + new + old + lp(case["origin"]) + lp(case["account"])
    return hkdf(agree(private, other, "pair-refused"), unhex(case["secret"]), info, 32)


def receive(case):
    wire, new = unhex(case["wire"]), unhex(case["new_key"])
    old = wire[:32]
    key = pair_key(case, new, old, public_of(new), old)
    context = ["pair", case["account"], pair_id(unhex(case["secret"])), f"account:{case['generation']}", ""]
    rev, data = open_envelope(key, context, wire[32:], "pair-refused")
    need(rev == 0 and len(data) == 68, "pair-refused")
    return data


def proof(key, chat, message, kind, transcript):
    return mac(sub(key, "proof"), "proof/v1", lp(chat) + lp(message) + bytes([kind]) + transcript)


def step(before, kind, text):
    return sha(before, bytes([kind]), sha(text.encode()))


def b64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def read_link(text):
    origin, hash_at, rest = text.partition("/#/snapshot/")
    name, slash, key = rest.partition("/")
    need(hash_at and slash and re.fullmatch(r"https?://[a-z0-9.:\[\]-]{1,300}", origin), "bad-id")
    an_id("snap", name, "bad-id")
    need(re.fullmatch(r"[A-Za-z0-9_-]{43}", key), "bad-id")
    data = base64.urlsafe_b64decode(key + "=")
    need(b64(data) == key, "bad-id")
    return origin, name, data


def open_snapshot(key, name, now, sealed_list, items):
    def once(label, where, sealed):
        found, data = open_envelope(sub(key, label), ["snapshot", "", name, *where], unhex(sealed), "record-refused")
        need(found == 1)
        return data.decode()

    head = read("list", once("meta", ["list", ""], sealed_list))
    need(now < head["until"], "rolled-back")
    named = {item: sha(unhex(sealed)).hex() for item, sealed in items}
    need(len(named) == len(items) == head["count"], "list-refused")
    need(b64(live(named.items())) == head["live"], "list-refused")
    messages, embeds = {}, {}
    for item, sealed in items:
        label = {"msg": "msg", "emb": "embed"}.get(item[:3], "meta")
        text = once(label, [item, "content"], sealed)
        if label == "msg":
            message = messages[item] = read("message", text)
            need(message["role"] in ("user", "assistant") and not {"proof", "shared"} & set(message))
        else:
            need(label == "embed", "list-refused")
            embeds[item] = read("embed", text)
    shown, at = set(), head["leaf"]
    while at is not None:
        need(at in messages, "parent-missing")
        message = messages.pop(at)
        shown |= set(message["refs"])
        at = message["parent"]
    need(not messages and shown == set(embeds), "list-refused")


# The file.

checked = 0


def same(found, expected, name=""):
    global checked
    checked += 1
    found = found.hex() if isinstance(found, bytes) else found
    if found != expected:
        sys.exit(f"{name}: found {found}, expected {expected}")


def fails(case, action):
    try:
        action()
    except Refused as refused:
        return same(str(refused), case["error"], case.get("name", ""))
    sys.exit(f"{case}: must fail")


def credentials(v):
    for case in v["ids"]:
        for name, prefix in (("account", "acct"), ("chat", "chat"), ("message", "msg")):
            same(prefix + "_" + base32(unhex(case["bits"])), case[name])
    for text in v["refused_ids"]:
        fails({"error": "bad-id"}, lambda text=text: an_id("chat", text, "bad-id"))
    for case in v["salts"]:
        same(mac(unhex(case["logins_key"]), "prelogin", case["login"].encode())[:16], case["server_salt"])
        same(sha(b"seal/v1/pw-salt", lp(case["login"]), unhex(case["server_salt"]))[:16], case["salt"])
    same(sha(b"seal/v1/prf"), v["prf_input"])
    for case in v["password_roots"]:
        kdf = Argon2id(salt=unhex(case["salt"]), length=32, iterations=3, lanes=1, memory_cost=65536)
        same(kdf.derive(unicodedata.normalize("NFKC", case["password"]).encode()), case["root"])
    for case in v["recovery_roots"]:
        same(base32(unhex(case["code"])), case["text"].replace("-", ""))
        same(hkdf(unhex(case["code"]), b"", b"seal/v1/rec", 32), case["root"])
        same("cred_" + base32(hkdf(unhex(case["code"]), b"", b"seal/v1/rec/id", 16)), case["credential"])
    for case in v["keys_of_roots"]:
        root = unhex(case["root"])
        same(sub(root, "kek"), case["kek"])
        same(sub(root, "sign"), case["sign_seed"])
        public = Ed25519PrivateKey.from_private_bytes(sub(root, "sign")).public_key()
        same(public.public_bytes(Encoding.Raw, PublicFormat.Raw), case["public_key"])
    for case in v["proofs"]:
        same(statement(case), case["statement"])
        signed = Ed25519PrivateKey.from_private_bytes(sub(unhex(case["root"]), "sign")).sign(statement(case))
        same(signed, case["proof"])
        verify(case)
    for bad in v["must_fail"]["proofs"]:
        fails(bad, lambda bad=bad: verify(bad["case"]))


def keys(v):
    for case in v["wraps"]:
        context = ["key", case["account"], "", f"account:{case['generation']}", case["field"]]
        ak = unhex(case["account_key"])
        same(seal(unhex(case["kek"]), context, case["rev"], ak, unhex(case["salt"])), case["sealed"])
    for bad in v["must_fail"]["wraps"]:
        fails(bad, lambda bad=bad: unwrap(bad, "pw"))
    for case in v["entries"]:
        key, ak = unhex(case["key"]), unhex(case["account_key"])
        context = ["key", case["account"], case["container"], f"{case['n']}:{case['kid']}", case["field"]]
        data = key + u32(case["born"])
        same(kid(key), case["kid"])
        same(seal(sub(ak, "wrap"), context, case["generation"], data, unhex(case["salt"])), case["sealed"])
        opened = open_entry(ak, case["generation"], case["account"], case["container"], case["field"], case)
        same(opened, (key, case["born"]))
    for bad in v["must_fail"]["rings"]:
        ak = unhex(bad["account_key"])
        fails(bad, lambda: open_ring(ak, bad["generation"], bad["account"], bad["chat"], "chat", bad["rows"]))
    for case in v["rotation"]:
        rows = sorted(case["entries"])
        parts = [lp(container) + u32(n) + unhex(name) for container, n, name in rows]
        same(sha(b"seal/v1/rings", u32(len(rows)), *parts), case["digest"])


def records(v):
    for case in v["lives"]:
        same(live(case["list"]), case["live"])
    for case in v["chains"]:
        parts = [unhex(case[name]) for name in ("before", "envelope_before", "live")]
        same(sha(b"seal/v1/chain", *parts), case["chain"])
    for case in v["shelves"]:
        same(shelf(case["chat"]), case["digit"])
    for case in v["manifest_lives"]:
        same(sha(*map(unhex, case["floors"])), case["live"])
    for case in v["records"]:
        key, data = sub(unhex(case["key"]), case["label"]), case["json"].encode()
        same(seal(key, case["context"], case["rev"], data, unhex(case["salt"])), case["sealed"])
        read(case["name"], case["json"])
    for bad in v["must_fail"]["json"]:
        fails(bad, lambda bad=bad: read(bad["record"], bad["json"]))
    for bad in v["must_fail"]["envelopes"]:
        key = sub(unhex(bad["key"]), "msg")
        fails(bad, lambda: open_envelope(key, bad["context"], unhex(bad["sealed"]), "record-refused"))


def talk(v):
    for case in v["histories"]:
        parts = b"".join(lp(name) + u32(rev) for name, rev in case["branch"])
        found = mac(sub(unhex(case["chat_key"]), "hist"), "hist/v1", u32(len(case["branch"])) + parts)
        same(found, case["digest"])
    for case in v["transcripts"]:
        at, key = sha(b"seal/v1/transcript"), unhex(case["account_key"])
        same(at, case["start"])
        for line in case["lines"]:
            same(b"".join(map(unhex, line["deltas"])).decode(), line["text"])
            at = step(at, line["kind"], line["text"])
            same(at, line["transcript"])
            same(proof(key, case["chat"], line["id"], line["kind"], at), line["proof"])
    for case in v["beside"]:
        digest = sha(b"seal/v1/beside" + lp(case["turn"]) + u32(case["n"]))
        need("msg_" + base32(digest[:16]) == case["id"])
    for case in v["summaries"]:
        before, key = unhex(case["sums_up"]), unhex(case["account_key"])
        same(proof(key, case["chat"], case["id"], 4, step(before, 4, case["text"])), case["proof"])
        same(step(before, 1, case["next"]), case["transcript"])
    for bad in v["must_fail"]["transcripts"]:
        before, key = unhex(bad["before"]), unhex(bad["account_key"])
        claimed = step(before, bad["kind"], bad["text"])
        right = proof(key, bad["chat"], bad["id"], bad["kind"], claimed)
        same(bad["kind"] if right.hex() == bad["proof"] else 5, bad["adopted"], bad["name"])
        same(step(before, 5, bad["text"]), bad["transcript"])


def exchange(v):
    pending = {"turn": v["mailbox"][0]["context"][4], "reply": v["mailbox"][0]["context"][3]}
    for case in v["mailbox"]:
        ephemeral, box_pub = unhex(case["ephemeral"]), unhex(case["box_pub"])
        point = public_of(ephemeral)
        same(public_of(unhex(case["box_key"])), case["box_pub"])
        key = letter_key(ephemeral, box_pub, point, box_pub)
        same(key, case["key"])
        data = case["json"].encode()
        same(point + seal(key, case["context"], 1, data, unhex(case["salt"])), case["wire"])
        waited = {**pending, "parent": json.loads(case["json"]).get("parent")}
        same(open_letter(case, {"pending": [waited]}, []).decode(), case["json"])
    for bad in v["must_fail"]["letters"]:
        fails(bad, lambda bad=bad: open_letter(bad, read("head", bad["head"]), bad["listed"]))
    for case in v["pairing"]:
        old, new_pub = unhex(case["old_key"]), unhex(case["new_pub"])
        same(base32(unhex(case["secret"])), case["text"])
        same(pair_id(unhex(case["secret"])), case["id"])
        same(public_of(unhex(case["new_key"])), case["new_pub"])
        key = pair_key(case, old, new_pub, new_pub, public_of(old))
        same(key, case["key"])
        data = unhex(case["account_key"]) + u32(case["manifest_rev"]) + unhex(case["manifest"])
        context = ["pair", case["account"], case["id"], f"account:{case['generation']}", ""]
        same(public_of(old) + seal(key, context, 0, data, unhex(case["salt"])), case["wire"])
        same(receive(case), data.hex())
    for bad in v["must_fail"]["pairings"]:
        fails(bad, lambda bad=bad: receive(bad))


def sharing(v):
    for case in v["snapshots"]:
        key, salt = unhex(case["key"]), unhex(case["salt"])
        same(read_link(case["link"])[2], case["key"])
        same(case["origin"] + "/#/snapshot/" + case["id"] + "/" + b64(key), case["link"])
        where = ["snapshot", "", case["id"]]
        same(seal(sub(key, "meta"), [*where, "list", ""], 1, case["list_json"].encode(), salt), case["list"])
        for one in case["items"]:
            label = "msg" if one["item"].startswith("msg_") else "embed"
            context = [*where, one["item"], "content"]
            same(seal(sub(key, label), context, 1, one["json"].encode(), salt), one["sealed"])
        items = [(one["item"], one["sealed"]) for one in case["items"]]
        open_snapshot(key, case["id"], case["now"], case["list"], items)
        meta = sub(unhex(case["chat_key"]), "meta")
        same(seal(meta, case["kept_context"], 1, key, unhex(case["kept_salt"])), case["kept"])
    for link in v["refused_links"]:
        fails({"name": link, "error": "bad-id"}, lambda link=link: read_link(link))
    for bad in v["must_fail"]["snapshots"]:
        at = (unhex(bad["key"]), bad["id"], bad["now"], bad["list"], bad["items"])
        fails(bad, lambda at=at: open_snapshot(*at))


def main():
    default = pathlib.Path(__file__).parents[3] / "vectors" / "chats-v1.json"
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    v = json.loads(path.read_text())
    for part in (credentials, keys, records, talk, exchange, sharing):
        part(v)
    print(f"{checked} checks hold")


if __name__ == "__main__":
    main()
