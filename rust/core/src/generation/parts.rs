//! Typed views of a generation's arrays, each created when a query first needs it. Arrays are named by the
//! stages that write them.

use super::arrays::{damaged, Arrays};
use super::documents::Documents;
use super::vectors::{rows, signs};
use super::views::Chunks;
use super::views::Space;
use crate::error::{caught, Error, Result};
use crate::items::Items;
use crate::rank::links_view::{LinksView, Slice, Source, LANGUAGES, UNIT_LANGUAGE};
use crate::rank::links_weights::SharedStrings;
use crate::rank::terms::TermPostings;
use crate::rank::walk::Files;
use crate::search::copies::Copies;
use crate::search::render::{Locations, Units};
use crate::sparse::CsrView;
use crate::store::MappedArray;
use crate::text::labels::{path_of, people_of};
use crate::text::strings::Strings;
use crate::vector::{Rows, Signs};
use std::sync::{Arc, OnceLock};

/// Source location of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub chunk: u32,
    pub document: &'a str,
    pub title: &'a str,
    /// Offset in code points in the document's text.
    pub start: u32,
    pub end: u32,
    pub text: &'a str,
    /// Context of a block that the unit continues, printed before its text.
    pub before: &'a str,
}

/// All parts of a generation. `None` means that a part was not built.
pub struct Parts<'a> {
    arrays: &'a Arrays,
    language: String,
    len: usize,
    units: OnceLock<Units<'a>>,
    places: OnceLock<Places<'a>>,
    copies: OnceLock<Copies<'a>>,
    documents: OnceLock<Documents<'a>>,
    chunks: OnceLock<Chunks<'a>>,
    links: OnceLock<LinksView<'a>>,
    space: OnceLock<Space<'a>>,
    unit_vectors: OnceLock<Rows<'a>>,
    sentence_vectors: OnceLock<Signs<'a>>,
    terms: OnceLock<TermPostings<'a>>,
}

/// The chunk, document and span of each unit.
struct Places<'a> {
    texts: Strings<'a>,
    context: Option<[Strings<'a>; 2]>,
    chunk: Items<'a, u32>,
    span: Items<'a, u32>,
    document: Items<'a, u32>,
    ids: Strings<'a>,
    titles: Strings<'a>,
}

/// Return the value of a cell, which is computed on the first call. If two threads compute it, the first
/// result is used.
pub fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    match cell.get() {
        Some(made) => Ok(made),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}

/// Like [`once`], for a part that may not have been built.
fn part<T>(has: bool, cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<Option<&T>> {
    has.then(|| once(cell, make)).transpose()
}

impl<'a> Parts<'a> {
    pub fn new(arrays: &'a Arrays, language: &str) -> Result<Self> {
        Ok(Self {
            arrays,
            language: language.to_owned(),
            len: arrays.shape("units.unit_tokens")?.0,
            units: OnceLock::new(),
            places: OnceLock::new(),
            copies: OnceLock::new(),
            documents: OnceLock::new(),
            chunks: OnceLock::new(),
            links: OnceLock::new(),
            space: OnceLock::new(),
            unit_vectors: OnceLock::new(),
            sentence_vectors: OnceLock::new(),
            terms: OnceLock::new(),
        })
    }

    /// Return the number of units.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn has_links(&self) -> bool {
        self.arrays.has("links.keywords_blob")
    }

    pub fn has_space(&self) -> bool {
        self.arrays.has("vectors.basis")
    }

    pub fn has_vectors(&self) -> bool {
        self.arrays.has("vectors.unit_vectors") || self.arrays.has("vectors.unit_scale")
    }

    pub fn unit_tokens(&self) -> Result<Items<'a, u32>> {
        self.arrays.lazy("units.unit_tokens")
    }

    /// Return the start and the end of each unit in its document, in code points.
    pub fn unit_spans(&self) -> Result<Items<'a, u32>> {
        Ok(self.places()?.span)
    }

    /// Return the document of each unit.
    pub fn unit_documents(&self) -> Result<Items<'a, u32>> {
        Ok(self.places()?.document)
    }

    /// Return the ids of the rows of documents and the texts of units, by which the walk recognises and ranks code.
    pub fn files(&self) -> Result<Files<'a>> {
        let places = self.places()?;
        Ok(Files { ids: places.ids, texts: places.texts })
    }

    /// Return the number of the language of each unit; `None` if all are English.
    pub fn unit_languages(&self) -> Result<Option<Items<'a, u8>>> {
        let name = format!("links.{UNIT_LANGUAGE}");
        self.arrays.has(&name).then(|| self.arrays.lazy_exactly(&name, self.len)).transpose()
    }

    /// Return the printable texts and titles.
    pub fn units(&self) -> Result<&Units<'a>> {
        once(&self.units, || {
            let (places, tokens) = (self.places()?, self.unit_tokens()?);
            let titles = Some((places.titles, places.document));
            let units = match self.arrays.by_blocks() {
                true => Units::stored(places.texts, titles, tokens),
                false => Units::new(places.texts, titles, tokens),
            };
            let units = match places.context {
                Some([before, after]) => units.and_then(|units| units.with_context(before, after)),
                None => units,
            };
            let units = match self.arrays.has("units.document_gaps_blob") {
                true => {
                    let gaps = self.arrays.strings("units.document_gaps")?;
                    let bytes = self.arrays.lazy("units.unit_bytes")?;
                    units.and_then(|units| units.with_gaps(bytes, gaps))
                }
                false => units,
            };
            let units = match self.arrays.has("units.location_indptr") {
                true => {
                    let locations = Locations {
                        units: places.span,
                        indptr: self.arrays.lazy("units.location_indptr")?,
                        spans: self.arrays.lazy("units.location_span")?,
                        label: self.arrays.lazy("units.location_label")?,
                        labels: self.arrays.strings("units.location_labels")?,
                    };
                    units.and_then(|units| units.with_locations(locations))
                }
                false => units,
            };
            units.map_err(|e| damaged("units", e))
        })
    }

    /// Return the keys by which copies of units are found.
    pub fn copies(&self) -> Result<Option<&Copies<'a>>> {
        let arrays = self.arrays;
        part(arrays.has("units.unit_keys"), &self.copies, || {
            let metadata = match arrays.has("units.document_metadata_offsets") {
                true => Some(arrays.strings("units.document_metadata")?),
                false => None,
            };
            let (keys, places) = (arrays.lazy("units.unit_keys")?, self.places()?);
            Copies::new(keys, places.document, places.ids, metadata).map_err(|e| damaged("units", e))
        })
    }

    /// Return the two numbers that are equal for units of equal text, if the index has them.
    pub fn unit_keys(&self, unit: u32) -> Result<Option<[u64; 2]>> {
        if !self.arrays.has("units.unit_keys") {
            return Ok(None);
        }
        let keys: Items<'a, u64> = self.arrays.lazy("units.unit_keys")?;
        let at = 2 * unit as usize;
        Ok((at + 1 < keys.len()).then(|| keys.pair(at)))
    }

    /// Return the documents and their texts.
    pub fn documents(&self) -> Result<&Documents<'a>> {
        once(&self.documents, || Documents::new(self.arrays))
    }

    pub fn chunks(&self) -> Result<Chunks<'a>> {
        once(&self.chunks, || {
            let first_unit: Items<'a, u64> = self.arrays.lazy("units.chunk_units")?;
            let (ends, rising) = caught(|| {
                let rising = self.arrays.by_blocks() || first_unit.all().windows(2).all(|w| w[0] <= w[1]);
                Ok((first_unit.first().zip(first_unit.last()), rising))
            })?;
            if ends != Some((&0, &(self.len as u64))) || !rising {
                return Err(Error::damaged("units.chunk_units does not cover the units"));
            }
            Ok(Chunks::new(first_unit))
        })
        .copied()
    }

    pub fn links(&self) -> Result<Option<&LinksView<'a>>> {
        part(self.has_links(), &self.links, || {
            let source = LinksSource(self.arrays);
            let view = match self.arrays.by_blocks() {
                true => caught(|| LinksView::stored(&source, self.arrays.weights())),
                false => LinksView::new(|name| source.slice(name), self.arrays.weights()),
            };
            let view = view.map_err(|e| damaged("links", e))?;
            if view.units() != self.len {
                let (found, wanted) = (view.units(), self.len);
                return Err(Error::damaged(format!("links cover {found} units, not {wanted}")));
            }
            Ok(view)
        })
    }

    pub fn space(&self) -> Result<Option<&Space<'a>>> {
        part(self.has_space(), &self.space, || Space::new(self.arrays, &self.language))
    }

    pub fn unit_vectors(&self) -> Result<Option<Rows<'a>>> {
        let made =
            part(self.has_vectors(), &self.unit_vectors, || rows(self.arrays, "vectors.unit", self.len));
        made.map(Option::<&_>::copied)
    }

    /// Return the signs of the sentences' vectors.
    pub fn sentence_vectors(&self) -> Result<Option<Signs<'a>>> {
        let name = "sentence_vectors.signs";
        let made = part(self.arrays.has(name), &self.sentence_vectors, || {
            let sentences = self.links()?.map_or(0, |links| links.sentence_keywords.rows());
            signs(self.arrays, name, sentences)
        });
        made.map(Option::<&_>::copied)
    }

    /// Return the postings of learned weights.
    pub fn terms(&self) -> Result<Option<TermPostings<'a>>> {
        let made = part(self.arrays.has("terms.term_units_indptr"), &self.terms, || {
            let units = self.arrays.rows("terms.term_units", self.len)?;
            let impacts = self.arrays.lazy("terms.term_impacts")?;
            TermPostings::new(units, impacts).map_err(|e| damaged("terms", e))
        });
        made.map(Option::<&_>::copied)
    }

    fn places(&self) -> Result<&Places<'a>> {
        once(&self.places, || {
            let (arrays, n) = (self.arrays, self.len);
            let (texts, ids) = (arrays.strings("units.unit_texts")?, arrays.strings("units.document_ids")?);
            let titles = arrays.strings("units.document_titles")?;
            if texts.len() != n || titles.len() != ids.len() {
                return Err(Error::damaged("units: the lists of texts and titles do not fit the ids"));
            }
            let context = match arrays.has("units.unit_before_blob") {
                true => Some([arrays.strings("units.unit_before")?, arrays.strings("units.unit_after")?]),
                false => None,
            };
            if context.is_some_and(|context| context.iter().any(|texts| texts.len() != n)) {
                return Err(Error::damaged("units: the lists of contexts do not fit the texts"));
            }
            Ok(Places {
                texts,
                context,
                chunk: arrays.ids("units.unit_chunk", n, self.chunks()?.len())?,
                span: arrays.lazy_exactly("units.unit_span", 2 * n)?,
                document: arrays.ids("units.unit_document", n, ids.len())?,
                ids,
                titles,
            })
        })
    }

    /// Return the source location of `unit`, or `None` if it does not exist.
    pub fn place(&self, unit: u32) -> Result<Option<Place<'a>>> {
        let (u, places) = (unit as usize, self.places()?);
        if u >= places.document.len() {
            return Ok(None);
        }
        let document = places.document[u];
        Ok(Some(Place {
            chunk: places.chunk[u],
            document: places.ids.get(document as usize),
            title: places.titles.get(document as usize),
            start: places.span[2 * u],
            end: places.span[2 * u + 1],
            text: places.texts.get(u),
            before: places.context.map_or("", |[before, _]| before.get(u)),
        }))
    }
}

impl<'a> Parts<'a> {
    /// Return the path of a unit's file, and the people of a mail, as they are indexed; empty if there are none.
    pub fn labels(&self, unit: u32) -> Result<(&'a str, String)> {
        let places = self.places()?;
        let mut row = places.document[unit as usize] as usize;
        let id = places.ids.get(row);
        let path = path_of(id).unwrap_or_default();
        if !self.arrays.has("units.document_metadata_offsets") {
            return Ok((path, String::new()));
        }
        // The metadata of a document with sections are in its first row.
        while row > 0 && places.ids.bytes(row - 1) == id.as_bytes() {
            row -= 1;
        }
        Ok((path, people_of(self.arrays.strings("units.document_metadata")?.get(row))))
    }
}

struct LinksSource<'a>(&'a Arrays);

impl<'a> Source<'a> for LinksSource<'a> {
    fn slice(&self, name: &str) -> Result<Slice<'a>> {
        let kind = if [LANGUAGES, UNIT_LANGUAGE].contains(&name) { "u8" } else { LinksView::kind(name)? };
        let name = format!("links.{name}");
        Ok(match kind {
            "u8" => Slice::U8(self.0.values(&name)?),
            "u32" => Slice::U32(self.0.values(&name)?),
            _ => Slice::U64(self.0.values(&name)?),
        })
    }

    fn u32s(&self, name: &str) -> Result<Items<'a, u32>> {
        self.0.lazy(&format!("links.{name}"))
    }

    fn u64s(&self, name: &str) -> Result<Items<'a, u64>> {
        self.0.lazy(&format!("links.{name}"))
    }

    fn shared(&self, name: &str) -> Result<Option<Arc<MappedArray>>> {
        self.0.shared(&format!("links.{name}"))
    }

    fn shared_strings(&self, name: &str) -> Result<Option<SharedStrings>> {
        self.0.shared_strings(&format!("links.{name}"))
    }

    fn strings(&self, name: &str) -> Result<Strings<'a>> {
        self.0.strings(&format!("links.{name}"))
    }

    fn rows(&self, name: &str, columns: usize) -> Result<CsrView<'a>> {
        self.0.rows(&format!("links.{name}"), columns)
    }

    fn counted_rows(&self, name: &str, columns: usize) -> Result<(CsrView<'a>, Items<'a, u32>)> {
        self.0.counted_rows(&format!("links.{name}"), columns)
    }

    fn optional(&self, name: &str) -> Result<&'a [u8]> {
        let name = format!("links.{name}");
        match self.0.has(&name) {
            true => self.0.values(&name),
            false => Ok(&[]),
        }
    }
}
