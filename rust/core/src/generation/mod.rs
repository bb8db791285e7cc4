//! One opened generation: its arrays by name, and typed views of them, created on first use.

mod arrays;
mod chunks;
mod citations;
mod concepts;
pub mod delta;
mod delta_locations;
mod noderag;
mod parts;
mod skeleton;
mod space;
mod vectors;

pub use arrays::{Arrays, Held};
pub use chunks::Chunks;
pub use parts::{Parts, Place};
pub use skeleton::Skeleton;
pub use space::Space;
