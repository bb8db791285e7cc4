"""Scopes of a search in a repository: code, documentation, configuration or tests, by the paths of files.

A file is in at most one scope: the first of those below whose expression its path matches. Data, such as
tables and pictures, is in none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ketrag_fast.errors import ConfigError

_END: Final = r"(?:[#:][^/]*)?$"
"""The part of a document id after the path of its file: a row, a line or a sheet."""


def _named(names: str) -> str:
    """Return the expression for files whose whole name matches one of some expressions."""
    return f"(?:^|/)(?:{'|'.join(names.split())}){_END}"


def _ending(suffixes: str) -> str:
    """Return the expression for files with one of some suffixes."""
    return rf"\.(?:{'|'.join(suffixes.split())}){_END}"


_SCOPES: Final = {
    "tests": r"(?:^|/)(?:__tests__|tests?|testing|testdata|specs?|fixtures?)/|"
    + _named(r"test_[^/]* conftest\.\w+ [^/]+[_.-](?:tests?|spec)\.\w+")
    + "|"
    + _named(r"[^/]*(?-i:[a-z0-9](?:Tests?|TestCase|Spec|Suite))\.\w+"),
    "config": _named(
        r"makefile dockerfile containerfile jenkinsfile vagrantfile procfile gemfile rakefile"
        r" requirements[^/]*\.txt constraints[^/]*\.txt cmakelists\.txt go\.mod go\.sum meson\.build"
    )
    + "|"
    + _ending(
        "json5? jsonc ya?ml toml ini cfg conf config properties env editorconfig gradle cmake mk lock plist"
        " desktop service tf tfvars nix bazel bzl"
    ),
    "docs": _named(
        r"(?:readme|licen[cs]e|copying|notice|authors|contributors|contributing|maintainers|changelog"
        r"|changes|history|news|todo|install|security)(?:[.-]\w+)?"
    )
    + rf"|(?:^|/)(?:docs?|site|website|manual)/(?:[^/]+/)*[^/]+\.x?html?{_END}|"
    + _ending(
        "md markdown mdown mkd mdx qmd rmd rst adoc asciidoc org tex txt text pdf docx? odt odp rtf epub"
        " pptx? [1-9]"
    ),
    "code": _ending(
        "adb ads asm astro bash c cc cjs clj cljs coffee cpp cs css cts cu cxx d dart ejs el elm erb erl ex"
        " exs f90 fish fs fsx glsl go graphql groovy h haml hbs hcl hh hpp hs html? hxx inl ipynb java j2"
        " jinja2? jl js jsx kt kts less lisp lua m mako mjs ml mli mm mts nim pas php pl pm proto ps1 pug py"
        " pyi pyx r rb rkt rs s sass scala scm scss sh sol sql styl svelte swift tcl tera tmpl tpl ts tsx"
        " twig v vala vb vhd vim vue wgsl xhtml zig zsh"
    )
    + "|"
    + _named(r"[^/.#:]+"),
}
SCOPES: Final = ("code", "docs", "config", "tests")
"""The names of the scopes, as `only` takes them."""


def check_scope(only: str | None) -> None:
    """Raise ConfigError for an unknown scope."""
    if only is not None and only not in SCOPES:
        raise ConfigError(f"only: unknown scope {only!r:.40}", hint=f"use {', '.join(SCOPES)}")


def scope_mask(only: str, paths: Sequence[str]) -> bytes:
    """Return for each path whether its file is in a scope.

    Examples:
        >>> paths = ["src/a.py", "tests/test_a.py", "docs/a.md", "pyproject.toml", "setup", "table.csv"]
        >>> [list(scope_mask(only, paths)) for only in ("code", "tests")]
        [[1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0]]
    """
    from ketrag_fast import _core  # the command imports this module for the names alone

    taken = bytes(len(paths))
    for scope, expression in _SCOPES.items():
        matches = _core.Pattern(expression, any_case=True).mask(paths)
        if scope == only:
            break
        taken = bytes(map(int.__or__, taken, matches))
    return bytes(map(int.__gt__, matches, taken))


def paths_in(only: str | None, paths: Sequence[str]) -> list[str]:
    """Return the paths of the files in a scope; all without one."""
    if only is None:
        return list(paths)
    return [path for path, is_in in zip(paths, scope_mask(only, paths), strict=True) if is_in]
