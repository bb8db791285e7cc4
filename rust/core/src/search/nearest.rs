//! The nearest words of an index for words that it does not contain: other forms of the word (see [`same_stem`]), or words
//! one edit away, or two for words of seven letters
//! and more. An edit inserts, removes or replaces a letter, or exchanges two adjacent ones (optimal string alignment).
//!
//! The vocabulary is sorted, so it is read like a trie: keywords with a common beginning share its rows of the matrix of
//! distances, and all keywords with a beginning that is too far away are skipped at once.

use super::word_breaks::{divided, merged};
use crate::rank::links_view::LinksView;
use crate::rank::stem_forms::same_stem;
use crate::text::detection::detect;
use crate::text::folding::is_unspaced;
use crate::text::languages::Language;
use crate::text::lexical::{Lexer, Role};
use crate::text::query_language::runs;
use crate::text::strings::Strings;
use std::cmp::Reverse;
use std::ops::Range;

/// Minimum length in letters of words that are replaced. Words of three letters have neighbours in every index.
const SHORTEST: usize = 4;
/// Minimum length in letters of words that are replaced by words with the same stem, and maximum number of these. Chosen
/// on 463 pairs of a short text and a query in 24 languages. On the texts of `stem_forms::MOST`, with 369 words that no text
/// has, 1, 2 and 4 forms find the same texts, because a query has the forms in the languages of the index as well.
const SHORTEST_FORM: usize = 3;
const MOST_FORMS: usize = 4;
/// Minimum length in letters of words that may be two edits away.
const LONG: usize = 7;
/// Number of words from which a query is a question. There, a word that no document has is often right and only means
/// nothing to the index ("write" in a question about playwrights became "white"), so that only likely slips are replaced:
/// one edit within a long word. In the polar example, 6 of 30 questions had a wrong replacement without this rule, and none has one with it.
const QUESTION: usize = 6;
/// Maximum length in letters.
const LONGEST: usize = 40;
/// Maximum number of words of a query that are replaced.
const MOST: usize = 8;
/// Maximum number of rows of the matrix of distances for one word, so that a query never waits longer than about 0.1 s.
const MOST_ROWS: usize = 1_000_000;
/// Units whose text is read for the spelling of a keyword.
const READ: usize = 4;

/// A word of a query that the index does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown<'t> {
    pub word: &'t str,
    /// The nearest word, as the index's texts spell it, in lower case, or the two words that it consists of.
    pub nearest: Option<String>,
}

/// Return the words of a query that the index does not contain, in order. `text` returns all that is indexed of a unit, and
/// its language.
pub fn unknown_words<'t>(
    links: &LinksView<'_>,
    query: &'t str,
    text: impl Fn(u32) -> Option<(String, Language)>,
) -> Vec<Unknown<'t>> {
    let mut lexer = Lexer::default();
    let languages = match links.languages() {
        [] => &[Language::ENGLISH],
        languages => languages,
    };
    if !has_unknown(links, query, &mut lexer) {
        return Vec::new();
    }
    let mut found = symbol_words(links, query, &mut lexer);
    let mut is_foreign = None;
    let words: Vec<&str> = runs(query).collect();
    for (at, &word) in words.iter().enumerate().filter(|(_, word)| word.len() >= SHORTEST_FORM) {
        if !is_unknown(links, word, &mut lexer) || found.iter().any(|one| one.word == word) {
            continue;
        }
        // A question in a language that no text is in has many unknown words, which are not misspelt.
        let foreign = *is_foreign.get_or_insert_with(|| {
            let mut whole = Lexer::default();
            whole.read(query);
            !languages.contains(&detect(whole.lowers(0)))
        });
        let count = word.chars().count();
        let may = !foreign && found.len() < MOST && (SHORTEST_FORM..=LONGEST).contains(&count);
        let is_spaced = !word.chars().any(is_unspaced);
        let has_digits = word.chars().any(char::is_numeric);
        let in_question = words.len() >= QUESTION;
        let neighbours = [at.checked_sub(1), Some(at + 1)].map(|at| words.get(at?).copied());
        if is_glued(links, word, neighbours, &mut lexer) {
            continue;
        }
        let nearest = match may && is_spaced {
            true if count < SHORTEST && in_question => None,
            // "ps2" for "PS/2"
            true if count < SHORTEST && has_digits => divided(links, &word.to_lowercase(), &text, &mut lexer),
            true if count < SHORTEST => forms(links, word, languages, &text, &mut lexer),
            true => {
                let one = merged(links, word, neighbours, &mut lexer);
                let others = match one.is_none() && !in_question && !has_digits {
                    true => forms(links, word, languages, &text, &mut lexer),
                    false => None,
                };
                let apart = || match one {
                    None => divided(links, &word.to_lowercase(), &text, &mut lexer),
                    Some(_) => None,
                };
                others.or_else(apart).or_else(|| {
                    // A number that is one digit away is another number.
                    let similar = || match has_digits {
                        true => None,
                        false => nearest_keyword(links, word, languages, in_question, &mut lexer),
                    };
                    one.or_else(similar).and_then(|key| spelling(links, key, &text, &mut lexer))
                })
            }
            false => None,
        };
        if nearest.is_some() || count >= SHORTEST {
            found.push(Unknown { word, nearest });
        }
    }
    found
}

/// Return the words of a query of which [`unknown_words`] returns some: all words that the index does not contain. Nothing is
/// compared with the vocabulary, so this is quick.
pub fn missing_words<'t>(links: &LinksView<'_>, query: &'t str) -> Vec<&'t str> {
    let mut lexer = Lexer::default();
    if !has_unknown(links, query, &mut lexer) {
        return Vec::new();
    }
    let mut found: Vec<&str> = symbol_words(links, query, &mut lexer).iter().map(|one| one.word).collect();
    let long = runs(query).filter(|word| word.len() >= SHORTEST_FORM);
    found.extend(long.filter(|word| is_unknown(links, word, &mut lexer)));
    found
}

/// Return whether a number and the word next to it are one word of the index, as in "RFC 2616": the query has that word.
fn is_glued(links: &LinksView<'_>, word: &str, neighbours: [Option<&str>; 2], lexer: &mut Lexer) -> bool {
    let is_number = |word: &str| word.chars().all(char::is_numeric);
    let others = neighbours.map(|other| other.filter(|other| is_number(other) != is_number(word)));
    merged(links, word, others, lexer).is_some()
}

/// Return the words of texts that share a stem with a word, as they are spelled, separated by blanks: in the languages of
/// the index, or else in any, because a few short texts in another language count as English.
fn forms(
    links: &LinksView<'_>,
    word: &str,
    languages: &[Language],
    text: &impl Fn(u32) -> Option<(String, Language)>,
    lexer: &mut Lexer,
) -> Option<String> {
    lexer.read(word);
    let folded = lexer.lowers(0).next()?.to_owned();
    let mut found = same_stem(links.keywords, &folded, languages);
    if found.is_empty() && folded.len() >= SHORTEST {
        let all: Vec<Language> = Language::every().collect();
        found = same_stem(links.keywords, &folded, &all);
        // One of many languages has nearly any ending: only longer forms of a word, and not much longer ones.
        let is_form = |length: usize| (folded.len()..=2 * folded.len()).contains(&(length + 1));
        found.retain(|&(key, _)| is_form(links.keywords.bytes(key as usize).len()));
    }
    found.sort_unstable_by_key(|&(key, count)| {
        (Reverse(count), Reverse(links.keyword_units.range(key as usize).len()), key)
    });
    let words: Vec<String> =
        found.iter().take(MOST_FORMS).filter_map(|&(key, _)| spelling(links, key, text, lexer)).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Return the words with symbols, such as "C#", that the index contains only without them. The nearest word of each is
/// the word without symbols, by which a query finds passages anyway.
fn symbol_words<'t>(links: &LinksView<'_>, query: &'t str, lexer: &mut Lexer) -> Vec<Unknown<'t>> {
    let mut found: Vec<Unknown<'t>> = Vec::new();
    for token in query.split_whitespace() {
        let is_bracket = |c: char| matches!(c, '(' | '[' | '{' | ')' | ']' | '}' | '"' | '\'');
        let is_mark = |c: char| is_bracket(c) || matches!(c, ',' | '.' | ';' | ':' | '!' | '?');
        let word = token.trim_start_matches(is_bracket).trim_end_matches(is_mark);
        lexer.read(word);
        if lexer.symbol_word().is_none() || found.iter().any(|one| one.word == word) {
            continue;
        }
        let (mut has_whole, mut has_part) = (false, false);
        lexer.query_roles(links.languages(), |keyword, role| {
            let is_known = links.keywords.position(keyword).is_some();
            match role {
                Role::Whole(_) => has_whole |= is_known,
                _ => has_part |= is_known,
            }
        });
        if !has_whole {
            found.push(Unknown { word, nearest: has_part.then(|| lexer.lower(0).to_owned()) });
        }
    }
    found
}

/// Return the text with each unknown word replaced by its nearest word.
pub fn replaced(query: &str, unknown: &[Unknown<'_>]) -> String {
    let mut text = String::with_capacity(query.len());
    let mut at = 0;
    for word in runs(query) {
        let start = word.as_ptr() as usize - query.as_ptr() as usize;
        let nearest = unknown.iter().find(|one| one.word == word).and_then(|one| one.nearest.as_deref());
        if let Some(nearest) = nearest {
            text.push_str(&query[at..start]);
            text.push_str(nearest);
            at = start + word.len();
        }
    }
    text.push_str(&query[at..]);
    text
}

/// Return whether a text has a keyword that the index does not contain, which is quick for most queries.
fn has_unknown(links: &LinksView<'_>, query: &str, lexer: &mut Lexer) -> bool {
    lexer.read(query);
    let mut has = false;
    lexer
        .query_roles(links.languages(), |keyword, _| has = has || links.keywords.position(keyword).is_none());
    has
}

/// Return whether a word has keywords, and the index contains none of them. Function words are not in the index.
fn is_unknown(links: &LinksView<'_>, word: &str, lexer: &mut Lexer) -> bool {
    lexer.read(word);
    let (mut has_keywords, mut is_known) = (false, false);
    lexer.query_roles(links.languages(), |keyword, _| {
        has_keywords = true;
        is_known |= links.keywords.position(keyword).is_some();
    });
    has_keywords && !is_known && !lexer.are_function_words(links.languages())
}

/// Return the keyword that is nearest to a word: by distance, with the same first letter, in most units, first in the
/// vocabulary.
fn nearest_keyword(
    links: &LinksView<'_>,
    word: &str,
    languages: &[Language],
    in_question: bool,
    lexer: &mut Lexer,
) -> Option<u32> {
    let is_long = word.chars().count() >= LONG;
    if in_question && !is_long {
        return None;
    }
    lexer.read(word);
    let most = if is_long && !in_question { 2 } else { 1 };
    let mut stems: Vec<(String, String)> = Vec::new();
    for &language in languages {
        lexer.keywords_in(language, |keyword| {
            let (stem, mark) = keyword.split_once('@').unwrap_or((keyword, ""));
            if !stems.iter().any(|one| (one.0.as_str(), one.1.as_str()) == (stem, mark)) {
                stems.push((stem.to_owned(), mark.to_owned()));
            }
        });
    }
    let candidates = stems.iter().flat_map(|(stem, mark)| {
        let first = stem.chars().next();
        let among = match (in_question, first) {
            (true, Some(first)) => beginning(links.keywords, first),
            _ => 0..links.keywords.len(),
        };
        near(links.keywords, among, (stem, mark), most).into_iter().filter_map(move |(key, distance)| {
            let keyword = links.keywords.get(key as usize);
            let is_other = keyword.chars().next() != first;
            let own = keyword.split_once('@').map_or(keyword, |(own, _)| own);
            let may = !in_question || !is_other && is_slip(stem, own);
            may.then(|| (distance, is_other, Reverse(links.keyword_units.range(key as usize).len()), key))
        })
    });
    candidates.min().map(|(.., key)| key)
}

/// Return whether two words that are one edit apart differ before their ends, or by a doubled last letter. Words that
/// differ in their ends are often forms of each other, and both right: designer, designed.
fn is_slip(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let (shorter, longer) = if a.len() < b.len() { (&a, &b) } else { (&b, &a) };
    match shorter.len() == longer.len() {
        true => same + 1 < a.len(),
        false => same < shorter.len() || shorter.last() == longer.last(),
    }
}

/// Return the range of the keywords that begin with a letter.
fn beginning(keywords: Strings<'_>, letter: char) -> Range<usize> {
    let mut buffer = [0; 4];
    let letter = letter.encode_utf8(&mut buffer).as_bytes();
    let first = |is_before: &dyn Fn(&[u8]) -> bool| {
        let (mut low, mut high) = (0, keywords.len());
        while low < high {
            let middle = (low + high) / 2;
            match is_before(keywords.bytes(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    };
    first(&|word| word < letter)..first(&|word| word < letter || word.starts_with(letter))
}

/// Return those of some keywords with a language mark that are at most `most` edits away from a stem, with their distances.
fn near(
    keywords: Strings<'_>,
    among: Range<usize>,
    (stem, mark): (&str, &str),
    most: usize,
) -> Vec<(u32, usize)> {
    let mut found = Vec::new();
    // The letters of the current beginning, with their ends in bytes.
    let mut letters: Vec<(char, usize)> = Vec::new();
    let mut band = Band::new(stem, most);
    let (mut at, mut left) = (among.start, MOST_ROWS);
    while at < among.end && left > 0 {
        let Ok(keyword) = std::str::from_utf8(keywords.bytes(at)) else { break };
        let (own, own_mark) = keyword.split_once('@').unwrap_or((keyword, ""));
        let same = letters.iter().zip(own.char_indices()).take_while(|((a, _), (_, b))| a == b).count();
        letters.truncate(same);
        let start = letters.last().map_or(0, |&(_, end)| end);
        let mut is_far = false;
        for (offset, c) in own[start..].char_indices() {
            is_far = band.add_row(&letters, c);
            letters.push((c, start + offset + c.len_utf8()));
            left = left.saturating_sub(1);
            if is_far {
                break;
            }
        }
        if is_far {
            let beginning = &keyword.as_bytes()[..letters.last().map_or(0, |&(_, end)| end)];
            at = first_without(keywords, at, beginning);
            continue;
        }
        let distance = band.distance(letters.len());
        if distance <= most && own_mark == mark {
            found.push((at as u32, distance));
        }
        at += 1;
    }
    found
}

/// The matrix of distances between the beginnings of a keyword (rows) and of a word (columns); only those at most
/// `most` from the diagonal are kept, all other cells are greater than `most`.
struct Band {
    wanted: Vec<char>,
    most: usize,
    cells: Vec<usize>,
}

impl Band {
    fn new(word: &str, most: usize) -> Self {
        let wanted: Vec<char> = word.chars().collect();
        let (rows, columns) = (wanted.len() + most + 2, wanted.len() + 1);
        let mut cells = vec![most + 1; rows * columns];
        cells.iter_mut().take(columns.min(most + 1)).enumerate().for_each(|(j, cell)| *cell = j);
        Self { wanted, most, cells }
    }

    /// Compute the row after some letters and one more. Return whether no word that begins with them is near.
    fn add_row(&mut self, letters: &[(char, usize)], c: char) -> bool {
        let Self { wanted, most, cells } = self;
        let (row, columns, far) = (letters.len() + 1, wanted.len() + 1, *most + 1);
        if row > wanted.len() + *most {
            return true;
        }
        let at = |row: usize, j: usize| row * columns + j;
        let mut least = far;
        for j in row.saturating_sub(*most)..columns.min(row + *most + 1) {
            let mut distance = cells[at(row - 1, j)] + 1;
            if j > 0 {
                distance = distance.min(cells[at(row, j - 1)] + 1);
                distance = distance.min(cells[at(row - 1, j - 1)] + usize::from(wanted[j - 1] != c));
            }
            let is_exchange =
                j > 1 && wanted[j - 2] == c && letters.last().is_some_and(|&(last, _)| last == wanted[j - 1]);
            if is_exchange {
                distance = distance.min(cells[at(row - 2, j - 2)] + 1);
            }
            cells[at(row, j)] = distance.min(far);
            least = least.min(distance);
        }
        least >= far
    }

    /// Return the distance of the word from a keyword of some letters, if it is near.
    fn distance(&self, letters: usize) -> usize {
        self.cells[letters * (self.wanted.len() + 1) + self.wanted.len()]
    }
}

/// Return the first keyword after `at` that does not begin with some bytes. It is usually close, so the steps grow.
fn first_without(keywords: Strings<'_>, at: usize, beginning: &[u8]) -> usize {
    let has = |at: usize| keywords.bytes(at).starts_with(beginning);
    let (mut low, mut step) = (at + 1, 1);
    while low + step <= keywords.len() && has(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = (low + step - 1).min(keywords.len());
    while low < high {
        let middle = (low + high) / 2;
        match has(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Return the shortest spelling of a keyword in the first units that have it, in lower case.
fn spelling(
    links: &LinksView<'_>,
    key: u32,
    text: &impl Fn(u32) -> Option<(String, Language)>,
    lexer: &mut Lexer,
) -> Option<String> {
    let keyword = links.keywords.get(key as usize);
    let mut best: Option<String> = None;
    for &unit in links.keyword_units.row(key as usize).iter().take(READ) {
        let (text, language) = text(unit)?;
        for word in runs(&text) {
            let is_shorter = best.as_ref().is_none_or(|best| word.len() < best.len());
            if is_shorter && has_keyword(word, keyword, language, lexer) {
                best = Some(word.to_lowercase());
            }
        }
    }
    best
}

fn has_keyword(word: &str, keyword: &str, language: Language, lexer: &mut Lexer) -> bool {
    lexer.read(word);
    let mut has = false;
    lexer.keywords_in(language, |one| has |= one == keyword);
    has
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::strings::StringsBuf;
    use proptest::prelude::*;

    /// The definition of the distance, without sharing of rows.
    fn distance(a: &[char], b: &[char]) -> usize {
        let mut d = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                d[i][j] = match (i, j) {
                    (0, j) => j,
                    (i, 0) => i,
                    _ => {
                        let replaced = d[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                        let mut least = replaced.min(d[i - 1][j] + 1).min(d[i][j - 1] + 1);
                        if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                            least = least.min(d[i - 2][j - 2] + 1);
                        }
                        least
                    }
                };
            }
        }
        d[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn finds_all_near_keywords(
            words in prop::collection::btree_set("[abé]{1,6}(@de)?", 1..60), stem in "[abé]{1,7}", most in 1usize..3,
        ) {
            let strings: StringsBuf = words.iter().collect();
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            for mark in ["", "de"] {
                let wanted: Vec<(u32, usize)> = words.iter().enumerate().filter_map(|(at, word)| {
                    let (own, own_mark) = word.split_once('@').unwrap_or((word, ""));
                    let distance = distance(&chars(own), &chars(&stem));
                    (own_mark == mark && distance <= most).then_some((at as u32, distance))
                }).collect();
                let near = |among| near(strings.view(), among, (&stem, mark), most);
                prop_assert_eq!(&near(0..words.len()), &wanted);
                let among = beginning(strings.view(), 'b');
                let has_letter = |&(at, _): &(u32, usize)| strings.view().get(at as usize).starts_with('b');
                prop_assert_eq!(near(among), wanted.into_iter().filter(has_letter).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn slips_are_before_the_end() {
        for (a, b) in
            [("gaskett", "gasket"), ("mashine", "machine"), ("expediton", "expedition"), ("kettel", "kettle")]
        {
            assert!(is_slip(a, b) && is_slip(b, a), "{a} {b}");
        }
        for (a, b) in [("designer", "designed"), ("rescued", "rescue"), ("machine", "machin")] {
            assert!(!is_slip(a, b) && !is_slip(b, a), "{a} {b}");
        }
    }

    #[test]
    fn words_are_replaced_where_they_are() {
        let unknown = [
            Unknown { word: "gaskett", nearest: Some("gasket".into()) },
            Unknown { word: "zzzz", nearest: None },
        ];
        assert_eq!(
            replaced("\"gaskett\", gasketts, zzzz gaskett!", &unknown),
            "\"gasket\", gasketts, zzzz gasket!"
        );
    }
}
