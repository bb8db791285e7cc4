"""Bundles that nobody should write: a good one, changed by code in more than a hundred ways.

`hostile(good)` gives each a name that says what is wrong with it. None of them may become an index.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, Final

Members = list[tuple[str, bytes]]
LIST: Final = "bundle.json"
DEEP: Final = 200_000
WRONG: Final[dict[str, Any]] = {
    "null": None,
    "true": True,
    "-1": -1,
    "a float": 1.5,
    "a float that is whole": 7.0,
    "a huge number": 10**30,
    "a number beyond 63 bits": 1 << 63,
    "infinity": float("inf"),
    "NaN": float("nan"),
    "an empty text": "",
    "a number as a text": "7",
    "NUL": "\x00",
    "a lone surrogate": "\ud800",
    "an escape": "\x1b[2J",
    "a long text": "x" * 5000,
    "an empty list": [],
    "an empty object": {},
    "a list of lists": [[[]]],
    "an object with no name": {"": None},
}
NAMES: Final = (
    "../evil",
    "/etc/evil",
    "gen-000001/../../evil",
    "gen-000001/./manifest.json",
    "gen-000001//manifest.json",
    "gen-000001/manifest.json/",
    "gen-000001/",
    "gen-000001",
    "./index.sqlite",
    "INDEX.SQLITE/x",
    "gen-000001\\..\\x",
    "gen-000001/a\x00b",
    "gen-000001/\ud800",
    "gen-000001/" + "x" * 300,
    "gen-000001/" + "x/" * 3000 + "y",
    "CURRENT",
    "index.lock",
    "model/config.json",
    "gen-000002/manifest.json",
    "",
    ".",
    "..",
)


def members_of(bundle: bytes) -> tuple[dict[str, Any], Members]:
    """The list of a good bundle, and its other members in their order."""
    with tarfile.open(fileobj=io.BytesIO(bundle)) as tar:
        found = [(entry.name, tar.extractfile(entry).read()) for entry in tar]  # type: ignore[union-attr]
    return json.loads(found[0][1]), found[1:]


def packed(about: Any, members: Members, change: Callable[[tarfile.TarInfo], None] | None = None) -> bytes:
    """An archive as `bundle` writes it; `change` is applied to the header of each member but the list."""
    data = about if isinstance(about, bytes) else json.dumps(about).encode("utf-8", "surrogatepass")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for number, (name, content) in enumerate([(LIST, data), *members]):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if change is not None and number:
                change(info)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def hostile(good: bytes) -> dict[str, bytes]:
    """The bundles by what is wrong with each."""
    about, members = members_of(good)
    found = dict(_lists(about, members))
    found.update(_names(about, members))
    found.update(_members(about, members))
    found.update(_headers(about, members))
    found.update(_archives(good))
    return found


def _spots(about: dict[str, Any]) -> Iterator[tuple[str, Callable[[Any], Any], Any]]:
    """The entries of the list: a name, how to reach what holds the entry, and its key."""
    for key in about:
        yield key, lambda data: data, key
    for key in about["files"][0]:
        yield f"files[0].{key}", lambda data: data["files"][0], key
    yield "files[1]", lambda data: data["files"], 1


def _lists(about: dict[str, Any], members: Members) -> Iterator[tuple[str, bytes]]:
    for spot, holder, key in _spots(about):
        gone = copy.deepcopy(about)
        del holder(gone)[key]
        yield f"{spot} is missing", packed(gone, members)
        for what, value in WRONG.items():
            changed = copy.deepcopy(about)
            holder(changed)[key] = value
            yield f"{spot} is {what}", packed(changed, members)
    for what, value in WRONG.items():
        yield f"the list is {what}", packed(value, members)
        yield f"the model is {what}", packed({**about, "model": value}, members)
        yield (
            f"the model's spec is {what}",
            packed({**about, "model": {"spec": value, "fingerprint": "a"}}, members),
        )
    texts = {
        "nested objects": b'{"a":' * DEEP,
        "nested lists": b"[" * DEEP,
        "no JSON": b"\x00\x01",
        "no UTF-8": json.dumps(about).encode().replace(b"ketrag", b"\xff\xfe"),
        "half of it": json.dumps(about).encode()[: len(json.dumps(about)) // 2],
        "nothing": b"",
        "a number of many digits": b"9" * 10_000,
        "a size of many digits": json.dumps(about).replace('"size": ', '"size": ' + "9" * 9000, 1).encode(),
        "UTF-16": json.dumps({**about, "format": 999}).encode("utf-16"),
    }
    for what, text in texts.items():
        yield f"the list holds {what}", packed(text, members)
    for current in ("gen-000000001", "gen-1", "gen-000002", "gen-٠٠٠٠٠١", "..", "gen-" + "9" * 5000):
        yield f"current is {current[:20]}", packed({**about, "current": current}, members)
    half = copy.deepcopy(about)
    half["files"] = half["files"][: len(members) // 2]
    yield "half of the files are listed", packed(half, members)
    yield "half of the files, listed and there", packed(half, members[: len(members) // 2])
    huge = copy.deepcopy(about)
    for entry in huge["files"]:
        entry["size"] += 1 << 50
    yield "sizes of petabytes", packed(huge, members)


def _names(about: dict[str, Any], members: Members) -> Iterator[tuple[str, bytes]]:
    """Names in the list and in the headers alike, as far as a header takes them."""
    for name in NAMES:
        changed = copy.deepcopy(about)
        changed["files"].append({**changed["files"][-1], "name": name})
        try:
            data = packed(changed, [*members, (name, members[-1][1])])
        except (UnicodeEncodeError, ValueError):
            data = packed(changed, [*members, ("gen-000001/x", members[-1][1])])
        yield f"a file {name[:40]!r}", data
    first = about["files"][1]
    for what, name in {
        "twice": first["name"],
        "in other case": first["name"].upper().replace("GEN-", "gen-"),
        "as a folder": f"{first['name']}/inside",
        "as the folder of the list": "index.sqlite/inside",
        "through two slashes": first["name"].replace("/", "//", 1),
    }.items():
        changed = copy.deepcopy(about)
        changed["files"].append({**first, "name": name})
        yield f"one name {what}", packed(changed, [*members, (name, members[1][1])])


def _members(about: dict[str, Any], members: Members) -> Iterator[tuple[str, bytes]]:
    yield "members in another order", packed(about, [members[1], members[0], *members[2:]])
    yield "a member is missing", packed(about, members[:-1])
    yield "a member too many", packed(about, [*members, ("gen-000001/more", b"x")])
    yield "a member twice", packed(about, [*members, members[-1]])
    yield "the list twice", packed(about, [(LIST, json.dumps(about).encode()), *members])
    yield "the list at the end", packed(members[0][1], [*members, (LIST, json.dumps(about).encode())])
    for number in (0, 1, len(members) - 1):
        name, data = members[number]
        for what, other in {
            "a changed byte": bytes([data[0] ^ 1]) + data[1:],
            "a byte less": data[:-1],
            "a byte more": data + b"x",
            "no byte": b"",
        }.items():
            changed = [*members]
            changed[number] = (name, other)
            yield f"{name} has {what}", packed(about, changed)
            if what != "a byte more":
                agreed = copy.deepcopy(about)
                agreed["files"][number]["size"] = len(other)
                yield f"{name} has {what}, and the list agrees on the size", packed(agreed, changed)


def _headers(about: dict[str, Any], members: Members) -> Iterator[tuple[str, bytes]]:
    kinds = {
        "hard links": tarfile.LNKTYPE,
        "symbolic links": tarfile.SYMTYPE,
        "character devices": tarfile.CHRTYPE,
        "block devices": tarfile.BLKTYPE,
        "folders": tarfile.DIRTYPE,
        "pipes": tarfile.FIFOTYPE,
        "contiguous files": tarfile.CONTTYPE,
        "GNU sparse files": tarfile.GNUTYPE_SPARSE,
        "members of a kind that nobody knows": b"Z",
    }

    def of_kind(kind: bytes) -> Callable[[tarfile.TarInfo], None]:
        def change(info: tarfile.TarInfo) -> None:
            info.type, info.linkname = kind, "index.sqlite"

        return change

    for what, kind in kinds.items():
        yield what, packed(about, members, of_kind(kind))
    pax = {
        "pax sparse 0.1": {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1099511627776"},
        "pax sparse 1.0": {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.realsize": "1099511627776",
        },
        "a pax size": {"size": "1099511627776"},
        "a pax size that is none": {"size": "-5"},
        "a pax name": {"path": "../evil"},
        "a pax time that is none": {"mtime": "nan"},
        "an unknown pax entry": {"KETRAG.x": "1"},
        "a pax entry of megabytes": {"comment": "x" * 3_000_000},
    }
    for what, entries in pax.items():
        yield what, packed(about, members, lambda info, e=entries: info.pax_headers.update(e))  # type: ignore[misc]
    yield "a sparse terabyte", sparse_terabyte(about, members)


def sparse_terabyte(about: dict[str, Any], members: Members, size: int = 1 << 40) -> bytes:
    """A bundle of some kilobytes whose second file is a GNU sparse one of `size` bytes."""
    listed = copy.deepcopy(about)
    listed["files"][0]["size"] = size
    name = members[0][0]
    info = tarfile.TarInfo(name)
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 512)  # one piece of 512 bytes at the start
    header[483:495] = size.to_bytes(12, "big")
    header[483] |= 0x80
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    start = packed(listed, [])
    start = start[: 512 + -(-len(json.dumps(listed)) // 512) * 512]
    return start + bytes(header) + bytes(512) + bytes(1024)


def _archives(good: bytes) -> Iterator[tuple[str, bytes]]:
    yield "nothing at all", b""
    yield "zeros", bytes(100_000)
    yield "one byte", b"x"
    yield "gzip", gzip.compress(good)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(LIST, "{}")
    yield "zip", out.getvalue()
    yield "text", b"This is not an archive.\n" * 1000
    for part in range(1, 12):
        yield f"cut after {part}/12", good[: len(good) * part // 12]
    yield "without its end", good[: len(good.rstrip(b"\0")) // 512 * 512]
    yield "a byte before it", b"x" + good
    yield "a block before it", bytes(512) + good
    many = tarfile.TarInfo("x")
    many.type = tarfile.XHDTYPE
    yield "headers that follow each other", many.tobuf(tarfile.USTAR_FORMAT) * 9_000 + good
    header = bytearray(good[:512])
    header[124:136] = b"\x80" + b"\xff" * 11
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    yield "a list of endless size", bytes(header) + good[512:]
    header[124:136] = b"-0000000001\0"
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    yield "a list of negative size", bytes(header) + good[512:]
