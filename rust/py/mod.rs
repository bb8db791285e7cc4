//! The Python face: the only place that knows PyO3. Every function copies nothing it need not,
//! checks its arrays, and calls the core through the one [`door`].

mod arrays;
mod door;
mod vectors;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    vectors::register(m)?;
    Ok(())
}
