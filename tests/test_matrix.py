"""The agent in Matrix rooms, plain and encrypted: the real program, a real Synapse, and people with clients of another make."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import wait_until
from matrix_bot import EXTRACTIVE, Bot, of_conversation, of_room
from matrix_people import PATIENCE, Message, People, Person
from matrix_server import Refused, Synapse
from recording_model import RecordingModel
from test_tools import HOSTILE, entry

FENCE = "```"


@pytest.fixture(scope="module")
def quoting(tmp_path_factory: pytest.TempPathFactory, synapse: Synapse) -> Iterator[Bot]:
    """A bot with the built-in model, which quotes, and a memory of rooms of four lines."""
    bot = Bot(tmp_path_factory.mktemp("quoting") / "bot", server=synapse, more="[room_context]\nlimit = 4\n")
    try:
        bot.start()
        yield bot
    finally:
        bot.stop()


@pytest.fixture(scope="module")
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory, synapse: Synapse, recorder: RecordingModel) -> Iterator[Bot]:
    """A bot whose model keeps what it is asked."""
    tools = entry("bad", command=HOSTILE, tools=["echo"]) + '[[tools.rules]]\ntool = "bad.echo"\nthen = "approve"\n'
    folder = tmp_path_factory.mktemp("recorded") / "bot"
    bot = Bot(folder, recorder.environment, server=synapse, settings={"prefix": "!ask"}, more=tools)
    try:
        bot.start()
        yield bot
    finally:
        bot.stop()


def prompt(recorder: RecordingModel, query: str) -> list[dict]:
    """The last prompt that asked this."""
    found = [asked for asked in recorder.prompts if asked[-1]["role"] == "user" and query in asked[-1]["content"]]
    assert found, f"nobody asked {query!r}"
    return found[-1]


def history(recorder: RecordingModel, query: str) -> str:
    """What the person and the agent said to each other before."""
    return of_conversation(prompt(recorder, query)).removesuffix(query)


def room_of(recorder: RecordingModel, query: str) -> str:
    return of_room(prompt(recorder, query))


# Who is answered, and from what


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("threaded", [False, True], ids=["room", "thread"])
def test_three_people_play_the_example(quoting: Bot, people: People, encrypted: bool, threaded: bool) -> None:
    alice, bob, dave = people.persons("alice", "bob", "dave")
    room = quoting.room(alice, bob, dave, encrypted=encrypted)
    root = alice.say(room, "Database planning") if threaded else None

    def ask(person: Person, text: str) -> Message:
        answer = quoting.asked(person, room, text, EXTRACTIVE, thread=root)
        assert answer.encrypted == encrypted and answer.thread == root
        return answer

    alice.say(room, "I think we should use PostgreSQL", thread=root)
    bob.say(room, "Good choice, it's ACID compliant", thread=root)
    alice.say(room, "Let's use RDS for easier maintenance", thread=root)
    answer = ask(dave, "what database did we choose?")
    assert "PostgreSQL" in answer.text and "From the room" in answer.text, answer.text
    ask(alice, "Hello, I'm Alice and I prefer Rust")
    for person, line in ((bob, "Lunch at noon?"), (dave, "Fine with me"), (bob, "See you there"), (dave, "Yes")):
        person.say(room, line, thread=root)
    assert "Alice" not in ask(bob, "What's my name?").text, "it is not Bob's to be told"
    assert "I'm Alice" in ask(alice, "What's my name?").text
    said = quoting.said(alice, room)
    assert len(said) == 4, [message.text for message in said]
    # In a room of her own she is somebody else.
    assert "Alice and" not in quoting.asked(alice, quoting.direct(alice), "What's my name?", EXTRACTIVE, to=None).text


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_direct_room_needs_no_mention(quoting: Bot, people: People, encrypted: bool) -> None:
    carol, mallory = people.persons("carol", "mallory")
    room = quoting.direct(carol, encrypted=encrypted)
    quoting.asked(carol, room, "Hello, I'm Carol and I like tea", EXTRACTIVE, to=None)
    assert "I'm Carol" in quoting.asked(carol, room, "What is my name?", EXTRACTIVE, to=None).text
    other = quoting.direct(mallory, encrypted=encrypted)
    assert "Carol" not in quoting.asked(mallory, other, "What is my name?", EXTRACTIVE, to=None).text


def test_it_answers_when_it_is_meant_and_else_is_silent(bot: Bot, people: People, recorder: RecordingModel) -> None:
    alice, bob, machine = people.persons("alice", "bob", "machine")
    room = bot.room(alice, bob, machine)
    alice.say(room, "unasked-1: what do you think, everybody?")
    machine.say(room, "unasked-2: I am a bot", to=bot.pill, kind="m.notice")
    bob.say(room, "unasked-3: Robinson Crusoe is a book")
    first = bot.asked(alice, room, "asked by pill")
    bot.asked(alice, room, "asked by name", to=None, extra={"body": "Robin: asked by name"})
    bot.asked(alice, room, "asked by prefix", to=None, extra={"body": "!ask asked by prefix"})
    bot.asked(bob, room, "asked by reply", to=None, reply_to=first.id)
    # To somebody else is not to the bot.
    bob.say(room, "unasked-4: for Alice", to=(alice.id, alice.name))
    bot.asked(bob, room, "asked at the end")
    said = [message.text for message in bot.said(alice, room)]
    assert sorted(said) == sorted(f"noted: asked {how}" for how in ("by pill", "by name", "by prefix", "by reply", "at the end"))
    asked = [one[-1]["content"] for one in recorder.prompts]
    assert not [query for query in asked if "unasked-" in query.split("\n")[-1]]


def test_threads_are_answered_in_threads_and_none_is_opened(bot: Bot, people: People, recorder: RecordingModel) -> None:
    alice = people.person("alice")
    room = bot.room(alice)
    root = alice.say(room, "a thread begins")
    inside = bot.asked(alice, room, "inside, remember the gannet", thread=root)
    outside = bot.asked(alice, room, "outside")
    assert (inside.thread, outside.thread) == (root, None)
    assert "gannet" not in history(recorder, "outside"), "a thread is a session of its own"
    bot.asked(alice, room, "inside again", thread=root)
    assert "gannet" in history(recorder, "inside again")
    sessions = bot.run("session", "list").stdout
    assert f"{room}:main:{alice.id}" in sessions and f"{room}:{root}:{alice.id}" in sessions


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_the_room_as_the_asker_sees_it(bot: Bot, people: People, recorder: RecordingModel, encrypted: bool) -> None:
    alice, bob, late = people.persons("alice", "bob", "late")
    from_joining = {"type": "m.room.history_visibility", "state_key": "", "content": {"history_visibility": "joined"}}
    encryption = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
    state = [from_joining, encryption] if encrypted else [from_joining]
    room = bot.room(alice, bob, initial_state=state)
    changed = bob.say(room, "we meet in osprey-room")
    bob.edit(room, changed, "we meet in heron-room")
    bob.redact(room, bob.say(room, "my password is magpie"))
    bot.asked(alice, room, "where do we meet?")
    seen = room_of(recorder, "where do we meet?")
    assert "heron-room" in seen, seen
    assert "osprey-room" not in seen and "magpie" not in seen and "where do we meet?" not in seen, seen
    # Who comes later may not see what was said before.
    alice.invite(room, late.id)
    late.join(room)
    alice.wait_for_member(room, late.id)
    late.wait_for_member(room, bot.id)
    bob.wait_for_member(room, late.id)
    bob.say(room, "welcome, we have plover cake")
    bot.asked(late, room, "what was said?")
    seen = room_of(recorder, "what was said?")
    assert "plover" in seen and "heron-room" not in seen, seen


# One's own words


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_edits_and_redactions_change_the_memory(
    bot: Bot, people: People, recorder: RecordingModel, encrypted: bool
) -> None:
    alice, bob = people.persons("alice", "bob")
    room = bot.room(alice, bob, encrypted=encrypted)
    first = bot_event(bot, alice, room, "my code is kestrel-one")
    bot.asked(alice, room, "what is my code?")
    assert "kestrel-one" in history(recorder, "what is my code?")
    alice.edit(room, first, f"{bot.name}: my code is heron-two")
    bot.asked(alice, room, "and what is it now?")
    now = history(recorder, "and what is it now?")
    assert "heron-two" in now and "my code is kestrel-one" not in now, now
    second = bot_event(bot, alice, room, "my other code is siskin-three")
    alice.redact(room, second)
    bot.asked(alice, room, "and the other?")
    assert "siskin-three" not in history(recorder, "and the other?")
    # Nobody changes the words of another: their server may let them say so, and nobody listens.
    third = bot_event(bot, alice, room, "my last code is dunlin-four")
    bob.edit(room, third, f"{bot.name}: my last code is forged-five")
    bot.asked(bob, room, "done")
    bot.asked(alice, room, "and the last?")
    last = history(recorder, "and the last?")
    assert "dunlin-four" in last and "forged-five" not in last


def bot_event(bot: Bot, person: Person, room: str, text: str) -> str:
    """Tells the bot something, waits for its answer, and gives the event's id."""
    event = person.say(room, text, to=bot.pill)
    person.hears(room, bot.id, f"noted: {text}")
    return event


@pytest.mark.parametrize("words", ["!forget", "forget our conversation"])
def test_forgetting(bot: Bot, people: People, recorder: RecordingModel, words: str) -> None:
    alice, bob = people.persons("alice", "bob")
    room = bot.room(alice, bob)
    bot.asked(alice, room, "remember avocet")
    bot.asked(bob, room, "remember bittern")
    bot.asked(alice, room, words, "erased our conversation")
    bot.asked(alice, room, "what do you remember, Alice?")
    bot.asked(bob, room, "what do you remember, Bob?")
    assert "avocet" not in history(recorder, "what do you remember, Alice?")
    assert "bittern" in history(recorder, "what do you remember, Bob?"), "Bob forgot nothing"


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_an_export_goes_where_only_its_person_reads(bot: Bot, people: People, encrypted: bool) -> None:
    alice, bob = people.persons("alice", "bob")
    room = bot.room(alice, bob, encrypted=encrypted)
    bot.asked(alice, room, "remember curlew")
    bot.asked(bob, room, "remember dotterel")
    before = set(alice.client.rooms)
    bot.asked(alice, room, "!export", "in private")
    # A room that she is invited to, or one that they have already.
    wait_until(lambda: bool(alice.invitations()), PATIENCE, lambda: f"no invitation came:\n{bot.log()}")
    (direct,) = alice.invitations() - before
    alice.join(direct)
    (sent,) = alice.hears(direct, bot.id, lambda message: message.kind == "m.file")
    exported = json.dumps(json.loads(alice.download(sent)))
    assert "curlew" in exported and "dotterel" not in exported
    assert not [message for message in bot.said(bob, room) if message.kind == "m.file"]
    assert sent.encrypted and "file" in sent.content
    # Asked for in a direct room, it is sent there, unless a server could read it there.
    own = bot.direct(bob, encrypted=encrypted)
    bot.asked(bob, own, "remember dunnock", to=None)
    if encrypted:
        bob.say(own, "!export")
    else:
        bot.asked(bob, own, "!export", "in private", to=None)
        wait_until(lambda: bool(bob.invitations()), PATIENCE, lambda: f"no invitation came:\n{bot.log()}")
        (other,) = bob.invitations()
        bob.join(other)
        assert not [message for message in bot.said(bob, own) if message.kind == "m.file"]
        own = other
    (sent,) = bob.hears(own, bot.id, lambda message: message.kind == "m.file")
    assert sent.encrypted and "file" in sent.content
    exported = json.dumps(json.loads(bob.download(sent)))
    assert "dunnock" in exported and "curlew" not in exported
    if not encrypted:
        # The room that there is by now is used again.
        again = bot.direct(bob)
        bot.asked(bob, again, "!export", "in private", to=None)
        bob.hears(own, bot.id, lambda message: message.kind == "m.file", 2)
        assert not bob.invitations()


def test_an_export_does_not_go_to_a_room_that_is_somebody_elses_by_now(bot: Bot, people: People) -> None:
    alice, bob = people.persons("alice", "bob")
    room = bot.room(alice, bob, encrypted=True)
    bot.asked(alice, room, "remember godwit")
    own = bot.direct(alice, encrypted=True)
    bot.asked(alice, own, "we two", to=None)
    alice.invite(own, bob.id)
    bob.join(own)
    bot.asked(bob, own, "hello")
    alice.leave(own)
    bot.asked(bob, own, "she is gone", to=None)
    bot.asked(alice, room, "!export", "in private")
    wait_until(lambda: bool(alice.invitations()), PATIENCE, lambda: f"no invitation came:\n{bot.log()}")
    assert not [message for message in bot.said(bob, own) if message.kind == "m.file"]


def test_help_privacy_and_cancel(bot: Bot, people: People, recorder: RecordingModel) -> None:
    alice = people.person("alice")
    room = bot.direct(alice)
    assert "!forget" in bot.asked(alice, room, "!help", "!export", to=None).text
    assert "What I keep" in bot.asked(alice, room, "!privacy", "What I keep", to=None).text
    recorder.hold = threading.Event()
    try:
        alice.say(room, "a long story, please")
        wait_until(
            lambda: any("a long story" in str(one[-1]) for one in recorder.prompts), PATIENCE, lambda: bot.log()
        )
        bot.asked(alice, room, "!cancel", "", to=None)
    finally:
        recorder.hold.set()
        recorder.hold = None
    bot.asked(alice, room, "something else", to=None)
    assert not bot.said(alice, room, lambda message: "noted: a long story" in message.text)


# How answers look


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_streamed_answer_is_one_message(bot: Bot, people: People, recorder: RecordingModel, encrypted: bool) -> None:
    alice = people.person("alice")
    room = bot.direct(alice, encrypted=encrypted)
    pieces = [f"**Line {n}** of `ten`.\n\n" for n in range(10)]
    query = f"tell me slowly, {encrypted}"
    recorder.answers[query] = pieces
    shown = threading.Event()

    def between() -> None:
        # Until something of it can be seen.
        shown.wait(PATIENCE)

    recorder.between = between
    try:
        alice.say(room, query)
        alice.hears(room, bot.id, "Line 0")
    finally:
        shown.set()
        recorder.between = lambda: None
    (whole,) = alice.hears(room, bot.id, "Line 9")
    assert whole.text.strip() == "".join(pieces).strip()
    assert whole.edits and all("Line 9" not in earlier for earlier in whole.edits)
    assert "<strong>Line 9</strong>" in whole.html and "<code>ten</code>" in whole.html, whole.html
    assert len(bot.said(alice, room)) == 1
    # An edit is one of the first message, and its content says so to clients that know no edits.
    edits = [event for event in alice.raw(room) if relation(event).get("rel_type") == "m.replace"]
    assert edits and all(relation(event)["event_id"] == whole.id for event in edits)


def relation(event: dict) -> dict:
    return event.get("content", {}).get("m.relates_to") or {}


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_long_answer_comes_in_parts(bot: Bot, people: People, recorder: RecordingModel, encrypted: bool) -> None:
    alice = people.person("alice")
    room = bot.direct(alice, encrypted=encrypted)
    lines = [f"line-{n:04} of a long answer with some code" for n in range(1_000)]
    query = f"tell me everything, {encrypted}"
    recorder.answers[query] = [f"Here it is:\n\n{FENCE}text\n", "\n".join(lines), f"\n{FENCE}\n\nThat is all."]
    alice.say(room, query)
    alice.hears(room, bot.id, "That is all.")
    parts = bot.said(alice, room)
    assert len(parts) >= 2 and all(part.text.count(FENCE) % 2 == 0 for part in parts), "no part breaks a block"
    told = "\n".join(part.text for part in parts)
    assert [line for line in told.splitlines() if line.startswith("line-")] == lines, "each line once, in order"


# Approvals


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_approvals_are_the_right_persons(bot: Bot, people: People, encrypted: bool) -> None:
    alice, mallory = people.persons("alice", "mallory")
    room = bot.room(alice, mallory, encrypted=encrypted)
    word = f"whimbrel-{encrypted}"
    order = f'call bad.echo {{"text": "{word}"}}'
    question = bot.asked(alice, room, order, "May I call bad.echo")
    code = question.text.split("`approve ")[1].split("`")[0]
    refused = bot.asked(mallory, room, f"approve {code}", "", reply_to=question.id)
    assert word not in refused.text.replace(order, ""), refused.text
    assert not bot.said(alice, room, lambda message: f"-> {word}" in message.text or "noted: " in message.text)
    # Reactions are not encrypted: a server could forge them.
    alice.react(room, question.id, "👍")
    wrong = "AAAAAA" if code != "AAAAAA" else "BBBBBB"
    bot.asked(alice, room, f"approve {wrong}", "", reply_to=question.id)
    # By reply, without a mention: that is what a person does.
    done = bot.asked(alice, room, f"approve {code}", "noted: ", to=None, reply_to=question.id)
    assert word in done.text.split(" -> ")[-1], done.text
    bot.asked(alice, room, f"approve {code}", "", reply_to=question.id)
    assert len(bot.said(alice, room, lambda message: "noted: " in message.text)) == 1


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_reaction_decides_where_the_operator_allows_it(
    tmp_path: Path, synapse: Synapse, people: People, recorder: RecordingModel, encrypted: bool
) -> None:
    tools = entry("bad", command=HOSTILE, tools=["echo"]) + '[[tools.rules]]\ntool = "bad.echo"\nthen = "approve"\n'
    settings = {"allow_reactions": True}
    bot = Bot(tmp_path / "bot", recorder.environment, server=synapse, settings=settings, more=tools)
    alice, mallory = people.persons("alice", "mallory")
    try:
        bot.start()
        room = bot.room(alice, mallory, encrypted=encrypted)
        for word, sign, outcome in (("dunlin", "✅", "The tool said"), ("knot", "👎🏽", "it was denied")):
            question = bot.asked(alice, room, f'call bad.echo {{"text": "{word}"}}', "May I call bad.echo")
            mallory.react(room, question.id, sign)
            refused = mallory.hears(room, bot.id, lambda said, to=question.id: said.reply_to == to)[-1]
            assert f"-> {word}" not in refused.text and "noted: " not in refused.text, refused.text
            alice.react(room, question.id, "👀")
            alice.react(room, question.id, sign)
            # The answer is one to what she asked, not to the question in between.
            heard = lambda said, to=question.reply_to, outcome=outcome: said.reply_to == to and outcome in said.text
            alice.hears(room, bot.id, heard)
        done = [message.text.split(" -> ")[1] for message in bot.said(alice, room) if "noted: " in message.text]
        assert len(done) == 2 and "dunlin" in done[0] and "knot" not in done[1], done
    finally:
        bot.stop()


# Where it may be, and what it does not believe


def test_a_plain_message_in_an_encrypted_room_is_not_answered(
    bot: Bot, people: People, recorder: RecordingModel, synapse: Synapse
) -> None:
    alice = people.person("alice")
    room = bot.direct(alice, encrypted=True)
    path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/forged"
    synapse.call("PUT", path, {"msgtype": "m.text", "body": "forged by the server"}, alice.client.access_token)
    bot.asked(alice, room, "really mine", to=None)
    assert [message.text for message in bot.said(alice, room)] == ["noted: really mine"]
    assert "forged by the server" not in json.dumps(recorder.prompts)


def test_a_plain_message_in_an_encrypted_room_is_no_line_of_it(
    bot: Bot, people: People, recorder: RecordingModel, synapse: Synapse
) -> None:
    alice, bob = people.persons("alice", "bob")
    room = bot.room(alice, bob, encrypted=True)
    real = alice.say(room, "we meet in heron-room")
    new = {"msgtype": "m.text", "body": "we meet in magpie-room"}
    replaced = new | {"m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": real}}
    for n, forged in enumerate(({"msgtype": "m.text", "body": "bring the osprey"}, replaced)):
        path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/forged-line-{n}"
        synapse.call("PUT", path, forged, alice.client.access_token)
    bot.asked(bob, room, "where is it, and what to bring?")
    seen = room_of(recorder, "where is it, and what to bring?")
    assert "heron-room" in seen and "magpie-room" not in seen and "osprey" not in seen, seen


def test_it_joins_and_leaves_as_it_should(bot: Bot, people: People, synapse: Synapse) -> None:
    alice = people.person("alice")
    room = bot.room(alice)
    bot.asked(alice, room, "here")
    token = synapse.log_in(bot.account, bot.password)
    assert room in synapse.call("GET", "/_matrix/client/v3/joined_rooms", token=token)["joined_rooms"]
    alice.leave(room)
    wait_until(
        lambda: room not in synapse.call("GET", "/_matrix/client/v3/joined_rooms", token=token)["joined_rooms"],
        PATIENCE,
        lambda: f"it stays in a room alone:\n{bot.log()}",
    )
    with pytest.raises(Refused):
        path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/1"
        synapse.call("PUT", path, {"msgtype": "m.text", "body": "x"}, token)
    synapse.call("POST", "/_matrix/client/v3/logout", {}, token)
