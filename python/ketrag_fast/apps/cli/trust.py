"""`ketrag trust`: confirm what an index or a settings file names."""

from __future__ import annotations

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import Command, option, switch
from ketrag_fast.apps.cli.terminal import inline
from ketrag_fast.errors import ConfigError


class Trust(Command):
    """List the endpoints and sources that an index names, and confirm them: queries, and the API key if one
    is set, may then be sent to an --endpoint, and updates of the index may read its --sources. Nothing is
    sent to an endpoint, and nothing is read from a source, that only the index names. A confirmation is
    stored for this user, folder and index, not in the index."""

    examples = (
        "ketrag trust -i their-index",
        "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1",
        "ketrag trust -i their-index --sources",
        "ketrag trust -i their-index --endpoint http://10.0.0.7:8080/v1 --forget",
    )
    endpoint: str | None = option("URL", "address to confirm")
    sources: bool = switch("confirm all sources of the index")
    forget: bool = switch("withdraw the confirmation of --endpoint or --sources")

    def run(self) -> int:
        """Change confirmations, and print what the index names."""
        if self.forget and self.endpoint is None and not self.sources:
            raise ConfigError("--forget needs --endpoint URL or --sources")
        path = options.one_path(self)
        from ketrag_fast.index.endpoints import list_endpoints, trust_endpoint
        from ketrag_fast.index.named_sources import named_sources, trust_sources

        if self.endpoint is not None:
            trust_endpoint(path, self.endpoint, confirmed=not self.forget)
        if self.sources:
            trust_sources(path, confirmed=not self.forget)
        endpoints, sources = list_endpoints(path), named_sources(path)
        if self.json:
            named = {
                "endpoints": [endpoint.to_json() for endpoint in endpoints],
                "sources": [source.to_json() for source in sources],
            }
            output.write_json({"schema": "ketrag/trust/1", "index": str(path), **named})
            return 0
        for endpoint in endpoints:
            output.write(f"{inline(endpoint.setting)}: {inline(endpoint.sentence())}")
        if not endpoints:
            output.write(f"{inline(path)} names no endpoint")
        for source in sources:
            output.write(f"source: {inline(source.sentence())}")
        return 0
