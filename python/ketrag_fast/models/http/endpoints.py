"""Endpoints with OpenAI's protocol: specs (`openai:MODEL@URL#OPTIONS`), addresses, API keys, token counts."""

from __future__ import annotations

import os
import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, urlsplit

from ketrag_fast.errors import ConfigError, NetworkForbidden
from ketrag_fast.records import dataclass
from ketrag_fast.secrets import Key

if TYPE_CHECKING:
    from ketrag_fast.models.embedders.protocol import Role

KEY_VARIABLES: Final = ("KETRAG_OPENAI_API_KEY", "OPENAI_API_KEY")
SERVICE_VARIABLE: Final = "KETRAG_TOKEN"
"""Variable with the token of `ketrag serve`, for the service and for those that query it."""
WEIGHT: Final = re.compile(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]")
LETTERS: Final = 6
"""Letters of a word that count as one token."""
_SECRET: Final = re.compile(r"key|token|secret|password|signature|^sig$|^code$", re.IGNORECASE)
_KEYS: Final = "set the key in the environment (KETRAG_OPENAI_API_KEY)"
_SAFE: Final = "/%:@!$&'()*+,;=~?-._"
_PORTS: Final = {"http": 80, "https": 443}
_SPEC: Final = re.compile(r"(?P<model>.+?)@(?P<url>https?://[^#]+)(?:#(?P<options>.*))?", re.DOTALL)


# -- addresses -------------------------------------------------------------------------------------


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
    if parts.scheme not in _PORTS or not host or port == 0:
        raise ConfigError(f"{url[:200]!r} is not an http or https address")
    secret = next((name for name, value in parse_qsl(parts.query) if value and _SECRET.search(name)), None)
    if secret is not None:
        raise ConfigError(f"the address of an endpoint must not contain a secret ({secret[:40]})", hint=_KEYS)
    query = f"?{quote(parts.query, safe=_SAFE)}" if parts.query else ""
    base = quote(parts.path.rstrip("/"), safe=_SAFE)
    netloc = _bracketed(host) if port is None else f"{_bracketed(host)}:{port}"
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], netloc, base, query)


def _ascii(host: str) -> str:
    """Return a host name in ASCII. Raises ValueError (e.g. UnicodeError) if it is invalid."""
    if not host.isascii():
        return host.encode("idna").decode("ascii")
    if re.search(r"[^A-Za-z0-9._:%\-]", host):
        raise ValueError("invalid host name")
    return host


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


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


# -- specs -----------------------------------------------------------------------------------------


def parts_of(spec: str) -> tuple[str, str]:
    """Return (MODEL, URL) of `openai:MODEL@URL` or `openai:MODEL@URL#OPTIONS`.

    Raises ConfigError if the spec has another form, or contains a password or key: specs are stored in
    indexes and recordings.
    """
    found = _match(spec)
    address(found["url"])
    return found["model"], found["url"]


def options_of(spec: str) -> str | None:
    """Return OPTIONS of `openai:MODEL@URL#OPTIONS`, None without them. Raises ConfigError as `parts_of`."""
    options: str | None = _match(spec)["options"]
    return options


def _match(spec: str) -> re.Match[str]:
    found = _SPEC.fullmatch(spec.removeprefix("openai:"))
    if not found or not found["model"].strip():
        raise ConfigError(
            f"{spec[:200]!r} is not openai:MODEL@URL", hint="as in openai:nomic@http://127.0.0.1:8080/v1"
        )
    return found


def address_of(spec: str) -> str | None:
    """Return the address of an `openai:MODEL@URL` spec in one form, however it is written; None for a spec of
    another kind. Raises ConfigError as `parts_of`.
    """
    return normalised(parts_of(spec)[1]) if spec.startswith("openai:") else None


def normalised(url: str) -> str:
    """Return the address of an endpoint with its port, in lower case where case has no meaning. Raises
    ConfigError if it is not a valid address.
    """
    place = address(url)
    return f"{place.scheme}://{_bracketed(place.host).lower()}:{place.port}{place.base}{place.query}"


def weight(text: str) -> int:
    """Return the estimated tokens: one per six letters of a word, rounded up, one per other character."""
    return sum(1 + (len(part) - 1) // LETTERS for part in WEIGHT.findall(text))


PROMPT_FIELD: Final = "input_type"
_LONGEST_PROMPTS: Final = 500


@dataclass(frozen=True, slots=True)
class EndpointPrompts:
    """How requests to an embedding endpoint mark questions and passages.

    Models such as E5 and Nomic were trained with a prefix for each of the two, and OpenAI's protocol has no
    field for it. With `field`, a request has the field `input_type` instead of prefixes.
    """

    query: str = ""
    document: str = ""
    field: bool = False

    def prefix(self, role: Role) -> str:
        """Return the text that is put before a question or a passage."""
        return self.query if role == "query" else self.document

    def fields(self, role: Role) -> dict[str, str]:
        """Return the fields that a request has in addition to those of OpenAI's protocol."""
        return {PROMPT_FIELD: "query" if role == "query" else "passage"} if self.field else {}

    def facts(self) -> dict[str, object]:
        """Return the facts that belong to the fingerprint of the model; none without prompts."""
        if self.field:
            return {"prompts": PROMPT_FIELD}
        return {"prompts": [self.query, self.document]} if self.query or self.document else {}


def prompts_of(spec: str) -> EndpointPrompts:
    """Return the prompts of `openai:MODEL@URL#PROMPTS`: `input_type`, or two prefixes `QUESTION|PASSAGE`.

    Raises ConfigError if PROMPTS has another form.
    """
    text = options_of(spec)
    if text is None:
        return EndpointPrompts()
    if text == PROMPT_FIELD:
        return EndpointPrompts(field=True)
    query, bar, document = text.partition("|")
    if not bar or "|" in document or not text.strip("|") or len(text) > _LONGEST_PROMPTS:
        raise ConfigError(
            f"{text[:200]!r} is not {PROMPT_FIELD} or two prefixes QUESTION|PASSAGE "
            f"(at most {_LONGEST_PROMPTS} characters)",
            hint="as in 'openai:e5@http://127.0.0.1:8080/v1#query: |passage: '",
        )
    return EndpointPrompts(query, document)


# -- keys and attempts -----------------------------------------------------------------------------


def key_for(host: str, scheme: str) -> Key | None:
    """Return the API key for a host, or None.

    KETRAG_OPENAI_API_KEY is sent to any endpoint that the user names, OPENAI_API_KEY to OpenAI only. White
    space around a key is ignored. Raises ConfigError, without showing the key, if it has invalid characters
    or would be sent unencrypted.
    """
    key = _read_key(KEY_VARIABLES[0]) or (_read_key(KEY_VARIABLES[1]) if host == "api.openai.com" else None)
    if key is not None and scheme != "https" and not is_loopback(host):
        raise ConfigError(f"the API key would be sent to {host} unencrypted", hint="use an https address")
    return key


def token_for(host: str, scheme: str) -> Key | None:
    """Return the token for a service (`ketrag serve`) that the user names, or None.

    Raises ConfigError, without showing the token, as `key_for` does.
    """
    token = _read_key(SERVICE_VARIABLE)
    if token is not None and scheme != "https" and not is_loopback(host):
        raise ConfigError(f"the token would be sent to {host} unencrypted", hint="use an https address")
    return token


def _read_key(variable: str) -> Key | None:
    text = os.environ.get(variable, "").strip()
    bad = next((place for place, sign in enumerate(text, 1) if not "!" <= sign <= "~"), None)
    if bad is not None:
        raise ConfigError(
            f"the key in {variable} cannot be sent: character {bad} of {len(text)} is not printable ASCII",
            hint="copy the key again; it is one line without blanks",
        )
    return Key(text) if text else None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts, first pause in seconds (then doubled), and timeout of each attempt in seconds, from
    connecting to the last byte.
    """

    attempts: int = 6
    pause: float = 0.5
    timeout: float = 120.0


QUERY_RETRY: Final = RetryPolicy(attempts=3, pause=0.25)
"""The attempts for a query: its pauses take less than a second if an endpoint refuses connections.

Six attempts, as for a build, took 15 s with a server that was switched off; other numbers were not compared.
"""
