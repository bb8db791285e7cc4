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
    ("cooccurrence.py",),
    ("pagerank.py",),
    ("tokenisation.py",),
    ("builtin_embedder.py",),
    ("heuristic.py",),
)

PREFACE = """# Benchmarks

Beware first: one run on one small machine, named in each section; absolute times of other machines differ, ratios
within a section less so. Real data is a few thousand passages of public question sets, 100 questions each: one
question is one point of coverage, and differences below two or three points are noise. The constants of the walk and
of the built-in vectors were chosen on musique-train100 and hotpotqa-train100, so their rows there are those of
development sets. Generated text is harder than real text for some kernels and easier for others.

`make bench` writes this page anew. It needs the question sets in `$KETRAG_DATA` and the extra `bench`.
"""


def main() -> int:
    """Prints the report; a benchmark that fails is named, and the rest go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="comma-separated names, such as coverage,build")
    args = parser.parse_args()
    wanted = set(args.only.split(",")) if args.only else None
    print(PREFACE, flush=True)
    failed = 0
    for script, *options in RUNS:
        if wanted is not None and script.removesuffix(".py") not in wanted:
            continue
        print(f"<!-- python benches/{' '.join([script, *options])} -->", flush=True)
        done = subprocess.run([sys.executable, str(HERE / script), *options], text=True, capture_output=True)
        print(done.stdout.replace("\n# ", "\n## ").replace("# ", "## ", 1) if done.stdout else "", flush=True)
        if done.returncode:
            failed += 1
            print(f"`{script}` failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
