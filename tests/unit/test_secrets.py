"""Keys are stripped, checked, and in nothing that is written."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ketrag_fast.errors import BackendError, ConfigError
from ketrag_fast.models.http.endpoints import key_for, parts_of
from ketrag_fast.secrets import Cover, Key, redact, redact_all, redact_bytes, without_keys

TEXT = "sk-canary-55e0"
KEY = Key(TEXT)


@pytest.mark.parametrize("ends", ["\r", "\r\n", "\n", " ", "\t", "  \r\n\r\n"])
def test_blanks_and_line_ends_are_no_part_of_a_key(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", f"{ends}{TEXT}{ends}")
    key = key_for("example.org", "https")
    assert key is not None and key.header() == f"Bearer {TEXT}".encode()
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", ends)
    assert key_for("example.org", "https") is None


@pytest.mark.parametrize("sign", ["\r", "\n", "é", "€", "\x7f", "\x1b", " ", "\udcff"])
def test_a_key_that_no_header_can_hold(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KETRAG_OPENAI_API_KEY", f"sk-can{sign}ary")
    with pytest.raises(ConfigError, match="character 7 of 10") as caught:
        key_for("example.org", "https")
    assert "can" not in str(caught.value).replace("cannot", "") and "ary" not in str(caught.value)


def test_a_key_does_not_show_itself() -> None:
    assert TEXT not in f"{KEY} {KEY!r} {[KEY]}"
    with pytest.raises(TypeError):
        pickle.dumps(KEY)
    for text in (TEXT, f"a{TEXT}b{TEXT}", TEXT[:5] + "\x1b" + TEXT[5:], TEXT[:3] + "\u200b\u202e" + TEXT[3:]):
        assert "[key]" in redact_all(text)
        assert TEXT not in "".join(sign for sign in redact_all(text) if sign.isprintable())
        error = BackendError(text, hint=text)
        assert TEXT not in f"{error} {error!r} {error.hint} {error.args}"
    assert TEXT.encode() not in redact_bytes(f"x{TEXT}".encode())
    data = without_keys({TEXT: [TEXT, {"a": TEXT}], "n": [1.0, 2.0]})
    assert TEXT not in json.dumps(data) and data["n"] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("openai:m@http://me:pw-7@host/v1", "openai:m@http://[key]@host/v1"),
        ("http://pw-7@host", "http://[key]@host"),
        ("http://h/v1?api-version=2&api-key=pw-7&x=1", "http://h/v1?api-version=2&api-key=[key]&x=1"),
        ("openai:@cf/baai/bge@https://h/v1", "openai:@cf/baai/bge@https://h/v1"),
        ("a = b, x@y", "a = b, x@y"),
    ],
)
def test_addresses_in_errors_hold_no_secret(text: str, shown: str) -> None:
    assert redact_all(text) == shown


@pytest.mark.parametrize(
    "url",
    [
        "http://me:pw-secret@127.0.0.1/v1",
        "http://pw-secret@127.0.0.1:99999/v1",
        "https://h/v1?api-key=pw-secret",
        "https://h/v1?access_token=pw-secret",
        "https://h/v1?sig=pw-secret",
        "https://me:pw-secret@[::1/v1",
        "https://me:pw-secret@a b/v1",
    ],
)
def test_a_spec_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parts_of(f"openai:m@{url}")
    assert "pw-secret" not in f"{caught.value} {caught.value.hint}"
    assert parts_of("openai:m@https://h/v1?api-version=2024-02-01")[0] == "m"


@given(
    st.lists(st.sampled_from([TEXT, TEXT[:6], TEXT[6:], "sk-", "s", "word ", "-"]), max_size=12), st.data()
)
def test_a_stream_covers_what_a_whole_text_covers(parts: list[str], data: st.DataObject) -> None:
    text, cover, at, out = "".join(parts), Cover(), 0, ""
    while at < len(text):
        step = data.draw(st.integers(1, 20))
        out += cover.feed(text[at : at + step])
        at += step
    assert out + cover.finish() == redact(text)


def test_words_that_servers_ask_for_as_keys_stay_in_texts() -> None:
    for word in ("none", "ollama", "EMPTY", "x", "1234"):
        Key(word)
        assert redact_all(f"the {word} of 1234") == f"the {word} of 1234"
