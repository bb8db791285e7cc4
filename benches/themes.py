"""Themes and questions about the whole: labels, coverage, stability, speed, and the rule for questions.

    python benches/themes.py labels [--every N] [--model]  # labels of held-out documents, next to BERTopic's recipe
    python benches/themes.py survey [--model]              # documents of the gold in 4,000 tokens, and repetitions
    python benches/themes.py stability                     # the same themes with 1 % fewer documents?
    python benches/themes.py speed [--lines N]             # time and memory on 1 and 2 threads; N documents of one line
    python benches/themes.py rule                          # which questions are taken for questions about the whole

`labels`, `stability` and `speed` read the technical documentation (`benches/technical.py --fetch`, or `--docs FOLDER`).
Of `labels` one document of five is held out. Its theme is the one of most of the ten passages that a search for its text
finds, and for k-means the cluster whose centre is nearest to the mean of its vectors. Its label is right if it shares a
term with the document's section path: file name, title and headings. k-means has as many clusters as there are smallest
themes, and labels of five keywords by class-based TF-IDF, as BERTopic's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from common import ROOT, WORK, arguments, publish, require_data, require_model, target
from common import result_table as table
from ketrag_fast import Context, Document, Index, Settings, _core
from ketrag_fast.building.sources import Sources
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.datasets import Question
from ketrag_fast.kernels import kmeans
from ketrag_fast.query.themes.describe import ThemeFinder
from ketrag_fast.query.themes.labels import TERMS, TermCounts
from ketrag_fast.query.themes.question import asks_about_the_whole
from ketrag_fast.storage.vector_codes import StoredVectors
from ketrag_fast.systems.shared.rows import documents_of, read_strings

HELD_OUT, MODEL = 5, "native:all-MiniLM-L6-v2"
QUERY, NEAREST = 1_500, 10
"""Characters of a held-out document that are searched for, and passages that vote."""

Label = tuple[str, ...]


def stems(text: str) -> set[str]:
    """Return the keywords of a text that have letters."""
    return {word for word in _core.lexical_keywords(text) if any(map(str.isalpha, word))}


def path_of(document: Document) -> set[str]:
    """Return the keywords of the section path of a document."""
    names = [re.sub(r"\W|_", " ", Path(document.id).stem), document.title]
    for locator in document.locators:
        if locator.kind == "heading":
            value = locator.value
            names += map(str, value) if isinstance(value, (list, tuple)) else [str(value)]
    return stems(" ".join(names))


def share_of(labels: Sequence[Label], documents: Sequence[Document]) -> float:
    """Return the share of documents whose section path shares a term with the label."""
    return float(
        np.mean([bool(stems(" ".join(a)) & path_of(one)) for a, one in zip(labels, documents, strict=True)])
    )


def by_themes(index: Index, held: Sequence[Document]) -> tuple[list[Label], int]:
    """Return the label of the smallest theme of each held-out document, and the number of these themes."""
    finder = ThemeFinder(index._opened)
    last = max(node.level for node in finder.nodes)
    of_unit: dict[int, int] = {}
    for at, node in enumerate(finder.nodes):
        if node.level == last:
            of_unit |= dict.fromkeys(node.units.tolist(), at)
    labels = []
    for one in held:
        votes: Counter[int] = Counter()
        for passage in index.retrieve(one.text[:QUERY], mode="bm25", top=NEAREST, budget=10_000).passages:
            if passage.unit in of_unit:
                votes[of_unit[passage.unit]] += 1
        labels.append(finder.described[votes.most_common(1)[0][0]][0] if votes else ())
    return labels, len(set(of_unit.values()))


def by_kmeans(index: Index, held: Sequence[Document], clusters: int) -> list[Label]:
    """Return the label of the cluster of each held-out document."""
    arrays = index.inspect.arrays()
    links, vectors = arrays["links"], StoredVectors.of(arrays["vectors"]).decode()
    found = kmeans(vectors, clusters)
    counts, words = TermCounts(links), read_strings(links, "keywords")
    rows = np.stack([counts.of(np.flatnonzero(found.labels == at)) for at in range(clusters)]).astype(
        np.float64
    )
    # BERTopic: share of the class's terms, times log(1 + mean terms of a class / occurrences of the term).
    weights = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
    weights *= np.log(1 + rows.sum() / clusters / np.maximum(rows.sum(axis=0), 1))
    named = [tuple(words[at] for at in np.argsort(-row, kind="stable")[:TERMS]) for row in weights]
    labels = []
    for one in held:
        texts = [one.text[at : at + 1000] for at in range(0, min(len(one.text), 5000), 1000)]
        mean = index.inspect.vectors(texts, "document").mean(axis=0)
        labels.append(named[int(np.argmin(((found.centres - mean) ** 2).sum(axis=1)))])
    return labels


DOCS = ROOT / "target" / "benches" / "technical"
SETS = ("locomo-dev", "lihua-world")
COMPARED = ("survey", "walk", "fused")
BUDGET, GOLD = 4_000, 3
"""Tokens of a context, and the fewest gold documents of a question."""
NEAR = 0.85
"""Cosine from which two passages repeat each other."""
DRAWS, REMOVED = 5, 0.01
SINGLE = ("musique-dev", "hotpotqa-dev", "2wiki-dev", "xquad-en", "cosqa-dev", "locomo-dev", "lihua-world")
"""Sets whose questions with one or two gold documents are not about the whole."""
WHOLE = ROOT / "tests" / "data" / "questions" / "whole.jsonl"


def kept_index(name: str, source: Sources, settings: Settings) -> Index:
    """Return an index of a source in the folder of the benchmarks, built if it is missing."""
    place = WORK / f"themes-{name}"
    if not place.exists():
        Index.build(source, place, settings=settings).close()
    return Index.open(place, settings=settings)


def documentation(args: argparse.Namespace) -> Index:
    """Return an index of the technical documentation without a model, of a few documents for `--smoke`."""
    if args.smoke:
        return kept_index("smoke", ROOT / "examples" / "polar" / "articles", Settings(threads=1))
    if not args.docs.is_dir():
        sys.exit(f"{args.docs} does not exist: run `python benches/technical.py --fetch`, or name --docs")
    return kept_index("technical", args.docs, Settings())


def measure_labels(args: argparse.Namespace) -> None:
    """Publish the share of right labels."""
    with documentation(args) as index:
        documents = list(index.inspect.stored())[:: args.every]
    held = documents[::HELD_OUT]
    kept = [one for at, one in enumerate(documents) if at % HELD_OUT]
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as place:
        with Index.build(kept, Path(place) / "kept", settings=Settings()) as index:
            labels, clusters = by_themes(index, held)
            rows.append(["themes", "none", clusters, 100 * share_of(labels, held), target_of(labels, held)])
        if args.model:
            require_model()
            with Index.build(kept, Path(place) / "model", settings=Settings(embedder=MODEL)) as index:
                own, number = by_themes(index, held)
                rows.append(["themes", "MiniLM", number, 100 * share_of(own, held), ""])
                kmeans_labels = by_kmeans(index, held, clusters)
                rows.append(["k-means", "MiniLM", clusters, 100 * share_of(kmeans_labels, held), ""])
    columns = ("clusters by", "vectors", "smallest themes", "right labels", "target")
    publish([table("", columns, rows)], f"{len(held)} held-out documents of {len(documents)}.")


def target_of(labels: Sequence[Label], held: Sequence[Document]) -> str:
    """Return the target of right labels."""
    return target(100 * share_of(labels, held), least=60)


def measure_survey(args: argparse.Namespace) -> None:
    """Publish how many gold documents and words of the answer the modes have, by halves of the questions."""
    if args.model:
        require_model()
    settings = Settings(threads=1, modes="auto,fused", **({"embedder": MODEL} if args.model else {}))
    rows, repeated = [], []
    for name in SETS[: 1 if args.smoke else None]:
        data = load_dataset(require_data("polar" if args.smoke else name))
        assert data.corpus is not None
        least = 2 if args.smoke else GOLD
        questions = [one for one in data.questions if len(one.gold) >= least]
        with kept_index(
            f"{name}{'-minilm' * args.model}{'-smoke' * args.smoke}", data.corpus, settings
        ) as index:
            found = {mode: contexts_of(index, questions, mode) for mode in COMPARED}
            for half, first in (("even", 0), ("odd", 1), ("all", None)):
                own = slice(None) if first is None else slice(first, None, 2)
                values = [covered(questions[own], found[mode][own]) for mode in COMPARED]
                best = max(value[0] for value in values[1:])
                ahead = target(values[0][0] - best, least=10) if half == "all" else ""
                for mode, (documents, words) in zip(COMPARED, values, strict=True):
                    note = f"{values[0][0] - best:+.1f}, {ahead}" if mode == "survey" and ahead else ""
                    rows.append([name, half, len(questions[own]), mode, documents, words, note])
            if args.model:
                share = repetitions(index, found["survey"])
                repeated.append([name, share, target(share, most=2)])
    columns = ("set", "half", "questions", "mode", "gold documents", "words of the answer", "ahead, target")
    tables = [table(f"Percent in {BUDGET:,} tokens", columns, rows)]
    if repeated:
        tables.append(
            table(
                f"Pairs of printed passages with a cosine above {NEAR}",
                ("set", "percent", "target"),
                repeated,
            )
        )
    note = "The numbers of `survey` were chosen on all of these questions, so neither half is a test set."
    publish(tables, "Vectors are MiniLM's." if args.model else "Vectors are fitted on the corpus.", [note])


def contexts_of(index: Index, questions: Sequence[Question], mode: str) -> list[Context]:
    """Return the context of each question."""
    texts = [one.text for one in questions]
    return [row[0] for row in index.retrieve_many(texts, mode=mode, budgets=[BUDGET], threads=1)]


def covered(questions: Sequence[Question], contexts: Sequence[Context]) -> tuple[float, float]:
    """Return the mean percent of the gold documents, and of the keywords of the best answer, in contexts."""
    documents, words = [], []
    for question, context in zip(questions, contexts, strict=True):
        named = {passage.document for passage in context.passages}
        named |= {copy.document for passage in context.passages for copy in passage.also_in}
        documents.append(len(named & question.gold) / len(question.gold))
        inside = set(_core.lexical_keywords(context.text))
        answers = [set(_core.lexical_keywords(answer)) for answer in question.answers]
        shares = [len(own & inside) / len(own) for own in answers if own]
        if shares:
            words.append(max(shares))
    return 100 * float(np.mean(documents)), 100 * float(np.mean(words)) if words else 0.0


def repetitions(index: Index, contexts: Sequence[Context]) -> float:
    """Return the percent of pairs of printed passages whose vectors are near."""
    near = pairs = 0
    for context in contexts:
        texts = [passage.text for passage in context.passages]
        if len(texts) < 2:
            continue
        vectors = index.inspect.vectors(texts, "document")
        cosines = (vectors @ vectors.T)[np.triu_indices(len(texts), 1)]
        near += int((cosines > NEAR).sum())
        pairs += len(cosines)
    return 100 * near / max(pairs, 1)


def measure_stability(args: argparse.Namespace) -> None:
    """Publish how equal the themes are when documents are removed at random."""
    rows = []
    with documentation(args) as index:
        stages = index._opened.generation.stages
        owner = documents_of(stages["units"])[0][np.asarray(stages["units"]["unit_document"])]
        units, levels = partition_of(index, None)
        equal: list[list[float]] = [[] for _ in levels]
        for draw in range(DRAWS):
            gone = np.random.default_rng(draw).random(int(owner.max()) + 1) < REMOVED
            kept, others = partition_of(index, ~gone[owner])
            _, a, b = np.intersect1d(units, kept, return_indices=True)
            for at, level in ((0, others[0]), (-1, others[-1])):
                equal[at].append(adjusted_rand(levels[at][a], level[b]))
        for at, name in ((0, "widest"), (-1, "smallest")):
            own = equal[at][-DRAWS:] if len(levels) == 1 else equal[at]
            rows.append([name, int(levels[at].max()) + 1, float(np.mean(own)), min(own), max(own)])
    columns = ("themes", "number", "mean", "least", "most")
    data = f"{len(units):,} passages; {REMOVED:.0%} of the documents are removed, {DRAWS} times."
    publish([table("Adjusted Rand index", columns, rows)], data)


def partition_of(index: Index, chosen: np.ndarray | None) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the units in themes, and the theme of each on every level."""
    finder = ThemeFinder(index._opened, chosen)
    found = finder._clusters
    inside = found.leaf >= 0
    return finder._numbers[inside], [level[found.leaf[inside]] for level in found.levels]


def adjusted_rand(a: np.ndarray, b: np.ndarray) -> float:
    """Return the adjusted Rand index of two partitions: 1 if they are equal, about 0 for chance."""

    def pairs(counts: np.ndarray) -> float:
        own = counts.astype(np.float64)
        return float((own * (own - 1) / 2).sum())

    both = pairs(np.unique(a * (int(b.max()) + 1) + b, return_counts=True)[1])
    first, second = pairs(np.bincount(a)), pairs(np.bincount(b))
    chance = first * second / pairs(np.array([len(a)]))
    most = (first + second) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)


def measure_speed(args: argparse.Namespace) -> None:
    """Publish time and memory of the themes on 1 and 2 threads, each in its own process."""
    with documentation(args) as index:
        path = index.path
    places = [("technical documentation", path)]
    count = 300 if args.smoke else args.lines
    if count:
        place = WORK / f"themes-lines-{count}"
        if not place.exists():
            Index.build(lines(count), place, settings=Settings()).close()
        places.append((f"{count:,} documents of one line", place))
    rows: list[list[object]] = []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name, own in places:
            digests = set()
            for threads in (1, 2):
                passages, themes, first, cpu, again, memory, digest = pool.apply(themes_once, (own, threads))
                digests.add(digest)
                goal = f"{target(first, most=5)} s; {target(memory, most=1000)} MB" if len(rows) < 2 else ""
                same = len(digests) == 1
                rows.append([name, passages, threads, themes, first, cpu, again * 1000, memory, same, goal])
    columns = (
        "data",
        "passages",
        "threads",
        "themes",
        "s",
        "processor s",
        "again, ms",
        "MB",
        "equal bytes",
        "target",
    )
    publish([table("", columns, rows)], "No model. `MB` is the peak of the process.")


def themes_once(path: Path, threads: int) -> tuple[int, int, float, float, float, float, str]:
    """Return passages, themes, seconds, processor time, seconds of the second call, memory, and a digest."""
    with Index.open(path, settings=Settings(threads=threads)) as index:
        started, processor = time.perf_counter(), time.process_time()
        found = index.themes()
        first, own = time.perf_counter() - started, time.process_time() - processor
        started = time.perf_counter()
        index.themes()
        again = time.perf_counter() - started
    digest = hashlib.sha256(json.dumps(found.to_json()).encode()).hexdigest()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return found.passages, len(list(found.walk())), first, own, again, memory, digest


def lines(count: int) -> Iterator[Document]:
    """Yield documents of one line of made-up words."""
    rng = np.random.default_rng(1)
    for at in range(count):
        subject = int(rng.integers(0, 200))
        words = [f"word{subject}x{one}" for one in rng.integers(0, 40, 4)] + [
            f"common{int(rng.integers(0, 5000))}"
        ]
        yield Document(f"{at}", " ".join(words))


def measure_rule(args: argparse.Namespace) -> None:
    """Publish which questions the rule takes for questions about the whole."""
    rows = []
    with WHOLE.open(encoding="utf-8") as file:
        own = [json.loads(line) for line in file]
    for kind, whole in (
        ("about the whole, written with the rule", True),
        ("others, written with the rule", False),
    ):
        texts = [row["text"] for row in own if row["whole"] == whole]
        rows.append([kind, len(texts), sum(map(asks_about_the_whole, texts))])
    for name in SINGLE[: 0 if args.smoke else None]:
        texts = [one.text for one in load_dataset(require_data(name)).questions if len(one.gold) in (1, 2)]
        rows.append([f"{name}, one or two gold documents", len(texts), sum(map(asks_about_the_whole, texts))])
    publish([table("", ("questions", "number", "taken for one about the whole"), rows)], "")


def main() -> None:
    """Measure and publish."""
    parser = arguments(__doc__)
    measures: dict[str, Callable[[argparse.Namespace], None]] = {
        "labels": measure_labels,
        "survey": measure_survey,
        "stability": measure_stability,
        "speed": measure_speed,
        "rule": measure_rule,
    }
    parser.add_argument("measure", choices=measures)
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the documentation")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="labels: use every Nth document")
    parser.add_argument(
        "--lines", type=int, default=200_000, metavar="N", help="speed: documents of one line"
    )
    parser.add_argument("--model", action="store_true", help="labels, survey: also with MiniLM")
    args = parser.parse_args()
    measures[args.measure](args)


if __name__ == "__main__":
    main()
