"""Resolve settings from their sources, by priority: flag, environment, file, index, preset, default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ketrag_fast.base.config.settings import Settings, catalogue, find_setting, names, parse
from ketrag_fast.base.safe_io import read_toml
from ketrag_fast.errors import ConfigError

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
DEFAULT_FILE = "ketrag.toml"

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


def from_file(path: Path | None) -> dict[str, Any]:
    """Read settings from a TOML file; None reads `./ketrag.toml` if it exists."""
    wanted = Path(DEFAULT_FILE) if path is None else path
    try:
        table = read_toml(wanted)
    except FileNotFoundError:
        if path is None:
            return {}
        raise ConfigError(f"settings file {path} is missing") from None
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = find_setting(key, f" (in {wanted})")
        spec = catalogue()[name]
        if spec.protects and isinstance(value, str):
            try:
                spec.require_restriction(value)
            except ConfigError as error:
                raise ConfigError(f"{wanted}: {error.message}", hint=error.hint) from None
        optional = spec.default is None
        found[name] = None if optional and value in ("", "none") else value
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
