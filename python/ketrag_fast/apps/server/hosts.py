"""Names and addresses of this machine."""

from __future__ import annotations

import ipaddress


def is_local(host: str) -> bool:
    """Return whether a name or address is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
