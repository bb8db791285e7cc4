"""What people do to an index: each on a small one that has texts, kept vectors, kept replies and a history.

A `Change` has the folder as it was before (`start`), what is done to it (`make`), and the right digest and
answers of both sides. Whatever happens meanwhile, a reader finds one of the two sides.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from ketrag_fast import Document, Index, Settings
from ketrag_fast.building.merge import MERGE
from ketrag_fast.errors import Cancelled, IndexMissing
from ketrag_fast.index.health import examine
from ketrag_fast.types import BuildReport
from tests import small_model
from tests.soak.attempts import fault
from tests.soak.small import has_delta, small
from tests.soak.subject import remove
from tests.support.changed import bundle, reembed
from tests.support.copied import copy_confirmed

SECRET: Final = "Quillerquist"
"""A word of the document that is purged, and of no other."""
QUESTIONS: Final = ("Who led the Fram north?", "Which harbour did Captain Nansen2 sail from?")
MODES: Final = ("walk", "fused", "ket")
DELTAS: Final = ("delta", "second delta", "fold", "purge of a delta")
"""Changes of an index that becomes or is one with a delta."""
PLAIN: Final = (*DELTAS, "runs")
"""Changes of an index of the modes that deltas and bounded builds are for."""
TEXT: Final = (
    "---\nship: {0}\n---\n# Ship {0}\n\nCaptain Nansen{0} led the Ship{0} north to Greenland.\n\n"
    "The Fram{0} sailed from Harbour{0} with Captain Nansen{0} in 19{0}0. {1}\n"
)
UNSECTIONED: Final = TEXT.replace("# Ship {0}\n\n", "")
"""Without a heading: a delta holds no sections."""
Answers = list[tuple[str, tuple[str, ...]]]


class Change:
    """One kind of change, of an index in `PLACE/index`; PLACE may hold a bundle beside it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.source = folder / "docs"
        sizes = small_model.config(max_position_embeddings=66)
        self.model = small_model.save(folder / "model", sizes)
        self.other = small_model.save(folder / "other", sizes, seed=1)
        self.modes: tuple[str, ...] = MODES
        self.text = UNSECTIONED if kind in PLAIN else TEXT
        self.settings = Settings(
            threads=1, modes="auto,ket", llm="heuristic", embedder=f"native:{self.model}", chunk_tokens=40
        )
        if kind in PLAIN:
            self.modes = ("walk", "bm25")
            self.settings = Settings(threads=1, modes="bm25,walk", chunk_tokens=40)
        self.start = folder / "start"
        self.answers: dict[str, Answers] = {}
        self.old: str | None = None
        self.new: set[str] = set()
        """Digests of the new side: one, or with a delta that and the one of the same documents without it."""
        self._prepare()

    # ------------------------------------------------------------ the two sides

    def _prepare(self) -> None:
        self.source.mkdir()
        self.start.mkdir()
        for number in range(4):
            self._write(number)
        (self.source / "secret.md").write_text(self.text.format(9, f"{SECRET} hid it."))
        if self.kind not in ("index", "runs"):
            self._history(self.start / "index")
        done = self.folder / "done"
        BEFORE.get(self.kind, lambda _: None)(self)
        if self.kind not in ("index", "runs", "merge", "unbundle"):
            self.old = self.digest(self.start / "index")
        copy_confirmed(self.start, done)
        self.make(done)
        self.new = {self.digest(done / "index")}
        if self.kind in DELTAS:
            self._fold(done / "index")
        assert self.kind == "bundle" or self.old not in self.new  # else the sides could not be told apart
        remove(done)

    def _fold(self, done: Path) -> None:
        """Learn the digests of both sides without a delta, and of the change over a folded start.

        An attempt may fold what it finds before it repeats the change: the delta then has another base, and
        the index another digest, with the same answers.
        """
        assert has_delta(done) == (self.kind in ("delta", "second delta"))
        changed = [self.digest(done)]
        Index.build([], done, settings=self.settings).close()
        changed.append(self.digest(done))
        folded = self.folder / "folded"
        copy_confirmed(self.start, folded)
        assert has_delta(folded / "index") == (self.kind != "delta")
        _update(folded, fold=True)
        self.digest(folded / "index")
        self.make(folded)
        changed.append(self.digest(folded / "index"))
        assert all(self.answers[digest] == self.answers[changed[0]] for digest in changed)
        self.new.update(changed)
        remove(folded)

    def _write(self, number: int, more: str = "") -> None:
        (self.source / f"a{number}.md").write_text(self.text.format(number, more))

    def _history(self, index: Path) -> None:
        """Two generations, a removed document, and one that a program gave."""
        given = Document("given", self.text.format(7, "A program said so."))
        with Index.build([self.source, given], index, settings=self.settings) as opened:
            opened.update(remove="a3.md")

    def digest(self, index: Path) -> str:
        """Of an index; its answers count as right from now on."""
        with Index.open(index) as opened:
            self.answers[opened.digest] = self.ask(opened)
            return opened.digest

    def ask(self, index: Index) -> Answers:
        """Answers of some modes."""
        found = []
        for question in QUESTIONS:
            for mode in self.modes:
                context = index.retrieve(question, mode=mode, budget=300)
                found.append((context.text, tuple(p.document for p in context.passages)))
        return found

    def restore(self, place: Path) -> None:
        """The folder as it was before."""
        remove(place)
        copy_confirmed(self.start, place)

    def make(self, place: Path) -> Any:
        """The change itself; the report of an update."""
        with small() if self.kind in PLAIN else nullcontext():
            return MAKE[self.kind](self, place)

    # ------------------------------------------------------------ what may be found

    def found(self, place: Path, *, done: bool) -> str:
        """Which side a reader finds: "old", "new" or "missing"; or a fault. `done`: the change ended."""
        try:
            with Index.open(place / "index") as index:
                if index.digest not in self.answers:
                    return fault(f"an index of neither side is opened: generation {index.generation}")
                if self.ask(index) != self.answers[index.digest]:
                    return fault("the opened index answers wrongly")
                side = "new" if index.digest in self.new else "old"
        except IndexMissing:
            side = "missing" if self.old is None else fault("the index is gone")
        if done and side != "new":
            return fault(f"the change had ended, and the index is {side}")
        said = self.doctor(place, done=done) if side != "missing" else None
        if said is None and self.kind == "bundle":
            said = self.bundles(place, done=done)
        if said is None and done and self.kind.startswith("purge"):
            said = self.remains(place)
        return side if said is None else fault(f"{side}, and {said}")

    def doctor(self, place: Path, *, done: bool) -> str | None:
        """What the doctor finds wrong."""
        # Where the first build ended before its last step, there is no CURRENT, and the doctor says so.
        passed = "" if done else "published"
        found = [one for one in examine(place / "index") if one.what != passed]
        errors = [str(one.error) for one in found if one.error is not None]
        return f"the doctor: {errors[0]}" if errors else None

    def bundles(self, place: Path, *, done: bool) -> str | None:
        """The bundle is the one before or the new one, whole."""
        to = place / "arrived"
        Index.unbundle(place / "out.bundle", to)
        with Index.open(to) as index:
            right = index.digest in self.answers and self.ask(index) == self.answers[index.digest]
            right = right and (not done or index.digest in self.new)
        remove(to)
        return None if right else "the bundle is of another index"

    def remains(self, place: Path) -> str | None:
        """A file in which a purged word is left."""
        for path in sorted(place.rglob("*")):
            if path.is_file() and any(word in path.read_bytes() for word in spelled(SECRET)):
                return f"{path.relative_to(place)} still has the word that was purged"
        return None

    def again(self, place: Path, side: str, *, plain: bool = False) -> str | None:
        """What is wrong after the same command is given again; `plain` builds over what is there instead."""
        if plain and side != "missing" and self.kind not in ("bundle", "purge", "purge of a delta"):
            with Index.build([], place / "index", settings=Settings(threads=1)) as index:
                if index.digest not in self.answers or (side == "new" and index.digest not in self.new):
                    return f"a further build gives another digest than either side ({side} before)"
        if side == "missing" and self.kind == "unbundle":
            remove(place / "index")  # as the command asks for; an empty folder is allowed
        if self.kind not in ("merge", "unbundle") or side == "missing" or self.unfinished(place):
            self.make(place)
        said = self.found(place, done=True)
        if said != "new":
            return f"the same change again: {said}"
        # What a power cut leaves there goes with the next build; these are none.
        own = "" if self.kind in ("bundle", "merge") else "index/work/*"
        left = [path.name for path in place.glob(own)] if own else []
        return f"left in the work folder: {left[:3]}" if left else None

    def unfinished(self, place: Path) -> bool:
        """Whether a merge was stopped between the naming of its generation and its end: it is given again."""
        return self.kind == "merge" and (place / "index" / "work" / MERGE).is_file()

    def judge(self, place: Path, *, done: bool, plain: bool = False) -> str:
        """All of the above: the side that was found, or a fault."""
        side = self.found(place, done=done)
        if side.startswith("FAULT"):
            return side
        wrong = self.again(place, side, plain=plain)
        return side if wrong is None else fault(f"{side}, then {wrong}")


def spelled(word: str) -> list[bytes]:
    """As texts and as keys of words."""
    return [word.encode(), word.lower().encode()]


# ---------------------------------------------------------------- before the change, where it needs more


def _changed_files(change: Change) -> None:
    change._write(1, "Later the Ship1 went south.")
    change._write(5)
    (change.source / "a2.md").unlink()


def _stopped(change: Change) -> None:
    """A build that was stopped half way left its stages."""
    _changed_files(change)
    steps: list[Any] = []

    def progress(event: Any) -> bool:
        steps.append(event.stage)
        return len(set(steps)) < 9

    with suppress(Cancelled):
        Index.build([], change.start / "index", settings=change.settings, progress=progress).close()
    assert any((change.start / "index" / "work").iterdir())


def _earlier_bundle(change: Change) -> None:
    index = change.start / "index"
    bundle(index, change.start / "out.bundle")
    change.digest(index)
    with Index.open(index) as opened:
        opened.update(add=Document("more", TEXT.format(8, "")))


def _bundle_alone(change: Change) -> None:
    bundle(change.start / "index", change.folder / "in.bundle")
    remove(change.start / "index")


def _seen_in_part(change: Change) -> None:
    """Somebody who may see some documents alone has asked: an index of these lies in the folder, too."""
    with Index.open(change.start / "index") as opened:
        assert SECRET in opened.retrieve(SECRET, allow="ship>=2", budget=200).text
    assert any((change.start / "index" / "allowed").iterdir())


def _two_parts(change: Change) -> None:
    shutil.move(change.start / "index", change.folder / "part")
    given = [Document("late", TEXT.format(8, "Late."))]
    Index.build(given, change.folder / "second", settings=change.settings).close()


def _with_delta(change: Change) -> None:
    with small():
        _delta(change, change.start)
    assert has_delta(change.start / "index")


BEFORE: Final[dict[str, Callable[[Change], None]]] = {
    "second delta": _with_delta,
    "fold": _with_delta,
    "purge of a delta": _with_delta,
    "change": _changed_files,
    "resume": _stopped,
    "purge": _seen_in_part,
    "merge": _two_parts,
    "bundle": _earlier_bundle,
    "unbundle": _bundle_alone,
}


# ---------------------------------------------------------------- the changes


def _index(change: Change, place: Path) -> None:
    given = Document("given", change.text.format(7, "A program said so."))
    Index.build([change.source, given], place / "index", settings=change.settings).close()


def _build(change: Change, place: Path) -> None:
    Index.build([], place / "index", settings=change.settings).close()


def _rebuild(change: Change, place: Path) -> None:
    settings = change.settings.having(chunk_tokens=12)
    Index.build([], place / "index", settings=settings, rebuild=True).close()


def _update(place: Path, **what: Any) -> BuildReport:
    with Index.open(place / "index") as index:
        return index.update(**what)


def _delta(change: Change, place: Path) -> BuildReport:
    changed = Document("given", change.text.format(7, "It changed."))
    add = [changed, Document("new", change.text.format(6, "New."))]
    return _update(place, add=add, remove=["a1.md"])


def _second_delta(change: Change, place: Path) -> BuildReport:
    changed = Document("given", change.text.format(7, "It changed again."))
    add = [changed, Document("late", change.text.format(8, "Late."))]
    return _update(place, add=add, remove=["new", "a2.md"])


def _merge(change: Change, place: Path) -> None:
    Index.merge([change.folder / "part", change.folder / "second"], place / "index").close()


MAKE: Final[dict[str, Callable[[Change, Path], object]]] = {
    "index": _index,
    "change": _build,
    "resume": _build,
    "rebuild": _rebuild,
    "add": lambda _, place: _update(place, add=[Document("new", TEXT.format(6, "New."))]),
    "remove": lambda _, place: _update(place, remove=["a1.md", "given"]),
    "purge": lambda _, place: _update(place, remove="secret.md", purge=True),
    "reembed": lambda change, place: reembed(place / "index", f"native:{change.other}").close(),
    "merge": _merge,
    "bundle": lambda _, place: bundle(place / "index", place / "out.bundle", replace=True),
    "unbundle": lambda change, place: Index.unbundle(change.folder / "in.bundle", place / "index"),
    "delta": _delta,
    "second delta": _second_delta,
    "fold": lambda _, place: _update(place, fold=True),
    "purge of a delta": lambda _, place: _update(place, remove="secret.md", purge=True),
    "runs": _index,
}
