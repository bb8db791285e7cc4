"""Notes of a language model on the themes of a survey: one call per relevant theme of a question.

The answer is then written from these notes and the passages of the survey, which it cites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ketrag_fast import _core
from ketrag_fast.base.progress import Limited
from ketrag_fast.kernels.text import count_tokens
from ketrag_fast.query.answer.summary import THEME_TASK, Surroundings, write_summaries
from ketrag_fast.query.plan import QueryPlan
from ketrag_fast.query.themes.clusters import FoundThemes
from ketrag_fast.query.themes.describe import find_themes
from ketrag_fast.query.themes.question import has_general_words_alone
from ketrag_fast.query.themes.summaries import ThemeReader, latest_summaries, with_summaries
from ketrag_fast.types import Context, Passage, Section, Theme, ThemeSummary

if TYPE_CHECKING:
    from ketrag_fast.models.llms.protocol import LanguageModel
    from ketrag_fast.models.tasks.driver import Spent

THEMES: Final = 8
"""Maximum number of themes that are read for a question."""
SECTION: Final = "notes on themes"
_PASSAGES: Final = 6
"""Maximum number of passages of the survey that are read with the summary of their theme."""


Read = tuple[ThemeSummary, list[str]]
"""A summary, and passages of its theme."""


def relevant_summaries(plan: QueryPlan, context: Context, tables: Path) -> list[Read]:
    """Return the summaries of the themes that have most of a survey's passages, each with these passages.

    They are those of the widest themes for a question without a subject, else of the narrowest. Imported
    reports are chosen in the same way by the passages of their communities.
    """
    stored = latest_summaries(tables)
    if not stored.summaries:
        return []
    found = find_themes(plan.opened, plan.condition)
    is_general = has_general_words_alone(_core.lexical_keywords(context.question))
    if stored.are_imported:
        holders = ThemeReader(plan.opened, found).holders(stored.summaries)
        reports = [
            (one.summary, frozenset().union(*(holders[source] for source in one.sources)))
            for one in stored.summaries
            if (is_general or not one.is_wide) and all(source in holders for source in one.sources)
        ]
        return covering_reports(reports, context.passages)
    every = with_summaries(plan.opened, found, tables)
    themes = every.themes if is_general else [theme for theme in every.walk() if not theme.themes]
    owner = _owners(found, themes, [passage.unit for passage in context.passages])
    weight: dict[str, float] = {}
    passages: dict[str, list[str]] = {}
    for passage in context.passages:
        name = owner.get(passage.unit)
        if name is not None:
            weight[name] = weight.get(name, 0.0) + passage.score
            own = passages.setdefault(name, [])
            own += [_text(passage)] if len(own) < _PASSAGES else []
    chosen = sorted(
        (theme for theme in themes if theme.id in passages), key=lambda theme: (-weight[theme.id], theme.id)
    )
    read = [(theme.summary, passages[theme.id]) for theme in chosen if theme.summary is not None]
    return read[:THEMES]


def covering_reports(
    reports: Sequence[tuple[ThemeSummary, frozenset[int]]], passages: Sequence[Passage]
) -> list[Read]:
    """Return reports that have the passages, the best first: each has most of those left by the ones before.

    Communities overlap. Of reports with the same passages the narrowest is chosen.
    """
    rest = {passage.unit: passage.score for passage in passages}
    left = [(own, summary) for summary, own in reports if not own.isdisjoint(rest)]
    chosen: list[Read] = []
    while left and len(chosen) < THEMES:
        _, _, _, place = min(
            (-round(sum(rest[unit] for unit in own & rest.keys()), 9), len(own), summary.text, place)
            for place, (own, summary) in enumerate(left)
        )
        own, summary = left[place]
        texts = [_text(passage) for passage in passages if passage.unit in own]
        chosen.append((summary, texts[:_PASSAGES]))
        rest = {unit: score for unit, score in rest.items() if unit not in own}
        left = [one for one in left if not one[0].isdisjoint(rest)]
    return chosen


def _text(passage: Passage) -> str:
    return f"{passage.title}\n{passage.text}".strip()


def _owners(found: FoundThemes, themes: Sequence[Theme], units: Sequence[int]) -> dict[int, str]:
    """Return the theme of each unit."""
    wanted = set(units)
    return {
        unit: theme.id for theme in themes for unit in wanted.intersection(found.units[theme.id].tolist())
    }


def add_theme_notes(
    context: Context, summaries: Sequence[Read], model: LanguageModel, limit: Limited
) -> tuple[Context, Spent]:
    """Return the context with a section of the model's notes, and the model's usage.

    A theme without a usable reply gets no note. Raises DeadlineExceeded, and the errors of the
    model.
    """
    subjects = [
        Surroundings(context.question, f"{summary.title}\n{summary.text}".strip(), tuple(passages))
        for summary, passages in summaries
    ]
    found, spent = write_summaries(THEME_TASK, subjects, model, limit)
    titles = [subject.text.splitlines()[0] for subject in subjects]
    notes = [f"{title}: {note}" for title, note in zip(titles, found, strict=True) if note]
    failed = found.count(None)
    if failed:
        warning = f"no usable notes on {failed} of {len(found)} themes: their passages stand alone"
        context = replace(context, warnings=(*context.warnings, warning))
    if not notes:
        return context, spent
    text = "\n".join(notes)
    section = Section(SECTION, int(count_tokens([text])[0]), text, passages=False)
    return replace(context, sections=(section, *context.sections)), spent
