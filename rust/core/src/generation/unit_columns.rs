//! The arrays of the stage "units" of some documents: their chunks and units, with the texts of these, and the
//! documents' ids, titles, metadata and locations.

use crate::error::{Error, Result};
use crate::generation::delta_locations::New;
use crate::text::corpus::Corpus;
use crate::text::strings::{gaps, slices, Strings, StringsBuf};

/// The values of an array.
#[derive(Clone)]
pub enum Values {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

/// An array: its name, its values row by row, and how many a row has.
#[derive(Clone)]
pub struct UnitColumn {
    pub name: String,
    pub values: Values,
    pub width: usize,
}

/// The rows that were cut. A document with sections has one row for each of them.
pub struct Rows<'a> {
    pub documents: usize,
    pub ids: Strings<'a>,
    pub titles: Strings<'a>,
    pub texts: Strings<'a>,
    /// JSON.
    pub metadata: Strings<'a>,
    /// The start of each row in its document, in code points.
    pub starts: &'a [u32],
    pub locations: Locations<'a>,
    /// Arrays that exist although no row has metadata, or lines: those of documents that are added to others.
    pub has_metadata: bool,
    pub has_lines: bool,
}

/// The locations of the rows: where those of each row end, start and end of each in the text, and its label.
pub struct Locations<'a> {
    pub ends: &'a [u64],
    pub spans: &'a [u32],
    pub labels: &'a [u32],
    pub names: Strings<'a>,
}

#[derive(Default)]
struct Columns(Vec<UnitColumn>);

impl Columns {
    fn add(&mut self, name: &str, values: Values, width: usize) {
        self.0.push(UnitColumn { name: name.to_owned(), values, width });
    }

    fn numbers(&mut self, name: &str, values: Vec<u32>) {
        self.add(name, Values::U32(values), 1);
    }

    fn pairs(&mut self, name: &str, values: Vec<[u32; 2]>) {
        self.add(name, Values::U32(values.into_flattened()), 2);
    }

    fn strings(&mut self, name: &str, strings: StringsBuf) {
        self.add(&format!("{name}_blob"), Values::U8(strings.blob), 1);
        self.add(&format!("{name}_offsets"), Values::U64(strings.offsets), 1);
    }
}

/// Return the arrays of rows that were cut into `cut`.
pub fn unit_columns(cut: Corpus, rows: &Rows<'_>) -> Result<Vec<UnitColumn>> {
    let count = rows.texts.len();
    let lengths = [rows.ids.len(), rows.titles.len(), rows.metadata.len(), rows.starts.len()];
    if lengths.iter().any(|&len| len != count) || rows.locations.ends.len() != count + 1 {
        return Err(Error::input("ids, titles, texts, metadata and starts must have equal length"));
    }
    let owners: Vec<u32> = cut.unit_chunk.iter().map(|&chunk| cut.chunk_doc[chunk as usize]).collect();
    let spans = cut.unit_span.as_flattened();
    let (rest, texts) = (gaps(rows.texts, &owners, spans)?, slices(rows.texts, &owners, spans)?);
    let in_document = owners.iter().zip(&cut.unit_chars).map(|(&row, &[start, end])| {
        let before = rows.starts[row as usize];
        [start + before, end + before]
    });
    let in_document: Vec<[u32; 2]> = in_document.collect();
    let first = |chunk: usize| cut.unit_chunk.partition_point(|&own| (own as usize) < chunk) as u64;
    let chunk_units = (0..=cut.chunk_doc.len()).map(first).collect();

    let mut out = Columns::default();
    out.add("document_count", Values::U64(vec![rows.documents as u64]), 1);
    out.strings("document_ids", owned(rows.ids));
    out.strings("document_titles", owned(rows.titles));
    out.strings("document_gaps", rest);
    out.numbers("chunk_document", cut.chunk_doc);
    out.pairs("chunk_bytes", cut.chunk_span);
    out.numbers("chunk_tokens", cut.chunk_tokens);
    out.add("chunk_units", Values::U64(chunk_units), 1);
    out.numbers("unit_chunk", cut.unit_chunk);
    out.numbers("unit_document", owners);
    out.pairs("unit_bytes", cut.unit_span);
    out.pairs("unit_span", in_document);
    out.numbers("unit_tokens", cut.unit_tokens);
    out.strings("unit_texts", texts);
    out.strings("unit_before", cut.unit_before);
    out.strings("unit_after", cut.unit_after);
    out.add("unit_keys", Values::U64(cut.unit_keys.into_flattened()), 2);
    if rows.has_lines || cut.unit_lines.iter().any(|&lines| lines != [0, 0]) {
        out.pairs("unit_lines", cut.unit_lines);
    }
    out.numbers("sent_chunk", cut.sent_chunk);
    out.numbers("sent_unit", cut.sent_unit);
    out.pairs("sent_bytes", cut.sent_span);
    out.add("sent_title", Values::U8(cut.sent_title), 1);
    add_locations(&mut out, &rows.locations);
    if rows.has_metadata || (0..count).any(|row| rows.metadata.get(row).len() > EMPTY.len()) {
        out.strings("document_metadata", once_a_document(rows));
    }
    Ok(out.0)
}

/// The metadata of a document that has none.
const EMPTY: &str = "{}";

/// Return the metadata of the first row of each document, and an empty text for each other one.
fn once_a_document(rows: &Rows<'_>) -> StringsBuf {
    let repeats = |row: usize| row > 0 && rows.ids.get(row) == rows.ids.get(row - 1);
    (0..rows.ids.len()).map(|row| if repeats(row) { "" } else { rows.metadata.get(row) }).collect()
}

fn add_locations(out: &mut Columns, locations: &Locations<'_>) {
    if !locations.labels.is_empty() {
        out.add("location_indptr", Values::U64(locations.ends.to_vec()), 1);
        out.add("location_span", Values::U32(locations.spans.to_vec()), 2);
        out.numbers("location_label", locations.labels.to_vec());
        out.strings("location_labels", owned(locations.names));
    }
}

fn owned(strings: Strings<'_>) -> StringsBuf {
    (0..strings.len()).map(|at| strings.get(at)).collect()
}

/// Return the arrays in the form that a delta takes.
pub fn as_new(columns: &[UnitColumn]) -> New {
    let wide = |values: &Values| match values {
        Values::U8(values) => values.iter().map(|&x| u64::from(x)).collect(),
        Values::U32(values) => values.iter().map(|&x| u64::from(x)).collect(),
        Values::U64(values) => values.clone(),
    };
    columns.iter().map(|column| (column.name.clone(), wide(&column.values))).collect()
}
