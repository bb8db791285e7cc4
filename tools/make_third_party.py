"""Writes THIRD-PARTY.md: what the package contains of others, and under which licences.

    python tools/make_third_party.py            # writes it
    python tools/make_third_party.py --check    # exits with 1 if it is stale

Reads `cargo metadata` and the licence files in the sources of the crates, so it needs cargo, which
fetches the crates of other platforms too. A crate that offers Apache-2.0 is taken under it, because the
package itself is: its text is in LICENSE. The texts of all other licences are printed in full, with their
copyright lines.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = ROOT / "THIRD-PARTY.md"
ROOT_CRATE: Final = "ketrag-py"
# Which licence is chosen of those that a crate offers: the first of these.
PREFERRED: Final = ("Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "Unicode-3.0")
# The file that holds a licence's text, by the names that crates give it.
TEXTS: Final = {
    "MIT": r"licen[cs]e([-_.]mit)?(\.md|\.txt)?",
    "BSD-2-Clause": r"licen[cs]e([-_.]bsd)?(\.md|\.txt)?",
    "BSD-3-Clause": r"licen[cs]e([-_.](bsd|whatwg))?(\.md|\.txt)?",
    "Zlib": r"licen[cs]e([-_.]zlib)?(\.md|\.txt)?",
    "Unicode-3.0": r"licen[cs]e[-_.]unicode(\.md|\.txt)?",
}
# Crates under MIT whose packages have no file of the licence, with the author that their Cargo.toml names.
WITHOUT_TEXT: Final = {"blake2b_simd": "Jack O'Connor"}
TIKTOKEN: Final = """\
MIT License

Copyright (c) 2022 OpenAI, Shantanu Jain
"""
HEAD: Final = """\
# Third-party software and data

Written by `python tools/make_third_party.py`; do not edit. The package itself is under Apache-2.0 (LICENSE).

## Data compiled into the core

| data | source | licence |
|---|---|---|
| `cl100k_base`, `o200k_base` (rust/text/src/data) | the vocabularies of tiktoken, made by OpenAI | MIT |
| `function_words.txt` (rust/text/src/data) | NLTK, as in the crate stop-words 0.10.1 | MIT OR Apache-2.0 |

## Code that was rewritten from others' code

| part | source | licence |
|---|---|---|
| rust/text/src: published.rs, punkt.rs | NLTK 3.10, Copyright (C) 2001-2025 NLTK Project | Apache-2.0 |

## Rust crates compiled into the core

The Rust standard library (MIT OR Apache-2.0, Copyright (c) The Rust Project Contributors), and these, some of
them on some platforms only:

"""
TESTS: Final = """\

## Data in the repository that is not part of the package

| data | source | licence |
|---|---|---|
| tests/golden/nltk.json: 158 entries of the English Punkt model | punkt_tab of nltk_data (Jan Strunk) | MIT |
| tests/data/musique-train100 | MuSiQue (Trivedi et al. 2022), HippoRAG, KET-RAG, graphrag | CC BY 4.0, MIT |
| tests/data/copies, tests/data/inputs | small texts and subtitles of this project | Apache-2.0 |
| tests/data/answers | this project, MuSiQue, US Constitution | Apache-2.0, CC BY 4.0, public domain |
| tests/data/passages, tests/data/sentences | small texts and tables of this project | Apache-2.0 |
| tests/data/questions | questions | Apache-2.0 |
| tests/data/desk, tests/data/desk-questions.jsonl | notes and mail of an invented person | Apache-2.0 |
| tests/data/lightrag | files that LightRAG 1.5.7 wrote for two texts of this project | MIT |
| tests/data/walk | MuSiQue (Trivedi et al. 2022), HotpotQA (Yang et al. 2018) | CC BY 4.0, CC BY-SA 4.0 |
| benches/data/musique | MuSiQue | CC BY 4.0 |
| benches/data/2wiki | 2WikiMultihopQA (Ho et al. 2020) | Apache-2.0 |
| benches/data/hotpotqa, benches/data/xquad-en | HotpotQA, XQuAD (Artetxe et al. 2020) | CC BY-SA 4.0 |
| benches/data/lihua-world | LiHua-World, published with MiniRAG (Fan et al. 2025) | MIT |
| tests/data/words | messages of Django 5.2 (Django Software Foundation) | BSD-3-Clause |
| benches/data/cosqa | CoSQA (Huang et al. 2021) | MIT |

## Licence texts

Apache-2.0: see LICENSE.
"""


@dataclass(frozen=True)
class Crate:
    """One crate; `taken` are the licences under which it is used."""

    name: str
    version: str
    offered: str
    taken: tuple[str, ...]
    folder: Path


def metadata() -> dict[str, Any]:
    """What cargo knows of the locked crates, for all platforms."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def taken(offered: str) -> tuple[str, ...]:
    """The licences chosen from an SPDX expression of OR inside AND."""
    chosen = []
    for choice in re.split(r"\s+AND\s+(?![^(]*\))", offered.replace("/", " OR ")):
        options = [option.strip() for option in choice.strip("() ").split(" OR ")]
        fits = [licence for licence in PREFERRED if licence in options]
        if not fits:
            raise SystemExit(f"no licence of {offered!r} is known here: add it to PREFERRED")
        chosen.append(fits[0])
    return tuple(chosen)


def shipped(facts: dict[str, Any]) -> list[Crate]:
    """The crates whose code is in the core: those reached without tests, build scripts and macros."""
    packages = {package["id"]: package for package in facts["packages"]}
    nodes = {node["id"]: node for node in facts["resolve"]["nodes"]}

    def is_macro(number: str) -> bool:
        return any("proc-macro" in target["kind"] for target in packages[number]["targets"])

    own = set(facts["workspace_members"])
    reached, left = set(), [number for number in own if packages[number]["name"] == ROOT_CRATE]
    while left:
        number = left.pop()
        if number in reached or is_macro(number):
            continue
        reached.add(number)
        for dependency in nodes[number]["deps"]:
            left += [dependency["pkg"]] * any(kind["kind"] is None for kind in dependency["dep_kinds"])
    crates = [packages[number] for number in reached - own]
    return sorted(
        (
            Crate(c["name"], c["version"], c["license"], taken(c["license"]), Path(c["manifest_path"]).parent)
            for c in crates
        ),
        key=lambda crate: (crate.name, crate.version),
    )


def text_of(crate: Crate, licence: str) -> str:
    """The licence's text from the crate's sources, lines trimmed."""
    for path in sorted(crate.folder.iterdir()):
        if re.fullmatch(TEXTS[licence], path.name.lower()):
            lines = [line.rstrip() for line in path.read_text("utf-8").strip().splitlines()]
            return "\n".join(lines)
    raise SystemExit(f"{crate.name} {crate.version} has no text of {licence} in {crate.folder}")


def notices(crates: list[Crate]) -> Iterator[str]:
    """The NOTICE files of crates under Apache-2.0, which asks for them."""
    for crate in crates:
        for path in sorted(crate.folder.glob("NOTICE*")):
            yield f"\n### NOTICE of {crate.name}\n\n{_quoted(path.read_text('utf-8').strip())}"


def page(facts: dict[str, Any]) -> str:
    """THIRD-PARTY.md."""
    crates = shipped(facts)
    out = [HEAD, "| crate | version | offered under | used under |\n|---|---|---|---|\n"]
    out += [f"| {c.name} | {c.version} | {c.offered} | {' AND '.join(c.taken)} |\n" for c in crates]
    inside = {(crate.name, crate.version) for crate in crates}
    tools = sorted({(p["name"], p["version"]) for p in facts["packages"]} - inside - _own(facts))
    out.append("\n## Crates that only build or test the core\n\n")
    out.append(", ".join(f"{name} {version}" for name, version in tools) + ".\n")
    out.append(TESTS)
    texts: dict[tuple[str, str], list[str]] = {}
    for crate in crates:
        for licence in crate.taken:
            if licence != "Apache-2.0" and crate.name not in WITHOUT_TEXT:
                texts.setdefault((licence, text_of(crate, licence)), []).append(crate.name)
    mit = next(text for licence, text in texts if licence == "MIT")
    terms = mit[mit.index("Permission is hereby granted") :]
    texts["MIT", f"{TIKTOKEN}\n{terms}"] = ["the vocabularies of tiktoken"]
    for name, author in WITHOUT_TEXT.items():
        texts["MIT", f"MIT License\n\nCopyright (c) {author}\n\n{terms}"] = [name]
    for (licence, text), names in sorted(texts.items(), key=lambda entry: (entry[0][0], entry[1])):
        out.append(f"\n### {licence}: {', '.join(names)}\n\n{_quoted(text)}")
    return "".join([*out, *notices(crates)])


def _own(facts: dict[str, Any]) -> set[tuple[str, str]]:
    members = set(facts["workspace_members"])
    return {(p["name"], p["version"]) for p in facts["packages"] if p["id"] in members}


def _quoted(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def main() -> int:
    """Writes the file, or checks it."""
    wanted = page(metadata())
    if "--check" not in sys.argv[1:]:
        FILE.write_text(wanted, "utf-8")
        return 0
    if FILE.is_file() and FILE.read_text("utf-8") == wanted:
        return 0
    sys.stderr.write("THIRD-PARTY.md is stale: run python tools/make_third_party.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
