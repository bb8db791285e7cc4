"""The links of a web page to other pages, without those of its navigation.

They are read from all of the page, because lists that are mostly links are left out of its text.
"""

from __future__ import annotations

import html
import re
from typing import Final

_MOST_LINKS: Final = 1_000
_MOST_PAGES: Final = 2_000
_LONGEST: Final = 2_000
_TAGS: Final = re.compile(r"<(/?)(a|nav|header|footer|aside|div|table|ul|section)(?=[\s>])([^<>]*)>")
_HREF: Final = re.compile(r'href="([^"]*)"')
_NAMES: Final = re.compile(r'(?:class|id|role)="([^"]*)"')
_SCHEME: Final = re.compile(r"(?:([a-zA-Z][a-zA-Z0-9+.-]{0,20}):|//)")
_AROUND: Final = frozenset(("nav", "header", "footer", "aside"))
_NAVIGATION: Final = frozenset(
    (
        *("navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar"),
        *("nav", "navbar", "navheader", "navfooter", "sidebar", "sphinxsidebar", "mobile-nav", "mainmenu"),
        *("breadcrumb", "breadcrumbs", "header", "footer", "related", "pagination", "prev-next"),
    )
)
"""Classes, ids and roles of elements that hold the navigation of a site."""


def links_of(markup: str) -> list[str]:
    """Return the targets of links in serialised HTML, in order and without repetitions.

    A target in the same site is returned without its fragment. Links within the page are left out.
    """
    links: dict[str, None] = {}
    pages = 0
    skipped, depth = "", 0
    for tag in _TAGS.finditer(markup):
        closing, name = tag[1], tag[2]
        if skipped:
            depth += (-1 if closing else 1) if name == skipped else 0
            skipped = skipped if depth else ""
        elif closing:
            continue
        elif name == "a":
            found = _HREF.search(tag[3])
            target = html.unescape(found[1]).strip()[:_LONGEST] if found is not None else ""
            scheme = _SCHEME.match(target)
            if scheme is None:
                target = target.partition("#")[0]
                if target and target not in links and pages < _MOST_PAGES:
                    links[target] = None
                    pages += 1
            elif len(links) - pages < _MOST_LINKS and (scheme[1] or "http").lower() in (
                "http",
                "https",
                "ftp",
            ):
                links[target] = None
        elif name in _AROUND or _is_navigation(tag[3]):
            skipped, depth = name, 1
    return list(links)


def _is_navigation(attributes: str) -> bool:
    return any(not _NAVIGATION.isdisjoint(found[1].lower().split()) for found in _NAMES.finditer(attributes))
