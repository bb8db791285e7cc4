"""Parse and check endpoint addresses, and detect loopback."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from ketrag_fast.errors import ConfigError, NetworkForbidden

_SECRET: Final = re.compile(r"key|token|secret|password|signature|^sig$|^code$", re.IGNORECASE)
_KEYS: Final = "set the key in the environment (KETRAG_OPENAI_API_KEY)"


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address. `host` is ASCII; `base` is the percent-encoded path without a final slash; `query`
    begins with a question mark or is empty.
    """

    scheme: str
    host: str
    port: int
    netloc: str
    base: str
    query: str

    def path(self, tail: str) -> str:
        """Return the path of `tail` below `base`, with the query."""
        return (self.base if self.base.endswith(tail) else self.base + tail) + self.query


def address(url: str) -> Address:
    """Parse a URL. Raises ConfigError, without showing secrets, if it is invalid or contains a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _ascii(parts.hostname or "")
    except ValueError:
        raise ConfigError(f"{url[:200]!r} has an invalid host or port") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError("the address of an endpoint must not contain a password", hint=_KEYS)
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ConfigError(f"{url[:200]!r} is not an http or https address")
    secret = next((name for name, value in parse_qsl(parts.query) if value and _SECRET.search(name)), None)
    if secret is not None:
        raise ConfigError(f"the address of an endpoint must not contain a secret ({secret[:40]})", hint=_KEYS)
    query = f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
    base = quote(parts.path.rstrip("/"), safe=_SAFE)
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], _place(parts, host), base, query)


_SAFE: Final = "/%:@!$&'()*+,;=~?-._"
_PORTS: Final = {"http": 80, "https": 443}


def _ascii(host: str) -> str:
    """Return a host name in ASCII. Raises ValueError (e.g. UnicodeError) if it is invalid."""
    if host.isascii():
        if re.search(r"[^A-Za-z0-9._:%\-]", host):
            raise ValueError("invalid host name")
        return host
    return host.encode("idna").decode("ascii")


def _place(parts: SplitResult, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if parts.port is None else f"{shown}:{parts.port}"


def endpoint(url: str, *, offline: bool) -> Address:
    """Parse a URL like `address`. Raises NetworkForbidden if offline and the host is not loopback."""
    found = address(url)
    if offline and not is_loopback(found.host):
        raise NetworkForbidden(
            f"the network is forbidden, and {found.host} is not on this machine",
            hint="leave out --offline, or serve the model on 127.0.0.1",
        )
    return found


def is_local_name(host: str) -> bool:
    """Return whether a name is loopback by definition (RFC 6761, 6.3), so that it is never looked up."""
    plain = host.rstrip(".").lower()
    return plain == "localhost" or plain.endswith(".localhost")


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is loopback by definition, without a lookup."""
    if is_local_name(host):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
