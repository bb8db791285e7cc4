"""Kernels that only stages and channels call, on NumPy arrays as in `ketrag_fast.kernels`.

Tests and benchmarks compare them with oracles; the package calls `ketrag_fast._core` without them.
"""
