"""The declaration of a stage: its name, needs, settings, arrays and function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import Cancelled, ConfigError
from ketrag_fast.records import dataclass, field
from ketrag_fast.systems.spec.arrays import Arrays, Sizes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.base.progress import Meter
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.embedders.cache import Finder
    from ketrag_fast.models.extraction.run import Reading
    from ketrag_fast.storage.arrays import RawFile
    from ketrag_fast.systems.spec.documents import Documents
    from ketrag_fast.types.locations import Locator

    Packed = tuple[NDArray[np.uint8], NDArray[np.uint64]]
    Outputs = Mapping[str, NDArray[Any]]
    Made = Mapping[str, NDArray[Any] | RawFile]
    """The result of a stage: arrays, and files that another library reads."""
else:  # a declaration imports no NumPy
    Outputs = Made = Mapping[str, Any]

DOCUMENTS: Final = "documents"
"""The pseudo-stage that a stage needs in order to read the documents."""


class StageInputs(Mapping[str, Outputs]):
    """The memory-mapped arrays of the stages in `needs`: `inputs["units"]["unit_tokens"]`.

    Examples:
        >>> import numpy as np
        >>> inputs = StageInputs({"units": {"unit_tokens": np.array([12, 9])}}, documents)
        >>> inputs["units"]["unit_tokens"].sum(), len(inputs.documents)
        (np.int64(21), 3)
    """

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
        """The documents, if the stage needs "documents"; KeyError otherwise."""
        if self._documents is None:
            raise KeyError(DOCUMENTS)
        return self._documents


@dataclass(frozen=True, slots=True)
class Earlier:
    """The published output of a stage, computed in the same way over the previous documents.

    A stage may reuse what depends on single documents, but its result must equal a full run byte for byte.

    Attributes:
        arrays: the published arrays of the stage.
        needs: the published arrays of the stages that it needs.
        row: for each current document its previous row, or -1.
        parts: the arrays of the stage in each of the indexes that are merged, in place of `arrays`; the rows
            and the arrays in `needs` count one part after another.
    """

    arrays: Outputs
    needs: Mapping[str, Outputs]
    row: NDArray[Any]
    parts: tuple[Outputs, ...] = ()


class PublishedVectors(Protocol):
    """Rows of vectors in published generations, by the keys of their texts."""

    def units(self, format: str, /) -> Finder:  # noqa: A002 - the name of the setting
        """Units by their texts after titles, in this format or a finer one."""

    @property
    def spans(self) -> Finder:
        """Sentences by the text of their unit and their span in it."""

    @property
    def sentences(self) -> Finder:
        """Sentences by their texts."""

    @property
    def titles(self) -> Finder:
        """Titles by their texts."""


class Ahead(Protocol):
    """Processes documents while they are read. The stage calls `take`; the build calls the other methods."""

    def add(
        self,
        columns: Mapping[str, Packed],
        contents: Sequence[bytes],
        located: Mapping[int, tuple[Locator, ...]],
    ) -> None:
        """Add documents in order.

        Args:
            columns: `id`, `title`, `text` and `metadata`, if any has some.
            contents: Their hashes.
            located: The locators of those that have any, by number.
        """

    def give_up(self) -> None:
        """Discard everything: documents are changed or moved."""

    def take(self, contents: NDArray[np.uint8]) -> Mapping[str, NDArray[Any]] | None:
        """Return the result if it was computed from exactly these documents, identified by hash, in order."""

    def close(self) -> None:
        """End the work, and remove its files."""


@dataclass(frozen=True, slots=True)
class StageContext:
    """The environment in which a stage runs.

    Attributes:
        report: `report(done, total)` for the `report=` argument of kernels; returns False to stop.
        threads: maximum number of threads; 0 for all cores.
        model: the embedding model; None for the built-in vectors.
        reading: the reader of the core chunks; None without one.
        scratch: a folder on the index's disk for files to return and for temporary files.
        earlier: the published output to reuse; None if there is none.
        ahead: what the stage began while the sources were read.
        published: vectors of published generations that the model made, by text.

    Examples:
        >>> from ketrag_fast.base.progress import Meter
        >>> context = StageContext(report=Meter("mine", None), threads=1)
        >>> context.check()  # raises Cancelled once the caller has stopped the build
    """

    report: Meter
    threads: int = 0
    model: VectorSource | None = None
    reading: Reading | None = None
    scratch: Path | None = None
    earlier: Earlier | None = None
    ahead: Ahead | None = None
    published: PublishedVectors | None = None

    def check(self) -> None:
        """Raise Cancelled if a stop was requested; call it in Python loops."""
        if self.report.stopped:
            raise Cancelled("the build was stopped")


Run = Callable[[StageInputs, Settings, StageContext], Made]
Look = Callable[[StageInputs, Settings, StageContext], str]
Needs = tuple[str, ...] | Callable[[Settings], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """The names of the arrays of an entity graph; strings are packed.

    `source` and `target` are the ends of each relation. `entity_rows` and `relation_rows` are arrays with an
    entry for each, which decide whether it has changed.
    """

    name: str
    source: str
    target: str
    entity_rows: tuple[str, ...]
    relation_rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A pure function of its needs and its settings.

    Attributes:
        name: an identifier, and the name of the stage's folder.
        version: raise it whenever the result changes.
        needs: the stages whose arrays it reads (by name or slot), or a function of the settings.
        settings: the settings and rules that change the result.
        run: the function, or "module:function", so that a declaration imports nothing.
        unit: the unit of its progress.
        look: called in every build, for a stage whose result depends on data outside the arrays (stored
            replies); it may take long. The string that it returns is part of the fingerprint, and stages that
            need this one depend on its arrays instead of its fingerprint.
        reads: run only if the index has a reader of the core chunks.
        variant: returns what else decides the result (whether a library is installed); "" by default.
        provides: the slot, if several stages are alternatives; others need the slot.
        chosen_by: the setting and the value that choose this alternative.
        arrays: declarations of the arrays that it returns.
        counts: rows of `ketrag stats`: label and named size.
        edges: rows of `ketrag stats`: label, array, and number of values for each edge.
        seconds: estimated run time on one laptop core, from the sizes.
        growth: exponent of its run time in the number of characters.
        proposes: for a graph that searches vectors: the name of their list (units, keywords, entities), and
            the stage and the array that hold them.
        embeds: (stage, packed texts) that it embeds in addition to the chunks, for cost estimates.
        large: for a stage that searches vectors exactly without hnswlib: what they are the vectors of, and
            their named size. A build of very many recommends hnswlib.
        entity_graph: the arrays of an entity graph, which `ketrag bench` compares.
        ahead: starts work on new documents while they are read, given settings and a folder.

    Examples:
        >>> from ketrag_fast.extending import StageContext, StageInputs, array
        >>> def count_words(inputs, settings, context):
        ...     import numpy as np
        ...     return {"words": np.array([len(d.text.split()) for d in inputs.documents], np.uint32)}
        >>> declared = {"words": array("u32", "documents")}
        >>> stage = Stage("sizes", 1, (DOCUMENTS,), (), count_words, arrays=declared)
        >>> made = stage.make(StageInputs({}, documents), Settings(), StageContext(report=None))
        >>> made["words"].tolist()
        [9, 9, 9]
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
    embeds: tuple[tuple[str, str], ...] = ()
    large: tuple[str, str] | None = None
    entity_graph: EntityGraph | None = None
    ahead: Callable[[Settings, Path], Ahead] | str | None = field(default=None, repr=False)

    @property
    def slot(self) -> str:
        """The name under which other stages list it in `needs`."""
        return self.provides or self.name

    def needed(self, settings: Settings) -> tuple[str, ...]:
        """Return the stages that it needs under these settings."""
        return self.needs(settings) if callable(self.needs) else self.needs

    def make(self, inputs: StageInputs, settings: Settings, context: StageContext) -> Made:
        """Run the stage and return its arrays and files."""
        made: Made = resolve(self.run)(inputs, settings, context)
        return made

    def begin(self, settings: Settings, scratch: Path) -> Ahead | None:
        """Call `ahead`; None if the stage has none."""
        if self.ahead is None:
            return None
        started: Ahead = resolve(self.ahead)(settings, scratch)
        return started

    def looked(self, inputs: StageInputs, settings: Settings, context: StageContext) -> str | None:
        """Call `look`; None if the stage has none."""
        return None if self.look is None else str(resolve(self.look)(inputs, settings, context))

    def varied(self, inputs: StageInputs, settings: Settings, context: StageContext) -> str:
        """Call `variant`; "" if the stage has none."""
        return "" if self.variant is None else str(resolve(self.variant)(inputs, settings, context))


def fingerprint_of(
    stage: Stage, settings: Settings, found: Mapping[str, str], model: str | None = None
) -> str:
    """Return a hash of everything that a stage's result depends on.

    `found` holds the fingerprint of each need; `model`, that of the embedding model, replaces its name.
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
    """Raise ConfigError unless every stage comes once, after its needs."""
    found = {DOCUMENTS}
    for stage in stages:
        if not stage.name.isidentifier() or stage.slot in found:
            raise ConfigError(f"stage {stage.name!r} has an invalid name or comes twice")
        missing = [need for need in stage.needed(settings) if need not in found]
        if missing:
            raise ConfigError(f"stage {stage.name} needs {missing[0]}, which does not come before it")
        found.add(stage.slot)


def order_stages(stages: Sequence[Stage], wanted: Sequence[str], settings: Settings) -> tuple[Stage, ...]:
    """Return the `wanted` stages and everything they need, each after its needs, else in the order given.

    The settings choose between alternatives. Raises ConfigError if no stage provides a need, or if needs
    form a cycle.
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
            raise ConfigError(f"{by} needs {name}, which no stage provides")
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


Function = Callable[..., Any]


def resolve(function: Function | str) -> Function:
    """Return the function, importing its module if needed."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    found: Function = getattr(import_module(module), name)
    return found
