"""The first system's plain JSON between our own gateways and workers: what it cannot say is refused, and nothing is widened."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import redis
from conftest import FOREIGN, Confidant, turns_path, wait_until
from foreign_roles import REQUESTS, ForeignBot, ForeignWorker
from recording_model import RecordingModel
from test_roles import BINARY, RedisServer, Role, gateway, gateway_and_worker, model, running, server, settings

__all__ = ["model", "server"]


def token(folder: Path, environment: dict[str, str], tenant: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ours = environment | {"CONFIDANT_SERVER__DATA_DIR": str(folder / "data")}
    command = [BINARY, "token", "new", "--role", "agent", "--tenant", tenant]
    made = subprocess.run(command, cwd=folder, env=clean | ours, capture_output=True, text=True, timeout=180)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def asked(model: RecordingModel) -> str:
    return "\n".join(message["content"] for message in model.prompts[-1])


def test_what_plain_json_cannot_say_is_refused_and_goes_to_nobody_else(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat")
    with gateway_and_worker(tmp_path, environment) as (front, worker):
        session = "http:room:main:ann"
        assert front.turn(session, {"query": "the word is zq7first"})["content"] == "noted: the word is zq7first"
        # The same session id of another tenant is another session; a plain request could not say so.
        other = token(front.folder, environment, "other")
        headers = {"Authorization": f"Bearer {other}"}
        refused = front.request("POST", turns_path(session), {"query": "what is the word?"}, **headers)
        assert refused.status == 400 and "bus.mode" in refused.body.decode(), refused.body
        # What has no session has no place in it either.
        chat = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}
        refused = front.request("POST", "/v1/chat/completions", chat)
        assert refused.status == 400 and "`user`" in refused.body.decode(), refused.body
        assert len(model.prompts) == 1
        # Its own tenant's go on, with all that they bring along.
        told = [{"role": "system", "content": "zq7instructions"}, {"role": "user", "content": "zq7before"}]
        brought = told + [{"role": "assistant", "content": "zq7reply"}, *chat["messages"]]
        assert front.request("POST", "/v1/chat/completions", chat | {"user": "ann", "messages": brought}).status == 200
        assert all(word in asked(model) for word in ("zq7instructions", "zq7before", "zq7reply")), asked(model)
        exported = front.request("GET", turns_path(session).removesuffix("/turns") + "/export").json()["messages"]
        assert [message["content"] for message in exported] == ["the word is zq7first", "noted: the word is zq7first"]


def test_promise_10_what_was_said_in_private_stays_so_on_a_plain_bus(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat")
    with gateway_and_worker(tmp_path, environment) as (front, worker), closing(ForeignBot(server.url)) as bot:
        session = "discord_conv:4711"
        front.turn(session, {"query": "I am zq7secret", "audience": "private"})
        # A room without a line in it is a room.
        told = front.turn(session, {"query": "who am I?", "audience": "room"})
        assert told["metadata"]["audience"] == "room" and "zq7secret" not in asked(model), asked(model)
        # A foreign bot says nothing of it: it may be asking from a room.
        bot.ask(session, "and now?")
        assert "zq7secret" not in asked(model), asked(model)
        front.turn(session, {"query": "in private again", "audience": "private"})
        assert "zq7secret" in asked(model)


def test_two_people_whose_messages_have_the_same_name_are_each_answered(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    """A request id is any word, and on a plain bus everybody hears every answer."""
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat")
    fronts = [gateway(tmp_path / f"g{i}", environment) for i in range(2)]

    def ask(front: Confidant, person: str, name: str) -> dict:
        return front.turn(f"http:room:main:{person}", {"query": f"I am {person}", "request_id": name})

    def both(name: str, at: list[Confidant], begun: Callable[[], bool], go_on: Callable[[], None]) -> None:
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(ask, front, person, name) for front, person in zip(at, ("ann", "bob"), strict=True)]
            try:
                wait_until(begun, 120, lambda: "they were not taken, both of them")
            finally:
                go_on()
            told = [future.result() for future in asked]
        assert [answer["request_id"] for answer in told] == [name, name]
        assert ["I am ann" in told[0]["content"], "I am bob" in told[1]["content"]] == [True, True], told

    with running(*fronts):
        with running(*[Role(tmp_path / f"w{i}", "worker", environment) for i in range(2)]):
            for i, at in enumerate(([fronts[0], fronts[0]], fronts)):
                model.hold = threading.Event()
                both(f"name{i}", at, lambda i=i: len(model.prompts) == 2 * i + 2, model.hold.set)
            # The log knows them by the name that their person gave them, whoever is asked.
            again = ask(fronts[1], "ann", "name0")
            assert again["content"] == "noted: I am ann" and again["metadata"]["replayed"], again
            # Foreign bots name theirs as they like, too.
            with closing(ForeignBot(server.url)) as bot:
                for person in ("cid", "dan"):
                    session = f"http:room:main:{person}"
                    bot.publish({"request_id": "1", "query": person, "session_id": session, "room_context": []})

                def finals() -> set[str]:
                    return {said["content"] for said in bot.heard("1") if said["message_type"] == "final_response"}

                wait_until(lambda: finals() == {"noted: cid", "noted: dan"}, 120, lambda: f"heard {finals()}")
        # A foreign worker answers under the name that it was told.
        with closing(ForeignWorker(server.url)) as worker:
            both("name2", fronts, lambda: len(worker.seen) == 2, lambda: None)
            assert len({request["request_id"] for request in worker.seen}) == 2


def test_a_turn_of_a_worker_that_died_is_asked_for_again(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat", CONFIDANT_BUS__SILENCE_SECONDS="2")
    workers = [Role(tmp_path / f"w{i}", "worker", environment) for i in range(2)]
    front = gateway(tmp_path / "g", environment)
    with running(front, workers[0]), ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        model.hold = threading.Event()
        asked = pool.submit(front.turn, "http:room:main:ann", {"query": "hello", "request_id": "r1"})
        try:
            wait_until(lambda: len(model.prompts) == 1, 120, lambda: "it was not taken")
            workers[0].kill()
            stack.enter_context(running(workers[1]))
        finally:
            model.hold.set()
        told = asked.result()
        assert (told["content"], told["request_id"]) == ("noted: hello", "r1")
        exported = front.request("GET", turns_path("http:room:main:ann").removesuffix("/turns") + "/export").json()
        assert [message["content"] for message in exported["messages"]] == ["hello", "noted: hello"]


def test_quick_messages_of_one_session_keep_their_order_on_a_worker(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat")
    said = [f"q{i}" for i in range(20)]
    with running(Role(tmp_path / "w", "worker", environment)), closing(ForeignBot(server.url)) as bot:
        for person in ("ann", "bob", "cid"):
            session, before = f"http:room:main:{person}", len(model.prompts)
            for query in said:
                bot.publish({"request_id": query + person, "query": query, "session_id": session, "room_context": []})
            told = [bot.responses(query + person)[-1]["content"] for query in said]
            assert told == [f"noted: {query}" for query in said]
            asked = [prompt[-1]["content"].split("\n")[-1] for prompt in model.prompts[before:]]
            assert asked == said


def test_a_request_that_is_made_again_is_answered_whoever_had_it_before(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(server, model, CONFIDANT_BUS__MODE="compat")
    workers = [Role(tmp_path / f"w{i}", "worker", environment) for i in range(2)]
    with running(workers[0]), closing(ForeignBot(server.url)) as bot, ExitStack() as stack:
        model.hold = threading.Event()
        request = {"request_id": "again", "query": "hello", "session_id": "http:room:main:ann", "room_context": []}
        bot.publish(request)
        wait_until(lambda: len(model.prompts) == 1, 120, lambda: "it was not taken")
        # Whoever works on it dies; it is not theirs for ever.
        workers[0].kill()
        model.hold.set()
        stack.enter_context(running(workers[1]))

        def finals() -> list[str]:
            return [said["content"] for said in bot.heard("again") if said["message_type"] == "final_response"]

        def made_again(answers: int) -> bool:
            bot.publish(request)
            time.sleep(0.3)
            return len(finals()) >= answers

        wait_until(lambda: made_again(1), 60, lambda: f"it was ignored:\n{workers[1].log()}")
        # Once it is answered, it is answered again from the log.
        wait_until(lambda: made_again(len(finals()) + 1), 60, lambda: f"it was ignored:\n{workers[1].log()}")
        assert set(finals()) == {"noted: hello"} and len(model.prompts) == 2


def test_a_full_worker_says_so_and_nobody_waits_for_one_who_says_nothing(
    tmp_path: Path, server: RedisServer, model: RecordingModel
) -> None:
    environment = settings(
        server, model, CONFIDANT_BUS__MODE="compat", CONFIDANT_BUS__TURNS="1", CONFIDANT_BUS__PATIENCE_SECONDS="1"
    )
    with gateway_and_worker(tmp_path, environment) as (front, worker), closing(ForeignBot(server.url)) as bot:
        bot.ask("http:room:main:zoe", "hello")
        model.hold = threading.Event()
        first = {"request_id": "first", "query": "one", "session_id": "http:room:main:ann", "room_context": []}
        bot.publish(first)
        wait_until(lambda: len(model.prompts) == 2, 120, lambda: "the first was not taken")
        (busy,) = bot.ask("http:room:main:bob", "two")
        assert (busy["message_type"], busy["metadata"]["code"]) == ("error", "no_worker"), busy
        # To our own gateway as well.
        refused = front.request("POST", turns_path("http:room:main:bob"), {"query": "three"})
        assert (refused.status, refused.json()["error"]["code"]) == (503, "no_worker"), refused.body
        model.hold.set()
        assert bot.responses("first")[-1]["content"] == "noted: one"
        worker.stop()
        # Somebody listens and never says a word.
        mute = redis.Redis(port=server.port).pubsub()
        mute.subscribe(REQUESTS)
        wait_until(lambda: bool(server.client().pubsub_numsub(REQUESTS)[0][1]), 120, lambda: "nobody listens")
        refused = front.request("POST", turns_path("http:room:main:bob"), {"query": "four"})
        assert (refused.status, refused.json()["error"]["code"]) == (503, "no_worker"), refused.body
        mute.close()
