"""The site's navigation is complete, links lead somewhere, and the blocks of the guides run."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ketrag_fast.apps.cli.main import main
from tests.process import ROOT, python

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINKED = [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "benches").glob("*.md"))]
TESTED_ELSEWHERE = {"comparing.md", "extending.md", "own-mode.md", "serve.md", "http-api.md"}
"""Pages whose blocks other tests run: test_comparing, test_extending and test_serving_guide."""
GUIDES = [page for page in PAGES if page.name not in TESTED_ELSEWHERE and "```" in page.read_text("utf-8")]
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def _prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return re.sub(r"^(?: {4}|\t).*$", "", _FENCED.sub("", page.read_text("utf-8")), flags=re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, numbered as on the site and on GitHub."""
    found: dict[str, int] = {}
    for title in re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text("utf-8")), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]|\]\([^)]*\)|\[", "", title).lower()).strip()
        slug = re.sub(r"[\s-]+", "-", slug)
        found[slug] = found.get(slug, -1) + 1
    return {
        f"{slug}{sep}{n}" if n else slug
        for slug, most in found.items()
        for n in range(most + 1)
        for sep in "-_"
    }


def _links(page: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", _prose(page))):
        if not re.match(r"[a-z]+:", target):
            yield target


def test_every_page_is_in_the_navigation_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": (\S+\.md)$", nav, re.MULTILINE)
    assert len(named) == len(set(named))
    from_docs = {page.relative_to(DOCS).as_posix() for page in PAGES}
    hooks = (ROOT / "tools" / "site_hooks.py").read_text("utf-8")
    added = set(re.findall(r"^    \"[\w/]+\.md\": \"(\w+\.md)\",$", hooks, re.MULTILINE))
    assert set(named) == from_docs | added


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in _links(page):
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        assert to.exists(), f"{page.name}: {target}"
        if anchor and to.suffix == ".md":
            assert anchor in _anchors(to), f"{page.name}: {target}"


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_blocks_of_a_guide_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fenced `sh` and `python` blocks run; indented ones need a model, a service or files of the reader.

    A `toml` block is the settings file of the commands after it.
    """
    blocks = re.findall(r"^```(sh|python|toml)\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for kind, block in blocks:
        if kind == "toml":
            (tmp_path / "ketrag.toml").write_text(block, "utf-8")
            continue
        if kind == "python":
            done = python(block, cwd=tmp_path)
            assert done.code == 0, done.err
            for line in re.findall(r"print\(.*\)  # (\[.*\])$", block, re.MULTILINE):
                assert line in done.out
            continue
        for command in block.replace("\\\n", " ").splitlines():
            program, *argv = shlex.split(command)
            assert program == "ketrag"
            code = main(argv)  # in this process: an interpreter would start for longer than it works
            assert code == 0, f"{command}: {capsys.readouterr().err}"
