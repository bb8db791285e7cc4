"""Slow, plain versions of the compiled kernels: oracles for the tests and peers for the benchmarks."""
