"""Files of code in a ranking, slow and plain: the oracle of `rank::walk::code` and `text::code`.

Reads paths and texts by regular expressions, and counts the query's keywords in every unit of every file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.oracles.lexical import STOP_WORDS, stemmer

SUFFIX = re.compile(r"[^/]\.(?:py|pyi|rs|java|kt|ts|js|c|h|go|rb|ex|hs)$", re.IGNORECASE)
"""The suffixes that the tests use."""
ASIDE = re.compile(
    r"(?:^|/)(?:__tests__|bench(?:es|marks?)?|demos?|examples?|fixtures?|samples?|specs?|test|testdata|testing|tests)/"
    r"|(?:^|/)test_[^/]*$|(?:^|/)conftest\.[^/]*$|\.pyi$|\.d\.[^/.]+$",
    re.IGNORECASE,
)
TEST_NAME = re.compile(r"[^/](?:[_.-]test|_tests|[_.-]spec|Test|Tests|TestCase|Spec|Suite)\.[^/.]+$")
GENERIC = {"init", "index", "lib", "main", "mod"}
PAGE = re.compile(r"[^/]\.(?:md|rst|txt)$", re.IGNORECASE)
RECORD = re.compile(
    r"(?:^|/)\W*(?:authors|changelog|changes|codeowners|contributors|copying|history|licen[cs]e|licenses|news|notice"
    r"|releases|third|unlicense)(?![a-z0-9])[^/]*$",
    re.IGNORECASE,
)
HELP = re.compile(r"can|i|install|may|must|my|should|steps|supported|we|why|you|your")
TESTS = re.compile(r"benchmarks?|conftest|examples?|fixtures?|specs?|test|testing|tests")
KEYWORD = (
    r"alias|class|const|data|def|define|defmacro|defmodule|defp|defprotocol|enum|extension|fn|fun|func|function"
    r"|impl|interface|let|macro_rules!|module|namespace|newtype|object|package|protocol|record|static|struct|sub"
    r"|trait|type|typedef|union|val|var"
)
CONTROL = re.compile(
    r"assert|await|case|catch|do|elif|else|except|for|if|match|new|not|raise|return|switch|throw|until|unless"
    r"|while|yield"
)
IMPORT = re.compile(
    r"(?:import|from|use|using|package|alias|require|open|include|#include)(?=[\s(<]|$)"
    r"|(?:pub use|export)\s*[*{]|pub use "
)


@dataclass(frozen=True)
class Weights:
    """The weights of rust/core/src/rank/walk/plan.rs."""

    code_depth: float = 100
    code_depth_dense: float = 300
    code_name: float = 0.6
    code_folder: float = 0.3
    code_body: float = 0.2
    code_cover: float = 0.3
    code_symbol: float = 0.4
    code_file: float = 0.6
    code_aside: float = 0.3
    code_imports: float = 0.5
    code_old: float = 0.5
    code_page: float = 0.7
    code_again: float = 0.3
    code_near: float = 0.4


@dataclass(frozen=True)
class Bodies:
    """The keywords of the query with their weights, their counts in each unit, and the units' lengths."""

    weights: Sequence[float]
    counts: Sequence[Sequence[int]]
    lengths: Sequence[int]


def is_code(path: str) -> bool:
    return SUFFIX.search(path) is not None


def is_page(path: str) -> bool:
    return PAGE.search(path) is not None


def activity(word: str) -> str:
    """Return a stem without "er" or "or", and a letter that was doubled before it."""
    found = re.fullmatch(r"(.{3,})[eo]r", word)
    return re.sub(r"(?<=..)([^ls])\1$", r"\1", found[1]) if found else word


def version_of(path: str) -> tuple[str, int] | None:
    found = re.match(r"((?:(?!v\d+/)[^/]*/)*)v(\d{1,9})/", path)
    return (found[1], int(found[2])) if found else None


def is_aside(path: str) -> bool:
    return bool(ASIDE.search(path) or TEST_NAME.search(path))


def words_of(text: str) -> list[str]:
    """Split camel case as rust/text/src/identifiers.rs does, for ASCII without "Mc" and lone letters."""
    words = []
    for run in re.findall(r"[^\W_]+", text):
        parts = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z][a-z])|(?<=\d)(?=[A-Z][a-z])", " ", run)
        is_split = any(sum(c.isalpha() for c in part) >= 3 for part in parts.split())
        words += (parts if is_split else run).lower().split()
    return words


def stem(word: str) -> str:
    return stemmer("english").stemWord(word)


def stems(text: str) -> list[str]:
    return [stem(word) for word in words_of(text) if len(word) > 1 and word not in STOP_WORDS]


def symbols(query: str) -> list[str]:
    chains = re.findall(
        r"(?<![\w.:#>-])([A-Za-z_]\w*(?:(?:::|->|\.|#)[A-Za-z_]\w*)*)(?![\w#]|[.:>-]\w)", query
    )
    names = [(chain, re.split(r"\W+", chain)[-1]) for chain in chains]
    return [
        name
        for chain, name in names
        if len(names) == 1
        or (re.search(r".[A-Z]", name) and re.search("[a-z]", name))
        or (len(name) > 1 and ("_" in name.strip("_") or chain != name))
    ]


def defines(text: str, name: str) -> bool:
    """Whether a passage defines a name."""
    qualified = r"(?:[\w.:]*[.:]|\([^()\n]*\)[ \t]*)?"
    after_keyword = rf"(?<![\w.!])(?:{KEYWORD})[ \t*&]+{qualified}{re.escape(name)}(?!\w)"
    if re.search(after_keyword, text):
        return True
    for head, tail, below in re.findall(
        rf"^([\w\s*&:<>~\[\],.@?]*?)(?<!\w){re.escape(name)}(\([^\n]*)(?:\n(.?)|$)", text, re.MULTILINE
    ):
        line = head.rpartition("\n")[2]
        if line.split() and CONTROL.fullmatch(line.split()[0]):
            continue
        is_outer = re.match(r"[^\W\d]", line) is not None and not tail.rstrip().endswith(";")
        if tail.rstrip().endswith("{") or is_outer or (not line and below == "{"):
            return True
    return False


def is_imports(text: str) -> bool:
    lines = [line.strip() for line in text.split("\n")]
    code = [line for line in lines if line and not line.startswith(("//", "*", "/*", "--"))]
    return 2 * sum(IMPORT.match(line) is not None for line in code) > len(code)


def is_same(a: str, b: str) -> bool:
    begins = min(len(a), len(b)) >= 4 and (a.startswith(b) or b.startswith(a))
    return a == b or begins or activity(a) == activity(b)


def share(words: Sequence[str], others: Sequence[str]) -> float:
    return sum(any(is_same(a, b) for b in others) for a in words) / max(len(words), 1)


def arrange(
    ranked: Sequence[tuple[int, float]],
    query: str,
    paths: Sequence[str],
    texts: Sequence[str],
    bodies: Bodies,
    numbers: Mapping[str, float] | None = None,
    near: Sequence[float] | None = None,
) -> list[int]:
    """Return the units of a ranking in their new order.

    `paths` has the path of each unit, and `near` its similarity to the query if there are vectors.
    """
    weights = Weights(**(numbers or {}))
    depth = weights.code_depth_dense if near else weights.code_depth
    head = [unit for unit, _ in ranked[: int(depth)]]
    files = {paths[unit] for unit in head if is_code(paths[unit]) or is_page(paths[unit])}
    code = sum(is_code(paths[unit]) for unit in head) / max(len(head), 1)
    if code == 0:
        return [unit for unit, _ in ranked]
    asked = stems(query)
    words = words_of(query)
    whole = asked + [stem(one + two) for one, two in pairwise(words)]
    wants_help = any(HELP.fullmatch(word.strip(".,?!()\"'").lower()) for word in query.split())
    sources = {found[1] for path in files if (found := re.search(r"([^/]+)\.(?:c|cc|cpp|cxx|m|mm)$", path))}
    versions = [found for found in map(version_of, files) if found]
    body, cover = _bodies(files, paths, bodies)
    short = min(1.0, 12 / max(len(query.split()), 1)) ** 2
    named = symbols(query)
    least = min((near[unit] for unit in head), default=0.0) if near else 0.0
    span = max((near[unit] for unit in head), default=0.0) - least if near else 0.0

    def nearest(path: str) -> float:
        own = [near[unit] for unit in head if paths[unit] == path] if near else []
        return (max(own) - least) / span if own and span > 0 else 0.0

    def on_page(factor: float) -> float:
        return 1.0 - code * (1.0 - factor)

    def score(rank: int, unit: int) -> float:
        path, direct = paths[unit], 61 / (61 + rank)
        if path not in files:
            return direct
        folders, _, name = path.rpartition("/")
        own = words_of(name.rpartition(".")[0])
        name_share = 0.0 if set(own) <= GENERIC else share([stem(word) for word in own], whole)
        bonus = weights.code_name * short * name_share + weights.code_folder * share(asked, stems(folders))
        bonus += weights.code_body * body[path]
        bonus += 0.0 if near else weights.code_cover * cover[path]
        bonus += weights.code_near * nearest(path)
        if is_page(path):
            bonus *= min(2.0 * code, 1.0) * (1.0 if wants_help else weights.code_page)
            factor = on_page(weights.code_aside) if RECORD.search(path) and name_share == 0 else 1.0
            return (direct + code * bonus) * factor
        is_defined = any(defines(texts[unit], one) for one in named)
        bonus += weights.code_symbol * is_defined
        bonus += weights.code_file * bool(named and own and own == words_of(named[-1]))
        value = direct + code * bonus
        if is_aside(path) and not any(map(TESTS.fullmatch, words_of(query))):
            value *= weights.code_aside
        header = re.search(r"([^/]+)\.(?:h|hh|hpp|hxx)$", path)
        is_header = header is not None and header[1] in sources and not is_defined
        version = version_of(path)
        if version and version[1] < max(number for above, number in versions if above == version[0]):
            value *= 1.0 if f"v{version[1]}" in asked else weights.code_old
        return value * (weights.code_imports if is_header or is_imports(texts[unit]) else 1.0)

    def rounded(value: float) -> float:
        return round(value * 2**30) / 2**30

    scored = sorted(((-rounded(score(rank, unit)), rank) for rank, unit in enumerate(head)))
    seen: dict[str, int] = {}
    final = []
    for value, rank in scored:
        path = paths[head[rank]]
        times = seen.get(path, 0) if path in files else 0
        seen[path] = times + 1
        again = on_page(weights.code_again) if is_page(path) else weights.code_again
        final.append((-rounded(-value * again**times), rank))
    return [head[rank] for _, rank in sorted(final)] + [unit for unit, _ in ranked[len(head) :]]


def _bodies(
    files: set[str], paths: Sequence[str], bodies: Bodies
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the BM25 score of each file as one text, relative to the greatest, and its share of keywords."""
    units = {path: [unit for unit, own in enumerate(paths) if own == path] for path in files}
    lengths = {path: sum(bodies.lengths[unit] for unit in own) for path, own in units.items()}
    mean = max(math.fsum(lengths.values()) / max(len(files), 1), 1.0)
    found, cover = {}, {}
    for path, own in units.items():
        counts = [sum(bodies.counts[unit][at] for unit in own) for at in range(len(bodies.weights))]
        norm = 1.2 * (0.7 + 0.3 * lengths[path] / mean)
        found[path] = sum(w * tf / (tf + norm) for w, tf in zip(bodies.weights, counts, strict=True))
        has = sum(w for w, tf in zip(bodies.weights, counts, strict=True) if tf)
        cover[path] = has / (sum(bodies.weights) or 1.0)
    best = max(found.values(), default=0.0) or 1.0
    return {path: value / best for path, value in found.items()}, cover
