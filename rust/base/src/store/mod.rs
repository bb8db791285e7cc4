//! Files of one generation: mapped into memory, shared between processes, and verified by hash before they
//! are read.

mod mapped;
mod npy;
mod refused;
mod tree;

pub use mapped::{MappedFile, Tree};
pub use npy::{Item, Kind, MappedArray};
pub use tree::{file_digest, file_tree, root, Value};
