"""`ketrag trust`: confirm what an index or the settings file of a folder names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import Command, option, switch
from ketrag_fast.apps.terminal import inline
from ketrag_fast.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from ketrag_fast.base.config.settings_file import SettingsFile


class Trust(Command):
    """List the endpoints and sources that an index names, and what the settings file of the working folder
    names outside that folder, and confirm them: queries, and the API key if one is set, may then be sent to
    an --endpoint, updates of the index may read its --sources, and the present content of ketrag.toml is used
    (--settings). Until then nothing is sent there and nothing is read. A confirmation is stored for this
    user, not in the folder or index."""

    examples = (
        "ketrag trust -i their-index",
        "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1",
        "ketrag trust -i their-index --sources",
        "ketrag trust --settings",
        "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1 --forget",
    )
    endpoint: str | None = option("URL", "address to confirm")
    sources: bool = switch("confirm all sources of the index")
    confirmed_settings: bool = switch(
        "confirm what the settings file names (ketrag.toml, or that of --config)", "--settings"
    )
    forget: bool = switch("withdraw the confirmation of --endpoint, --sources or --settings")

    def run(self) -> int:
        """Change confirmations, and print what the index and the settings file name."""
        if self.forget and self.endpoint is None and not (self.sources or self.confirmed_settings):
            raise ConfigError("--forget needs --endpoint URL, --sources or --settings")
        path, file = self._index(), options.settings_file(self)
        if self.confirmed_settings:
            self._confirm_settings(file)
        about = {} if path is None else self._confirm_index(path)
        if self.json:
            named = {name: [one.to_json() for one in rows] for name, rows in about.items()}
            output.write_json({"schema": "ketrag/trust/1", "index": str(path), **named, **_as_json(file)})
            return 0
        for endpoint in about.get("endpoints", ()):
            output.write(f"{inline(endpoint.setting)}: {inline(endpoint.sentence())}")
        if path is not None and not about["endpoints"]:
            output.write(f"{inline(path)} names no endpoint")
        for source in about.get("sources", ()):
            output.write(f"source: {inline(source.sentence())}")
        state = "confirmed" if file.is_confirmed else "not confirmed: commands that need it end with an error"
        for one in file.outside:
            output.write(inline(f"{file.path}:{one.line}: {one.sentence()} ({state})"))
        if self.confirmed_settings and not file.outside:
            output.write(f"{inline(file.path)} names nothing outside its folder")
        return 0

    def _index(self) -> Path | None:
        """Return the folder of the index; None if only the settings file is meant and no index exists."""
        if not self.confirmed_settings or self.endpoint is not None or self.sources:
            return options.one_path(self)
        path = options.index_path(self)[0]
        return path if path.exists() else None

    def _confirm_settings(self, file: SettingsFile) -> None:
        from ketrag_fast.index.named_sources import trust_settings

        if self.forget or file.outside:
            trust_settings(file, confirmed=not self.forget)

    def _confirm_index(self, path: Path) -> dict[str, Any]:
        """Change the confirmations of an index; return the endpoints and sources that it names."""
        from ketrag_fast.index.endpoints import list_endpoints, trust_endpoint
        from ketrag_fast.index.named_sources import named_sources, trust_sources

        if self.endpoint is not None:
            trust_endpoint(path, self.endpoint, confirmed=not self.forget)
        if self.sources:
            trust_sources(path, confirmed=not self.forget)
        return {"endpoints": list_endpoints(path), "sources": named_sources(path)}


def _as_json(file: SettingsFile) -> dict[str, Any]:
    rows = [{"setting": one.setting, "line": one.line, "names": one.what} for one in file.outside]
    return {"settings": {"file": str(file.path), "confirmed": file.is_confirmed, "outside": rows}}
