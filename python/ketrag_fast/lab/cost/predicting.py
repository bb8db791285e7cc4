"""`ketrag estimate`: reads the documents, builds a sample of them and predicts the whole build.

If the index has a record of a complete build of the same kind, its rates are used instead of the sample's, so
a second estimate is fitted to this machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ketrag_fast.base.config import Settings, build_settings, resolve
from ketrag_fast.base.progress import Callback
from ketrag_fast.build.file_reading import read_sources
from ketrag_fast.build.sources import Sources
from ketrag_fast.lab.cost.bill import Bill, bill
from ketrag_fast.lab.cost.calls import NO_CALLS, Calls, reckon
from ketrag_fast.lab.cost.estimate import COUNTED, MEASURED, PAST, SAMPLED, Estimate
from ketrag_fast.lab.cost.growth import bytes_at, chunks_at, seconds_at
from ketrag_fast.lab.cost.history import Past, contents, past
from ketrag_fast.lab.cost.measure import Sample, measure
from ketrag_fast.lab.cost.prices import Prices
from ketrag_fast.lab.cost.survey import Survey, survey
from ketrag_fast.lab.cost.vectors import Pace, pace, stored_bytes
from ketrag_fast.models.embedders.registry import BUILTIN, parse
from ketrag_fast.models.endpoint_trust import Trust
from ketrag_fast.models.llms.registry import parse_spec
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.tables import Tables
from ketrag_fast.systems.planning import embedding_stages, stages_for
from ketrag_fast.systems.registry import registry
from ketrag_fast.types import Usage

_CHARACTERS: Final = 1_500_000
"""Characters of the sample, which is built with the built-in vectors in a few seconds."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Options of an estimate. `spend` permits calls that may cost money; `index` may record past builds."""

    sample: int = 2000
    calls: int = 3
    spend: bool = False
    index: Path | None = None
    prices: Prices = field(default_factory=Prices)
    progress: Callback | None = None


def predict(sources: Sources, settings: Settings, wish: Wish) -> Estimate:
    """Return the estimate for a build of `sources` with `settings`. Writes only to a temporary folder."""
    requested = _settings_for(settings, wish.index)
    whole = resolve(flags=requested.given, presets=registry().table).settings
    parse_spec(whole.llm)
    local = parse(whole.embedder)[0] != "openai"
    timing = local or wish.spend
    _check_endpoints(wish, settings, whole)
    before = past(wish.index, build_settings(whole)) if wish.index is not None else None
    # Vectors and replies in an index of the same kind are reused and cost nothing again.
    held = contents(wish.index) if wish.index is not None and before is not None else frozenset()
    with _tables_of(wish.index) as tables:
        found = survey(read_sources(sources, whole, tables), wish.sample, _CHARACTERS, whole.seed, held)
    samples = measure(found.sample, _plain(requested, BUILTIN), wish.progress, whole)
    last = samples[-1]
    chunks = _chunks(found, last)
    core = min(chunks, math.ceil(whole.core_ratio * chunks - 1e-9)) if whole.llm != "none" else 0
    calls = _calls(last, whole, wish, before)
    model = None
    if whole.embedder != BUILTIN and timing and before is None and found.documents:
        model = pace(found.sample, _plain(requested, whole.embedder), wish.progress)
    work = _Work(found, samples, whole, before, model, timing)
    stages = work.stages()
    seconds: float | None = math.fsum(stages.values()) + work.around()
    new_core = math.ceil(core * found.fresh - 1e-9)
    if calls.seconds is not None and core and calls.seconds:
        stages["language model"] = calls.seconds * new_core * (1 + whole.gleanings)
        seconds = (seconds or 0.0) + stages["language model"]
    if calls.note is not None or not timing:
        seconds = None
    tokens_in, tokens_out = _add_gleanings(calls, whole.gleanings)
    usage = Usage(
        calls=new_core * (1 + whole.gleanings) if calls is not NO_CALLS else 0,
        tokens_in=round(new_core * tokens_in),
        tokens_out=round(new_core * tokens_out),
        embedding_tokens=work.embedding_tokens(),
    )
    money = bill(usage, wish.prices, whole.llm, whole.embedder)
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
        bill=money,
        settings=build_settings(whole),
        basis={
            **_basis(found, calls, work),
            "seconds": "" if seconds is None else work.basis,
            "usd": _basis_of_usd(money, whole, wish.prices),
        },
        notes=tuple(_notes(found, calls, whole, timing)),
    )


def _tables_of(index: Path | None) -> AbstractContextManager[Tables | None]:
    """Return the tables of an index, whose documents need not be read again; None without an index."""
    path = Layout(index).tables if index is not None else None
    return Tables(path, read_only=True) if path is not None and path.exists() else nullcontext()


def _check_endpoints(wish: Wish, settings: Settings, whole: Settings) -> None:
    """Raise EndpointNotConfirmed if a sample would be sent to an endpoint that only the index names."""
    if wish.index is not None and wish.spend:
        trust = Trust.of(Layout(wish.index), settings)
        trust.require("embedder", whole.embedder, "a sample of the documents")
        trust.require("llm", whole.llm, "a sample of the documents")


def _notes(found: Survey, calls: Calls, whole: Settings, timing: bool) -> Iterator[str]:
    """Yield what an estimate leaves out, and why."""
    if found.known and (whole.embedder != BUILTIN or calls is not NO_CALLS):
        yield (
            f"{found.known:,} of {found.documents:,} documents are in the index already: their cached "
            "vectors and replies are not counted again"
        )
    if calls.note is not None:
        yield calls.note
    if whole.summaries == "model" and calls is not NO_CALLS:
        yield "without the calls that summarise descriptions (summaries = model): they depend on the replies"
    if not timing:
        yield f"{whole.embedder} was not timed, because that may cost money: --spend times it on a sample"


def _basis(found: Survey, calls: Calls, work: _Work) -> dict[str, str]:
    """Return for each figure whether it was counted, sampled or taken from a past build."""
    counted = COUNTED if found.whole else SAMPLED
    return {
        "chunks": counted,
        "calls": counted,
        "tokens_in": calls.basis_in,
        "tokens_out": calls.basis_out,
        "embedding_tokens": work.basis_of_tokens,
        "disk": work.basis,
        "memory": work.basis,
    }


def _basis_of_usd(money: Bill, settings: Settings, prices: Prices) -> str:
    """Return the date of the prices, or the models whose price is unknown."""
    parts = ((money.llm, settings.llm), (money.embedding, settings.embedder))
    missing = dict.fromkeys(spec for usd, spec in parts if usd is None)
    if missing:
        return f"no price of {' or '.join(missing)}"
    return f"prices of {prices.date}" if prices.date else ""


@dataclass(slots=True)
class _Work:
    """The figures that need no language model, from the last complete build or from the sample."""

    found: Survey
    samples: Sequence[Sample]
    settings: Settings
    before: Past | None
    model: Pace | None
    timing: bool

    @property
    def basis(self) -> str:
        """The source of times and sizes: a sample of all documents is measured."""
        return PAST if self.before is not None else MEASURED if self.found.whole else SAMPLED

    @property
    def basis_of_tokens(self) -> str:
        """The source of the tokens that a model embeds."""
        if self.settings.embedder == BUILTIN:
            return ""
        return COUNTED if self.basis == MEASURED else self.basis

    @property
    def _sizes(self) -> list[int]:
        return [sample.characters for sample in self.samples]

    @property
    def _share(self) -> float:
        """Characters now per character of the last complete build."""
        return self.found.characters / max(self.before.usage.characters, 1) if self.before else 1.0

    def _grown(self, took: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Return the ratio of each stage's time to that in the last complete build, by the samples."""
        assert self.before is not None  # noqa: S101 - the callers looked
        now = seconds_at(self.found.characters, self._sizes, took, _powers())
        then = seconds_at(self.before.usage.characters, self._sizes, took, _powers())
        return {name: seconds / then[name] for name, seconds in now.items() if then[name] > 0}

    def stages(self) -> dict[str, float]:
        took = [sample.seconds for sample in self.samples]
        if self.before is not None:
            grown = self._grown(took)
            if self.settings.embedder != BUILTIN:
                grown |= dict.fromkeys(embedding_stages(), self._share * self.found.fresh)
            own = ((name, s) for name, s in self.before.stages.items() if name not in llm_stages())
            return {name: seconds * grown.get(name, self._share) for name, seconds in own}
        found = seconds_at(self.found.characters, self._sizes, took, _powers())
        if self.settings.embedder != BUILTIN:
            found = {name: seconds for name, seconds in found.items() if name not in embedding_stages()}
        if self.model is not None:
            found["vectors"] = self.model.seconds(self.embedding_tokens())
        return found

    def around(self) -> float:
        took = [{"around": sample.around} for sample in self.samples]
        if self.before is not None:
            known = max(self.before.seconds - math.fsum(self.before.stages.values()), 0.0)
            return known * self._grown(took).get("around", self._share)
        return seconds_at(self.found.characters, self._sizes, took, _powers())["around"]

    def embedding_tokens(self) -> int:
        if self.settings.embedder == BUILTIN:
            return 0
        if self.before is not None and self.before.usage.embedding_tokens:
            return round(self.before.usage.embedding_tokens * self._share * self.found.fresh)
        last = self.samples[-1]
        if self.model is not None:
            each = self.model.tokens_per_byte
        else:
            each = sum(last.chunk_tokens) / (sum(len(text.encode()) for _, text in last.chunks) or 1)
        return round(last.embedded_bytes * self.found.scale * each)

    def disk(self) -> int:
        """Return the bytes of the generation, the document tables and the vector cache."""
        if self.before is not None:
            return self._held() + round(self.before.table_bytes * self._share)
        first, last = self.samples[0], self.samples[-1]
        small, large = (max(s.folder_bytes - sum(s.bytes.values()), 0) for s in (first, last))
        # Tables have pages even without documents, so they grow by the difference of the samples.
        more = last.characters - first.characters
        slope = max(large - small, 0) / more if more > 0 else large / max(last.characters, 1)
        return self._held() + large + round(slope * max(self.found.characters - last.characters, 0))

    def _held(self) -> int:
        """Return the bytes of the generation."""
        if self.before is not None:
            return sum(round(size * self._share) for size in self.before.bytes.values())
        return sum(self._bytes().values())

    def _bytes(self) -> dict[str, int]:
        found = bytes_at(self.found.characters, self._sizes, [s.bytes for s in self.samples])
        if self.model is not None:
            numbers = [{name: int(n) for name, n in s.counts.items()} for s in self.samples]
            counts = bytes_at(self.found.characters, self._sizes, numbers)  # words grow as their bytes do
            made = {stage.name for stage in stages_for(self.settings, self.settings.llm != "none")}
            if not self.settings.split_level:
                made.discard("chunk_vectors")
            found |= stored_bytes(counts, made, self.model.dimension)
        return found

    def memory(self) -> int | None:
        first, last = self.samples[0], self.samples[-1]
        if first.memory is None or last.memory is None:
            return None
        held = [sum(s.bytes.values()) for s in (first, last)]
        slope = (last.memory - first.memory) / (held[1] - held[0]) if held[1] > held[0] else 1.0
        peak, size = last.memory, held[1]
        if self.model is not None and self.model.memory is not None:
            peak = max(peak, self.model.memory)
        if self.before is not None and self.before.usage.memory is not None:
            peak, size = self.before.usage.memory, sum(self.before.bytes.values())
        return round(peak + min(max(slope, 1.0), 3.0) * max(self._held() - size, 0))


def _powers() -> dict[str, float]:
    return {stage.name: stage.growth for stage in registry().stages}


def llm_stages() -> frozenset[str]:
    """Return the stages whose time is spent in a language model."""
    return frozenset(stage.name for stage in registry().stages if stage.reads and stage.look is not None)


def _settings_for(settings: Settings, index: Path | None) -> Settings:
    """Return the settings, completed by those of the index if it exists."""
    from ketrag_fast.systems.index_settings import stored_settings, with_modes

    stored = stored_settings(index) if index is not None else None
    settings = with_modes(settings, stored)
    if stored is None:
        return settings
    resolved = resolve(flags=settings.given, index=stored, presets=registry().table).settings
    return Settings(**{**settings.given, **build_settings(resolved)})


def _plain(settings: Settings, embedder: str) -> Settings:
    """Return settings for building the sample without a language model, with all its chunks ranked."""
    changes: dict[str, Any] = {"llm": "none", "on_error": "skip", "core_ratio": 1.0, "embedder": embedder}
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
    """Return the chunks of the sample that would be core: the most important ones."""
    return last.chunks[: max(math.ceil(settings.core_ratio * len(last.chunks) - 1e-9), 0)]


def _add_gleanings(calls: Calls, gleanings: int) -> tuple[float, float]:
    """Return input and output tokens per chunk; each gleaning sends the conversation so far again."""
    if calls.basis_in == PAST:
        return calls.tokens_in * (1 + gleanings), calls.tokens_out * (1 + gleanings)
    tokens_in = tokens_out = 0.0
    for turn in range(1 + gleanings):
        tokens_in += calls.tokens_in + turn * calls.tokens_out
        tokens_out += calls.tokens_out
    return tokens_in, tokens_out
