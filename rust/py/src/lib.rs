//! The Python bindings, the only crate that uses PyO3. Every function copies as little as possible, checks
//! its arrays, and calls the core through [`door`].
//!
//! A call from Python passes through these steps:
//!
//! 1. The function of a module here checks the types of its arrays and borrows them ([`arrays`]).
//! 2. [`door`] allocates the memory reserve, releases the interpreter, and for long work watches for signals
//!    on the calling thread while another one works.
//! 3. The kernel of `ketrag_core`, `ketrag_encode`, `ketrag_layout`, `ketrag_text` or `ketrag_web` checks the values and computes.
//! 4. [`door`] turns an error into an exception of `ketrag_fast.errors`, and a panic into `InternalError`. It relies
//!    on unwinding: `panic = "abort"` is not supported (see `ketrag_base`).
//! 5. The result becomes NumPy arrays without a copy.
//!
//! The module is tested from Python: `tests/unit/kernels` and `tests/parity`.

mod allocator;
mod arrays;
mod centrality;
mod citations;
mod concepts;
mod context_json;
mod cooccurrence;
mod delta;
mod door;
mod drawing;
mod encode;
mod encodings;
mod files;
mod front;
mod grep;
mod json_lines;
mod kmeans;
mod links_runs;
mod pdf;
mod plan;
mod published;
mod rank;
mod reply;
mod request;
mod searcher;
mod skeleton;
mod strings;
mod system;
mod text;
mod vectors;
mod walk;
mod web;

use pyo3::prelude::*;

// Classes are frozen and `Sync`, and nothing global changes, so the module is safe without the GIL.
#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    centrality::register(m)?;
    citations::register(m)?;
    concepts::register(m)?;
    cooccurrence::register(m)?;
    delta::register(m)?;
    drawing::register(m)?;
    encode::register(m)?;
    encodings::register(m)?;
    files::register(m)?;
    front::register(m)?;
    grep::register(m)?;
    json_lines::register(m)?;
    kmeans::register(m)?;
    links_runs::register(m)?;
    pdf::register(m)?;
    plan::register(m)?;
    published::register(m)?;
    rank::register(m)?;
    reply::register(m)?;
    request::register(m)?;
    searcher::register(m)?;
    skeleton::register(m)?;
    strings::register(m)?;
    system::register(m)?;
    text::register(m)?;
    vectors::register(m)?;
    walk::register(m)?;
    web::register(m)?;
    Ok(())
}
