//! Foundations that every other crate of ketrag-fast depends on.
//!
//! Modules, each depending only on earlier ones: `beneath` (files opened below a folder), `cpu` (usable instructions), `error`, `guard` (verification
//! of blocks), `items` (values behind a guard), `memory` (fallible allocation), `reserve` (an emergency memory reserve), `progress`
//! (cancellation and deadlines), `parallel` (ordered work on threads), `tiles` (matrix tiles), `sparse` (checked
//! compressed rows and the order of results) and `store` (mapped files, arrays, hashes of files and of their blocks).
//!
//! # Errors cross threads by unwinding
//!
//! Functions return [`Result`]. There are two exceptions, and both unwind:
//!
//! * An accessor that cannot return an error without a branch in every row calls [`error::Error::raise`] when
//!   a block of a mapped file turns out to be damaged. [`error::caught`] turns it into an ordinary error
//!   again.
//! * A panic on a thread of [`parallel`] is resumed on the calling thread; [`error::caught`] turns it into
//!   [`Error::Internal`].
//!
//! These crates therefore need `panic = "unwind"`, the default. A build with `panic = "abort"` compiles but
//! is not supported: a damaged file would end the process.
//!
//! # Example
//!
//! Rows are checked once; work is split over threads and its results are returned in row order.
//!
//! ```
//! use ketrag_base::parallel::map_ranges;
//! use ketrag_base::progress::Progress;
//! use ketrag_base::sparse::Csr;
//!
//! let rows = Csr::from_rows(&[vec![0, 2], vec![], vec![1]], 3)?;
//! let lengths = map_ranges(rows.view().rows(), 1, 2, &Progress::none(), |range| {
//!     Ok(range.map(|row| rows.view().row(row).len()).sum::<usize>())
//! })?;
//! assert_eq!(lengths, [2, 0, 1]);
//! # Ok::<(), ketrag_base::Error>(())
//! ```

pub mod beneath;
pub mod cpu;
pub mod error;
pub mod guard;
pub mod items;
pub mod memory;
pub mod parallel;
pub mod progress;
pub mod reserve;
pub mod sparse;
pub mod store;
pub mod tiles;
#[cfg(windows)]
pub mod windows;

pub use error::{Error, Result};
