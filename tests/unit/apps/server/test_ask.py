"""Answers over HTTP: whole, streamed, and stopped when nobody listens. The model is a real server or file."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.errors import KetragError
from tests.support.chat import Chat
from tests.support.parts import part
from tests.support.service import Running, running
from tests.unit.apps.server.conftest import QUESTION, TEXTS

pytestmark = pytest.mark.usefixtures("loopback")
SAID = "Fridtjof Nansen [1]. Built by Archer [1]. Not this [7]."
SHOWN = "Fridtjof Nansen [1]. Built by Archer [1]. Not this."


@pytest.fixture
def model() -> Iterator[Chat]:
    with Chat(lambda _: SAID) as chat:
        yield chat


@pytest.fixture
def asking(folder: Path, model: Chat) -> Iterator[Running]:
    with running(folder, settings={"answer_llm": f"openai:mini@{model.url}"}) as service:
        yield service


def events(lines: Iterator[str]) -> list[tuple[str, Any]]:
    found, name = [], ""
    for line in lines:
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            found.append((name, json.loads(line[6:])))
    return found


def test_a_whole_answer(asking: Running) -> None:
    with asking.client() as client:
        answer = client.post("/v1/ask", json={"question": QUESTION, "budget": 300}).json()
    assert (answer["schema"], answer["answer"]) == ("ketrag/answer/1", SHOWN)
    (citation,) = answer["citations"]
    assert (citation["number"], citation["document"]) == (1, "fram.md")
    assert TEXTS["fram"][citation["start"] : citation["end"]] == citation["text"]


def test_a_streamed_answer(asking: Running) -> None:
    body = {"question": QUESTION, "budget": 300, "stream": True}
    with asking.client() as client, client.stream("POST", "/v1/ask", json=body) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        found = events(reply.iter_lines())
    names = [name for name, _ in found]
    assert (names[0], names[-1]) == ("context", "answer")
    assert names.count("text") > 3
    assert "".join(data["text"] for name, data in found if name == "text").strip() == SHOWN
    assert found[0][1]["passages"][0]["document"] == "fram.md"
    assert found[-1][1]["answer"] == SHOWN


def test_without_a_model_the_passages_are_there(client: Any) -> None:
    answer = client.post("/v1/ask", json={"question": QUESTION}).json()
    assert (answer["reason"], answer["answer"]) == ("no_model", "")
    assert answer["passages"][0]["document"] == "fram.md"
    reply = client.post("/v1/ask", json={"question": QUESTION, "mode": "nope", "stream": True})
    assert (reply.status_code, reply.json()["code"]) == (400, "config")


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_vanishes_stops_the_model(folder: Path, stream: bool) -> None:
    with (
        Chat(lambda _: "word " * 400, pause=0.02) as chat,
        running(folder, settings={"answer_llm": f"openai:mini@{chat.url}"}) as service,
    ):
        body = json.dumps({"question": QUESTION, "stream": stream}).encode()
        head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
            connection.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            for _ in range(200):
                if len(chat.said) > 3:
                    break
                time.sleep(0.02)
            assert len(chat.said) > 3
        for _ in range(100):
            if service.service.answers == 0:
                break
            time.sleep(0.05)
        assert service.service.answers == 0
        said = len(chat.said)
        time.sleep(0.5)
        assert len(chat.said) < 350
        assert len(chat.said) - said < 10


def test_a_client_that_does_not_read_holds_up_nobody(folder: Path) -> None:
    with (
        Chat(lambda _: "word " * 2000) as chat,
        running(folder, settings={"answer_llm": f"openai:mini@{chat.url}"}) as service,
        service.client() as client,
    ):
        body = json.dumps({"question": QUESTION, "stream": True}).encode()
        head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", service.port))
            connection.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            reply = client.post("/v1/ask", json={"question": QUESTION})
            assert reply.json()["answer"].startswith("word word")


def test_answers_wait_for_their_turn_and_more_are_refused(folder: Path) -> None:
    gate = threading.Event()

    def slow(_: Any) -> str:
        gate.wait(30)
        return SAID

    with (
        Chat(slow) as chat,
        running(folder, answers=3, settings={"answer_llm": f"openai:mini@{chat.url}"}) as service,
        service.client() as client,
    ):
        replies: list[Any] = []

        def ask() -> None:
            replies.append(client.post("/v1/ask", json={"question": QUESTION}))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            if len(replies) == 3:
                break
            time.sleep(0.02)
        assert [reply.status_code for reply in replies] == [429] * 3
        assert client.post("/v1/retrieve", json={"question": QUESTION}).status_code == 200
        gate.set()
        for thread in threads:
            thread.join()
        assert sorted(reply.status_code for reply in replies) == [200] * 3 + [429] * 3


def test_a_model_that_fails_is_said_without_its_address(folder: Path) -> None:
    settings = {"answer_llm": "openai:mini@http://127.0.0.1:9/v1"}
    with running(folder, settings=settings) as service, service.client() as client:
        reply = client.post("/v1/ask", json={"question": QUESTION})
        assert (reply.status_code, reply.json()["code"]) == (502, "backend")
        assert "127.0.0.1:9" not in reply.text


def test_a_model_file_that_cannot_be_used_is_said_at_the_start(folder: Path, tmp_path: Path) -> None:
    for name, what in (("missing.gguf", "no such file"), ("text.gguf", "GGUF")):
        path = tmp_path / name
        if name == "text.gguf":
            path.write_text("not a model")
        with (
            pytest.raises(KetragError, match=what),
            running(folder, settings={"answer_llm": f"llama-cpp:{path}"}),
        ):
            pass
    with (
        pytest.raises(KetragError, match="no such folder"),
        running(folder, settings={"answer_llm": f"native:{tmp_path / 'missing'}"}),
    ):
        pass


def test_the_official_client_lists_embeds_and_chats(asking: Running) -> None:
    openai = part("openai", "checks")
    client = openai.OpenAI(base_url=f"{asking.url}/v1", api_key="none", max_retries=0)
    assert [one.id for one in client.models.list()] == ["ketrag"]
    assert client.models.retrieve("ketrag").owned_by == "ketrag"
    made = client.embeddings.create(model="ketrag", input=["Fram", "polar basin"])
    assert len(made.data) == 2
    plain = client.embeddings.create(model="ketrag", input=["Fram", "polar basin"], encoding_format="float")
    assert made.data[1].embedding == pytest.approx(plain.data[1].embedding)
    assert sum(x * x for x in made.data[0].embedding) == pytest.approx(1, abs=1e-4)
    assert made.usage.prompt_tokens == made.usage.total_tokens == 5
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who built her?"},
        {"role": "assistant", "content": "Archer."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    done = client.chat.completions.create(model="ketrag", messages=messages, temperature=0, max_tokens=50)
    (choice,) = done.choices
    assert (choice.message.content, choice.finish_reason) == (SHOWN, "stop")
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (7, 3)
    notes = choice.message.annotations
    assert [note.type for note in notes] == ["url_citation"] * 2
    for note in notes:
        cited = note.url_citation
        assert SHOWN[cited.start_index : cited.end_index] == "[1]"
        assert cited.url.startswith("ketrag:ketrag/fram.md#char=0,")
        assert cited.title == "Fram"
    chunks = list(
        client.chat.completions.create(
            model="ketrag:bm25", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    texts = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert "".join(texts).strip() == SHOWN
    assert cited.metadata == {"letters": 4}
    last = [c for c in chunks if c.choices][-1]
    assert last.choices[0].finish_reason == "stop"
    assert last.choices[0].delta.annotations[0]["url_citation"]["document"] == "fram.md"
    assert chunks[-1].usage.completion_tokens == 3


@pytest.mark.parametrize("where", ["letters=4 and not letters=3", {"letters": {"$gte": 4, "$lte": 4}}])
def test_the_official_client_filters(asking: Running, model: Chat, where: Any) -> None:
    openai = part("openai", "checks")
    client = openai.OpenAI(base_url=f"{asking.url}/v1", api_key="none", max_retries=0)
    user = [{"role": "user", "content": "Which odd text names Colin Archer?"}]
    create = client.chat.completions.create
    for extra, names in (({}, {"odd.md", "fram.md"}), ({"filter": where}, {"fram.md"})):
        done = create(model="ketrag:bm25", messages=user, extra_body={**extra, "top": 2})
        prompt = json.dumps(model.requests[-1])
        assert {name for name in ("odd.md", "fram.md") if TEXTS[name[:-3]][:20] in prompt} == names
        assert done.choices[0].message.content
    nothing = create(model="ketrag", messages=user, extra_body={"filter": "letters>1000"})
    assert nothing.choices[0].message.annotations == []
    for extra, code in (
        ({"filter": "letters="}, "input"),
        ({"filter": 7}, "input"),
        ({"filter": "no_such_field=1"}, "input"),
        ({"budget": -1}, "bad_request"),
        ({"deadline": 0}, "bad_request"),
    ):
        with pytest.raises(openai.APIStatusError) as error:
            create(model="ketrag", messages=user, extra_body=extra)
        assert (error.value.status_code in (400, 422), error.value.code) == (True, code)
    ignored = create(model="ketrag", messages=user, extra_body={"allow": "letters=3", "top": 1})
    assert ignored.choices[0].message.content, "no request changes what is allowed"


def test_the_official_client_gets_its_own_errors(asking: Running, client: Any) -> None:
    openai = part("openai", "checks")
    made = openai.OpenAI(base_url=f"{asking.url}/v1", api_key="none", max_retries=0)
    user = [{"role": "user", "content": QUESTION}]
    with pytest.raises(openai.NotFoundError, match="unknown index"):
        made.chat.completions.create(model="gpt-x", messages=user)
    with pytest.raises(openai.NotFoundError):
        made.models.retrieve("gpt-x")
    with pytest.raises(openai.BadRequestError, match="no_such_mode"):
        made.chat.completions.create(model="ketrag:no_such_mode", messages=user)
    with pytest.raises(openai.UnprocessableEntityError, match="user"):
        made.chat.completions.create(model="ketrag", messages=[{"role": "system", "content": "x"}])
    with pytest.raises(openai.UnprocessableEntityError, match="at most 1"):
        made.chat.completions.create(model="ketrag", messages=user, n=2)
    with pytest.raises(openai.UnprocessableEntityError, match="tokens"):
        made.embeddings.create(model="ketrag", input=[[1, 2, 3]])
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        made.embeddings.create(model="ketrag", input="a", dimensions=7)
    reply = client.post("/v1/chat/completions", json={"model": "ketrag", "messages": user})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "no_model")
    assert "/v1/retrieve" in reply.json()["error"]["message"]  # not taken for a path of this machine


def test_a_local_model_answers_by_every_way(folder: Path, tiny_gguf: Path) -> None:
    """The weights are random: what is looked at is that text comes, whole and in pieces."""
    openai = part("openai", "checks")
    with running(folder, settings={"answer_llm": f"llama-cpp:{tiny_gguf}", "threads": 1}) as service:
        client = openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0)
        user = [{"role": "user", "content": QUESTION}]
        done = client.chat.completions.create(model="ketrag", messages=user, max_tokens=12)
        assert 0 < done.usage.completion_tokens <= 12
        assert done.usage.prompt_tokens > 50
        chunks = list(
            client.chat.completions.create(model="ketrag", messages=user, max_tokens=12, stream=True)
        )
        texts = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        assert texts.strip() == done.choices[0].message.content
