//! A bundle as bytes, for shards in another process or on another machine.
//!
//! All numbers are little-endian, and each array is preceded by its number of elements. The bytes of another
//! machine are not trusted: everything on which the join relies is checked, so that wrong bytes are an error.

use super::bundle::{Bundle, Rows, Vocabulary};
use crate::error::{Error, Result};
use crate::rank::links_view::NONE;
use crate::rank::moments::Moments;
use crate::text::languages::Language;
use crate::text::strings::{Strings, StringsBuf};

/// The first bytes of a bundle. The last one is the version of the format.
const MAGIC: &[u8; 8] = b"KTBUNDL\x01";
/// Maximum of numbers that are added up over shards.
const MOST: u64 = 1 << 40;

/// Return a bundle as bytes.
pub fn encode(bundle: &Bundle) -> Vec<u8> {
    let Bundle { keywords, names, subjects, .. } = bundle;
    let mut out = MAGIC.to_vec();
    numbers(&mut out, &bundle.units);
    bytes(&mut out, &bundle.permitted);
    numbers(&mut out, &bundle.documents);
    for strings in [&bundle.document_ids, &bundle.titles, &bundle.texts] {
        text(&mut out, strings);
    }
    numbers(&mut out, &bundle.spans);
    larges(&mut out, &bundle.keys);
    numbers(&mut out, &bundle.lengths);
    bytes(&mut out, &bundle.languages);
    for vocabulary in [keywords, names, subjects] {
        text(&mut out, &vocabulary.strings);
        larges(&mut out, &vocabulary.frequencies);
    }
    rows(&mut out, &bundle.unit_keywords);
    numbers(&mut out, &bundle.counts);
    rows(&mut out, &bundle.unit_names);
    numbers(&mut out, &bundle.unit_subject);
    rows(&mut out, &bundle.unit_mentions);
    larges(&mut out, &bundle.first_sentence);
    rows(&mut out, &bundle.sentence_keywords);
    rows(&mut out, &bundle.sentence_names);
    for part in bundle.matches.parts() {
        out.extend_from_slice(&part.to_le_bytes());
    }
    out
}

fn bytes(out: &mut Vec<u8>, values: &[u8]) {
    out.extend_from_slice(&(values.len() as u64).to_le_bytes());
    out.extend_from_slice(values);
}

fn numbers(out: &mut Vec<u8>, values: &[u32]) {
    out.extend_from_slice(&(values.len() as u64).to_le_bytes());
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

fn larges(out: &mut Vec<u8>, values: &[u64]) {
    out.extend_from_slice(&(values.len() as u64).to_le_bytes());
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

fn text(out: &mut Vec<u8>, strings: &StringsBuf) {
    bytes(out, &strings.blob);
    larges(out, &strings.offsets);
}

fn rows(out: &mut Vec<u8>, rows: &Rows) {
    larges(out, &rows.ends);
    numbers(out, &rows.ids);
}

/// Return the bundle that `encode` has written. Any other bytes are an error.
pub fn decode(data: &[u8]) -> Result<Bundle> {
    let Some(rest) = data.strip_prefix(&MAGIC[..]) else {
        return Err(wrong("another format, or another version of it"));
    };
    let mut from = Reader(rest);
    let bundle = Bundle {
        units: from.numbers()?,
        permitted: from.bytes()?,
        documents: from.numbers()?,
        document_ids: from.text()?,
        titles: from.text()?,
        texts: from.text()?,
        spans: from.numbers()?,
        keys: from.larges()?,
        lengths: from.numbers()?,
        languages: from.bytes()?,
        keywords: from.vocabulary()?,
        names: from.vocabulary()?,
        subjects: from.vocabulary()?,
        unit_keywords: from.rows()?,
        counts: from.numbers()?,
        unit_names: from.rows()?,
        unit_subject: from.numbers()?,
        unit_mentions: from.rows()?,
        first_sentence: from.larges()?,
        sentence_keywords: from.rows()?,
        sentence_names: from.rows()?,
        matches: from.moments()?,
    };
    match from.0 {
        [] => check(&bundle).map(|()| bundle),
        rest => Err(wrong(&format!("{} bytes after its end", rest.len()))),
    }
}

fn wrong(why: &str) -> Error {
    Error::input(format!("units of another index cannot be read: {why}"))
}

struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    fn take(&mut self, size: usize) -> Result<&'d [u8]> {
        let (taken, rest) = self.0.split_at_checked(size).ok_or_else(|| wrong("they end too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Return the bytes of an array whose elements have `size` bytes.
    fn array(&mut self, size: usize) -> Result<&'d [u8]> {
        let count = u64::from_le_bytes(self.take(8)?.try_into().unwrap());
        let length = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
        self.take(length.ok_or_else(|| wrong("they end too early"))?)
    }

    fn bytes(&mut self) -> Result<Vec<u8>> {
        self.array(1).map(<[u8]>::to_vec)
    }

    fn numbers(&mut self) -> Result<Vec<u32>> {
        Ok(self.array(4)?.chunks_exact(4).map(|own| u32::from_le_bytes(own.try_into().unwrap())).collect())
    }

    fn larges(&mut self) -> Result<Vec<u64>> {
        Ok(self.array(8)?.chunks_exact(8).map(|own| u64::from_le_bytes(own.try_into().unwrap())).collect())
    }

    fn text(&mut self) -> Result<StringsBuf> {
        let strings = StringsBuf { blob: self.bytes()?, offsets: self.larges()? };
        Strings::new(&strings.blob, &strings.offsets)?;
        Ok(strings)
    }

    fn vocabulary(&mut self) -> Result<Vocabulary> {
        let own = Vocabulary { strings: self.text()?, frequencies: self.larges()? };
        let view = own.strings.view();
        let is_sorted = (1..view.len()).all(|at| view.bytes(at - 1) < view.bytes(at));
        let fits = own.frequencies.len() == view.len() && own.frequencies.iter().all(|&n| n <= MOST);
        if is_sorted && fits {
            return Ok(own);
        }
        Err(wrong("terms that are not sorted, or without numbers of units"))
    }

    fn rows(&mut self) -> Result<Rows> {
        let own = Rows { ends: self.larges()?, ids: self.numbers()? };
        let is_whole = own.ends.first() == Some(&0) && own.ends.last() == Some(&(own.ids.len() as u64));
        if is_whole && own.ends.is_sorted() {
            return Ok(own);
        }
        Err(wrong("rows that overlap"))
    }

    fn moments(&mut self) -> Result<Moments> {
        let mut parts = [0i128; 3];
        for part in &mut parts {
            *part = i128::from_le_bytes(self.take(16)?.try_into().unwrap());
        }
        Moments::from_parts(parts).ok_or_else(|| wrong("sums of scores that no scores have"))
    }
}

/// Check that the arrays of a bundle fit together.
fn check(bundle: &Bundle) -> Result<()> {
    let units = bundle.units.len();
    let require = |fits: bool, what: &str| if fits { Ok(()) } else { Err(wrong(what)) };
    let ascends = |ids: &[u32]| ids.windows(2).all(|pair| pair[0] < pair[1]);
    require(ascends(&bundle.units) && !bundle.units.contains(&NONE), "units that do not ascend")?;
    let per_unit = [
        bundle.permitted.len(),
        bundle.documents.len(),
        bundle.texts.len(),
        bundle.lengths.len(),
        bundle.unit_keywords.count(),
        bundle.unit_names.count(),
        bundle.unit_subject.len(),
        bundle.unit_mentions.count(),
        bundle.spans.len() / 2,
        bundle.first_sentence.len().wrapping_sub(1),
    ];
    let pairs = bundle.spans.len().is_multiple_of(2) && [0, 2 * units].contains(&bundle.keys.len());
    let has_languages = [0, units].contains(&bundle.languages.len());
    require(per_unit.iter().all(|&n| n == units) && pairs && has_languages, "arrays of different lengths")?;
    for &number in &bundle.languages {
        Language::numbered(number)?;
    }
    require(bundle.spans.chunks_exact(2).all(|span| span[0] <= span[1]), "spans that end before they begin")?;
    let documents = bundle.document_ids.len();
    let next = |pair: &[u32]| pair[1].wrapping_sub(pair[0]) <= 1;
    let is_numbered = bundle.documents.first().is_none_or(|&first| first == 0)
        && bundle.documents.windows(2).all(next)
        && bundle.documents.last().map_or(0, |&last| last as usize + 1) == documents
        && bundle.titles.len() == documents;
    require(is_numbered, "documents that are not numbered in order")?;
    for (rows, vocabulary) in [
        (&bundle.unit_keywords, &bundle.keywords),
        (&bundle.unit_names, &bundle.names),
        (&bundle.unit_mentions, &bundle.subjects),
    ] {
        let fits = (0..units).all(|at| {
            let row = rows.row(at);
            ascends(row) && row.last().is_none_or(|&last| (last as usize) < vocabulary.strings.len())
        });
        require(fits, "terms that do not exist")?;
    }
    let subjects = bundle.subjects.strings.len();
    let is_known = |&id: &u32| id == NONE || (id as usize) < subjects;
    require(bundle.unit_subject.iter().all(is_known), "subjects that do not exist")?;
    require(bundle.counts.len() == bundle.unit_keywords.ids.len(), "keywords without counts")?;
    let sentences = bundle.sentence_keywords.count();
    let are_whole = bundle.first_sentence.first() == Some(&0)
        && bundle.first_sentence.is_sorted()
        && bundle.first_sentence.last() == Some(&(sentences as u64))
        && bundle.sentence_names.count() == sentences;
    require(are_whole, "sentences that overlap")?;
    for unit in 0..units {
        for sentence in bundle.first_sentence[unit] as usize..bundle.first_sentence[unit + 1] as usize {
            for (rows, of_unit) in [
                (&bundle.sentence_keywords, &bundle.unit_keywords),
                (&bundle.sentence_names, &bundle.unit_names),
            ] {
                let row = rows.row(sentence);
                let count = of_unit.row(unit).len();
                let fits = ascends(row) && row.last().is_none_or(|&last| (last as usize) < count);
                require(fits, "sentences with terms that their units lack")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strings(texts: &[&str]) -> StringsBuf {
        texts.iter().collect()
    }

    fn vocabulary(texts: &[&str]) -> Vocabulary {
        Vocabulary { strings: strings(texts), frequencies: vec![2; texts.len()] }
    }

    fn rows(of: &[&[u32]]) -> Rows {
        let mut own = Rows { ends: vec![0], ids: Vec::new() };
        for row in of {
            own.ids.extend_from_slice(row);
            own.ends.push(own.ids.len() as u64);
        }
        own
    }

    fn bundle() -> Bundle {
        Bundle {
            units: vec![3, 8],
            permitted: vec![1, 0],
            documents: vec![0, 1],
            document_ids: strings(&["a", "ø"]),
            titles: strings(&["A", ""]),
            texts: strings(&["The Fram sailed.", "Larvik"]),
            spans: vec![0, 16, 4, 10],
            keys: vec![1, 2, 3, u64::MAX],
            lengths: vec![2, 1],
            languages: Vec::new(),
            keywords: vocabulary(&["fram", "larvik", "sail"]),
            names: vocabulary(&["fram", "larvik"]),
            subjects: vocabulary(&["fram"]),
            unit_keywords: rows(&[&[0, 2], &[1]]),
            counts: vec![1, 1, 1],
            unit_names: rows(&[&[0], &[1]]),
            unit_subject: vec![0, NONE],
            unit_mentions: rows(&[&[0], &[]]),
            first_sentence: vec![0, 1, 2],
            sentence_keywords: rows(&[&[0, 1], &[0]]),
            sentence_names: rows(&[&[0], &[0]]),
            matches: Moments::of([0.5, -1.0].into_iter()),
        }
    }

    #[test]
    fn bytes_become_the_bundle_again() {
        assert_eq!(decode(&encode(&bundle())).unwrap(), bundle());
        let none = Bundle { first_sentence: vec![0], ..Bundle::default() };
        assert!(decode(&encode(&none)).is_err(), "rows have one more end than there are rows");
    }

    #[test]
    fn bundles_whose_parts_do_not_fit_are_errors() {
        let changes: [fn(&mut Bundle); 15] = [
            |own| own.units = vec![8, 3],
            |own| own.permitted.push(1),
            |own| own.documents = vec![0, 2],
            |own| own.titles = strings(&["A"]),
            |own| own.spans[0] = 17,
            |own| own.keys.truncate(2),
            |own| own.languages = vec![255, 255],
            |own| own.keywords = vocabulary(&["sail", "larvik", "fram"]),
            |own| own.names.frequencies[0] = u64::MAX,
            |own| own.unit_keywords.ids[2] = 3,
            |own| own.unit_names.ids[0] = NONE,
            |own| own.unit_subject[0] = 1,
            |own| own.counts.truncate(2),
            |own| own.first_sentence[1] = 3,
            |own| own.sentence_keywords.ids[1] = 2,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut own = bundle();
            change(&mut own);
            assert!(decode(&encode(&own)).is_err(), "change {number}");
        }
    }

    proptest! {
        #[test]
        fn altered_and_cut_bytes_never_panic(at in 0usize..900, value: u8, cut in 0usize..900) {
            let mut data = encode(&bundle());
            let length = data.len();
            data[at % length] = value;
            let _ = decode(&data);
            prop_assert!(decode(&encode(&bundle())[..cut % length]).is_err());
        }
    }
}
