"""Calendars and contacts: an entry is a document; lines are unfolded and characters unescaped."""

from __future__ import annotations

from tests.support.reading import read_all, read_one

EVENT = b"""BEGIN:VCALENDAR\r
BEGIN:VEVENT
SUMMARY:Launch of the Fram
DTSTART;TZID=Europe/Oslo:18921026T120000
LOCATION:Larvik\\, Norway
ATTENDEE;CN="Colin Archer":mailto:archer@example.org
DESCRIPTION:Eva Nansen names
  the ship.\\nBring flags.
BEGIN:VALARM
DESCRIPTION:not this
END:VALARM
END:VEVENT
END:VCALENDAR
"""
CARDS = """BEGIN:VCARD
N:Brandt;Helga;;Dr.;
FN:Dr. Helga Brandt
ORG:Harbour;Office
item1.EMAIL;TYPE=INTERNET:helga@example.org
ADR;TYPE=WORK:;;Quay 4;Oslo;;0150;Norway
NOTE:Knows the tides\\, speaks Danish.
END:VCARD
BEGIN:VCARD
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg
TEL;CELL:123
END:VCARD
"""


def test_an_event_is_a_document() -> None:
    event = read_one("a.ics", EVENT)
    assert event.id == "a.ics:2" and event.title == "Launch of the Fram"
    assert event.metadata == {"date": "1892-10-26"}
    assert event.text.splitlines() == [
        *("start: 1892-10-26 12:00 (Europe/Oslo)", "location: Larvik, Norway"),
        *("attendee: Colin Archer <archer@example.org>", "", "Eva Nansen names the ship.", "Bring flags."),
    ]


def test_contacts() -> None:
    documents, failures = read_all("a.vcf", CARDS.encode())
    assert failures == []
    assert [one.title for one in documents] == ["Dr. Helga Brandt", "Jörg Müller"]
    assert documents[0].text.splitlines() == [
        *("organisation: Harbour, Office", "e-mail: helga@example.org"),
        *("address: Quay 4, Oslo, 0150, Norway", "", "Knows the tides, speaks Danish."),
    ]
    assert documents[1].text == "phone: 123"


def test_files_without_entries_are_failures() -> None:
    assert read_all("a.ics", b"BEGIN:VCALENDAR\n")[1] == ["a.ics: the calendar has no events"]
    assert read_all("a.vcf", b"hello\n")[1] == ["a.vcf: the file has no contacts"]
