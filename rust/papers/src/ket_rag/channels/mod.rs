//! The channels `skeleton`, `keyword` and `knn`.

pub mod keyword;
pub mod knn;
pub mod skeleton;
