"""Headers of stored arrays, which are written without NumPy, are those that NumPy writes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy

from ketrag_fast.errors import IndexDamaged
from ketrag_fast.storage.arrays import Buffer, read_array, write_arrays


@pytest.mark.parametrize("dtype", ["|u1", "|i1", "<u4", "<u8", "<f4", "<f8", "|b1"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (12_345,), (0, 2), (3, 2), (1000, 384), (2, 3, 4)])
def test_a_stored_array_has_the_bytes_that_numpy_writes(
    tmp_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(1)
    array = rng.integers(0, 2, shape).astype(dtype)
    stored = Buffer(array.tobytes(), dtype, shape)
    wanted = io.BytesIO()
    npy.write_array(wanted, array, version=(1, 0), allow_pickle=False)
    for name, output in (("plain", {"a": stored}), ("numpy", {"a": array})):
        folder = tmp_path / name
        folder.mkdir()
        record = write_arrays(folder, output)["a"]  # type: ignore[arg-type]
        if not record.packed:
            assert (folder / "a.npy").read_bytes() == wanted.getvalue()
        path = folder / ("a.pack" if record.packed else "a.npy")
        assert np.array_equal(read_array(path, record), array)


def test_a_header_is_read_without_ast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy reads headers with `ast.parse`, which fails in several threads at a time before Python 3.11.8."""
    record = write_arrays(tmp_path, {"a": np.arange(3, dtype="<f4")})["a"]

    def fail(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch (before=18, after=15)")

    with monkeypatch.context() as patched:  # pytest itself uses it
        patched.setattr("ast.parse", fail)
        values = read_array(tmp_path / "a.npy", record).tolist()
    assert values == [0, 1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        (b"False", b"True "),
        (b"'<f4'", b"'|O8'"),
        (b"'<f4'", b"'<f9'"),
        (b"(3,)", b"(4,)"),
        (b"(3,)", b"[3,]"),
        (b"(3,), }", b"(9999999999999999999,), }"),
        (b"NUMPY\x01", b"NUMPY\x02"),
        (b"descr", b"desc\n"),
        (b"}", b"*"),
        (b"NUMPY\x01\x00v", b"NUMPY\x01\x00w"),
    ],
)
def test_an_altered_header_is_damage(tmp_path: Path, wrong: tuple[bytes, bytes]) -> None:
    record = write_arrays(tmp_path, {"a": np.arange(3, dtype="<f4")})["a"]
    path = tmp_path / "a.npy"
    altered = path.read_bytes().replace(*wrong)
    assert altered != path.read_bytes()
    path.write_bytes(altered)
    with pytest.raises(IndexDamaged):
        read_array(path, record)
