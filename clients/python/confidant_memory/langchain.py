"""Parts for LangChain (`pip install langchain-core`): a conversation as a runnable, redaction as a runnable, memories as a retriever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from .aio import AsyncConfidant
from .client import Confidant
from .errors import InvalidRequest
from .redaction import Redactor, shared
from .types import Answer, Approval, Delta, Ending, Hit, Question, RoomLine

Client = TypeVar("Client", Confidant, AsyncConfidant)
Said = str | PromptValue | Sequence[BaseMessage] | BaseMessage


class ConfidantTurns(Runnable[Said, AIMessage]):
    """Says the last message in a session, whose memory the server keeps, and gives the answer.

    The session is `session_id`, or that of `config["configurable"]["session_id"]`. Earlier messages are not sent: memory has them.
    If a tool call waits for approval, `response_metadata["approval"]` has it, and the content is the question.
    """

    def __init__(self, client: Confidant | None = None, *, aclient: AsyncConfidant | None = None, session_id: str | None = None) -> None:
        self._client, self._aclient, self._session_id = client, aclient, session_id

    def __repr__(self) -> str:
        return "ConfidantTurns()"

    def invoke(self, input: Said, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        session = _given(self._client, "client").session(self._session(config))

        def answer(said: Said) -> AIMessage:
            return _message(session.ask(_last(said), room=_room(kwargs)))

        return self._call_with_config(answer, input, config, run_type="llm")

    async def ainvoke(self, input: Said, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        session = _given(self._aclient, "aclient").session(self._session(config))

        async def answer(said: Said) -> AIMessage:
            return _message(await session.ask(_last(said), room=_room(kwargs)))

        return await self._acall_with_config(answer, input, config, run_type="llm")

    def stream(self, input: Said, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        session = _given(self._client, "client").session(self._session(config))
        said = False
        with session.stream(_last(input), room=_room(kwargs)) as events:
            for event in events:
                if isinstance(event, Delta):
                    said = True
                    yield AIMessageChunk(content=event.text)
                elif isinstance(event, Answer | Approval | Question):
                    yield _final(event, said)

    async def astream(self, input: Said, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        session = _given(self._aclient, "aclient").session(self._session(config))
        said = False
        async with session.stream(_last(input), room=_room(kwargs)) as events:
            async for event in events:
                if isinstance(event, Delta):
                    said = True
                    yield AIMessageChunk(content=event.text)
                elif isinstance(event, Answer | Approval | Question):
                    yield _final(event, said)

    def _session(self, config: RunnableConfig | None) -> str:
        chosen = (config or {}).get("configurable", {}).get("session_id", self._session_id)
        if not isinstance(chosen, str):
            raise InvalidRequest(
                "no session was named", code="invalid_request", hint='give session_id, or config={"configurable": {"session_id": …}}'
            )
        return chosen


class Redact(Runnable[Any, Any]):
    """Passes on texts, messages, prompts and JSON values without secrets and personal data.

    It redacts what runs through it: put it before what must not see them. It needs no server.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor

    def __repr__(self) -> str:
        return "Redact()"

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        # No callback sees what goes in: a tracer would keep it.
        return self._clean(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await asyncio.to_thread(self._clean, input)

    def _clean(self, value: Any) -> Any:
        redactor = self._redactor or shared()
        if isinstance(value, str):
            return redactor.redact(value).text
        if isinstance(value, BaseMessage):
            return self._message(value)
        if isinstance(value, PromptValue):
            return ChatPromptValue(messages=[self._message(one) for one in value.to_messages()])
        if isinstance(value, Document):
            return value.model_copy(update={"page_content": self._clean(value.page_content), "metadata": self._clean(value.metadata)})
        if isinstance(value, dict):
            return {key: self._clean(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)([self._clean(one) for one in value])
        if value is None or isinstance(value, bool | int | float):
            return value
        # Letting through what was not looked at would be worse than stopping.
        raise InvalidRequest(
            f"a {type(value).__name__} cannot be redacted",
            code="invalid_request",
            hint="give texts, messages, prompts, documents, or lists and dicts of them",
        )

    def _message(self, message: BaseMessage) -> BaseMessage:
        content = message.content
        changed: dict[str, Any] = {
            "content": self._clean(content)
            if isinstance(content, str)
            else [self._block(one) if isinstance(one, dict) else self._clean(one) for one in content],
            "additional_kwargs": self._block(message.additional_kwargs),
        }
        if isinstance(message, AIMessage):
            changed["tool_calls"] = [{**call, "args": self._clean(call["args"])} for call in message.tool_calls]
        return message.model_copy(update=changed)

    def _block(self, block: dict[str, Any]) -> dict[str, Any]:
        """A part of a message. Ids look random, and calls and their results find each other by them."""
        return {key: value if key in ("type", "id", "index", "tool_call_id") else self._clean(value) for key, value in block.items()}


class ConfidantMemories(BaseRetriever):
    """A person's memories of earlier sessions of work, as documents."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Confidant
    user_id: str | None = None
    k: int = 5
    with_tags: tuple[str, ...] = ()

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [_document(hit) for hit in self.client.memory(self.user_id).query(query, tags=self.with_tags, limit=self.k)]

    async def _aget_relevant_documents(self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun) -> list[Document]:
        found = await asyncio.to_thread(self.client.memory(self.user_id).query, query, tags=self.with_tags, limit=self.k)
        return [_document(hit) for hit in found]


def _document(hit: Hit) -> Document:
    about = {"uri": hit.uri, "session_id": hit.session_id, "tags": [*hit.tags], "created_at": hit.created_at, "score": hit.score}
    return Document(page_content=f"{hit.title}\n{hit.snippet}", metadata=about)


def _given(client: Client | None, name: str) -> Client:
    if client is None:
        raise InvalidRequest(f"no `{name}` was given", code="invalid_request", hint=f"ConfidantTurns({name}=…)")
    return client


def _last(said: Said) -> str:
    """The person's message, which is the last."""
    if isinstance(said, str):
        return said
    messages = said.to_messages() if isinstance(said, PromptValue) else [said] if isinstance(said, BaseMessage) else list(said)
    if not messages or messages[-1].type != "human":
        raise InvalidRequest("the last message is not the person's", code="invalid_request", hint="end with a HumanMessage")
    return str(messages[-1].text)


def _room(options: dict[str, Any]) -> Sequence[RoomLine] | None:
    room: Sequence[RoomLine] | None = options.get("room")
    return room


def _about(ending: Ending) -> dict[str, Any]:
    if isinstance(ending, Answer):
        return {"memory": ending.memory, "model_name": ending.model, "request_id": ending.request_id}
    if isinstance(ending, Approval):
        return {"approval": ending, "request_id": ending.request_id}
    return {"options": [*ending.options], "request_id": ending.request_id}


def _words(ending: Ending) -> str:
    return ending.question if isinstance(ending, Approval) else ending.text


def _message(ending: Ending) -> AIMessage:
    return AIMessage(_words(ending), response_metadata=_about(ending))


def _final(ending: Ending, said: bool) -> AIMessageChunk:
    words = "" if said and isinstance(ending, Answer) else _words(ending)
    return AIMessageChunk(content=words, response_metadata=_about(ending), chunk_position="last")
