//! One opened generation: its arrays by name, and typed views of them, checked once.

mod arrays;
mod parts;

pub use arrays::Arrays;
pub use parts::{Parts, Place, Skeleton, Space};
