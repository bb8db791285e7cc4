//! The shared library that Python imports. The bindings are a separate crate (`ketrag-py`), which is optimised for
//! size: link-time optimisation of all crates runs at the level of the last one, and that must be the level of kernels.

pub use ketrag_py::_core;
