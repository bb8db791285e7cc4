//! The units that have a phrase or a word with a prefix. Postings of keywords give candidates, wherever in the index they
//! are, and the texts of the candidates are read to verify word order.

use crate::error::Result;
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::rank::links_view::LinksView;
use crate::sparse::Mask;
use crate::text::folding;
use crate::text::languages::Language;
use crate::text::lexical::Lexer;
use crate::text::phrases::Phrase;

/// Maximum number of keywords of a prefix, the most frequent ones. A prefix of one letter has a tenth of the keywords of
/// an index, and the 10,000 most frequent ones have nearly all of its postings.
pub const MOST_KEYWORDS: usize = 10_000;
/// Number of keywords of a prefix that passages are ranked by.
const RANKED: usize = 16;
/// Letters by which a stem may be shorter than a word with that stem.
const ENDING: usize = 4;
/// Minimum length of such a stem in bytes.
const SHORTEST_STEM: usize = 3;
/// Number of texts that a thread reads between two checks of the deadline.
const BLOCK: usize = 64;
/// Number of words on each side of the border between two units in which a phrase is looked for. Phrases are shorter.
const BORDER: usize = 64;

/// A unit as it is searched.
pub struct Unit<'a> {
    pub title: &'a str,
    pub text: &'a str,
    pub document: u32,
    pub language: Language,
}

/// The units of an index, and the threads that read them.
pub struct Texts<'a> {
    pub links: &'a LinksView<'a>,
    pub unit: &'a (dyn Fn(u32) -> Result<Unit<'a>> + Sync),
    /// The path of a unit's file, and the people of a mail.
    pub labels: &'a (dyn Fn(u32) -> Result<(&'a str, String)> + Sync),
    pub threads: usize,
    /// The headings within a unit.
    pub headings: &'a (dyn Fn(u32) -> Result<Vec<String>> + Sync),
    /// Whether only titles and headings are searched.
    pub titles: bool,
}

/// The units of a phrase.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matching {
    /// Ascending.
    pub units: Vec<u32>,
    /// The most frequent keywords of a prefix, by which passages are ranked.
    pub keywords: Vec<String>,
    /// How many keywords of a prefix were looked up, and how many there are, if these are more.
    pub cut: Option<(usize, usize)>,
}

/// How much the postings say about a phrase.
enum Candidates {
    /// Every unit of the phrase is among these.
    Among(Vec<u32>),
    /// These are all units of the phrase, and no text needs to be read.
    Exactly(Vec<u32>),
    /// No keyword of the phrase is in the index, so that any unit may have it.
    Any,
}

impl Texts<'_> {
    /// Return the units that have a phrase in their title, their text, their path or the people of a mail, among those that pass the mask. A phrase that
    /// crosses the border between two units of a document is in both.
    pub fn matching(
        &self,
        text: &str,
        is_prefix: bool,
        mask: Option<&Mask>,
        progress: &Progress,
    ) -> Result<Matching> {
        let phrase = Phrase::new(text, is_prefix, self.links.languages());
        if phrase.is_empty() {
            return Ok(Matching::default());
        }
        let mut found = Matching::default();
        let stems = phrase.prefix().map(|prefix| Stems::of(self.links, prefix));
        if let Some(stems) = &stems {
            found.keywords = stems.frequent(self.links);
            found.cut = stems.cut;
        }
        let candidates = match self.candidates(text, &phrase, stems.as_ref(), progress)? {
            Candidates::Exactly(units) if !self.titles => {
                found.units =
                    units.into_iter().filter(|&unit| mask.is_none_or(|mask| mask.has(unit))).collect();
                return Ok(found);
            }
            Candidates::Among(units) | Candidates::Exactly(units) => units,
            Candidates::Any => (0..self.links.units() as u32).collect(),
        };
        let sure: Vec<u32> =
            stems.filter(|_| phrase.len() == 1 && !self.titles).map_or_else(Vec::new, |stems| stems.sure);
        let parts = map_ranges_with(
            candidates.len(),
            BLOCK,
            self.threads,
            progress,
            Lexer::default,
            |lexer, range| {
                let mut units = Vec::new();
                for &unit in &candidates[range] {
                    self.verify(unit, &phrase, &sure, mask, lexer, &mut units)?;
                }
                Ok(units)
            },
        )?;
        found.units = parts.into_iter().flatten().collect();
        found.units.sort_unstable();
        found.units.dedup();
        Ok(found)
    }

    /// Add a unit if it has the phrase, and the next one as well if the phrase crosses the border between them.
    fn verify(
        &self,
        at: u32,
        phrase: &Phrase,
        sure: &[u32],
        mask: Option<&Mask>,
        lexer: &mut Lexer,
        units: &mut Vec<u32>,
    ) -> Result<()> {
        let passes = |unit: u32| mask.is_none_or(|mask| mask.has(unit));
        let has_next = !self.titles && phrase.len() > 1 && at as usize + 1 < self.links.units();
        if !(passes(at) || has_next && passes(at + 1)) {
            return Ok(());
        }
        let unit = (self.unit)(at)?;
        let mut has = |text: &str| phrase.is_in(text, unit.language, lexer);
        if sure.binary_search(&at).is_ok() || has(unit.title) || !self.titles && has(unit.text) {
            units.extend(Some(at).filter(|&at| passes(at)));
            return Ok(());
        }
        if self.titles {
            units.extend((self.headings)(at)?.iter().any(|name| has(name)).then_some(at));
            return Ok(());
        }
        if phrase.len() > 1 && passes(at) {
            let (path, people) = (self.labels)(at)?;
            if has(path) || has(&people) {
                units.push(at);
                return Ok(());
            }
        }
        if has_next {
            let next = (self.unit)(at + 1)?;
            let border = || format!("{} {}", tail(unit.text), head(next.text));
            if next.document == unit.document && has(&border()) && !has(head(next.text)) {
                units.extend([at, at + 1].into_iter().filter(|&unit| passes(unit)));
            }
        }
        Ok(())
    }

    /// Return the units that may have a phrase.
    fn candidates(
        &self,
        text: &str,
        phrase: &Phrase,
        stems: Option<&Stems>,
        progress: &Progress,
    ) -> Result<Candidates> {
        let links = self.links;
        let words = Words::of(links, text, stems.is_some());
        if let (Some(stems), 1) = (stems, phrase.len()) {
            if words.unspaced {
                return Ok(Candidates::Any);
            }
            if stems.near.is_empty() {
                return Ok(Candidates::Exactly(stems.sure.clone()));
            }
            return Ok(Candidates::Among(union(links, &[&stems.keys[..], &stems.near[..]].concat())));
        }
        let mut lists: Vec<Vec<u32>> = Vec::new();
        for group in &words.groups {
            progress.check()?;
            lists.push(union(links, group));
        }
        if phrase.len() == 1 && lists.len() == 1 && !words.unspaced {
            return Ok(Candidates::Exactly(lists.swap_remove(0)));
        }
        if let Some(stems) = stems.filter(|_| !words.unspaced) {
            lists.push(union(links, &[&stems.keys[..], &stems.near[..]].concat()));
        }
        lists.sort_by_key(Vec::len);
        let mut lists = lists.into_iter().map(|list| with_previous(&list));
        let Some(mut all) = lists.next() else { return Ok(Candidates::Any) };
        for list in lists {
            all.retain(|unit| list.binary_search(unit).is_ok());
        }
        Ok(Candidates::Among(all))
    }
}

/// Return units with those before them, because a phrase may begin in one and end in the next.
fn with_previous(units: &[u32]) -> Vec<u32> {
    let mut found = Vec::with_capacity(2 * units.len());
    for &unit in units {
        if unit > 0 && found.last() != Some(&(unit - 1)) {
            found.push(unit - 1);
        }
        found.push(unit);
    }
    found
}

/// The keywords that a prefix leads to.
struct Stems {
    /// Keywords that begin with the prefix, and the units that have any of them.
    keys: Vec<u32>,
    sure: Vec<u32>,
    /// Keywords with which the prefix begins, but for the last letters: stems of words that may begin with the prefix.
    near: Vec<u32>,
    cut: Option<(usize, usize)>,
}

impl Stems {
    fn of(links: &LinksView<'_>, prefix: &str) -> Self {
        let size = |key: &u32| links.keyword_units.range(*key as usize).len();
        let mut keys: Vec<u32> = beginning(links, prefix.as_bytes()).collect();
        let cut = (keys.len() > MOST_KEYWORDS).then_some((MOST_KEYWORDS, keys.len()));
        if cut.is_some() {
            keys.sort_by_key(|key| (std::cmp::Reverse(size(key)), *key));
            keys.truncate(MOST_KEYWORDS);
            keys.sort_unstable();
        }
        let mut near = Vec::new();
        let shortest = prefix.len().saturating_sub(ENDING).max(SHORTEST_STEM);
        for length in (shortest..prefix.len()).filter(|&at| prefix.is_char_boundary(at)) {
            let stem = &prefix.as_bytes()[..length];
            // The last letter of a stem may differ: happy, happi.
            near.extend(beginning(links, stem).filter(|&key| {
                let own = links.keywords.get(key as usize);
                let own = own.split_once('@').map_or(own, |(own, _)| own);
                own.len() >= length
                    && own[length..].chars().count() <= 1
                    && !own.as_bytes().starts_with(prefix.as_bytes())
            }));
        }
        near.sort_unstable();
        near.dedup();
        let sure = union(links, &keys);
        Self { keys, sure, near, cut }
    }

    /// Return the keywords that most units have, without marks of languages.
    fn frequent(&self, links: &LinksView<'_>) -> Vec<String> {
        let mut keys = self.keys.clone();
        keys.sort_by_key(|&key| (std::cmp::Reverse(links.keyword_units.range(key as usize).len()), key));
        let mut words: Vec<String> = Vec::new();
        for key in keys {
            let word = links.keywords.get(key as usize);
            let word = word.split_once('@').map_or(word, |(word, _)| word);
            if words.len() < RANKED && !words.iter().any(|one| one == word) {
                words.push(word.to_owned());
            }
        }
        words
    }
}

/// The keywords that every unit with a phrase has.
struct Words {
    /// A unit has at least one keyword of each group.
    groups: Vec<Vec<u32>>,
    /// Whether a word is in a script without spaces.
    unspaced: bool,
}

impl Words {
    fn of(links: &LinksView<'_>, text: &str, is_prefix: bool) -> Self {
        let languages = match links.languages() {
            [] => &[Language::ENGLISH],
            languages => languages,
        };
        let mut lexer = Lexer::default();
        lexer.read(text);
        let is_unspaced = |k: usize| lexer.lower(k).chars().any(folding::is_unspaced);
        let count = lexer.words.len();
        let mut groups = Vec::new();
        for k in 0..count - usize::from(is_prefix && count > 0) {
            let mut words: Vec<String> = Vec::new();
            let mut is_certain = true;
            for &language in languages {
                let before = words.len();
                lexer.keywords_where(language, |at| at == k, |word, _| words.push(word.to_owned()));
                is_certain &= words.len() > before; // a language that drops the word has it in no posting
            }
            words.sort_unstable();
            words.dedup();
            let keys = words.iter().map(|word| links.keywords.position(word).map(|key| key as u32));
            if is_certain && !is_unspaced(k) {
                groups.push(keys.flatten().collect());
            } else if is_certain && words.len() > 1 && lexer.lower(k).chars().all(folding::is_unspaced) {
                // A unit with a run has all pairs of the run. A single character is part of other pairs.
                groups.extend(keys.map(|key| key.into_iter().collect()));
            }
        }
        Self { groups, unspaced: (0..count).any(is_unspaced) }
    }
}

/// Return the keywords that begin with some bytes.
fn beginning(links: &LinksView<'_>, bytes: &[u8]) -> std::ops::Range<u32> {
    let (mut low, mut high) = (0, links.keywords.len());
    while low < high {
        let middle = (low + high) / 2;
        match links.keywords.bytes(middle) < bytes {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    let (first, mut last) = (low, links.keywords.len());
    while low < last {
        let middle = (low + last) / 2;
        match links.keywords.bytes(middle).starts_with(bytes) {
            true => low = middle + 1,
            false => last = middle,
        }
    }
    first as u32..last as u32
}

/// Return the units that have any of the keywords, ascending.
fn union(links: &LinksView<'_>, keys: &[u32]) -> Vec<u32> {
    if let [key] = keys {
        return links.keyword_units.row(*key as usize).to_vec();
    }
    let total: usize = keys.iter().map(|&key| links.keyword_units.range(key as usize).len()).sum();
    if total > links.units() / 8 {
        let mut has = vec![false; links.units()];
        for &key in keys {
            links.keyword_units.row(key as usize).iter().for_each(|&unit| has[unit as usize] = true);
        }
        return (0..has.len() as u32).filter(|&unit| has[unit as usize]).collect();
    }
    let mut units = Vec::with_capacity(total);
    keys.iter().for_each(|&key| units.extend_from_slice(links.keyword_units.row(key as usize)));
    units.sort_unstable();
    units.dedup();
    units
}

/// Return about the last words of a text.
fn tail(text: &str) -> &str {
    let at = text.char_indices().rev().nth(BORDER * 8).map_or(0, |(at, _)| at);
    &text[at..]
}

/// Return about the first words of a text.
fn head(text: &str) -> &str {
    let at = text.char_indices().nth(BORDER * 8).map_or(text.len(), |(at, _)| at);
    &text[..at]
}
