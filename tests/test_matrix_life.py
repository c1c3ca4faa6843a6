"""The Matrix bot when things end and begin again: restarts, kills, outages, lost keys, wrong settings. On a real Synapse."""

from __future__ import annotations

import functools
import http.client
import os
import random
import re
import shutil
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import wait_until
from matrix_bot import Bot, of_conversation
from matrix_people import PATIENCE, People, Person
from matrix_server import Synapse
from matrix_server import synapse as another_synapse
from recording_model import RecordingModel
from test_nothing_at_rest import needles

# So many events are sent while the process dies again and again.
EVENTS = int(os.environ.get("CONFIDANT_MATRIX_EVENTS", "300"))
# Takes what a bot takes, and `like`: another one whose account it has.
MakeBot = Callable[..., Bot]


@pytest.fixture
def recorder() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture
def make_bot(tmp_path: Path, synapse: Synapse, recorder: RecordingModel) -> Iterator[MakeBot]:
    """Makes bots that ask the recorder; they are stopped at the end."""
    made: list[Bot] = []

    def make(like: Bot | None = None, **options) -> Bot:
        if like is not None:
            options |= {"account": like.account, "password": like.password}
        options = {"server": synapse, "environment": recorder.environment} | options
        made.append(Bot(tmp_path / f"bot-{len(made)}", **options))
        return made[-1]

    yield make
    for bot in made:
        bot.stop()


@pytest.fixture
def bot(make_bot: MakeBot) -> Bot:
    bot = make_bot()
    bot.start()
    return bot


# Ends and beginnings


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_conversation_outlives_the_process(
    bot: Bot, people: People, recorder: RecordingModel, encrypted: bool
) -> None:
    alice, bob = people.persons("alice", "bob")
    room = alice.room(bob.id, encrypted=encrypted)
    bob.join(room)
    alice.wait_for_member(room, bob.id)
    for n in range(3):
        alice.say(room, f"before it came {n}", to=bot.pill)
    alice.invite(room, bot.id)
    for person in (alice, bob):
        person.wait_for_member(room, bot.id)
    bot.asked(alice, room, "remember avocet")
    bot.restart()
    bot.asked(alice, room, "after a restart")
    assert "remember avocet" in of_conversation(recorder.prompts[-1]), "the conversation goes on"
    # Said while nobody listened.
    bot.stop()
    for person, text in ((alice, "while down 1"), (bob, "while down 2"), (alice, "while down 3")):
        person.say(room, text, to=bot.pill)
    bot.start()
    alice.hears(room, bot.id, "noted: while down", 3)
    bot.asked(alice, room, "enough")
    assert_once(bot, alice, room, "remember avocet", "after a restart", *(f"while down {n}" for n in (1, 2, 3)), "enough")


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_killed_in_the_middle_of_an_answer(
    bot: Bot, people: People, recorder: RecordingModel, encrypted: bool
) -> None:
    alice = people.person("alice")
    room = bot.direct(alice, encrypted=encrypted)
    query = "tell me slowly"
    recorder.answers[query] = ["It begins, ", "goes on, ", "and ends."]
    gate = threading.Event()
    recorder.between = lambda: gate.wait(PATIENCE)
    alice.say(room, query)
    (draft,) = alice.hears(room, bot.id, "It begins")
    bot.kill()
    recorder.between = lambda: None
    gate.set()
    bot.start()
    (whole,) = alice.hears(room, bot.id, "and ends.")
    assert whole.text.strip() == "It begins, goes on, and ends." and whole.id == draft.id
    # And before anything of it can be seen.
    recorder.hold = threading.Event()
    asked = len(recorder.prompts)
    alice.say(room, "another")
    wait_until(lambda: len(recorder.prompts) > asked, PATIENCE, lambda: bot.log())
    bot.kill()
    recorder.hold.set()
    recorder.hold = None
    bot.start()
    alice.hears(room, bot.id, "noted: another")
    # Stopped in good order it finishes what it began.
    recorder.hold = threading.Event()
    asked = len(recorder.prompts)
    alice.say(room, "a third")
    wait_until(lambda: len(recorder.prompts) > asked, PATIENCE, lambda: bot.log())
    threading.Timer(0.5, recorder.hold.set).start()
    bot.restart()
    alice.hears(room, bot.id, "noted: a third")
    bot.asked(alice, room, "enough", to=None)
    said = [message.text.strip() for message in bot.said(alice, room)]
    assert said == ["It begins, goes on, and ends.", "noted: another", "noted: a third", "noted: enough"]


def test_each_of_many_is_answered_once_however_often_it_dies(
    make_bot: MakeBot, people: People, recorder: RecordingModel
) -> None:
    """Syncs are repeated and pages overlap, since it dies between storing, answering and noting."""
    # Reading the room for each of them would take longer than all the rest.
    bot = make_bot(more="[room_context]\nlimit = 0\n")
    bot.start()
    everyone = people.persons(*("person",) * 10)
    groups = [everyone[2 * n : 2 * n + 2] for n in range(5)]
    rooms = [bot.room(*group, encrypted=n >= 3) for n, group in enumerate(groups)]
    recorder.delay = 0.05
    each = EVENTS // len(rooms)
    texts = {room: [f"question {n} in room {at}" for n in range(each)] for at, room in enumerate(rooms)}

    def talk(at: int) -> None:
        for n, text in enumerate(texts[rooms[at]]):
            groups[at][n % 2].say(rooms[at], text, to=bot.pill)

    talking = threading.Thread(target=lambda: people.together([functools.partial(talk, at) for at in range(5)]))
    talking.start()
    for died in range(4):
        answered = len(recorder.prompts)
        wait_until(
            lambda answered=answered: len(recorder.prompts) > answered + EVENTS // 12 or not talking.is_alive(),
            PATIENCE,
            lambda: bot.log(),
        )
        bot.kill() if died % 2 == 0 else bot.stop()
        bot.start()
    talking.join()
    for group, room in zip(groups, rooms, strict=True):
        # Step by step: all of them at once would want another patience.
        for so_far in range(20, each + 1, 20):
            group[0].hears(room, bot.id, "noted: question", so_far)
        group[0].hears(room, bot.id, "noted: question", each)
        bot.asked(group[0], room, "enough")
        assert_once(bot, group[0], room, *texts[room], "enough")


def assert_once(bot: Bot, person: Person, room: str, *queries: str) -> None:
    said = Counter(message.text for message in bot.said(person, room))
    assert said == Counter({f"noted: {query}": 1 for query in queries}), said


def test_the_server_goes_away_and_comes_back(bot: Bot, people: People, synapse: Synapse) -> None:
    alice = people.person("alice")
    plain, sealed = bot.direct(alice), bot.direct(alice, encrypted=True)
    bot.asked(alice, plain, "before", to=None)
    synapse.kill()
    gone = time.monotonic()
    try:
        down = bot.wait_for("down")
        assert "hint: " in down["trouble"] and bot.request("GET", "/healthz").status == 200, down
        found = bot.run("doctor")
        assert found.returncode != 0 and "the Matrix server cannot be reached" in found.stdout + found.stderr, found
        # A minute: by then it asks less and less often.
        time.sleep(max(0.0, 60 - (time.monotonic() - gone)))
    finally:
        synapse.start()
    bot.wait_for("up")
    for room in (plain, sealed):
        bot.asked(alice, room, "after it came back", to=None)
    # It hangs: nothing is refused, and nothing is answered.
    alice.say(sealed, "just before it hangs")
    with synapse.frozen():
        time.sleep(3)
    alice.hears(sealed, bot.id, "noted: just before it hangs")
    bot.asked(alice, plain, "enough", to=None)
    assert_once(bot, alice, plain, "before", "after it came back", "enough")
    assert_once(bot, alice, sealed, "after it came back", "just before it hangs")


# What is wrong is said


@pytest.mark.parametrize(
    "wrong",
    [{"password_file": None, "password": "not-the-password"}, {"password_file": None, "access_token": "syt_not_a_token"}],
    ids=["password", "token"],
)
def test_a_wrong_secret_is_said_and_nothing_else_suffers(
    make_bot: MakeBot, people: People, synapse: Synapse, wrong: dict
) -> None:
    bot = make_bot(settings=wrong)
    bot.start("refused")
    trouble = bot.channel()["trouble"]
    assert "hint: " in trouble, trouble
    secret = wrong.get("password") or wrong["access_token"]
    assert secret not in trouble and secret not in bot.log()
    assert "noted: " in bot.turn("http:r:main:alice", {"query": "still there?"})["content"]
    found = bot.run("doctor")
    said = found.stdout + found.stderr
    named = "does not accept this name and password" if "password" in wrong else "does not know this access_token"
    assert found.returncode != 0 and named in said and secret not in said, said
    # Set right, it works.
    bot.stop()
    right = {"password_file": None, "access_token": synapse.log_in(bot.account, bot.password)}
    bot.settings = {} if "password" in wrong else right
    bot.start()
    alice = people.person("alice")
    bot.asked(alice, bot.direct(alice), "hello", to=None)
    assert bot.run("doctor").returncode == 0, bot.run("doctor")


def test_only_those_who_may_are_answered(make_bot: MakeBot, people: People) -> None:
    alice, mallory = people.persons("alice", "mallory")
    allowed = alice.room()
    bot = make_bot(settings={"allowed_users": [alice.id]})
    bot.start()
    # An invitation of somebody who may not.
    lure = mallory.room(bot.id)
    line = bot.wait_for_log("an invitation was refused", "allowed_users")
    assert mallory.id not in line and lure not in line
    room = bot.room(alice, mallory)
    mallory.say(room, "let me in", to=bot.pill)
    bot.asked(alice, room, "hello")
    assert_once(bot, alice, room, "hello")
    assert bot.id not in joined(mallory, lure)
    # Thrown out of a room: it says so and lives on.
    alice.kick(room, bot.id)
    line = bot.wait_for_log("removed from a room")
    assert alice.id not in line and room not in line
    assert bot.channel()["condition"] == "up"
    bot.asked(alice, bot.direct(alice), "still there?", to=None)
    # Only in rooms that are allowed, whoever asks.
    bot.stop()
    bot.settings = {"allowed_users": ["*"], "allowed_rooms": [allowed]}
    bot.start()
    other = alice.room(bot.id)
    line = bot.wait_for_log("an invitation was refused", "allowed_rooms", count=2)
    assert other not in line
    alice.invite(allowed, bot.id)
    alice.wait_for_member(allowed, bot.id)
    bot.asked(alice, allowed, "here I may")
    assert bot.id not in joined(alice, other)


def joined(person: Person, room: str) -> set[str]:
    path = f"/_matrix/client/v3/rooms/{room}/joined_members"
    return set(person.people.server.call("GET", path, token=person.client.access_token)["joined"])


def test_bots_are_heard_and_threads_opened_where_that_is_set(make_bot: MakeBot, people: People) -> None:
    alice, machine = people.persons("alice", "machine")
    bot = make_bot(settings={"listen_to_bots": True, "reply_in_thread": True})
    bot.start()
    room = bot.room(alice, machine)
    bot.asked(machine, room, "I am a bot", kind="m.notice")
    event = alice.say(room, "and I a person", to=bot.pill)
    (answer,) = alice.hears(room, bot.id, "noted: and I a person")
    assert answer.thread == event


def test_a_session_that_the_server_ends_is_made_anew(
    bot: Bot, people: People, synapse: Synapse, recorder: RecordingModel
) -> None:
    alice = people.person("alice")
    room = bot.direct(alice, encrypted=True)
    bot.asked(alice, room, "before", to=None)
    # It ends while an answer is being made, which is delivered all the same.
    recorder.hold = threading.Event()
    asked = len(recorder.prompts)
    alice.say(room, "meanwhile")
    wait_until(lambda: len(recorder.prompts) > asked, PATIENCE, lambda: bot.log())
    synapse.call("POST", "/_matrix/client/v3/logout/all", {}, synapse.log_in(bot.account, bot.password))
    recorder.hold.set()
    recorder.hold = None
    bot.wait_for_log("a Matrix device was made for this machine", count=2)
    bot.wait_for("up")
    alice.hears(room, bot.id, "noted: meanwhile")
    bot.asked(alice, room, "after", to=None)
    assert_once(bot, alice, room, "before", "meanwhile", "after")
    # The new device knows that nobody else reads here, too.
    alice.say(room, "!share-private off")
    alice.hears(room, bot.id, "What you told me in private stays private again.")


def test_a_token_that_runs_out_costs_no_device(bot: Bot, people: People, synapse: Synapse) -> None:
    """A soft logout: the same device logs in again, and its keys go on."""
    alice = people.person("alice")
    room = bot.direct(alice, encrypted=True)
    bot.asked(alice, room, "before", to=None)
    devices = synapse.devices_of(bot.id, alice.client.access_token)["keys"].keys()
    synapse.tokens_run_out(bot.id)
    bot.asked(alice, room, "after", to=None)
    assert synapse.devices_of(bot.id, alice.client.access_token)["keys"].keys() == devices
    assert_once(bot, alice, room, "before", "after")


# Keys


def test_a_lost_crypto_store_is_recovered(make_bot: MakeBot, people: People, synapse: Synapse) -> None:
    alice = people.person("alice")
    bot = make_bot()
    bot.recovery_key()
    bot.start()
    room = bot.direct(alice, encrypted=True)
    bot.asked(alice, room, "remember avocet", to=None)
    before = synapse.devices_of(bot.id, alice.client.access_token)
    (old,) = before["keys"]
    assert before["master"] and is_cross_signed(bot, before, old), before
    bot.stop()
    assert (bot.data_dir / "matrix").is_dir()
    shutil.rmtree(bot.data_dir / "matrix")
    alice.say(room, "while it was lost")
    bot.start()
    alice.hears(room, bot.id, "noted: while it was lost")
    bot.asked(alice, room, "and now?", to=None)
    after = synapse.devices_of(bot.id, alice.client.access_token)
    assert after["master"] == before["master"], "the identity was recovered, not made anew"
    (new,) = set(after["keys"]) - {old}
    assert is_cross_signed(bot, after, new), after
    assert_once(bot, alice, room, "remember avocet", "while it was lost", "and now?")


def is_cross_signed(bot: Bot, devices: dict, device: str) -> bool:
    """Whether a device is signed by the account's own key."""
    return bool(set(devices["signing"]) & set(devices["keys"][device]["signatures"][bot.id]))


def test_the_recovery_key_brings_a_new_machine_in(make_bot: MakeBot, people: People, synapse: Synapse) -> None:
    alice = people.person("alice")
    first = make_bot()
    key = first.recovery_key()
    assert re.fullmatch(r"([A-Za-z0-9]{4} ?)+[A-Za-z0-9]*", key), key
    first.start()
    room = first.direct(alice, encrypted=True)
    first.asked(alice, room, "hello", to=None)
    first.stop()
    before = synapse.devices_of(first.id, alice.client.access_token)
    second = make_bot(settings={"recovery_key": key}, like=first)
    second.start()
    second.asked(alice, room, "on another machine", to=None)
    after = synapse.devices_of(first.id, alice.client.access_token)
    assert after["master"] == before["master"]
    (new,) = set(after["keys"]) - set(before["keys"])
    assert is_cross_signed(first, after, new)
    second.stop()
    # A key that is none is said; the device works, and others are warned of it.
    third = make_bot(settings={"recovery_key": "EsT0 1234 5678 9abc"}, like=first)
    third.start()
    line = third.wait_for_log("not verified", "recovery", "hint: ")
    assert "1234 5678" not in line
    third.asked(alice, room, "with a wrong key", to=None)
    shown = third.channel()
    assert shown["condition"] == "up" and "not verified" in shown["trouble"] and "recovery" in shown["trouble"], shown
    assert "has not verified" in third.run("doctor").stdout
    third.stop()
    # The right one is all that it needs.
    known = set(synapse.devices_of(first.id, alice.client.access_token)["keys"])
    third.settings = {"recovery_key": key}
    third.start()
    (last,) = known - set(after["keys"])

    def is_verified() -> bool:
        return is_cross_signed(first, synapse.devices_of(first.id, alice.client.access_token), last)

    wait_until(is_verified, PATIENCE, lambda: third.log())
    wait_until(lambda: "trouble" not in third.channel(), PATIENCE, lambda: f"{third.channel()}")
    assert "device is verified by the account" in third.run("doctor").stdout


def test_an_identity_that_cannot_be_made_at_first_is_made_later(
    make_bot: MakeBot, people: People, synapse: Synapse
) -> None:
    alice = people.person("alice")
    with Between(synapse.url, refused="device_signing/upload") as between:
        bot = make_bot(settings={"homeserver": between.url})
        bot.start()
        wait_until(lambda: "trouble" in bot.channel(), PATIENCE, lambda: bot.log())
        shown = bot.channel()
        assert shown["condition"] == "up" and "not verified" in shown["trouble"] and "; hint: " in shown["trouble"], shown
        found = bot.run("doctor")
        assert found.returncode != 0 and "has no identity yet" in found.stdout, found
        room = bot.direct(alice, encrypted=True)
        bot.asked(alice, room, "all the same", to=None)
        between.refused = None
        wait_until(lambda: "trouble" not in bot.channel(), PATIENCE, lambda: f"{bot.channel()}\n{bot.log()}")
        devices = synapse.devices_of(bot.id, alice.client.access_token)
        (device,) = devices["keys"]
        assert is_cross_signed(bot, devices, device), devices
        bot.asked(alice, room, "and now", to=None)
        assert "device is verified by the account" in bot.run("doctor").stdout
        bot.stop()


class Between:
    """Stands before a server and passes everything on, but what is refused as by a server with trouble of its own."""

    def __init__(self, url: str, refused: str | None) -> None:
        self.refused = refused
        between, address = self, urllib.parse.urlsplit(url)

        class Handler(BaseHTTPRequestHandler):
            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if between.refused and between.refused in self.path:
                    return self.tell(500, {}, b'{"errcode":"M_UNKNOWN","error":"later"}')
                link = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
                try:
                    link.request(self.command, self.path, body, dict(self.headers))
                    answer = link.getresponse()
                    self.tell(answer.status, dict(answer.getheaders()), answer.read())
                except OSError:  # One of the two has ended.
                    self.close_connection = True
                finally:
                    link.close()

            def tell(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers.items():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = pass_on

            def log_message(self, *_) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Between:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_logging_in_by_command(make_bot: MakeBot, people: People, synapse: Synapse) -> None:
    alice = people.person("alice")
    bot = make_bot(settings={"password_file": None})
    bot.configure()
    assert "there is no stored Matrix session" in bot.run("doctor").stdout
    session = synapse.log_in(bot.account, bot.password)
    token = synapse.call("POST", "/_matrix/client/v1/login/get_token", {}, session)["login_token"]
    done = bot.run("matrix", "login", "--sso-token", token)
    assert done.returncode == 0 and token not in done.stdout + done.stderr, done
    found = bot.run("doctor").stdout
    assert "the Matrix server accepts the stored session" in found and "there is no stored" not in found, found
    bot.start()
    room = bot.direct(alice, encrypted=True)
    bot.asked(alice, room, "hello", to=None)
    bot.stop()
    # Beginning anew says what is lost, and does nothing unless it is told to.
    before = set(synapse.devices_of(bot.id, alice.client.access_token)["keys"])
    asked = bot.run("matrix", "login", "--reset", typed="n\n")
    assert asked.returncode != 0 and "encrypted messages" in asked.stderr, asked
    assert bot.run("matrix", "login", "--reset").returncode != 0, "there is nobody to ask"
    assert set(synapse.devices_of(bot.id, alice.client.access_token)["keys"]) == before
    bot.settings = {}
    bot.configure()
    done = bot.run("matrix", "login", "--reset", "--yes")
    assert done.returncode == 0 and bot.password not in done.stdout + done.stderr, done
    bot.start()
    bot.asked(alice, room, "again", to=None)
    assert set(synapse.devices_of(bot.id, alice.client.access_token)["keys"]) - before, "a new device"
    # Without a password it cannot begin anew by itself, and says so.
    bot.stop()
    bot.settings = {"password_file": None}
    bot.start()
    synapse.call("POST", "/_matrix/client/v3/logout/all", {}, synapse.log_in(bot.account, bot.password))
    assert "confidant matrix login" in bot.wait_for("refused")["trouble"]
    assert "no longer knows the stored session" in bot.run("doctor").stdout


# Many at once


def test_twenty_people_in_five_rooms_share_nothing(
    make_bot: MakeBot, people: People, recorder: RecordingModel, synapse: Synapse
) -> None:
    recorder.delay = 0.2
    bot = make_bot()
    bot.environment = bot.environment | {"CONFIDANT_LOG__LEVEL": "trace"}
    key = bot.recovery_key()
    bot.start()
    everyone = people.persons(*("someone",) * 20)
    groups = [everyone[4 * n : 4 * n + 4] for n in range(5)]
    rooms = people.together(
        [functools.partial(bot.room, *group, encrypted=n % 2 == 1) for n, group in enumerate(groups)]
    )
    words = {person.id: marker() for person in everyone}

    def talk(person: Person, room: str) -> None:
        bot.asked(person, room, f"my word is {words[person.id]}")
        bot.asked(person, room, f"what is my word, {person.id}?")

    calls = [functools.partial(talk, person, room) for group, room in zip(groups, rooms, strict=True) for person in group]
    people.together(calls)
    where = {person.id: room for group, room in zip(groups, rooms, strict=True) for person in group}
    for prompt in recorder.prompts:
        asker = next((one for one in everyone if one.id in of_conversation(prompt[-1:])), None)
        if asker is None:
            continue
        own, whole = of_conversation(prompt), str(prompt)
        assert words[asker.id] in own, "each has what they said"
        for other in everyone:
            if other.id == asker.id:
                continue
            assert words[other.id] not in own, "nobody has another's memory"
            assert where[other.id] == where[asker.id] or words[other.id] not in whole, "nor another room's lines"
    for group, room in zip(groups, rooms, strict=True):
        answers = bot.said(group[0], room)
        assert len(answers) == 8, [message.text for message in answers]
        for word in (words[person.id] for person in everyone if person not in group):
            assert not [message for message in answers if word in message.text]
    secrets = [*words.values(), bot.password, *synapse.tokens_of(bot.id), key, key.replace(" ", "")]
    ids = [*words, *rooms]
    assert len(key) > 20 and len(secrets) > 23
    assert leaks(bot.folder, secrets + ids) == [], "while it runs"
    bot.kill()
    assert leaks(bot.folder, secrets + ids) == [], "as a power cut leaves it"
    bot.start()
    bot.stop()
    assert leaks(bot.folder, secrets + ids) == [], "and in the end"


def marker() -> str:
    """A word that is nowhere else."""
    return "".join(random.choice("bcdfghjklmnpqrstvwxz") + random.choice("aeiou") for _ in range(7))


def leaks(folder: Path, words: list[str]) -> list[tuple[str, str]]:
    sought = [(word, needles(word)) for word in words if word]
    found = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        content = name.encode() + (path.read_bytes() if path.is_file() else b"")
        found += [(word, name) for word, forms in sought if any(form in content for form in forms)]
    return found


def test_an_ordinary_servers_limits_are_kept(tmp_path: Path, recorder: RecordingModel) -> None:
    """Synapse's own limit: ten messages at once, then one in five seconds."""
    with another_synapse(limited=True) as server:
        people = People(server)
        bot = Bot(tmp_path / "bot", recorder.environment, server=server)
        try:
            bot.start()
            alice = people.person("alice")
            room = bot.direct(alice, encrypted=True)
            for n in range(8):
                bot.asked(alice, room, f"short {n}", to=None)
            query = "tell me everything"
            pieces = [f"part {n} " + "of a long answer " * 60 + "\n\n" for n in range(30)]
            recorder.answers[query] = [*pieces, "the end"]
            recorder.between = lambda: time.sleep(0.2)
            alice.say(room, query)
            alice.hears(room, bot.id, "the end")
            told = [message.text for message in bot.said(alice, room)]
            assert told[:8] == [f"noted: short {n}" for n in range(8)]
            assert [int(n) for n in re.findall(r"part (\d+) ", "\n".join(told[8:]))] == list(range(30))
            assert bot.channel()["condition"] == "up"
        finally:
            bot.stop()
            people.close()
