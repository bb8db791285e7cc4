"""What a stage is: a name, what it needs, the settings it depends on, its arrays, and one function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.config import Settings
from ketrag_fast.declarations.arrays import Arrays, Sizes
from ketrag_fast.declarations.reference import resolved
from ketrag_fast.declarations.sections import Part, parts_of
from ketrag_fast.errors import Cancelled, ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.backends.embedders.source import VectorSource
    from ketrag_fast.extraction.run import Reading
    from ketrag_fast.locations import Locator
    from ketrag_fast.progress import Meter
    from ketrag_fast.storage.arrays import RawFile
    from ketrag_fast.storage.tables import Tables
    from ketrag_fast.types import Document

    Outputs = Mapping[str, NDArray[Any]]
    Made = Mapping[str, NDArray[Any] | RawFile]
    """What a stage hands over: arrays, and files that another library reads."""
else:  # a declaration imports no NumPy
    Outputs = Made = Mapping[str, Any]

DOCUMENTS: Final = "documents"
"""The pseudo-stage that a stage needs if it looks at the documents themselves."""


class Documents:
    """The documents of this build, in their order; read from the tables when asked for.

    With `cut` those with headings come as their sections: each is a row of its own, with the id of its
    document. Several stages ask for the same columns: they are kept until `forget`.
    """

    def __init__(self, tables: Tables, *, cut: bool = False) -> None:
        self._tables = tables
        self._cut = cut
        self._packed: dict[str, tuple[NDArray[np.uint8], NDArray[np.uint64]]] = {}
        self._parts: tuple[dict[int, list[Part]], dict[int, tuple[Locator, ...]]] | None = None

    def __len__(self) -> int:
        return self._tables.count()

    def __iter__(self) -> Iterator[Document]:
        return self._tables.documents()

    def _of_headings(self) -> tuple[dict[int, list[Part]], dict[int, tuple[Locator, ...]]]:
        """By number, the sections of the documents that have any, and all locators."""
        if self._parts is None:
            located = dict(self._tables.located())
            parts: dict[int, list[Part]] = {}
            if self._cut and located:
                for number, document in enumerate(self._tables.documents()):
                    found = parts_of(document.text, document.title, located.get(number, ()))
                    if len(found) > 1:
                        parts[number] = found
            self._parts = parts, located
        return self._parts

    def rows(self) -> Iterator[tuple[int, int, tuple[Locator, ...]]]:
        """Of each row that has any: its number, where it begins in its document, and the locators in it."""
        parts, located = self._of_headings()
        shift = 0
        for number in sorted({*parts, *located}):
            marks = located.get(number, ())
            for part in parts.get(number, [None]):
                start = 0 if part is None else part.start
                own = marks if part is None else tuple(_within(marks, part))
                yield number + shift, start, own
                shift += 1
            shift -= 1

    def packed(self, column: str) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        """One of `id`, `title`, `text`, `metadata` (JSON) as (blob, offsets): UTF-8, n + 1 offsets."""
        import numpy as np

        if column not in self._packed:
            values = list(self._tables.column(column))
            sections, _ = self._of_headings()
            if sections:
                values = list(_expanded(column, values, sections))
            offsets = np.zeros(len(values) + 1, np.uint64)
            np.cumsum([len(value) for value in values], out=offsets[1:])
            offsets.flags.writeable = False
            self._packed[column] = np.frombuffer(b"".join(values), np.uint8), offsets
        return self._packed[column]

    def forget(self) -> None:
        """Nobody needs them any more."""
        self._packed.clear()
        self._parts = None


def _within(marks: Sequence[Locator], part: Part) -> Iterator[Locator]:
    return (one for one in marks if one.start < part.end and one.end > part.start)


def _expanded(column: str, values: Sequence[bytes], sections: Mapping[int, list[Part]]) -> Iterator[bytes]:
    """The rows of a column with those of documents that are cut in their places."""
    for number, value in enumerate(values):
        parts = sections.get(number)
        if parts is None:
            yield value
        elif column == "title":
            yield from (part.title.encode("utf-8") for part in parts)
        elif column == "text":
            text = value.decode("utf-8")
            yield from (text[part.start : part.end].encode("utf-8") for part in parts)
        else:
            yield from (value for _ in parts)


class StageInputs(Mapping[str, Outputs]):
    """`inputs["units"]["unit_tokens"]`: the arrays of the stages that were declared as needed, mapped."""

    def __init__(self, stages: Mapping[str, Outputs], documents: Documents | None) -> None:
        self._stages = stages
        self._documents = documents

    def __getitem__(self, stage: str) -> Outputs:
        return self._stages[stage]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    @property
    def documents(self) -> Documents:
        """Only for a stage that needs "documents"."""
        if self._documents is None:
            raise KeyError(DOCUMENTS)
        return self._documents


@dataclass(frozen=True, slots=True)
class StageContext:
    """`report(done, total)` is handed to the kernels as `report=`; it returns False to stop them.

    `model` makes vectors, where the settings name one; None stands for the built-in space. `reading` has
    the chunks read, where something reads them. `scratch` is a folder on the index's disk for files that
    are handed over, or needed for a while.
    """

    report: Meter
    threads: int = 0
    model: VectorSource | None = None
    reading: Reading | None = None
    scratch: Path | None = None

    def check(self) -> None:
        """For Python loops: raises Cancelled once a stop was asked for."""
        if self.report.stopped:
            raise Cancelled("the build was stopped")


Run = Callable[[StageInputs, Settings, StageContext], Made]
Look = Callable[[StageInputs, Settings, StageContext], str]
Needs = tuple[str, ...] | Callable[[Settings], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Stage:
    """A pure function of what it needs and of its settings. Raise `version` when its result changes.

    `needs` names stages (or what they provide), or is a function of the settings that does; `settings` names
    the settings that change the result; `unit` is for progress. Functions may be given as "module:function",
    so that a declaration imports nothing.

    `look` is for a stage whose result depends on what is kept elsewhere (replies): it is called in every
    build, may do what takes long, and what it returns counts as a part of the fingerprint. Stages that
    need this one then depend on its arrays, not on how they came about. `variant` names what else decides
    about the result (a library that is there or not); "" is the ordinary case. `reads` stages are run only
    in an index whose chunks something reads.

    `provides` is the name under which others need this stage, where several can stand in one place;
    `chosen_by` is then the setting and its value that choose this one.

    `arrays` declares what it makes. `counts` are the rows of `ketrag stats`: a label and a size that the
    arrays name; `edges` a label, an array, and how many of its values make one edge. `seconds` tells from
    the sizes how long it takes on a laptop's core, roughly; `growth` is the power of the number of
    characters that its time goes with. `proposes` is for a stage that makes a graph over vectors: the name
    of their list (units, keywords, entities), and the stage and the array that hold them.
    """

    name: str
    version: int
    needs: Needs
    settings: tuple[str, ...]
    run: Run | str = field(repr=False)
    unit: str = ""
    look: Look | str | None = field(default=None, repr=False)
    reads: bool = False
    variant: Look | str | None = field(default=None, repr=False)
    provides: str = ""
    chosen_by: tuple[str, str] | None = None
    arrays: Arrays | None = field(default=None, repr=False)
    counts: Mapping[str, str] = field(default_factory=dict, repr=False)
    edges: Mapping[str, tuple[str, int]] = field(default_factory=dict, repr=False)
    seconds: Callable[[Sizes], float] | None = field(default=None, repr=False)
    growth: float = 1.0
    proposes: tuple[str, str, str] | None = None

    @property
    def slot(self) -> str:
        """The name under which others need it."""
        return self.provides or self.name

    def needed(self, settings: Settings) -> tuple[str, ...]:
        """What it needs under these settings."""
        return self.needs(settings) if callable(self.needs) else self.needs

    def make(self, inputs: StageInputs, settings: Settings, context: StageContext) -> Made:
        """Runs it."""
        made: Made = resolved(self.run)(inputs, settings, context)
        return made

    def looked(self, inputs: StageInputs, settings: Settings, context: StageContext) -> str | None:
        """What `look` returns; None where there is no such function."""
        return None if self.look is None else str(resolved(self.look)(inputs, settings, context))

    def varied(self, inputs: StageInputs, settings: Settings, context: StageContext) -> str:
        """What `variant` returns."""
        return "" if self.variant is None else str(resolved(self.variant)(inputs, settings, context))


def fingerprint_of(
    stage: Stage, settings: Settings, found: Mapping[str, str], model: str | None = None
) -> str:
    """A hash of all that the stage's result depends on; `found` has that of each of its needs.

    `model` is the fingerprint of the embedding model: it stands in the place of the embedder's name.
    """
    from ketrag_fast.storage.checksum import text_digest

    values = settings.only(sorted(stage.settings))
    if model is not None and "embedder" in values:
        values["embedder"] = model
    return text_digest(
        [
            stage.name,
            str(stage.version),
            *(f"{name}={value!r}" for name, value in values.items()),
            *(f"{need}:{found[need]}" for need in sorted(stage.needed(settings))),
        ]
    )


def check_order(stages: Sequence[Stage], settings: Settings) -> None:
    """ConfigError unless every stage comes after those that it needs, once."""
    found = {DOCUMENTS}
    for stage in stages:
        if not stage.name.isidentifier() or stage.slot in found:
            raise ConfigError(f"stage {stage.name!r} has a bad name or comes twice")
        missing = [need for need in stage.needed(settings) if need not in found]
        if missing:
            raise ConfigError(f"stage {stage.name} needs {missing[0]}, which does not come before it")
        found.add(stage.slot)


def ordered(stages: Sequence[Stage], wanted: Sequence[str], settings: Settings) -> tuple[Stage, ...]:
    """The stages that make what is `wanted` and all that these need, each after its needs.

    Of several that provide one thing the settings choose. Where nothing else decides, the order is that of
    `stages`. Raises ConfigError where nothing provides what is needed, or needs go in a circle.
    """
    providers: dict[str, Stage] = {}
    for stage in stages:
        if stage.chosen_by is None or settings.value(stage.chosen_by[0]) == stage.chosen_by[1]:
            providers.setdefault(stage.slot, stage)
    found: set[str] = set()
    pending: list[str] = []

    def visit(name: str, by: str) -> None:
        if name == DOCUMENTS or name in found:
            return
        if name in pending:
            raise ConfigError(f"stage {name} needs itself: {' needs '.join([*pending, name])}")
        provider = providers.get(name)
        if provider is None:
            raise ConfigError(f"{by} needs {name}, which no stage makes")
        pending.append(name)
        for need in provider.needed(settings):
            visit(need, f"stage {provider.name}")
        pending.pop()
        found.add(name)

    for name in wanted:
        visit(name, "a mode")
    rest = [stage for stage in providers.values() if stage.slot in found]
    done: set[str] = {DOCUMENTS}
    chain: list[Stage] = []
    while rest:
        ready = next(s for s in rest if all(need in done for need in s.needed(settings)))
        rest.remove(ready)
        done.add(ready.slot)
        chain.append(ready)
    return tuple(chain)
