"""The report as one HTML page with its styles and plots, without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ketrag_fast.eval.comparison import plots
from ketrag_fast.eval.comparison.outcome import Divided, Outcome, Report
from ketrag_fast.eval.comparison.table import Table, build_table, overlap_table, score_table
from ketrag_fast.eval.rows import ResultRow
from ketrag_fast.page.assets import html_page
from ketrag_fast.systems.registry import registry

_TITLES = {"builds": "Builds compared", "systems": "Systems compared", "sweep": "Sweep"}
_MANY = 200


def page(report: Report) -> str:
    """Return the page. Everything from documents, models and settings is escaped."""
    title = _TITLES.get(report.kind, "Comparison")
    return html_page(title, "\n".join(_body(report, title)))


def _body(report: Report, title: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="about">{escape(_about(report))}</p>'
    for outcome in report.outcomes:
        if outcome.error is not None:
            hint = f" {escape(outcome.hint)}" if outcome.hint else ""
            told = f"<b>{escape(outcome.name)}</b> was not run: {escape(outcome.error)}{hint}"
            yield f'<p class="bad">{told}</p>'
    for note in report.notes:
        yield f'<p class="note">{escape(note)}</p>'
    scored = [o for o in report.good if any(_metric(row) for row in o.rows)]
    metric = _metric_name(scored)
    if scored and report.kind == "sweep":
        yield from _setting_plots(scored, metric)
    elif scored:
        yield figure(f"{metric}, with 95 % intervals", plots.intervals(_intervals(scored)))
    if scored:
        yield from _against_cost(scored, metric)
    if report.good:
        yield figure("Seconds of the build, by stage", plots.bars([_stages(o) for o in report.good], "s"))
    yield "<h2>Builds</h2>" + _table(build_table(report.outcomes))
    if any(o.cost is not None and not o.cost.measured for o in report.outcomes):
        yield (
            '<p class="note">≈ what the build takes alone, at the rate of the first build; '
            "here its vectors were shared with the builds before it.</p>"
        )
    scores = score_table(report.outcomes)
    if scores[1]:
        yield "<h2>Scores</h2>" + _table(scores)
    if report.overlaps:
        yield from _overlaps(report)
    if report.divided:
        yield from _split_questions_rows(report)
    yield "<h2>Settings</h2>" + _table(_settings(report.outcomes))


def _about(report: Report) -> str:
    about = report.about
    machine = about.get("machine", {})
    dataset = about.get("dataset", {})
    parts = [
        f"{dataset.get('name', '?')}: {about.get('documents', 0):,} documents",
        f"{len(report.questions):,} questions",
        f"{machine.get('processor', '?')}, {machine.get('cores', '?')} cores",
        ", ".join(f"{name} {number}" for name, number in about.get("versions", {}).items()),
    ]
    prices = about.get("prices", {})
    if prices.get("date"):
        parts.append(f"prices of {prices['date']}")
    return " · ".join(part for part in parts if part)


def _metric(row: ResultRow) -> float | None:
    return row.coverage if row.coverage is not None else row.all_gold


def _metric_name(outcomes: Sequence[Outcome]) -> str:
    rows = [row for outcome in outcomes for row in outcome.rows]
    return "Coverage" if any(row.coverage is not None for row in rows) else "Questions with all gold passages"


def _value(row: ResultRow) -> tuple[float, float | None, float | None] | None:
    value = _metric(row)
    if value is None:
        return None
    ends = row.ci95.get("coverage" if row.coverage is not None else "all_gold")
    return 100 * value, *((100 * ends[0], 100 * ends[1]) if ends is not None else (None, None))


def _intervals(
    outcomes: Sequence[Outcome],
) -> list[tuple[str, list[tuple[str, float, float | None, float | None]]]]:
    found = []
    for outcome in outcomes:
        values = [(_series(row, outcomes), *v) for row in outcome.rows if (v := _value(row)) is not None]
        found.append((outcome.name, values))
    return found


def _series(row: ResultRow, outcomes: Sequence[Outcome]) -> str:
    """Return the label of a series: the budget, and the mode if several modes were run."""
    several = any(len({r.mode for r in outcome.rows}) > 1 for outcome in outcomes)
    return f"{row.mode} at {row.budget:,}" if several else f"{row.budget:,} tokens"


def _setting_plots(outcomes: Sequence[Outcome], metric: str) -> Iterator[str]:
    """Return one plot for each varied setting with numbers; a setting with text values is a plot of rows."""
    for name in dict.fromkeys(key for outcome in outcomes for key in outcome.varied):
        own = [outcome for outcome in outcomes if name in outcome.varied]
        numbers = all(
            isinstance(o.varied[name], (int, float)) and not isinstance(o.varied[name], bool) for o in own
        )
        if not numbers or any(len(o.varied) > 1 for o in own):
            yield figure(f"{metric} by {name}", plots.intervals(_intervals(own)))
            continue
        lines: dict[str, list[plots.Point]] = {}
        budget_varies = name == "budget"
        for outcome in own:
            for row in outcome.rows:
                value = _value(row)
                if value is not None:
                    key = row.mode if budget_varies else _series(row, own)
                    tip = f"{outcome.name}: {value[0]:.1f} %"
                    lines.setdefault(key, []).append(
                        plots.Point(float(outcome.varied[name]), *value, tip=tip)
                    )
        series = [plots.Series(key, points, joined=True) for key, points in lines.items()]
        yield figure(f"{metric} by {name}", plots.scatter(series, name, f"{metric}, %"))


def _against_cost(outcomes: Sequence[Outcome], metric: str) -> Iterator[str]:
    """Return plots of quality against each cost that differs: seconds, LLM tokens, USD."""
    outcomes = [outcome for outcome in outcomes if "budget" not in outcome.varied]
    if not outcomes:
        return
    common = set.intersection(*({row.budget for row in outcome.rows} for outcome in outcomes))
    largest = max(common, default=None)
    costs: list[tuple[str, str, dict[str, float]]] = [
        ("seconds of the build", "seconds", {o.name: o.cost.seconds for o in outcomes if o.cost}),
        (
            "tokens of the language model, in and out",
            "tokens",
            {o.name: float(o.cost.tokens_in + o.cost.tokens_out) for o in outcomes if o.cost},
        ),
        (
            "USD",
            "USD",
            {o.name: o.cost.bill.total for o in outcomes if o.cost and o.cost.bill.total is not None},
        ),
    ]
    for label, unit, values in costs:
        if len(values) < 2 or not any(values.values()):
            continue
        lines: dict[str, list[plots.Point]] = {}
        for outcome in outcomes:
            if outcome.name not in values:
                continue
            for row in outcome.rows if largest is None else [r for r in outcome.rows if r.budget == largest]:
                value = _value(row)
                if value is not None:
                    x = values[outcome.name]
                    tip = f"{outcome.name}: {value[0]:.1f} % for {x:,.4g} {unit}"
                    point = plots.Point(x, *value, label=outcome.name, tip=tip)
                    lines.setdefault(row.mode, []).append(point)
        series = [plots.Series(key, points) for key, points in lines.items()]
        title = (
            f"{metric} against {label}"
            if largest is None
            else f"{metric} at {largest:,} tokens against {label}"
        )
        yield figure(title, plots.scatter(series, label, f"{metric}, %"))


def _stages(outcome: Outcome) -> plots.StackedBar:
    assert outcome.cost is not None  # noqa: S101 - the caller asks only those that ran
    cost = outcome.cost
    rest = max(cost.seconds - sum(cost.stages.values()), 0.0)
    parts = [*cost.stages.items(), ("reading, writing", rest)]
    return plots.StackedBar(outcome.name, _merge_small_parts(parts), f"{cost.seconds:,.2f} s")


def _merge_small_parts(parts: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Merge stages that are short everywhere into one colour; only a few colours can be told apart."""
    groups = {"units": "words", "links": "words", "knn": "graph", "core": "graph"}
    searches = (stage.name for stage in registry().stages if stage.proposes is not None)
    groups |= dict.fromkeys(searches, "search graphs")
    found: dict[str, float] = {}
    for name, seconds in parts:
        key = groups.get(name, name)
        found[key] = found.get(key, 0.0) + seconds
    return [(name, seconds) for name, seconds in found.items() if name != "search graphs" or seconds >= 0.01]


def _overlaps(report: Report) -> Iterator[str]:
    yield "<h2>What the graphs have in common</h2>"
    for kind in ("entities", "relations"):
        rows = []
        for overlap in report.overlaps[:_MANY]:
            part = getattr(overlap, kind)
            share = part.jaccard
            total = "both empty" if share is None else f"{100 * share:.0f} % in both"
            stacked = [("A alone", part.only_a), ("both", part.both), ("B alone", part.only_b)]
            rows.append(plots.StackedBar(f"{overlap.a} | {overlap.b}", stacked, total))
        yield figure(f"{kind.capitalize()}: in A alone, in both, in B alone", plots.bars(rows, kind))
    yield _table(overlap_table(report))


def _split_questions_rows(report: Report) -> Iterator[str]:
    yield "<h2>Questions on which they differ</h2>"
    yield f"<p>{len(report.divided):,} of {len(report.questions):,}.</p>"
    for entry in report.divided[:_MANY]:
        yield _question(entry)
    if len(report.divided) > _MANY:
        yield f"<p>The first {_MANY}; the JSON report has all of them.</p>"


def _question(entry: Divided) -> str:
    question = entry.question
    head = ["configuration", "mode", "answer in context", "gold passages", "tokens", "first gold passage"]
    answered = any(v.result.answer is not None for v in entry.verdicts)
    head += ["answer"] if answered else []
    rows = []
    for verdict in entry.verdicts:
        result = verdict.result
        recall = (
            "-"
            if result.recall is None
            else f"{round(result.recall * len(question.gold))} of {len(question.gold)}"
        )
        rank = "-" if result.rank is None else str(result.rank) if result.rank else "not there"
        cells = [verdict.name, verdict.mode, _yes(result.covered), recall, f"{result.tokens:,}", rank]
        rows.append(cells + ([result.answer or "-"] if answered else []))
    gold = " / ".join(question.answers) or "no gold answer"
    return (
        f"<details><summary>{escape(question.text)} <span>{escape(question.id)}</span></summary>"
        f"<p>Gold answer: {escape(gold)}</p>{_table((head, rows))}</details>"
    )


def _yes(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def _settings(outcomes: Sequence[Outcome]) -> Table:
    """Return the settings that differ between configurations, one line each; the JSON has all."""
    names = sorted({name for outcome in outcomes for name in outcome.settings})
    if len(outcomes) > 1:
        names = [name for name in names if len({_text(o.settings.get(name)) for o in outcomes}) > 1]
    return ["configuration", *names], [
        [outcome.name, *(_text(outcome.settings.get(name)) for name in names)] for outcome in outcomes
    ]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False)
    return "-" if value is None else str(value)


def figure(title: str, drawing: str) -> str:
    """Return a plot with its caption."""
    return f"<figure><figcaption>{escape(title)}</figcaption>{drawing}</figure>"


def _table(table: Table) -> str:
    head, rows = table
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>'
