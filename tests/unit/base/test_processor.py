"""The name of the processor from the forms of /proc/cpuinfo that x86-64 and ARM have, and without it."""

from __future__ import annotations

from pathlib import Path

from ketrag_fast.base.processor import processor_name

X86 = "processor\t: 0\nmodel name\t: Some CPU @ 2.10GHz\n\nprocessor\t: 1\nmodel name\t: Another\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"


def test_the_name_of_the_first_core(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(X86)
    assert processor_name(info) == "Some CPU @ 2.10GHz"


def test_an_arm_core_has_numbers_in_place_of_a_name(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(ARM)
    assert processor_name(info).endswith("(implementer 0x41, part 0xd0c, variant 0x3)")


def test_without_the_file_the_name_is_not_empty(tmp_path: Path) -> None:
    assert processor_name(tmp_path / "missing")
    (tmp_path / "empty").write_text("")
    assert processor_name(tmp_path / "empty") == processor_name(tmp_path / "missing")


def test_this_machine_has_a_name() -> None:
    assert processor_name()
