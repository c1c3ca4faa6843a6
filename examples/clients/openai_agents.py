"""OpenAI Agents SDK: an agent whose memory is Confidant's, per person.

    pip install openai-agents
"""

import asyncio
import os
from pathlib import Path

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, RunConfig, Runner
from openai import AsyncOpenAI

url = os.environ.get("MEMORY_URL", "http://127.0.0.1:7367")
token = Path(os.environ.get("MEMORY_TOKEN_FILE", "confidant-data/admin.token")).read_text().strip()

client = AsyncOpenAI(base_url=f"{url}/v1", api_key=token)
agent = Agent(name="Assistant", instructions="Answer briefly.", model=OpenAIChatCompletionsModel(model="any", openai_client=client))


def of(person: str) -> RunConfig:
    """Whose memory a run uses. Traces would go to OpenAI, with what was said."""
    return RunConfig(model_settings=ModelSettings(extra_body={"user": person}), tracing_disabled=True)


async def main() -> None:
    await Runner.run(agent, "Hello, I'm Alice and I prefer Rust", run_config=of("alice"))
    # Each run sends only what is new: the SDK's own session is not needed.
    print((await Runner.run(agent, "What do I prefer?", run_config=of("alice"))).final_output)
    print((await Runner.run(agent, "What do I prefer?", run_config=of("bob"))).final_output)

    streamed = Runner.run_streamed(agent, "What is my name?", run_config=of("alice"))
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print(event.data.delta, end="")
    print()


asyncio.run(main())
