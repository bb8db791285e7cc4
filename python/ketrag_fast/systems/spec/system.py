"""What a system is: settings, stages, channels, recipes and presets under one published name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from ketrag_fast.systems.spec.arrays import Sizes
from ketrag_fast.systems.spec.stage import Needs, Stage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ketrag_fast.base.config import Settings

    Ids = NDArray[np.integer[Any]]
    Scores = NDArray[np.floating[Any]]
    StageArrays = Mapping[str, Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class ChannelQuery:
    """One question as a channel sees it.

    `keywords` are its words as the word index has them, with repetitions; `vector` (float32, one row of the
    index's dimension, of unit length) is None where the channel asked for none; `wanted` is how many units
    can be printed at the most; `deadline` the seconds that are left, None without a limit.
    """

    question: str
    keywords: tuple[str, ...]
    vector: NDArray[np.float32] | None
    wanted: int
    budget: int
    settings: Settings
    deadline: float | None = None


Rank = Callable[[ChannelQuery, "StageArrays"], "tuple[Ids, Scores]"]
"""From a question and the index's arrays to unit ids, best first, and their scores (as many, no NaN)."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Ranks units for one question. Without a `rank` of its own it is the core's channel of that name.

    `needs` are the stages whose arrays it reads, or a function of the settings that names them. `vector`
    says whether it goes by the question's vector: "no", "model" (where the index has a model, and by words
    alone elsewhere), or "yes". `searches` are the lists of vectors that it looks through from end to end
    (units, keywords, entities): where these are very many, hnswlib proposes. `settings` are the settings of
    a question that it reads. `cite` ("module:function") is for a channel of the core that prints nodes
    of a graph beside units: from the index's arrays and the ids of nodes it makes what they cite
    (`types.Cited`); under a filter it is given, as a third argument, for each unit whether it fits, and names
    what fits alone. `caution` ("module:function") is for one that may have to do without what it is about:
    from the index's arrays it says so in a sentence, which contexts have as a warning, or returns None.
    `lacks` ("module:function") is for one that needs more than the index: from the settings it says what is
    not there, or returns None.
    """

    name: str
    needs: Needs
    help: str
    rank: Rank | str | None = None
    vector: Literal["no", "model", "yes"] = "no"
    searches: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    cite: str | None = None
    caution: str | None = None
    lacks: str | None = None

    def needed(self, settings: Settings) -> tuple[str, ...]:
        """What it needs under these settings."""
        return self.needs(settings) if callable(self.needs) else self.needs


@dataclass(frozen=True, slots=True)
class Share:
    """A channel's part of the budget: a number, the setting that holds it, or the rest."""

    channel: str
    of: float | str = 1.0


Join = Literal["shares", "fuse", "vote"]
JOINS = get_args(Join)
REST = "rest"
"""The share of the last channel: what the others have not."""


@dataclass(frozen=True, slots=True)
class Around:
    """The units that a graph ties to a ranked one: printed beside it, or summarised for an answer.

    `find` ("module:function") makes from a `ChannelQuery`, the index's arrays and some units the units
    around each, the strongest first. The setting `count` says of how many ranked units the surroundings are
    read, 0 of none; the setting `tokens` how much of them one summary reads.
    """

    find: str
    count: str
    tokens: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """How channels share a budget; the name under which a system lists it is a mode.

    `join` is "shares" (each prints within its own), "fuse" (one list, by reciprocal rank) or "vote"
    (tables of the first beside units of the second, those first that both would print). `rollover` names
    the setting that says who gets what is left. `rewrite` ("module:function") makes the text that is ranked
    by from the question, with a language model. `automatic` is its place among the modes that `auto` tries
    (0 first), None where it is never taken by itself; `usual` recipes are built without being asked for.
    `around` is for recipes over a graph whose neighbourhoods say more than a ranked unit alone.
    """

    shares: tuple[Share, ...]
    help: str
    join: Join = "shares"
    rollover: str | None = None
    rewrite: str | None = None
    automatic: int | None = None
    usual: bool = False
    around: Around | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """Their names, in the order of the context."""
        return tuple(share.channel for share in self.shares)


class Node(Protocol):
    """What a graph knows under one name: for people and for machines."""

    def lines(self) -> Iterable[str]:
        """For people."""

    def to_json(self) -> dict[str, Any]:
        """With a "schema" of its own."""


class Inspector(Protocol):
    """Looks at single nodes of an opened generation that holds the stage `STAGE`; `WHAT` is their kind."""

    STAGE: str
    WHAT: str

    def find(self, name: str) -> Node | None:
        """The node of that name; None where there is none."""

    def near(self, name: str) -> list[str]:
        """Names that are near it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, its vector, and the units of the documents that answer it."""

    text: str
    vector: NDArray[np.float32]
    gold: frozenset[int]


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a training. `stopped` says why it ended before its last epoch; `without_gold` counts the
    questions that could not be learned from.
    """

    epochs: int
    best: int
    questions: int
    without_gold: int
    stopped: str | None


OnEpoch = Callable[[int, int, float, float], "bool | None"]
"""(epoch, of how many, loss, Hit@1 of the questions kept apart); False stops."""
Train = Callable[["StageArrays", "Sequence[Judged]", Path, Mapping[str, Any], "OnEpoch | None"], Trained]
"""Arrays, questions, where the weights go, options by name."""


@dataclass(frozen=True, slots=True)
class System:
    """All that one system is. Nothing outside its module names it.

    `settings` is a frozen dataclass of `setting(...)` fields. `choices` adds values to settings that are open
    for it (`core_selection`). `presets` are rows of settings under the names that `--system` takes. `check`
    raises ConfigError where settings do not go together. `describe` gives rows for `ketrag stats` from the
    sizes of the arrays, `details` ("module:function") further ones from the arrays themselves. `inspect`
    ("module:class") is made from an opened generation and answers `ketrag graph NAME` (see `Inspector`).
    `train` ("module:function") learns from judged questions for `ketrag train` (see `Train`).
    """

    name: str
    source: str
    help: str
    settings: type | None = None
    stages: tuple[Stage, ...] = ()
    channels: tuple[Channel, ...] = ()
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    check: Callable[[Settings], None] | None = None
    describe: Callable[[Sizes], Mapping[str, Any]] | None = None
    details: str | None = None
    inspect: str | None = None
    train: str | None = None
