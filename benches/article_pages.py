"""Web pages in several forms whose main text is known."""

from __future__ import annotations

import random
from collections.abc import Callable
from html import escape

Page = tuple[str, str]
"""HTML, and its main text."""

_LINKS = (
    "Home",
    "News",
    "Sport",
    "About us",
    "Contact",
    "Sign in",
    "Newsletter",
    "Shop",
    "Archive",
    "Jobs",
    "Help",
)
_RELATED = (
    "Ten things you did not know about ice",
    "Why penguins do not fly",
    "The best hotels near the harbour",
    "Subscribe now and save half of the price",
)


class _Main:
    """Main content as HTML and as text."""

    def __init__(self) -> None:
        self.html: list[str] = []
        self.text: list[str] = []

    def add(self, tag: str, text: str, about: str = "") -> None:
        self.html.append(f"<{tag}{about}>{escape(text)}</{tag}>")
        self.text.append(text)

    def items(self, texts: list[str], tag: str = "ul") -> None:
        self.html.append(f"<{tag}>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + f"</{tag}>")
        self.text += texts

    def table(self, rows: list[list[str]]) -> None:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:]
        )
        self.html.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        self.text += [" ".join(row) for row in rows]


def _main(sentences: list[str], chance: random.Random, *, heading: str = "h2") -> _Main:
    main = _Main()
    at = 0
    for section in range(chance.randrange(2, 5)):
        if section:
            main.add(heading, " ".join(sentences[at].split()[:4]))
            at += 1
        for _ in range(chance.randrange(1, 4)):
            count = chance.randrange(1, 6)
            main.add("p", " ".join(sentences[at : at + count]))
            at += count
        kind = chance.randrange(4)
        if kind == 0:
            main.items([" ".join(one.split()[:9]) for one in sentences[at : at + 4]])
            at += 4
        elif kind == 1:
            words = sentences[at].split()
            main.table(
                [
                    ["Name", "Year", "Place"],
                    *([words[n % len(words)], str(1900 + n), words[-1]] for n in range(4)),
                ]
            )
            at += 1
    return main


def _nav(chance: random.Random) -> str:
    rows = "".join(f'<li><a href="/{n}">{name}</a></li>' for n, name in enumerate(chance.sample(_LINKS, 7)))
    return f"<ul>{rows}</ul>"


def _related() -> str:
    return "".join(
        f'<div class="card"><a href="/r"><h3>{text}</h3></a><span>3 min</span></div>' for text in _RELATED
    )


def news(title: str, main: _Main, chance: random.Random) -> str:
    return (
        f'<header class="site-header"><div class="logo"><a href="/">The Daily Ice</a></div><nav>{_nav(chance)}</nav></header>'
        f'<main><article class="article"><h1>{escape(title)}</h1>{"".join(main.html)}</article>'
        f'<aside class="sidebar"><h2>Most read</h2>{_related()}</aside></main>'
        f"<footer><p>Copyright 2024 The Daily Ice. All rights reserved.</p>{_nav(chance)}</footer>"
    )


def wiki(title: str, main: _Main, chance: random.Random) -> str:
    toc = '<div id="toc" class="toc"><h2>Contents</h2><ul><li><a href="#1">1 Life</a></li></ul></div>'
    return (
        f'<div id="mw-navigation"><div class="portal" role="navigation">{_nav(chance)}</div></div>'
        f'<div id="content" class="mw-body"><h1 id="firstHeading">{escape(title)}</h1>'
        f'<div id="mw-content-text">{toc}{"".join(main.html)}</div></div>'
        f'<div id="footer" role="contentinfo"><ul><li>This page was last edited on 3 May.</li></ul>{_nav(chance)}</div>'
    )


def handbook(title: str, main: _Main, chance: random.Random) -> str:
    return (
        f'<div class="wrapper"><nav class="side-nav" aria-label="chapters">{_nav(chance)}{_nav(chance)}</nav>'
        f'<div role="main" class="document"><div class="body"><h1>{escape(title)}</h1>{"".join(main.html)}</div></div>'
        f'<div class="prev-next"><a href="/p">Previous chapter</a> <a href="/n">Next chapter</a></div></div>'
        f'<div class="footer">Built with a generator of pages.</div>'
    )


def blog(title: str, main: _Main, chance: random.Random) -> str:
    share = (
        '<div class="share-buttons"><a href="#">Tweet</a><a href="#">Share</a><a href="#">Pin it</a></div>'
    )
    return (
        f'<div id="header"><h1 class="site-title"><a href="/">Notes from the ice</a></h1><div class="menu">{_nav(chance)}</div></div>'
        f'<div id="main"><div class="post"><h2 class="entry-title">{escape(title)}</h2>'
        f'<div class="entry-content">{"".join(main.html)}</div>{share}</div>'
        f'<div id="comments" class="comments"><h3>2 comments</h3><p>Great post, thank you!</p><p>First!</p></div></div>'
        f'<div class="widget"><h3>Recent posts</h3>{_related()}</div><div class="cookie-banner">We use cookies. <button>Accept</button></div>'
    )


def bare(title: str, main: _Main, chance: random.Random) -> str:
    return f"<h1>{escape(title)}</h1>{''.join(main.html)}<hr>"


def divs(title: str, main: _Main, chance: random.Random) -> str:
    """No element says what it is; the classes hardly do."""
    return (
        f'<div class="top"><div class="c1">{_nav(chance)}</div></div><div class="c2"><div class="c3"><h1>{escape(title)}</h1>'
        f'{"".join(main.html)}</div></div><div class="c4"><div>{_nav(chance)}</div><div>Terms of use and privacy.</div></div>'
    )


FORMS: dict[str, Callable[[str, _Main, random.Random], str]] = {
    "news": news,
    "wiki": wiki,
    "handbook": handbook,
    "blog": blog,
    "bare": bare,
    "divs": divs,
}


def pages(articles: list[tuple[str, str]], form: str, seed: int = 1) -> list[Page]:
    """A page in a form for each (title, text)."""
    found = []
    for number, (title, text) in enumerate(articles):
        chance = random.Random(f"{seed} {form} {number}")
        sentences = [one.strip() + "." for one in text.replace("\n", " ").split(". ") if len(one) > 20]
        sentences *= 1 + 60 // max(len(sentences), 1)
        main = _main(sentences, chance)
        body = FORMS[form](title, main, chance)
        head = f'<meta charset="utf-8"><title>{escape(title)} - Site</title><style>p {{ color: red }}</style><script>var a = 1;</script>'
        html = f'<!doctype html><html lang="en"><head>{head}</head><body>{body}<script>go()</script></body></html>'
        found.append((html, "\n".join([title, *main.text])))
    return found
