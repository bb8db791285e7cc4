"""Makes digest.json: the digests of a small fixed corpus. Run it when an index changes on purpose.

python -m tests.golden.make_digest
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ketrag_fast import Index, Settings
from ketrag_fast.types import Document

DIGESTS = Path(__file__).with_name("digest.json")
SYSTEMS = ("default", "ket-rag-p", "ket-rag-u-150")


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
    for system in SYSTEMS:
        with (
            tempfile.TemporaryDirectory() as folder,
            Index.build(documents(), Path(folder) / "index", settings=Settings(system=system)) as index,
        ):
            made[system] = index.digest
    DIGESTS.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
