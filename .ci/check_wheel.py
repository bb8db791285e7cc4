"""Check wheels and source distributions before a release: names, sizes, contents, notices, bill of materials.

    python .ci/check_wheel.py dist/*.whl dist/*.tar.gz

It prints a line for each file and exits with 1 if something is wrong. Linux wheels are also checked by
auditwheel (the oldest system that they run on) and every wheel by abi3audit (only the stable ABI of Python
3.11 is used), except a wheel for free-threaded Python 3.14, which has no stable ABI. Both must be
installed next to this Python.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LARGEST: Final = 7_350_000
"""Maximum bytes of a wheel."""
TAG: Final = re.compile(r"ketrag_fast-[^-]+-(?P<python>cp311-abi3|cp314-cp314t)-(?P<platform>[\w.]+)\.whl")
NOTICES: Final = ("LICENSE", "THIRD-PARTY.md")
SOURCES: Final = (
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "README.md",
    "rust/module/Cargo.toml",
    "rust/core/Cargo.toml",
)
_CORES: Final = (".so", ".pyd")
NOT_SHIPPED: Final = ("tests/", "benches/", ".ci/", "target/")


def third_party_crates() -> set[str]:
    """Return the names of the crates that THIRD-PARTY.md lists as compiled into the core."""
    text = (ROOT / "THIRD-PARTY.md").read_text("utf-8")
    compiled = text.partition("## Rust crates compiled into the core")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| ([\w-]+) \| \d", compiled, re.MULTILINE))


def wheel_faults(path: Path) -> Iterator[str]:
    """Yield what is wrong with the name and the contents of a wheel."""
    if not TAG.fullmatch(path.name):
        yield "its name is not of the form ketrag_fast-VERSION-{cp311-abi3,cp314-cp314t}-PLATFORM.whl"
    if path.stat().st_size > LARGEST:
        yield f"{path.stat().st_size:,} bytes, maximum {LARGEST:,}"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for notice in NOTICES:
            stored = [name for name in names if name.endswith(f".dist-info/licenses/{notice}")]
            if not stored:
                yield f"{notice} is missing from .dist-info/licenses"
            elif archive.read(stored[0]) != (ROOT / notice).read_bytes():
                yield f"its {notice} differs from the repository's"
        bills = [name for name in names if ".dist-info/sboms/" in name and name.endswith(".cyclonedx.json")]
        if len(bills) != 1:
            yield f"it has {len(bills)} bills of materials in .dist-info/sboms, expected 1"
        else:
            yield from bill_faults(json.loads(archive.read(bills[0])))
        if (
            sum(name.startswith("ketrag_fast/_core") and name.endswith((".so", ".pyd")) for name in names)
            != 1
        ):
            yield "it does not have exactly one compiled core"
        yield from (f"it contains {name}" for name in names if name.split("/")[0] not in top_folders(path))


def top_folders(path: Path) -> tuple[str, str]:
    """Return the two folders that a wheel has."""
    name, version = path.name.split("-")[:2]
    return "ketrag_fast", f"{name}-{version}.dist-info"


def bill_faults(bill: dict[str, object]) -> Iterator[str]:
    """Yield what is wrong with a CycloneDX bill of materials: it must name every crate of THIRD-PARTY.md."""
    if bill.get("bomFormat") != "CycloneDX":
        yield f"its bill of materials has the format {bill.get('bomFormat')!r}, expected 'CycloneDX'"
    components = bill.get("components")
    listed = {str(one["name"]) for one in components} if isinstance(components, list) else set()
    # Crates of other platforms are in THIRD-PARTY.md but not in the bill of one platform.
    if len(third_party_crates() & listed) * 2 < len(third_party_crates()):
        yield f"its bill of materials lists {len(listed)} components but few crates of THIRD-PARTY.md"


def sdist_faults(path: Path) -> Iterator[str]:
    """Yield what is wrong with a source distribution."""
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    yield from (f"{name} is missing" for name in (*SOURCES, *NOTICES) if name not in names)
    yield from (f"it contains {name}" for name in names if name.startswith(NOT_SHIPPED))


def audit_faults(path: Path) -> Iterator[str]:
    """Yield what auditwheel and abi3audit find in a wheel."""
    tools = Path(sys.executable).parent
    found = TAG.fullmatch(path.name)
    if found is not None and "linux" in found["platform"]:
        command = [str(tools / "auditwheel"), "show", str(path)]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our tool
        consistent = re.search(r'consistent with\s+the following platform tag:\s+"(\S+?)"', shown.stdout)
        tags = found["platform"].split(".")
        if shown.returncode != 0 or consistent is None:
            yield f"auditwheel failed: {(shown.stderr or shown.stdout).strip()}"
        elif consistent[1] not in tags:
            yield f"auditwheel allows {consistent[1]}, its name has {', '.join(tags)}"
    if found is not None and found["python"] != "cp311-abi3":
        return
    command = [str(tools / "abi3audit"), "--strict", "--assume-minimum-abi3", "3.11", str(path)]
    audited = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our tool
    if audited.returncode != 0:
        yield f"abi3audit failed: {(audited.stdout + audited.stderr).strip()}"


def main() -> int:
    """Check the files and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--contents-only", action="store_true", help="skip auditwheel and abi3audit")
    args = parser.parse_args()
    good = True
    for path in args.files:
        if path.suffix == ".whl":
            faults = [*wheel_faults(path), *([] if args.contents_only else audit_faults(path))]
        else:
            faults = list(sdist_faults(path))
        for fault in faults:
            sys.stderr.write(f"{path.name}: {fault}\n")
        if not faults:
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, correct")
        good = good and not faults
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
