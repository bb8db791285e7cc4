"""All settings, the shared ones and those that systems declare: their declarations and their values.

Values come from several sources, by priority: flag, environment, file, index, preset, default.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from ketrag_fast.base.config.fields import MOST, Concern, Setting, Topic, declared_settings, suggest
from ketrag_fast.base.config.local_servers import SETTINGS, spell_out
from ketrag_fast.base.config.shared import LEAST_MEMORY, SharedSettings
from ketrag_fast.base.hashes import blake2b
from ketrag_fast.errors import ConfigError
from ketrag_fast.records import dataclass, fields

T = TypeVar("T")


class Settings(SharedSettings):
    """All settings. Only the values passed count as *given*; others may come from other sources.

    Shared settings are typed attributes. `of` returns the settings of one system as its class
    (`settings.of(KetRagSettings).knn_k`); at run time they are attributes here too (`settings.knn_k`).
    Raises ConfigError for an unknown name and for a value outside its bounds.

    Examples:
        >>> from ketrag_fast import Settings
        >>> settings = Settings(chunk_tokens=150, modes=["bm25", "walk"])
        >>> settings.chunk_tokens, settings.modes, settings.budget
        (150, 'bm25,walk', 4000)
        >>> sorted(settings.given)
        ['chunk_tokens', 'modes']
        >>> settings.having(budget=500).budget
        500
    """

    def __init__(self, **values: Any) -> None:
        known = catalogue()
        for name in _LISTS & values.keys():
            value = values[name]
            if value is not None and not (isinstance(value, str) and value.split() == [value]):
                values[name] = _spell_list(value)
        values |= {name: spell_out(values[name]) for name in SETTINGS & values.keys()}
        unknown = next((name for name in values if name not in known), None)
        if unknown is not None:
            near = find_setting(unknown)  # raises unless the names differ only in case and hyphens
            raise ConfigError(f"unknown setting {unknown!r}", hint=f"did you mean {near}?")
        object.__setattr__(self, "_given", {name: values[name] for name in known if name in values})
        for name, spec in known.items():
            value = values.get(name, spec.default)
            try:
                spec.check(value)
            except ConfigError as error:
                if name == "mode" and error.hint is None:
                    error.hint = about_broken(systems().broken).removeprefix("; ") or None
                raise
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_rules", systems().rules_of(self.system))
        for name, value in self.rules.items():
            object.__setattr__(self, name, value)
        if self.overlap >= self.chunk_tokens:
            raise ConfigError(
                f"overlap ({self.overlap}) must be below chunk_tokens ({self.chunk_tokens})",
                hint="a window must advance by at least one token",
            )
        if 0 < self.memory < LEAST_MEMORY:
            raise ConfigError(
                f"memory is {self.memory} MB; a build needs at least {LEAST_MEMORY} MB",
                hint=f"--memory {LEAST_MEMORY}, or leave it out for a quarter of the machine's memory",
            )
        shards_of(self.shard)
        if self.usd_per_million is not None:
            prices_of(self.usd_per_million)
        systems().check(self)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were passed, in catalogue order."""
        found: dict[str, Any] = self.__dict__["_given"]
        return dict(found)

    @property
    def rules(self) -> Mapping[str, Any]:
        """The rules of all systems by name, in the variant that the setting `system` chooses."""
        found: Mapping[str, Any] = self.__dict__["_rules"]
        return found

    def of(self, kind: type[T]) -> T:
        """Return the settings or rules of one system as an instance of their class."""
        return kind(**{spec.name: self.__dict__[spec.name] for spec in fields(kind)})  # type: ignore[arg-type]

    def value(self, name: str) -> Any:
        """Return the value of a setting or a rule by its name."""
        return self.__dict__[name]

    def having(self, **changes: Any) -> Settings:
        """Return a copy with other values of some settings."""
        return Settings(**{**self.given, **changes})

    def only(self, names: Iterable[str]) -> dict[str, Any]:
        """Return only the values of these settings and rules, by name, for a fingerprint."""
        return {name: self.value(name) for name in names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Settings):
            return NotImplemented
        return all(self.value(name) == other.value(name) for name in catalogue())

    def __hash__(self) -> int:
        return hash(tuple(self.value(name) for name in catalogue()))

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # immutable, so no copy is needed

    def __reduce__(self) -> Any:
        return _again, (self.given,)

    if not TYPE_CHECKING:  # hidden from the type checker: code of this package must use `of`

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"unknown setting {name!r}")


_LISTS = frozenset({"modes", "usd_per_million"})


def _spell_list(value: Any) -> Any:
    """Return a list of texts or numbers as text, in one form, so that equal lists compare equal."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(one, bool) or not isinstance(one, (str, int, float)) for one in listed):
        return value  # which the setting rejects, unless it is None
    if any(isinstance(one, int) and abs(one) > MOST for one in listed):
        return value  # Python does not print an integer with very many digits
    return ",".join(part.strip() for one in listed for part in str(one).split(","))


def _again(given: dict[str, Any]) -> Settings:
    return Settings(**given)


Catalogue = Mapping[str, Setting]

_REGISTRY = "ketrag_fast.systems.registry"
"""Imported by name on first use, because systems are in a higher layer and declare settings themselves."""


class Declares(Protocol):
    """The interface of the system registry that settings need."""

    @property
    def settings(self) -> Iterable[tuple[str, type]]:
        """Pairs of a system's name and its settings class."""

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """Choices that systems add to settings, such as their modes."""

    @property
    def listed(self) -> Mapping[str, tuple[str, ...]]:
        """Values to list in the help of free-text settings, such as presets and modes."""

    @property
    def preset_owners(self) -> Mapping[str, str]:
        """The system of each preset."""

    @property
    def broken(self) -> Mapping[str, str]:
        """Systems that failed to load, with the reasons."""

    def rules_of(self, preset: str) -> Mapping[str, Any]:
        """Return the rules of all systems by name, under a preset."""

    def check(self, settings: Any) -> None:
        """Raise ConfigError if settings contradict each other."""


def systems() -> Declares:
    """Return the registry of systems."""
    registry: Declares = import_module(_REGISTRY).registry()
    return registry


@cache
def catalogue() -> Catalogue:
    """Return every setting by name, the shared ones first."""
    registry = systems()
    specs = {spec.name: spec for spec in declared_settings(SharedSettings)}
    for owner, cls in registry.settings:
        specs |= {spec.name: spec for spec in declared_settings(cls, owner)}
    for name, more in registry.choices.items():
        specs[name] = specs[name].extended(more)
    return specs


def names(*concerns: Concern) -> tuple[str, ...]:
    """Return the names of the settings with these `concerns`; without arguments, of all settings."""
    return tuple(n for n, spec in catalogue().items() if not concerns or spec.concerns in concerns)


def of_topic(*topics: Topic) -> tuple[str, ...]:
    """Return the names of the settings of these topics, in the order of the catalogue."""
    return tuple(n for n, spec in catalogue().items() if spec.topic in topics)


def find_setting(name: str, where: str = "") -> str:
    """Return the canonical name of a setting (`-` equals `_`). Raises ConfigError with the closest name."""
    plain = name.strip().lower().replace("-", "_")
    if plain in catalogue():
        return plain
    hint = suggest(plain, catalogue()) or "`ketrag config list` lists all settings"
    raise ConfigError(f"unknown setting {name!r}{where}", hint=hint + about_broken(systems().broken))


def about_broken(broken: Mapping[str, str]) -> str:
    """Return the end of a hint for an unknown setting, which a system that failed to load may declare."""
    return "".join(f"; the system {name} cannot be used: {reason}" for name, reason in broken.items())


def parse(name: str, text: str) -> Any:
    """Parse the value of a setting from text, for example of an environment variable."""
    return catalogue()[name].parse(text)


_MOST = 65_536
_FORM = re.compile(r"\d{1,6}(,\d{1,6})*/\d{1,6}")


@dataclass(frozen=True, slots=True)
class Shards:
    """A selection of the shards 1 to `of`."""

    numbers: frozenset[int]
    of: int

    def holds(self, document: str) -> bool:
        """Return whether a document with this id belongs to one of the shards."""
        digest = blake2b(document.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.of + 1 in self.numbers

    @property
    def lacking(self) -> tuple[int, ...]:
        """The shards that are not included."""
        return tuple(number for number in range(1, self.of + 1) if number not in self.numbers)

    def text(self) -> str | None:
        """Return the value of the setting `shard`; None if all shards are included."""
        return f"{','.join(map(str, sorted(self.numbers)))}/{self.of}" if self.lacking else None


def shards_of(text: str | None) -> Shards | None:
    """Parse the setting `shard`: `2/8`, or several shards as `1,2/8`. None selects all documents.

    Raises ConfigError unless 0 < I <= N.
    """
    if text is None:
        return None
    plain = text.replace(" ", "")
    if _FORM.fullmatch(plain):
        numbers, _, of = plain.partition("/")
        found = Shards(frozenset(map(int, numbers.split(","))), int(of))
        if 0 < found.of <= _MOST and all(0 < number <= found.of for number in found.numbers):
            return found
    raise ConfigError(
        f"shard must be I/N with 0 < I <= N <= {_MOST:,}, got {text!r:.80}",
        hint="the first of four is 1/4; the other three are 2/4, 3/4 and 4/4",
    )


Prices = tuple[float, float, float]
"""Prices in USD of a million tokens: of texts to embed, and of an LLM's prompts and replies."""


def prices_of(text: str | None) -> Prices | None:
    """Parse the setting `usd_per_million`; of fewer than three prices, the last one is that of the rest."""
    if text is None:
        return None
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 3 or not all(math.isfinite(price) and price >= 0 for price in found):
        raise ConfigError(
            f"usd_per_million must be one to three prices of at least 0, got {text!r:.80}",
            hint="0.02,0.15,0.60 are those of embeddings, of LLM prompts and of LLM replies",
        )
    embedding, prompt, reply = found + found[-1:] * (3 - len(found))
    return embedding, prompt, reply


PREFIX = "KETRAG_"
OTHER_VARIABLES = frozenset(
    {
        "KETRAG_INDEX",
        "KETRAG_CONFIG",
        "KETRAG_DATA",
        "KETRAG_SHARED",
        "KETRAG_OPENAI_API_KEY",
        "KETRAG_TOKEN",
        "KETRAG_ENCODER_KERNEL",
        "KETRAG_CPU_WITHOUT",
        "KETRAG_EXTENSIONS",
    }
)
"""Variables that are not settings: paths of the index, the settings file and the data sets, API key and
token, the instructions of the encoder (kernels/encoder.py), instructions to avoid (rust/base/src/cpu.rs),
and whether systems of other packages are loaded (systems/registry.py)."""

Presets = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The effective settings, their origins, and the differences from the index."""

    settings: Settings
    origins: Mapping[str, str]
    differences: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def needs_rebuild(self) -> tuple[str, ...]:
        """Changed settings that require a full rebuild."""
        return tuple(name for name, _, _ in self.differences if catalogue()[name].rebuild)


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read settings from variables such as `KETRAG_CHUNK_TOKENS=150`.

    Raises ConfigError for unknown names.
    """
    found: dict[str, Any] = {}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        name = find_setting(variable[len(PREFIX) :], f" (environment variable {variable})")
        try:
            found[name] = parse(name, environ[variable])
        except ConfigError as error:
            raise ConfigError(f"environment variable {variable}: {error}", hint=error.hint) from None
    return found


def resolve(
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    file: Mapping[str, Any] | None = None,
    index: Mapping[str, Any] | None = None,
    presets: Presets | None = None,
) -> Resolved:
    """Return the effective settings. The first source with a value wins; 0, False and "" count as values.

    If a user names another system than that of the index, its preset has priority over the index; otherwise
    the values of the index have priority over the preset.
    """
    asked = (("flag", flags), ("environment", environment), ("file", file))
    layers: list[tuple[str, Mapping[str, Any]]] = [(origin, values) for origin, values in asked if values]
    wanted = next((values["system"] for _, values in layers if "system" in values), None)
    stored = None
    if index:
        known_names = set(names("build", "read"))
        stored = {name: value for name, value in index.items() if name in known_names}
    had = stored.get("system", "default") if stored else None
    system = wanted if wanted is not None else had if had is not None else "default"
    row = _preset(system, presets)
    own = (f"system {system}", row)
    if stored is not None:
        middle = [("index", stored)]
        layers += [own, *middle] if system != had else [*middle, own]
        if system != had:  # a setting that the new preset does not contain returns to its default
            stored = {name: value for name, value in stored.items() if name not in _preset(had, presets)}
            layers[-1] = ("index", stored)
    else:
        layers.append(own)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name in names():
        origin, source = next(((o, s) for o, s in layers if name in s), ("default", {}))
        origins[name] = origin
        values[name] = source[name] if name in source else catalogue()[name].default
    values["system"] = system
    settings = Settings(**values)
    differences: tuple[tuple[str, Any, Any], ...] = ()
    if index:
        differences = tuple(
            (name, index[name], settings.value(name))
            for name in names("build")
            if name in index and index[name] != settings.value(name)
        )
    return Resolved(settings, origins, differences)


def _preset(system: Any, presets: Presets | None) -> Mapping[str, Any]:
    return {} if presets is None else presets[system]


def build_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings to store in an index."""
    kept = set(names("build", "read"))
    return {name: settings.value(name) for name in names() if name in kept}
