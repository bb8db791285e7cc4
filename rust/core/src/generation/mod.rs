//! One opened generation: its arrays by name, and typed views of them, created on first use.

mod arrays;
pub mod delta;
mod delta_locations;
mod documents;
mod noderag;
mod parts;
mod vectors;
mod views;

pub use arrays::{Arrays, Held};
pub use documents::{Documents, Found};
pub use parts::{Parts, Place};
pub use views::Chunks;
pub use views::Skeleton;
pub use views::Space;
