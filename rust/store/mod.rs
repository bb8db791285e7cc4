//! Files of one generation: checked, mapped, shared between processes.

mod digest;
mod npy;

pub use digest::file_digest;
pub use npy::{Item, Kind, MappedArray};
