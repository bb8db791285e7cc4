"""What is attacked: an index of real articles with every graph that needs no model, and its right answers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from ketrag_fast import Document, Index, Settings
from ketrag_fast.errors import KetragError
from tests.process import POLAR
from tests.soak.attempts import RIGHT, fault
from tests.soak.small import has_delta, small

QUESTIONS: Final = (
    "Which ship did Amundsen and Scott sail to the Ross Ice Shelf?",
    "In which town did the man die who led those left on Elephant Island?",
)
NAMES: Final = ("Fridtjof Nansen", "Antarctica", "Norway", "Fram", "Greenland", "South Pole", "Arctic")
Answers = dict[tuple[str, str], tuple[Any, ...]]


class Subject:
    """An index in `folder`, kept whole beside a copy that is attacked.

    With `delta` it is one of texts that a program gave, which were changed by a delta.
    """

    def __init__(self, folder: Path, articles: int, *, modes: str = "all", delta: bool = False) -> None:
        self.source = folder / "articles"
        self.source.mkdir(parents=True)
        for path in sorted((POLAR / "articles").iterdir())[:: max(56 // articles, 1)][:articles]:
            shutil.copy(path, self.source)
        self.sources: list[Path | Document] = [self.source]
        self.settings = Settings(
            threads=1, modes=modes, llm="heuristic", chunk_tokens=120, split_level=2, cut="windows"
        )
        if delta:
            self.sources = [
                Document(path.stem, path.read_text("utf-8")) for path in sorted(self.source.iterdir())
            ]
            self.settings = Settings(threads=1, modes="bm25,walk", chunk_tokens=120)
        self.whole = folder / "whole"
        self.index = folder / "index"
        with Index.build(self.sources, self.whole, settings=self.settings) as index:
            if delta:
                self._change(index)
            self.digests = {index.digest}
            self.modes = index.modes
            self.name = next((name for name in NAMES if known(index, name)), None)
            self.right = self.ask(index)
        self.restore()
        if delta:
            assert has_delta(self.index)
            with Index.build([], self.index, settings=self.settings) as index:
                self.digests.add(index.digest)
            self.restore()

    def _change(self, index: Index) -> None:
        """Change one text, remove one and add one."""
        first, second, third = (source for source in self.sources[:3] if isinstance(source, Document))
        self.sources = []
        with small():
            changed = Document(second.id, f"{second.text}\n\nIt was changed.")
            index.update(add=[changed, Document("new", third.text)], remove=first.id)

    def ask(self, index: Index) -> Answers:
        """The answers of all modes."""
        found: Answers = {}
        for question in QUESTIONS:
            for mode in self.modes:
                context = index.retrieve(question, mode=mode, budget=600)
                passages = [(p.document, p.start, p.end, p.title, p.text) for p in context.passages]
                found[mode, question] = (context.text, passages, context.tokens)
        if self.name is not None:
            found["entity", self.name] = (repr(index.inspect.entity(self.name)),)
        return found

    def restore(self) -> None:
        """The attacked copy as it was."""
        remove(self.index)
        shutil.copytree(self.whole, self.index, symlinks=True)

    def read(self, verify: str, *, stats: bool = True) -> str:
        """Opens the copy and asks: right, or other answers, which only `sizes` may give. Statistics read the
        tables besides.
        """
        with Index.open(self.index, settings=Settings(verify=verify)) as index:
            found = self.ask(index)
            if stats:
                index.stats()
        if found == self.right:
            return RIGHT
        return "other answer" if verify == "sizes" else fault(f"wrong answer under {verify}")

    def build(
        self,
        path: Path | None = None,
        *,
        rebuild: bool = False,
        verify: str = "blocks",
        left: bool = False,
        plain: bool = False,
    ) -> str:
        """Builds or brings up to date: the same digest as the undisturbed, or a report that says why not.
        With `left` something may stay in the work folder, which the next build must empty. With `plain` the
        sources and settings are those that an earlier build stored.
        """
        settings = Settings(threads=1) if plain else self.settings.having(verify=verify)
        sources = [] if plain else self.sources
        with Index.build(sources, path or self.index, settings=settings, rebuild=rebuild) as index:
            return self.same(index, left=left)

    def same(self, index: Index, *, left: bool = False) -> str:
        """Whether a built index is the undisturbed one."""
        assert index.report is not None
        found = [entry.name for entry in (index.path / "work").iterdir()]
        if found and not left:
            return fault(f"left in the work folder: {found[:3]}")
        if index.digest in self.digests:
            return RIGHT if self.ask(index) == self.right else fault("wrong answer of a built index")
        if index.report.warnings or index.report.failures:
            return "said in the report"
        return fault("another digest, and nothing said")


def known(index: Index, name: str) -> bool:
    """Whether the skeleton has an entity of that name."""
    try:
        index.inspect.entity(name)
    except KetragError:
        return False
    return True


def remove(path: Path) -> None:
    """Whatever lies there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
