"""Hooks of the documentation site (mkdocs.yml).

They add pages from outside docs/, turn links to other files of the repository into text, and fail the build
if a page would load anything from another host.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
EXTRA: Final = {
    "benches/BENCHMARKS.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
}
"""Files of the repository that are pages of the site, by their path on it."""

_LINK: Final = re.compile(r"(?<!\\)\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)?)\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"^(```|~~~).*?^\1|^(?: {4}|\t).*?$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_ASSET: Final = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//[^\"]+\""
    r"|<link\b[^>]*rel=\"(?:stylesheet|preload|icon|preconnect)\"[^>]*href=\"(?:https?:)?//[^\"]+\""
)


def source_of(page: str) -> str:
    """Return the path in the repository of a page of the site."""
    return next((source for source, name in EXTRA.items() if name == page), f"docs/{page}")


def page_of(source: str) -> str | None:
    """Return the path on the site of a file of the repository, or None if it has no page there."""
    if source == "README.md":
        return "index.md"
    if source in EXTRA:
        return EXTRA[source]
    name = source.removeprefix("docs/")
    return name if name != source and (ROOT / source).is_file() and not source.endswith(".1") else None


def rewrite_links(text: str, page: str) -> str:
    """Return a page whose links lead to pages of the site; links to other files become their text."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    def rewrite(match: re.Match[str]) -> str:
        label, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        source = normpath(f"{dirname(source_of(page))}/{path}").lstrip("/")
        to = page_of(source)
        if to is None:
            if not (ROOT / source).exists():
                return match[0]  # the strict build reports it
            return label
        if source == "README.md":
            anchor = ""
        return f"[{label}]({relpath(to, dirname(page) or '.')}{f'#{anchor}' if anchor else ''})"

    plain = _CODE.sub(keep, text)
    return re.sub(r"\0(\d+)\0", lambda m: kept[int(m[1])], _LINK.sub(rewrite, plain))


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside docs/."""
    from mkdocs.structure.files import File

    for source, page in EXTRA.items():
        text = (ROOT / source).read_text("utf-8")
        if not text.startswith("# "):
            raise RuntimeError(f"{source} does not begin with a title")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page."""
    return rewrite_links(markdown, page.file.src_uri)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Fail if a page loads a script, style or picture from another host."""
    found = _ASSET.search(output)
    if found:
        raise RuntimeError(f"{page.file.src_uri} loads {found[0]!r} from another host")
    return output
