"""Calendars (`.ics`) and contacts (`.vcf`): each entry is a document; RFC 5545 and RFC 6350."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ketrag_fast.readers.protocol import Item, SourceFile
from ketrag_fast.types import Document

_PROPERTY: Final = re.compile(r'(?:[\w-]+\.)?([\w-]+)((?:;[\w-]+(?:=(?:"[^"]*"|[^":;]*))?)*):(.*)', re.S)
_PERSON: Final = re.compile(r";CN=(?:\"([^\"]*)\"|([^\";:]*))", re.I)
_QUOTED: Final = re.compile(r";(?:ENCODING=)?QUOTED-PRINTABLE\b", re.I)
_ESCAPE: Final = re.compile(r"\\(.)", re.S)
_TIME: Final = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z?))?")
_DURATION: Final = re.compile(r"\+?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_ENTRIES: Final = ("VEVENT", "VTODO", "VJOURNAL")
_LONGEST: Final = 2_000
"""Characters after which a value that is not a note, such as an address, is cut."""
_EVENT: Final = {
    "DTSTART": "start",
    "DTEND": "end",
    "DURATION": "duration",
    "DUE": "due",
    "RRULE": "repeats",
    "LOCATION": "location",
    "ORGANIZER": "organizer",
    "ATTENDEE": "attendee",
    "STATUS": "status",
    "CATEGORIES": "categories",
    "URL": "url",
    "CONTACT": "contact",
}
_CARD: Final = {
    "NICKNAME": "nickname",
    "ORG": "organisation",
    "TITLE": "job title",
    "ROLE": "role",
    "TEL": "phone",
    "EMAIL": "e-mail",
    "ADR": "address",
    "BDAY": "birthday",
    "URL": "url",
    "CATEGORIES": "categories",
}


class Property(NamedTuple):
    """A line such as `ATTENDEE;CN=Ann:mailto:ann@example.org`."""

    name: str
    parameters: str
    value: str


def read_calendar(file: SourceFile) -> Iterator[Item]:
    """Yield each event, task and journal entry with the line on which it begins in its id."""
    yield from _documents(file, _ENTRIES, _event, "the calendar has no events")


def read_contacts(file: SourceFile) -> Iterator[Item]:
    """Yield each contact with the line on which it begins in its id."""
    yield from _documents(file, ("VCARD",), _contact, "the file has no contacts")


def event_texts(text: str) -> list[str]:
    """Return the entries of a calendar as text, each with its summary as the first line."""
    found = [_event("", entry) for _, entry in _entries(text, _ENTRIES)]
    return [f"{one.title}\n{one.text}".strip() for one in found]


def _documents(file: SourceFile, kinds: tuple[str, ...], document: Any, nothing: str) -> Iterator[Item]:
    some = False
    for line, entry in _entries(file.text(), kinds):
        made: Document = document(f"{file.id}:{line}", entry)
        if made.text or made.title:
            some = True
            yield made
    if not some:
        yield file.failure(nothing)


def _entries(text: str, kinds: tuple[str, ...]) -> Iterator[tuple[int, list[Property]]]:
    """Yield the first line and the properties of each entry, without those of its alarms."""
    first, depth = 0, 0
    entry: list[Property] = []
    for number, line in _unfolded(text):
        mark, _, what = line.partition(":")
        mark, what = mark.strip().upper(), what.strip().upper()
        if first and mark == "BEGIN":
            depth += 1
        elif mark == "BEGIN" and what in kinds:
            first, depth, entry = number, 0, []
        elif first and mark == "END":
            if depth:
                depth -= 1
                continue
            yield first, entry
            first = 0
        elif first and not depth and (found := _PROPERTY.fullmatch(line)):
            entry.append(Property(found[1].upper(), found[2], _plain(found[2], found[3])))
    if first:
        yield first, entry


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; one that begins with a blank continues the one before."""
    number, parts = 1, [""]
    for here, line in enumerate(re.split(r"\r\n?|\n", text), 1):
        if line[:1] in (" ", "\t"):
            parts.append(line[1:])
        elif parts[-1].endswith("=") and _QUOTED.search(parts[0]):
            parts.append(f"\n{line}")
        else:
            yield number, "".join(parts)
            number, parts = here, [line]
    yield number, "".join(parts)


def _plain(parameters: str, value: str) -> str:
    if _QUOTED.search(parameters):
        value = quopri.decodestring(value.encode("utf-8", "replace")).decode("utf-8", "replace")
    return _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value).strip()


def _event(name: str, entry: list[Property]) -> Document:
    values = {one.name: one.value for one in reversed(entry)}
    shown = (one for one in entry if one.name in _EVENT and one.value)
    lines = [f"{_EVENT[one.name]}: {_event_value(one)[:_LONGEST]}" for one in shown]
    notes = [one.value for one in entry if one.name in ("DESCRIPTION", "COMMENT")]
    text = "\n\n".join(filter(None, ["\n".join(lines), *notes])).strip()
    return Document(name, text, values.get("SUMMARY", ""), _date(values.get("DTSTART", "")))


def _event_value(one: Property) -> str:
    if one.name in ("ORGANIZER", "ATTENDEE"):
        address = one.value.removeprefix("mailto:").removeprefix("MAILTO:")
        person = _PERSON.search(one.parameters)
        name = (person[1] or person[2] or "").strip() if person else ""
        return address if not name or name == address else f"{name} <{address}>"
    if one.name == "DURATION":
        return _duration(one.value)
    time = _TIME.fullmatch(one.value)
    if time is None:
        return one.value
    day = f"{time[1]}-{time[2]}-{time[3]}"
    zone = re.search(r";TZID=([^;:]+)", one.parameters, re.I)
    label = " UTC" if time[7] else f" ({zone[1].strip(chr(34))})" if zone else ""
    seconds = f":{time[6]}" if time[6] not in (None, "00") else ""
    return day if time[4] is None else f"{day} {time[4]}:{time[5]}{seconds}{label}"


def _duration(value: str) -> str:
    """Return a duration such as `P1DT2H30M` as `1 d 2 h 30 min`."""
    found = _DURATION.fullmatch(value)
    units = ("weeks", "d", "h", "min", "s")
    parts = zip(found.groups(), units, strict=True) if found is not None else ()
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or value


def _date(start: str) -> Mapping[str, Any]:
    time = _TIME.fullmatch(start)
    return {"date": f"{time[1]}-{time[2]}-{time[3]}"} if time is not None else {}


def _contact(name: str, entry: list[Property]) -> Document:
    values = {one.name: one.value for one in reversed(entry)}
    parts = [part.strip() for part in values.get("N", "").split(";")]
    family, given, *others = [*parts, "", ""]
    title = values.get("FN") or " ".join(filter(None, [*others[1:2], given, others[0], family]))
    lines = [
        f"{_CARD[one.name]}: {', '.join(filter(None, map(str.strip, one.value.split(';'))))[:_LONGEST]}"
        for one in entry
        if one.name in _CARD and one.value.strip("; ")
    ]
    notes = [one.value for one in entry if one.name == "NOTE"]
    text = "\n\n".join(filter(None, ["\n".join(lines), *notes]))
    return Document(name, text, " ".join(title.split()) or values.get("ORG", "").replace(";", ", "), {})
