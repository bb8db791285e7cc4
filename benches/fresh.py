"""Edits before a query: the processor time of a whole `ketrag search`, unchanged and after an edit.

python benches/fresh.py                                   # 56 articles, this repository, 10,000 notes
python benches/fresh.py --touch 100000                    # files that were touched without a change, too
python benches/fresh.py --ketrag /other/.venv/bin/ketrag  # another version
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

from common import ROOT, arguments, median, publish
from common import result_table as table
from generated import documents

TARGETS = {"articles": 0.05, "repository": 0.10, "notes": 0.15}
UNCHANGED = 0.15


def processor_time(*command: str) -> tuple[float, str]:
    """Return the seconds of the processor that a command takes, in all its processes, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3):  # 3: some files of the repository are broken on purpose
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return sum(after[:2]) - sum(before[:2]), done.stdout


def repository(place: Path) -> None:
    """Write the files of this repository's last commit."""
    place.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "x", "-C", str(place)], input=archive, check=True)
    subprocess.run(["git", "init", "-q", str(place)], check=True)


def notes(place: Path, count: int) -> None:
    """Write generated notes, a hundred to a folder."""
    for number, document in enumerate(documents(count)):
        folder = place / f"{number // 100:04}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{document.id}.md").write_text(f"# {document.title}\n\n{document.text}\n")


def collections(work: Path, count: int) -> Iterator[tuple[str, Path]]:
    """Write the folders, and yield each with its name."""
    copytree(ROOT / "examples" / "polar" / "articles", work / "articles")
    yield "articles", work / "articles"
    repository(work / "repository")
    yield "repository", work / "repository"
    notes(work / "notes", count)
    yield "notes", work / "notes"


def measure(ketrag: str, folder: Path, runs: int) -> tuple[int, float, float]:
    """Return the number of files, and the medians of the time unchanged and after an edit."""
    index = str(folder.with_name(folder.name + "-index"))
    processor_time(ketrag, "index", str(folder), "-i", index, "-q")
    files = sorted(path for path in folder.rglob("*.md") if "/." not in path.as_posix())
    file, plain, edited = files[len(files) // 2], [], []
    text = file.read_text("utf-8")
    for run in range(runs):
        plain.append(processor_time(ketrag, "search", "the ship in the ice", "-i", index)[0])
        word = f"zq{time.time_ns():x}"
        file.write_text(f"{text}\nThe {word} was seen.\n", "utf-8")
        seconds, output = processor_time(ketrag, "search", word, "-i", index)
        if word not in output:
            raise SystemExit(f"run {run}: the edit was not found in {folder}")
        edited.append(seconds)
    count = sum(path.is_file() and "/." not in path.as_posix() for path in folder.rglob("*"))
    return count, median(plain), median(edited)


def touched(ketrag: str, work: Path, count: int) -> list[float]:
    """Return the times of a search before all files are touched without a change, and of the next two."""
    folder, index = work / "touched", str(work / "touched-index")
    notes(folder, count)
    processor_time(ketrag, "index", str(folder), "-i", index, "-q")
    found = [processor_time(ketrag, "search", "ice", "-i", index)[0]]
    for path in folder.rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return [*found, *(processor_time(ketrag, "search", "ice", "-i", index)[0] for _ in range(2))]


def main() -> None:
    """Print the tables."""
    parser = arguments(__doc__)
    parser.add_argument("--ketrag", default=str(Path(sys.executable).with_name("ketrag")))
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--touch", type=int, default=0, help="number of files to touch without a change")
    given = parser.parse_args()
    count, runs = (100, 1) if given.smoke else (given.notes, given.runs)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    with tempfile.TemporaryDirectory() as place:
        os.environ["PYTHONPYCACHEPREFIX"] = f"{place}/bytecode"
        work, rows = Path(place), []
        for name, folder in collections(work, count):
            files, plain, edited = measure(given.ketrag, folder, runs)
            added = f"{edited - plain:.2f}"
            rows.append([name, f"{files:,}", f"{plain:.2f}", f"{edited:.2f}", added, f"{TARGETS[name]:.2f}"])
        columns = ["collection", "files", "unchanged", "after an edit", "added", "target"]
        tables = [table("Processor seconds of `ketrag search`", columns, rows)]
        if given.touch:
            times = [[f"{seconds:.2f}" for seconds in touched(given.ketrag, work, given.touch)]]
            columns = ["before", "first search after", "second search after"]
            tables.append(table(f"{given.touch:,} files touched without a change", columns, times))
    publish(tables, "this repository and generated notes", [f"target of an unchanged search: {UNCHANGED} s"])


if __name__ == "__main__":
    main()
