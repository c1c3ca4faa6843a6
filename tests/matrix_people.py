"""People in Matrix rooms, plain and encrypted: real clients of another make (matrix-nio with libolm) than the program's.

Each person is a client with a device of its own. Calls block; they run on one event loop in a thread, so that threads can
make many people talk at once.
"""

from __future__ import annotations

import asyncio
import functools
import html
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import nio
from matrix_server import NAME, Synapse
from nio.crypto.attachments import decrypt_attachment
from nio.store import SqliteMemoryStore

logging.getLogger("nio").setLevel(logging.CRITICAL)

# Long enough for two busy cores; nothing is measured by it.
PATIENCE = float(os.environ.get("CONFIDANT_TEST_PATIENCE", "90"))


@dataclass
class Message:
    """What a room shows of a message: its latest text, and how it came to be."""

    id: str
    sender: str
    text: str
    kind: str = "m.text"
    html: str = ""
    thread: str | None = None
    reply_to: str | None = None
    edits: list[str] = field(default_factory=list)
    encrypted: bool = False
    content: dict = field(default_factory=dict)


class People:
    """Makes people, and keeps the loop that they live on."""

    def __init__(self, server: Synapse) -> None:
        self.server = server
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._everyone: list[Person] = []

    def person(self, name: str) -> Person:
        """Somebody new. The name gets a number, so that no two tests share a person."""
        account = f"{name}-{secrets.token_hex(3)}"
        password = secrets.token_hex(8)
        self.server.register(account, password, name.capitalize())
        person = Person(self, f"@{account}:{NAME}", name.capitalize(), password)
        person.arrive()
        self._everyone.append(person)
        return person

    def persons(self, *names: str) -> list[Person]:
        return self.together([functools.partial(self.person, name) for name in names])

    @staticmethod
    def together(calls: list[Callable[[], Any]]) -> list:
        """All at once; what each gave, in their order."""
        with ThreadPoolExecutor(len(calls) or 1) as pool:
            return [done.result() for done in [pool.submit(call) for call in calls]]

    def close(self) -> None:
        async def leave() -> None:
            await asyncio.gather(*(person.client.close() for person in self._everyone))

        asyncio.run_coroutine_threadsafe(leave(), self.loop).result(PATIENCE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()


def blocking(method):
    """Runs an async method of a person on the people's loop, and waits for it."""

    @functools.wraps(method)
    def call(self: Person, *args, **kwargs):
        done = asyncio.run_coroutine_threadsafe(method(self, *args, **kwargs), self.people.loop)
        return done.result(2 * PATIENCE)

    return call


class Person:
    """Somebody with an account and one device."""

    def __init__(self, people: People, user_id: str, name: str, password: str) -> None:
        self.people, self.id, self.name, self.password = people, user_id, name, password
        self.client: nio.AsyncClient
        self._events: dict[str, dict[str, nio.Event]] = {}
        self._syncing: asyncio.Lock

    # Rooms

    @blocking
    async def arrive(self) -> None:
        settings = nio.AsyncClientConfig(store=SqliteMemoryStore, encryption_enabled=True, request_timeout=60)
        self.client = nio.AsyncClient(self.people.server.url, self.id, store_path="/nowhere", config=settings)
        self._syncing = asyncio.Lock()
        good(await self.client.login(self.password, device_name="test"))
        await self._sync(0)

    @blocking
    async def room(self, *invited: str, encrypted: bool = False, direct: bool = False, **options) -> str:
        """A new room; a direct one is marked as such in the invitation."""
        state = [nio.EnableEncryptionBuilder().as_dict()] if encrypted else []
        preset = nio.RoomPreset.trusted_private_chat if direct else nio.RoomPreset.private_chat
        options = {"initial_state": state, "preset": preset, "is_direct": direct, "invite": invited} | options
        room = good(await self.client.room_create(**options)).room_id
        await self._until(lambda: room in self.client.rooms, f"{room} was not synced")
        return room

    @blocking
    async def invite(self, room: str, user_id: str) -> None:
        good(await self.client.room_invite(room, user_id))

    @blocking
    async def join(self, room: str) -> None:
        good(await self.client.join(room))
        await self._until(lambda: room in self.client.rooms, f"{room} was not synced")

    @blocking
    async def leave(self, room: str) -> None:
        good(await self.client.room_leave(room))

    @blocking
    async def kick(self, room: str, user_id: str) -> None:
        good(await self.client.room_kick(room, user_id))

    @blocking
    async def wait_for_member(self, room: str, user_id: str, joined: bool = True) -> None:
        def there() -> bool:
            here = self.client.rooms.get(room)
            members = {} if here is None else here.users
            invited = {} if here is None else here.invited_users
            return (user_id in members and user_id not in invited) == joined

        await self._until(there, f"{user_id} {'did not join' if joined else 'is still in'} {room}")

    @blocking
    async def invitations(self) -> set[str]:
        await self._sync(0)
        return set(self.client.invited_rooms)

    # Saying

    @blocking
    async def say(self, room: str, text: str, *, to: tuple[str, str] | None = None, reply_to: str | None = None,
                  thread: str | None = None, kind: str = "m.text", extra: dict | None = None) -> str:  # fmt: skip
        """Says something; `to` is the id and name of somebody who is mentioned with a pill. Gives the event's id."""
        content: dict = {"msgtype": kind, "body": text, "m.mentions": {}}
        if to is not None:
            address, name = to
            content |= {
                "body": f"{name}: {text}",
                "format": "org.matrix.custom.html",
                "formatted_body": f'<a href="https://matrix.to/#/{address}">{html.escape(name)}</a>: {html.escape(text)}',
                "m.mentions": {"user_ids": [address]},
            }
        relation: dict = {}
        if thread is not None:
            relation |= {"rel_type": "m.thread", "event_id": thread, "is_falling_back": reply_to is None}
            relation |= {"m.in_reply_to": {"event_id": reply_to or thread}}
        elif reply_to is not None:
            relation |= {"m.in_reply_to": {"event_id": reply_to}}
        return await self._send(room, content | ({"m.relates_to": relation} if relation else {}) | (extra or {}))

    @blocking
    async def edit(self, room: str, event: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text, "m.mentions": {}}
        relation = {"rel_type": "m.replace", "event_id": event}
        return await self._send(room, new | {"body": f"* {text}", "m.new_content": new, "m.relates_to": relation})

    @blocking
    async def react(self, room: str, event: str, key: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": event, "key": key}
        good(await self.client.room_send(room, "m.reaction", {"m.relates_to": relation}, ignore_unverified_devices=True))

    @blocking
    async def redact(self, room: str, event: str) -> None:
        good(await self.client.room_redact(room, event))

    async def _send(self, room: str, content: dict) -> str:
        # Who is here now, and with which devices.
        if self.client.rooms[room].encrypted:
            await self._sync(0)
        sent = await self.client.room_send(room, "m.room.message", content, ignore_unverified_devices=True)
        return good(sent).event_id

    # Hearing

    @blocking
    async def messages(self, room: str, by: str | None = None) -> list[Message]:
        """What the room shows now, oldest first."""
        await self._sync(0)
        return self._shown(room, by)

    @blocking
    async def hears(self, room: str, by: str, wanted: Callable[[Message], bool] | str, count: int = 1) -> list[Message]:
        """Waits until `by` has said so many messages that are wanted (that contain this text); gives all such."""
        fits = wanted if callable(wanted) else lambda message: wanted in message.text
        found: list[Message] = []

        def enough() -> bool:
            found[:] = [message for message in self._shown(room, by) if fits(message)]
            return len(found) >= count

        def heard() -> str:
            said = [message.text for message in self._shown(room, by)]
            return f"{by} did not say {count} of {wanted!r}, but {said[-20:]}; unreadable: {self._unreadable(room)}"

        await self._until(enough, heard)
        return found

    @blocking
    async def unreadable(self, room: str) -> int:
        await self._sync(0)
        return self._unreadable(room)

    @blocking
    async def raw(self, room: str) -> list[dict]:
        """Every event of a room as the server has it, oldest first."""
        events: list[dict] = []
        start = ""
        while True:
            page = good(await self.client.room_messages(room, start, direction=nio.MessageDirection.back, limit=500))
            events += [event.source for event in page.chunk]
            if not page.end or not page.chunk:
                return events[::-1]
            start = page.end

    @blocking
    async def download(self, message: Message) -> bytes:
        """The file of a message, opened if it is encrypted."""
        sealed = message.content.get("file")
        place = (sealed or message.content)["url"].removeprefix("mxc://")
        address = f"{self.people.server.url}/_matrix/client/v1/media/download/{place}"
        headers = {"Authorization": f"Bearer {self.client.access_token}"}
        async with aiohttp.ClientSession() as session, session.get(address, headers=headers) as response:
            assert response.status == 200, await response.text()
            content = await response.read()
        if sealed is None:
            return content
        return decrypt_attachment(content, sealed["key"]["k"], sealed["hashes"]["sha256"], sealed["iv"])

    def _unreadable(self, room: str) -> int:
        return sum(isinstance(event, nio.MegolmEvent) for event in self._events.get(room, {}).values())

    def _shown(self, room: str, by: str | None) -> list[Message]:
        shown: dict[str, Message] = {}
        for event in self._events.get(room, {}).values():
            content = event.source.get("content", {})
            relation = content.get("m.relates_to") or {}
            if isinstance(event, nio.RedactionEvent):
                shown.pop(event.redacts, None)
            elif event.source.get("type") != "m.room.message" or not content:
                continue
            elif relation.get("rel_type") == "m.replace":
                new, old = content.get("m.new_content", {}), shown.get(relation["event_id"])
                if old is not None and old.sender == event.sender:
                    old.edits.append(old.text)
                    old.text, old.html = new.get("body", ""), new.get("formatted_body", "")
                    old.kind, old.content = new.get("msgtype", ""), new
            else:
                shown[event.event_id] = Message(
                    event.event_id,
                    event.sender,
                    content.get("body", ""),
                    content.get("msgtype", ""),
                    content.get("formatted_body", ""),
                    relation.get("event_id") if relation.get("rel_type") == "m.thread" else None,
                    (relation.get("m.in_reply_to") or {}).get("event_id"),
                    encrypted=event.decrypted,
                    content=content,
                )
        return [message for message in shown.values() if by in (None, message.sender)]

    # Keeping up

    async def _until(self, ready: Callable[[], bool], failure: str | Callable[[], str]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not ready():
            if time.monotonic() > deadline:
                raise AssertionError(failure if isinstance(failure, str) else failure())
            await self._sync(500)

    async def _sync(self, milliseconds: int) -> None:
        """Takes in what is new, and does what a client with encryption does then."""
        async with self._syncing:
            client = self.client
            lines = {"room": {"timeline": {"limit": 1_000}}}
            done = await client.sync(milliseconds, sync_filter=lines, full_state=client.next_batch is None)
            if not isinstance(done, nio.SyncResponse):
                await asyncio.sleep(0.1)  # The server is away; somebody may be testing just that.
                return
            for room, joined in done.rooms.join.items():
                events = self._events.setdefault(room, {})
                for event in joined.timeline.events:
                    events[event.event_id] = event
            if client.should_upload_keys:
                await client.keys_upload()
            if client.should_query_keys:
                await client.keys_query()
            if client.should_claim_keys:
                await client.keys_claim(client.get_users_for_key_claiming())
            await client.send_to_device_messages()
            self._decrypt_late()

    def _decrypt_late(self) -> None:
        """Opens what came before its key."""
        for events in self._events.values():
            for name, event in events.items():
                if isinstance(event, nio.MegolmEvent):
                    try:
                        events[name] = self.client.decrypt_event(event)
                    except nio.EncryptionError:
                        continue


def good(reply):
    """A reply that is not an error."""
    assert not isinstance(reply, nio.ErrorResponse), f"{type(reply).__name__}: {reply}"
    return reply
