//! Files of one generation: mapped into memory, shared between processes, and verified by hash before they
//! are read.

mod mapped;
mod npy;
mod pack;
pub mod patch;
mod patched;
mod rice;
mod tree;
mod unpacked;

pub use mapped::{MappedFile, Tree};
pub use npy::MappedArray;
pub use pack::{pack, pack_to, Item, Kind, Shape};
pub use patched::Patched;
pub use tree::{file_digest, file_tree, root, Value};
pub use unpacked::{Changes, Compose, Unpacked};
