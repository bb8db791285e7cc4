"""Sessions of coding assistants (Claude Code, Codex) as JSON lines: a document per file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from ketrag_fast.readers.conversation import Message, conversation, exchanges_of, seconds_of
from ketrag_fast.readers.protocol import Item, SourceFile

_MARKS: Final = (
    (b'"sessionId":"',),
    (b'"leafUuid":"',),
    (b'"message":{', b'"role":"'),
    (b'"type":"message"', b'"role":"'),
    *((b'"payload":{', b'"type":"' + kind) for kind in (b"session_meta", b"response_item", b"event_msg")),
)
"""Of each row, a line of a session has all."""
_FIRST_LINES: Final = 5
_TEXT: Final = ("text", "input_text", "output_text")
_TITLE: Final = 100
_INJECTED: Final = re.compile(
    r"\s*<(?:environment_context|user_instructions|system-reminder|command-|local-command-)"
)
"""Messages that a program wrote in the name of the user."""


def is_session(head: bytes) -> bool:
    """Return whether one of the first JSON lines is that of a session."""
    lines = (line.replace(b'": ', b'":') for line in head.split(b"\n", _FIRST_LINES)[:_FIRST_LINES])
    return any(
        line.startswith(b"{") and any(all(map(line.__contains__, row)) for row in _MARKS) for line in lines
    )


def read_session(file: SourceFile) -> Iterator[Item]:
    """Yield a session as one document. The project is the folder in which the assistant worked."""
    messages: list[Message] = []
    metadata: dict[str, Any] = {}
    title = ""
    with file.open() as stream:
        for number, data in enumerate(stream, 1):
            if not data.strip():
                continue
            try:
                record = json.loads(file.line(data))
            except (ValueError, RecursionError):
                if data.endswith(b"\n"):  # the last line may still be written
                    yield file.failure(f"line {number} is not JSON", number)
                continue
            if not isinstance(record, dict):
                continue
            title = title or str(record.get("summary") or "")
            _note(record, metadata)
            message = _message(record)
            if message is not None:
                messages.append(message)
    asked = next((one.text for one in messages if one.role == "user" and one.text.strip()), "")
    title = title or " ".join(asked.split())[:_TITLE]
    document = conversation(file.id, title, exchanges_of(messages), metadata)
    yield file.failure("the session has no messages") if document is None else document


def _note(record: Mapping[str, Any], metadata: dict[str, Any]) -> None:
    """Add the project and the session to the metadata."""
    payload = record.get("payload")
    about = payload if isinstance(payload, dict) else record
    folder, session = about.get("cwd"), record.get("sessionId")
    if isinstance(folder, str) and folder:
        metadata.setdefault("project", PurePath(folder).name or folder)
    if isinstance(session, str) and session:
        metadata.setdefault("session", session)


def _message(record: Mapping[str, Any]) -> Message | None:
    """Return the message of a line; None if it has none, or repeats or only reports another one."""
    time = seconds_of(record.get("timestamp"))
    if record.get("isMeta"):
        return None
    inner = record.get("message")
    if isinstance(inner, dict):  # Claude Code
        return _of_parts(str(inner.get("role", "")), inner.get("content"), time)
    payload = record.get("payload")
    item = payload if record.get("type") == "response_item" and isinstance(payload, dict) else record
    kind = item.get("type")
    if kind == "message":  # Codex
        return _of_parts(str(item.get("role", "")), item.get("content"), time)
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        given = item.get("arguments") or item.get("input") or item.get("action")
        return Message("assistant", "", time, [f"{item.get('name', kind)}: {_plain(given)}"])
    if kind in ("function_call_output", "custom_tool_call_output"):
        return Message("tool", "", time, [_plain(item.get("output"))])
    return None


def _of_parts(role: str, content: Any, time: float | None) -> Message | None:
    """Return a message from its content: a text, or parts among which are calls and results of tools."""
    if role not in ("user", "assistant"):
        return None
    if isinstance(content, str):
        return None if _INJECTED.match(content) else Message(role, content, time)
    texts, tools = [], []
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if kind in _TEXT and isinstance(part.get("text"), str):
            texts += [] if role == "user" and _INJECTED.match(part["text"]) else [part["text"]]
        elif kind == "tool_use":
            tools.append(f"{part.get('name', 'tool')}: {_plain(part.get('input'))}")
        elif kind == "tool_result":
            tools.append(_plain(part.get("content")))
    return Message(role, "\n\n".join(texts), time, tools) if texts or tools else None


def _plain(value: Any) -> str:
    """Return what a tool received or returned as text; pictures are named."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value) if value[:1] == "{" else None
        except (ValueError, RecursionError):
            return value
        return _plain(parsed) if isinstance(parsed, dict) else value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_plain, value)))
    if not isinstance(value, dict):
        return "" if value is None else json.dumps(value)
    if value.get("type") in _TEXT:
        return str(value.get("text", ""))
    if value.get("type") in ("image", "input_image"):
        return "[picture]"
    return "\n".join(_fields(value.items()))


def _fields(fields: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield `name: value` for each field; a command, or the only field, stands alone."""
    rows = [(name, _plain(value)) for name, value in fields]
    alone = len(rows) == 1
    for name, text in rows:
        if text:
            yield text if alone or name in ("command", "cmd", "output") else f"{name}: {text}"
