//! The channels and joins that are not in the core: those of the published systems, with the feature `papers`.

#[cfg(not(feature = "papers"))]
pub use ketrag_core::assemble::Extensions;
#[cfg(feature = "papers")]
pub use ketrag_papers::EXTENSIONS;

#[cfg(not(feature = "papers"))]
pub const EXTENSIONS: Extensions = Extensions::NONE;
