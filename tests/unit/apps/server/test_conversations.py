"""Conversations over HTTP, OpenAI's protocol and MCP: the second question takes names from the first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat import Chat
from tests.support.parts import part
from tests.support.service import running
from tests.unit.apps.server.conftest import TEXTS
from tests.unit.apps.server.test_mcp import in_process, said

pytestmark = pytest.mark.usefixtures("loopback")
FIRST, SECOND = "Who was the captain of the Maud?", "Which ship did he sail in?"
ARCHER = {"question": "Who built the Fram?", "answer": "Colin Archer", "titles": ["Fram"]}


def test_an_answer_has_the_turn_that_the_next_question_sends(client: Any) -> None:
    first = client.post("/v1/ask", json={"question": FIRST}).json()
    assert (first["taken"], first["read_as"]) == ([], None)
    assert "Oscar Wisting" in first["turn"]["answer"]
    second = client.post("/v1/ask", json={"question": SECOND, "history": [first["turn"]]}).json()
    assert "Oscar Wisting" in second["taken"]
    for path, field in (("/v1/retrieve", "question"), ("/v1/search", "query")):
        found = client.post(path, json={field: "And he?", "history": [ARCHER]}).json()
        assert any("Colin Archer" in note for note in found["notes"])
        alone = client.post(path, json={field: "Where is the Maud?", "history": [ARCHER]}).json()
        assert "notes" not in alone
    body = {"question": SECOND, "history": [first["turn"]], "stream": True}
    with client.stream("POST", "/v1/ask", json=body) as reply:
        lines = [json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: ")]
    assert lines[-1]["taken"] == second["taken"]
    assert any("Oscar Wisting" in note for note in lines[0]["notes"])


@pytest.mark.parametrize(
    "history",
    ["text", [3], [{}], [{"question": "a", "answer": 1}], [{"question": "a", "more": 1}], [ARCHER] * 1001],
)
def test_a_wrong_history_is_refused(client: Any, history: Any) -> None:
    reply = client.post("/v1/ask", json={"question": "And he?", "history": history})
    assert (reply.status_code, reply.json()["code"]) == (422, "bad_request")
    assert reply.json()["message"].startswith("history")


def test_500_turns(client: Any) -> None:
    turns = [{"question": "Who?", "answer": "Nobody."}] * 499 + [ARCHER]
    found = client.post("/v1/ask", json={"question": "And where was he born?", "history": turns}).json()
    assert found["taken"] == ["Colin Archer", "Fram"]


def test_the_messages_of_a_chat_are_its_history(folder: Path) -> None:
    def answers(body: dict[str, Any]) -> str:
        return (
            "Where was Colin Archer born?"
            if "rewrite" in body["messages"][0]["content"]
            else "In Larvik [1]."
        )

    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Who built the Fram?"}]},
        {"role": "assistant", "content": "Colin Archer built her [1]."},
        {"role": "user", "content": "And where was he born?"},
    ]
    with (
        Chat(answers) as chat,
        running(folder, settings={"answer_llm": f"openai:mini@{chat.url}"}) as service,
        service.client() as client,
    ):
        reply = client.post("/v1/chat/completions", json={"model": "ketrag", "messages": messages})
        assert reply.status_code == 200
        assert len(chat.requests) == 2
        rewriting = chat.requests[0]["messages"][-1]["content"]
        assert "Answer: Colin Archer built her." in rewriting
        assert "Be brief" not in rewriting
        assert chat.requests[1]["messages"][-1]["content"].endswith("Where was Colin Archer born?")
        alone = [*messages[:-1], {"role": "user", "content": "Where is the Maud?"}]
        client.post("/v1/chat/completions", json={"model": "ketrag", "messages": alone})
        assert len(chat.requests) == 3
        many = [*messages[1:3]] * 499 + [messages[-1]]
        assert (
            client.post("/v1/chat/completions", json={"model": "ketrag", "messages": many}).status_code == 200
        )


def test_tools_take_earlier_questions_and_answers(folder: Path) -> None:
    part("mcp", "server")
    assert "Colin Archer" in TEXTS["fram"]

    async def use(client: Any) -> None:
        found = await said(
            client, "search", query="And where was he born?", history=["Who built the Fram?", "Colin Archer"]
        )
        assert "continues the conversation: searched with Colin Archer" in found
        alone = await said(client, "search", query="Where is the Maud?", history=["Who built the Fram?"])
        assert "continues" not in alone

    in_process(use, {"ships": str(folder)})
