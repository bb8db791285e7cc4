//! Joins units of several shards into the arrays of one small collection, whose rarities are those of the whole.

use super::bundle::{Bundle, Rows, Vocabulary};
use super::memory::Stored;
use super::mentions::mentions;
use super::terms::Frequencies;
use crate::error::Result;
use crate::progress::Progress;
use crate::rank::links_view::NONE;
use crate::rank::links_weights::{Weights, Whole};
use crate::sparse::Csr;
use crate::text::languages::Language;
use crate::text::strings::{Strings, StringsBuf};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// A unit of the joined collection: its shard, its number there, and whether the filter permits to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub shard: u32,
    pub unit: u32,
    pub is_permitted: bool,
}

/// Units of several shards as one collection.
pub struct Joined {
    pub origins: Vec<Origin>,
    /// The same units in other shards, by their number in the collection.
    pub copies: BTreeMap<u32, Vec<Origin>>,
    pub stored: Stored,
    pub weights: Weights,
}

/// One unit of the collection: the bundle that has it, and its row there.
type Place = (usize, usize);

/// A vocabulary of the collection, and the numbers of each bundle's strings in it.
struct Merged {
    strings: StringsBuf,
    frequencies: Vec<u64>,
    of_bundles: Vec<Vec<u32>>,
}

/// Join bundles, each with the number of its shard. `known` are terms whose number of units is counted over all
/// shards; for other terms, the numbers of the shards that have them in a bundle are added up.
/// With `is_final`, units are searched for mentions of the subjects of other shards.
pub fn join(
    bundles: &[(u32, &Bundle)],
    whole: &Whole,
    known: &Frequencies,
    is_final: bool,
    progress: &Progress,
) -> Result<Joined> {
    let (places, copies) = ordered(bundles);
    progress.check()?;
    let merged = |of: fn(&Bundle) -> &Vocabulary, known: &[(String, u64)]| {
        let lists: Vec<(u32, &Vocabulary)> = bundles.iter().map(|(shard, own)| (*shard, of(own))).collect();
        merge(&lists, known)
    };
    let keywords = merged(|own| &own.keywords, &known.keywords);
    let names = merged(|own| &own.names, &known.names);
    let subjects = merged(|own| &own.subjects, &known.subjects);
    progress.check()?;
    let mut stored = Stored::default();
    let bundle = |place: &Place| bundles[place.0].1;

    let of_rows = |of: fn(&Bundle) -> &Rows, merged: &Merged| -> (Vec<u64>, Vec<u32>) {
        let (mut ends, mut ids) = (vec![0], Vec::new());
        for place in &places {
            let numbers = &merged.of_bundles[place.0];
            ids.extend(of(bundle(place)).row(place.1).iter().map(|&id| numbers[id as usize]));
            ends.push(ids.len() as u64);
        }
        (ends, ids)
    };
    let (ends, ids) = of_rows(|own| &own.unit_keywords, &keywords);
    let counts: Vec<u32> = places
        .iter()
        .flat_map(|place| {
            let own = bundle(place);
            &own.counts
                [own.unit_keywords.ends[place.1] as usize..own.unit_keywords.ends[place.1 + 1] as usize]
        })
        .copied()
        .collect();
    let rows = Csr { indptr: ends, indices: ids, columns: keywords.strings.len() };
    let (units, unit_counts) = rows.view().transpose_with(&counts)?;
    stored.add("links.unit_keywords_indptr", rows.indptr)?;
    stored.add("links.unit_keywords_indices", rows.indices)?;
    stored.add("links.unit_keywords_tf", counts)?;
    stored.add("links.keyword_units_indptr", units.indptr)?;
    stored.add("links.keyword_units_indices", units.indices)?;
    stored.add("links.keyword_units_tf", unit_counts)?;

    let (ends, ids) = of_rows(|own| &own.unit_names, &names);
    let rows = Csr { indptr: ends, indices: ids, columns: names.strings.len() };
    let units = rows.view().transpose()?;
    stored.add("links.unit_names_indptr", rows.indptr)?;
    stored.add("links.unit_names_indices", rows.indices)?;
    stored.add("links.name_units_indptr", units.indptr)?;
    stored.add("links.name_units_indices", units.indices)?;

    let is_several = bundles.first().map(|one| one.0) != bundles.last().map(|one| one.0);
    let (ends, mentions) = match is_several && is_final {
        true => mentions(bundles, &places, subjects.strings.view(), progress)?,
        false => of_rows(|own| &own.unit_mentions, &subjects),
    };
    let own_subject = |place: &Place| match bundle(place).unit_subject[place.1] {
        NONE => NONE,
        id => subjects.of_bundles[place.0][id as usize],
    };
    let about: Vec<u32> = places.iter().map(own_subject).collect();
    let mut rows = Csr { indptr: vec![0], indices: Vec::new(), columns: subjects.strings.len() };
    for (at, &own) in about.iter().enumerate() {
        let mentioned = &mentions[ends[at] as usize..ends[at + 1] as usize];
        let mut all: Vec<u32> = mentioned.iter().copied().chain((own != NONE).then_some(own)).collect();
        all.sort_unstable();
        all.dedup();
        rows.indices.extend(all);
        rows.indptr.push(rows.indices.len() as u64);
    }
    let units = rows.view().transpose()?;
    stored.add("links.unit_subject", about)?;
    stored.add("links.unit_mentions_indptr", ends)?;
    stored.add("links.unit_mentions_indices", mentions)?;
    stored.add("links.subject_units_indptr", units.indptr)?;
    stored.add("links.subject_units_indices", units.indices)?;

    progress.check()?;
    add_sentences(&mut stored, bundles, &places)?;
    let lengths: Vec<u32> = places.iter().map(|place| bundle(place).lengths[place.1]).collect();
    stored.add("links.unit_length", lengths)?;
    if !whole.languages.is_empty() {
        let english = Language::ENGLISH.number();
        let of = |place: &Place| bundle(place).languages.get(place.1).copied().unwrap_or(english);
        stored.add("links.languages", whole.languages.keys().copied().collect::<Vec<u8>>())?;
        stored.add("links.unit_language", places.iter().map(of).collect::<Vec<u8>>())?;
    }
    add_units(&mut stored, bundles, &places)?;
    let frequencies = [keywords.frequencies, names.frequencies, subjects.frequencies];
    let weights = whole.clone().weigh(keywords.strings.view(), frequencies)?;
    for (blob, offsets, strings) in [
        ("links.keywords_blob", "links.keywords_offsets", keywords.strings),
        ("links.names_blob", "links.names_offsets", names.strings),
        ("links.subjects_blob", "links.subjects_offsets", subjects.strings),
    ] {
        stored.add(blob, strings.blob)?;
        stored.add(offsets, strings.offsets)?;
    }
    let origin = |place: &Place| Origin {
        shard: bundles[place.0].0,
        unit: bundle(place).units[place.1],
        is_permitted: bundle(place).permitted[place.1] != 0,
    };
    let origins: Vec<Origin> = places.iter().map(origin).collect();
    let mut of_copies: BTreeMap<u32, Vec<Origin>> = BTreeMap::new();
    copies.iter().for_each(|(row, place)| of_copies.entry(*row).or_default().push(origin(place)));
    Ok(Joined { origins, copies: of_copies, stored, weights })
}

/// Return the distinct units of all bundles: by shard, then in the order of the shard. Of a document that several
/// shards have with the same text, the units of the first shard are taken; those of the others are returned as copies,
/// each with the row of the unit that it equals.
fn ordered(bundles: &[(u32, &Bundle)]) -> (Vec<Place>, Vec<(u32, Place)>) {
    let mut all: Vec<(u32, u32, Place)> = Vec::new();
    for (at, (shard, own)) in bundles.iter().enumerate() {
        all.extend(own.units.iter().enumerate().map(|(row, &unit)| (*shard, unit, (at, row))));
    }
    all.sort_unstable();
    all.dedup_by_key(|one| (one.0, one.1));
    let shards = bundles.iter().map(|one| one.0).collect::<BTreeSet<u32>>().len();
    if shards < 2 {
        return (all.into_iter().map(|one| one.2).collect(), Vec::new());
    }
    let (mut places, mut copies, mut seen) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (_, _, (at, row)) in all {
        let own = bundles[at].1;
        let document = own.document_ids.get(own.documents[row] as usize);
        let spans = &own.spans[2 * row..2 * row + 2];
        if let Some(keys) = own.keys.get(2 * row..2 * row + 2) {
            match seen.entry((document, spans, keys)) {
                Entry::Occupied(first) => {
                    copies.push((*first.get(), (at, row)));
                    continue;
                }
                Entry::Vacant(first) => first.insert(places.len() as u32),
            };
        }
        places.push((at, row));
    }
    (places, copies)
}

/// The next string of an ascending list, after its first bytes as a number, which usually decide a comparison. At the end
/// of the list, the number is one that no string begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head<'s>(u64, Option<&'s [u8]>);

impl<'s> Head<'s> {
    fn new(text: Option<&'s [u8]>) -> Self {
        let Some(bytes) = text else { return Self(u64::MAX, None) };
        let mut first = [0; 8];
        let length = bytes.len().min(8);
        first[..length].copy_from_slice(&bytes[..length]);
        Self(u64::from_be_bytes(first), text)
    }
}

/// Merge ascending lists of strings.
fn merge(lists: &[(u32, &Vocabulary)], known: &[(String, u64)]) -> Merged {
    let views: Vec<Strings<'_>> = lists.iter().map(|(_, own)| own.strings.view()).collect();
    let mut of_bundles: Vec<Vec<u32>> =
        lists.iter().map(|(_, own)| Vec::with_capacity(own.strings.len())).collect();
    let head = |list: usize, at: usize| Head::new((at < views[list].len()).then(|| views[list].bytes(at)));
    let known_head = |at: usize| Head::new(known.get(at).map(|one: &(String, u64)| one.0.as_bytes()));
    let mut heads: Vec<Head<'_>> = (0..lists.len()).map(|list| head(list, 0)).collect();
    let (mut strings, mut frequencies) = (StringsBuf::default(), Vec::new());
    let (mut next_known, mut known_first) = (0, known_head(0));
    loop {
        let least = heads.iter().copied().fold(known_first, Ord::min);
        let Some(text) = least.1 else { break };
        let number = frequencies.len() as u32;
        let (mut sum, mut before) = (0, None);
        for (list, own) in heads.iter_mut().enumerate().filter(|(_, own)| **own == least) {
            let (shard, vocabulary) = lists[list];
            let taken = &mut of_bundles[list];
            // Bundles of one shard have the same number.
            if before != Some(shard) {
                sum += vocabulary.frequencies[taken.len()];
            }
            before = Some(shard);
            taken.push(number);
            *own = head(list, taken.len());
        }
        if known_first == least {
            sum = known[next_known].1.max(sum);
            next_known += 1;
            known_first = known_head(next_known);
        }
        strings.blob.extend_from_slice(text);
        strings.offsets.push(strings.blob.len() as u64);
        frequencies.push(sum);
    }
    Merged { strings, frequencies, of_bundles }
}

fn add_sentences(stored: &mut Stored, bundles: &[(u32, &Bundle)], places: &[Place]) -> Result<()> {
    let mut first = vec![0u64];
    let (mut keyword_ends, mut keywords) = (vec![0u64], Vec::new());
    let (mut name_ends, mut names) = (vec![0u64], Vec::new());
    for &(at, row) in places {
        let own = bundles[at].1;
        for sentence in own.first_sentence[row] as usize..own.first_sentence[row + 1] as usize {
            keywords.extend_from_slice(own.sentence_keywords.row(sentence));
            keyword_ends.push(keywords.len() as u64);
            names.extend_from_slice(own.sentence_names.row(sentence));
            name_ends.push(names.len() as u64);
        }
        first.push(keyword_ends.len() as u64 - 1);
    }
    stored.add("links.first_sentence", first)?;
    stored.add("links.sentence_keywords_indptr", keyword_ends)?;
    stored.add("links.sentence_keywords_indices", keywords)?;
    stored.add("links.sentence_names_indptr", name_ends)?;
    stored.add("links.sentence_names_indices", names)
}

/// Add the arrays of the stage `units` that a ranking reads.
fn add_units(stored: &mut Stored, bundles: &[(u32, &Bundle)], places: &[Place]) -> Result<()> {
    let count = places.len();
    let (mut spans, mut documents) = (Vec::new(), Vec::new());
    let (mut document_ids, mut titles, mut texts) =
        (StringsBuf::default(), StringsBuf::default(), StringsBuf::default());
    let mut last = None;
    for &(at, row) in places {
        let (shard, own) = bundles[at];
        let document = (shard, own.document_ids.get(own.documents[row] as usize));
        if last != Some(document) {
            document_ids.push(document.1);
            titles.push(own.titles.get(own.documents[row] as usize));
            last = Some(document);
        }
        documents.push(document_ids.len() as u32 - 1);
        texts.push(own.texts.get(row));
        spans.extend_from_slice(&own.spans[2 * row..2 * row + 2]);
    }
    if bundles.iter().all(|(_, own)| own.keys.len() == 2 * own.units.len()) {
        let keys = places.iter().flat_map(|&(at, row)| &bundles[at].1.keys[2 * row..2 * row + 2]);
        stored.add_rows("units.unit_keys", keys.copied().collect::<Vec<u64>>(), 2)?;
    }
    stored.add("units.unit_tokens", vec![0u32; count])?;
    stored.add_rows("units.unit_span", spans, 2)?;
    stored.add("units.unit_document", documents)?;
    stored.add("units.unit_chunk", (0..count as u32).collect::<Vec<u32>>())?;
    stored.add("units.chunk_units", (0..=count as u64).collect::<Vec<u64>>())?;
    stored.add("units.document_titles_blob", titles.blob)?;
    stored.add("units.document_titles_offsets", titles.offsets)?;
    stored.add("units.document_ids_blob", document_ids.blob)?;
    stored.add("units.document_ids_offsets", document_ids.offsets)?;
    stored.add("units.unit_texts_blob", texts.blob)?;
    stored.add("units.unit_texts_offsets", texts.offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_strings_ascend_and_have_the_sums_of_different_shards() {
        let lists = [
            (0, &["", "a", "a\0", "north pole 1", "ø"][..]),
            (0, &["a", "north pole", "north pole 2"]),
            (3, &["a\0b", "north pole 1", "ø", "øy"]),
        ];
        let of = |texts: &[&str]| Vocabulary {
            strings: texts.iter().collect(),
            frequencies: (1..=texts.len() as u64).collect(),
        };
        let owned: Vec<(u32, Vocabulary)> = lists.iter().map(|(shard, texts)| (*shard, of(texts))).collect();
        let given: Vec<(u32, &Vocabulary)> = owned.iter().map(|(shard, own)| (*shard, own)).collect();
        let known = [("a".to_owned(), 9), ("north pole 1".to_owned(), 1), ("zebra".to_owned(), 2)];
        let merged = merge(&given, &known);
        let mut texts: Vec<&str> =
            lists.iter().flat_map(|one| one.1.iter().copied()).chain(["zebra"]).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!((0..texts.len()).map(|at| merged.strings.get(at)).collect::<Vec<_>>(), texts);
        for ((_, strings), numbers) in lists.iter().zip(&merged.of_bundles) {
            let found: Vec<&str> = numbers.iter().map(|&at| merged.strings.get(at as usize)).collect();
            assert_eq!(found, *strings);
        }
        let frequency = |text: &str| merged.frequencies[texts.binary_search(&text).unwrap()];
        // Of two lists of one shard, the first one counts; a known number counts if it is greater.
        assert_eq!(
            [frequency("a"), frequency("north pole 1"), frequency("ø"), frequency("zebra")],
            [9, 6, 8, 2]
        );
    }
}
