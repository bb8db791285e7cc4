"""Chat completions against servers that are really there, behind a proxy that misbehaves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast.errors import BackendError, ConfigError, NetworkForbidden
from ketrag_fast.models.extraction.parse import parse_reply
from ketrag_fast.models.extraction.prompt import PromptOptions, build_prompt, follow_up, reply_schema
from ketrag_fast.models.http.endpoints import RetryPolicy
from ketrag_fast.models.llms.openai import OpenAIModel
from ketrag_fast.models.llms.protocol import Limits, ModelReply, Prompt
from ketrag_fast.models.llms.registry import ModelOptions, open_model
from ketrag_fast.models.spending import Account, LimitReachedError
from tests.support.chat import Chat, ChatProxy, stream_cut, trickle
from tests.support.endpoint import Fault, altered, cut_short, endless, half_json, send, status, web_page

pytestmark = pytest.mark.usefixtures("loopback")

QUICK = RetryPolicy(attempts=4, pause=0.01, timeout=20.0)
OPTIONS = PromptOptions()
LIMITS = Limits(tokens=200, seconds=20.0, schema=reply_schema(OPTIONS))
GOOD = '{"e":[["Warsaw","place","a city"]],"r":[]}'


def prompts(count: int) -> list[Prompt]:
    return [build_prompt(number, "", f"Warsaw is city number {number}.", OPTIONS) for number in range(count)]


def connect(url: str, name: str = "mini", **options: Any) -> OpenAIModel:
    model = open_model(f"openai:{name}@{url}", ModelOptions(offline=True, **{"retry": QUICK, **options}))
    assert isinstance(model, OpenAIModel)
    return model


@pytest.fixture
def server() -> Iterator[Chat]:
    with Chat(lambda _: GOOD) as running:
        yield running


def ask(model: OpenAIModel, count: int = 1, limits: Limits = LIMITS) -> list[ModelReply]:
    return sorted(model.replies(prompts(count), limits), key=lambda reply: reply.number)


def test_every_prompt_has_its_reply_and_what_it_took() -> None:
    account = Account(1.0)
    two = threading.Barrier(2)  # each request is answered when there is another one beside it

    def answer(_: Any) -> str:
        two.wait(300)
        return GOOD

    with Chat(answer) as server:
        model = connect(server.url, account=account, slots=3)
        found = ask(model, 10)
    assert [reply.number for reply in found] == list(range(10))
    assert all((r.text, r.finish, r.tokens_out, r.error) == (GOOD, "stop", 5, None) for r in found)
    assert account.tokens_out == 50
    assert account.tokens_in == sum(reply.tokens_in for reply in found) > 1_000
    assert 1 < server.most <= 3
    body = server.requests[0]
    assert (body["temperature"], body["max_tokens"], body["model"]) == (0, 200, "mini")
    assert body["response_format"]["json_schema"]["schema"] == LIMITS.schema
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    model.close()


def test_turns_are_told_in_their_order(server: Chat) -> None:
    model = connect(server.url)
    list(model.replies([follow_up(prompts(1)[0], "first reply")], LIMITS))
    sent = [(m["role"], m["content"][:11]) for m in server.requests[0]["messages"]]
    assert sent[1:] == [("user", "=====\nWarsa"), ("assistant", "first reply"), ("user", "Some entiti")]


def test_the_fingerprint_is_the_model_and_the_context_is_what_the_endpoint_tells(server: Chat) -> None:
    model = connect(server.url)
    with Chat(lambda _: "", listed=None) as other:
        silent = connect(other.url)
        assert silent.identity.fingerprint == model.identity.fingerprint
        assert silent.room(prompts(1)[0]) is None
        assert connect(other.url, "maxi").identity.fingerprint != model.identity.fingerprint
    room = model.room(prompts(1)[0])
    assert model.identity.context == 4096
    assert room is not None
    assert 2_000 < room < 4_000
    assert connect(server.url, context=100).room(prompts(1)[0]) < 0  # type: ignore[operator]


@pytest.mark.parametrize(("lacks", "forms"), [("json_schema", ["json_object"]), ("response_format", [])])
def test_structured_output_is_asked_for_where_it_is_offered(lacks: str, forms: list[str]) -> None:
    def refuses(body: dict[str, Any]) -> str | None:
        kind = body.get("response_format", {}).get("type")
        return f"{kind} is not supported by this model" if kind in ("json_schema", *_hidden) else None

    _hidden = () if lacks == "json_schema" else ("json_object",)
    with Chat(lambda _: GOOD, refuses=refuses) as server:
        model = connect(server.url, slots=1)
        assert all(reply.text == GOOD for reply in ask(model, 4))
        kinds = [body.get("response_format", {}).get("type") for body in server.requests]
        tried = ["json_schema"] if forms else ["json_schema", "json_object"]
        assert kinds == [*tried, *[(forms or [None])[0]] * 4]  # found out once, and remembered


def test_parameters_that_an_endpoint_refuses_are_left_out() -> None:
    def refuses(body: dict[str, Any]) -> str | None:
        if "max_tokens" in body:
            return "Unsupported parameter: 'max_tokens' is not supported; use 'max_completion_tokens'."
        if "temperature" in body:
            return "Unsupported value: 'temperature' does not support 0 with this model."
        return None

    with Chat(lambda _: GOOD, refuses=refuses) as server:
        model = connect(server.url, slots=1)
        assert [reply.text for reply in ask(model, 2)] == [GOOD, GOOD]
        assert len(server.requests) == 4
        assert server.requests[-1]["max_completion_tokens"] == 200
        assert "response_format" in server.requests[-1]


def test_a_prompt_that_is_refused_teaches_nothing_about_the_others() -> None:
    def refuses(body: dict[str, Any]) -> str | None:
        return "against our policy" if "city number 1." in body["messages"][1]["content"] else None

    with Chat(lambda _: GOOD, refuses=refuses) as server:
        found = ask(connect(server.url, slots=1), 3)
        assert [reply.finish for reply in found] == ["stop", "error", "stop"]
        assert server.requests[-1]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("fault", [status(500), status(429), cut_short, half_json, status(503, "0")])
def test_what_may_pass_is_tried_again(server: Chat, fault: Fault) -> None:
    with ChatProxy(server.port, [fault, fault]) as proxy:
        (reply,) = ask(connect(proxy.url))
        assert (reply.text, reply.error) == (GOOD, None)
        assert len(proxy.times) == 3


def test_a_wait_that_the_endpoint_asks_for_is_no_part_of_a_reply_s_seconds(server: Chat) -> None:
    with ChatProxy(server.port, [status(429, "4.2")]) as proxy:
        assert ask(connect(proxy.url), 1, Limits(tokens=50, seconds=4.0))[0].text == GOOD
        assert proxy.times[1] - proxy.times[0] >= 4.2


def test_a_silent_endpoint_is_asked_once() -> None:
    with Chat(lambda _: GOOD, pause=600.0) as slow:
        started = time.monotonic()
        (reply,) = ask(connect(slow.url), 1, Limits(tokens=50, seconds=2.0))
        assert (reply.finish, len(slow.requests)) == ("time", 1)
        assert time.monotonic() - started < 300


def _content(value: Any) -> Fault:
    return altered(lambda reply: reply["choices"][0]["message"].update(content=value))


def reasoning(reply: dict[str, Any]) -> None:
    reply["choices"][0]["message"] = {"content": None, "reasoning_content": "let me think"}
    reply["choices"][0]["finish_reason"] = "length"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (web_page, "text/html"),
        (endless, "more than"),
        (altered(lambda reply: reply.clear()), "without choices"),
        (altered(lambda reply: reply.update(choices="none")), "without choices"),
        (altered(lambda reply: reply.update(choices=[[]])), "without choices"),
        (altered(lambda reply: reply["choices"].clear()), "without choices"),
        (altered(lambda reply: reply["choices"][0].update(message=5)), "empty reply"),
        (lambda handler, _: send(handler, 200, [1, 2]), "without choices"),
        (lambda handler, _: send(handler, 200, {"error": {"message": "overloaded"}}), "overloaded"),
        (_content(""), "empty reply"),
        (_content(None), "empty reply"),
        (_content(["part"]), "empty reply"),
        (altered(reasoning), "thinks first"),
        (status(400), "not now"),
        (lambda h, _: send(h, 400, {"error": {"message": "exceeds the context length"}}), "context length"),
    ],
)
def test_a_bad_reply_spoils_its_own_prompt_alone(server: Chat, fault: Fault, error: str) -> None:
    with ChatProxy(server.port, [fault]) as proxy:
        found = ask(connect(proxy.url, slots=1), 2, Limits(tokens=50, seconds=20.0))
        assert (found[0].finish, found[0].text) == ("error", "")
        assert error in (found[0].error or "")
        assert (found[1].finish, found[1].text) == ("stop", GOOD)


@pytest.mark.parametrize("content", ["not JSON", '{"e": 5}', '{"e":[["Warsaw","pla', "[" * 50_000, "null"])
def test_a_reply_of_any_content_is_a_reply(server: Chat, content: str) -> None:
    with ChatProxy(server.port, [_content(content)]) as proxy:
        (reply,) = ask(connect(proxy.url))
        assert reply.text == content
        assert parse_reply(reply.text, "Warsaw").extraction.entities == ()


def test_a_reply_that_never_ends_is_ended(server: Chat) -> None:
    with ChatProxy(server.port, [trickle]) as proxy:
        found = ask(connect(proxy.url, slots=1), 2, Limits(tokens=50, seconds=4.0))
        assert [reply.finish for reply in found] == ["time", "stop"]


@pytest.mark.parametrize("fault", [status(500), web_page])
def test_an_endpoint_that_only_fails_is_not_asked_for_ever(server: Chat, fault: Fault) -> None:
    with ChatProxy(server.port, [fault] * 500) as proxy:
        model = connect(proxy.url, retry=RetryPolicy(attempts=2, pause=0.01), slots=1)
        seen = []
        with pytest.raises(BackendError, match="3 requests in a row"):
            seen.extend(model.replies(prompts(50), LIMITS))
        assert len(proxy.times) <= 6


def test_a_long_prompt_is_no_fault_of_the_endpoint() -> None:
    with Chat(lambda _: GOOD, refuses=lambda _: "the prompt exceeds the context size") as server:
        found = ask(connect(server.url, slots=1), 6)
        assert all(reply.finish == "error" and "exceeds" in (reply.error or "") for reply in found)


@pytest.mark.parametrize(
    ("code", "hint"),
    [(401, "KETRAG_OPENAI_API_KEY"), (403, "KETRAG_OPENAI_API_KEY"), (404, "the endpoint serves mini")],
)
def test_what_would_fail_every_prompt_is_raised(server: Chat, code: int, hint: str) -> None:
    with ChatProxy(server.port, [status(code)] * 9) as proxy:
        with pytest.raises(BackendError, match=str(code)) as caught:
            list(connect(proxy.url).replies(prompts(3), Limits(tokens=10)))
        assert hint in (caught.value.hint or "")


def test_another_model_than_the_endpoint_serves(server: Chat) -> None:
    with pytest.raises(BackendError, match="does not serve the model maxi") as caught:
        connect(server.url, "maxi")
    assert caught.value.hint == "it serves mini"
    with Chat(lambda _: GOOD, listed=[{"id": "llama3:latest"}]) as other:
        assert ask(connect(other.url, "llama3"))[0].text == GOOD


def test_the_network_is_not_used_when_forbidden(monkeypatch: pytest.MonkeyPatch, server: Chat) -> None:
    with pytest.raises(NetworkForbidden, match=r"example\.org"):
        open_model("openai:m@https://example.org/v1", ModelOptions(offline=True))
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", "sk-secret")
    with pytest.raises(ConfigError, match="unencrypted"):
        open_model("openai:m@http://example.org/v1")
    ask(connect(server.url))
    assert server.keys == ["Bearer sk-secret"]

    def echo(handler: Any, _: bytes) -> None:
        send(handler, 401, {"error": {"message": "bad key sk-secret"}})

    with ChatProxy(server.port, [echo]) as proxy, pytest.raises(BackendError) as caught:
        ask(connect(proxy.url))
    assert "sk-secret" not in str(caught.value)


def test_the_limit_in_dollars_stops_before_it_is_passed(server: Chat) -> None:
    account = Account(1.0, 0.01, usd_per_million_out=4.0)
    model = connect(server.url, account=account, slots=2)
    seen: list[ModelReply] = []
    with pytest.raises(LimitReachedError, match=r"0\.01 USD"):
        seen.extend(model.replies(prompts(500), LIMITS))
    assert 5 < len(seen) < 100
    assert all(reply.text == GOOD for reply in seen)
    assert account.usd is not None
    assert account.usd <= 0.01
    assert len(server.requests) == len(seen)  # what was paid for was handed over


def test_prices_of_input_and_output_differ() -> None:
    account = Account(1.0, 1.0, usd_per_million_out=10.0)
    account.book(100, 50)
    account.settle(100, 80, 50, 20)
    assert (account.tokens, account.tokens_in, account.tokens_out) == (100, 80, 20)
    assert account.usd == pytest.approx((80 + 200) / 1e6)
    with pytest.raises(LimitReachedError):
        account.book(0, 100_000)
    assert Account(2.0).usd == 0
    for wrong in ({"usd_per_million_out": 1.0}, {"usd_per_million": -1.0}):
        with pytest.raises(ConfigError):
            Account(**wrong)  # type: ignore[arg-type]


def test_a_stop_does_not_wait_for_slow_replies() -> None:
    with Chat(lambda _: GOOD, pause=600.0) as server:
        model = connect(server.url, slots=2)
        started = time.monotonic()
        found = list(model.replies(prompts(9), LIMITS, lambda: len(server.requests) == 2))
        assert [reply.finish for reply in found] == ["cancelled", "cancelled"]
        assert time.monotonic() - started < 300


def test_a_stream_comes_in_pieces_and_ends_with_the_whole() -> None:
    with Chat(lambda _: "the answer is [1]") as server:
        *pieces, last = connect(server.url).stream(prompts(1)[0], Limits(tokens=50))
        assert pieces == ["the ", "answer ", "is ", "[1] "]
        assert isinstance(last, ModelReply)
        assert (last.text, last.tokens_in, last.tokens_out, last.finish) == (
            "the answer is [1] ",
            7,
            3,
            "stop",
        )


def send_stream(content: bytes, handler: Any, _: bytes) -> None:
    send(handler, 200, content, "text/event-stream")


def test_streams_that_go_wrong() -> None:
    limits = Limits(tokens=50, seconds=20.0)
    with Chat(lambda _: "one two") as server:
        with ChatProxy(server.port, [stream_cut]) as proxy, pytest.raises(BackendError, match="broke off"):
            list(connect(proxy.url).stream(prompts(1)[0], limits))
        whole = {"choices": [{"message": {"content": "not streamed"}}]}
        with ChatProxy(server.port, [status(500), lambda h, _: send(h, 200, whole)]) as proxy:
            *pieces, last = connect(proxy.url).stream(prompts(1)[0], limits)
            assert "".join(pieces) == "not streamed"  # a piece ends where a known key may begin
        half: Fault = partial(send_stream, b"data: {\n\n")
        with ChatProxy(server.port, [half]) as proxy, pytest.raises(BackendError, match="not JSON"):
            list(connect(proxy.url).stream(prompts(1)[0], limits))
        with ChatProxy(server.port, [status(404)] * 9) as proxy, pytest.raises(BackendError, match="404"):
            list(connect(proxy.url).stream(prompts(1)[0], limits))
    with Chat(lambda _: "") as server:
        *pieces, last = connect(server.url).stream(prompts(1)[0], limits)
        assert isinstance(last, ModelReply)
        assert (last.finish, "empty" in (last.error or "")) == ("error", True)


def test_a_stream_is_stopped_at_once() -> None:
    with Chat(lambda _: " ".join(map(str, range(1000))), pause=0.05) as server:
        model = connect(server.url)
        seen: list[str | ModelReply] = []
        seen.extend(model.stream(prompts(1)[0], Limits(tokens=5000), lambda: len(server.said) > 3))
        assert isinstance(seen[-1], ModelReply)
        assert seen[-1].finish == "cancelled"
        assert seen[-1].text.startswith("0 1 2 ")
        assert len(server.said) < 1000


# ---------------------------------------------------------------- a real model


@pytest.mark.parametrize("offers", ["schema", "none"])
def test_a_real_model_behind_a_real_server(tiny_gguf: Path, offers: Any) -> None:
    from tests.support.llama_server import LlamaServer

    with LlamaServer(tiny_gguf, offers=offers) as server:
        model = connect(server.url, "tiny")
        with ChatProxy(server.port, [status(500), cut_short]) as proxy:
            model = connect(proxy.url, "tiny")
            found = ask(model, 3, Limits(tokens=96, seconds=60.0, schema=LIMITS.schema))
        assert all(reply.tokens_in > 100 and reply.tokens_out > 0 for reply in found)
        assert all(reply.finish in ("stop", "length") for reply in found)
        if offers == "schema":
            assert all(reply.text.startswith("{") for reply in found)
            assert all(json.dumps(parse_reply(reply.text, "x").how) for reply in found)
        again = ask(connect(server.url, "tiny"), 3, Limits(tokens=96, seconds=60.0, schema=LIMITS.schema))
        assert [reply.text for reply in again] == [reply.text for reply in found]
        *pieces, last = model_stream(server.url)
        assert isinstance(last, ModelReply)
        assert "".join(map(str, pieces)) == last.text


def model_stream(url: str) -> list[str | ModelReply]:
    return list(connect(url, "tiny").stream(prompts(1)[0], Limits(tokens=16, seconds=60.0)))
