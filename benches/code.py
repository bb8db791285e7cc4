"""Search in repositories: the questions of semble's public benchmark, by its own score.

    python benches/code.py sets [--model] [--data DIR] [--repositories a,b]    # ketrag's modes, BM25 of tantivy, and rg
    python benches/code.py walk [--model] --number code_name=0.5               # the walk's kernel with other weights
    python benches/code.py fit [--model]                                       # weights chosen without each repository in turn

`DIR` holds `NAME.json` (questions with their relevant files) and `NAME.tar.xz` (the repository's code). The score is nDCG@10: the
first hit in each relevant file, or in its lines if they are given, gains 1 at its rank among the first ten hits of a search.

`rg` counts the lines that match a word of the question, and ranks the files by this number. tantivy (`pip install tantivy`) ranks
whole files by BM25 with its English stemmer.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from common import DATA, MODEL, WORK, arguments, publish, require_model
from common import result_table as table
from ketrag_fast import Index, Settings
from ketrag_fast.eval.metrics import ndcg_at
from ketrag_fast.kernels import links as kernel
from ketrag_fast.query.plan import plan_query
from ketrag_fast.query.query import Query
from ketrag_fast.query.ranking import prepare
from ketrag_fast.storage.vector_codes import StoredVectors, unpack_signs

FITTED = ("click", "exposed", "flask", "gson", "lazy.nvim")
"""The repositories on which the weights of the walk's rules for code were chosen: the first five by name."""
HITS = 10
GRID: Mapping[str, Sequence[float]] = {
    "code_name": (0.1, 0.2, 0.3, 0.4, 0.6),
    "code_folder": (0.0, 0.1, 0.2, 0.3),
    "code_body": (0.0, 0.2, 0.3, 0.4, 0.6),
    "code_symbol": (0.2, 0.4, 0.6, 1.0),
    "code_file": (0.0, 0.3, 0.6),
    "code_aside": (0.1, 0.3, 0.5),
    "code_imports": (0.2, 0.5, 1.0),
    "code_again": (0.1, 0.3, 0.5),
    "code_near": (0.0, 0.2, 0.4, 0.6),
    "code_depth": (60, 100, 200),
    "code_depth_dense": (100, 200, 300, 500),
}
"""The values that `fit` tries, one weight after another."""
OFF: Mapping[str, float] = {"code_depth": 0.0, "code_depth_dense": 0.0}
"""The walk without its rules for code."""
_WORD = re.compile(r"[^\W_]{3,}")

Lines = tuple[int, int]
Found = tuple[str, Lines | None]
"""A hit: its path, and its lines if they are known."""


@dataclass(frozen=True)
class Question:
    """A question with its relevant files, and their lines if only these are relevant."""

    text: str
    kind: str
    targets: list[Found]

    def score(self, hits: Sequence[Found]) -> float:
        """Return nDCG@10 of the first hit of each target."""
        ranked = [""] * HITS
        for number, target in enumerate(self.targets):
            at = next((at for at, hit in enumerate(hits[:HITS]) if _is_hit(hit, target)), None)
            if at is not None:
                # Targets that share a hit gain once.
                ranked[at] = str(number)
        return ndcg_at(ranked, {str(number): 1.0 for number in range(len(self.targets))}, HITS) or 0.0


def _is_hit(hit: Found, target: Found) -> bool:
    """Return whether a hit is in the file of a target and meets its lines. One path may be the end of the other."""
    a, b = hit[0], target[0]
    if not (a == b or a.endswith("/" + b) or b.endswith("/" + a)):
        return False
    own, wanted = hit[1], target[1]
    return own is None or wanted is None or (own[0] <= wanted[1] and wanted[0] <= own[1])


def questions_of(path: Path) -> list[Question]:
    """Return the questions of a repository."""

    def target(given: Any) -> Found:
        if isinstance(given, str):
            return given, None
        lines = (int(given["start_line"]), int(given["end_line"])) if given.get("start_line") else None
        return given["path"], lines

    return [
        Question(
            one["query"], one["category"], [target(x) for x in [*one["relevant"], *one.get("secondary", [])]]
        )
        for one in json.loads(path.read_text("utf-8"))
    ]


class Repository:
    """The files of one repository, its index and its questions."""

    def __init__(self, data: Path, name: str, *, model: bool) -> None:
        """Unpack the files and build the index, unless they exist."""
        self.name, self.model = name, model
        self.questions = questions_of(data / f"{name}.json")
        self.folder = WORK / "code" / "files" / name
        if not self.folder.is_dir():
            part = self.folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            with tarfile.open(data / f"{name}.tar.xz") as archive:
                archive.extractall(part, filter="data")
            part.rename(self.folder)
        settings = Settings(modes="bm25,text,fused,walk")
        if model:
            settings = settings.having(embedder=f"native:{require_model()}")
        place = WORK / "code" / f"{name}-{'minilm' if model else 'none'}"
        # Only these files: an index of an earlier run that has others would count files twice.
        self.index = Index.build(str(self.folder), place, settings=settings, replace=True)

    def hits(self, mode: str) -> Iterator[list[Found]]:
        """Yield the first hits of a mode for each question."""
        for question in self.questions:
            found = self.index.search(question.text, limit=HITS, mode=mode)
            yield [(hit.document, hit.lines) for hit in found]

    def scores(self, ranked: Iterator[list[Found]]) -> list[float]:
        """Return the score of each question."""
        return [question.score(hits) for question, hits in zip(self.questions, ranked, strict=True)]

    def open_kernel(self) -> None:
        """Read what the walk's kernel ranks."""
        stages = self.index._opened.generation.stages
        units = stages["units"]
        self.links = {name: np.asarray(array) for name, array in stages["links"].items()}
        self.document = np.asarray(units["unit_document"])
        span = np.asarray(units["unit_span"]).astype(np.int64)
        self.lengths = np.log1p((span[:, 1] - span[:, 0]).astype(float))
        self.lines = np.asarray(units["unit_lines"]).tolist()
        names = ("document_ids", "unit_texts")
        self.files = [(np.asarray(units[f"{n}_blob"]), np.asarray(units[f"{n}_offsets"])) for n in names]
        blob, ends = self.files[0][0].tobytes(), self.files[0][1].tolist()
        self.ids = [blob[a:b].decode() for a, b in pairwise(ends)]
        self.near: kernel.Vectors | None = None
        if self.model:
            vectors = StoredVectors.of(stages["vectors"]).decode()
            plan = plan_query(self.index._opened, self.index.path, Query("x", mode="walk"))
            asked = prepare(plan, [question.text for question in self.questions]).vectors
            signs = unpack_signs(np.asarray(stages["sentence_vectors"]["signs"]), vectors.shape[1])
            self.near = kernel.Vectors(vectors, signs, np.asarray(asked, np.float32))

    def walked(self, numbers: Mapping[str, float]) -> list[float]:
        """Return the scores of the walk's kernel with other weights."""
        ranked = kernel.walk(
            self.links,
            [question.text for question in self.questions],
            HITS,
            vectors=self.near,
            lengths=self.lengths,
            documents=self.document,
            files=(self.files[0], self.files[1]),
            numbers=numbers,
        )
        found = (
            [(self.ids[self.document[unit]], tuple(self.lines[unit])) for unit in units.tolist()]
            for units, _ in ranked
        )
        return self.scores(found)  # type: ignore[arg-type]


def by_ripgrep(one: Repository) -> Iterator[list[Found]]:
    """Yield the files with the most lines that match a word of each question."""
    for question in one.questions:
        words = sorted({word.lower() for word in _WORD.findall(question.text)})
        patterns = [part for word in words for part in ("-e", word)]
        done = subprocess.run(
            ["rg", "--no-ignore", "--count", "--ignore-case", "--fixed-strings", *patterns, "."],
            cwd=one.folder,
            capture_output=True,
            text=True,
        )
        counts = [line.rpartition(":") for line in done.stdout.splitlines()]
        counts.sort(key=lambda row: (-int(row[2]), row[0]))
        yield [(path.removeprefix("./"), None) for path, _, _ in counts[:HITS]]


def by_tantivy(one: Repository) -> Iterator[list[Found]]:
    """Yield the files that BM25 of tantivy ranks first."""
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("path", stored=True, tokenizer_name="raw")
    schema.add_text_field("body", tokenizer_name="en_stem")
    index = tantivy.Index(schema.build())
    writer = index.writer(num_threads=1)
    for path in sorted(path for path in one.folder.rglob("*") if path.is_file()):
        name = path.relative_to(one.folder).as_posix()
        text = path.read_text("utf-8", "replace")
        writer.add_document(tantivy.Document(path=name, body=f"{name}\n{text}"))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    for question in one.questions:
        query = index.parse_query(" ".join(_WORD.findall(question.text)), ["body"])
        hits = searcher.search(query, HITS).hits
        yield [(searcher.doc(address)["path"][0], None) for _, address in hits]


def rows_of(repositories: Sequence[Repository], values: Sequence[Sequence[float]]) -> list[float]:
    """Return the means: all, the fitted repositories, the others, and each kind of question."""
    flat = [
        (one.name in FITTED, question.kind, value)
        for one, scores in zip(repositories, values, strict=True)
        for question, value in zip(one.questions, scores, strict=True)
    ]

    def mean(fits: Callable[[bool, str], bool]) -> float:
        some = [value for fitted, kind, value in flat if fits(fitted, kind)]
        return round(float(np.mean(some)), 3) if some else float("nan")

    kinds = sorted({kind for _, kind, _ in flat})
    return [
        mean(lambda fitted, kind: True),
        mean(lambda fitted, kind: fitted),
        mean(lambda fitted, kind: not fitted),
        *(mean(lambda fitted, kind, own=own: kind == own) for own in kinds),  # type: ignore[misc]
    ]


def heads(repositories: Sequence[Repository]) -> list[str]:
    """Return the heads of the columns of `rows_of`."""
    kinds = sorted({question.kind for one in repositories for question in one.questions})
    return ["all", "fitted repositories", "other repositories", *kinds]


def print_sets(args: argparse.Namespace, repositories: Sequence[Repository]) -> None:
    """Print every mode of ketrag, tantivy and rg."""
    ways: dict[str, Callable[[Repository], Iterator[list[Found]]]] = {
        mode: lambda one, mode=mode: one.hits(mode)  # type: ignore[misc]
        for mode in ("auto", "bm25", *(("text", "fused") if args.model else ()))
    }
    try:
        import tantivy

        ways[f"BM25 of tantivy {tantivy.__version__}"] = by_tantivy
    except ImportError:
        print("left out: tantivy (pip install tantivy)", file=sys.stderr)
    if shutil.which("rg"):
        ways["rg"] = by_ripgrep
    rows, each = [], []
    for name, way in ways.items():
        values = [one.scores(way(one)) for one in repositories]
        rows.append([name, *rows_of(repositories, values)])
        each.append([name, *(round(float(np.mean(value)), 3) for value in values)])
        print(rows[-1], file=sys.stderr, flush=True)
    publish(
        [
            table("nDCG@10 in repositories", ["ranking", *heads(repositories)], rows),
            table("Each repository", ["ranking", *(one.name for one in repositories)], each),
        ],
        _data(args, repositories),
        [f"The weights of `auto` were chosen on {', '.join(FITTED)}."],
    )


def print_walk(args: argparse.Namespace, repositories: Sequence[Repository]) -> None:
    """Print the walk as it is, without its rules for code, and with other numbers."""
    numbers = {name: float(value) for name, _, value in (one.partition("=") for one in args.number)}
    rows = []
    for name, own in (("walk", {}), ("without rules for code", OFF), (f"{numbers}", numbers)):
        values = [one.walked(own) for one in repositories]
        rows.append([name, *rows_of(repositories, values)])
    publish(
        [table("The walk with other numbers", ["numbers", *heads(repositories)], rows)],
        _data(args, repositories),
    )


def print_fit(args: argparse.Namespace, repositories: Sequence[Repository]) -> None:
    """Print the weights chosen without each repository and its score with them, and both halves."""
    known: dict[tuple[tuple[str, float], ...], list[list[float]]] = {}

    def values(numbers: Mapping[str, float]) -> list[list[float]]:
        key = tuple(sorted(numbers.items()))
        if key not in known:
            known[key] = [one.walked(numbers) for one in repositories]
        return known[key]

    def mean(numbers: Mapping[str, float], some: Sequence[int]) -> float:
        found = values(numbers)
        return float(np.mean([value for at in some for value in found[at]]))

    def chosen(some: Sequence[int]) -> dict[str, float]:
        best: dict[str, float] = {}
        for _ in range(2):
            for name, grid in GRID.items():
                tried = {value: mean({**best, name: value}, some) for value in grid}
                top = max(tried.values())
                if top > mean(best, some) + 1e-4:
                    best[name] = next(value for value, score in tried.items() if score == top)
        return best

    every = range(len(repositories))
    halves = {
        "the fitted five": [at for at in every if repositories[at].name in FITTED],
        "the other five": [at for at in every if repositories[at].name not in FITTED],
    }
    splits = {f"without {repositories[at].name}": [x for x in every if x != at] for at in every}
    rows = []
    for name, some in {**halves, **splits}.items():
        if not some or len(some) == len(repositories):
            continue
        best, rest = chosen(some), [at for at in every if at not in some]
        shown = " ".join(f"{key.removeprefix('code_')}={value:g}" for key, value in best.items())
        rows.append([name, shown or "as they are", *(round(mean(x, rest), 3) for x in (OFF, {}, best))])
        print(rows[-1], file=sys.stderr, flush=True)
    columns = [
        "chosen on",
        "weights that differ",
        "the rest: no rules",
        "the rest: as they are",
        "the rest: chosen",
    ]
    publish(
        [table("Weights chosen without what they are shown on", columns, rows)], _data(args, repositories)
    )


def _data(args: argparse.Namespace, repositories: Sequence[Repository]) -> str:
    count = sum(len(one.questions) for one in repositories)
    vectors = MODEL if args.model else "none"
    return f"{len(repositories)} repositories of semble's benchmark, {count} questions. Vectors: {vectors}."


def main() -> None:
    """Measure one subject."""
    subjects = {"sets": print_sets, "walk": print_walk, "fit": print_fit}
    parser = arguments(__doc__)
    parser.add_argument("subject", choices=subjects)
    parser.add_argument("--data", type=Path, default=DATA / "semble-dev", metavar="DIR")
    parser.add_argument("--repositories", default="", metavar="NAMES")
    parser.add_argument("--model", action="store_true", help=f"embed with {MODEL}")
    parser.add_argument(
        "--number", action="append", default=[], metavar="NAME=VALUE", help="a weight of the walk"
    )
    args = parser.parse_args()
    names = args.repositories.split(",") if args.repositories else []
    names = names or sorted(path.stem for path in args.data.glob("*.json"))
    if not names:
        parser.error(f"{args.data} has no questions (NAME.json)")
    if args.smoke:
        names = names[:1]
    (WORK / "code" / "files").mkdir(parents=True, exist_ok=True)
    repositories = [Repository(args.data, name, model=args.model) for name in names]
    if args.subject != "sets":
        for one in repositories:
            one.open_kernel()
    subjects[args.subject](args, repositories)


if __name__ == "__main__":
    main()
