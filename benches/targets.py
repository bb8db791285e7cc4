"""Targets of the project, and a column for them in every table that has a number with a target.

Each target is defined once, here; `common.table` adds the column when a table is printed, and `all.py` to the sections
of the page that it keeps, so that a target that changes changes everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

COLUMN = "target"
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Target:
    """A bound of one number: in `column` of the rows whose first cell matches `row` (or their first two, `A | B`)."""

    script: str
    row: str
    column: str
    most: float | None = None
    least: float | None = None
    within: float | None = None
    """As far from 0 as this, at most."""
    whole: bool = False
    """The bound is known in whole numbers alone."""
    place: int = 0
    """Which of the numbers in the cell."""
    when: str = ""
    """Must be found in what stands above the table: the machine, the kernel, the options."""

    def bound(self) -> str:
        """`<= 3`."""
        if self.within is not None:
            return f"within {self.within:g}"
        return f"<= {self.most:,g}" if self.most is not None else f">= {self.least:,g}"

    def said(self, value: float) -> str:
        """The bound, and by how much it was missed."""
        value = float(round(value)) if self.whole else value
        if self.within is not None:
            value, limit, missed = abs(value), self.within, abs(value) > self.within
        elif self.most is not None:
            limit, missed = self.most, value > self.most
        else:
            assert self.least is not None
            limit, missed = self.least, value < self.least
        if not missed:
            return self.bound()
        share = 100 * abs(value - limit) / limit if limit else 0.0
        by = f"{share:.0f} %" if share >= 10 else f"{share:.2g} %" if limit else f"{value:g}"
        return f"{self.bound()}: **missed** by {by}"


def _walk(when: str, *values: float) -> list[Target]:
    """Coverage of `walk` at 12,000, 6,000, 3,000 and 1,500 tokens: that of the sketch that it was made from."""
    return [
        Target("coverage.py", "walk", "coverage at .*", least=v, whole=v.is_integer(), place=i, when=when)
        for i, v in enumerate(map(float, values))
    ]


TARGETS = (
    # Without a model.
    Target("build.py", r"\*\*all\*\*", "seconds", most=3, when="2wiki-101"),
    Target("retrieval.py", "keyword", "search, median ms", most=1),
    Target("retrieval.py", "walk", "search, median ms", most=1.5),
    Target("retrieval.py", "walk", "questions/s, 2 threads", least=1500),
    Target("changes.py", "8,000", "change s", most=0.5),
    Target("changes.py", "8,000", "removal s", most=0.5),
    Target("changes.py", "100,000", "change s", most=4),
    Target("changes.py", "100,000", "removal s", most=4),
    Target("changes.py", "300,000", "change s", most=15),
    Target("changes.py", "300,000", "removal s", most=15),
    Target("build_on_demand.py", r"100,000 \| auto", "build s", most=15),
    Target("build_on_demand.py", r"300,000 \| auto", "build s", most=50),
    Target("build_on_demand.py", r"300,000 \| auto", "peak GB", most=3),
    Target("filters.py", r".* \| leaves (90|10|0\.1) %", "times the unfiltered", most=1),
    Target("opening.py", "blocks", "open ms", most=50),
    Target("opening.py", "blocks", "median ms", most=300),
    Target("walk_growth.py", r"300,000 \| walk", "median ms", most=6),
    Target("walk_growth.py", r"8,009 \| walk", "median ms", most=1.5),
    Target("startup.py", "ketrag --help", "median ms", most=120),
    Target("documents.py", "ketrag, two processes apart", "x pypdfium2 with as many processes", least=0.8),
    Target("documents.py", "ahead of the best peer", "ketrag", least=0),
    Target("documents.py", "x trafilatura's ms", "ketrag", most=1),
    Target("documents.py", "(PDF of 2,000 pages|XLSX)", "peak MB", most=500),
    Target("startup.py", "ketrag retrieve.*", "median ms", most=300),
    Target("size.py", "wheel.*", "MB", most=10),
    Target("size.py", "installed: with.*", "MB", most=80),
    Target("merging.py", ".*", "merge / fold", most=1.3),
    Target("growth.py", "100,000", "co-occurrence", most=4),
    Target("growth.py", "300,000", "co-occurrence", most=40),
    Target("growth.py", "300,000", "all, s", most=120),
    Target("growth.py", "300,000", "peak MB", most=6000),
    Target("growth.py", ".*", "exponent without co-occurrence", most=1.2),
    Target("cooccurrence.py", "cooccurrence_knn k=1 .*", "times faster, wall", least=1000),
    Target("cooccurrence.py", "100000", "s, median", most=4),
    Target("cooccurrence.py", "300000", "s, median", most=40),
    Target("concepts.py", r"8,000 \| ketrag", "s", most=1),
    Target("concepts.py", r"100,000 \| ketrag", "s", most=20),
    Target("concepts.py", r"100,000 \| ketrag", "GiB", most=3),
    Target("concepts.py", r"[\d,]+ \| ketrag", "scipy / this", least=1),
    Target("concepts.py", "concepts", "ms, median", most=2),
    Target("pagerank.py", "scipy.*|igraph.*|networkx", "times ours", least=1),
    Target("graph_kernels.py", r"core numbers \| ketrag_fast", "ms, median", most=50),
    Target("graph_kernels.py", r"betweenness.* \| ketrag_fast", "ms, median", most=1500),
    Target("graph_kernels.py", r"two steps.* \| ketrag_fast", "ms, median", most=5),
    Target("noderag.py", "graph and augmentation.*", "seconds", most=60),
    Target("noderag.py", "noderag", "ms, median", most=5),
    Target("cgrag.py", "50,000", "graph, s", most=5),
    Target("cgrag.py", "cg-rag, K = 2", "ms, median", most=3),
    Target("cgrag_training.py", "20", "minutes", most=15),
    Target("cgrag_training.py", "for the first time|once.*", "ms, median", most=20),
    Target("tokenisation.py", ".*", "ratio", least=1),
    Target("fold.py", "100000", "seconds", most=10),
    Target("local_search.py", "skeleton|ket", "median ms", most=3),
    *_walk(r"without a model[\s\S]*musique-train100", 88, 86, 84, 72),
    *_walk(r"without a model[\s\S]*hotpotqa-train100", 100, 100, 98.9, 98.9),
    # With all-MiniLM-L6-v2.
    *_walk(r"Quality with [^o][\s\S]*musique-train100", 95, 92, 91, 85),
    Target("encoder.py", "passages|sentences", "x theirs, 1 core", least=1.7, when=r"avx2 in f32"),
    Target("encoder.py", "passages|sentences", "x theirs, 1 core", least=3, when=r"(avx2|avx-vnni) in int8"),
    Target("encoder.py", "passages|sentences", "x theirs, 1 core", least=2.5, when=r"avx512 in f32"),
    Target("encoder.py", "passages|sentences", "x theirs, 1 core", least=6, when=r"avx512-bf16 in bf16"),
    Target("encoder.py", "passages|sentences", "x theirs, 1 core", least=10, when=r"amx in bf16"),
    Target("encoder.py", "passages|sentences", "share of peak", least=0.9, when=r"avx2 in f32"),
    Target("encoder.py", "passages|sentences", "2 / 1", least=1.85),
    Target("encoder.py", ".*", "lowest cosine to theirs", least=0.999999, when=r"in f32"),
    Target("encoder.py", ".*", "lowest cosine to theirs", least=0.9999, when=r"in bf16"),
    Target("encoder.py", ".*", "lowest cosine to theirs", least=0.995, when=r"in int8"),
    Target("encoder.py", ".*", "same top 10 .*", least=0.995, when=r"in f32"),
    Target("encoder.py", ".*", "same top 10 .*", least=0.99, when=r"in bf16"),
    Target("encoder.py", ".*", "same top 10 .*", least=0.97, when=r"in int8"),
    Target("encoder.py", ".*", "auto / it", least=0.97),
    Target("encoder.py", "amx bf16", "question, ms", most=1.2),
    Target("encoder.py", "avx512 f32", "question, ms", most=3),
    Target("encoder.py", "avx2 f32", "question, ms", most=6),
    Target("encoder.py", ".*", "one question of 20 tokens, 1 core, ms", most=1.2, when=r"- amx in"),
    Target(
        "encoder.py", ".*", "one question of 20 tokens, 1 core, ms", most=3, when=r"- avx512[a-z0-9-]* in"
    ),
    Target("encoder.py", ".*", "one question of 20 tokens, 1 core, ms", most=6, when=r"- (avx2|avx-vnni) in"),
    Target("encoder.py", ".*", "process start to first vector", most=400),
    Target("encoder_build.py", "encode, defaults", "x the native build", least=8, when=r"takes amx"),
    Target("encoder_build.py", "native", "all else, %", most=15, when=r"takes amx"),
    Target("encoder.py", "question of 20.*", "all cores, ms", most=1.2, when=r"- amx in"),
    Target("encoder_peers.py", ".*", "time / native", least=1),
    Target("walk_quality.py", r"musique-dev \| walk", "coverage", least=89.7, place=0),
    Target("walk_quality.py", r"musique-dev \| walk", "coverage", least=86.1, place=1),
    Target("walk_quality.py", r"musique-dev \| walk", "coverage", least=80.4, place=2),
    Target("walk_quality.py", r"musique-dev \| walk", "coverage", least=69.1, place=3),
    Target("walk_quality.py", r"musique-dev \| walk", "all gold", least=55.8),
    Target("walk_quality.py", r"2wiki-dev \| walk", "coverage", least=99.2, place=0),
    Target("walk_quality.py", r"2wiki-dev \| walk", "coverage", least=99.1, place=1),
    Target("walk_quality.py", r"2wiki-dev \| walk", "coverage", least=98.6, place=2),
    Target("walk_quality.py", r"2wiki-dev \| walk", "coverage", least=96.6, place=3),
    Target("walk_quality.py", r"2wiki-dev \| walk", "all gold", least=97.9),
    Target("walk_quality.py", r"hotpotqa-dev \| walk", "coverage", least=99.6, place=0),
    Target("walk_quality.py", r"hotpotqa-dev \| walk", "coverage", least=99.5, place=1),
    Target("walk_quality.py", r"hotpotqa-dev \| walk", "coverage", least=99.3, place=2),
    Target("walk_quality.py", r"hotpotqa-dev \| walk", "coverage", least=98.5, place=3),
    Target("walk_quality.py", r"hotpotqa-dev \| walk", "all gold", least=98.6),
    Target("embedding.py", ".*", "ratio", least=3.5),
    Target("embedding.py", ".*", "lowest cosine to fp32", least=0.9998),
    Target("embedding.py", ".*", "same top 10", least=0.99),
    Target("rebuild.py", "first", "not embedding", most=5),
    Target("rebuild.py", "[^f].*", "s", most=2),
    Target("rebuild.py", "[^f].*", "texts embedded", most=0),
    Target("ann.py", "core, f32", "ms a question", most=6),
    Target("ann.py", "core, int8.*", "ms a question", most=1.5),
    Target("ann.py", r"100,000 \| .*(amx|vnni|auto).*", "exact s", most=20),
    Target("ann.py", r"100,000 \| .*(avx2|avx512)", "exact s", most=60),
    Target("ann.py", "hnswlib.*|the same.*", "recall@10", least=0.99),
    Target("estimates.py", ".*", "times", most=1.5),
    Target("estimates.py", r".* \| all of it.*", "tokens_in|tokens_out|embedding_tokens", within=15),
    Target("estimates.py", r".* \| all of it.*", "seconds", within=25),
    Target("hostile.py", ".*", "late", most=0),
    Target("hostile.py", ".*", "untyped", most=0),
    Target("hostile.py", ".*", "key shown", most=0),
    Target("soak.py", ".*", "faults", most=0),
    Target("hardening.py", "100 further questions.*|texts and tables.*", "share", most=2),
    # The service: wrk on the same processors.
    Target("serving.py", r"walk, 1 worker", "wrk, requests/s", least=1200),
    Target("serving.py", r"walk, \d workers?", "of retrieve_many", least=0.6),
    Target("serving.py", r"walk, 1 worker", "p99 ms at 70 %", most=20),
    Target("serving.py", r"text, 1 worker", "of the encoder alone", least=0.8),
    Target("serving.py", r"\d+ s", "others", most=0),
    Target("serving.py", "cold start.*", "found", most=1),
    Target("serving.py", "four of one, .*", "found", most=1.3),
    # With a language model: against a plain loop over the library's own chat call.
    Target("extraction_speed.py", r"\d+ sequences", "times the first row", least=2),
)


def with_targets(
    script: str, about: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """The table with a last column of targets; as it is where none of its numbers has one."""
    kept = [i for i, name in enumerate(columns) if name != COLUMN]
    names = [columns[i] for i in kept]
    cells = [[row[i] for i in kept] for row in rows]
    found = [_of_row(script, about, names, row) for row in cells]
    if not any(found):
        return names, cells
    return [*names, COLUMN], [[*row, said] for row, said in zip(cells, found, strict=True)]


def _of_row(script: str, about: str, columns: Sequence[str], row: Sequence[str]) -> str:
    said = []
    for target in TARGETS:
        if target.script != script or (target.when and not re.search(target.when, about)):
            continue
        if not (re.fullmatch(target.row, row[0]) or re.fullmatch(target.row, " | ".join(row[:2]))):
            continue
        for name, cell in zip(columns, row, strict=True):
            if name != target.column and not re.fullmatch(target.column, name):
                continue
            numbers = _NUMBER.findall(cell)
            if len(numbers) > target.place:
                said.append((name, target.said(float(numbers[target.place].replace(",", "")))))
    one = len({name for name, _ in said}) == 1
    return "; ".join(words if one else f"{name} {words}" for name, words in dict.fromkeys(said))
