"""CG-RAG: cost of its graph, time of a question, and ranking quality on data with citations and judgements.

    python benches/cgrag.py [--part graph,question,scored,linked,trained] [--embedder native:FOLDER]

The speed is that of a made set: 10,000 documents, each put together from five passages of musique-dev, with
citations by chance, a tenth of them to a hundred documents. Scored is cacm: abstracts, links between them,
and judgements; documents that have only a title have it as their text. The form of LeSeGR was chosen on the
odd-numbered half of the questions (places 1, 3, 5, ... of the file); claims are made on the other half.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common import header, median, require_data, table
from ketrag_fast import Document, Index, Settings
from ketrag_fast.index.training import train
from ketrag_fast.lab.eval import load_dataset
from ketrag_fast.lab.eval.beir import load_folder
from ketrag_fast.lab.eval.metrics import average_precision, ndcg_at, precision_at
from ketrag_fast.lab.eval.paired import compare_paired, holm
from ketrag_fast.lab.eval.question import DataSet, Question

MODES = "bm25,text,fused,walk,cg-rag"
DEPTH = 1000
"""Documents of a ranking that are looked at, as in trec_eval."""
BEST = "cg-rag, K = 2, cited_to_citing"
FUSED = "cg-rag-fused, K = 2, cited_to_citing"
"""The form for indexes without a model."""


def made(documents: int, citations: int) -> list[Document]:
    """Documents of five passages each, about 500 words."""
    corpus = load_dataset(require_data("musique-dev")).corpus
    assert corpus is not None
    passages = [json.loads(line)["text"] for line in corpus.read_text("utf-8").splitlines()]
    rng = np.random.default_rng(42)
    cites: list[list[str]] = [[] for _ in range(documents)]
    known = rng.integers(0, 100, citations)
    citing, cited = rng.integers(0, documents, (2, citations))
    cited = np.where(rng.random(citations) < 0.1, known, cited)
    for a, b in zip(citing.tolist(), cited.tolist(), strict=True):
        cites[a].append(str(b))
    picked = rng.integers(0, len(passages), (documents, 5)).tolist()
    return [
        Document(str(at), "\n\n".join(passages[p] for p in row), f"Paper {at}", {"cites": own})
        for at, (row, own) in enumerate(zip(picked, cites, strict=True))
    ]


def speed(work: Path, parts: Sequence[str]) -> None:
    """The graph of 50,000 citations, and questions over a graph with 500,000 edges that carry messages."""
    rows = []
    shared = {"system": "cg-rag", "modes": "text,cg-rag", "chunk_tokens": 125, "builtin_dim": 384}
    for citations in (50_000, 25_000):
        path = work / f"made-{citations}"
        settings = Settings(**shared)
        with Index.build(made(10_000, citations), path, settings=settings) as index:
            assert index.report is not None
            took = {stage.name: stage.seconds for stage in index.report.stages}
            stats = index.stats()
        kinds = stats["systems"]["cg-rag"]["edges_by_kind"]
        own = took["citations"] + took["citation_graph"]
        rows.append(
            [
                f"{citations:,}",
                f"{stats['counts']['subchunks']:,}",
                f"{stats['edges']['citation_graph']:,}",
                round(took["citations"], 2),
                round(took["citation_graph"], 2),
                round(own, 2),
                round(sum(took.values()), 1),
            ]
        )
    if "graph" in parts:
        print("## CG-RAG: the graph of 10,000 documents\n")
        table(
            ["citations", "units", "edges", "citations read, s", "edges made, s", "graph, s", "build, s"],
            rows,
        )
    if "question" not in parts:
        return
    questions = [q.text for q in load_dataset(require_data("musique-dev")).questions][:200]
    told = []
    carried = kinds["cited_to_citing"] + kinds["adjacent"]
    for name, given in (
        ("text", {"mode": "text"}),
        ("cg-rag, K = 1", {"mode": "cg-rag", "lesegr_layers": 1}),
        ("cg-rag, K = 2", {"mode": "cg-rag"}),
        ("cg-rag, K = 2, both", {"mode": "cg-rag", "citation_direction": "both"}),
    ):
        with Index.open(path, settings=Settings(**given)) as index:
            taken = []
            for text in questions:
                runs = [index.retrieve(text, budget=2_000).timings_ms["search"] for _ in range(3)]
                taken.append(min(runs))
        told.append([name, round(median(taken), 2), round(float(np.quantile(taken, 0.95)), 2)])
    print(
        f"## CG-RAG: one question, {rows[-1][1]} units of 384 dimensions, {carried:,} edges that carry messages\n"
    )
    table(["mode", "ms, median", "ms, 95 of 100"], told)


# ---------------------------------------------------------------- scored


def whole_cacm() -> Iterator[Document]:
    """With the links of its table; what has only a title has it as its text."""
    folder = require_data("cacm")
    cites: dict[str, list[str]] = {}
    for line in (folder / "citations.tsv").read_text("utf-8").splitlines()[1:]:
        a, b = line.split("\t")
        cites.setdefault(a, []).append(b)
    for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        own, title = entry["text"].strip(), entry["title"]
        about = {"cites": cites.get(entry["_id"], [])}
        yield Document(entry["_id"], own or title, title if own else "", about)


@dataclass(frozen=True)
class Scores:
    """By question: nDCG@10, MAP, P@10."""

    name: str
    values: np.ndarray


def configurations() -> list[tuple[str, dict[str, object]]]:
    """Return the configurations to compare: the parts of CG-RAG, the walk, and CG-RAG by layers, direction
    and form.
    """
    rows: list[tuple[str, dict[str, object]]] = [
        ("bm25", {"mode": "bm25"}),
        ("text", {"mode": "text"}),
        ("fused", {"mode": "fused"}),
        ("walk", {"mode": "walk"}),
        (FUSED, {"mode": "cg-rag-fused"}),
        ("cg-rag, K = 0", {"lesegr_layers": 0}),
        ("cg-rag without citations, K = 1", {"lesegr_layers": 1, "citation_direction": "none"}),
    ]
    for layers in (1, 2):
        for direction in ("cited_to_citing", "citing_to_cited", "both"):
            own: dict[str, object] = {"lesegr_layers": layers, "citation_direction": direction}
            rows.append((f"cg-rag, K = {layers}, {direction}", own))
            rows.append((f"mean, K = {layers}, {direction}", {**own, "lesegr_aggregate": "mean"}))
    rows.append(
        (
            "mean, K = 2, cited_to_citing, residual .5",
            {"lesegr_aggregate": "mean", "lesegr_residual": 0.5},
        )
    )
    rows.append(("cg-rag, K = 2, cited_to_citing, epsilon .3", {"lesegr_epsilon": 0.3}))
    return [(name, {"mode": "cg-rag", **given}) for name, given in rows]


def score(path: Path, name: str, given: dict[str, object], questions: Sequence[Question]) -> Scores:
    """One row."""
    values = []
    with Index.open(path, settings=Settings(**given)) as index:
        for question in questions:
            found = index.retrieve(question.text, budget=10_000_000, top=DEPTH)
            ranked = list(dict.fromkeys(passage.document for passage in found.passages))
            values.append(
                (
                    ndcg_at(ranked, question.graded, 10),
                    average_precision(ranked, question.gold),
                    precision_at(ranked, question.gold, 10),
                )
            )
    return Scores(name, np.array(values, np.float64))


def scored(work: Path, label: str, embedder: str) -> None:
    """The table of cacm, and paired tests on the half that nothing was chosen on."""
    questions = [q for q in load_folder(require_data("cacm")).questions if q.gold]
    path = work / f"cacm-{label.replace(' ', '-')}"
    with Index.build(
        list(whole_cacm()), path, settings=Settings(system="cg-rag", modes=MODES, embedder=embedder)
    ):
        pass
    rows = [score(path, name, given, questions) for name, given in configurations()]
    held = np.arange(len(questions)) % 2 == 1
    print(f"## CG-RAG: cacm, {label}\n")
    print(
        f"{len(questions)} questions; the form was chosen on {int((~held).sum())} of them, and the other "
        f"{int(held.sum())} are in the last two columns.\n"
    )
    table(
        ["ranking", "nDCG@10", "MAP", "P@10", "nDCG@10, chosen on", "nDCG@10, held out", "MAP, held out"],
        [
            [
                row.name,
                *(f"{100 * x:.1f}" for x in row.values.mean(axis=0)),
                f"{100 * row.values[~held, 0].mean():.1f}",
                f"{100 * row.values[held, 0].mean():.1f}",
                f"{100 * row.values[held, 1].mean():.1f}",
            ]
            for row in rows
        ],
    )
    by_name = {row.name: row.values for row in rows}
    best = FUSED if embedder == "builtin" else BEST
    tests = []
    for other in (
        "bm25",
        "text",
        "fused",
        "walk",
        "cg-rag without citations, K = 1",
        BEST if best == FUSED else "mean, K = 2, cited_to_citing",
    ):
        for place, measure in enumerate(("nDCG@10", "MAP", "P@10")):
            difference = compare_paired(
                by_name[other][held, place].tolist(), by_name[best][held, place].tolist()
            )
            assert difference is not None
            tests.append((other, measure, difference))
    corrected = holm([test[2].p for test in tests])
    print(f"`{best}` against others, on the {int(held.sum())} questions that nothing was chosen on:\n")
    table(
        ["against", "measure", "it", "this", "difference", "95 % interval", "better / worse", "p", "p, Holm"],
        [
            [
                other,
                measure,
                f"{100 * d.a:.1f}",
                f"{100 * d.b:.1f}",
                f"{100 * d.difference:+.1f}",
                f"{100 * d.ci95[0]:+.1f} to {100 * d.ci95[1]:+.1f}",
                f"{d.better} / {d.worse}",
                f"{d.p:.4f}",
                f"{p:.4f}",
            ]
            for (other, measure, d), p in zip(tests, corrected, strict=True)
        ],
    )


def mentions_of(dataset: DataSet, scratch: Path) -> list[Document]:
    """The corpus of a set with links: a passage cites those whose subject it mentions."""
    corpus = dataset.corpus
    assert corpus is not None
    entries = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    plain = [Document(e["_id"], e["text"], e["title"]) for e in entries]
    with Index.build(plain, scratch, settings=Settings(modes="bm25")) as index:
        arrays = index.inspect.arrays()
        links, units = arrays["links"], arrays["units"]
        ends, subjects = links["unit_mentions_indptr"].tolist(), links["unit_mentions_indices"].tolist()
        owners: dict[int, set[int]] = {}
        for unit, subject in enumerate(links["unit_subject"].tolist()):
            owners.setdefault(subject, set()).add(int(units["unit_document"][unit]))
        cites: list[set[int]] = [set() for _ in plain]
        for unit, document in enumerate(units["unit_document"].tolist()):
            for subject in subjects[ends[unit] : ends[unit + 1]]:
                cites[document] |= owners.get(subject, set()) - {document}
    return [
        Document(d.id, d.text, d.title, {"cites": [plain[other].id for other in sorted(own)]})
        for d, own in zip(plain, cites, strict=True)
    ]


def linked(work: Path, label: str, embedder: str) -> None:
    """Questions of two to four hops, where links are mentions: recall@5 and all gold in 10."""
    questions = [q for q in load_dataset(require_data("musique-dev")).questions if q.gold]
    path = work / f"musique-{label.replace(' ', '-')}"
    given = Settings(system="cg-rag", modes=MODES, embedder=embedder)
    documents = mentions_of(load_dataset(require_data("musique-dev")), work / "mentions")
    with Index.build(documents, path, settings=given) as index:
        stats = index.stats()["systems"]["cg-rag"]
    rows: dict[str, np.ndarray] = {}
    names: list[tuple[str, dict[str, object]]] = [
        (mode, {"mode": mode}) for mode in ("bm25", "text", "fused", "walk")
    ]
    names.append(("cg-rag without links, K = 1", {"lesegr_layers": 1, "citation_direction": "none"}))
    names += [
        (f"cg-rag, K = {layers}, {way}", {"lesegr_layers": layers, "citation_direction": way})
        for layers in (1, 2)
        for way in ("cited_to_citing", "citing_to_cited", "both")
    ]
    for name, own in names:
        with Index.open(path, settings=Settings(**{"mode": "cg-rag", **own})) as index:
            found = index.retrieve_many([q.text for q in questions], budget=100_000, top=60)
        values = []
        for question, context in zip(questions, found, strict=True):
            ranked = list(dict.fromkeys(p.document for p in context.passages[:60]))
            hit = len(question.gold & set(ranked[:5])) / len(question.gold)
            values.append((hit, float(question.gold <= set(ranked[:10]))))
        rows[name] = np.array(values)
    print(f"## CG-RAG: musique-dev with mentions of subjects as links, {label}\n")
    print(f"{len(questions)} questions; {stats['citations']:,} links; nothing was chosen on this set.\n")
    base = rows["fused"]
    table(
        ["ranking", "recall@5", "all gold in 10", "recall@5 against fused", "p"],
        [
            [
                name,
                *(f"{100 * x:.1f}" for x in values.mean(axis=0)),
                f"{100 * (values[:, 0].mean() - base[:, 0].mean()):+.1f}",
                _p(base[:, 0], values[:, 0]),
            ]
            for name, values in rows.items()
        ],
    )


def _p(a: np.ndarray, b: np.ndarray) -> str:
    found = compare_paired(a.tolist(), b.tolist())
    assert found is not None
    return f"{found.p:.4f}"


def trained(work: Path, label: str, embedder: str, folds: int, epochs: int) -> None:
    """Cross-validation over the questions: each fold is ranked with weights trained on the others."""
    questions = [q for q in load_folder(require_data("cacm")).questions if q.gold]
    path = work / f"cacm-{label.replace(' ', '-')}"
    with Index.build(
        list(whole_cacm()), path, settings=Settings(system="cg-rag", modes=MODES, embedder=embedder)
    ):
        pass
    fold = np.random.default_rng(42).permutation(len(questions)) % folds
    values = np.zeros((len(questions), 3))
    taken, asked = 0.0, []
    for number in range(folds):
        out = work / f"fold-{number}.safetensors"
        rest = [(q.text, q.gold) for q, own in zip(questions, fold, strict=True) if own != number]
        began = time.perf_counter()
        with Index.open(path) as index:
            train(index, "cg-rag", rest, out, epochs=epochs)
        taken += time.perf_counter() - began
        own = [q for q, mine in zip(questions, fold, strict=True) if mine == number]
        given = {"mode": "cg-rag-trained", "lesegr_weights": str(out)}
        values[fold == number] = score(path, "trained", given, own).values
        with Index.open(path, settings=Settings(**given)) as index:
            for q in own:
                index.retrieve(q.text, budget=2_000)
                times = index.retrieve(q.text, budget=2_000).timings_ms
                asked.append(times["embed"] + times["search"])
    free = score(path, "cg-rag", {"mode": "cg-rag"}, questions).values
    fused = score(path, "fused", {"mode": "fused"}, questions).values
    print(f"## CG-RAG: trained, cacm, {label}\n")
    print(
        f"{folds} folds of {len(questions)} questions, {epochs} epochs at most; training took {taken:.0f} s in "
        f"all; a question, whose vector is known, {median(asked):.0f} ms.\n"
    )
    rows = []
    for name, other in (("fused", fused), ("cg-rag", free)):
        for place, measure in enumerate(("nDCG@10", "MAP", "P@10")):
            d = compare_paired(other[:, place].tolist(), values[:, place].tolist())
            assert d is not None
            rows.append(
                [
                    name,
                    measure,
                    f"{100 * d.a:.1f}",
                    f"{100 * d.b:.1f}",
                    f"{100 * d.difference:+.1f}",
                    f"{100 * d.ci95[0]:+.1f} to {100 * d.ci95[1]:+.1f}",
                    f"{d.better} / {d.worse}",
                    f"{d.p:.4f}",
                ]
            )
    table(["against", "measure", "it", "trained", "difference", "95 % interval", "better / worse", "p"], rows)


def main() -> None:
    """Print the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default="graph,question,scored")
    parser.add_argument("--embedder", help="for scored: a model, beside the built-in vectors")
    parser.add_argument("--folds", type=int, default=5, help="for trained")
    parser.add_argument("--epochs", type=int, default=20, help="for trained")
    parser.add_argument("--work", help="folder of the indexes, kept; else a temporary one")
    args = parser.parse_args()
    parts = args.part.split(",")
    header(
        "CG-RAG",
        ["No language model. The links of cacm have no direction: the first of a line counts as citing."],
    )
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(args.work or temporary)
        if {"graph", "question"} & set(parts):
            speed(work, parts)
        if "trained" in parts:
            trained(
                work,
                "with a model" if args.embedder else "no model",
                args.embedder or "builtin",
                args.folds,
                args.epochs,
            )
        if "linked" in parts:
            linked(work, "no model", "builtin")
            if args.embedder:
                linked(work, "with a model", args.embedder)
        if "scored" in parts:
            scored(work, "no model", "builtin")
            if args.embedder:
                scored(work, "with a model", args.embedder)


if __name__ == "__main__":
    sys.exit(main())
