//! The compiled core of ketrag-fast: text, graphs, ranks and search on flat arrays.
//!
//! Everything but [`py`] compiles and is tested without Python. Layers: `error`, `guard`, `reserve`,
//! `progress`, `parallel`, `tiles` and `wide` below; `text`, `sparse` and `store` on them; then `rank`, `search`, `embed` and
//! `graph`; `generation` views an opened index, `channels` find what it holds for a question, `assemble`
//! makes contexts of what they find, and `py` is last. A lower layer never names an upper one.

pub(crate) mod cpu;
pub mod error;
pub mod guard;
pub mod memory;
pub mod parallel;
pub mod progress;
pub mod reserve;
pub mod tiles;
pub(crate) mod wide;

pub mod sparse;
pub mod text;

pub mod embed;
pub mod encode;
pub mod graph;
pub mod rank;
pub mod search;
pub mod store;

pub mod assemble;
pub mod channels;
pub mod generation;

#[cfg(feature = "python")]
mod py;

#[global_allocator]
static ALLOCATOR: reserve::Reserve = reserve::Reserve;

pub use error::{Error, Result};
