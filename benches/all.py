"""Run benchmarks one after the other and write their sections into benches/BENCHMARKS.md (`make bench`).

Benchmarks that are not selected, or whose model is missing, keep their section with its date and machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from common import ROOT
from page import merged, page, sections_of
from stamps import stamp

HERE = Path(__file__).resolve().parent
PAGE = ROOT / "benches" / "BENCHMARKS.md"
RUNS = (
    ("coverage.py",),
    ("retrieval.py",),
    ("build.py",),
    ("changes.py", "--documents", "300000", "--modes", "bm25,walk"),
    ("build_on_demand.py", "--documents", "100000,300000", "--modes", "auto"),
    ("opening.py",),
    ("hardening.py",),
    ("startup.py",),
    ("documents.py",),
    ("sections.py",),
    ("size.py",),
    ("growth.py",),
    ("walk_growth.py",),
    ("filters.py",),
    ("merging.py",),
    ("walk_quality.py",),
    ("concepts.py",),
    ("noderag.py",),
    ("cgrag.py", "--part", "graph,question"),
    ("cooccurrence.py",),
    ("pagerank.py",),
    ("graph_kernels.py",),
    ("tokenisation.py",),
    ("heuristic.py",),
    ("fold.py",),
    ("local_search.py",),
    ("skeleton.py",),
    ("skeleton_partial.py",),
    ("serving.py",),
    ("serving.py", "--large", "100000"),
)
WITH_MODEL = (
    ("changes.py", "--model", "{model}"),
    ("encoder.py", "{model}"),
    ("encoder_peers.py", "{model}"),
    ("encoder_build.py", "{model}"),
    ("encoder_build.py", "{model}", "--short"),
    ("embedding.py", "--model", "{model}"),
    ("rebuild.py", "--embedder", "sentence-transformers:{model}"),
    ("ann.py", "--products"),
    ("ann.py", "--knn", "--links", "24", "--build-width", "300"),
    ("ann.py",),
    ("skeleton.py", "--embedder", "native:{model}"),
    ("coverage.py", "--embedder", "native:{model}", "--budgets", "12000,6000,3000"),
    ("serving.py", "--model", "{model}"),
    ("concepts.py", "--part", "coverage", "--embedder", "native:{model}"),
    ("cgrag_training.py", "--embedder", "native:{model}"),
    (
        "estimates.py",
        "--embedder",
        "native:{model}",
        "--sets",
        "polar,musique-train100",
        "--parts",
        "estimates,sweep",
    ),
)
"""With a model's folder and the extras `embed` and `ann`; another forty minutes."""
WITH_LLM = (
    ("estimates.py", "--llm", "tiny", "--parts", "estimates,formula", "--sets", "polar"),
    ("extraction_speed.py", "--chunks", "8"),
)

"""With the extra `llm`: it makes its own models of random weights; an hour."""

ATTACKS = (("hostile.py",), ("soak.py",), ("serving.py", "--seconds", "4", "--overload", "600"))
"""Not of speed: what endpoints, the disk, kills and limits can do; half an hour of two cores, Linux alone."""

PREFACE = """# Benchmarks

Each section is one run on one small machine and names the machine and the date. Absolute times differ on other machines;
ratios within a section differ less. The real data is a few thousand passages from public question sets. Sets named
`...100` have 100 questions: one question is one percentage point, and differences below three points are noise. The constants
of the walk and of the built-in vectors were tuned on these sets, so scores there are development scores. Generated text
is harder than real text for some kernels and easier for others.

A section marked *stale* was measured before a change of the code that it depends on. `python benches/stamps.py --check` lists
these sections, and `make bench` measures them again. The column `target` shows the project's goal and by how much a result
misses it (`benches/targets.py`).

`make bench` runs the sections that need no model. `python benches/all.py --model FOLDER --llm` runs all of them (extras
`embed`, `ann`, `llm`; FOLDER holds all-MiniLM-L6-v2), `--attacks` the attacks, `--only NAME,NAME` a selection. Question sets
are read from `$KETRAG_DATA`.
"""


def run(command: list[str], model: str | None) -> str:
    """The section that a benchmark prints. Raises RuntimeError with its last line where it fails."""
    done = subprocess.run(
        [sys.executable, str(HERE / command[0]), *command[1:]], text=True, capture_output=True
    )
    if done.returncode:
        raise RuntimeError("".join(done.stderr.strip().splitlines()[-1:]) or f"exit {done.returncode}")
    text = done.stdout.replace(model, "FOLDER") if model else done.stdout
    return text.replace("\n# ", "\n## ").replace("# ", "## ", 1).strip()


def main() -> int:
    """Write the page. A benchmark that fails is named and keeps its section; the rest continue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", help="comma-separated names, such as coverage,build; none makes no section anew"
    )
    parser.add_argument("--model", help="folder of a sentence-transformers model: adds what needs one")
    parser.add_argument("--llm", action="store_true", help="adds what needs llama-cpp-python")
    parser.add_argument("--attacks", action="store_true", help="adds what attacks calls and indexes")
    parser.add_argument("--compiled", default="not said", help="how llama.cpp was compiled, for the page")
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args()
    wanted = set(args.only.split(",")) if args.only else None
    runs = RUNS + (WITH_MODEL if args.model else ()) + (WITH_LLM if args.llm else ())
    runs += ATTACKS if args.attacks else ()
    order = [_shown(command) for command in RUNS + WITH_MODEL + WITH_LLM + ATTACKS]
    old = sections_of(args.page.read_text("utf-8")) if args.page.is_file() else {}
    new: dict[str, str] = {}
    failed = 0
    for script, *given in runs:
        if wanted is not None and script.removesuffix(".py") not in wanted:
            continue
        name = _shown((script, *given))
        print(name, file=sys.stderr, flush=True)
        options = [option.format(model=args.model) for option in given]
        if script == "extraction_speed.py":
            options += ["--compiled", args.compiled]
        try:
            new[name] = run([script, *options], args.model)
        except RuntimeError as error:
            failed += 1
            print(f"  failed: {error}", file=sys.stderr, flush=True)
            continue
        fresh = args.page.with_suffix(
            ".tmp"
        )  # after each one, so that nothing is lost when the next is stopped
        fresh.write_text(page(PREFACE, merged(old, new, order)), "utf-8")
        fresh.replace(args.page)
        if args.page == PAGE:
            stamp(f"benches/BENCHMARKS.md: {name}")
    if not new:
        args.page.write_text(page(PREFACE, merged(old, new, order)), "utf-8")
    return 1 if failed else 0


def _shown(command: tuple[str, ...]) -> str:
    return "python benches/" + " ".join(option.format(model="FOLDER") for option in command)


if __name__ == "__main__":
    sys.exit(main())
