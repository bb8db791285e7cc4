"""`ketrag estimate`: looks at the documents, builds a sample of them, and says what the whole will take.

Where the index remembers a whole build of the same kind, its rates count for more than the sample's: the
second estimate knows this machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ketrag_fast.backends.embedders.registry import BUILTIN, parse
from ketrag_fast.config import Settings, build_settings, resolve
from ketrag_fast.cost.bill import bill
from ketrag_fast.cost.calls import NO_CALLS, Calls, reckon
from ketrag_fast.cost.estimate import COUNTED, PAST, SAMPLED, Estimate
from ketrag_fast.cost.growth import KNN_POWER, bytes_at, chunks_at, seconds_at
from ketrag_fast.cost.history import Past, past
from ketrag_fast.cost.measure import Sample, measure
from ketrag_fast.cost.prices import Prices
from ketrag_fast.cost.survey import Survey, survey
from ketrag_fast.pipeline.ingest import Sources, read_only
from ketrag_fast.progress import Callback
from ketrag_fast.systems.presets import PRESETS
from ketrag_fast.types import Usage

_CHARACTERS: Final = 1_500_000
_WITH_MODEL: Final = 150_000
"""Characters of the sample: a model embeds some thousand tokens a second, the built-in space a million."""
_ABOUT_VECTOR: Final = 60
"""Bytes that the cache keeps of a text beside its vector."""
_OF_LLM: Final = ("replies",)


@dataclass(frozen=True, slots=True)
class Wish:
    """How an estimate is made. `spend` allows calls that may cost money; `index` is where it may learn."""

    sample: int = 400
    calls: int = 3
    spend: bool = False
    index: Path | None = None
    prices: Prices = Prices()
    progress: Callback | None = None


def predict(sources: Sources, settings: Settings, wish: Wish) -> Estimate:
    """The estimate for a build of `sources` with `settings`. Writes nothing but a temporary folder."""
    asked = _asked(settings, wish.index)
    whole = resolve(flags=asked.given, presets=PRESETS).settings
    local = parse(whole.embedder)[0] != "openai"
    timing = local or wish.spend
    most = _CHARACTERS if whole.embedder == BUILTIN or not timing else _WITH_MODEL
    found = survey(read_only(sources, whole), wish.sample, most, whole.seed)
    built = _without_model(asked, timing)
    samples = measure(found.sample, built, wish.progress)
    last = samples[-1]
    chunks = _chunks(found, last)
    core = min(chunks, math.ceil(whole.core_ratio * chunks - 1e-9))
    before = past(wish.index, build_settings(whole)) if wish.index is not None else None
    calls = _calls(last, whole, wish, before)
    work = _Work(found, samples, whole, before, timing)
    stages = work.stages()
    seconds: float | None = math.fsum(stages.values()) + work.around()
    notes = []
    if calls.seconds is not None and core and calls.seconds:
        stages["language model"] = calls.seconds * core * (1 + whole.gleanings)
        seconds = (seconds or 0.0) + stages["language model"]
    if calls.note is not None:
        notes.append(calls.note)
        seconds = None
    if not timing:
        notes.append(f"{whole.embedder} was not asked, as that may cost money: --spend times it on a sample")
        seconds = None
    number = core * (1 + whole.gleanings) if calls is not NO_CALLS else 0
    sent, said = _with_gleanings(calls, whole.gleanings)
    usage = Usage(
        calls=number,
        tokens_in=round(core * sent),
        tokens_out=round(core * said),
        embedding_tokens=work.embedding_tokens(),
    )
    basis = {
        "chunks": COUNTED if found.whole else SAMPLED,
        "calls": COUNTED if found.whole else SAMPLED,
        "tokens_in": calls.basis_in,
        "tokens_out": calls.basis_out,
        "embedding_tokens": work.basis if whole.embedder != BUILTIN else "",
        "seconds": work.basis,
        "usd": f"prices of {wish.prices.date}" if wish.prices.date else "",
        "disk": work.basis,
        "memory": work.basis,
    }
    return Estimate(
        documents=found.documents,
        characters=found.characters,
        failures=found.failures,
        sampled=len(found.sample),
        chunks=chunks,
        core_chunks=core,
        calls=usage.calls,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        embedding_tokens=usage.embedding_tokens,
        seconds=seconds,
        stages=stages,
        disk=work.disk(),
        memory=work.memory(),
        bill=bill(usage, wish.prices, whole.llm, whole.embedder),
        settings=build_settings(whole),
        basis=basis,
        notes=tuple(notes),
    )


@dataclass(slots=True)
class _Work:
    """All parts that need no language model, from the last whole build or from the sample."""

    found: Survey
    samples: Sequence[Sample]
    settings: Settings
    before: Past | None
    timing: bool

    @property
    def basis(self) -> str:
        return PAST if self.before is not None else COUNTED if self.found.whole else SAMPLED

    @property
    def _sizes(self) -> list[int]:
        return [sample.characters for sample in self.samples]

    @property
    def _share(self) -> float:
        """Characters now for each of the last whole build."""
        return self.found.characters / max(self.before.usage.characters, 1) if self.before else 1.0

    def stages(self) -> dict[str, float]:
        if self.before is not None:
            return {
                name: seconds * self._share ** (KNN_POWER if name == "knn" else 1.0)
                for name, seconds in self.before.stages.items()
                if name not in _OF_LLM
            }
        found = seconds_at(self.found.characters, self._sizes, [sample.seconds for sample in self.samples])
        if not self.timing:
            found.pop("vectors", None)
        return found

    def around(self) -> float:
        if self.before is not None:
            return max(self.before.seconds - math.fsum(self.before.stages.values()), 0.0) * self._share
        took = [{"around": sample.around} for sample in self.samples]
        return seconds_at(self.found.characters, self._sizes, took)["around"]

    def embedding_tokens(self) -> int:
        if self.settings.embedder == BUILTIN:
            return 0
        if self.before is not None and self.before.usage.embedding_tokens:
            return round(self.before.usage.embedding_tokens * self._share)
        last = self.samples[-1]
        if self.timing:
            return round(last.embedding_tokens * self.found.scale)
        chunk_bytes = sum(len(text.encode()) for _, text in last.chunks) or 1
        return round(last.embedded_bytes * self.found.scale * sum(last.chunk_tokens) / chunk_bytes)

    def disk(self) -> int:
        """The generation, the tables with the documents, and the cache of vectors."""
        if self.before is not None:
            held = sum(round(size * self._share) for size in self.before.bytes.values())
        else:
            held = sum(bytes_at(self.found.characters, self._sizes, [s.bytes for s in self.samples]).values())
        last = self.samples[-1]
        beside = max(last.folder_bytes - sum(last.bytes.values()), 0)
        return held + round(beside * self.found.scale)

    def memory(self) -> int | None:
        if self.before is not None and self.before.usage.memory is not None:
            return round(self.before.usage.memory * max(self._share, 1.0))
        first, last = self.samples[0], self.samples[-1]
        if first.memory is None or last.memory is None:
            return None
        held = [sum(s.bytes.values()) for s in (first, last)]
        slope = (last.memory - first.memory) / (held[1] - held[0]) if held[1] > held[0] else 1.0
        sizes = bytes_at(self.found.characters, self._sizes, [s.bytes for s in self.samples])
        return round(last.memory + min(max(slope, 1.0), 3.0) * max(sum(sizes.values()) - held[1], 0))


def _asked(settings: Settings, index: Path | None) -> Settings:
    """What the index that is to be built has already counts where nothing else was said."""
    from ketrag_fast.pipeline.known import stored_settings

    stored = stored_settings(index) if index is not None else None
    if stored is None:
        return settings
    resolved = resolve(flags=settings.given, index=stored, presets=PRESETS).settings
    return Settings(**{**settings.given, **build_settings(resolved)})


def _without_model(settings: Settings, timing: bool) -> Settings:
    """The sample is built without a language model, and with the built-in vectors where asking costs."""
    changes: dict[str, Any] = {"llm": "none", "on_error": "skip", "core_ratio": 1.0}
    if not timing:
        changes["embedder"] = BUILTIN
    return settings.having(**changes)


def _chunks(found: Survey, last: Sample) -> int:
    if found.whole:
        return int(last.counts["chunks"])
    return chunks_at(found.documents, found.characters, last.lengths, last.per_document)


def _calls(last: Sample, settings: Settings, wish: Wish, before: Past | None) -> Calls:
    usage = before.usage if before is not None else None
    if usage is not None and usage.calls and settings.llm != "none":
        each = usage.llm_seconds / usage.calls
        return Calls(usage.tokens_in / usage.calls, usage.tokens_out / usage.calls, each, PAST, PAST)
    chosen = _core_chunks(last, settings)
    return reckon(chosen, settings, timed=wish.calls, spend=wish.spend)


def _core_chunks(last: Sample, settings: Settings) -> Sequence[tuple[str, str]]:
    """The chunks of the sample that would be core: the most important ones."""
    return last.chunks[: max(math.ceil(settings.core_ratio * len(last.chunks) - 1e-9), 0)]


def _with_gleanings(calls: Calls, gleanings: int) -> tuple[float, float]:
    """Tokens in and out of a chunk: each gleaning sends again what was said before, and what was sent."""
    if calls.basis_in == PAST:
        return calls.tokens_in * (1 + gleanings), calls.tokens_out * (1 + gleanings)
    sent = said = 0.0
    for turn in range(1 + gleanings):
        sent += calls.tokens_in + turn * calls.tokens_out
        said += calls.tokens_out
    return sent, said


def against(estimate: Mapping[str, Any], usage: Usage, seconds: float, size: int) -> list[dict[str, Any]]:
    """An estimate beside what a build really took: name, both numbers, and the difference in percent."""
    actual = {
        "chunks": usage.chunks,
        "core_chunks": usage.core_chunks,
        "calls": usage.calls,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "embedding_tokens": usage.embedding_tokens,
        "seconds": seconds,
        "disk": size,
        "memory": usage.memory,
    }
    found = []
    for name, real in actual.items():
        said = estimate.get(name)
        if not isinstance(said, (int, float)) or real is None or not (said or real):
            continue
        off = 100.0 * (said - real) / real if real else None
        found.append({"name": name, "estimate": said, "actual": real, "off_percent": off})
    return found


