"""The S3 server that the Rust tests of `confidant-memory` run against is one that their promises can fail on.

Those tests are worth nothing if the server ignores a conditional write, or lets everybody in. `s3_server.py` starts it.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import s3_server


# Of a key that no server knows. One that serves everybody does not look at it, but wants to see one.
SIGNATURE = "AWS4-HMAC-SHA256 Credential=AKID/20260801/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00"


def ask(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    try:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Authorization": SIGNATURE, **headers})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server.server() as url:
        yield url


def test_an_object_is_created_only_once(s3: str) -> None:
    assert ask(s3, "PUT", "/bucket")[0] == 200
    assert ask(s3, "PUT", "/bucket/name", b"first", If_None_Match="*")[0] == 200
    assert ask(s3, "PUT", "/bucket/name", b"second", If_None_Match="*")[0] == 412
    assert ask(s3, "GET", "/bucket/name") == (200, b"first")


def test_a_missing_bucket_and_a_missing_object_are_told_apart(s3: str) -> None:
    assert ask(s3, "PUT", "/there-is-one")[0] == 200
    status, body = ask(s3, "GET", "/there-is-one/name")
    assert (status, b"<Code>NoSuchKey</Code>" in body) == (404, True)
    status, body = ask(s3, "GET", "/there-is-none/name")
    assert (status, b"<Code>NoSuchBucket</Code>" in body) == (404, True)


def test_a_server_that_knows_no_key_refuses_every_key() -> None:
    with s3_server.server(strict=True) as url:
        status, body = ask(url, "GET", "/bucket/name")
    assert (status, b"<Code>InvalidAccessKeyId</Code>" in body) == (403, True)
