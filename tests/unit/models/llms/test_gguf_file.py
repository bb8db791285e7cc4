"""Damaged, cut and foreign files get a typed error."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ketrag_fast.errors import BackendError
from ketrag_fast.models.llms.llama.gguf_file import read_gguf


def test_the_head_of_a_whole_file(tiny_gguf: Path) -> None:
    file = read_gguf(tiny_gguf)
    assert file.architecture == "llama"
    assert file.context == 2048
    assert file.vocabulary > 900
    assert file.template is not None
    assert "<|im_start|>" in file.template
    # 2 layers, 2 key-value heads of 16 numbers, keys and values of 2 bytes
    assert file.cell_bytes() == 2 * 2 * (16 + 16) * 2


@pytest.mark.parametrize("share", [0.0, 1e-5, 0.001, 0.02, 0.05, 0.5, 0.999999])
def test_a_file_cut_short(tiny_gguf: Path, tmp_path: Path, share: float) -> None:
    data = tiny_gguf.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(BackendError, match=r"truncated|not a GGUF"):
        read_gguf(path)


def test_files_that_are_no_model(tmp_path: Path, llama_cpp: Any) -> None:
    with pytest.raises(BackendError, match="no such file"):
        read_gguf(tmp_path / "none.gguf")
    with pytest.raises(BackendError, match="is a folder"):
        read_gguf(tmp_path)
    path = tmp_path / "page.gguf"
    path.write_bytes(b"<html>Sign in to download</html>")
    with pytest.raises(BackendError, match="not a GGUF"):
        read_gguf(path)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0))
    with pytest.raises(BackendError, match="truncated or damaged"):
        read_gguf(path)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_damage_of_the_head_is_anything_but_an_error_or_a_head(
    tiny_gguf: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(tiny_gguf.read_bytes()[:4000])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 600))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(content)
    with pytest.raises(BackendError):  # at the latest because the rest is missing
        read_gguf(path)
