"""Values of all settings: the shared ones and those of the systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ketrag_fast.base.config.catalogue import about_broken, catalogue, find_setting, systems
from ketrag_fast.base.config.shards import shards_of
from ketrag_fast.base.config.shared import LEAST_MEMORY, SharedSettings
from ketrag_fast.errors import ConfigError

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
        listed = values.get("modes")
        if isinstance(listed, (list, tuple)) and all(isinstance(mode, str) for mode in listed):
            values["modes"] = ",".join(listed)
        if isinstance(values.get("modes"), str):  # normalised, so that equal lists compare equal
            values["modes"] = ",".join(mode.strip() for mode in values["modes"].split(","))
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


def _again(given: dict[str, Any]) -> Settings:
    return Settings(**given)
