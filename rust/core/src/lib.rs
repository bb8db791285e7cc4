//! Graphs, rankings and search over flat arrays, and the contexts printed from their results. Another crate can
//! add channels ([`assemble::Extensions`]).
//!
//! How a query over documents is answered, and the module of each step:
//!
//! 1. `ketrag_text::corpus` cuts documents into chunks, units and sentences, and counts their words.
//! 2. `ketrag_encode` computes vectors of the units with a model from a local folder; without a model
//!    [`embed`] fits a space on the corpus itself.
//! 3. [`graph`] builds the structures that are searched: nearest neighbours, clusters, and the links of the walk.
//! 4. [`rank`] orders nodes of any graph: PageRank, BM25, the walk.
//! 5. [`generation`] opens the arrays of a published index, each when a query first needs it.
//! 6. [`channels`] rank units for one query, or print tables for it; they use [`search`] and [`vector`].
//! 7. [`assemble`] shares the token budget of a recipe between channels and prints the context.
//!
//! Layers, lowest first: [`vector`] and [`tokens`], then [`rank`] and [`search`], then [`graph`]
//! and [`embed`], then [`generation`], [`channels`] and [`assemble`]. A lower module never imports an upper
//! one, and no two files import each other; `tests/test_rust_layers.py` reads the imports.
//!
//! `ketrag_base` documents how errors travel and why `panic = "abort"` is not supported.
//!
//! # Example
//!
//! The words of two texts become links, and the walk ranks the texts for a query.
//!
//! ```
//! use ketrag_base::progress::Progress;
//! use ketrag_core::graph::links::{view, Links, Texts};
//! use ketrag_core::rank::walk::{rank, Lengths, Plan, Scratch};
//! use ketrag_text::detection::Choice;
//! use ketrag_text::strings::StringsBuf;
//! use std::sync::OnceLock;
//!
//! let titles: StringsBuf = ["Blue Engine", "Ada Lorne", "Red Engine"].into_iter().collect();
//! let texts: StringsBuf =
//!     ["Blue Engine is a film of Ada Lorne.", "Ada Lorne was born in Milan.", "Red Engine is a film."]
//!         .into_iter()
//!         .collect();
//! // One sentence in each text.
//! let input = Texts {
//!     titles: titles.view(),
//!     texts: texts.view(),
//!     sentences: texts.view(),
//!     first_sentence: &[0, 1, 2, 3],
//!     language: Choice::Detect,
//! };
//! let progress = Progress::none();
//! let arrays = Links::build(&input, 1, &progress)?.into_arrays();
//! let weights = OnceLock::new();
//! let links = view(&arrays, &weights)?;
//! let question = "Where was the maker of Blue Engine born?";
//! let (plan, mut scratch) = (Plan::new(false), Scratch::default());
//! let found = rank(&links, Lengths::Keywords.into(), None, None, question, 2, None, &plan, &mut scratch, &progress)?;
//! let mut units: Vec<u32> = found.iter().map(|unit| unit.id).collect();
//! units.sort_unstable();
//! assert_eq!(units, [0, 1]);
//! # Ok::<(), ketrag_base::Error>(())
//! ```

// Modules of lower crates, under the names that they have in this crate.
#[cfg(target_arch = "x86_64")]
use ketrag_base::tiles;
use ketrag_base::{cpu, error, guard, items, memory, parallel, progress, sparse, store};
use ketrag_text as text;

pub mod tokens;
pub mod vector;

pub mod rank;
pub mod search;

pub mod embed;
pub mod graph;

pub mod assemble;
pub mod channels;
pub mod generation;
pub mod shards;
