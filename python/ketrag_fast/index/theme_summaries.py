"""Have an LLM summarise the themes of an index, bottom up, and store the summaries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ketrag_fast.base.progress import Limited, Meter
from ketrag_fast.errors import ModeUnavailable
from ketrag_fast.models.tasks.driver import Driver
from ketrag_fast.models.tasks.task import Item
from ketrag_fast.query.themes.describe import find_themes
from ketrag_fast.query.themes.summaries import (
    ThemeReader,
    ThemeTexts,
    WrittenSummary,
    expected_tokens,
    stored_summaries,
    summary_task,
)
from ketrag_fast.storage.journal import Journal
from ketrag_fast.storage.layout import Layout
from ketrag_fast.storage.lock import builder_lock
from ketrag_fast.types import Theme, ThemeSummaries

if TYPE_CHECKING:
    from ketrag_fast.base.filters import Condition
    from ketrag_fast.base.progress import Callback
    from ketrag_fast.index.state import IndexState


def summarise_themes(
    state: IndexState, condition: Condition | None, progress: Callback | None, *, dry_run: bool
) -> ThemeSummaries:
    """Write the missing theme summaries for the matching documents; with `dry_run` only count them."""
    writer = state.opened.writer
    if writer is None:
        raise ModeUnavailable(
            "summaries of themes need a language model",
            hint="name one: --llm llama-cpp:PATH.gguf or openai:MODEL@URL",
        )
    work = _Work(state, condition, progress, writer.spec)
    if dry_run:
        return work.preview()
    writer.require_permission()
    layout = Layout(state.path)
    layout.require()
    with builder_lock(layout), Journal(layout.tables) as journal:
        return work.write(journal)


class _Work:
    """The themes of an index, and the summaries by one model."""

    def __init__(
        self, state: IndexState, condition: Condition | None, progress: Callback | None, spec: str
    ) -> None:
        self._opened, self._spec, self._tables = state.opened, spec, Layout(state.path).tables
        settings = self._opened.settings
        self._limit = Limited(progress, settings.limit_seconds, time.monotonic())
        found = find_themes(self._opened, condition, self._limit)
        self._limit.soft = True  # after a limit, the summaries written so far are returned
        self._reader = ThemeReader(self._opened, found)
        self._count = sum(map(len, self._reader.levels))
        self._task = summary_task(settings.language in ("english", "en"))

    def preview(self) -> ThemeSummaries:
        """Return the number of missing summaries, and their estimated cost."""
        speed = None
        if self._tables.is_file():
            with Journal(self._tables, read_only=True) as journal:
                if {"readers", "replies"} <= journal.tables():
                    known = journal.latest_model(self._spec)
                    if known is not None:
                        self._reader.take(stored_summaries(journal, known.number))
                    speed = journal.speed(self._spec)
        missing = [theme for level in self._reader.levels for theme in self._missing(level)]
        sent, said = expected_tokens(self._task, [self._reader.texts(theme) for theme in missing])
        return ThemeSummaries(
            self._count,
            kept=self._count - len(missing),
            pending=len(missing),
            calls=len(missing),
            tokens_in=sent,
            tokens_out=said,
            seconds=(sent + said) * speed if speed is not None else None if missing else 0.0,
            usd=self._opened.models.account.price_of(sent, said),
        )

    def write(self, journal: Journal) -> ThemeSummaries:
        """Write the missing summaries level by level, and store each one when it arrives."""
        models = self._opened.models
        before = models.account.usd
        model = models.open(self._spec, self._opened.settings.llm_slots)
        try:
            driver = Driver.over(model, journal)
            driver.limit = self._limit
            self._reader.take(stored_summaries(journal, driver.number))
            kept = len(self._reader.summaries)
            asked = written = 0
            for level in self._reader.levels:
                themes = self._missing(level)
                items = self._write_level(driver, themes, kept + asked)
                for theme, item in zip(themes, items, strict=True):
                    if item.usable:
                        self._reader.summaries[theme.id] = item.values[0]
                        written += 1
                    asked += item.usable or item.last is not None
                if driver.spent.stopped is not None:
                    break
        finally:
            model.close()
        after, spent = models.account.usd, driver.spent
        return ThemeSummaries(
            self._count,
            kept=kept,
            written=written,
            failed=asked - written,
            pending=self._count - kept - asked,
            calls=spent.asked,
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            seconds=spent.seconds,
            usd=None if before is None or after is None else after - before,
            stopped=spent.stopped,
        )

    def _missing(self, level: Sequence[Theme]) -> list[Theme]:
        return [theme for theme in level if theme.id not in self._reader.summaries]

    def _write_level(
        self, driver: Driver, themes: Sequence[Theme], done: int
    ) -> list[Item[ThemeTexts, WrittenSummary]]:
        again = self._opened.settings.retry_failed
        items = driver.items(self._task, [self._reader.texts(theme) for theme in themes], again=again)
        driver.run(items, _Overall("summaries", self._limit, done, self._count))
        return items


class _Overall(Meter):
    """Converts the progress of one level to the progress over all themes."""

    def __init__(self, stage: str, callback: Callback, done: int, total: int) -> None:
        super().__init__(stage, callback, "themes")
        self._before, self._total = done, total

    def __call__(self, done: int, total: int | None = None) -> bool | None:
        return super().__call__(self._before + done, self._total)
