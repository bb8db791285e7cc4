"""The names of files in an index folder."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from ketrag_fast.errors import IndexIncompatible, IndexMissing, ReadOnly
from ketrag_fast.records import dataclass
from ketrag_fast.storage.durable import make_folder
from ketrag_fast.storage.io_errors import unreadable, writing

FORMAT = 5
"""The format of everything in the folder; an index of another format is refused."""
SHORT_HASH = 16
"""Bytes of a document's hash in a generation. The tables compare all 32 with what they read."""

MERGE = "merge.json"
"""File in `work/` that lists the parts of an unfinished merge."""

_GENERATION = re.compile(r"gen-(\d{6,})")
_LONGEST = 100
"""Maximum length in characters of a generation's name in CURRENT."""
_OWN = re.compile(
    r"index\.(sqlite(-wal|-shm|-journal)?|lock|owner|id(\.[0-9a-f]{32}\.tmp)?)|CURRENT(\.tmp)?|work|allowed"
    r"|\.gitignore|sources\.stamps(\.tmp)?|update\.slow|gen-\d{6,}|model(\.json)?"
)


def incompatible(path: Path, version: int) -> IndexIncompatible:
    """Return the error for an index, or a bundle of one, of another format."""
    return IndexIncompatible(
        f"{path} has format {version}; this version of ketrag-fast reads format {FORMAT}",
        hint="use the version that wrote it, or build the index again in another folder",
    )


class _Inside:
    """A file or folder with a fixed name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: Layout, _: type[Layout]) -> Path:
        return layout.root / self._name


@dataclass(frozen=True)
class Layout:
    """The names inside one index folder."""

    root: Path

    tables = _Inside("index.sqlite")
    """The SQLite file of everything transactional."""
    current = _Inside("CURRENT")
    """The file that names the current generation."""
    gitignore = _Inside(".gitignore")
    """The file by which Git ignores the index."""
    work = _Inside("work")
    """The folder of finished stages of an unpublished build."""
    stamps = _Inside("sources.stamps")
    """A file of earlier versions with sizes and times of the source files."""
    slow_update = _Inside("update.slow")
    """The empty file that marks an update before a query that took too long; never copied or bundled."""
    allowed = _Inside("allowed")
    """The folder of indexes built for `allow` conditions."""
    lock = _Inside("index.lock")
    """The lock file of the single builder."""
    owner = _Inside("index.owner")
    """The file that names the process holding the lock."""
    identity = _Inside("index.id")
    """The random number to which endpoint confirmations are tied; never copied or bundled."""
    model = _Inside("model")
    """The folder of the embedding model, if a bundle contained it."""
    model_record = _Inside("model.json")
    """The record of that model: its name in the index, its fingerprint, the files' hashes."""

    def generation(self, number: int) -> Path:
        """Return the folder of one generation."""
        return self.root / f"gen-{number:06}"

    def number(self, name: str) -> int | None:
        """Return the generation number in a folder name; None if the name is not that of a generation."""
        found = _GENERATION.fullmatch(name)
        number = int(found[1]) if found and len(name) <= _LONGEST else None
        return number if number is not None and self.generation(number).name == name else None

    def generations(self) -> list[int]:
        """Return the numbers of the generation folders, ascending."""
        try:
            names = [entry.name for entry in self.root.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(error, self.root) from error
        return sorted(int(m[1]) for name in names if (m := _GENERATION.fullmatch(name)))

    def is_generation(self) -> bool:
        """Whether the folder is a generation inside an index, not an index itself."""
        return _GENERATION.fullmatch(self.root.name) is not None and (self.root / "manifest.json").is_file()

    def is_own(self, name: str) -> bool:
        """Return whether a file or folder name belongs to the index layout."""
        return _OWN.fullmatch(name) is not None

    def exists(self) -> bool:
        """Whether the folder contains an index, possibly unfinished."""
        return self.tables.is_file() or bool(self.generations())

    def require(self, hint: str | None = None) -> None:
        """Raise IndexMissing with this hint unless the folder contains an index."""
        if not self.exists():
            usual = "build one with `ketrag index SOURCE...`, or name its folder with -i/--index"
            raise IndexMissing(f"no index in {self.root}", hint=hint or usual)

    def create(self) -> None:
        """Create the folder, or use an empty one, with access for its owner only.

        A folder with other files is refused; permissions of an existing index stay as they are.
        """
        with writing(self.root):
            try:
                make_folder(self.root, 0o700)
            except FileExistsError:
                if not self.root.is_dir():
                    raise ReadOnly(
                        f"{self.root} is a file, or in one", hint="name a folder with -i/--index"
                    ) from None
                if not self.exists():
                    others = sorted(path.name for path in self.root.iterdir() if not self.is_own(path.name))
                    if others:
                        raise ReadOnly(
                            f"{self.root} is not an index and holds other files ({others[0]}, ...)",
                            hint="name a new or empty folder with -i/--index",
                        ) from None
                    self.root.chmod(0o700)  # only a new index: an existing one keeps its permissions
            with suppress(FileExistsError), self.gitignore.open("x", encoding="utf-8", newline="\n") as file:
                file.write("*\n")
            self.work.mkdir(mode=0o700, exist_ok=True)
