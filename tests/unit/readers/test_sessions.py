"""Sessions of assistants: a document per session, a passage per exchange, tools behind the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    output = {"type": "tool_result", "content": "x" * 30_000}
    session = read_one("a.jsonl", lines(said("user", "Look."), said("user", [picture, output])))
    assert "[picture]" in session.text and "iVBORw0" not in session.text
    assert session.text.endswith("x\n... 10,000 more characters")


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
