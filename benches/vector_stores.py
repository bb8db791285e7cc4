"""An index with all-MiniLM-L6-v2 next to LanceDB, FAISS and LEANN: the same passages, the same vectors, one run.

    python benches/vector_stores.py --peers PYTHON             # an interpreter that has them; default: $KETRAG_PEERS
    python benches/vector_stores.py --set 2wiki-dev --peers PYTHON

    python3 -m venv peers
    peers/bin/pip install lancedb==0.40.0 faiss-cpu==1.15.1 leann==0.3.8

A row of a peer is a passage after its title. Its vector, and that of a question, comes from the built-in encoder and is given to
LanceDB and FAISS as it is, in f32. LEANN gets it for its graph, too, but then deletes it: it encodes again what a question needs, with
sentence-transformers from the same folder, and encodes the question itself.

Builds use all cores. Questions are asked one at a time on one core, to which the process and its children are bound, after twenty that
are not counted (two of LEANN). `question` includes its encoding, `search` does not; LEANN reports the sum. A question returns ten rows with their
texts, from ketrag-fast a context of 4,000 tokens. FAISS stores no texts: the bytes are those of its vectors.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common import PEERS, arguments, median, publish, require_data, require_model
from common import result_table as table
from ketrag_fast.eval import load_dataset
from ketrag_fast.eval.metrics import recall
from ketrag_fast.kernels.encoder import Encoder

MODES = ("bm25", "text", "fused", "walk")
BUDGET = 4000
PACKAGES = {"LanceDB": "lancedb", "FAISS": "faiss-cpu", "LEANN": "leann"}

# Each program reads the files of `write_inputs` in its first argument, and writes its index into the second.
_START = """
import json, os, statistics, sys, time
from pathlib import Path
import numpy as np
data, place, model = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
rows = [json.loads(line) for line in (data / "passages.jsonl").open(encoding="utf-8")]
vectors, asked = np.load(data / "passages.npy"), np.load(data / "questions.npy")
questions = json.loads((data / "questions.json").read_text("utf-8"))
place.mkdir()
def bind():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ["OMP_NUM_THREADS"] = "1"
def ask(search):
    found, took = [], []
    for number in range(min(WARM, len(questions))):
        search(number)
    for number in range(len(questions)):
        start = time.perf_counter()
        hits = search(number)
        took.append(1000 * (time.perf_counter() - start))
        found.append([id for id, text in hits])
    return {"ms": statistics.median(took), "found": found}
"""
_LANCEDB = """
import lancedb
from lancedb.rerankers import RRFReranker
start = time.perf_counter()
texts = lancedb.connect(place).create_table(
    "passages", [{"id": row["id"], "text": row["text"], "vector": vector} for row, vector in zip(rows, vectors)]
)
texts.create_fts_index("text", replace=True)
built = time.perf_counter() - start
bind()
import re
plain = [" ".join(re.findall(r"\\w+", question)) for question in questions]
hits = lambda query: [(row["id"], row["text"]) for row in query.limit(10).to_list()]
fusion = RRFReranker()
print(json.dumps({"build": built, "modes": {
    "full text": ask(lambda n: hits(texts.search(plain[n], query_type="fts"))),
    "vectors": ask(lambda n: hits(texts.search(asked[n]).distance_type("cosine"))),
    "hybrid": ask(lambda n: hits(texts.search(query_type="hybrid").vector(asked[n]).distance_type("cosine").text(plain[n]).rerank(fusion))),
}}))
"""
_FAISS = """
import faiss
start = time.perf_counter()
index = faiss.index_factory(vectors.shape[1], KIND, faiss.METRIC_INNER_PRODUCT)
index.train(vectors)
index.add(vectors)
faiss.write_index(index, str(place / "index.faiss"))
built = time.perf_counter() - start
bind()
faiss.omp_set_num_threads(1)
def search(n):
    return [(rows[at]["id"], rows[at]["text"]) for at in index.search(asked[n : n + 1], 10)[1][0].tolist()]
print(json.dumps({"build": built, "modes": {NAME: ask(search)}}))
"""
_LEANN = """
import pickle, re
from leann import LeannBuilder, LeannSearcher
(data / "leann.pickle").write_bytes(pickle.dumps(([row["id"] for row in rows], vectors)))
start = time.perf_counter()
builder = LeannBuilder(backend_name="hnsw", embedding_model=model, dimensions=vectors.shape[1], distance_metric="cosine", is_recompute=RECOMPUTE, is_compact=RECOMPUTE)
for row in rows:
    builder.add_text(row["text"], metadata={"id": row["id"]})
builder.build_index_from_embeddings(str(place / "passages.leann"), str(data / "leann.pickle"))
built = time.perf_counter() - start
bind()
questions = questions[:QUESTIONS]
with LeannSearcher(str(place / "passages.leann"), recompute_embeddings=RECOMPUTE, use_daemon=False) as searcher:
    asked = ask(lambda n: [(hit.id, hit.text) for hit in searcher.search(questions[n], top_k=10)])
print(json.dumps({"build": built, "modes": {NAME: {**asked, "whole": asked["ms"], "ms": None}}}))
"""
LEANN_QUESTIONS = 50
"""Questions that LEANN answers, because it encodes passages for each."""
_KETRAG = """
from ketrag_fast import Index, Settings
place.rmdir()
settings = Settings(modes=",".join(MODES), embedder="native:" + model)
with Index.build(data / "corpus.jsonl", place, settings=settings) as index:
    total = index.report.seconds
    encoded = sum(stage.seconds for stage in index.report.stages if "vectors" in stage.name)
bind()
def ask_mode(mode):
    clocks = []
    with Index.open(place, settings=Settings(threads=1)) as index:  # it remembers the vectors of its questions
        def search(number):
            context = index.retrieve(questions[number], mode=mode, budget=BUDGET)
            clocks.append(context.timings_ms["search"])
            return [(passage.document, passage.text) for passage in context.passages]
        index.retrieve("Where does a warm question come from?", mode=mode, budget=BUDGET)
        whole = ask(search)
    found = [list(dict.fromkeys(ids)) for ids in whole["found"]]
    return {"ms": statistics.median(clocks[-len(found):]), "whole": whole["ms"], "found": found}
print(json.dumps({"build": total - encoded, "total": total, "modes": {mode: ask_mode(mode) for mode in MODES}}))
"""
PROGRAMS = {
    "ketrag-fast": _KETRAG.replace("MODES", repr(MODES)).replace("BUDGET", repr(BUDGET)),
    "LanceDB": _LANCEDB,
    "FAISS, flat": _FAISS.replace("KIND", '"Flat"').replace("NAME", '"vectors, f32"'),
    "FAISS, SQ8": _FAISS.replace("KIND", '"SQ8"').replace("NAME", '"vectors, int8"'),
    "LEANN": _LEANN.replace("RECOMPUTE", "True")
    .replace("NAME", '"vectors, encoded again"')
    .replace("QUESTIONS", "20"),
    "LEANN, vectors kept": _LEANN.replace("RECOMPUTE", "False")
    .replace("NAME", '"vectors, f32"')
    .replace("QUESTIONS", ""),
}
"""If LEANN encodes passages at query time, only 20 questions are run, which is too few to report recall."""


def write_inputs(folder: Path, encoder: Encoder, questions: Sequence[str], corpus: Path) -> dict[str, float]:
    """Write passages, questions and their vectors; return what encoding and texts took."""
    rows = []
    with corpus.open(encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            title = record.get("title", "")
            rows.append(
                {"id": record["_id"], "text": f"{title}\n{record['text']}" if title else record["text"]}
            )
    (folder / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "questions.json").write_text(json.dumps(list(questions)), "utf-8")
    began = time.perf_counter()
    vectors = encoder.encode([row["text"] for row in rows])
    took = time.perf_counter() - began
    np.save(folder / "passages.npy", vectors)
    alone = []
    asked = []
    for question in questions:
        began = time.perf_counter()
        asked.append(encoder.encode([question], threads=1)[0])
        alone.append(1000 * (time.perf_counter() - began))
    np.save(folder / "questions.npy", np.array(asked))
    return {
        "encode": took,
        "question": median(alone),
        "text": sum(len(row["text"].encode()) for row in rows) / 1e6,
        "rows": len(rows),
    }


def run(name: str, python: str, folder: Path, model: Path) -> dict[str, Any]:
    """Return what a program printed, and the MB of its index. Raises RuntimeError with the last line of its errors."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        place, out, errors = Path(work) / "index", Path(work) / "out", Path(work) / "errors"
        program = _START.replace("WARM", "2" if name == "LEANN" else "20") + PROGRAMS[name]
        with out.open("w") as shown, errors.open("w") as failed:
            child = subprocess.Popen(
                [python, "-c", program, str(folder), str(place), str(model)],
                stdout=shown,
                stderr=failed,
                env=_environment(folder),
                start_new_session=True,
            )
            try:
                code = child.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)  # LEANN's server stays
        if code:
            raise RuntimeError((errors.read_text("utf-8").strip().splitlines() or [f"exit {code}"])[-1])
        result: dict[str, Any] = json.loads(out.read_text("utf-8").strip().splitlines()[-1])
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    return {**result, "MB": size / 1e6}


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of a program: no network, and nothing written outside the folder."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "HOME": str(folder)}


def versions(python: str) -> dict[str, str]:
    """Return the versions of the peers that an interpreter has."""
    program = "import json, sys\nfrom importlib import metadata\nfound = {}\nfor name in sys.argv[1:]:\n    try:\n        found[name] = metadata.version(name)\n    except metadata.PackageNotFoundError:\n        pass\nprint(json.dumps(found))"
    done = subprocess.run(
        [python, "-c", program, *PACKAGES.values()], capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def rows_of(
    name: str, result: Mapping[str, Any], inputs: Mapping[str, float], gold: Sequence[frozenset[str]]
) -> list[list[Any]]:
    """Return a row for each mode of a program."""
    rows: list[list[Any]] = []
    for mode, measured in result["modes"].items():
        total = result.get("total", result["build"] + inputs["encode"])
        whole = measured.get("whole") or measured["ms"] + inputs["question"]
        scored = [recall(found[:5], own) for found, own in zip(measured["found"], gold, strict=False) if own]
        mean = 100 * sum(value or 0.0 for value in scored) / len(scored)
        # Too few questions say nothing about recall.
        is_whole = len(measured["found"]) == len(gold)
        cells = [result["build"], total, result["MB"], measured["ms"], whole, mean if is_whole else None]
        rows.append([name, mode, *cells])
    return rows


def main() -> None:
    """Measure every program."""
    parser = arguments(__doc__)
    parser.add_argument("--set", default="musique-dev", help="question set (default: musique-dev)")
    parser.add_argument("--peers", default=PEERS, help="the interpreter that has the peers")
    args = parser.parse_args()
    corpus, model = require_data(args.set) / "corpus.jsonl", require_model()
    dataset = load_dataset(corpus.parent)
    present = versions(args.peers)
    rows: list[list[Any]] = []
    notes = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = corpus.read_text("utf-8").splitlines(keepends=True)
        corpus = folder / "corpus.jsonl"
        corpus.write_text("".join(lines[: 200 if args.smoke else None]), "utf-8")
        questions = dataset.questions[: 5 if args.smoke else None]
        inputs = write_inputs(folder, Encoder.open(model), [question.text for question in questions], corpus)
        for program in PROGRAMS:
            package = PACKAGES.get(program.partition(",")[0])
            if package is not None and package not in present:
                notes.append(f"Not measured, because it is not installed: {program}.")
                continue
            try:
                result = run(program, args.peers if package else sys.executable, folder, model)
            except RuntimeError as error:
                notes.append(f"{program} failed: {error}")
                continue
            rows += rows_of(program, result, inputs, [question.gold for question in questions])
            print(*rows[-1], file=sys.stderr, flush=True)
    columns = [
        "program",
        "search",
        "index, s",
        "with encoding, s",
        "MB on disk",
        "search, ms",
        "question, ms",
    ]
    about = (
        f"{inputs['rows']:,} passages ({inputs['text']:.1f} MB of text) and {len(questions)} questions of {args.set}. Encoding the"
        f" passages takes {inputs['encode']:.1f} s, a question {inputs['question']:.1f} ms on one core."
    )
    known = ", ".join(f"{package} {version}" for package, version in present.items())
    publish([table("", [*columns, "recall@5"], rows)], about, [*notes, f"Peers: {known}."])


if __name__ == "__main__":
    main()
