"""A JSON schema as a grammar for llama.cpp (GBNF).

An unsupported keyword is an error, because a grammar that is wider than its schema would give a reply that
only looks checked. Grammars are narrower than their schema in two ways: all properties are required, in the
order of the schema, and there is no white space between tokens, which would cost tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ketrag_fast.errors import ConfigError

# llama.cpp rejects more than 2,000 repetitions, and each one costs a rule. Longer ones are unlimited in the
# grammar; the token limit bounds them, and the parser checks their length.
_MOST_REPEATS: Final = 500
_IGNORED: Final = frozenset({"title", "description", "$schema", "$id", "examples", "default", "$comment"})
_CHAR: Final = r'[^"\\\x7F\x00-\x1F] | [\\] (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
_INTEGER: Final = '"-"? ("0" | [1-9] [0-9]{0,15})'
_SIMPLE: Final = {
    "integer": _INTEGER,
    "number": _INTEGER + ' ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
}


def grammar_of(schema: Mapping[str, Any]) -> str:
    """Return the grammar of a schema. Raises ConfigError for unsupported keywords."""
    rules: dict[str, str] = {}  # the name of each rule by its text
    body = _rule(schema, "the schema", rules)
    lines = [f"root ::= {body}", *(f"{name} ::= {text}" for text, name in rules.items()), f"char ::= {_CHAR}"]
    return "\n".join(lines) + "\n"


def _rule(schema: Mapping[str, Any], where: str, rules: dict[str, str]) -> str:
    """Return the name of the rule of a schema, adding the rule if it is new."""
    fields = {key: value for key, value in schema.items() if key not in _IGNORED}
    kind = fields.pop("type", None)
    either = next((fields.pop(key) for key in ("anyOf", "oneOf") if key in fields), None)
    if either is None and isinstance(kind, list):
        either, fields = [{**fields, "type": one} for one in kind], {}
    if either is not None:
        body = " | ".join(_rule(one, f"{where}[{n}]", rules) for n, one in enumerate(either))
    elif "const" in fields or "enum" in fields:
        values = [fields.pop("const")] if "const" in fields else fields.pop("enum")
        body = " | ".join(map(_literal, values))
    elif kind in _SIMPLE:
        body = _SIMPLE[kind]
    elif kind == "string":
        body = f'"\\"" {_times("char", fields.pop("minLength", 0), fields.pop("maxLength", None))} "\\""'
    elif kind == "array":
        body = _array(fields, where, rules)
    elif kind == "object":
        body = _object(fields, where, rules)
    else:
        raise ConfigError(f"{where} has the unsupported type {kind!r}")
    if fields or not body:
        raise ConfigError(
            f"{where} uses unsupported keywords: {sorted(fields)}" if fields else f"{where} allows no value"
        )
    return rules.setdefault(body, f"r{len(rules)}")


def _object(fields: dict[str, Any], where: str, rules: dict[str, str]) -> str:
    properties = fields.pop("properties", None)
    missing = set(fields.pop("required", ())) - set(properties or ())
    if not properties or missing:
        raise ConfigError(f"{where} must describe its properties {sorted(missing)}".removesuffix(" []"))
    fields.pop("additionalProperties", None)
    members = (
        f"{_literal(key, ':')} {_rule(value, f'{where}.{key}', rules)}" for key, value in properties.items()
    )
    return f'"{{" {_listed(members)} "}}"'


def _array(fields: dict[str, Any], where: str, rules: dict[str, str]) -> str:
    """Return the rule of an array: of exactly the `prefixItems`, or of any number of `items`."""
    first = [_rule(one, f"{where}[{n}]", rules) for n, one in enumerate(fields.pop("prefixItems", ()))]
    least, most = fields.pop("minItems", 0), fields.pop("maxItems", None)
    items = fields.pop("items", None)
    if first and not (most == least == len(first)):
        raise ConfigError(f"{where} must have exactly the {len(first)} items of prefixItems")
    if first:
        return f'"[" {_listed(first)} "]"'
    if not isinstance(items, Mapping):
        raise ConfigError(f"{where} must describe its items")
    inner = _rule(items, f"{where}[]", rules)
    more = _times(f'("," {inner})', max(0, least - 1), None if most is None else most - 1)
    return f'"[" {inner} {more} "]"' if least else f'"[" ({inner} {more})? "]"'


def _listed(rules: Iterable[str]) -> str:
    return ' "," '.join(rules)


def _times(what: str, least: int, most: int | None) -> str:
    if most is not None and most > _MOST_REPEATS:
        most = None
    least = 0 if least > _MOST_REPEATS else least
    return f"{what}{{{least},{'' if most is None else most}}}"


def _literal(value: Any, end: str = "") -> str:
    """Return the JSON text of a value, followed by `end`, as a literal of the grammar."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")) + end
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
