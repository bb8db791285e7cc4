"""What a stage is: a name, what it needs, the settings it depends on, its arrays, and one function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import Cancelled, ConfigError
from ketrag_fast.systems.spec.arrays import Arrays, Sizes
from ketrag_fast.systems.spec.documents import Documents
from ketrag_fast.systems.spec.function_ref import resolve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ketrag_fast.base.progress import Meter
    from ketrag_fast.models.embedders.build_model import VectorSource
    from ketrag_fast.models.extraction.run import Reading
    from ketrag_fast.storage.arrays import RawFile

    Outputs = Mapping[str, NDArray[Any]]
    Made = Mapping[str, NDArray[Any] | RawFile]
    """What a stage hands over: arrays, and files that another library reads."""
else:  # a declaration imports no NumPy
    Outputs = Made = Mapping[str, Any]

DOCUMENTS: Final = "documents"
"""The pseudo-stage that a stage needs if it looks at the documents themselves."""


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
class Earlier:
    """What the published generation has of a stage, made there in the same way over other documents.

    `needs` are the arrays that the stage was made from there; `row` says for each document of now which one
    it was there, or -1. A stage may take over what depends on a document alone; its result must be, to the
    byte, what it makes from nothing.
    """

    arrays: Outputs
    needs: Mapping[str, Outputs]
    row: NDArray[Any]


@dataclass(frozen=True, slots=True)
class StageContext:
    """`report(done, total)` is handed to the kernels as `report=`; it returns False to stop them.

    `model` makes vectors, where the settings name one; None stands for the built-in space. `reading` has
    the chunks read, where something reads them. `scratch` is a folder on the index's disk for files that
    are handed over, or needed for a while. `earlier` is None where nothing can be taken over.
    """

    report: Meter
    threads: int = 0
    model: VectorSource | None = None
    reading: Reading | None = None
    scratch: Path | None = None
    earlier: Earlier | None = None

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
    of their list (units, keywords, entities), and the stage and the array that hold them. `embeds` are
    (stage, packed texts) that it embeds besides the chunks, for estimates of an embedding model's cost.
    `entity_graph` names the arrays of a graph of entities that `ketrag bench` compares: the packed names, and
    both ends of its relations.
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
    entity_graph: tuple[str, str, str] | None = None

    @property
    def slot(self) -> str:
        """The name under which others need it."""
        return self.provides or self.name

    def needed(self, settings: Settings) -> tuple[str, ...]:
        """What it needs under these settings."""
        return self.needs(settings) if callable(self.needs) else self.needs

    def make(self, inputs: StageInputs, settings: Settings, context: StageContext) -> Made:
        """Runs it."""
        made: Made = resolve(self.run)(inputs, settings, context)
        return made

    def looked(self, inputs: StageInputs, settings: Settings, context: StageContext) -> str | None:
        """What `look` returns; None where there is no such function."""
        return None if self.look is None else str(resolve(self.look)(inputs, settings, context))

    def varied(self, inputs: StageInputs, settings: Settings, context: StageContext) -> str:
        """What `variant` returns."""
        return "" if self.variant is None else str(resolve(self.variant)(inputs, settings, context))


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


def order_stages(stages: Sequence[Stage], wanted: Sequence[str], settings: Settings) -> tuple[Stage, ...]:
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
