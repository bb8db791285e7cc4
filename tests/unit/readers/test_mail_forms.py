"""Mails: the richest form of the text, flowed text, invitations, and what Outlook packs into winmail.dat."""

from __future__ import annotations

import base64
from email.message import EmailMessage

import pytest

from ketrag_fast.readers.mail import unflowed
from tests.support.reading import read_all, read_one

WINMAIL = (
    "eJ8+IgEAAQaQCAAEAAAAAAABAAEAAQyAAgArAAAAVE5FRiBib2R5IHRleHQ6IHRoZSBmZXJyeSBsZWF2ZXMgYXQgMDY6NDAuAKoN"
    "AgKQBgAOAAAAAQD/////AAAAAAAAAAD9AwIQgAEADgAAAHRpbWV0YWJsZS50eHQARQUCD4AGACUAAABJbnNpZGUgd2lubWFpbDog"
    "cGllciBHYW5uZXQgdGltZXRhYmxlyw0="
)
EVENT = (
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Kickoff puffin\nLOCATION:Room Skua\nEND:VEVENT\nEND:VCALENDAR\n"
)


def message(plain: str | None, page: str | None, event: str | None = None) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "ann@example.org", "Hello"
    forms = [(plain, "plain"), (page, "html"), (event, "calendar")]
    for text, kind in forms:
        if text is None:
            continue
        if mail.get_content_type() == "text/plain" and not mail.get_payload():
            mail.set_content(text, subtype=kind)
        else:
            mail.add_alternative(text, subtype=kind)
    return mail.as_bytes()


@pytest.mark.parametrize(
    ("plain", "page", "text"),
    [
        ("Use an HTML reader.", "<p>The total is 418 kroner.</p>", "The total is 418 kroner."),
        ("Total: 418 kroner.\n> old", "<p>Total: 418 kroner.</p><p>old</p>", "Total: 418 kroner.\n> old"),
        ("", "<p>Only here.</p>", "Only here."),
        ("Short.", "<p>Short.</p><table><tr><td>Rope</td><td>3</td></tr></table>", "Short.\n\nRope\t3"),
    ],
)
def test_the_richest_form_wins_unless_the_plain_one_says_the_same(plain: str, page: str, text: str) -> None:
    assert read_one("a.eml", message(plain, page)).text == text


def test_a_file_next_to_the_page_stays_when_the_plain_form_is_read() -> None:
    mail = EmailMessage()
    mail["From"] = "ann@example.org"
    mail.set_content("The list is attached.")
    mail.add_alternative("<p>The list is attached.</p>", subtype="html")
    page = mail.get_payload()[1]  # type: ignore[index]
    page.add_related(b"rope, 3 m", "text", "csv", filename="list.csv")  # type: ignore[union-attr]
    documents, failures = read_all("a.eml", mail.as_bytes())
    assert failures == [] and documents[0].text == "The list is attached."
    assert documents[0].metadata["attachments"] == ["list.csv"]


def test_a_report_of_a_mail_that_was_not_delivered() -> None:
    report = (
        "From: a@b\nSubject: Undelivered\nMIME-Version: 1.0\n"
        "Content-Type: multipart/report; report-type=delivery-status; boundary=B\n\n"
        "--B\nContent-Type: text/plain\n\nCould not deliver.\n"
        "--B\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx\n\n"
        "Final-Recipient: rfc822; ida@b\nStatus: 5.1.1\nX-Other: z\n\n"
        "--B\nContent-Type: text/rfc822-headers\n\nSubject: The rope\nX-Other: z\n\n--B--\n"
    )
    found = read_one("a.eml", report.encode())
    assert found.text.split("\n\n") == [
        "Could not deliver.",
        "final-recipient: rfc822; ida@b\nstatus: 5.1.1",
        "subject: The rope",
    ]


def test_a_signature_is_reported_and_not_read() -> None:
    kind = "multipart/signed; protocol=application/pgp-signature; boundary=B"
    data = (
        f"From: a@b\nMIME-Version: 1.0\nContent-Type: {kind}\n\n--B\nContent-Type: text/plain\n\nBody.\n"
        "--B\nContent-Type: application/pgp-signature; name=s.asc\n\nABC\n--B--\n"
    )
    documents, failures = read_all("a.eml", data.encode())
    assert [one.text for one in documents] == ["Body."]
    assert failures == ["a.eml: not read: s.asc"]


def test_invitations() -> None:
    assert read_one("a.eml", message(None, None, EVENT)).text == "Kickoff puffin\nlocation: Room Skua"
    both = read_one("a.eml", message("Please come.", "<p>Please come.</p>", EVENT))
    assert both.text == "Please come.\n\nKickoff puffin\nlocation: Room Skua"


def test_hidden_text_of_a_page_is_left_out() -> None:
    page = (
        '<div style="display:none">PREHEADER</div><div style="max-height:0;overflow:hidden">X</div><p>Hi</p>'
    )
    assert read_one("a.eml", message(None, page)).text == "Hi"


@pytest.mark.parametrize(
    ("text", "joins", "lines"),
    [
        ("no electri \ncity here.\nNext.", True, ["no electricity here.", "Next."]),
        ("one \ntwo\nthree", False, ["one two", "three"]),
        ("> a \n> b\nc", False, ["> a b", "c"]),
        (" From me \nto you", False, ["From me to you"]),
        ("text \n-- \nAnn", False, ["text ", "-- ", "Ann"]),
    ],
)
def test_flowed_text(text: str, joins: bool, lines: list[str]) -> None:
    assert unflowed(text, joins=joins).split("\n") == lines


def test_winmail_dat() -> None:
    mail = EmailMessage()
    mail["From"] = "ann@example.org"
    mail.set_content("See body.")
    data = base64.b64decode(WINMAIL)
    mail.add_attachment(data, "application", "ms-tnef", filename="winmail.dat")
    documents, failures = read_all("a.eml", mail.as_bytes())
    assert failures == []
    assert documents[0].text == "See body.\n\nTNEF body text: the ferry leaves at 06:40."
    assert [one.text for one in documents[1:]] == ["Inside winmail: pier Gannet timetable"]


@pytest.mark.parametrize("cut", [3, 20, 40, 49, 126, 133, 154])
def test_damaged_winmail_dat_is_reported_or_read(cut: int) -> None:
    mail = EmailMessage()
    mail["From"] = "ann@example.org"
    mail.set_content("See body.")
    data = base64.b64decode(WINMAIL)
    mail.add_attachment(
        data[:cut] + b"\xff" + data[cut + 1 :], "application", "ms-tnef", filename="winmail.dat"
    )
    documents, failures = read_all("a.eml", mail.as_bytes())
    assert documents[0].text.startswith("See body.")
    assert all(failure.startswith("a.eml") for failure in failures)
    assert failures or len(documents) == 2
