//! Unchanged units whose mentions must be searched again, for [`super::links_update`].
//!
//! The mentions of a unit change only if it mentioned a subject that was removed, or if it contains all words
//! of a subject that its index lacked. Each subject is split into words once, regardless of the number of
//! merged indexes.

use crate::error::Result;
use crate::graph::links::GRAIN;
use crate::graph::links_earlier::{Earlier, Kinds};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, NONE};
use crate::text::languages::Language;
use crate::text::lexical::Lexer;
use crate::text::names::MAX_PHRASE;
use crate::text::strings::Strings;

/// Unchanged units whose mentions are searched again.
pub(crate) struct LookedAt {
    pub units: Vec<u32>,
    /// For each unit its index in `units`, or [`NONE`].
    pub place: Vec<u32>,
}

/// The current keywords and subjects, and the mapping from those of each previous index.
pub(crate) struct Vocabularies<'a> {
    pub keywords: Strings<'a>,
    pub keywords_of: &'a [Vec<u32>],
    pub subjects: Strings<'a>,
    pub subjects_of: &'a [Vec<u32>],
}

/// For each current string: the previous indexes in which an unchanged unit has it, ascending, and its number
/// in each.
struct Holders {
    starts: Vec<usize>,
    pairs: Vec<(u32, u32)>,
}

impl Holders {
    fn new(count: usize, numbers: &[Vec<u32>]) -> Self {
        let mut starts = vec![0; count + 1];
        for &number in numbers.iter().flatten().filter(|&&number| number != NONE) {
            starts[number as usize + 1] += 1;
        }
        (0..count).for_each(|number| starts[number + 1] += starts[number]);
        let (mut next, mut pairs) = (starts.clone(), vec![(0, 0); starts[count]]);
        for (part, numbers) in numbers.iter().enumerate() {
            for (own, &number) in numbers.iter().enumerate().filter(|(_, &number)| number != NONE) {
                let at = &mut next[number as usize];
                pairs[*at] = (part as u32, own as u32);
                *at += 1;
            }
        }
        Self { starts, pairs }
    }

    fn of(&self, number: usize) -> &[(u32, u32)] {
        &self.pairs[self.starts[number]..self.starts[number + 1]]
    }

    /// Return the number of a string in a previous index.
    fn in_part(&self, number: usize, part: u32) -> Option<usize> {
        let pairs = self.of(number);
        let at = pairs.binary_search_by_key(&part, |pair| pair.0).ok()?;
        Some(pairs[at].1 as usize)
    }
}

/// Find the units whose mentions may have changed.
pub(crate) fn looked_at(
    earlier: &Earlier<'_>,
    kinds: &Kinds,
    now: &Vocabularies<'_>,
    threads: usize,
    progress: &Progress,
) -> Result<LookedAt> {
    let mut marks = vec![false; earlier.row.len()];
    for (unit, row) in earlier.kept() {
        let (part, row) = earlier.find(row);
        let mentioned = earlier.parts[part].links.unit_mentions.row(row);
        marks[unit] = mentioned.iter().any(|&s| now.subjects_of[part][s as usize] == NONE);
    }
    let search = Search::new(earlier, now);
    let found = map_ranges(now.subjects.len(), GRAIN, threads, &Progress::none(), |ids| {
        let mut found = Affected { units: Vec::new(), wholes: vec![false; earlier.parts.len()] };
        let mut lexer = Lexer::default();
        for id in ids {
            progress.check()?;
            search.subject(id, &mut lexer, &mut found);
        }
        found.units.sort_unstable();
        found.units.dedup();
        Ok(found)
    })?;
    let mut mark = |unit: usize| {
        if kinds.now[unit] != NONE {
            marks[kinds.now[unit] as usize] = true;
        }
    };
    for Affected { units, wholes } in found {
        units.into_iter().for_each(|unit| mark(unit as usize));
        for part in (0..wholes.len()).filter(|&part| wholes[part]) {
            (earlier.starts[part]..earlier.starts[part + 1]).for_each(&mut mark);
        }
    }
    let units: Vec<u32> =
        (0..marks.len() as u32).filter(|&u| marks[u as usize] && kinds.place[u as usize] == NONE).collect();
    let mut place = vec![NONE; marks.len()];
    units.iter().zip(0..).for_each(|(&unit, at)| place[unit as usize] = at);
    Ok(LookedAt { units, place })
}

/// Previous units that may mention a subject that their index lacked.
struct Affected {
    /// Numbered across the indexes, one after another.
    units: Vec<u32>,
    /// Whether all units of an index may mention one.
    wholes: Vec<bool>,
}

struct Search<'a> {
    earlier: &'a Earlier<'a>,
    now: &'a Vocabularies<'a>,
    keywords: Holders,
    subjects: Holders,
    /// For each index: whether it has subjects that no unchanged unit has.
    has_unowned: Vec<bool>,
    /// The languages of each index, and of all indexes together.
    languages: Vec<Vec<Language>>,
    every: Vec<Language>,
}

impl<'a> Search<'a> {
    fn new(earlier: &'a Earlier<'a>, now: &'a Vocabularies<'a>) -> Self {
        let languages: Vec<_> = earlier.parts.iter().map(|part| languages_of(&part.links).to_vec()).collect();
        let mut every: Vec<Language> = Vec::new();
        for &language in languages.iter().flatten() {
            if !every.contains(&language) {
                every.push(language);
            }
        }
        Self {
            earlier,
            now,
            keywords: Holders::new(now.keywords.len(), now.keywords_of),
            subjects: Holders::new(now.subjects.len(), now.subjects_of),
            has_unowned: now.subjects_of.iter().map(|numbers| numbers.contains(&NONE)).collect(),
            languages,
            every,
        }
    }

    /// Return whether an index lacks a subject. A subject that temporarily had no unit is new, unless the
    /// index had it.
    fn lacks(&self, part: usize, id: usize) -> bool {
        self.subjects.in_part(id, part as u32).is_none()
            && !(self.has_unowned[part]
                && self.earlier.parts[part].links.subjects.position(self.now.subjects.get(id)).is_some())
    }

    /// Add the units that have all words of a subject, of the indexes that lack the subject.
    fn subject(&self, id: usize, lexer: &mut Lexer, found: &mut Affected) {
        let subject = self.now.subjects.get(id);
        let parts = self.earlier.parts;
        if self.subjects.of(id).len() == parts.len() || subject.split(' ').nth(MAX_PHRASE).is_some() {
            return;
        }
        lexer.read(subject);
        for &language in &self.every {
            let mut words: Vec<Option<usize>> = Vec::new();
            lexer.keywords_in(language, |word| words.push(self.now.keywords.position(word)));
            let reads = |part: usize| self.languages[part].contains(&language) && self.lacks(part, id);
            if words.is_empty() {
                // The subject consists of stop words, so any text may contain it.
                (0..parts.len()).filter(|&part| reads(part)).for_each(|part| found.wholes[part] = true);
                continue;
            }
            let Some(words) = words.into_iter().collect::<Option<Vec<usize>>>() else { continue };
            let fewest = words.iter().map(|&word| self.keywords.of(word)).min_by_key(|pairs| pairs.len());
            for &(part, _) in fewest.unwrap_or_default() {
                let own: Option<Vec<usize>> =
                    words.iter().map(|&word| self.keywords.in_part(word, part)).collect();
                let part = part as usize;
                if let Some(own) = own.filter(|_| reads(part)) {
                    let start = self.earlier.starts[part] as u32;
                    found.units.extend(units_with_all(&parts[part].links, &own).map(|unit| start + unit));
                }
            }
        }
    }
}

fn languages_of<'a>(links: &'a LinksView<'a>) -> &'a [Language] {
    match links.languages() {
        [] => &[Language::ENGLISH],
        found => found,
    }
}

/// Return the units that have all of the given keywords, of which there is at least one.
fn units_with_all<'a>(links: &'a LinksView<'a>, words: &'a [usize]) -> impl Iterator<Item = u32> + 'a {
    let rarest = words.iter().copied().min_by_key(|&word| links.keyword_units.len_of(word));
    let units = rarest.map_or(&[][..], |word| links.keyword_units.row(word));
    units.iter().copied().filter(move |&unit| {
        let row = links.unit_keywords.row(unit as usize);
        words.iter().all(|&word| Some(word) == rarest || row.binary_search(&(word as u32)).is_ok())
    })
}

/// Return the units that have every keyword of a phrase as analysed in some language of the index, or `None`
/// if the phrase has no keyword in one of these languages.
pub(crate) fn units_with(was: &LinksView<'_>, phrase: &str, lexer: &mut Lexer) -> Option<Vec<u32>> {
    lexer.read(phrase);
    let mut found = Vec::new();
    for &language in languages_of(was) {
        let mut words: Vec<Option<usize>> = Vec::new();
        lexer.keywords_in(language, |word| words.push(was.keywords.position(word)));
        if words.is_empty() {
            return None;
        }
        let Some(words) = words.into_iter().collect::<Option<Vec<usize>>>() else { continue };
        found.extend(units_with_all(was, &words));
    }
    Some(found)
}
