//! Views of the skeleton, of the concepts, of the citation graph, and of the space that embeds queries without a model.

use super::arrays::Sparse;
use super::arrays::{damaged, Arrays};
use super::vectors::{codes, vectors};
use crate::embed::builtin::embed_rows;
use crate::error::Error;
use crate::error::Result;
use crate::items::Items;
use crate::progress::Progress;
use crate::rank::messages::Graph;
use crate::search::cited::CitedGraph;
use crate::search::concepts::ConceptIndex;
use crate::search::local::graph::{EntityGraph, SkeletonArrays};
use crate::sparse::CsrView;
use crate::sparse::Mask;
use crate::text::languages::Language;
use crate::text::stopwords::StopWords;
use crate::text::strings::Strings;
use crate::text::words::Words;
use crate::vector::quantised::QuantisedView;
use crate::vector::Rows;
use crate::vector::Vectors;
use std::collections::BTreeMap;

/// The skeleton with the vectors of its entities.
pub struct Skeleton<'a> {
    pub graph: EntityGraph<'a>,
    /// `None` if there are no entities.
    pub vectors: Option<Vectors<'a>>,
    pub codes: Option<QuantisedView<'a>>,
}

impl<'a> Skeleton<'a> {
    pub(super) fn new(arrays: &'a Arrays, units: usize) -> Result<Self> {
        let names = arrays.strings("skeleton.entity_name")?;
        let sources: &[u32] = arrays.values("skeleton.relation_source")?;
        let (entities, relations) = (names.len(), sources.len());
        let found = SkeletonArrays {
            names,
            descriptions: arrays.strings("skeleton.entity_description")?,
            ranks: arrays.values("skeleton.entity_rank")?,
            units: arrays.csr("skeleton.entity_units", entities, units)?,
            row_tokens: arrays.values("skeleton.entity_row_tokens")?,
            sources,
            targets: arrays.values("skeleton.relation_target")?,
            relation_descriptions: arrays.strings("skeleton.relation_description")?,
            weights: arrays.values("skeleton.relation_weight")?,
            relation_ranks: arrays.values("skeleton.relation_rank")?,
            relation_units: arrays.csr("skeleton.relation_units", relations, units)?,
            relation_row_tokens: arrays.values("skeleton.relation_row_tokens")?,
        };
        let graph = match arrays.by_blocks() {
            true => EntityGraph::stored(found),
            false => EntityGraph::new(found),
        }
        .map_err(|e| damaged("skeleton", e))?;
        if entities == 0 {
            return Ok(Self { graph, vectors: None, codes: None });
        }
        let codes = match arrays.has("entities.entity_codes") {
            true => Some(codes(arrays, "entities.entity")?),
            false => None,
        };
        let vectors = vectors(arrays, "entities.entity_vectors", entities, codes.as_ref())?;
        Ok(Self { graph, vectors: Some(vectors), codes })
    }
}

/// Concepts with their vectors, their units, and the edges between them.
pub struct Concepts<'a> {
    vectors: Option<Vectors<'a>>,
    codes: Option<QuantisedView<'a>>,
    edges: CsrView<'a>,
    units: CsrView<'a>,
}

impl<'a> Concepts<'a> {
    pub(super) fn in_index(arrays: &Arrays) -> bool {
        arrays.has("concepts.vectors") && arrays.has("concept_graph.edges_indptr")
    }

    pub(super) fn new(arrays: &'a Arrays, units: usize) -> Result<Self> {
        let n = arrays.shape("concepts.vectors")?.0;
        let edges = arrays.csr("concept_graph.edges", n, n)?;
        let units = arrays.csr("concepts.concept_units", n, units)?;
        if !arrays.by_blocks() {
            units.require_sorted().map_err(|e| damaged("concepts.concept_units", e))?;
        }
        if n == 0 {
            return Ok(Self { vectors: None, codes: None, edges, units });
        }
        let codes = codes(arrays, "concepts.concept")?;
        let vectors = vectors(arrays, "concepts.vectors", n, Some(&codes))?;
        Ok(Self { vectors: Some(vectors), codes: Some(codes), edges, units })
    }

    /// Return the searchable form, together with the units' vectors.
    pub fn index<'b>(&'b self, unit_vectors: Option<Rows<'b>>) -> Result<ConceptIndex<'b>> {
        let missing = || Error::damaged("the index has concepts and no vectors of units");
        Ok(ConceptIndex {
            vectors: self.vectors,
            codes: self.codes.as_ref(),
            edges: self.edges,
            units: self.units,
            unit_vectors: unit_vectors.ok_or_else(missing)?,
            mask: None,
        })
    }
}

pub(super) fn has_citations(arrays: &Arrays) -> bool {
    arrays.has("citation_graph.edges_indptr")
}

/// A query reads the whole graph, so it is verified in full.
pub(super) fn cited_graph(arrays: &Arrays, units: usize) -> Result<CitedGraph<'_>> {
    let indptr = arrays.exactly::<u64>("citation_graph.edges_indptr", units + 1)?;
    let indices = arrays.values::<u32>("citation_graph.edges_indices")?;
    let edges = match arrays.by_blocks() {
        true => CsrView::stored(indptr.into(), indices.into(), units),
        false => CsrView::new(indptr, indices, units),
    };
    let edges = edges.map_err(|e| damaged("citation_graph.edges", e))?;
    let kinds = arrays.exactly::<u8>("citation_graph.edge_kind", indices.len())?;
    let alphas = arrays.exactly::<f32>("citation_graph.edge_alpha", indices.len())?;
    if !arrays.by_blocks() && alphas.iter().any(|alpha| !(0.0..=1.0).contains(alpha)) {
        return Err(Error::damaged("citation_graph.edge_alpha is not between 0 and 1"));
    }
    let graph = Graph::new(edges, kinds, alphas).map_err(|e| damaged("citation_graph", e))?;
    Ok(CitedGraph::new(graph))
}

/// A vector for each word. A query reads the vectors of its words.
pub struct Space<'a> {
    basis: Sparse<'a, f32>,
    dimension: usize,
    stop_words: StopWords,
    languages: Vec<Language>,
    vocabulary: Strings<'a>,
}

impl<'a> Space<'a> {
    pub(super) fn new(arrays: &'a Arrays, language: &str) -> Result<Self> {
        let dimension = arrays.shape("vectors.basis")?.1;
        let vocabulary = arrays.strings("words.vocabulary")?;
        let basis = match arrays.by_blocks() {
            true => arrays.sparse("vectors.basis")?,
            false => (arrays.values("vectors.basis")?, None),
        };
        let finite = arrays.by_blocks() || basis.0.iter().all(|x: &f32| x.is_finite());
        if basis.0.len() != vocabulary.len() * dimension || !finite {
            return Err(Error::damaged("vectors.basis does not fit the vocabulary"));
        }
        let numbers = match arrays.has("words.languages") {
            true => arrays.values("words.languages")?,
            false => &[],
        };
        let languages = numbers.iter().map(|&number| Language::numbered(number)).collect::<Result<_>>();
        let languages = languages.map_err(|e| damaged("words.languages", e))?;
        Ok(Self { basis, dimension, stop_words: StopWords::by_name(language)?, languages, vocabulary })
    }

    /// Return the query's vector; zero if none of its words is known.
    pub fn embed(&self, question: &str) -> Result<Vec<f32>> {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        Words::of_queries(self.stop_words, &self.languages).for_each_word(question, |word, _| {
            if let Some(id) = self.vocabulary.position(word) {
                *counts.entry(id as u32).or_default() += 1;
            }
        });
        let (ids, repeats): (Vec<u32>, Vec<u32>) = counts.into_iter().unzip();
        let (basis, guard) = self.basis;
        for at in ids.iter().map(|&id| id as usize * self.dimension) {
            guard.iter().for_each(|guard| guard.check(at..at + self.dimension));
        }
        let indptr = [0, ids.len() as u64];
        let row = CsrView::unchecked(&indptr, &ids, self.vocabulary.len());
        embed_rows(basis, self.dimension, row, &repeats, 1, &Progress::none())
    }
}

/// The units of chunk `c` are `first_unit[c]..first_unit[c + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Chunks<'a> {
    first_unit: Items<'a, u64>,
}

impl<'a> Chunks<'a> {
    /// `first_unit` has one more offset than there are chunks.
    pub(super) fn new(first_unit: Items<'a, u64>) -> Self {
        Self { first_unit }
    }

    pub fn len(&self) -> usize {
        self.first_unit.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn units(&self, chunk: usize) -> std::ops::Range<u32> {
        let [start, end] = self.first_unit.pair(chunk);
        start as u32..end as u32
    }

    /// Return the chunks that have a unit which passes the filter.
    pub fn left(&self, mask: &Mask) -> Mask {
        Mask::from_fn(self.len(), |chunk| self.units(chunk).any(|unit| mask.has(unit)))
    }
}
