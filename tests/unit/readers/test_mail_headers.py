"""Headers of mails have the text that the standard parser returns, which reads only those that need it."""

from __future__ import annotations

import sys
from email import message_from_bytes, policy
from email.utils import parsedate_to_datetime
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.reading import read_one

PIECES = [
    *("a", "Jane", "Doe", "jo@x.org", "b.org", "<a@b.org>", "Jane Doe <a@b.org>", "x y z <q@w>", "é"),
    *("1.2@c", '"Doe, J"', '"Jane Doe"', '"J. Doe"', '"Jane  Doe" <c@d.e>', '"a" ', '" a"', '""', '"', "'"),
    *("<", ">", "@", ",", ", ", " ", "  ", ".", "\n ", "\r\n ", "\t", "\x0b"),
    *("(c)", ":", ";", "\\", "[1]", "-", "=?utf-8?q?a?=", "=", "?", "=?", "?=", "_", "%", "()", "a@", "@b"),
]
FIELDS = {"Subject": "", "From": "from", "To": "to", "Message-ID": "message_id", "In-Reply-To": "reply_to"}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(FIELDS)), st.lists(st.sampled_from(PIECES), min_size=1, max_size=6))
def test_a_header_has_the_text_that_the_standard_parser_returns(name: str, pieces: list[str]) -> None:
    data = f"{name}: {''.join(pieces)}\nX-Other: 1\n\nThe body.".encode()
    try:
        whole = " ".join(str(message_from_bytes(data, policy=policy.default)[name]).split())
    except Exception:  # noqa: BLE001 - the standard parser fails for some damaged headers
        whole = ""
    document = read_one("a.eml", data)
    expected = whole.encode("utf-8", "replace").decode()
    assert (document.metadata.get(FIELDS[name], "") if FIELDS[name] else document.title) == expected


@pytest.mark.parametrize(
    "date",
    ["Thu, 4 Mar 1999 10:00:01 +0200", "4 Mar 1999\n 10:00", "Thu, 4 Mar 1999 10:00 (CET) -0000", "now"],
)
def test_the_date(date: str) -> None:
    try:
        expected = parsedate_to_datetime(date.replace("\n", "")).isoformat()
    except ValueError:
        expected = None
    assert read_one("a.eml", f"Subject: s\nDate: {date}\n\nx".encode()).metadata.get("date") == expected


def calls_of_the_parser(data: bytes) -> int:
    """Number of calls within the standard parser of header values while a mail is read."""
    count = 0

    def enter(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.endswith("_header_value_parser.py")

    sys.setprofile(enter)
    try:
        read_one("a.eml", data)
    finally:
        sys.setprofile(None)
    return count


def test_usual_headers_cost_no_call_of_the_standard_parser() -> None:
    """It takes 3 ms for those of one mail."""
    usual = (
        "From: Jane Doe <jane.doe@example.org>\nTo: jo@example.org,\n "
        '"Doe, Jim" <jim@example.org>\nCc: "Ann" <ann@example.org>\nSubject: Re: The boat (no. 3)\n'
        "Date: Thu, 4 Mar 1999 10:00:01 +0200\nMessage-ID: <1.a@example.org>\nIn-Reply-To: <0@example.org>\n"
    )
    read_one("a.eml", f"{usual}\nx".encode())  # loads modules
    assert calls_of_the_parser(f"{usual}\nThe boat.".encode()) == 0
    assert calls_of_the_parser(b"From: J. Doe <j@example.org>\n\nThe boat.") > 0
