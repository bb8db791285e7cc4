"""Questions on technical documentation of Debian packages: the right passage, distinct sections, and links as citations.

    python benches/technical.py --fetch         # first download and unpack the packages with apt-get and dpkg
    python benches/technical.py                 # both sets of questions
    python benches/technical.py --links         # what the links between pages add: CG-RAG next to text and fused
    python benches/technical.py --links --model # the same with all-MiniLM-L6-v2

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

from common import MODEL, ROOT, WORK, arguments, publish, require_model
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.eval.metrics import bootstrap_interval
from ketrag_fast.types.contexts import Passage

TRUTH = Path(__file__).with_name("truth") / "technical.json"
MODES = ("bm25", "fused", "walk")
NO_CITATIONS, NO_MESSAGES = "no citations", "no messages"
LINKED = {
    "cg-rag": "text",
    f"cg-rag, {NO_CITATIONS}": "text",
    f"cg-rag, {NO_MESSAGES}": "text",
    "cg-rag, the paper's numbers": "text",
}
"""Ways to follow links, and the mode without links that each is compared with."""
DEPTH, BUDGET = 24_000, 3_000
"""Tokens of the context in which ranks are counted, and of the context that is to hold the answer."""
DOCS = ROOT / "target" / "benches" / "technical"
GROUPS = tuple(
    (half, wording) for half in ("development", "aside", "both") for wording in ("plain", "expert", "all")
)
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


Scores = dict[str, dict[str, tuple[float, float, float, float]]]


def ranked_table(found: Scores, questions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the table of all modes for each group of questions."""
    rows = []
    for half, wording, own in groups(questions):
        for mode, each in found.items():
            columns = list(zip(*(each[name] for name in own), strict=True))
            cells = [with_interval(column) for column in columns[:3]]
            rows.append([half, wording, len(own), mode, *cells, f"{sum(columns[3]) / len(own):.2f}"])
    head = ["questions", "asked", "number", "mode", *MEASURES, "sections in first five"]
    return table("The right passage", head, rows)


def paired_table(
    found: Scores, bases: Mapping[str, str], questions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the table of differences, question by question, of modes and what they are compared with."""
    rows = []
    for half, wording, own in groups(questions):
        for mode, base in bases.items():
            both = [
                list(zip(*(found[one][name] for name in own), strict=True))[: len(MEASURES)]
                for one in (mode, base)
            ]
            apart = [np.subtract(*pair).tolist() for pair in zip(*both, strict=True)]
            rows.append([half, wording, f"{mode} less {base}", *map(with_interval, apart)])
    return table("Paired difference", ["questions", "asked", "modes", *MEASURES], rows)


def groups(questions: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, list[str]]]:
    """Return the groups that have questions: half, wording, ids."""
    out = []
    for half, wording in GROUPS:
        own = [q["id"] for q in questions if half in (q["set"], "both") and wording in (q["wording"], "all")]
        if own:
            out.append((half, wording, own))
    return out


def measure(
    docs: Path, questions: Sequence[Mapping[str, Any]], *, links: bool, model: bool
) -> tuple[Scores, dict[str, Any]]:
    """Index the packages and return the scores by mode and question, and the counts of the index."""
    modes = ("bm25", "text", "fused", "cg-rag") if links else MODES
    settings = Settings(modes=",".join(modes))
    if model:
        settings = settings.having(embedder=f"native:{require_model()}")
    place = WORK / f"technical-index{'-links' if links else ''}{'-minilm' if model else ''}"
    with Index.build(docs, place, settings=settings) as index:
        counts = dict(index.stats()["counts"])
        found = {mode: {q["id"]: scores(index, mode, q) for q in questions} for mode in modes}
    ways: dict[str, dict[str, Any]] = {
        f"cg-rag, {NO_CITATIONS}": {"citation_direction": "none"},
        f"cg-rag, {NO_MESSAGES}": {"lesegr_share": 0.0},
        "cg-rag, the paper's numbers": {"lesegr_share": 0.75, "lesegr_epsilon": 0.1},
    }
    for way, given in ways.items() if links else ():
        with Index.open(place, settings=Settings(**given)) as index:
            found[way] = {q["id"]: scores(index, "cg-rag", q) for q in questions}
    return found, counts


def main() -> None:
    """Print both tables."""
    parser = arguments(__doc__)
    parser.add_argument("--fetch", action="store_true", help="download the packages first")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the unpacked packages")
    parser.add_argument("--links", action="store_true", help="the modes that follow links, and their bases")
    parser.add_argument("--model", action="store_true", help=f"embed with {MODEL}")
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
    found, counts = measure(args.docs, questions, links=args.links, model=args.model)
    bases = LINKED if args.links else {mode: "bm25" for mode in MODES if mode != "bm25"}
    two = sum(len(question["passages"]) > 1 for question in questions)
    versions = "; ".join(f"{one['name']} {one['version']}" for one in truth["packages"])
    notes = [f"Packages of Debian 12: {versions}."]
    if left_out:
        notes.append(f"{left_out} questions left out: their files changed.")
    about = (
        f"{len(questions)} questions, {two} of them need two sections; {counts['documents']:,} documents,"
        f" {counts['chunks']:,} passages"
    )
    about += (
        f", {counts['citations']:,} links; vectors: {MODEL if args.model else 'none'}." if args.links else "."
    )
    publish([ranked_table(found, questions), paired_table(found, bases, questions)], about, notes)


if __name__ == "__main__":
    main()
