"""Exports of chats: ChatGPT, Claude, Slack, Discord, Teams and Telegram as JSON, WhatsApp as text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ketrag_fast.readers.conversation import (
    Message,
    conversation,
    exchanges_of,
    seconds_of,
    stretches_of,
)
from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document

_LINE: Final = re.compile(
    r"\u200e?\[?(\d{1,4})[./-](\d{1,2})[./-](\d{2,4}),? (\d{1,2}):(\d\d)(?::\d\d)?"
    r"(?:[ \u202f]?([AaPp])\.?[Mm]\.?)?"
    r"(?:\]| -) ([^:\n]{1,60}): (.*)"
)


def is_whatsapp(head: bytes) -> bool:
    """Return whether a text begins as an export of WhatsApp does: one of its first lines is a message."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    return any(_LINE.match(line) for line in text.splitlines()[:3])


def read_whatsapp(file: SourceFile) -> Iterator[Item]:
    """Yield the chat as one document."""
    text = file.text()
    found = [match for line in text.splitlines() if (match := _LINE.match(line))]
    month_first = any(int(one[2]) > 12 for one in found) and not any(int(one[1]) > 12 for one in found)
    messages: list[Message] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is not None:
            messages.append(Message(match[7], match[8], _time(match, month_first)))
        elif messages:
            messages[-1].text += f"\n{line}"
    title = file.id.rpartition("/")[2].rpartition(".")[0].removeprefix("WhatsApp Chat with ")
    document = conversation(file.id, title, stretches_of(messages), {})
    yield file.failure("the chat has no messages") if document is None else document


def _time(match: re.Match[str], month_first: bool) -> float | None:
    one, two, three, hour, minute = map(int, match.group(1, 2, 3, 4, 5))
    if match[6]:
        hour = hour % 12 + (12 if match[6] in "Pp" else 0)
    year, month, day = (
        (one, two, three) if one > 31 else (three, one, two) if month_first else (three, two, one)
    )
    try:
        return dt.datetime(
            year + (2000 if year < 100 else 0), month, day, hour, minute, tzinfo=dt.UTC
        ).timestamp()
    except ValueError:
        return None


def conversations(file: SourceFile, data: Any) -> Iterator[Document] | None:
    """Return the conversations of an export; None if parsed JSON is not an export of a chat."""
    rows = data if isinstance(data, list) else [data]
    first = rows[0] if rows and isinstance(rows[0], dict) else {}
    if isinstance(first.get("mapping"), dict):
        return _each(file, rows, _chatgpt)
    if isinstance(first.get("chat_messages"), list):
        return _each(file, rows, _claude)
    if isinstance(first.get("MessageList"), list):
        return _each(file, rows, _teams)
    if isinstance(first.get("conversations"), list) and isinstance(data, dict):
        return conversations(file, first["conversations"])
    if isinstance(first.get("messages"), list) and isinstance(first.get("channel"), dict):
        return _each(file, rows, _discord)
    if "sessionId" in first and any(one.get("type") == "gemini" for one in _dicts(first.get("messages"))):
        return _each(file, rows, _gemini)
    chats = first.get("chats")
    if isinstance(chats, dict) and isinstance(chats.get("list"), list):
        return _each(file, chats["list"], _telegram)
    if any("date_unixtime" in one for one in _dicts(first.get("messages"))[:5]):
        return _each(file, rows, _telegram)
    if isinstance(data, list) and first.get("type") == "message" and "ts" in first:
        return _each(file, [{"messages": data}], _slack)
    return None


Parsed = tuple[str, Sequence[Sequence[Message]], dict[str, Any]]


def _each(file: SourceFile, rows: Sequence[Any], parse: Any) -> Iterator[Document]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            continue
        title, exchanges, metadata = parse(row)
        name = file.id if len(rows) == 1 else f"{file.id}#{number}"
        document = conversation(name, title, exchanges, metadata)
        if document is not None:
            yield document


def _chatgpt(row: Mapping[str, Any]) -> Parsed:
    nodes = {key: node for key, node in row["mapping"].items() if isinstance(node, dict)}
    at = row.get("current_node")
    if at not in nodes:  # the last message that nothing follows
        at = next((key for key, node in reversed(nodes.items()) if not node.get("children")), None)
    messages: list[Message] = []
    seen: set[Any] = set()
    while at in nodes and at not in seen:
        seen.add(at)
        found = _chatgpt_message(nodes[at].get("message"), row.get("create_time"))
        messages += [] if found is None else [found]
        at = nodes[at].get("parent")
    return _text(row.get("title")), exchanges_of(reversed(messages)), {"project": "ChatGPT"}


def _chatgpt_message(message: Any, start: Any) -> Message | None:
    if not isinstance(message, dict) or not isinstance(message.get("content"), dict):
        return None
    author = message.get("author")
    role = _text(author.get("role")) if isinstance(author, dict) else ""
    parts = message["content"].get("parts") or [message["content"].get("text")]
    text = "\n\n".join(part for part in parts if isinstance(part, str)) if isinstance(parts, list) else ""
    time = seconds_of(message.get("create_time") or start)
    if role in ("user", "assistant") and message.get("recipient", "all") == "all":
        return Message(role, text, time)
    return Message("tool", "", time, [text]) if role in ("tool", "assistant") else None


def _claude(row: Mapping[str, Any]) -> Parsed:
    messages = []
    for one in _dicts(row["chat_messages"]):
        parts = [part["text"] for part in _dicts(one.get("content")) if isinstance(part.get("text"), str)]
        role = "user" if one.get("sender") == "human" else "assistant"
        text = "\n\n".join(parts) or _text(one.get("text"))
        messages.append(Message(role, text, seconds_of(one.get("created_at"))))
    return _text(row.get("name")), exchanges_of(messages), {"project": "Claude"}


def _teams(row: Mapping[str, Any]) -> Parsed:
    from ketrag_fast.readers.html import plain_text

    messages = [
        Message(
            _text(one.get("displayName") or one.get("from")),
            plain_text(_text(one.get("content"))),
            seconds_of(one.get("originalarrivaltime")),
        )
        for one in _dicts(row["MessageList"])
    ]
    messages.sort(key=lambda one: one.time or 0.0)  # the export begins with the newest
    return _text(row.get("displayName") or row.get("id")), stretches_of(messages), {}


def _discord(row: Mapping[str, Any]) -> Parsed:
    messages = []
    for one in _dicts(row["messages"]):
        author = one.get("author")
        name = author.get("nickname") or author.get("name") if isinstance(author, dict) else ""
        messages.append(Message(_text(name), _text(one.get("content")), seconds_of(one.get("timestamp"))))
    guild = row.get("guild")
    project = {"project": _text(guild.get("name"))} if isinstance(guild, dict) and guild.get("name") else {}
    return _text(row["channel"].get("name")), stretches_of(messages), project


def _gemini(row: Mapping[str, Any]) -> Parsed:
    messages = []
    for one in _dicts(row["messages"]):
        role = {"user": "user", "gemini": "assistant"}.get(_text(one.get("type")))
        if role is not None:
            messages.append(Message(role, _text(one.get("content")), seconds_of(one.get("timestamp"))))
    return "", exchanges_of(messages), {"project": "Gemini"}


def _telegram(row: Mapping[str, Any]) -> Parsed:
    messages = []
    for one in _dicts(row.get("messages")):
        if one.get("type", "message") == "message":
            parts = one.get("text")
            # A text with links and marks is a list of texts and of objects that have one.
            texts = [
                part if isinstance(part, str) else _text(part.get("text"))
                for part in (parts if isinstance(parts, list) else [parts])
                if isinstance(part, (str, dict))
            ]
            time = seconds_of(one.get("date_unixtime") or one.get("date"))
            messages.append(Message(_text(one.get("from")) or "unknown", "".join(texts), time))
    return _text(row.get("name")), stretches_of(messages), {}


def _slack(row: Mapping[str, Any]) -> Parsed:
    threads: dict[str, list[Message]] = {}
    for one in _dicts(row["messages"]):
        profile = one.get("user_profile")
        name = (
            profile.get("real_name") or profile.get("name") if isinstance(profile, dict) else one.get("user")
        )
        message = Message(
            _text(name or one.get("username")), _text(one.get("text")), seconds_of(one.get("ts"))
        )
        threads.setdefault(_text(one.get("thread_ts") or ""), []).append(message)
    exchanges = stretches_of(threads.pop("", []))
    exchanges += threads.values()
    exchanges.sort(key=lambda exchange: exchange[0].time or 0.0)
    return "", exchanges, {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
