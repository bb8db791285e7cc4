"""`ketrag estimate`: build a sample of the documents and multiply by the amount of text.

The sample is built in a temporary folder, with rules in place of a language model, which is never called: its
requests and tokens are counted from the prompts for the sample. Time, bytes and tokens grow linearly with the
text, except for stages that declare another `growth`. What does not grow, such as the time to open a model,
is measured by building one document alone. A model on this machine embeds a smaller part of the sample: what
its stages need comes from a build of that part.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from ketrag_fast.base.config import Settings, build_settings, resolve
from ketrag_fast.base.progress import Callback
from ketrag_fast.building.sources import (
    Sources,
)
from ketrag_fast.eval.prices import Bill, Prices, bill, embedded_bytes
from ketrag_fast.eval.sample import Sample, documents_within, read_sample
from ketrag_fast.index import Index
from ketrag_fast.kernels.text import count_tokens, unpack
from ketrag_fast.models.embedders.registry import BUILTIN, parse
from ketrag_fast.models.extraction.chunk_reader import prompt_options
from ketrag_fast.models.extraction.heuristic import extract
from ketrag_fast.models.extraction.prompt import build_prompt, follow_up
from ketrag_fast.models.llms.registry import HEURISTIC, NONE, is_model, parse_spec
from ketrag_fast.records import dataclass
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.read_only import contents
from ketrag_fast.systems.index_settings import stored_settings, with_modes
from ketrag_fast.systems.planning import embedding_stages, stages_for
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import Document, Usage

_CHARACTERS: Final = 1_500_000
_CHARACTERS_EMBEDDED: Final = 150_000
"""Size of the part of the sample that a model embeds: some thousand tokens per second on a small machine."""
_REST: Final = "store"
"""Time and bytes that belong to no stage."""
_FRAME: Final = 12
"""Approximate number of tokens that a chat template adds to a prompt."""
_PROMPTS: Final = 200


@dataclass(frozen=True, slots=True)
class Estimate:
    """Predicted cost of a build.

    `seconds` and `stages` are for this machine, without the models that `notes` names. `disk` is in bytes.
    """

    documents: int
    characters: int
    words: int
    failures: int
    sampled: int
    chunks: int
    calls: int
    tokens_in: int
    tokens_out: int
    embedding_tokens: int
    seconds: float
    disk: int
    seconds_per_million_words: float
    bytes_per_million_words: int
    stages: Mapping[str, float]
    usd: Bill
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as `ketrag estimate --json` prints it."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        stages = {name: round(seconds, 3) for name, seconds in self.stages.items()}
        own = {"stages": stages, "usd": self.usd.to_json(), "notes": list(self.notes)}
        return {"schema": "ketrag/estimate/1", **plain, **own}


@dataclass(frozen=True, slots=True)
class _Built:
    """Measurements of building a sample; `core` has (title, text) of each chunk that an LLM would read."""

    characters: int
    words: int
    seconds: Mapping[str, float]
    bytes: Mapping[str, float]
    chunks: int
    embedding_tokens: float
    core: Sequence[tuple[str, str]]
    passes: float


def estimate(
    sources: Sources,
    settings: Settings | None = None,
    *,
    index: Path | None = None,
    prices: Prices | None = None,
    progress: Callback | None = None,
) -> Estimate:
    """Return the estimate for a build of `sources`; writes only to a temporary folder.

    With `index`, its settings complete `settings`, and documents that it has cost no tokens again.

    Raises what reading the sources and building them raise.
    """
    given, whole = _settings_for(settings or Settings(), index)
    parse_spec(whole.llm)
    is_timed = parse(whole.embedder)[0] != "openai"
    held = contents(Layout(index)) if index is not None else frozenset()
    sample = read_sample(sources, whole, _CHARACTERS, held)
    changes: dict[str, Any] = {"on_error": "skip", "llm": NONE if whole.llm == NONE else HEURISTIC}

    def build(documents: Sequence[Document], **more: Any) -> _Samples:
        settings = given.having(**changes, **more)
        return _Samples(*(_build(part, settings, whole, progress) for part in (documents[:1], documents)))

    plain = build(sample.drawn, embedder=BUILTIN)
    embedded = plain
    if is_timed and whole.embedder != BUILTIN:
        chance = random.Random(whole.seed)  # noqa: S311 - a sample, not a secret
        embedded = build(documents_within(list(enumerate(sample.drawn)), _CHARACTERS_EMBEDDED, chance))
    large = plain.large
    share = sample.characters / max(large.characters, 1)
    embedded_share = sample.characters / max(embedded.large.characters, 1)
    words = round(large.words * share)
    million = round(sample.characters / words * 1e6) if words else 0

    def total(of: str, characters: int) -> dict[str, float]:
        return _parts_at(of, characters, plain, embedded)

    stages = {**total("seconds", sample.characters), "read": sample.seconds}
    reading = sample.seconds * million / max(sample.characters, 1)
    each = _tokens_of_calls(large.core, whole) if is_model(whole.llm) and large.core else (0.0, 0.0)
    chunks_read = len(large.core) * large.passes * share * (1 - sample.known) if any(each) else 0.0
    rounds = 1 + (prompt_options(whole).gleanings if chunks_read else 0)
    usage = Usage(
        calls=math.ceil(chunks_read * rounds - 1e-9),
        tokens_in=round(each[0] * chunks_read),
        tokens_out=round(each[1] * chunks_read),
        embedding_tokens=round(embedded.large.embedding_tokens * embedded_share * (1 - sample.known)),
    )
    return Estimate(
        documents=sample.documents,
        characters=sample.characters,
        words=words,
        failures=sample.failures,
        sampled=len(sample.drawn),
        chunks=round(large.chunks * share),
        calls=usage.calls,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        embedding_tokens=usage.embedding_tokens,
        seconds=math.fsum(stages.values()),
        disk=round(math.fsum(total("bytes", sample.characters).values())),
        seconds_per_million_words=math.fsum(total("seconds", million).values()) + reading,
        bytes_per_million_words=round(math.fsum(total("bytes", million).values())),
        stages=stages,
        usd=bill(usage, prices or Prices(), whole.llm, whole.embedder),
        notes=tuple(_notes(sample, large, whole, usage, is_timed)),
    )


def _settings_for(settings: Settings, index: Path | None) -> tuple[Settings, Settings]:
    """Return the given settings, completed by those of the index, and all settings of the build."""
    stored = stored_settings(index) if index is not None else None
    settings = with_modes(settings, stored)
    whole = resolve(flags=settings.given, index=stored, presets=registry().table).settings
    if stored is not None:
        settings = Settings(**{**settings.given, **build_settings(whole)})
    return settings, whole


def _build(
    documents: Sequence[Document], settings: Settings, whole: Settings, progress: Callback | None
) -> _Built:
    """Build some documents in a temporary folder; `whole` are the settings of the estimated build."""
    with tempfile.TemporaryDirectory(prefix="ketrag-", ignore_cleanup_errors=True) as name:
        path = Path(name) / "index"
        with Index.build(list(documents), path, settings=settings, progress=progress) as index:
            report, arrays = index.report, index.inspect.arrays()
            assert report is not None  # noqa: S101 - it was just built
            asking = {s.name for s in registry().stages if s.reads and s.look} if is_model(whole.llm) else ()
            seconds = {s.name: s.seconds for s in report.stages if s.name not in asking}
            seconds[_REST] = max(report.seconds - math.fsum(s.seconds for s in report.stages), 0.0)
            tokens: float = report.usage.embedding_tokens
            if whole.embedder != BUILTIN and settings.embedder == BUILTIN:
                units = arrays["units"]
                rate = units["chunk_tokens"].sum() / max(len(units["unit_texts_blob"]), 1)
                made = {stage.name for stage in stages_for(whole, whole.llm != NONE)}
                tokens = float(rate) * embedded_bytes(arrays, made)
            read = report.extraction["core"] if report.extraction is not None else 0
            return _Built(
                report.usage.characters,
                sum(len(document.text.split()) for document in documents),
                seconds,
                _bytes_of(Layout(path)),
                report.usage.chunks,
                tokens,
                _core_chunks(arrays, documents),
                read / max(report.usage.core_chunks, 1),
            )


def _core_chunks(
    arrays: Mapping[str, Mapping[str, Any]], documents: Sequence[Document]
) -> Sequence[tuple[str, str]]:
    """Return title and text of the chunks from which entities are extracted."""
    units = arrays["units"]
    names, titles = (
        unpack(units[f"document_{of}_blob"], units[f"document_{of}_offsets"]) for of in ("ids", "titles")
    )
    texts = {document.id: document.text for document in documents}
    found = []
    for chunk in next((stage["core"] for stage in arrays.values() if "core" in stage), np.zeros(0)).tolist():
        row = int(units["chunk_document"][chunk])
        first, last = units["chunk_units"][chunk : chunk + 2].tolist()
        start, end = int(units["unit_span"][first, 0]), int(units["unit_span"][last - 1, 1])
        found.append((titles[row], texts[names[row]][start:end]))
    return found


def _bytes_of(layout: Layout) -> dict[str, float]:
    """Return the bytes of each stage of a new index, and of all other files."""
    out: dict[str, float] = {_REST: 0.0}
    (number,) = layout.generations()
    folder = layout.generation(number)
    for file in layout.root.rglob("*"):
        if file.is_file():
            inside = file.relative_to(folder).parts if file.is_relative_to(folder) else ()
            name = inside[0] if len(inside) > 1 else _REST
            out[name] = out.get(name, 0.0) + file.stat().st_size
    return out


@dataclass(frozen=True, slots=True)
class _Samples:
    """Builds of one document and of many."""

    small: _Built
    large: _Built

    def at(self, characters: int, of: str, name: str, power: float = 1.0) -> float:
        """Extrapolate the seconds or bytes of a stage; all of it grows if one document took as much."""
        first, last = (getattr(built, of).get(name, 0.0) for built in (self.small, self.large))
        ratio = characters / max(self.large.characters, 1)
        if power != 1.0 or self.large.characters <= self.small.characters:
            return float(last * math.pow(ratio, power))
        grown = (last - first if last > first else last) / (self.large.characters - self.small.characters)
        return float(max(last + grown * (characters - self.large.characters), 0.0))


def _parts_at(of: str, characters: int, plain: _Samples, embedded: _Samples) -> dict[str, float]:
    """Return the seconds or bytes of each stage for a size of the text.

    Stages that embed, and those that only an index with a model has, are those of the smaller sample.
    """
    powers = {stage.name: stage.growth for stage in registry().stages} if of == "seconds" else {}
    known, embedding = getattr(plain.large, of), embedding_stages()
    out = {}
    for name in getattr(embedded.large, of):
        own = embedded if name in embedding or name not in known else plain
        out[name] = own.at(characters, of, name, powers.get(name, 1.0))
    # To open a model, and to describe it in the manifest, costs the same with any text.
    out[_REST] += max(getattr(embedded.small, of)[_REST] - getattr(plain.small, of)[_REST], 0.0)
    return out


def _tokens_of_calls(core: Sequence[tuple[str, str]], settings: Settings) -> tuple[float, float]:
    """Return mean tokens in and out for all turns of a chunk, with the replies that rules would give."""
    options = prompt_options(settings)
    counted: list[tuple[int, int]] = []
    for title, text in core[:: max(len(core) // _PROMPTS, 1)]:
        found = extract(title, text, options.language)
        entities, relations = [list(row) for row in found.entities], [list(row) for row in found.relations]
        reply = json.dumps({"e": entities, "r": relations}, ensure_ascii=False, separators=(",", ":"))
        prompt = build_prompt(0, title, text, options)
        sent = said = 0
        for _ in range(1 + options.gleanings):
            parts = [prompt.instructions, prompt.text, *(part for turn in prompt.turns for part in turn)]
            sent += int(count_tokens(parts).sum()) + _FRAME
            said += int(count_tokens([reply])[0])
            prompt = follow_up(prompt, reply)
        counted.append((sent, said))
    return fmean(sent for sent, _ in counted), fmean(said for _, said in counted)


def _notes(sample: Sample, large: _Built, settings: Settings, usage: Usage, is_timed: bool) -> Iterator[str]:
    """Yield how the numbers were obtained, and what they leave out."""
    if len(sample.drawn) < sample.documents:
        steep = [s.name for s in registry().stages if s.growth != 1.0 and s.name in large.seconds]
        yield (
            f"multiplied from {len(sample.drawn):,} documents with {large.words:,} words: numbers grow "
            "linearly with the text" + (f", but the time of {', '.join(steep)} faster" if steep else "")
        )
    if sample.known:
        yield f"the index has {sample.known:.0%} of the text: it is not sent to a model again"
    if usage.calls:
        yield (
            f"without the time that {settings.llm} takes; its replies are estimated by rules, and only the "
            "extraction from core chunks is counted"
        )
    if not is_timed:
        yield f"without the time and the vectors of {settings.embedder}, which was not called"
