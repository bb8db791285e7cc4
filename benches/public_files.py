"""Read public files of many formats, and compare their words with those that other converters find.

    python benches/public_files.py FOLDER [--peers markitdown=PYTHON docling=PYTHON]

The files are samples and tests of parsers (source distributions of PyPI and crates.io) and documents of Debian packages,
about 300 of 30 formats; they are downloaded once into FOLDER and checked by SHA-256. A peer is named with an interpreter
that has it installed; docling reads its PDFs and pictures with models from a hub, so it gets only the other formats.

Columns: files read whole; read with a report that a part is missing; refused with a reason; read without text and
without a report (a fault). "Words of X" is the share of X's words found in our text, "ours in X" the reverse,
over the files that both read. Seconds are of the processor. Needs network access, `apt-get` and `dpkg-deb`.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import unicodedata
import urllib.parse
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ketrag_fast.readers import SourceFile, items_of, known_kind
from ketrag_fast.types import Document
from page import table_lines

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
CRATES = "https://static.crates.io/crates"
LARGEST = 1_000_000
"""Maximum size of a file in bytes: larger samples are mostly pictures."""


class Package(NamedTuple):
    """A package, and how many files of which names are taken from it, evenly spaced over their sorted paths."""

    source: str
    name: str
    version: str
    digest: str
    files: tuple[tuple[str, int], ...]


PACKAGES = Path(__file__).with_suffix(".jsonl")


def packages() -> list[Package]:
    """Return the packages, with versions and digests that were measured."""
    rows = map(json.loads, PACKAGES.read_text("utf-8").splitlines())
    return [Package(**{**row, "files": tuple(map(tuple, row["files"]))}) for row in rows]


def download(package: Package, folder: Path) -> Path:
    """Return the package's archive, which is downloaded once. Raises ValueError for another content."""
    name = f"{package.name}-{package.version}"
    if package.source == "debian":
        return download_debian(package, folder)
    path = folder / f"{name}.{'crate' if package.source == 'crates' else 'sdist'}"
    if not path.exists():
        url = f"{CRATES}/{package.name}/{name}.crate" if package.source == "crates" else sdist_url(package)
        with urllib.request.urlopen(url, timeout=120) as reply:
            path.write_bytes(reply.read())
    if hashlib.sha256(path.read_bytes()).hexdigest() != package.digest:
        raise ValueError(f"{path} is not the file that was measured: remove it, or correct its digest")
    return path


def sdist_url(package: Package) -> str:
    """Return the address of a source distribution, from the page of the package index."""
    base = f"{INDEX.rstrip('/')}/{package.name.lower().replace('_', '-')}/"
    with urllib.request.urlopen(base, timeout=60) as reply:
        page = reply.read().decode()
    links = (urllib.parse.urljoin(base, html.unescape(link)) for link in re.findall(r'href="([^"]+)"', page))
    ending = re.compile(rf"[-_]{re.escape(package.version)}\.(?:tar\.gz|zip)(?:#|$)")
    return next(link for link in links if ending.search(link)).partition("#")[0]


def download_debian(package: Package, folder: Path) -> Path:
    """Return a package of Debian, whose version may get security updates, so that it has no digest."""
    found = sorted(folder.glob(f"{package.name}_*.deb"))
    if not found:
        subprocess.run(["apt-get", "download", "-q", package.name], cwd=folder, check=True, stdout=sys.stderr)
        found = sorted(folder.glob(f"{package.name}_*.deb"))
    return found[-1]


def unpack(package: Package, archive: Path, folder: Path) -> Path:
    """Unpack an archive once; return its folder."""
    target = folder / f"{package.name}-{package.version}"
    if target.exists():
        return target
    target.mkdir()
    if archive.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", archive, target], check=True)
    elif zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as members:
            members.extractall(target)
    else:
        with tarfile.open(archive) as members:
            members.extractall(target, filter="data")
    return target


def files_of(packages: Sequence[Package], folder: Path) -> list[tuple[str, Path]]:
    """Return the format and path of each file."""
    folder.mkdir(parents=True, exist_ok=True)
    found: list[tuple[str, Path]] = []
    for package in packages:
        root = unpack(package, download(package, folder), folder)
        for pattern, most in package.files:
            paths = sorted(
                path
                for path in root.rglob(pattern)
                if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= LARGEST
            )
            chosen = (
                [paths[number * len(paths) // most] for number in range(most)] if len(paths) > most else paths
            )
            found += [(format_of(package, path), path) for path in chosen]
    return found


def format_of(package: Package, path: Path) -> str:
    """Return the name of a format for the table."""
    if package.name == "libpython3.11-testsuite":
        return "eml"
    if path.suffix == ".xml":
        return "rss, atom" if package.name in ("feed-rs", "rss") else "xml"
    return path.suffix.lower().lstrip(".")


WORD = re.compile(r"[^\W_]+")


def words(text: str) -> Counter[str]:
    """Return the words of a text in lower case, with their numbers. Marks of Markdown are no words."""
    plain = re.sub(r"\]\([^)\s]*\)|<[^>\n]{1,200}>|data:[\w/;+,=.-]+", " ", html.unescape(text))
    return Counter(WORD.findall(unicodedata.normalize("NFKC", plain).lower()))


def read(path: Path) -> dict[str, Any]:
    """Return our text of a file, the reports, and the seconds."""
    started = time.process_time()
    file = SourceFile(path, path.name, alone=True)
    try:
        kind = known_kind(file)
        items = [] if kind is None else list(items_of(file, kind))
    except Exception as error:  # noqa: BLE001 - a crash is a row of the table
        return {"text": "", "reports": 0, "crash": repr(error), "seconds": time.process_time() - started}
    documents = [item for item in items if isinstance(item, Document)]
    titles = (
        f"{one.title or ''}\n{' '.join(str(value) for value in one.metadata.values())}" for one in documents
    )
    return {
        "text": "\n".join([*(one.text for one in documents), *titles]),
        "documents": len(documents),
        "reports": len(items) - len(documents) + (kind is None),
        "why": "no reader"
        if kind is None
        else "; ".join(str(one) for one in items if not isinstance(one, Document)),
        "seconds": time.process_time() - started,
    }


PEER = """
import json, sys, time
name, paths = sys.argv[1], json.load(sys.stdin)
if name == "markitdown":
    from markitdown import MarkItDown
    tool = MarkItDown(enable_plugins=False)
    convert = lambda path: tool.convert(path).text_content
else:
    from docling.document_converter import DocumentConverter
    tool = DocumentConverter()
    convert = lambda path: tool.convert(path).document.export_to_markdown()
for path in paths:
    begin = time.process_time()
    try:
        text = convert(path)
    except BaseException as error:
        text = None
    print(json.dumps({"path": path, "text": text, "seconds": time.process_time() - begin}), flush=True)
"""
MODELS = {"docling": frozenset({"pdf"})}
"""Formats for which a peer needs models from a hub."""


def peer(name: str, interpreter: str, files: Sequence[tuple[str, Path]]) -> dict[str, dict[str, Any]]:
    """Return what another converter reads, by path."""
    paths = [str(path) for form, path in files if form not in MODELS.get(name, ())]
    done = subprocess.run(
        [interpreter, "-W", "ignore", "-c", PEER, name],
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"path"'))
    return {row["path"]: row for row in rows}


def share(part: Counter[str], whole: Counter[str]) -> tuple[int, int]:
    """Return how many words of `whole` are in `part`, and how many there are."""
    return (part & whole).total(), whole.total()


def main() -> None:
    """Print the table, and the files that a reader should look at."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", nargs="*", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--verbose", action="store_true", help="also print a line for each file")
    given = parser.parse_args()
    files = files_of(packages(), given.folder)
    own = {str(path): read(path) for _, path in files}
    others = {
        name: peer(name, python, files) for name, _, python in (one.partition("=") for one in given.peers)
    }
    heads = ["format", "files", "whole", "in part", "refused", "empty, no report", "s"]
    for name in others:
        heads += [f"read by {name}", f"words of {name}", f"ours in {name}", f"s of {name}"]
    rows = []
    for form in [*sorted({form for form, _ in files}), "all"]:
        paths = [str(path) for kind, path in files if form in (kind, "all")]
        rows.append(
            row_of(
                form,
                [own[path] for path in paths],
                [[known.get(path) for path in paths] for known in others.values()],
            )
        )
    print("\n".join(table_lines({"title": "", "columns": heads, "rows": rows})))
    if given.verbose:
        for form, path in files:
            one = own[str(path)]
            counts = [len(one["text"]), one["reports"], one.get("why", "")[:100], one.get("crash", "")]
            for name, known in others.items():
                row = known.get(str(path))
                if row is not None and row["text"]:
                    found, count = share(words(one["text"]), words(row["text"]))
                    counts.append(f"{name} {found}/{count}")
            print(form, path.relative_to(given.folder), *counts, sep="\t")


def row_of(
    form: str, own: Sequence[dict[str, Any]], peers: Sequence[Sequence[dict[str, Any] | None]]
) -> list[str]:
    """Return a row of the table."""
    states = Counter(
        ("in part" if one["reports"] else "whole")
        if one["text"].strip()
        else ("refused" if one["reports"] else "empty")
        for one in own
    )
    row = [form, str(len(own)), *(str(states[name]) for name in ("whole", "in part", "refused", "empty"))]
    row.append(f"{sum(one['seconds'] for one in own):.1f}")
    for known in peers:
        both = [
            (words(one["text"]), words(row["text"]))
            for one, row in zip(own, known, strict=True)
            if row is not None and row["text"] and one["text"].strip()
        ]
        theirs = [share(mine, other) for mine, other in both]
        ours = [share(other, mine) for mine, other in both]
        row.append(str(sum(1 for one in known if one is not None and (one["text"] or "").strip())))
        for counts in (theirs, ours):
            total = sum(count for _, count in counts)
            row.append(f"{sum(found for found, _ in counts) / total:.1%}" if total else "-")
        row.append(f"{sum(one['seconds'] for one in known if one is not None):.1f}")
    return row


if __name__ == "__main__":
    main()
