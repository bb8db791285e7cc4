"""List the endpoints that an index names, and confirm that queries may be sent to them."""

from __future__ import annotations

import os
from pathlib import Path

from ketrag_fast.base.config import Settings
from ketrag_fast.errors import ConfigError
from ketrag_fast.models.endpoint_trust import Endpoint, Trust, endpoints_of
from ketrag_fast.storage.layout import Layout
from ketrag_fast.systems.index_settings import stored_settings


def list_endpoints(path: str | os.PathLike[str], *, settings: Settings | None = None) -> list[Endpoint]:
    """Return the endpoints that the index at `path` names, and whether each is trusted.

    An endpoint is trusted if `settings` name it too or the user has confirmed it. Nothing is sent to an
    untrusted endpoint. Opens no model.

    Raises:
        IndexMissing, IndexDamaged, IndexIncompatible: The index cannot be read.
    """
    layout = Layout(Path(path))
    layout.require()
    trust = Trust.of(layout, settings if settings is not None else Settings())
    return endpoints_of(stored_settings(layout.root) or {}, trust)


def trust_endpoint(path: str | os.PathLike[str], address: str, *, confirmed: bool = True) -> None:
    """Confirm that queries, and the API key, may be sent to an endpoint that the index at `path` names.

    The confirmation is stored in the user's state folder for this path, index and address; a copy of the
    index does not inherit it. `confirmed=False` withdraws it.

    Raises:
        ConfigError: The index does not name the address.
        IndexMissing, ReadOnly: The index does not exist, or the state folder cannot be written.
    """
    from ketrag_fast.models.http.endpoints import normalised
    from ketrag_fast.storage.confirmations import confirm, forget

    wanted = normalised(address)
    addresses = dict.fromkeys(endpoint.address for endpoint in list_endpoints(path))
    if not confirmed:
        forget(Layout(Path(path)), wanted)
        return
    if wanted not in addresses:
        hint = f"it names {', '.join(addresses)}" if addresses else "it names no endpoint"
        raise ConfigError(f"the index {path} does not name the endpoint {wanted}", hint=hint)
    confirm(Layout(Path(path)), wanted)
