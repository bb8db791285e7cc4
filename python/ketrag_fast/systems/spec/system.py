"""The declaration of a system: settings, stages, channels, recipes and presets under a published name.

A *rule* is a decision in which the variants of a system differ, and that users cannot set: what scores best,
as in the preset `NAME`, or what the reference implementation does, as in `NAME:reference`. The rules of a
variant are a frozen dataclass. Stages name the rules that change their result next to their settings, and
code reads both alike: `settings.of(MyRules)`. The core gets all rules with each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from ketrag_fast.records import dataclass, field
from ketrag_fast.systems.spec.arrays import Sizes
from ketrag_fast.systems.spec.stage import Needs, Stage

if TYPE_CHECKING:
    import numpy as np
    from _typeshed import DataclassInstance
    from numpy.typing import NDArray

    from ketrag_fast.base.config import Settings

    Ids = NDArray[np.integer[Any]]
    Scores = NDArray[np.floating[Any]]
    StageArrays = Mapping[str, Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """A query as a channel sees it.

    Attributes:
        question: the text of the query.
        keywords: its terms as in the word index, with repetitions.
        vector: float32, of the index's dimension and unit length; None if the channel has vector="no".
        wanted: the maximum number of units that can be printed.
        budget: the token budget of the channel.
        settings: the settings of the query.
        deadline: seconds left; None without a limit.

    Examples:
        >>> from ketrag_fast import Settings
        >>> query = ChannelQuery("Who sailed?", ("sailed",), None, 10, 500, Settings())
        >>> query.keywords, query.wanted
        (('sailed',), 10)
    """

    question: str
    keywords: tuple[str, ...]
    vector: NDArray[np.float32] | None
    wanted: int
    budget: int
    settings: Settings
    deadline: float | None = None


Rank = Callable[[ChannelQuery, "StageArrays"], "tuple[Ids, Scores]"]
"""(query, arrays) to unit ids, best first, and as many scores without NaN."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A ranking of units for a query. Without `rank`, it is the channel of this name in the Rust core.

    Attributes:
        name: the published name.
        needs: the stages whose arrays it reads, or a function of the settings.
        help: one line for `--help` and docs/reference/modes.md.
        rank: the function, or "module:function".
        vector: whether it uses the query's vector: "no", "yes", or "model" (if the index has a model).
        searches: the lists of vectors that it scans (units, keywords, entities); hnswlib may propose
            candidates in large ones.
        seeds: the query setting that holds how many rows of such a list it starts from.
        settings: the query settings that it reads.
        cite: "module:function", for a core channel that prints graph nodes: (arrays, node ids) to
            `types.Cited`. Under a filter it also gets a mask of units, and must cite only units in it.
        caution: "module:function": from the arrays to a warning for contexts, or None.
        lacks: "module:function": from the settings to what is missing outside the index, or None.

    Examples:
        >>> def shortest(query, arrays):
        ...     tokens = arrays["units"]["unit_tokens"]
        ...     order = tokens.argsort(kind="stable")
        ...     return order, -tokens[order].astype(float)
        >>> channel = Channel("shortest", ("units",), "the shortest units first", rank=shortest)
        >>> ids, scores = channel.rank(None, index.inspect.arrays())
        >>> len(ids)
        3
    """

    name: str
    needs: Needs
    help: str
    rank: Rank | str | None = None
    vector: Literal["no", "model", "yes"] = "no"
    searches: tuple[str, ...] = ()
    seeds: str | None = None
    settings: tuple[str, ...] = ()
    cite: str | None = None
    caution: str | None = None
    lacks: str | None = None

    def needed(self, settings: Settings) -> tuple[str, ...]:
        """Return its needs under these settings."""
        return self.needs(settings) if callable(self.needs) else self.needs


@dataclass(frozen=True, slots=True)
class Share:
    """A channel's part of the budget: a number, the setting that holds it, or the rest.

    Examples:
        >>> Recipe((Share("mine", of=0.25), Share("text", of=REST)), "a quarter by `mine`").channels
        ('mine', 'text')
    """

    channel: str
    of: float | str = 1.0


Join = Literal["shares", "fuse", "vote"]
JOINS = get_args(Join)
REST = "rest"
"""The share of the last channel: the remaining budget."""


@dataclass(frozen=True, slots=True)
class Around:
    """The graph neighbourhood of ranked units: printed next to them, or summarised for an answer.

    Attributes:
        find: "module:function": (query, arrays, unit ids) to the neighbours of each unit, strongest first.
        count: the setting with the number of ranked units whose neighbourhood is read; 0 for none.
        tokens: the maximum number of tokens that one summary reads.
    """

    find: str
    count: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """How channels share the budget. The name under which a system lists it is a mode.

    Attributes:
        shares: the channels, in the order of the context.
        help: one line for `--help` and docs/reference/modes.md.
        join: "shares" (each channel prints within its share), "fuse" (by reciprocal rank), or "vote"
            (tables of the first channel, then units of the second, those first that both would print).
        rollover: the setting or rule that decides which channel gets the unused budget.
        automatic: its rank among the modes that `auto` tries, 0 first; None if `auto` never chooses it.
        usual: whether builds include it by default.
        around: the graph neighbourhood to add to ranked units.
        surveys: whether excerpts of many ranked documents are printed by theme, instead of whole units.

    Examples:
        >>> Recipe((Share("bm25"), Share("walk")), "both lists, fused", join="fuse").channels
        ('bm25', 'walk')
    """

    shares: tuple[Share, ...]
    help: str
    join: Join = "shares"
    rollover: str | None = None
    automatic: int | None = None
    usual: bool = False
    around: Around | None = None
    surveys: bool = False

    @property
    def channels(self) -> tuple[str, ...]:
        """Their names, in the order of the context."""
        return tuple(share.channel for share in self.shares)


class Node(Protocol):
    """A node of a graph with its data, as `ketrag graph` prints it."""

    def lines(self) -> Iterable[str]:
        """Return the lines to print."""

    def to_json(self) -> dict[str, Any]:
        """Return the object for `--json`, with a "schema"."""


class Inspector(Protocol):
    """Looks up nodes of an opened generation that has the stage `STAGE`; `WHAT` is their kind."""

    STAGE: str
    WHAT: str

    def find(self, name: str) -> Node | None:
        """Return the node of that name; None if it does not exist."""

    def near(self, name: str) -> list[str]:
        """Return similar names."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A query, its vector, and the units of the documents that answer it."""

    text: str
    vector: NDArray[np.float32]
    gold: frozenset[int]


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of a training run.

    Attributes:
        epochs: the number of epochs run.
        best: the epoch whose weights were written.
        questions: the number of questions learned from.
        without_gold: the number of questions without a judged unit among their candidates.
        stopped: why it ended early; None if it ran all epochs.
    """

    epochs: int
    best: int
    questions: int
    without_gold: int
    stopped: str | None


OnEpoch = Callable[[int, int, float, float], "bool | None"]
"""(epoch, number of epochs, loss, Hit@1 of the held-out questions); return False to stop."""
Train = Callable[["StageArrays", "Sequence[Judged]", Path, Mapping[str, Any], "OnEpoch | None"], Trained]
"""Arrays, questions, the file for the weights, options by name."""


@dataclass(frozen=True, slots=True)
class Training:
    """How `ketrag bench train` trains a system: `run` ("module:function", a `Train`), the mode that uses the
    weights, the setting that names their file, and the default file name.
    """

    run: str
    mode: str
    setting: str
    file: str


@dataclass(frozen=True, slots=True)
class GraphSource:
    """A graph that a system stores: `index.inspect.graph` draws it, `ketrag export` writes it.

    Attributes:
        name: the name of the graph.
        stages: the stages that must exist.
        help: one line: its nodes and edges.
        add: the command that adds the graph to an index.
        read: "module:function": from the arrays of all stages to a `DrawableGraph`.
        tables: "module:function": from the arrays of all stages to `GraphTables`, with descriptions and
            sources; without it, exports have the names, kinds and weights of the drawable graph.
        order: position in lists; the first graph that an index has is the default.

    Examples:
        >>> add = "ketrag index --modes auto,mine"
        >>> source = GraphSource("mine", ("units", "mine"), "things", add, read="my_package:read")
        >>> source.tables is None  # exports have the names, kinds and weights of the drawable graph
        True
    """

    name: str
    stages: tuple[str, ...]
    help: str
    add: str
    read: str
    tables: str | None = None
    order: int = 100


@dataclass(frozen=True, slots=True)
class System:
    """A system. Nothing outside its module names it.

    Attributes:
        name: the published name.
        source: the paper, or a page in docs/.
        help: one line for `--help` and docs/reference/settings.md.
        settings: a frozen dataclass of `setting(...)` fields.
        stages, channels: its own, and those that it shares with other systems.
        recipes: its modes.
        graphs: the graphs that it stores, for pictures and exports.
        presets: values of settings under the names that `--system` takes.
        rules: the rules of each variant of the system, by the name of its preset; the variant that is named
            like the system holds under all other presets.
        choices: further values for settings that allow them (`core_selection`).
        check: raises ConfigError if settings contradict each other.
        describe: rows for `ketrag stats`, from the sizes of the arrays.
        details: "module:function" with further rows, from the arrays.
        inspect: "module:class" of an `Inspector`, for `ketrag graph NAME`.
        train: how `ketrag bench train` trains it.
        order: position in lists; ties are broken by name.

    Examples:
        >>> channel = Channel("mine", ("units",), "units in order", rank="my_package:rank")
        >>> recipe = Recipe((Share("mine"),), "units in order")
        >>> system = System("mine", "my paper", "an example", channels=(channel,), recipes={"mine": recipe})
        >>> list(system.recipes)
        ['mine']
    """

    name: str
    source: str
    help: str
    settings: type | None = None
    stages: tuple[Stage, ...] = ()
    channels: tuple[Channel, ...] = ()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    graphs: tuple[GraphSource, ...] = ()
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: Mapping[str, DataclassInstance] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    check: Callable[[Settings], None] | None = None
    describe: Callable[[Sizes], Mapping[str, Any]] | None = None
    details: str | None = None
    inspect: str | None = None
    train: Training | None = None
    order: int = 100
