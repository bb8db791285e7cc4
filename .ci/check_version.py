"""Check that this checkout can be released: version, changelog, tag, and no uncommitted change.

python .ci/check_version.py               # before a release
python .ci/check_version.py --draft       # only that the changelog has a section for the version
python .ci/check_version.py --tag v0.1.0  # in the release workflow: the tag must name the version
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def version() -> str:
    """Return the version of the workspace, which is also the package's."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def changelog_faults(changelog: str, release: str, *, draft: bool) -> Iterator[str]:
    """Yield what is missing from the changelog: a section for the version, with a date unless `draft`."""
    found = re.search(rf"^## \[{re.escape(release)}\] - (.+)$", changelog, re.MULTILINE)
    if found is None:
        yield f"CHANGELOG.md has no section '## [{release}] - DATE'"
    elif not draft and not re.fullmatch(r"\d{4}-\d\d-\d\d", found[1]):
        yield f"CHANGELOG.md has {found[1]!r} for {release}, expected a date such as 2026-12-31"


def uncommitted() -> str:
    """Return the changed and untracked files of the checkout, one a line."""
    command = ["git", "status", "--porcelain"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


def main() -> int:
    """Print what is wrong; return 1 if something is."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--draft", action="store_true", help="accept uncommitted changes and no date")
    parser.add_argument("--tag", metavar="NAME", help="tag that must name the version")
    args = parser.parse_args()
    release = version()
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    faults = list(changelog_faults(changelog, release, draft=args.draft))
    if args.tag is not None and args.tag != f"v{release}":
        faults.append(f"the tag is {args.tag!r}, but Cargo.toml has version {release}: expected 'v{release}'")
    if not args.draft and (changed := uncommitted()):
        faults.append(f"uncommitted changes:\n{changed}")
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    if not faults:
        print(f"version {release}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
