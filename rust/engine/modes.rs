//! The ways to rank units for a question.

use super::answer::Request;
use super::parts::{Keywords, Parts};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::walk;
use crate::search::simd::Level;
use crate::search::{bm25, keyword, knng, vectors};
use crate::sparse::{Scored, top_k};

/// How units are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Words alone.
    Bm25,
    /// Vectors alone.
    Text,
    /// Reciprocal-rank fusion of the two.
    Fused,
    /// Text with the neighbours of each hit (KNNG-RAG).
    Knng,
    /// KET-RAG's text-keyword graph (Alg. 4).
    Keyword,
    /// Several hops over shared keywords, names and subjects.
    Walk,
}

impl Mode {
    pub const ALL: [Self; 6] =
        [Self::Bm25, Self::Text, Self::Fused, Self::Knng, Self::Keyword, Self::Walk];

    pub fn name(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Text => "text",
            Self::Fused => "fused",
            Self::Knng => "knng",
            Self::Keyword => "keyword",
            Self::Walk => "walk",
        }
    }

    pub fn by_name(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| Error::input(format!("there is no mode {name:?}")))
    }

    /// Whether the question's vector is looked at.
    pub fn reads_vector(self) -> bool {
        !matches!(self, Self::Bm25)
    }

    /// What the generation lacks for this mode.
    pub fn missing(self, parts: &Parts<'_>) -> Option<&'static str> {
        let links = parts.links.is_none().then_some("the word index (stage links)");
        let vectors = parts.unit_vectors.is_none().then_some("vectors of the units (stage vectors)");
        match self {
            Self::Bm25 | Self::Walk => links,
            Self::Text => vectors,
            Self::Fused => links.or(vectors),
            Self::Knng => vectors.or(parts.knn.is_none().then_some("the KNN graph (stage knn)")),
            Self::Keyword => {
                vectors.or(parts.keywords.is_none().then_some("the keyword graph (stage keywords)"))
            }
        }
    }
}

/// Buffers of one thread, kept between questions.
#[derive(Debug, Default)]
pub struct Scratch {
    walk: walk::Scratch,
    bm25: bm25::Scratch,
    vectors: vectors::Scratch,
    keyword: keyword::Scratch,
    question: Vec<f32>,
}

/// Lists that are fused reach at least so deep.
const FUSED_DEPTH: usize = 1000;
