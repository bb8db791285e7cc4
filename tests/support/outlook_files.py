"""Messages of Outlook, made by code: compound files (`.msg`) and envelopes (`winmail.dat`)."""

from __future__ import annotations

import datetime as dt
import struct

SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def compound(streams: dict[str, bytes]) -> bytes:
    """Return a compound file (MS-CFB, version 3) with streams of one folder, each in whole sectors."""
    sector, end, free = 512, 0xFFFFFFFE, 0xFFFFFFFF
    body, table, entries = b"", [], []
    names = sorted(streams, key=lambda name: (len(name), name.upper()))
    for name in names:
        data = streams[name].ljust(4096, b"\0")  # shorter streams would be in the short sectors
        data += bytes(-len(data) % sector)
        first, count = len(table), len(data) // sector
        table += [*range(first + 1, first + count), end]
        entries.append((name, 2, first, max(len(streams[name]), 4096)))
        body += data
    folder, rows = len(table), b""
    for number, (name, kind, first, size) in enumerate([("Root Entry", 5, end, 0), *entries]):
        text = name.encode("utf-16-le")
        right = number + 1 if 0 < number < len(entries) else free  # a chain instead of a tree
        child = 1 if not number and entries else free
        rows += struct.pack(
            "<64sHBBIII16sIQQIQ", text, len(text) + 2, kind, 1, free, right, child, b"", 0, 0, 0, first, size
        )
    rows += bytes(-len(rows) % sector)
    table += [*range(folder + 1, folder + len(rows) // sector), end]
    place = len(table)
    table.append(0xFFFFFFFD)
    assert len(table) <= sector // 4
    table += [free] * (sector // 4 - len(table))
    head = SIGNATURE + struct.pack(
        "<16sHHHHH6sIIIIIIIII", b"", 62, 3, 0xFFFE, 9, 6, b"", 0, 1, folder, 0, 4096, end, 0, end, 0
    )
    head += struct.pack("<109I", place, *[free] * 108)
    return head + body + rows + struct.pack(f"<{sector // 4}I", *table)


def text_of(number: int, text: str) -> tuple[str, bytes]:
    return f"__substg1.0_{number:04X}001F", text.encode("utf-16-le")


def message(**more: bytes) -> bytes:
    sent = int((dt.datetime(2024, 3, 5, 9, 30) - dt.datetime(1601, 1, 1)).total_seconds()) * 10**7
    properties = bytes(32) + struct.pack("<IIQ", 0x00390040, 6, sent)
    streams = dict(
        [
            text_of(0x0037, "Harbour fees"),
            text_of(0x0C1A, "Ida Berg"),
            text_of(0x5D01, "ida@example.org"),
            text_of(0x0E04, "Jonas"),
            text_of(0x1000, "The fee is 40 crowns.\r\n\r\nIda".ljust(2100)),
        ]
    )
    return compound({**streams, "__properties_version1.0": properties, **more})


def winmail() -> bytes:
    """An envelope with a text and a file `note.txt`."""

    def attribute(level: int, name: int, value: bytes) -> bytes:
        return struct.pack("<BII", level, name, len(value)) + value + struct.pack("<H", sum(value) % 65_536)

    data = b"\x78\x9f\x3e\x22\x01\x00" + attribute(1, 0x0002800C, b"The fee is 40 crowns.\0")
    data += attribute(2, 0x00069002, bytes(14)) + attribute(2, 0x00018010, b"note.txt\0")
    return data + attribute(2, 0x0006800F, b"The harbour is closed.")
