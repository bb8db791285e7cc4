"""The endpoint backend against a server that is really there, behind a proxy that misbehaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ketrag_fast.errors import BackendError, Cancelled, ConfigError, NetworkForbidden
from ketrag_fast.models.embedders.openai import OpenAIEmbedder, split_text, vectors_of
from ketrag_fast.models.embedders.registry import fingerprint
from ketrag_fast.models.http.endpoints import RetryPolicy, address_of, is_loopback, parts_of, weight
from ketrag_fast.models.llms.openai import OpenAIModel
from tests.support.endpoint import (
    Endpoint,
    Fault,
    Proxy,
    altered,
    cut_short,
    endless,
    half_json,
    send,
    status,
    web_page,
    words_encoder,
)

QUICK = RetryPolicy(attempts=4, pause=0.01, timeout=20.0)
TEXTS = [f"passage {number} speaks of rivers and mills" for number in range(150)]

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with Endpoint(words_encoder()) as running:
        yield running


def connect(url: str, **options: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder(f"openai:mini@{url}", **{"offline": True, "retry": QUICK, **options})


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_vectors_come_back_in_order_from_many_batches(server: Endpoint) -> None:
    embedder = connect(server.url)
    assert embedder.dimension == 16
    found = embedder.embed([*TEXTS, "  "])
    assert np.allclose(found[:-1], unit(words_encoder()(TEXTS)), atol=1e-6)
    assert not found[-1].any() and embedder.tally.empty == 1
    assert embedder.account.tokens > 150 * 7
    embedder.close()


def test_a_moved_endpoint_has_the_same_fingerprint_and_another_model_has_not(server: Endpoint) -> None:
    with Endpoint(words_encoder()) as elsewhere:
        assert connect(server.url).fingerprint == connect(elsewhere.url).fingerprint
    assert OpenAIEmbedder(f"openai:other@{server.url}").fingerprint != connect(server.url).fingerprint


@pytest.mark.parametrize("fault", [status(429, "0"), status(500), status(503), cut_short, half_json])
def test_what_may_pass_is_tried_again(server: Endpoint, fault: Fault) -> None:
    with Proxy(server, [None, fault, fault]) as proxy:
        embedder = connect(proxy.url, longest=100)
        assert np.allclose(embedder.embed(TEXTS[:3]), unit(words_encoder()(TEXTS[:3])), atol=1e-6)
        assert proxy.requests == 4
        embedder.close()


def test_a_wait_beyond_reason_is_refused(server: Endpoint) -> None:
    with Proxy(server, [None, status(429, "4000")]) as proxy:
        with pytest.raises(BackendError, match="4000 s"):
            connect(proxy.url, longest=100).embed(TEXTS[:1])
        assert proxy.requests == 2


def test_attempts_end(server: Endpoint) -> None:
    with Proxy(server, [None, *[status(500)] * 9]) as proxy:
        with pytest.raises(BackendError, match=r"failed 4 times.*500.*not now"):
            connect(proxy.url, longest=100).embed(TEXTS[:1])
        assert proxy.requests == 5


def drop(reply: dict[str, Any]) -> None:
    reply["data"].pop()


def shorten(reply: dict[str, Any]) -> None:
    reply["data"][0]["embedding"].pop()


def poison(reply: dict[str, Any]) -> None:
    reply["data"][0]["embedding"][3] = float("nan")


def zero(reply: dict[str, Any]) -> None:
    reply["data"][0]["embedding"] = [0.0] * 16


def repeat(reply: dict[str, Any]) -> None:
    reply["data"][0]["index"] = reply["data"][1]["index"]


def words(reply: dict[str, Any]) -> None:
    reply["data"][0]["embedding"] = ["a", "b"]


def nothing(reply: dict[str, Any]) -> None:
    del reply["data"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (altered(drop), "2 vectors for 3 texts"),
        (altered(shorten), "15 dimensions, expected 16"),
        (altered(poison), "NaN"),
        (altered(zero), "zero vector"),
        (altered(repeat), "invalid vector index"),
        (altered(words), "not a list of numbers"),
        (altered(nothing), "without data"),
        (web_page, "text/html"),
        (endless, "more than 1,001,536 bytes"),
        (status(401), "401"),
        (status(404), "404"),
        (status(302), "302"),
    ],
)
def test_a_wrong_reply_is_a_typed_error_and_is_not_asked_again(
    server: Endpoint, fault: Fault, message: str
) -> None:
    with Proxy(server, [None, fault]) as proxy:
        with pytest.raises(BackendError, match=message):
            connect(proxy.url, longest=100).embed(TEXTS[:3])
        assert proxy.requests == 2


def test_base64_is_understood() -> None:
    import base64

    rows = np.arange(1, 7, dtype="<f4").reshape(2, 3)
    data = [{"index": n, "embedding": base64.b64encode(row.tobytes()).decode()} for n, row in enumerate(rows)]
    assert np.array_equal(vectors_of({"data": data}, ["a", "b"], 3, "x"), rows)
    data[0]["embedding"] = "!!!"
    with pytest.raises(BackendError, match="invalid vector"):
        vectors_of({"data": data}, ["a", "b"], 3, "x")


@pytest.mark.parametrize("silent", [True, False])
def test_a_long_text_is_read_to_its_end_whether_the_server_cuts_or_refuses(silent: bool) -> None:
    """The server reads 300 words: one cuts without a word, the other answers 400."""
    encode = words_encoder(reads=300 if silent else None)
    with Endpoint(encode, refuse_over=None if silent else 300) as server:
        embedder = connect(server.url)
        start = " ".join(f"word{n % 50}" for n in range(900))
        vectors = embedder.embed([f"{start} apple", f"{start} zebra", "short"])
        assert embedder.longest == 250 and embedder.tally.windowed > 0
        assert np.abs(vectors[0] - vectors[1]).max() > 1e-3  # the last word counts
        assert all(len(text.split()) <= 300 for text in server.texts if text.startswith("word"))
        embedder.close()


def test_cut_keeps_every_character_and_keeps_to_the_weight() -> None:
    text = "Ünïcode 東京の人口 and 1234567 plain-words " * 40 + "x" * 1000
    parts = split_text(text, 50)
    assert "".join(parts) == text
    assert max(map(weight, parts)) <= 50
    assert weight("Internationalisation of 12 things") == 4 + 1 + 2 + 1


def test_keys_come_from_the_environment_and_appear_in_no_error(
    server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    connect(server.url)
    assert server.keys[-1] is None  # not OpenAI's host
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", "sk-own")
    connect(server.url)
    assert server.keys[-1] == "Bearer sk-own"

    def gossip(handler: Any, _: bytes) -> None:
        send(handler, 401, {"error": {"message": "bad key sk-own"}})

    with Proxy(server, [gossip]) as proxy, pytest.raises(BackendError) as caught:
        connect(proxy.url)
    assert "sk-own" not in str(caught.value) and "[key]" in str(caught.value)
    with pytest.raises(ConfigError, match="unencrypted"):
        OpenAIEmbedder("openai:m@http://example.org/v1")


def test_offline_permits_loopback_alone() -> None:
    with pytest.raises(NetworkForbidden, match=r"example\.org"):
        OpenAIEmbedder("openai:m@https://example.org/v1", offline=True)
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("127.0.0.1.example.org") and not is_loopback("10.0.0.1")


@pytest.mark.parametrize(
    "spec",
    [
        "openai:m",
        "openai:@http://h/v1",
        "openai:m@ftp://h",
        "openai:m@http://u:p@127.0.0.1/v1",
        "openai:m@http://h:x/",
    ],
)
def test_bad_specs(spec: str) -> None:
    with pytest.raises(ConfigError):
        OpenAIEmbedder(spec)


def test_the_model_may_hold_slashes_and_at_signs() -> None:
    assert parts_of("openai:@cf/baai/bge@https://h/v1") == ("@cf/baai/bge", "https://h/v1")


def test_prompts_mark_questions_and_passages(server: Endpoint) -> None:
    spec = f"openai:e5@{server.url}"
    model = OpenAIEmbedder(f"{spec}#query: |passage: ")
    server.texts.clear()
    model.embed(["a red fox"], "query")
    model.embed(["a red fox", "two ships"])
    assert [text for text in server.texts if "fox" in text or "ships" in text][-3:] == [
        "query: a red fox",
        "passage: a red fox",
        "passage: two ships",
    ]
    marked = OpenAIEmbedder(f"{spec}#input_type")
    server.bodies.clear()
    marked.embed(["a red fox"], "query")
    marked.embed(["a red fox"])
    kinds = [body.get("input_type") for body in server.bodies if body["input"] == ["a red fox"]]
    assert kinds == ["query", "passage"]
    plain = OpenAIEmbedder(spec)
    server.bodies.clear()
    plain.embed(["a red fox"], "query")
    assert all("input_type" not in body for body in server.bodies)
    prints = {opened.fingerprint for opened in (model, marked, plain)}
    assert len(prints) == 3
    assert prints == {fingerprint(opened.spec) for opened in (model, marked, plain)}


def test_a_prefix_is_put_before_every_window_of_a_long_text() -> None:
    with Endpoint(words_encoder(reads=150)) as server:
        model = OpenAIEmbedder(f"openai:e5@{server.url}#query: |passage: ")
        server.texts.clear()
        words = [f"word{number}" for number in range(400)]
        model.embed([" ".join(words)])
        windows = [text for text in server.texts if "word" in text]
        assert len(windows) > 2 and all(text.startswith("passage: ") for text in windows)
        assert "".join(text.removeprefix("passage: ") for text in windows) == " ".join(words)
        assert max(len(text.split()) for text in windows) <= 150
        model.close()


@pytest.mark.parametrize("options", ["", "query: ", "|", "a|b|c", "input-type", "x" * 300 + "|" + "y" * 300])
def test_bad_prompts(options: str) -> None:
    with pytest.raises(ConfigError, match="input_type or two prefixes"):
        OpenAIEmbedder(f"openai:e5@http://127.0.0.1:1/v1#{options}")
    with pytest.raises(ConfigError, match="input_type or two prefixes"):
        fingerprint(f"openai:e5@http://127.0.0.1:1/v1#{options}")


def test_a_language_model_has_no_prompts() -> None:
    with pytest.raises(ConfigError, match="no options"):
        OpenAIModel("openai:m@http://127.0.0.1:1/v1#query: |passage: ")


def test_prompts_do_not_change_the_address_that_must_be_confirmed() -> None:
    plain = address_of("openai:e5@http://127.0.0.1:1/v1")
    assert address_of("openai:e5@http://127.0.0.1:1/v1#x@http://other|y") == plain
    assert address_of("openai:a#b@http://127.0.0.1:1/v1") == plain


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(BackendError, match=r"failed 2 times.*ConnectionRefused") as caught:
        connect("http://127.0.0.1:9/v1", retry=RetryPolicy(attempts=2, pause=0.01))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("check the address")


def test_a_stop_does_not_wait_for_slow_replies() -> None:
    release = threading.Event()
    slow = words_encoder()

    def encode(texts: Any) -> Any:
        if texts != ["a trial"]:
            release.wait(300)
        return slow(texts)

    with Endpoint(encode) as server:
        embedder = connect(server.url, longest=100)
        started = time.monotonic()
        with pytest.raises(Cancelled):
            embedder.embed(TEXTS, cancel=lambda: time.monotonic() - started > 0.3)
        assert time.monotonic() - started < 100
        release.set()
        embedder.close()
