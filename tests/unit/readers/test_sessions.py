"""Sessions of assistants: a document per session, a passage per exchange, tools behind the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ketrag_fast import Index, Settings
from ketrag_fast.systems.spec.documents import parts_of
from tests.support.reading import at, read_all, read_one


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def said(role: str, content: Any, minute: int = 0) -> dict[str, Any]:
    return {
        "type": role,
        "sessionId": "5f1c",
        "cwd": "/srv/shop",
        "timestamp": f"2026-08-01T10:{minute:02}:00Z",
        "message": {"role": role, "content": content},
    }


SESSION = lines(
    {"type": "summary", "summary": "Webhook of the payment provider", "leafUuid": "u"},
    said("user", "Why does the webhook fail?"),
    said("assistant", [{"type": "tool_use", "name": "Bash", "input": {"command": "grep -rn retry src"}}], 1),
    said("user", [{"type": "tool_result", "content": "src/hooks.py:41: drop(event)"}], 1),
    said("assistant", [{"type": "text", "text": "The certificate expires at midnight."}], 2),
    said("user", "Use a backoff of 45 seconds.", 5),
    said("assistant", [{"type": "text", "text": "Done."}], 6),
)


def test_an_exchange_has_question_and_answer_with_tools_behind() -> None:
    session = read_one("5f1c.jsonl", SESSION)
    assert session.id == "5f1c.jsonl" and session.title == "Webhook of the payment provider"
    assert session.metadata == {"date": "2026-08-01", "project": "shop", "session": "5f1c"}
    assert at(session, "exchange") == [
        (
            1,
            "user: Why does the webhook fail?\n\nassistant: The certificate expires at midnight.\n\n"
            "Bash: grep -rn retry src\n\nsrc/hooks.py:41: drop(event)",
        ),
        (2, "user: Use a backoff of 45 seconds.\n\nassistant: Done."),
    ]
    assert [value for value, _ in at(session, "date")] == ["2026-08-01 10:00", "2026-08-01 10:05"]


def test_each_exchange_is_a_section_titled_by_its_question() -> None:
    session = read_one("5f1c.jsonl", SESSION)
    parts = parts_of(session.text, session.title, session.locators)
    assert [part.title for part in parts] == [
        "Why does the webhook fail? (Webhook of the payment provider)",
        "Use a backoff of 45 seconds. (Webhook of the payment provider)",
    ]
    assert "".join(session.text[part.start : part.end] for part in parts) == session.text


def test_a_session_of_codex() -> None:
    def item(payload: dict[str, Any], kind: str = "response_item") -> dict[str, Any]:
        return {"timestamp": "2026-08-01T10:00:00Z", "type": kind, "payload": payload}

    def message(role: str, text: str) -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        return item({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    call = {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls", "hull"]}'}
    session = read_one(
        "rollout.jsonl",
        lines(
            item({"id": "x", "cwd": "/srv/fram"}, "session_meta"),
            message("user", "<environment_context>cwd</environment_context>"),
            message("user", "Which files describe the hull?"),
            item(call),
            item({"type": "function_call_output", "output": '{"output": "hull.md"}'}),
            message("assistant", "Only hull.md does."),
            item({"type": "agent_message", "message": "Only hull.md does."}, "event_msg"),
        ),
    )
    assert session.text == (
        "user: Which files describe the hull?\n\nassistant: Only hull.md does.\n\nshell: ls\nhull\n\nhull.md"
    )
    assert session.title == "Which files describe the hull?" and session.metadata["project"] == "fram"


def test_a_session_that_is_being_written_and_bad_lines() -> None:
    data = lines(said("user", "What?"), said("assistant", "That.")) + b'not json\n{"type": "user", "mess'
    documents, failures = read_all("a.jsonl", data)
    assert [document.text for document in documents] == ["user: What?\n\nassistant: That."]
    assert failures == ["a.jsonl:3: line 3 is not JSON"]


def test_pictures_are_named_and_long_output_is_cut() -> None:
    picture = {"type": "tool_result", "content": [{"type": "image", "source": {"data": "iVBORw0" * 999}}]}
    output = {"type": "tool_result", "content": "xy\n" * 10_000}
    session = read_one("a.jsonl", lines(said("user", "Look."), said("user", [picture, output])))
    assert "[picture]" in session.text and "iVBORw0" not in session.text
    assert session.text.endswith("xy\n... 9,999 more characters")


def test_lines_without_a_text_are_read_by_name() -> None:
    documents, failures = read_all(
        "app.ndjson", b'{"level":"error","msg":"winch stalled","at":{"deck":2}}\n{}\n'
    )
    assert [(one.id, one.text) for one in documents] == [
        ("app.ndjson:1", "level: error\nmsg: winch stalled\n\ndeck: 2")
    ]
    assert failures == ["app.ndjson:2: line 2: the record has no values"]


def test_the_exchange_answers_the_question(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "5f1c.jsonl").write_bytes(SESSION)
    with Index.build(tmp_path / "docs", tmp_path / "ix", settings=Settings(threads=1)) as index:
        hit = index.search("which backoff do we use")[0]
        assert hit.text == "user: Use a backoff of 45 seconds.\n\nassistant: Done."
        assert index.search("hooks.py drop", filter="project=shop")[0].text.startswith("user: Why does")


def test_fields_of_a_query_select_exchanges(tmp_path: Path) -> None:
    later = [{**json.loads(line), "timestamp": "2026-09-03T08:00:00Z"} for line in SESSION.splitlines()[-2:]]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "5f1c.jsonl").write_bytes(SESSION + lines(*later))
    (tmp_path / "docs" / "chat.txt").write_text(
        "01/08/2026, 10:11 - Anna Berg: the webhook\n01/08/2026, 12:12 - Bob: a backoff\n"
    )
    (tmp_path / "docs" / "note.txt").write_text("Anna: the webhook\n")
    index = Index.build(tmp_path / "docs", tmp_path / "index")

    def found(query: str) -> set[tuple[str, str]]:
        return {(hit.document, hit.text.split("\n")[0]) for hit in index.search(query)}

    assert found("backoff role:user after:2026-09") == {("5f1c.jsonl", "user: Use a backoff of 45 seconds.")}
    assert {name for name, _ in found("webhook before:2026-08-02")} == {"5f1c.jsonl", "chat.txt"}
    assert found("role:anna webhook") == {("chat.txt", "Anna Berg: the webhook")}
    assert {name for name, _ in found("project:shop webhook")} == {"5f1c.jsonl"}
    assert not found("role:nobody webhook")


def test_binary_output_of_tools_is_left_out() -> None:
    wrapped = "\n".join(["QUJD" * 19] * 40)
    outputs = [
        "".join(chr(number % 256) for number in range(9000)),
        "iVBORw0K" * 50_000,
        f"a.png\n{wrapped}\nend",
    ]
    results = [said("user", [{"type": "tool_result", "content": output}]) for output in outputs]
    text = read_one("5f1c.jsonl", SESSION + lines(*results)).text
    assert "[binary output, 9,000 characters]" in text and "[data, 400,000 characters]" in text
    assert "a.png\n[data, 3,080 characters]end" in text
    assert "QUJD" not in text and "iVBOR" not in text and len(text) < 600


def test_a_line_of_very_many_characters() -> None:
    """The text of the tool is cut, those of people are kept, and the next exchange is read."""
    long = said("user", [{"type": "tool_result", "content": "word " * 2_000_000}])
    session = read_one(
        "5f1c.jsonl", SESSION + lines(long, said("user", "What now?"), said("assistant", "Rest."))
    )
    assert at(session, "exchange")[-1][1] == "user: What now?\n\nassistant: Rest."
    assert "... 9,979,999 more characters" in session.text and len(session.text) < 21_000


def test_names_that_differ_by_case_only_are_two_files(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("Readme.md", "README.md"):
        (tmp_path / "src" / name).write_text(f"The harbour of {name}")
    if len(list((tmp_path / "src").iterdir())) < 2:
        pytest.skip("this file system does not tell them apart")
    with Index.build(tmp_path / "src", tmp_path / "index") as index:
        assert {hit.document for hit in index.search("harbour")} == {"Readme.md", "README.md"}
