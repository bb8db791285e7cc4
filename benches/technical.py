"""Questions on technical documentation of Debian packages, without a model: the right passage, and distinct sections.

    python benches/technical.py --fetch         # first download and unpack the packages with apt-get and dpkg
    python benches/technical.py                 # both sets of questions

`truth/technical.json` has the questions; of each passage that answers it has the file, the heading and a few words that
only this passage of the file contains; and the packages with their versions. It has no documents: `--fetch` unpacks them
into `target/benches/technical`. A passage is right if it is from the file and contains the words. Questions are asked
`plain`, in other words than the text, by somebody who does not know its terms, or by an `expert`, who does. The set
`aside` was written together with the set `development`, and nothing was chosen by it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from common import ROOT, WORK, arguments, publish
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.lab.eval.metrics import bootstrap_interval
from ketrag_fast.types.contexts import Passage

TRUTH = Path(__file__).with_name("truth") / "technical.json"
MODES = ("bm25", "fused", "walk")
DEPTH, BUDGET = 24_000, 3_000
"""Tokens of the context in which ranks are counted, and of the context that is to hold the answer."""
DOCS = ROOT / "target" / "benches" / "technical"
GROUPS = tuple((half, wording) for half in ("development", "aside") for wording in ("plain", "expert", "all"))
MEASURES = ("MRR", "recall@5", f"answer at {BUDGET:,}")


def fetch(packages: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Download the packages and copy the files that are indexed; another version is used if Debian has no other."""
    for package in packages:
        name, version = package["name"], package["version"]
        with tempfile.TemporaryDirectory() as place:
            for wanted in (f"{name}={version}", name):
                done = subprocess.run(
                    ["apt-get", "download", wanted], cwd=place, capture_output=True, text=True
                )
                if done.returncode == 0:
                    break
            else:
                sys.exit(f"apt-get download {name} failed: {done.stderr.strip()}")
            archive = next(Path(place).glob("*.deb"))
            subprocess.run(["dpkg", "-x", archive, Path(place) / "files"], check=True)
            copy(Path(place) / "files" / package["folder"], folder / name, package)


def copy(source: Path, target: Path, package: Mapping[str, Any]) -> None:
    """Copy the files of a package that are indexed."""
    shutil.rmtree(target, ignore_errors=True)
    for pattern in package["files"]:
        for path in sorted(source.glob(pattern)):
            name = path.relative_to(source).as_posix()
            left_out = any(fnmatch(name, one) or fnmatch(path.name, one) for one in package["leave_out"])
            if path.is_file() and not path.is_symlink() and not left_out:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target / name)


def changed_files(folder: Path, files: Mapping[str, str]) -> set[str]:
    """Return the files that are missing or differ from those for which the questions were written."""

    def differs(path: Path, digest: str) -> bool:
        return not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest

    return {name for name, digest in files.items() if differs(folder / name, digest)}


def answers(passage: Passage, gold: Mapping[str, str]) -> bool:
    """Return whether a passage is one that answers."""
    return passage.document == gold["file"] and gold["words"] in " ".join(passage.text.split())


def section(passage: Passage) -> tuple[str, ...]:
    """Return the section of a passage: the document and the headings above it."""
    return (passage.document, *passage.location.get("heading", ()))


def scores(index: Index, mode: str, question: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Return the reciprocal rank of the first right passage, recall@5, whether all are in a small context, and the
    number of distinct sections of the first five."""
    golds = question["passages"]
    ranked = list(index.retrieve(question["question"], mode=mode, budget=DEPTH).passages)
    first = next((at for at, one in enumerate(ranked, 1) if any(answers(one, g) for g in golds)), 0)
    in_five = sum(any(answers(one, gold) for one in ranked[:5]) for gold in golds) / len(golds)
    small = list(index.retrieve(question["question"], mode=mode, budget=BUDGET).passages)
    all_there = all(any(answers(one, gold) for one in small) for gold in golds)
    return 1 / first if first else 0.0, in_five, float(all_there), float(len({*map(section, ranked[:5])}))


def with_interval(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Return the mean in percent with its 95 % interval; None without values."""
    interval = bootstrap_interval(values)
    if interval is None:
        return None
    low, high = interval
    return round(100 * sum(values) / len(values), 2), round(100 * low, 2), round(100 * high, 2)


def main() -> None:
    """Index the packages without a model and print both tables."""
    parser = arguments(__doc__)
    parser.add_argument("--fetch", action="store_true", help="download the packages first")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the unpacked packages")
    args = parser.parse_args()
    truth = json.loads(TRUTH.read_text("utf-8"))
    if args.fetch:
        fetch(truth["packages"], args.docs)
    if not args.docs.is_dir():
        sys.exit(
            f"{args.docs} does not exist: run `python benches/technical.py --fetch` (downloads with apt-get)"
        )
    changed = changed_files(args.docs, truth["files"])
    questions = [q for q in truth["questions"] if not any(p["file"] in changed for p in q["passages"])]
    left_out = len(truth["questions"]) - len(questions)
    if args.smoke:
        questions = questions[:5]
    ranked_rows, paired_rows = [], []
    place = WORK / "technical-index"
    with Index.build(args.docs, place, settings=Settings(modes=",".join(MODES))) as index:
        counts = index.stats()["counts"]
        found = {mode: {q["id"]: scores(index, mode, q) for q in questions} for mode in MODES}
    for half, wording in GROUPS:
        own = [q["id"] for q in questions if q["set"] == half and wording in (q["wording"], "all")]
        if not own:
            continue
        base = list(zip(*(found["bm25"][name] for name in own), strict=True))
        for mode in MODES:
            columns = list(zip(*(found[mode][name] for name in own), strict=True))
            cells = [with_interval(column) for column in columns[:3]]
            sections = f"{sum(columns[3]) / len(own):.2f}"
            ranked_rows.append([half, wording, len(own), mode, *cells, sections])
            apart = [np.subtract(*both).tolist() for both in zip(columns[:3], base[:3], strict=True)]
            if mode != "bm25":
                paired_rows.append([half, wording, f"{mode} less bm25", *map(with_interval, apart)])
    two = sum(len(question["passages"]) > 1 for question in questions)
    versions = "; ".join(f"{one['name']} {one['version']}" for one in truth["packages"])
    notes = [f"Packages of Debian 12: {versions}."]
    if left_out:
        notes.append(f"{left_out} questions left out: their files changed.")
    head = ["questions", "asked", "number", "mode", *MEASURES, "sections in first five"]
    publish(
        [
            table("The right passage", head, ranked_rows),
            table("Paired difference", ["questions", "asked", "modes", *MEASURES], paired_rows),
        ],
        f"{len(questions)} questions, {two} of them need two sections; {counts['documents']:,} documents,"
        f" {counts['chunks']:,} passages.",
        notes,
    )


if __name__ == "__main__":
    main()
