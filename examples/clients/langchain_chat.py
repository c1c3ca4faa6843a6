"""LangChain: a conversation that Confidant remembers, secrets taken out on the way, and memories as documents.

    pip install confidant-memory[langchain] langchain-openai
"""

import os
from pathlib import Path

from confidant_memory import Confidant
from confidant_memory.langchain import ConfidantMemories, ConfidantTurns, Redact
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

url = os.environ.get("MEMORY_URL", "http://127.0.0.1:7367")
token = Path(os.environ.get("MEMORY_TOKEN_FILE", "confidant-data/admin.token")).read_text().strip()

with Confidant(url, token=token) as confidant:
    # A chain: what a person types, without secrets and personal data, to the session of the config.
    chain = ChatPromptTemplate.from_messages([("human", "{said}")]) | Redact() | ConfidantTurns(confidant)
    alice = {"configurable": {"session_id": "http:support:main:alice"}}
    chain.invoke({"said": "My order is 4711, and my address is alice@example.org."}, alice)
    for piece in chain.stream({"said": "What is my order, and my address?"}, alice):
        print(piece.text, end="")
    print()

    # What the server has heard has no address in it.
    heard = " ".join(message.text for message in confidant.session("http:support:main:alice").export().messages)
    assert "<REDACTED:EMAIL>" in heard and "alice@example.org" not in heard

    # Memories of earlier sessions of work, for retrieval.
    confidant.memory("alice").store("incident-7", {"summary": "The login failed. We decided to roll back to v2.3.1."})
    (document,) = ConfidantMemories(client=confidant, user_id="alice").invoke("why did we roll back?")
    print(document.page_content)

# Any chat model of LangChain's that speaks OpenAI's protocol remembers per `user`.
model = ChatOpenAI(base_url=f"{url}/v1", api_key=token, model="any", model_kwargs={"user": "bob"})
model.invoke("Hello, I'm Bob and I prefer Rust")
print(model.invoke("What do I prefer?").text)
