//! Patches of the arrays of documents, chunks, units and sentences after a few documents changed, and the
//! resulting patches of the walk's arrays.

use super::arrays::Arrays;
use super::delta_locations::locations_of;
use super::documents;
use crate::error::{Error, Result};
use crate::generation::delta_locations::Level;
use crate::graph::links::Texts;
use crate::graph::links_delta::{Change, Delta, Of};
use crate::items::Items;
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::store::patch::{Editor, Numbering, Patch, RowEditor};
use crate::text::detection::Choice;
use crate::text::labels::label_of;
use crate::text::strings::{Strings, StringsBuf};
use std::ops::Range;

pub use crate::generation::delta_locations::New;

/// A change of documents.
pub struct Documents<'a> {
    /// Removed documents, ascending.
    pub gone: &'a [u32],
    /// For each added document, the published document before which it is inserted; ascending.
    pub before: &'a [u32],
    pub new: &'a New,
    pub language: Choice,
}

/// Patches of the arrays of both stages by name, and the new numbers of items.
pub type Patches = (Vec<(String, Of, Patch)>, Vec<(Of, Numbering)>);

/// Given patches of `arrays`, return patches of the arrays below, of which `arrays` are themselves changes.
/// Patches of arrays that are not changes of others are returned unchanged.
pub fn from_below(arrays: &Arrays, (changed, numbers): Patches) -> Result<Patches> {
    let now = |of: Of| numbers.iter().find(|(own, _)| *own == of).map(|(_, numbers)| numbers);
    let mut first: Vec<(Of, &Numbering)> = Vec::new();
    let mut out = Vec::with_capacity(changed.len());
    for (name, of, patch) in changed {
        let Some((earlier, numbering)) = arrays.changes(&name)? else {
            out.push((name, of, patch));
            continue;
        };
        if let Some(numbering) = numbering.filter(|_| first.iter().all(|(known, _)| *known != of)) {
            first.push((of, numbering));
        }
        let patch = patch.after(earlier, now(of));
        out.push((name, of, patch));
    }
    let before = |of: Of| first.iter().find(|(known, _)| *known == of).map(|(_, numbers)| *numbers);
    let all = numbers.iter().map(|(of, numbers)| match before(*of) {
        Some(first) => (*of, numbers.after(first)),
        None => (*of, numbers.clone()),
    });
    Ok((out, all.collect()))
}

struct Stage<'a> {
    arrays: &'a Arrays,
    new: &'a New,
    out: Vec<(String, Of, Patch)>,
}

impl<'a> Stage<'a> {
    fn new_of(&self, name: &str) -> Result<&'a [u64]> {
        let found =
            self.new.get(name).ok_or_else(|| Error::input(format!("{name} of the new documents is missing")));
        Ok(found?.as_slice())
    }

    /// Patch rows of `width` values of the stage "units". `of` is the kind of item that the values number,
    /// and `map` renumbers the values of the new rows.
    fn dense(
        &mut self,
        name: &str,
        width: usize,
        level: &Level,
        of: Of,
        map: impl Fn(u64) -> u64,
    ) -> Result<()> {
        let new = self.new_of(name)?;
        self.rows(&format!("units.{name}"), new, width, level, of, map)
    }

    /// Patch the vectors of a model: rows of codes, and the sign bits of the new rows.
    fn vectors(&mut self, name: &str, level: &Level) -> Result<()> {
        let width = self.arrays.shape(name)?.1;
        self.rows(name, self.new_of(name)?, width, level, Of::Nothing, |x| x)
    }

    fn rows(
        &mut self,
        name: &str,
        new: &[u64],
        width: usize,
        level: &Level,
        of: Of,
        map: impl Fn(u64) -> u64,
    ) -> Result<()> {
        if new.len() != width * level.before.len() {
            return Err(Error::input(format!("{name} of the new documents has {} values", new.len())));
        }
        let (rows, width) = self.arrays.shape(name)?;
        let mut editor = Editor::default();
        level.each(|comes, at| {
            editor.keep(u64::from(at) * width as u64, 0);
            match comes {
                Some(k) => editor.insert(new[k * width..][..width].iter().map(|&x| map(x))),
                None => editor.skip(width as u64),
            }
        });
        self.out.push((name.to_owned(), of, editor.finish((rows * width) as u64)));
        Ok(())
    }

    fn strings(&mut self, name: &str, level: &Level) -> Result<()> {
        let (blob, ends) = (self.new_of(&format!("{name}_blob"))?, self.new_of(&format!("{name}_offsets"))?);
        if ends.len() != level.before.len() + 1 || ends.last() != Some(&(blob.len() as u64)) {
            return Err(Error::input(format!("{name} of the new documents has {} offsets", ends.len())));
        }
        let offsets = self.arrays.lazy::<u64>(&format!("units.{name}_offsets"))?;
        let mut rows = RowEditor::new(offsets, 1);
        level.each(|comes, at| {
            rows.keep(at as usize);
            match comes {
                Some(k) => {
                    let text = &blob[ends[k] as usize..ends[k + 1] as usize];
                    rows.insert(text.len(), [text.iter().copied()]);
                }
                None => rows.remove(),
            }
        });
        let (ends, mut bytes) = rows.finish();
        self.out.push((format!("units.{name}_blob"), Of::Nothing, bytes.remove(0)));
        self.out.push((format!("units.{name}_offsets"), Of::Nothing, ends));
        Ok(())
    }
}

/// Return the first position whose value is not less than `id`. The values ascend.
fn first_of(values: Items<'_, u32>, id: u32) -> usize {
    values.partition_point(0..values.len(), |&value| value < id)
}

fn spread(documents: &[u32], range: impl Fn(u32) -> Range<usize>) -> Vec<u32> {
    documents.iter().flat_map(|&document| range(document)).map(|x| x as u32).collect()
}

struct Levels {
    /// A document with sections has one row per section.
    documents: Level,
    rows: Level,
    chunks: Level,
    units: Level,
    sentences: Level,
}

/// Return the patches of the stage "units".
fn unit_arrays(
    arrays: &Arrays,
    new: &New,
    levels: &Levels,
    has_metadata: bool,
) -> Result<Vec<(String, Of, Patch)>> {
    let count = arrays.values::<u64>("units.document_count")?.iter().sum::<u64>() as usize;
    let mut stage = Stage { arrays, new, out: Vec::new() };
    let same = |x: u64| x;
    for name in ["document_ids", "document_titles", "document_gaps"] {
        stage.strings(name, &levels.rows)?;
    }
    if has_metadata {
        stage.strings("document_metadata", &levels.rows)?;
    }
    for name in ["unit_texts", "unit_before", "unit_after"] {
        stage.strings(name, &levels.units)?;
    }
    stage.dense("document_hashes", 16, &levels.documents, Of::Nothing, same)?;
    stage.dense("chunk_document", 1, &levels.chunks, Of::Documents, |k| levels.rows.number(k as usize))?;
    stage.dense("chunk_bytes", 2, &levels.chunks, Of::Nothing, same)?;
    stage.dense("chunk_tokens", 1, &levels.chunks, Of::Nothing, same)?;
    stage.dense("unit_chunk", 1, &levels.units, Of::Chunks, |k| levels.chunks.number(k as usize))?;
    stage.dense("unit_document", 1, &levels.units, Of::Documents, |k| levels.rows.number(k as usize))?;
    stage.dense("unit_bytes", 2, &levels.units, Of::Nothing, same)?;
    stage.dense("unit_span", 2, &levels.units, Of::Nothing, same)?;
    stage.dense("unit_tokens", 1, &levels.units, Of::Nothing, same)?;
    stage.dense("unit_keys", 2, &levels.units, Of::Nothing, same)?;
    if arrays.has("units.unit_lines") {
        stage.dense("unit_lines", 2, &levels.units, Of::Nothing, same)?;
    }
    stage.dense("sent_chunk", 1, &levels.sentences, Of::Chunks, |k| levels.chunks.number(k as usize))?;
    stage.dense("sent_unit", 1, &levels.sentences, Of::Units, |k| levels.units.number(k as usize))?;
    stage.dense("sent_bytes", 2, &levels.sentences, Of::Nothing, same)?;
    stage.dense("sent_title", 1, &levels.sentences, Of::Nothing, same)?;
    let mut rows = RowEditor::new(arrays.lazy::<u64>("units.chunk_units")?, 0);
    let ends = stage.new_of("chunk_units")?;
    levels.chunks.each(|comes, at| {
        rows.keep(at as usize);
        match comes {
            Some(k) => rows.insert((ends[k + 1] - ends[k]) as usize, std::iter::empty::<Vec<u64>>()),
            None => rows.remove(),
        }
    });
    stage.out.push(("units.chunk_units".to_owned(), Of::Nothing, rows.finish().0));
    let mut one = Editor::default();
    one.skip(1);
    one.insert([(count - levels.documents.gone.len() + levels.documents.before.len()) as u64]);
    stage.out.push(("units.document_count".to_owned(), Of::Nothing, one.finish(1)));
    Ok(stage.out)
}

/// Return the patches of a model's vectors. Their dimension does not change.
fn vector_arrays(
    arrays: &Arrays,
    new: &New,
    units: &Level,
    sentences: &Level,
) -> Result<Vec<(String, Of, Patch)>> {
    let mut stage = Stage { arrays, new, out: Vec::new() };
    for name in ["nibbles", "codes", "scale", "residual", "vectors"] {
        let name = format!("vectors.unit_{name}");
        if arrays.has(&name) {
            stage.vectors(&name, units)?;
        }
    }
    if arrays.has("sentence_vectors.signs") {
        stage.vectors("sentence_vectors.signs", sentences)?;
    }
    stage.out.push(("vectors.dimension".to_owned(), Of::Nothing, Editor::default().finish(1)));
    Ok(stage.out)
}

/// Return whether any remaining unit has source lines.
fn has_lines(arrays: &Arrays, new: &[u64], units: &Level) -> Result<bool> {
    let lines = arrays.lazy::<u32>("units.unit_lines")?;
    let stays = |unit: usize| units.gone.binary_search(&(unit as u32)).is_err();
    Ok(new.iter().any(|&line| line > 0)
        || (0..lines.len() / 2).any(|unit| lines[2 * unit] > 0 && stays(unit)))
}

/// Return the patches of all arrays, or `None` if the whole index must be rebuilt: see [`Delta::new`].
pub fn patches(
    arrays: &Arrays,
    links: &LinksView<'_>,
    documents: &Documents<'_>,
    progress: &Progress,
) -> Result<Option<Patches>> {
    let new = documents.new;
    let value = |name: &str| new.get(name).map(Vec::as_slice).unwrap_or_default();
    let has_metadata = arrays.has("units.document_metadata_offsets");
    let begins = |name: &str| new.contains_key(name) && !arrays.has(&format!("units.{name}"));
    if begins("document_metadata_offsets") || begins("unit_lines") {
        return Ok(None);
    }
    let ends = |limit: usize, all: &[u32]| {
        all.windows(2).all(|w| w[0] <= w[1]) && all.last().is_none_or(|&x| x as usize <= limit)
    };
    let of_documents = Level::new(documents.gone.to_vec(), documents.before.to_vec());
    let counted = arrays.values::<u64>("units.document_count")?;
    let starts = first_rows(arrays.strings("units.document_ids")?, counted.iter().sum::<u64>() as usize);
    let count = starts.len() - 1;
    if *counted != [count as u64]
        || !ends(count.saturating_sub(1), documents.gone)
        || !ends(count, documents.before)
    {
        return Err(Error::input("the changed documents must ascend and exist"));
    }
    let Some(of_rows) = rows_of(documents, &starts)? else {
        return Err(Error::input("the new documents and their positions must have equal length"));
    };
    let Some(locations) = locations_of(arrays, new, &of_rows)? else { return Ok(None) };
    let chunk_document = arrays.items::<u32>("units.chunk_document")?;
    let chunk_units = arrays.lazy::<u64>("units.chunk_units")?;
    let sent_chunk = arrays.items::<u32>("units.sent_chunk")?;
    let chunks = |document: u32| first_of(chunk_document, document)..first_of(chunk_document, document + 1);
    let units = |document: u32| {
        let own = chunks(document);
        chunk_units[own.start] as usize..chunk_units[own.end] as usize
    };
    let sentences = |document: u32| {
        let own = chunks(document);
        first_of(sent_chunk, own.start as u32)..first_of(sent_chunk, own.end as u32)
    };
    let level = |owners: &[u64], range: &dyn Fn(u32) -> Range<usize>| {
        let before = owners.iter().map(|&k| range(of_rows.before[k as usize]).start as u32).collect();
        Level::new(spread(&of_rows.gone, range), before)
    };
    let own_chunks = value("chunk_document");
    let own_units = value("unit_document");
    let own_sentences: Vec<u64> =
        value("sent_chunk").iter().map(|&chunk| own_chunks[chunk as usize]).collect();
    let of_chunks = level(own_chunks, &chunks);
    let of_units = level(own_units, &units);
    let of_sentences = level(&own_sentences, &sentences);

    let levels = Levels {
        documents: of_documents,
        rows: of_rows,
        chunks: of_chunks,
        units: of_units,
        sentences: of_sentences,
    };
    if arrays.has("units.unit_lines") && !has_lines(arrays, value("unit_lines"), &levels.units)? {
        return Ok(None);
    }
    let mut out = unit_arrays(arrays, new, &levels, has_metadata)?;
    out.extend(locations.patches);
    if arrays.has("vectors.dimension") {
        let first = arrays.lazy::<u64>("links.first_sentence")?;
        let range = |document: u32| {
            let own = units(document);
            first[own.start] as usize..first[own.end] as usize
        };
        let titles = value("sent_title");
        let owners = value("sent_unit").iter().zip(titles).filter(|(_, &title)| title == 0);
        let owners: Vec<u64> = owners.map(|(&unit, _)| own_units[unit as usize]).collect();
        let before = owners.iter().map(|&k| range(levels.rows.before[k as usize]).start as u32).collect();
        let of_sentences = Level::new(spread(&levels.rows.gone, range), before);
        out.extend(vector_arrays(arrays, new, &levels.units, &of_sentences)?);
    }
    let Levels { rows: of_rows, chunks: of_chunks, units: of_units, .. } = levels;
    let Some(delta) = links_of(arrays, links, documents, &of_units, progress)? else { return Ok(None) };
    for (name, of, patch) in delta.arrays {
        out.push((format!("links.{name}"), of, patch));
    }
    let numbers = vec![
        (Of::Documents, of_rows.numbers),
        (Of::Labels, locations.labels),
        (Of::Chunks, of_chunks.numbers),
        (Of::Units, of_units.numbers),
        (Of::Keywords, delta.keywords),
        (Of::Names, delta.names),
        (Of::Subjects, delta.subjects),
    ];
    Ok(Some((out, numbers)))
}

/// Return the first row of each of `count` documents, and the number of rows. If no document has several rows, no id needs
/// to be read.
fn first_rows(ids: Strings<'_>, count: usize) -> Vec<u32> {
    match ids.len() == count {
        true => (0..=count as u32).collect(),
        false => documents::first_rows(ids),
    }
}

/// Return the removed and added rows, given the first row of each published document. Returns `None` if the
/// number of added documents differs from the number of positions.
fn rows_of(documents: &Documents<'_>, starts: &[u32]) -> Result<Option<Level>> {
    let list = |name: &str| documents.new.get(name).map(Vec::as_slice).unwrap_or_default();
    let blob: Vec<u8> = list("document_ids_blob").iter().map(|&x| x as u8).collect();
    let own = Strings::new(&blob, list("document_ids_offsets"))?;
    let own = first_rows(own, documents.before.len());
    if own.len() - 1 != documents.before.len() {
        return Ok(None);
    }
    let gone = documents.gone.iter().flat_map(|&k| starts[k as usize]..starts[k as usize + 1]).collect();
    let counts = own.windows(2).map(|two| (two[1] - two[0]) as usize);
    let before = documents.before.iter().zip(counts);
    let before = before.flat_map(|(&k, count)| std::iter::repeat_n(starts[k as usize], count)).collect();
    Ok(Some(Level::new(gone, before)))
}

/// An added unit.
struct Read {
    before: u32,
    title: String,
    text: String,
    sentences: Vec<String>,
}

/// Return the units of the added documents, or `None` if a sentence is not inside its unit.
fn units_of_new(new: &New, level: &Level) -> Result<Option<Vec<Read>>> {
    let list = |name: &str| new.get(name).map(Vec::as_slice).unwrap_or_default();
    let text_of = |name: &str, at: usize| -> Result<String> {
        let (blob, ends) = (list(&format!("{name}_blob")), list(&format!("{name}_offsets")));
        let bytes = blob[ends[at] as usize..ends[at + 1] as usize].iter().map(|&x| x as u8).collect();
        String::from_utf8(bytes).map_err(|_| Error::input(format!("{name} is not UTF-8")))
    };
    let has_metadata = new.contains_key("document_metadata_offsets");
    let (spans, own_spans) = (list("sent_bytes"), list("unit_bytes"));
    let (owners, is_title) = (list("sent_unit"), list("sent_title"));
    let (mut sentence, mut read) = (0, Vec::new());
    for (k, &before) in level.before.iter().enumerate() {
        let document = list("unit_document")[k] as usize;
        let id = text_of("document_ids", document)?;
        // The metadata of a document with sections are in its first row.
        let mut first = document;
        while first > 0 && text_of("document_ids", first - 1)? == id {
            first -= 1;
        }
        let metadata = match has_metadata {
            true => text_of("document_metadata", first)?,
            false => String::new(),
        };
        let title = text_of("document_titles", document)? + &label_of(&id, &metadata);
        let (text, mut sentences) = (text_of("unit_texts", k)?, Vec::new());
        while owners.get(sentence) == Some(&(k as u64)) {
            if is_title[sentence] == 0 {
                let start = spans[2 * sentence].checked_sub(own_spans[2 * k]);
                let end = spans[2 * sentence + 1].checked_sub(own_spans[2 * k]);
                let part = start.zip(end).and_then(|(start, end)| text.get(start as usize..end as usize));
                let Some(part) = part else { return Ok(None) };
                sentences.push(part.to_owned());
            }
            sentence += 1;
        }
        let text = [text_of("unit_before", k)?, text].concat();
        read.push(Read { before, title, text, sentences });
    }
    Ok((sentence == owners.len()).then_some(read))
}

fn links_of(
    arrays: &Arrays,
    links: &LinksView<'_>,
    documents: &Documents<'_>,
    level: &Level,
    progress: &Progress,
) -> Result<Option<Delta>> {
    let (titles, texts) = (arrays.strings("units.document_titles")?, arrays.strings("units.unit_texts")?);
    let title_of = arrays.lazy::<u32>("units.unit_document")?;
    let has_languages = arrays.has("links.unit_language");
    let language = if has_languages { arrays.values::<u8>("links.unit_language")? } else { &[] };
    let Some(read) = units_of_new(documents.new, level)? else { return Ok(None) };
    let mut first_sentence = vec![0u64];
    let mut end = 0;
    for one in &read {
        end += one.sentences.len() as u64;
        first_sentence.push(end);
    }
    let fresh_titles: StringsBuf = read.iter().map(|one| one.title.as_str()).collect();
    let fresh_texts: StringsBuf = read.iter().map(|one| one.text.as_str()).collect();
    let sentences: StringsBuf = read.iter().flat_map(|one| one.sentences.iter()).collect();
    let before: Vec<u32> = read.iter().map(|one| one.before).collect();
    let change = Change {
        links: *links,
        titles,
        texts,
        contexts: arrays.strings("units.unit_before")?,
        title_of,
        language,
        gone: &level.gone,
        fresh: Texts {
            titles: fresh_titles.view(),
            texts: fresh_texts.view(),
            sentences: sentences.view(),
            first_sentence: &first_sentence,
            language: documents.language,
        },
        before: &before,
    };
    Delta::new(&change, progress)
}
