"""The JSON schema of a reply: arrays, which need fewer tokens than objects with keys.

It does not limit lengths and counts: large limits make llama.cpp reject the grammar and reply without one,
and small ones truncate names. Excess is dropped by the parser. Enumerations (types, strengths) are free and
let a grammar force most of their tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ketrag_fast.models.extraction.options import PromptOptions

STRENGTHS: Final = tuple(range(1, 11))
_TEXT: Final = {"type": "string"}


def reply_schema(options: PromptOptions) -> dict[str, Any]:
    """Return the schema of `{"e": [[name, type, description]], "r": [[source, target, description,
    strength]]}`.
    """
    kind = {"enum": list(options.entity_types)} if options.entity_types else _TEXT
    strength = {"enum": list(STRENGTHS)}
    entity = {"name": _TEXT, "type": kind, "description": _TEXT}
    relation = {"source": _TEXT, "target": _TEXT, "description": _TEXT, "strength": strength}
    lists = [{"type": "array", "items": _row(fields)} for fields in (entity, relation)]
    return _object(dict(zip(("e", "r"), lists, strict=True)))


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def _row(fields: Mapping[str, Any]) -> dict[str, Any]:
    columns: Sequence[Any] = list(fields.values())
    return {"type": "array", "prefixItems": columns, "minItems": len(columns), "maxItems": len(columns)}
