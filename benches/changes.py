"""One document of many is changed, or removed: seconds to the publication of the new generation."""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import header, table
from growth import texts_of
from ketrag_fast import Document, Index, Settings


def seconds(work: Callable[[], Any]) -> float:
    """How long it took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def embedding(report: Any) -> float:
    """Seconds of the stages that ask the model."""
    return float(sum(s.seconds for s in report.stages if s.how == "ran" and s.name.endswith("vectors")))


def measure(count: int, modes: str, embedder: str | None, repeat: int, folder: Path) -> list[str]:
    """A row of the table."""
    titles, texts = texts_of(count + repeat)
    documents = [Document(str(n), texts[n], titles[n]) for n in range(count)]
    # The made-up words have many tokens; a model reads the first of them.
    settings = Settings(modes=modes, threads=2, chunk_tokens=2000)
    if embedder is not None:
        settings = settings.having(embedder=embedder)
    place = folder / f"{count}-{len(list(folder.iterdir()))}"
    index = Index.build(documents, place, settings=settings)
    build = index.report.seconds
    changes, removals, asked = [], [], []
    for step in range(repeat):
        at = (2 * step + 1) * count // (2 * repeat)
        new = Document(str(at), texts[count + step], titles[count + step])
        reports: list[Any] = []
        changes.append(seconds(lambda new=new, reports=reports: reports.append(index.update(add=[new]))))
        asked.append(embedding(reports[0]) if embedder is not None else 0.0)
        removals.append(seconds(lambda at=at: index.update(remove=str(at))))
    shutil.copytree(place, folder / "anew")
    with Index.build([], folder / "anew", rebuild=True) as anew:
        equal = "yes" if anew.digest == index.digest else "NO"
    shutil.rmtree(folder / "anew")
    index.close()
    shutil.rmtree(place)
    change = statistics.median(changes)
    return [
        f"{count:,}",
        modes,
        "none" if embedder is None else embedder.split(":")[0],
        f"{build:.2f}",
        f"{change:.2f}",
        f"{build / change:.1f}",
        f"{statistics.median(removals):.2f}",
        f"{statistics.median(asked):.2f}" if embedder is not None else "",
        equal,
    ]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", default="8000,100000")
    parser.add_argument("--modes", default="bm25,walk auto", help="lists of modes, with blanks between")
    parser.add_argument("--model", help="a model's folder: 8,000 documents with its vectors, too")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in map(int, args.documents.split(",")):
            rows += [measure(count, modes, None, args.repeat, folder) for modes in args.modes.split()]
        if args.model:
            rows.append(measure(8000, "auto", f"native:{args.model}", args.repeat, folder))
    header(
        "One document changed, or removed",
        [
            "Documents of 90 made-up words, one unit each, handed over by a program; 2 threads.",
            f"Medians of {args.repeat} changes and removals, up to the publication and its opening.",
            "`auto` without a model also fits a vector space on all documents (stages `vectors`, `keywords`): "
            "that is made anew.",
            "Equal: to the byte, to a build of the same documents with every stage run.",
        ],
    )
    columns = ["documents", "modes", "embedder", "build s", "change s", "build / change", "removal s"]
    table([*columns, "embedding s", "equal"], rows)


if __name__ == "__main__":
    main()
