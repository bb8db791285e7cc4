"""Whether texts and keys may be sent to the endpoints, and the files be read, that an index names.

An index stores the specs of the models that it was built with, and may come from somebody else. An endpoint
is trusted if the user named it (flag, environment, settings file, `Settings`) or confirmed it for this index:
by building the index with it, or by `ketrag trust`. Nothing is sent to any other. The same applies to files
that a build reads (see `file_trust`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError, EndpointNotConfirmed, KetragError, SettingsNotConfirmed
from ketrag_fast.models.file_trust import files_named
from ketrag_fast.records import asdict, dataclass
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.source_trust import source_trust

_NAMING: Final = ("embedder", "llm", "answer_llm")
_FLAGS: Final = {"embedder": "--embedder", "llm": "--llm"}
_PURPOSES: Final = {"embedder": "embedder", "llm": "language model"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that an index names: the setting that names it, its spec and address, and whether the
    user has named or confirmed it.
    """

    setting: str
    spec: str
    address: str
    trusted: bool

    def to_json(self) -> dict[str, Any]:
        """Return the fields for `--json`."""
        return asdict(self)

    def sentence(self) -> str:
        """Return a sentence about what is sent to the endpoint."""
        what = "embeds queries" if self.setting == "embedder" else "answers"
        state = "confirmed" if self.trusted else "not confirmed: nothing is sent there"
        return f"{self.address} {what} ({state})"


@dataclass(frozen=True)
class Trust:
    """What one index may use: endpoints and files that the user named, and those confirmed for its folder."""

    layout: Layout
    named: frozenset[str]
    """Addresses of endpoints."""
    files: frozenset[str] = frozenset()
    """Absolute paths."""

    @classmethod
    def of(cls, layout: Layout, given: Settings) -> Trust:
        """Return the trusted endpoints of an index: named in the user's settings, or confirmed."""
        root = Layout(layout.root.parent) if layout.is_generation() else layout
        found = set()
        for name in _NAMING:
            try:
                found.add(address_of(str(given.given.get(name))))
            except ConfigError:  # refused when the model is opened
                continue
        files = frozenset(files_named(given.given))
        return cls(root, frozenset(address for address in found if address is not None), files)

    def trusts(self, address: str) -> bool:
        """Return whether the user named or confirmed an address."""
        from ketrag_fast.storage.confirmations import is_confirmed

        return address in self.named or is_confirmed(self.layout, address)

    def require(self, setting: str, spec: str, what: str = "the query") -> None:
        """Raise EndpointNotConfirmed if `spec` names an endpoint that is not trusted.

        `what` would be sent there. Specs that name no endpoint pass.
        """
        address = address_of(spec)
        if address is None or self.trusts(address):
            return
        command = f"ketrag trust -i {shlex.quote(str(self.layout.root))} --endpoint {shlex.quote(address)}"
        raise EndpointNotConfirmed(
            f"the {_PURPOSES[setting]} of the index {self.layout.root} is the endpoint {address}, which only "
            f"the index names: {what} would be sent there, with the API key if one is set",
            hint=f"if you trust that endpoint, confirm it once: {command}; or name it: "
            f"{_FLAGS[setting]} {shlex.quote(spec)}",
        )

    def readable(self, values: Mapping[str, Any]) -> list[str]:
        """Return the files that settings name and a build may read."""
        named = files_named(values)
        if not named:
            return []
        confirmed = source_trust(self.layout)
        return [path for path in named if path in self.files or confirmed.allows(path)]

    def require_files(self, values: Mapping[str, Any]) -> None:
        """Raise SettingsNotConfirmed if settings name a file that a build may not read."""
        readable = self.readable(values)
        for path, setting in files_named(values).items():
            if path not in readable:
                option = shlex.quote(f"{setting}={values[setting]}")
                raise SettingsNotConfirmed(
                    f"the setting {setting} of the index {self.layout.root} names the file {path}, which "
                    "only the index names: its content would be read",
                    hint="if you trust the index, confirm what it names: "
                    f"{source_trust(self.layout).command}; or name it: -o {option}",
                )

    def keep(self, settings: Settings) -> list[str]:
        """Confirm the endpoints that an index is built with if the user named them; return warnings."""
        warnings = []
        for name in _FLAGS:
            spec = str(settings.value(name))
            try:
                address = address_of(spec)
                if address is None or address not in self.named:
                    continue
                from ketrag_fast.storage.confirmations import confirm, is_confirmed

                if not is_confirmed(self.layout, address):
                    confirm(self.layout, address)
            except KetragError as error:
                warnings.append(
                    f"{spec} could not be noted as confirmed ({error.message}): later commands must name it "
                    f"with {_FLAGS[name]}"
                )
        return warnings


def address_of(spec: str) -> str | None:
    """See `http.endpoints`, which is imported for the spec of an endpoint only."""
    if not spec.startswith("openai:"):
        return None
    from ketrag_fast.models.http import endpoints

    return endpoints.address_of(spec)


def endpoints_of(settings: Mapping[str, Any], trust: Trust) -> list[Endpoint]:
    """Return the endpoints that the settings of an index name."""
    found = []
    for name in _FLAGS:
        spec = str(settings.get(name))
        try:
            address = address_of(spec)
        except ConfigError:  # not a valid address, so nothing can be sent
            continue
        if address is not None:
            found.append(Endpoint(name, spec, address, trust.trusts(address)))
    return found
