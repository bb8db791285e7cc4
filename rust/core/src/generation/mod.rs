//! One opened generation: its arrays by name, and typed views of them, created on first use.

mod arrays;
pub mod delta;
mod delta_locations;
mod documents;
mod parts;
pub mod unit_columns;
pub mod vectors;
mod views;

pub use arrays::{damaged, expect_few_queries, Arrays, Held};
pub use documents::{Documents, Found};
pub use parts::{once, Parts, Place};
pub use views::Chunks;
pub use views::Space;
