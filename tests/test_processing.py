"""What happens before and after an answer, over HTTP: against a recording small model, and with a real one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import Confidant, wait_until
from recording_model import RecordingModel
from small_model import PREPARED, SmallModel
from test_tools import HOSTILE, entry

SESSION = "http:lab:main:alice"
NOT_ENRICHED = "a turn was not enriched"
FIELDS = (
    "language_code", "category", "selected_model", "selection_reason", "harm", "prompt_injection_chance", "tags",
    "relevant_app_skills", "relevant_app_focus_modes", "relevant_app_settings_and_memories",
)  # fmt: skip
MADE = ("follow_up_suggestions", "new_chat_suggestions", "chat_summary", "chat_tags", "harmful_response")


def about(server: Confidant, session: str = SESSION) -> dict:
    reply = server.request("GET", f"/api/v1/session/{quote(session, safe='')}/about")
    assert reply.status == 200, reply.body
    return reply.json()


@pytest.fixture
def large() -> Iterator[RecordingModel]:
    model = RecordingModel()
    yield model
    model.close()


@pytest.fixture
def small() -> Iterator[SmallModel]:
    model = SmallModel()
    yield model
    model.close()


@pytest.fixture
def lab(tmp_path: Path, large: RecordingModel, small: SmallModel) -> Iterator[Confidant]:
    """A server with both models, and a mate for software."""
    instructions = tmp_path / "data" / "instructions"
    instructions.mkdir(parents=True)
    (instructions / "ada.md").write_text(
        "---\nslot: mate\nname: Ada\ncategory: software\n---\nYou are Ada. You write code.\n"
    )
    (instructions / "focus.md").write_text("---\nslot: focus\nfocus: web.research\nname: Research\n---\nBe thorough.\n")
    confidant = Confidant(tmp_path, environment=large.environment | small.environment)
    try:
        confidant.start()
        yield confidant
    finally:
        confidant.stop()


def test_every_field_of_preparing_and_enriching(lab: Confidant, small: SmallModel, large: RecordingModel) -> None:
    small.replies["prepare_turn"] = PREPARED | {
        "category": "software",
        "relevant_app_focus_modes": ["web.research", "no.such"],
        "relevant_app_settings_and_memories": ["code.style", "no.such"],
        "tags": [f"tag {n}" for n in range(20)],
        "selected_model": "somebody-elses-model",
    }
    body = {"query": "Fix my Rust code", "available_settings": ["code.style"], "enrich": True}
    events = lab.stream_turn(SESSION, body)
    names = [event.name for event in events]
    assert names[-2:] == ["final_response", "enriched"], names
    assert "settings_request" in names
    prepared = events[-2].data["metadata"]["preparation"]
    assert set(FIELDS) <= set(prepared) and prepared["by"] == "model"
    assert prepared["title"] == "A test" and prepared["icon_names"] == ["flask-conical"]
    assert prepared["selected_model"] == "default", "a model that is not configured is never chosen"
    assert prepared["relevant_app_focus_modes"] == ["web.research"] and len(prepared["tags"]) == 10
    assert events[-2].data["metadata"]["requested_settings"] == ["code.style"]
    assert events[-2].data["metadata"]["mate"] == "Ada"
    assert "You are Ada." in large.prompts[-1][0]["content"]

    made = events[-1].data["metadata"]
    assert set(MADE) <= set(made) and len(made["follow_up_suggestions"]) == 6 and len(made["new_chat_suggestions"]) == 6
    kept = about(lab)
    assert kept["title"] == "A test" and kept["category"] == "software"
    assert kept["enrichment"]["chat_summary"] == "They tested something."

    # The title is asked for once.
    small.replies["prepare_turn"] = PREPARED | {"title": "Another"}
    lab.turn(SESSION, {"query": "And again"})
    schemas = [body["tools"][0]["function"]["parameters"]["properties"] for body in small.asked("prepare_turn")]
    assert "title" in schemas[0] and "title" not in schemas[-1] and about(lab)["title"] == "A test"


def test_a_long_history_is_sent_in_blocks_at_once_and_merged(
    tmp_path: Path, large: RecordingModel, small: SmallModel
) -> None:
    """The oldest block is the most harmful, the newest knows the language, and each selects a tool of its own."""
    small.delay = 0.3
    by_block = {
        "oldest": {"illegal": 6, "language_code": "fr", "category": "law", "tags": ["old"], "title": "The first title",
                   "relevant_app_skills": ["bad.text"], "prompt_injection_chance": 5},
        "middle": {"direct_self_harm": 2, "language_code": "es", "tags": ["middle"], "title": "Another title",
                   "relevant_app_skills": ["bad.rows", "bad.made_up"]},
        "newest": {"illegal": 1, "language_code": "de", "category": "travel", "tags": ["new", "old"], "title": "A third",
                   "relevant_app_skills": ["bad.echo"]},
    }  # fmt: skip

    def which(material: str) -> str:
        return "oldest" if "user 0 " in material else "newest" if "user 11 " in material else "middle"

    small.replies["prepare_turn"] = lambda material: PREPARED | by_block[which(material)]
    (tmp_path / "confidant.toml").write_text(entry("bad", command=HOSTILE, tools=["echo", "text", "rows", "call"]))
    confidant = Confidant(tmp_path, environment=large.environment | small.environment)
    try:
        confidant.start()

        def has_tools() -> bool:
            confidant.turn("http:probe:main:nobody", {"query": "hello"})
            return large.offered[-1] == ["bad_rows"]

        wait_until(has_tools, 60, confidant.log)
        small.requests.clear()
        long = [
            {"role": role, "content": f"{role} {n} " + "lorem ipsum dolor " * 2300}
            for n in range(12)
            for role in ("user", "assistant")
        ]
        answer = confidant.client().chat.completions.create(
            model="recorder", user="alice", messages=[*long, {"role": "user", "content": "Where were we?"}]
        )
    finally:
        confidant.stop()
    blocks = small.asked("prepare_turn")
    texts = [body["messages"][-1]["content"] for body in blocks]
    assert {which(text) for text in texts} == set(by_block) and small.at_once > 1, (len(blocks), small.at_once)
    assert all("Where were we?" in text for text in texts)
    merged = answer.model_dump()["confidant"]["preparation"]
    assert merged["by"] == "model"
    assert (merged["harm"]["illegal"], merged["harm"]["direct_self_harm"]) == (6, 2), "the highest of all blocks"
    assert merged["prompt_injection_chance"] == 5
    assert (merged["language_code"], merged["category"]) == ("de", "travel"), "those of the newest"
    assert "title" not in merged, "a conversation that goes on has its name"
    assert merged["relevant_app_skills"] == ["bad.echo", "bad.rows", "bad.text"], "all that exist, the newest first"
    assert merged["tags"] == ["new", "old", "middle"]
    assert set(large.offered[-1]) == {"bad_echo", "bad_rows", "bad_text"}


@pytest.mark.parametrize("trouble", ["refuse", "cut", "garbage", "slow"])
def test_a_small_model_in_trouble_costs_nothing_but_itself(
    lab: Confidant, small: SmallModel, trouble: str
) -> None:
    if trouble == "slow":
        small.delay = 60
        lab.environment["CONFIDANT_PROCESSING__TIMEOUT_SECONDS"] = "1"
        lab.restart()
    else:
        small.replies["prepare_turn"] = small.replies["enrich_turn"] = trouble
    reply = lab.turn(SESSION, {"query": "Hello"})
    assert reply["content"] == "noted: Hello" and reply["metadata"]["preparation"]["by"] == "rules"
    assert lab.turn(SESSION, {"query": "Again"})["content"] == "noted: Again"
    lab.environment.pop("CONFIDANT_PROCESSING__TIMEOUT_SECONDS", None)


def test_without_a_small_model_local_rules_prepare(server: Confidant) -> None:
    reply = server.turn(SESSION, {"query": "Wie schreibe ich eine Schleife in Rust?"})
    prepared = reply["metadata"]["preparation"]
    assert prepared["by"] == "rules" and prepared["language_code"] == "de" and set(FIELDS) <= set(prepared)
    assert about(server)["title"]


def test_settings_reach_the_prompt_and_no_file(lab: Confidant, large: RecordingModel) -> None:
    marker = "marker-setting-4711"
    lab.turn(SESSION, {"query": "Hello", "settings": {"web.provider": marker}, "profile": {"interests": ["chess"]}})
    prompt = json.dumps(large.prompts[-1])
    assert marker in prompt and "chess" in prompt
    wait_until(lambda: "enrichment" in about(lab), 120, lambda: "it was never enriched")
    lab.stop()
    assert lab.files_with(marker) == []
    lab.start()


def test_the_real_small_model_prepares_and_enriches(tmp_path: Path, language_model: str) -> None:
    environment = {
        "CONFIDANT_MODEL__PROVIDER": "openai",
        "CONFIDANT_MODEL__BASE_URL": language_model,
        "CONFIDANT_MODEL__MODEL": "smollm2",
        "CONFIDANT_MODEL__TEMPERATURE": "0",
        "CONFIDANT_PROCESSING__MODEL": "default",
        "CONFIDANT_PROCESSING__FORMS": "json_schema",
        # However slow the machine is: this is about what a real model says, not about when.
        "CONFIDANT_PROCESSING__TIMEOUT_SECONDS": "500",
        "CONFIDANT_MODEL__TIMEOUT_SECONDS": "500",
        "CONFIDANT_TURN__ANSWER_TIMEOUT_SECONDS": "900",
        "CONFIDANT_SERVER__REQUEST_TIMEOUT_SECONDS": "900",
        "CONFIDANT_PROCESSING__BESIDE": "false",
        "OPENAI_API_KEY": "the-test-model-wants-none",
    }
    confidant = Confidant(tmp_path, environment=environment)
    try:
        confidant.start()
        # A model this small does not fill every form: then rules prepare the turn, and it is not enriched.
        prepared = {}
        for _ in range(8):
            given_up = confidant.log().count(NOT_ENRICHED)
            said = confidant.turn(SESSION, {"query": "How do I bake bread at home?"})["metadata"]["preparation"]
            prepared = said if said["by"] == "model" else prepared
            deadline = time.monotonic() + 1200
            while "enrichment" not in about(confidant) and confidant.log().count(NOT_ENRICHED) == given_up:
                assert time.monotonic() < deadline, confidant.log()
                time.sleep(0.5)
            if prepared and "enrichment" in about(confidant):
                break
        assert set(FIELDS) <= set(prepared) and len(prepared["tags"]) <= 10, confidant.log()
        assert 0 <= prepared["prompt_injection_chance"] <= 10
        made = about(confidant)["enrichment"]
        assert 0 <= made["harmful_response"] <= 10 and len(made.get("follow_up_suggestions", [])) <= 6
    finally:
        confidant.stop()
