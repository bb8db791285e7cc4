"""Advice as text for a terminal, and as an HTML page with plots."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape

from ketrag_fast.lab.advice.findings import Advice
from ketrag_fast.lab.advice.probes import KINDS
from ketrag_fast.lab.advice.trial import FIRST
from ketrag_fast.lab.comparison import plots
from ketrag_fast.lab.comparison.page import figure
from ketrag_fast.lab.comparison.style import html_page
from ketrag_fast.query.themes.question import EXAMPLES

_ABOUT = {
    "direct": "a sentence that was cut out of its passage",
    "linked": "what another passage says of a name, and some words of the passage that has the name too",
}
_CAVEAT = (
    "The questions are made by rules from the documents. They show what these texts make easy or hard; "
    "how often your users ask each kind is not in the texts."
)
_WHOLE = (
    f"Questions about the whole, such as {', '.join(map(repr, EXAMPLES))}, are not answered by one passage: "
    "ask them with the mode survey (`ketrag ask --survey`)."
)


def render(advice: Advice) -> str:
    """Return the advice as lines of text."""
    return "\n".join(_lines(advice))


def _lines(advice: Advice) -> Iterator[str]:
    for finding in advice.findings:
        yield f"{finding.question}  {finding.answer}"
        reason = _sentence(finding.reason)
        yield from textwrap.wrap(reason, 92, initial_indent="    ", subsequent_indent="    ")
    yield ""
    yield f"share of questions whose passage is in the first {FIRST}, with 95 % intervals"
    for share in advice.shares:
        low, high = share.ci95
        yield (
            f"  {share.kind:<7} {share.mode:<6} {100 * share.share:5.1f}  "
            f"({100 * low:.1f} to {100 * high:.1f}), {share.n} questions"
        )
    yield ""
    yield from (f"{kind}: {about}" for kind, about in _ABOUT.items())
    yield from textwrap.wrap(_CAVEAT, 96)
    yield from textwrap.wrap(_WHOLE, 96)


def page(advice: Advice) -> str:
    """Return the advice as a page with its plots. It has no scripts, and texts are escaped."""
    probes, spec = advice.trial.probes, advice.trial.model
    model = "no embedding model" if spec == "builtin" else f"embedding model {spec}"
    rows = [
        (
            kind,
            [
                (share.mode, 100 * share.share, 100 * share.ci95[0], 100 * share.ci95[1])
                for share in advice.shares
                if share.kind == kind
            ],
        )
        for kind in KINDS
    ]
    series = [
        plots.Series(
            mode,
            [plots.Point(budget, 100 * share) for own, budget, share in advice.budgets if own == mode],
            joined=True,
        )
        for mode in advice.trial.modes
    ]
    parts = [
        "<h1>Advice</h1>",
        f'<p class="about">{probes.looked_at:,} of {probes.total:,} documents · {len(probes.probes):,} '
        f"questions · {escape(model)}</p>",
    ]
    for finding in advice.findings:
        parts.append(f"<h2>{escape(finding.question)} {escape(finding.answer)}</h2>")
        parts.append(f"<p>{escape(_sentence(finding.reason))}.</p>")
    parts.append(figure(f"Share of questions whose passage is in the first {FIRST}", plots.intervals(rows)))
    if any(one.points for one in series):
        drawn = plots.scatter(series, "tokens of context", "found, %")
        parts.append(figure("Direct questions whose place is in the context", drawn))
    parts += [f'<p class="note"><b>{kind}</b>: {escape(about)}</p>' for kind, about in _ABOUT.items()]
    parts += [f'<p class="note">{escape(text)}</p>' for text in (_CAVEAT, _WHOLE)]
    return html_page("Advice", "\n".join(parts))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
