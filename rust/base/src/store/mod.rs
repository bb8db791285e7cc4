//! Files of one generation: checked, mapped, shared between processes.

mod mapped;
mod npy;
mod refused;
mod tree;

pub use mapped::{MappedFile, Tree};
pub use npy::{Item, Kind, MappedArray};
pub use tree::{file_digest, file_tree, root, Value};
