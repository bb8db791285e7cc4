"""Runs every benchmark in turn and prints one report: `make bench` writes it to benches/BENCHMARKS.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNS = (
    ("coverage.py",),
    ("retrieval.py",),
    ("build.py",),
    ("startup.py",),
    ("size.py",),
    ("growth.py",),
    ("walk_growth.py",),
    ("walk_forms.py",),
    ("cooccurrence.py",),
    ("pagerank.py",),
    ("tokenisation.py",),
    ("heuristic.py",),
    ("fold.py",),
    ("local_search.py",),
    ("skeleton.py",),
    ("skeleton_partial.py",),
)
WITH_MODEL = (
    ("encoder.py", "{model}", "--all"),
    ("encoder_peers.py", "{model}"),
    ("encoder_build.py", "{model}"),
    ("embedding.py", "--model", "{model}"),
    ("rebuild.py", "--embedder", "sentence-transformers:{model}"),
    ("ann.py", "--knn"),
    ("skeleton.py", "--embedder", "native:{model}"),
    ("estimates.py", "--embedder", "native:{model}", "--sets", "musique-train100"),
)
"""With a model's folder and the extras `embed` and `ann`; another forty minutes."""
WITH_LLM = (("extraction_speed.py", "--chunks", "8"),)
"""With the extra `llm`: it makes its own models of random weights; ten minutes."""

PREFACE = """# Benchmarks

Beware first: one run on one small machine, named in each section; absolute times of other machines differ, ratios
within a section less so. Real data is a few thousand passages of public question sets, 100 questions each: one
question is one point of coverage, and differences below two or three points are noise. The constants of the walk and
of the built-in vectors were chosen on musique-train100 and hotpotqa-train100, so their rows there are those of
development sets. Generated text is harder than real text for some kernels and easier for others.

`make bench` writes this page anew, as far as no model is needed; `python benches/all.py --model FOLDER --llm` adds the
rest (extras `embed`, `ann`, `llm`; FOLDER is all-MiniLM-L6-v2's). It needs the question sets in `$KETRAG_DATA`.
"""


def main() -> int:
    """Prints the report; a benchmark that fails is named, and the rest go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="comma-separated names, such as coverage,build")
    parser.add_argument("--model", help="folder of a sentence-transformers model: adds what needs one")
    parser.add_argument("--llm", action="store_true", help="adds what needs llama-cpp-python")
    args = parser.parse_args()
    runs = RUNS + (WITH_MODEL if args.model else ()) + (WITH_LLM if args.llm else ())
    wanted = set(args.only.split(",")) if args.only else None
    print(PREFACE, flush=True)
    failed = 0
    for script, *given in runs:
        options = [option.format(model=args.model) for option in given]
        if wanted is not None and script.removesuffix(".py") not in wanted:
            continue
        shown = " ".join([script, *(option.format(model="FOLDER") for option in given)])
        print(f"<!-- python benches/{shown} -->", flush=True)
        done = subprocess.run([sys.executable, str(HERE / script), *options], text=True, capture_output=True)
        text = done.stdout.replace(args.model, "FOLDER") if args.model else done.stdout
        print(text.replace("\n# ", "\n## ").replace("# ", "## ", 1), flush=True)
        if done.returncode:
            failed += 1
            print(f"`{script}` failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
