"""Keeps people's names out of the log: the HTTP library logs each request's address, and ours have ids of sessions and persons."""

from __future__ import annotations

import contextlib
import contextvars
import logging
from collections.abc import Iterator

_asking: contextvars.ContextVar[bool] = contextvars.ContextVar("confidant_memory_asking", default=False)


class _NotOurs(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _asking.get()


logging.getLogger("httpx2").addFilter(_NotOurs())


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """While this lasts, the HTTP library logs nothing of this thread or task."""
    before = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(before)
