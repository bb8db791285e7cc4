"""Exports of chats: conversations are documents, exchanges or stretches of messages passages."""

from __future__ import annotations

import json
from typing import Any

from tests.support.reading import at, read_all, read_one


def node(role: str, text: str, parent: str | None, children: list[str]) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    return {
        "message": {"author": {"role": role}, "content": content, "create_time": 1780000000.0},
        "parent": parent,
        "children": children,
    }


def test_chatgpt_follows_the_branch_that_was_kept() -> None:
    mapping = {
        "r": {"message": None, "parent": None, "children": ["a"]},
        "a": node("user", "Which harbour?", "r", ["b", "c"]),
        "b": node("assistant", "Horten.", "a", []),
        "c": node("assistant", "Svelvik, because of the ferry.", "a", ["d"]),
        "d": node("user", "When does it leave?", "c", []),
    }
    trip = {"title": "Boat trip", "create_time": 1.0, "current_node": "d", "mapping": mapping}
    chat = read_one("conversations.json", json.dumps([trip]).encode())
    assert chat.title == "Boat trip" and chat.metadata == {"date": "2026-05-28", "project": "ChatGPT"}
    assert [text for _, text in at(chat, "exchange")] == [
        "user: Which harbour?\n\nassistant: Svelvik, because of the ferry.",
        "user: When does it leave?",
    ]


def test_claude_has_a_document_for_each_conversation() -> None:
    def chat(name: str, text: str) -> dict[str, Any]:
        messages = [
            {"sender": "human", "text": text, "created_at": "2026-03-05T10:00:00Z"},
            {"sender": "assistant", "text": "", "content": [{"type": "text", "text": "Larch."}]},
        ]
        return {"uuid": name, "name": name, "chat_messages": messages}

    documents, failures = read_all(
        "c.json", json.dumps([chat("Mast", "Which wood?"), chat("Oar", "?")]).encode()
    )
    assert [(one.id, one.title) for one in documents] == [("c.json#1", "Mast"), ("c.json#2", "Oar")]
    assert documents[0].text == "user: Which wood?\n\nassistant: Larch." and failures == []


def test_slack_keeps_threads_together() -> None:
    rows = [
        {
            "type": "message",
            "user_profile": {"real_name": "Eva"},
            "text": "Winch is stuck",
            "ts": "1780000000.1",
        },
        {"type": "message", "user": "U2", "text": "Lunch?", "ts": "1780000060.0"},
        {
            "type": "message",
            "user": "U3",
            "text": "Grease it",
            "ts": "1780009000.0",
            "thread_ts": "1780000000.1",
        },
        {
            "type": "message",
            "user": "U1",
            "text": "Thanks",
            "ts": "1780009900.0",
            "thread_ts": "1780000000.1",
        },
    ]
    assert [text for _, text in at(read_one("deck.json", json.dumps(rows).encode()), "exchange")] == [
        "Eva: Winch is stuck\n\nU2: Lunch?",
        "U3: Grease it\n\nU1: Thanks",
    ]


def test_discord_and_teams() -> None:
    discord = {
        "guild": {"name": "Crew"},
        "channel": {"name": "deck"},
        "messages": [
            {
                "author": {"name": "eva", "nickname": "Eva"},
                "content": "Ahoy",
                "timestamp": "2026-03-05T10:00:00+00:00",
            },
        ],
    }
    chat = read_one("d.json", json.dumps(discord).encode())
    assert (chat.title, chat.text, chat.metadata["project"]) == ("deck", "Eva: Ahoy", "Crew")
    messages = [
        {
            "from": "8:b",
            "displayName": "Bo",
            "content": "<p>Yes &amp; no</p>",
            "originalarrivaltime": "2026-03-05T10:01:00Z",
        },
        {
            "from": "8:a",
            "displayName": "Al",
            "content": "Coming?",
            "originalarrivaltime": "2026-03-05T10:00:00Z",
        },
    ]
    teams = {"conversations": [{"displayName": "Watch", "MessageList": messages}]}
    assert read_one("t.json", json.dumps(teams).encode()).text == "Al: Coming?\n\nBo: Yes & no"


def test_whatsapp_is_cut_at_pauses() -> None:
    text = (
        "12/24/25, 9:15 PM - Eva: Where is the sledge?\n"
        "12/24/25, 9:16 PM - Bo: Behind the hut.\nUnder the tarp.\n"
        "12/26/25, 8:00 AM - Eva: Found it.\n"
    )
    chat = read_one("WhatsApp Chat with Crew.txt", text.encode())
    assert chat.title == "Crew" and chat.metadata == {"date": "2025-12-24"}
    assert [text for _, text in at(chat, "exchange")] == [
        "Eva: Where is the sledge?\n\nBo: Behind the hut.\nUnder the tarp.",
        "Eva: Found it.",
    ]
    other = read_one("chat.txt", b"[24.12.25, 21:15:03] Eva: Hei\n[24.12.25, 21:15:09] Bo: Ha det\n")
    assert other.text == "Eva: Hei\n\nBo: Ha det"


def test_telegram_joins_the_parts_of_a_text() -> None:
    def said(name: str, time: int, text: Any, kind: str = "message") -> dict[str, Any]:
        return {"type": kind, "from": name, "date_unixtime": str(time), "text": text}

    rows = [
        said("", 1780000000, "", "service"),
        said("Eva", 1780000000, ["Where is ", {"type": "bold", "text": "the anchor"}, "?"]),
        said("Bo", 1780000060, "On the bow."),
        said("Eva", 1780009000, ""),  # a picture without a text
    ]
    crew = {"name": "Crew", "type": "private_group", "id": 1, "messages": rows}
    chat = read_one("result.json", json.dumps(crew).encode())
    assert chat.title == "Crew" and chat.metadata == {"date": "2026-05-28"}
    assert [text for _, text in at(chat, "exchange")] == ["Eva: Where is the anchor?\n\nBo: On the bow."]
    whole = {"about": "Here is the data", "chats": {"about": "", "list": [crew, {**crew, "name": "Watch"}]}}
    documents, failures = read_all("result.json", json.dumps(whole).encode())
    assert [one.title for one in documents] == ["Crew", "Watch"] and failures == []


def test_a_session_of_gemini_has_questions_with_their_answers() -> None:
    rows = [
        {"type": "user", "content": "Which sail?", "timestamp": "2026-03-05T10:00:00Z"},
        {"type": "info", "content": "Model changed"},
        {"type": "gemini", "content": "The storm jib.", "toolCalls": []},
        {"type": "user", "content": "Reef it?", "timestamp": "2026-03-05T10:02:00Z"},
    ]
    session = {"sessionId": "s", "projectHash": "h", "messages": rows}
    chat = read_one("session-1.json", json.dumps(session).encode())
    assert chat.metadata == {"date": "2026-03-05", "project": "Gemini"}
    assert [text for _, text in at(chat, "exchange")] == [
        "user: Which sail?\n\nassistant: The storm jib.",
        "user: Reef it?",
    ]


IRSSI = """--- Log opened Mon Mar 02 23:58:10 2026
23:58 -!- eva [~eva@example.org] has joined #sailing
23:58 < eva> which knot for the fender?
23:59 <@bo> a round turn and two half hitches
--- Day changed Tue Mar 03 2026
09:30 < eva> it held, thanks
"""


def test_logs_of_irc_are_cut_at_pauses() -> None:
    chat = read_one("#sailing.log", IRSSI.encode())
    assert chat.title == "#sailing" and chat.metadata == {"date": "2026-03-02"}
    assert [text for _, text in at(chat, "exchange")] == [
        "eva: which knot for the fender?\n\nbo: a round turn and two half hitches",
        "eva: it held, thanks",
    ]


def test_other_times_of_irc_and_days_that_do_not_exist() -> None:
    lines = ["[09:30:01] <eva> a", "2026-02-30T09:31:00Z <+bo> b", "[2026-03-03 09:32] <eva> c"]
    chat = read_one("log.txt", "\n".join(lines).encode())
    assert chat.text == "eva: a\n\nbo: b\n\neva: c" and chat.metadata == {"date": "2026-03-03"}


def test_logs_of_weechat() -> None:
    lines = [
        "2026-03-01 12:00:00\t-->\teva (~e@host) has joined #boats",
        "2026-03-01 12:00:05\teva\thow do I grease the winch?",
        "2026-03-01 12:00:15\t@bo\tlithium grease <twice a year>",
        "2026-03-01 12:01:00\t *\teva thanks bo",
        "2026-03-01 12:02:00\t<--\tbo (~b@host) has quit",
        "2026-03-04 09:00:00\tcarl\twhere is the key?",
    ]
    chat = read_one("irc.net.#boats.weechatlog", "\n".join(lines).encode())
    assert [text for _, text in at(chat, "exchange")] == [
        "eva: how do I grease the winch?\n\nbo: lithium grease <twice a year>\n\neva: thanks bo",
        "carl: where is the key?",
    ]
    assert chat.title == "irc.net.#boats"
    messages, failures = read_all("empty.weechatlog", lines[0].encode())
    assert messages == [] and len(failures) == 1


def test_a_log_with_angle_brackets_is_not_a_chat() -> None:
    log = b"12:00 <init> start\n12:01 done -> ok\n12:02 <b>x</b>\n" + b"12:03 plain\n" * 9
    document = read_one("server.log", log)
    assert document.text.startswith("12:00 <init> start") and not at(document, "exchange")
