"""A JSON schema as a tree of forms, and that tree as a grammar for llama.cpp (GBNF).

Only schemas that can be enforced exactly are accepted: an unknown keyword is an error, because a rejected
grammar, or one that is wider than the schema, would give an unconstrained reply that looks like a checked
one. Grammars are narrower than the schema in two ways: all properties are required, in schema order, and
there is no white space between tokens, which would cost tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ketrag_fast.errors import ConfigError

# llama.cpp rejects more than 2,000 repetitions, and each one costs a rule. Longer ones are unlimited in the
# grammar; the token limit bounds them, and the parser checks their length.
_MOST_REPEATS: Final = 500
_IGNORED: Final = frozenset({"title", "description", "$schema", "$id", "examples", "default", "$comment"})
_CHAR: Final = r'[^"\\\x7F\x00-\x1F] | [\\] (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'


@dataclass(frozen=True, slots=True)
class WordsForm:
    """One of these JSON texts: constants, enumerations, booleans, null."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TextForm:
    """A string with `least` to `most` characters; `most` None is unlimited."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class NumberForm:
    """A number; with `whole` an integer."""

    whole: bool


@dataclass(frozen=True, slots=True)
class ListForm:
    """An array: the items `first`, then `rest` from `least` to `most` times."""

    first: tuple[Form, ...]
    rest: Form | None
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """An object with these members in this order."""

    members: tuple[tuple[str, Form], ...]


@dataclass(frozen=True, slots=True)
class EitherForm:
    """One of several forms that begin with different characters."""

    forms: tuple[Form, ...]


Form: TypeAlias = WordsForm | TextForm | NumberForm | ListForm | ObjectForm | EitherForm


def compact(value: Any) -> str:
    """Return the JSON text of a value as the grammars write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def form_of(schema: Mapping[str, Any], where: str = "the schema") -> Form:
    """Return the form of a schema. Raises ConfigError for unsupported keywords."""
    rules = {key: value for key, value in schema.items() if key not in _IGNORED}
    for both in ("anyOf", "oneOf"):
        if both in rules:
            _only(rules, {both}, where)
            forms = tuple(form_of(one, f"{where}.{both}[{n}]") for n, one in enumerate(rules[both]))
            return _either(forms, where)
    if "const" in rules or "enum" in rules:
        _only(rules, {"const", "enum", "type"}, where)
        values = [rules["const"]] if "const" in rules else list(rules["enum"])
        if not values:
            raise ConfigError(f"{where} allows no value")
        return WordsForm(tuple(dict.fromkeys(compact(value) for value in values)))
    kind = rules.get("type")
    if isinstance(kind, list):
        forms = tuple(form_of({**rules, "type": one}, where) for one in kind)
        return _either(forms, where)
    match kind:
        case "string":
            _only(rules, {"type", "minLength", "maxLength"}, where)
            return TextForm(*_bounds(rules, "minLength", "maxLength", where))
        case "integer" | "number":
            _only(rules, {"type"}, where)
            return NumberForm(kind == "integer")
        case "boolean":
            _only(rules, {"type"}, where)
            return WordsForm(("true", "false"))
        case "null":
            _only(rules, {"type"}, where)
            return WordsForm(("null",))
        case "array":
            return _row(rules, where)
        case "object":
            return _record(rules, where)
    raise ConfigError(f"{where} has the unsupported type {kind!r}")


def _row(rules: Mapping[str, Any], where: str) -> Form:
    _only(rules, {"type", "items", "prefixItems", "minItems", "maxItems"}, where)
    first = tuple(form_of(one, f"{where}[{n}]") for n, one in enumerate(rules.get("prefixItems", ())))
    least, most = _bounds(rules, "minItems", "maxItems", where)
    if most is not None and most < len(first):
        first = first[:most]
    more = None if most is None else most - len(first)
    inner = rules.get("items")
    if inner is False or (more == 0):
        rest = None
    elif isinstance(inner, Mapping):
        rest = form_of(inner, f"{where}[]")
    else:
        raise ConfigError(f"{where} does not say what its items are")
    if first and least < len(first):
        raise ConfigError(f"{where} may leave out items of prefixItems", hint="set minItems to their number")
    if rest is None and least > len(first):
        raise ConfigError(f"{where} wants more items than it describes")
    return ListForm(first, rest, least - len(first), more)


def _record(rules: Mapping[str, Any], where: str) -> Form:
    _only(rules, {"type", "properties", "required", "additionalProperties"}, where)
    properties = rules.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        raise ConfigError(f"{where} is an object without properties")
    missing = set(rules.get("required", ())) - set(properties)
    if missing:
        raise ConfigError(f"{where} requires {sorted(missing)}, which it does not describe")
    return ObjectForm(tuple((key, form_of(value, f"{where}.{key}")) for key, value in properties.items()))


def _either(forms: tuple[Form, ...], where: str) -> Form:
    if not forms:
        raise ConfigError(f"{where} allows no value")
    if len(forms) == 1:
        return forms[0]
    starts = [starts_of(form) for form in forms]
    if sum(len(one) for one in starts) != len(frozenset[str]().union(*starts)):
        raise ConfigError(f"{where} has alternatives that begin alike; they cannot be told apart")
    return EitherForm(forms)


def starts_of(form: Form) -> frozenset[str]:
    """Return the characters that a value of this form may begin with."""
    match form:
        case WordsForm(texts):
            return frozenset(text[0] for text in texts)
        case TextForm():
            return frozenset('"')
        case NumberForm():
            return frozenset("-0123456789")
        case ListForm():
            return frozenset("[")
        case ObjectForm():
            return frozenset("{")
        case EitherForm(forms):
            return frozenset[str]().union(*map(starts_of, forms))


def _only(rules: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = set(rules) - known
    if unknown:
        raise ConfigError(f"{where} uses unsupported keywords: {sorted(unknown)}")


def _bounds(rules: Mapping[str, Any], low: str, high: str, where: str) -> tuple[int, int | None]:
    least, most = rules.get(low, 0), rules.get(high)
    good = (
        isinstance(least, int) and least >= 0 and (most is None or (isinstance(most, int) and most >= least))
    )
    if not good:
        raise ConfigError(f"{where} has invalid {low} and {high}: {least!r} and {most!r}")
    return least, most


def grammar_of(form: Form) -> str:
    """Return a GBNF grammar with this form as its rule `root`."""
    rules: dict[str, str] = {}  # the name of each rule by its text
    body = _rule(form, rules)
    lines = [f"root ::= {body}", *(f"{name} ::= {text}" for text, name in rules.items()), f"char ::= {_CHAR}"]
    return "\n".join(lines) + "\n"


def _rule(form: Form, rules: dict[str, str]) -> str:
    match form:
        case WordsForm(texts):
            body = " | ".join(_quote(text) for text in texts)
        case TextForm(least, most):
            body = f'"\\"" {_times("char", least, most)} "\\""'
        case NumberForm(whole):
            body = '"-"? ("0" | [1-9] [0-9]{0,15})'
            body += "" if whole else ' ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,3})?'
        case ListForm():
            body = _row_rule(form, rules)
        case ObjectForm(members):
            parts = [f"{_quote(compact(key) + ':')} {_rule(value, rules)}" for key, value in members]
            inside = ' "," '.join(parts)
            body = f'"{{" {inside} "}}"'
        case EitherForm(forms):
            body = " | ".join(_rule(one, rules) for one in forms)
    return rules.setdefault(body, f"r{len(rules)}")


def _row_rule(form: ListForm, rules: dict[str, str]) -> str:
    parts = ' "," '.join(_rule(one, rules) for one in form.first)
    if form.rest is None or form.most == 0:
        return f'"[" {parts} "]"'
    inner = _rule(form.rest, rules)
    if parts:
        repeated = _times(f'("," {inner})', form.least, form.most)
        return f'"[" {parts} {repeated} "]"'
    most = None if form.most is None else form.most - 1
    more = _times(f'("," {inner})', max(0, form.least - 1), most)
    return f'"[" {inner} {more} "]"' if form.least else f'"[" ({inner} {more})? "]"'


def _times(what: str, least: int, most: int | None) -> str:
    if least == most:
        return f"{what}{{{least}}}" if least <= _MOST_REPEATS else f"{what}*"
    if most is not None and most > _MOST_REPEATS:
        most = None
    if least > _MOST_REPEATS:
        least = 0
    return f"{what}*" if (least, most) == (0, None) else f"{what}{{{least},{'' if most is None else most}}}"


def _quote(text: str) -> str:
    out = []
    for sign in text:
        if sign in '"\\':
            out.append("\\" + sign)
        elif " " <= sign <= "~":
            out.append(sign)
        elif ord(sign) < 0x10000:
            out.append(f"\\u{ord(sign):04X}")
        else:
            out.append(f"\\U{ord(sign):08X}")
    return f'"{"".join(out)}"'
