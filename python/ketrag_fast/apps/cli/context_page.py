"""Page of `ketrag retrieve --html FILE` and `ketrag ask --html FILE`: answer, passages with links to their
sources, drawings of why each passage was retrieved, and the graph around them. The file loads nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ketrag_fast.apps.cli import output
from ketrag_fast.page.assets import POLICY, STYLE, graph_markup, html_page
from ketrag_fast.page.assets import text as static
from ketrag_fast.types.locations import describe_location

if TYPE_CHECKING:
    from pathlib import Path

    from ketrag_fast.index import Index
    from ketrag_fast.types import Answer, Context, GraphView, Passage, Quote

_BOX: Final = 180
_GAP: Final = 150
_HEIGHT: Final = 64
_LETTERS: Final = 24
_LABEL: Final = 22
_SEARCHED: Final = (".html", ".htm", ".xhtml", ".txt")
"""File types that a browser displays and can search for the words after `#:~:text=`."""
_WORDS: Final = 6
_NODES: Final = 100
"""Maximum number of nodes of the graph around the passages."""
_OWN: Final = """
.answer{font-size:1.15em}
.box{fill:var(--paper);stroke:var(--line);stroke-width:1.5}
.box.this{stroke:var(--c0);stroke-width:2.5}
.box.q{fill:none;stroke-dasharray:4 3}
.edge{stroke:var(--c1);stroke-width:2}
.edge.q{stroke:var(--soft);stroke-dasharray:4 3}
article{border-top:1px solid var(--line);padding:14px 0}
article h2{margin:0 0 4px}
pre{white-space:pre-wrap;font:inherit;margin:8px 0}
ul{margin:6px 0;padding-left:20px}
figure svg{max-width:100%}
"""

_GRAPH: Final = """
:root{--card:var(--panel);--accent:var(--c0)}
.row{display:flex;gap:8px;flex-wrap:wrap;align-items:center}
.names{display:flex;gap:6px;flex-wrap:wrap;padding:0;list-style:none}
#graph-root input[type=search]{flex:1 1 220px;min-width:0}
#graph-root button,#graph-root input,#graph-root select{font:inherit;min-height:36px}
"""


def page(
    context: Context,
    files: Mapping[str, Path] | None = None,
    answer: Answer | None = None,
    view: GraphView | None = None,
) -> str:
    """Return the page. Text from documents, the question or a model is escaped. `files` are the paths to
    link by document. With `view`, the graph is drawn below the passages.
    """
    body = "\n".join(_body(context, files or {}, answer))
    policy, style = POLICY, STYLE + _OWN
    if view is not None:
        markup, digest = graph_markup(view)
        body += f"\n<h2>Graph around the passages: {escape(view.graph)}</h2>\n{markup}"
        policy += f"; script-src '{digest}'; img-src data: blob:"
        style += _GRAPH + static("graph.css")
    return html_page(context.question, body, style, policy)


def _body(context: Context, files: Mapping[str, Path], answer: Answer | None) -> Iterator[str]:
    yield f"<h1>{escape(context.question)}</h1>"
    if answer is not None and answer.text:
        yield f'<p class="answer">{link_citations(answer)}</p>'
    elif answer is not None and answer.quotes:
        yield "<p>Quotes from the passages, not an answer written by a model:</p>"
        links = (f'{_render_quote(one)} <a href="#p{one.number}">[{one.number}]</a>' for one in answer.quotes)
        yield f'<ul class="answer">{"".join(f"<li>{one}</li>" for one in links)}</ul>'
    about = f"mode {context.mode} · {context.tokens:,} of {context.budget:,} tokens"
    yield f'<p class="about">{escape(about)}</p>'
    for warning in context.warnings:
        yield f'<p class="note">{escape(warning)}</p>'
    for note in context.notes:
        yield f"<p>{escape(note)}</p>"
    if context.reason is not None:
        yield f'<p class="bad">{escape(output.empty_text(context.reason, None, context.unknown))}</p>'
    for passage in context.passages:
        yield from _passage(passage, files.get(passage.document))


def _render_quote(one: Quote) -> str:
    """Return a quoted sentence, or a table row with its header."""
    return f"{escape(one.header)}<br>{escape(one.text)}" if one.header else f"“{escape(one.text)}”"


def link_citations(answer: Answer) -> str:
    """Return an answer whose citation numbers link to the passages."""
    known = {citation.number for citation in answer.citations}

    def link(found: re.Match[str]) -> str:
        number = int(found[1])
        return f'<a href="#p{number}">[{number}]</a>' if number in known else found[0]

    text = re.sub(r"\[(\d{1,9})\]", link, escape(answer.text)).replace("\n", "<br>\n")
    return text.replace("[?]", '<abbr title="no passage supports this sentence">[?]</abbr>')


def address(path: Path, passage: Passage) -> str:
    """Return the URL that opens a passage's file at the right PDF page, or at the passage's first words."""
    uri = path.absolute().as_uri()
    suffix = path.suffix.lower()
    if suffix == ".pdf" and passage.page is not None:
        return f"{uri}#page={passage.page}"
    if suffix in _SEARCHED:
        words = passage.text.strip().split("\n")[0].split()[:_WORDS]
        return f"{uri}#:~:text={quote(' '.join(words), safe='')}" if words else uri
    return uri


def _passage(passage: Passage, path: Path | None) -> Iterator[str]:
    reasons = [reason for reason in passage.why if isinstance(reason, Mapping)]
    words = [str(reason["word"]) for reason in reasons if "word" in reason]
    name = escape(passage.title or passage.document)
    yield f'<article id="p{passage.rank}"><h2>[{passage.rank}] {name}</h2>'
    where = escape(f"{passage.document}:{passage.start}-{passage.end}")
    if path is not None:
        where = f'<a href="{escape(address(path, passage), quote=True)}">{where}</a>'
    place = describe_location(passage.location)
    told = [place, output.copies_text(passage), f"score {output.score_text(passage.score)}"]
    yield f'<p class="about">{where} · {escape(" · ".join(filter(None, told)))}</p>'
    steps = chain_of(passage, reasons)
    if len(steps) > 1:
        yield f"<figure>{drawing(steps, words)}</figure>"
    sentences = [str(reason["sentence"]) for reason in reasons if "sentence" in reason]
    if words:
        sentences.insert(0, f"contains {', '.join(words)}")
    if sentences:
        yield "<ul>" + "".join(f"<li>{_emphasise(line)}</li>" for line in sentences) + "</ul>"
    yield f"<details><summary>text</summary><pre>{escape(passage.text)}</pre></details></article>"


def _emphasise(sentence: str) -> str:
    """Return HTML in which words between asterisks are emphasised."""
    return re.sub(r"\*([^*]{1,200})\*", r"<em>\1</em>", escape(sentence))


Drawn = tuple[str, int | None, Sequence[Mapping[str, Any]]]
"""A passage's name, its rank if it is in the context, and its links to the next box."""


def chain_of(passage: Passage, reasons: Sequence[Mapping[str, Any]]) -> list[Drawn]:
    """Return the boxes to draw for a passage, from the query to the passage: the pair that it extends, or
    else its partner.
    """
    own: Drawn = (passage.title or passage.document, passage.rank, ())
    chain = next((reason for reason in reasons if "chain" in reason), None)
    if chain is not None:
        far, near = chain["chain"]
        return [_drawing(far, chain["between"]), _drawing(near, chain["bridges"]), own]
    partner = next((reason for reason in reasons if "partner" in reason), None)
    return [own] if partner is None else [_drawing(partner["partner"], partner["bridges"]), own]


def _drawing(place: Mapping[str, Any], bridges: Sequence[Mapping[str, Any]]) -> Drawn:
    return str(place["title"] or place["document"]), place["rank"], bridges


def drawing(steps: Sequence[Drawn], words: Sequence[str]) -> str:
    """Draw a chain as boxes from left to right, joined by labelled lines; the last is the passage."""
    width = len(steps) * _BOX + (len(steps) - 1) * _GAP + 8
    middle = 74
    out = []
    for at, (name, rank, bridges) in enumerate(steps):
        left = 4 + at * (_BOX + _GAP)
        last = at == len(steps) - 1
        if not last:
            right = left + _BOX
            kind = "edge" if bridges else "edge q"
            out.append(f'<line class="{kind}" x1="{right}" x2="{right + _GAP}" y1="{middle}" y2="{middle}"/>')
            labels = [_short(str(bridge["text"]), _LABEL) for bridge in bridges] or ["the question alone"]
            for row, label in enumerate(labels):
                y = middle - 8 - 16 * (len(labels) - 1 - row)
                out.append(_text(right + _GAP / 2, y, label, "middle"))
        box = "box this" if last else "box"
        top = middle - _HEIGHT / 2
        shape = f'<rect class="{box}" x="{left}" y="{top:.0f}" width="{_BOX}" height="{_HEIGHT}" rx="8"/>'
        link = rank is not None and not last
        number = f"[{rank}]" if rank is not None else "not printed"
        inner = (
            shape
            + _text(left + _BOX / 2, middle - 6, _short(name, _LETTERS), "middle", title=name)
            + _text(left + _BOX / 2, middle + 16, number, "middle", kind="t")
        )
        out.append(f'<a href="#p{rank}">{inner}</a>' if link else inner)
    names = ", ".join(name for name, _, _ in steps)
    label = escape(f"Chain: {names}; words of the question: {', '.join(words)}", quote=True)
    return (
        f'<svg viewBox="0 0 {width} 116" role="img" aria-label="{label}" style="max-width:{width}px">'
        + "".join(out)
        + "</svg>"
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(x: float, y: float, text: str, anchor: str, *, kind: str = "n", title: str = "") -> str:
    tip = f"<title>{escape(title)}</title>" if title and title != text else ""
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(text)}{tip}</text>'


def write_context(path: Path, index: Index, context: Context, answer: Answer | None = None) -> None:
    """Write the page of a context or an answer."""
    files = index.inspect.files([passage.document for passage in context.passages])
    output.write_page(path, page(context, files, answer, _graph_around(index, context)))


def _graph_around(index: Index, context: Context) -> GraphView | None:
    """Return the graph around the passages of a context; None without a graph or passages, and under a
    filter, because the graph of the matching documents numbers its passages differently.
    """
    names = index.inspect.graphs()
    if not names or not context.passages or index.inspect.filter is not None:
        return None
    units = [passage.unit for passage in context.passages]
    return index.inspect.graph(names[0], units=units, limit=_NODES)
