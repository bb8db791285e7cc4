"""Makes digest.json: the digests of a small fixed corpus. Run it when an index changes on purpose.

python -m tests.golden.make_digest
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ketrag_fast import Settings
from ketrag_fast.building.runner import build
from ketrag_fast.systems.planning import stages_for
from ketrag_fast.types import Document

DIGESTS = Path(__file__).with_name("digest.json")
_MODES = "auto,knn"
"""All that there were when these digests were made: modes of later systems do not change them."""
BUILDS: Mapping[str, tuple[Mapping[str, Any], tuple[str, ...]]] = {
    "default": ({}, ()),
    # All that a build made before it could be asked for less, core chunks that nobody reads among it: the
    # same digest as then.
    "default, as it was": ({"modes": _MODES}, ("core",)),
    "ket-rag": ({"system": "ket-rag", "modes": _MODES}, ("core",)),
    "bm25 alone": ({"modes": "bm25"}, ()),
}
"""Settings, and stages that no mode asks for."""


def digest_of(name: str, folder: Path) -> str:
    """That of one of the builds, made in `folder`."""
    given, extra = BUILDS[name]
    planner = partial(stages_for, extra=extra)
    return build(folder, documents(), planner, Settings(**given)).digest


def documents() -> list[Document]:
    """Sixty little texts with names, numbers, several scripts and repetitions, made by rule."""
    ships = ("Fram", "Maud", "Aurora", "Nimrod", "Discovery", "Terra Nova")
    people = ("Roald Amundsen", "Fridtjof Nansen", "Ernest Shackleton", "Robert Scott", "Tom Crean")
    found = []
    for n in range(60):
        ship, who, other = ships[n % 6], people[n % 5], people[(n * 3 + 1) % 5]
        text = (
            f"{who} took the {ship} south in {1890 + n}. The crew of {n + 7} wintered near Cape {ship}. "
            f"{other} wrote that the ice held them for {n % 9 + 2} months; the {ship} was not crushed. "
            "北京 and Tromsø sent telegrams 😀."
        )
        found.append(Document(f"doc-{n:02}", text * (1 + n % 3), f"{ship} ({1890 + n})"))
    return found


def main() -> None:
    """Writes the file."""
    made = {}
    for name in BUILDS:
        with tempfile.TemporaryDirectory() as folder:
            made[name] = digest_of(name, Path(folder) / "index")
    DIGESTS.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
