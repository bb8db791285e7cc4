//! Typed views of a generation's arrays. The stages that write them name them alike.

use super::arrays::Arrays;
use crate::embed::builtin::embed_rows;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, Slice};
use crate::search::keyword::KeywordChannel;
use crate::search::local::graph::{EntityGraph, SkeletonArrays};
use crate::search::quantised::QuantisedView;
use crate::search::render::Units;
use crate::search::vectors::Vectors;
use crate::sparse::CsrView;
use crate::text::stopwords::StopWords;
use crate::text::strings::Strings;
use crate::text::words::Words;
use std::collections::BTreeMap;

/// Where a unit comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub chunk: u32,
    pub document: &'a str,
    pub title: &'a str,
    /// Code points into the document's text.
    pub start: u32,
    pub end: u32,
    pub text: &'a str,
}

/// The vector space fitted on the corpus: how a question becomes a vector without a model.
pub struct Space<'a> {
    basis: &'a [f32],
    dimension: usize,
    stop_words: StopWords,
    vocabulary: Strings<'a>,
}

impl Space<'_> {
    /// The question's vector; zero where no word of it is known.
    pub fn embed(&self, question: &str) -> Result<Vec<f32>> {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        Words::new(self.stop_words).for_each_word(question, |word, _| {
            if let Some(id) = self.vocabulary.position(word) {
                *counts.entry(id as u32).or_default() += 1;
            }
        });
        let (ids, repeats): (Vec<u32>, Vec<u32>) = counts.into_iter().unzip();
        let indptr = [0, ids.len() as u64];
        let row = CsrView { indptr: &indptr, indices: &ids, columns: self.vocabulary.len() };
        embed_rows(self.basis, self.dimension, row, &repeats, 1, &Progress::none())
    }
}

/// The skeleton, with the vectors that a question finds its entities by.
pub struct Skeleton<'a> {
    pub graph: EntityGraph<'a>,
    /// None where there is no entity.
    pub vectors: Option<Vectors<'a>>,
    pub codes: Option<QuantisedView<'a>>,
}

/// Everything a generation holds, as far as it was built.
pub struct Parts<'a> {
    pub units: Units<'a>,
    pub unit_tokens: &'a [u32],
    pub unit_texts: Strings<'a>,
    pub unit_chunk: &'a [u32],
    pub unit_span: &'a [u32],
    pub unit_document: &'a [u32],
    /// The units of chunk `c` are `chunk_units[c]..chunk_units[c + 1]`.
    pub chunk_units: &'a [u64],
    /// What printing all units of a chunk costs.
    pub chunk_costs: Vec<u32>,
    pub document_ids: Strings<'a>,
    pub document_titles: Strings<'a>,
    pub links: Option<LinksView<'a>>,
    pub space: Option<Space<'a>>,
    pub unit_vectors: Option<Vectors<'a>>,
    pub unit_codes: Option<QuantisedView<'a>>,
    /// Differs from `unit_vectors` only where chunks are split.
    pub chunk_vectors: Option<Vectors<'a>>,
    pub sentence_vectors: Option<Vectors<'a>>,
    /// The keyword half of KET-RAG.
    pub keywords: Option<KeywordChannel<'a>>,
    pub knn: Option<CsrView<'a>>,
    pub skeleton: Option<Skeleton<'a>>,
}

impl<'a> Parts<'a> {
    pub fn new(arrays: &'a Arrays, language: &str) -> Result<Self> {
        let unit_tokens: &[u32] = arrays.values("units.unit_tokens")?;
        let n = unit_tokens.len();
        let unit_texts = arrays.strings("units.unit_texts")?;
        let document_ids = arrays.strings("units.document_ids")?;
        let document_titles = arrays.strings("units.document_titles")?;
        let chunk_units: &[u64] = arrays.values("units.chunk_units")?;
        let chunks = chunk_units.len().saturating_sub(1);
        let rising = chunk_units.windows(2).all(|w| w[0] <= w[1]);
        if chunk_units.first() != Some(&0) || chunk_units.last() != Some(&(n as u64)) || !rising {
            return Err(Error::damaged("units.chunk_units does not cover the units"));
        }
        if unit_texts.len() != n || document_titles.len() != document_ids.len() {
            return Err(Error::damaged("units: the lists of texts and titles do not fit the ids"));
        }
        let unit_chunk = arrays.ids("units.unit_chunk", n, chunks)?;
        let unit_document = arrays.ids("units.unit_document", n, document_ids.len())?;
        let unit_span = arrays.exactly::<u32>("units.unit_span", 2 * n)?;
        let links = arrays.has("links.keywords_blob").then(|| links(arrays, n)).transpose()?;
        let unit_vectors = vectors(arrays, "vectors.unit_vectors", n)?;
        let chunk_vectors = match arrays.has("vectors.chunk_vectors") {
            true => vectors(arrays, "vectors.chunk_vectors", chunks)?,
            false => unit_vectors,
        };
        let sentences = links.map_or(0, |l: LinksView<'_>| l.sentence_keywords.rows());
        Ok(Self {
            units: Units::new(unit_texts, Some((document_titles, unit_document)), unit_tokens)?,
            unit_tokens,
            unit_texts,
            unit_chunk,
            unit_span,
            unit_document,
            chunk_units,
            chunk_costs: chunk_units
                .windows(2)
                .map(|w| {
                    unit_tokens[w[0] as usize..w[1] as usize].iter().fold(0u32, |a, &b| a.saturating_add(b))
                })
                .collect(),
            document_ids,
            document_titles,
            links,
            space: arrays.has("vectors.basis").then(|| space(arrays, language)).transpose()?,
            unit_codes: codes(arrays, "vectors.unit")?,
            unit_vectors,
            chunk_vectors,
            sentence_vectors: vectors(arrays, "vectors.walk_sentence_vectors", sentences)?,
            keywords: arrays
                .has("keywords.vectors")
                .then(|| keywords(arrays, unit_vectors, unit_tokens))
                .transpose()?,
            knn: arrays
                .has("knn.graph_indptr")
                .then(|| arrays.csr("knn.graph", chunks, chunks))
                .transpose()?,
            skeleton: arrays.has("entities.entity_vectors").then(|| skeleton(arrays, n)).transpose()?,
        })
    }

    pub fn len(&self) -> usize {
        self.unit_tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.unit_tokens.is_empty()
    }

    /// Where unit `unit` comes from; `None` if there is no such unit.
    pub fn place(&self, unit: u32) -> Option<Place<'a>> {
        let u = unit as usize;
        let document = *self.unit_document.get(u)? as usize;
        Some(Place {
            chunk: self.unit_chunk[u],
            document: self.document_ids.get(document),
            title: self.document_titles.get(document),
            start: self.unit_span[2 * u],
            end: self.unit_span[2 * u + 1],
            text: self.unit_texts.get(u),
        })
    }
}

fn vectors<'a>(arrays: &'a Arrays, name: &str, rows: usize) -> Result<Option<Vectors<'a>>> {
    if !arrays.has(name) {
        return Ok(None);
    }
    let (values, dimension) = arrays.matrix::<f32>(name)?;
    let vectors = Vectors::new(values, dimension).map_err(|e| Error::damaged(format!("{name}: {e}")))?;
    if vectors.len() != rows {
        return Err(Error::damaged(format!("{name} has {} rows, not {rows}", vectors.len())));
    }
    Ok(Some(vectors))
}

fn links(arrays: &Arrays, units: usize) -> Result<LinksView<'_>> {
    let view = LinksView::new(|name| {
        let kind = LinksView::kind(name)?;
        let name = format!("links.{name}");
        Ok(match kind {
            "u8" => Slice::U8(arrays.values(&name)?),
            "u32" => Slice::U32(arrays.values(&name)?),
            "u64" => Slice::U64(arrays.values(&name)?),
            _ => Slice::F64(arrays.values(&name)?),
        })
    })
    .map_err(|e| Error::damaged(format!("links: {e}")))?;
    if view.units() != units {
        return Err(Error::damaged(format!("links cover {} units, not {units}", view.units())));
    }
    Ok(view)
}

fn codes<'a>(arrays: &'a Arrays, name: &str) -> Result<Option<QuantisedView<'a>>> {
    if !arrays.has(&format!("{name}_codes")) {
        return Ok(None);
    }
    let (codes, dimension) = arrays.matrix::<i8>(&format!("{name}_codes"))?;
    let scale = arrays.values(&format!("{name}_scale"))?;
    let residual = arrays.values(&format!("{name}_residual"))?;
    QuantisedView::new(codes, scale, residual, dimension)
        .map(Some)
        .map_err(|e| Error::damaged(format!("{name}_codes: {e}")))
}

fn space<'a>(arrays: &'a Arrays, language: &str) -> Result<Space<'a>> {
    let (basis, dimension) = arrays.matrix::<f32>("vectors.basis")?;
    let vocabulary = arrays.strings("words.vocabulary")?;
    if basis.len() != vocabulary.len() * dimension || !basis.iter().all(|x| x.is_finite()) {
        return Err(Error::damaged("vectors.basis does not fit the vocabulary"));
    }
    Ok(Space { basis, dimension, stop_words: StopWords::by_name(language)?, vocabulary })
}

fn keywords<'a>(
    arrays: &'a Arrays,
    units: Option<Vectors<'a>>,
    unit_tokens: &'a [u32],
) -> Result<KeywordChannel<'a>> {
    // Keywords as published are raw tokens, apart from the words that everything else is made of.
    let (vocabulary, graph) = match arrays.has("words.keyword_vocabulary_blob") {
        true => ("words.keyword_vocabulary", "words.keyword_units"),
        false => ("words.vocabulary", "words.word_units"),
    };
    let words = arrays.strings(vocabulary)?.len();
    let means = need(vectors(arrays, "keywords.vectors", words)?, "keywords.vectors")?;
    let codes = codes(arrays, "keywords.keyword")?;
    let word_units = arrays.csr(graph, words, unit_tokens.len())?;
    KeywordChannel::new(means, codes, word_units, need(units, "vectors.unit_vectors")?, unit_tokens)
        .map_err(|e| Error::damaged(format!("keywords: {e}")))
}

fn skeleton(arrays: &Arrays, units: usize) -> Result<Skeleton<'_>> {
    let names = arrays.strings("skeleton.entity_name")?;
    let sources: &[u32] = arrays.values("skeleton.relation_source")?;
    let (entities, relations) = (names.len(), sources.len());
    let graph = EntityGraph::new(SkeletonArrays {
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
    })
    .map_err(|e| Error::damaged(e.to_string()))?;
    if entities == 0 {
        return Ok(Skeleton { graph, vectors: None, codes: None });
    }
    let vectors = vectors(arrays, "entities.entity_vectors", entities)?;
    Ok(Skeleton { graph, vectors, codes: codes(arrays, "entities.entity")? })
}

fn need<T>(part: Option<T>, name: &str) -> Result<T> {
    part.ok_or_else(|| Error::damaged(format!("the index has no array {name}")))
}
