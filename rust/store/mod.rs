//! Files of one generation: checked, mapped, shared between processes.

mod digest;
mod npy;

pub use digest::file_digest;
pub use npy::{Kind, MappedArray};
