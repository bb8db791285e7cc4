"""Where each thing lies in an index folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ketrag_fast.errors import IndexIncompatible, IndexMissing, ReadOnly
from ketrag_fast.storage.durable import make_folder
from ketrag_fast.storage.io_errors import unreadable, writing

FORMAT = 1
"""The format of everything in the folder; an index of another format is refused."""

_GENERATION = re.compile(r"gen-(\d{6,})")
_OWN = re.compile(
    r"index\.(sqlite(-wal|-shm|-journal)?|lock|owner|id(\.[0-9a-f]{32}\.tmp)?)|CURRENT(\.tmp)?|work|allowed|gen-\d{6,}|model(\.json)?"
)


def incompatible(path: Path, version: int) -> IndexIncompatible:
    """Return the error for an index of another format."""
    return IndexIncompatible(
        f"{path} has format {version}; this version of ketrag-fast reads format {FORMAT}",
        hint="use the version that wrote it, or build the index again in another folder",
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """The names inside one index folder."""

    root: Path

    @property
    def tables(self) -> Path:
        """What must be transactional."""
        return self.root / "index.sqlite"

    @property
    def current(self) -> Path:
        """The name of the generation that readers open."""
        return self.root / "CURRENT"

    @property
    def work(self) -> Path:
        """Finished stages of a build that is not published yet."""
        return self.root / "work"

    @property
    def allowed(self) -> Path:
        """Indexes of the documents that somebody may see."""
        return self.root / "allowed"

    @property
    def lock(self) -> Path:
        """Held by the one builder."""
        return self.root / "index.lock"

    @property
    def owner(self) -> Path:
        """Who holds the lock."""
        return self.root / "index.owner"

    @property
    def identity(self) -> Path:
        """A random number that confirmations of endpoints belong to; neither copied nor bundled by us."""
        return self.root / "index.id"

    @property
    def model(self) -> Path:
        """The folder of the embedding model, where it came with a bundle."""
        return self.root / "model"

    @property
    def model_record(self) -> Path:
        """Of that model: the name under which the index knows it, its fingerprint, the files' hashes."""
        return self.root / "model.json"

    def generation(self, number: int) -> Path:
        """The folder of one generation."""
        return self.root / f"gen-{number:06}"

    def generations(self) -> list[int]:
        """The numbers of the generation folders, ascending."""
        try:
            names = [entry.name for entry in self.root.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(error, self.root) from error
        return sorted(int(m[1]) for name in names if (m := _GENERATION.fullmatch(name)))

    def is_generation(self) -> bool:
        """Whether the folder is one of the generations of an index, and no index."""
        return _GENERATION.fullmatch(self.root.name) is not None and (self.root / "manifest.json").is_file()

    def is_own(self, name: str) -> bool:
        """Whether a name is one of those that an index folder has."""
        return _OWN.fullmatch(name) is not None

    def exists(self) -> bool:
        """Whether there is an index (or the beginning of one)."""
        return self.tables.is_file() or bool(self.generations())

    def require(self) -> None:
        """IndexMissing unless there is an index."""
        if not self.exists():
            raise IndexMissing(
                f"there is no index in {self.root}",
                hint="build one with `ketrag index SOURCE...`, or name its folder with -i/--index",
            )

    def create(self) -> None:
        """Makes the folder, or takes an empty one, for its owner alone; a folder with other things in it is
        left alone, and so is who may enter an index that is there.
        """
        with writing(self.root):
            try:
                make_folder(self.root, 0o700)
            except FileExistsError:
                if not self.root.is_dir():
                    raise ReadOnly(
                        f"{self.root} is a file, or in one", hint="the index must be a folder of its own"
                    ) from None
                if not self.exists():
                    self._refuse_others()
                    self.root.chmod(0o700)  # an empty folder that somebody made; an index stays as it is
            self.work.mkdir(mode=0o700, exist_ok=True)

    def _refuse_others(self) -> None:
        others = sorted(entry.name for entry in self.root.iterdir() if not _OWN.fullmatch(entry.name))
        if others:
            raise ReadOnly(
                f"{self.root} is not an index and holds other files ({others[0]}, ...)",
                hint="name a new or empty folder with -i/--index",
            )
