"""Mark texts as questions or passages for an embedding endpoint: `openai:MODEL@URL#PROMPTS`.

Models such as E5 and Nomic were trained with a prefix for each of the two, and OpenAI's protocol has no field
for it. PROMPTS is `input_type`, for servers that have this field, or the two prefixes: `QUESTION|PASSAGE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ketrag_fast.errors import ConfigError
from ketrag_fast.models.embedders.protocol import Role
from ketrag_fast.models.http.openai_endpoint import options_of

FIELD: Final = "input_type"
_LONGEST: Final = 500
_WORDS: Final[dict[Role, str]] = {"query": "query", "document": "passage"}


@dataclass(frozen=True, slots=True)
class EndpointPrompts:
    """The prefixes of questions and passages, or a request field, `input_type`, in their place."""

    query: str = ""
    document: str = ""
    field: bool = False

    def prefix(self, role: Role) -> str:
        """Return the text that is put before a question or a passage."""
        return self.query if role == "query" else self.document

    def fields(self, role: Role) -> dict[str, str]:
        """Return the fields that a request has in addition to those of OpenAI's protocol."""
        return {FIELD: _WORDS[role]} if self.field else {}

    def facts(self) -> dict[str, object]:
        """Return the facts that belong to the fingerprint of the model; none without prompts."""
        if self.field:
            return {"prompts": FIELD}
        return {"prompts": [self.query, self.document]} if self.query or self.document else {}


def prompts_of(spec: str) -> EndpointPrompts:
    """Return the prompts of `openai:MODEL@URL#PROMPTS`. Raises ConfigError if PROMPTS has another form."""
    text = options_of(spec)
    if text is None:
        return EndpointPrompts()
    if text == FIELD:
        return EndpointPrompts(field=True)
    query, bar, document = text.partition("|")
    if not bar or "|" in document or not text.strip("|") or len(text) > _LONGEST:
        raise ConfigError(
            f"{text[:200]!r} is not {FIELD} or two prefixes QUESTION|PASSAGE (at most {_LONGEST} characters)",
            hint="as in 'openai:e5@http://127.0.0.1:8080/v1#query: |passage: '",
        )
    return EndpointPrompts(query, document)
