"""How much of the package a search and an edit enter: the modules and functions on their way.

python -m tests.unit.test_entered    # prints the numbers of this repository's state
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import copytree

from tests.process import POLAR, environment

COUNT = """
import sys
from ketrag_fast.apps.cli.main import main
entered, decoded = set(), 0
def look(frame, event, argument):
    global decoded
    if event == "c_call" and argument.__name__ == "decode_text":
        decoded += 1
    name = frame.f_globals.get("__name__", "")
    code = frame.f_code
    if event == "call" and name.startswith("ketrag_fast") and not code.co_name.startswith("<"):
        entered.add((name, code.co_qualname))
sys.setprofile(look)
try:
    main(sys.argv[1:])
finally:
    sys.setprofile(None)
    print(len({name for name, _ in entered}), len(entered), decoded, file=sys.stderr)
"""


def entered(*argv: str) -> tuple[int, int, int]:
    """Return the numbers of modules and functions that a command enters, and of decoded texts."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *argv], capture_output=True, text=True, check=True, env=environment()
    )
    modules, functions, decoded = map(int, done.stderr.splitlines()[-1].split())
    return modules, functions, decoded


def measured(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return the numbers for a search, and for a search after an edit of one Markdown file."""
    articles, index = folder / "articles", str(folder / "index")
    copytree(POLAR / "articles", articles)
    entered("index", str(articles), "-i", index, "-q")
    search = ("search", "the ship in the ice", "-i", index)
    entered(*search)
    unchanged = entered(*search)
    file = sorted(articles.glob("*.md"))[10]
    file.write_text(f"{file.read_text()}\nThe kestrel was seen.\n")
    return {"unchanged": unchanged, "edited": entered(*search)}


def test_a_search_and_an_edit_enter_few_functions(tmp_path: Path) -> None:
    found = measured(tmp_path)
    modules, functions, decoded = found["unchanged"]
    assert modules <= 70 and functions <= 477 and decoded == 0, found
    modules, functions, decoded = found["edited"]
    assert modules <= 116 and functions <= 877 and decoded == 1, found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for what, numbers in measured(Path(place)).items():
            print(what, "modules, functions, decoded texts:", *numbers)
