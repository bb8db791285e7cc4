//! The words of the walk: accent-folded runs of letters and digits. Their keywords exclude stop words and are
//! stemmed ([`keywords`]).

mod abbreviations;
mod compounds;
mod keywords;
mod numbers;
mod symbols;

pub use keywords::{openers, plain_keyword, stop_words, Role};

use crate::characters::visible;
use crate::clusters::is_attached;
use crate::detection::{detect, evidence};
use crate::folding::fold_into;
use crate::languages::Language;
use std::ops::Range;

/// Position of a word in the folded text and in the lower-cased words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub start: usize,
    pub end: usize,
    lower: (usize, usize),
}

/// How the forms of a compound relate to its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An identifier, address, path or number: a query with the whole means the whole.
    Code,
    /// Words that are also written as one: "e-mail", "O'Brien".
    Prose,
}

/// A run of words with further forms.
#[derive(Debug, Clone)]
struct Compound {
    words: Range<usize>,
    kind: Kind,
    /// The compound is a single word, and its forms are parts of it.
    is_word: bool,
}

/// Number of characters that are read first to detect the language. They are enough for most English texts.
const GLANCE: usize = 240;

/// Splits texts into words; its buffers are reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Lexer {
    /// The text without accents (NFKD without combining marks), case as written.
    pub folded: String,
    /// The visible text as written, for stems that depend on marks. Empty if the text is ASCII.
    source: String,
    lower: String,
    pub words: Vec<Word>,
    /// Ascending, without common words.
    compounds: Vec<Compound>,
}

impl Lexer {
    pub fn read(&mut self, text: &str) {
        self.clear();
        self.append(text);
    }

    pub fn clear(&mut self) {
        self.folded.clear();
        self.source.clear();
        self.lower.clear();
        self.words.clear();
        self.compounds.clear();
    }

    /// Append the words of `text`. No word extends across the border to the previous text. Returns the offset
    /// in `folded` at which the new text begins.
    pub fn append(&mut self, text: &str) -> usize {
        let first_word = self.words.len();
        let start = self.append_words(text);
        self.find_compounds(first_word);
        start
    }

    /// Like [`Lexer::append`], for callers that read words and names, but no keywords, of which compounds have further ones.
    pub fn append_words(&mut self, text: &str) -> usize {
        let start = self.folded.len();
        let text = &*visible(text);
        if !text.is_ascii() || !self.source.is_empty() {
            if self.source.is_empty() {
                self.source.push_str(&self.folded);
            }
            self.source.push_str(text);
        }
        fold_into(text, &mut self.folded);
        if self.folded.is_ascii() && self.lower.len() == start {
            self.ascii_words(start);
        } else {
            self.any_words(start);
        }
        start
    }

    /// ASCII text: lower-casing preserves offsets, so words need not be copied one by one.
    fn ascii_words(&mut self, start: usize) {
        self.lower.push_str(&self.folded[start..]);
        self.lower[start..].make_ascii_lowercase();
        let bytes = self.folded.as_bytes();
        let mut at = start;
        while at < bytes.len() {
            if !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let first = at;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            self.words.push(Word { start: first, end: at, lower: (first, at) });
        }
    }

    fn any_words(&mut self, start: usize) {
        let Self { folded, lower, words, .. } = self;
        let mut open: Option<usize> = None;
        let ends = folded[start..].char_indices().map(|(i, c)| (start + i, c));
        for (at, c) in ends.chain([(folded.len(), ' ')]) {
            // Some vowel signs are not letters. Without this rule, words would end inside syllables.
            match (c.is_alphanumeric() || is_attached(c), open) {
                (true, None) => open = Some(at),
                (false, Some(first)) => {
                    let begin = lower.len();
                    let word = &folded[first..at];
                    if word.is_ascii() {
                        lower.push_str(word);
                        lower[begin..].make_ascii_lowercase();
                    } else {
                        lower.push_str(&word.to_lowercase());
                    }
                    words.push(Word { start: first, end: at, lower: (begin, lower.len()) });
                    open = None;
                }
                _ => {}
            }
        }
    }

    /// Return word `k` in lower case.
    pub fn lower(&self, k: usize) -> &str {
        let (start, end) = self.words[k].lower;
        &self.lower[start..end]
    }

    /// Iterate over the words from `from` in lower case.
    pub fn lowers(&self, from: usize) -> impl Iterator<Item = &str> {
        (from..self.words.len()).map(|k| self.lower(k))
    }

    /// Return word `k` as written, without accents.
    pub fn raw(&self, k: usize) -> &str {
        &self.folded[self.words[k].start..self.words[k].end]
    }

    /// Return the text between word `k` and the word before it.
    pub fn gap(&self, k: usize) -> &str {
        &self.folded[if k == 0 { 0 } else { self.words[k - 1].end }..self.words[k].start]
    }

    /// Return the language of a text from its first characters. The result is that of [`detect`] on their words.
    pub fn detect_start(&mut self, text: &str, characters: usize) -> Language {
        let cut = |most: usize| &text[..text.char_indices().nth(most).map_or(text.len(), |(at, _)| at)];
        self.read(cut(GLANCE.min(characters)));
        // The last word may be cut.
        let whole = self.words.len().saturating_sub(1);
        if let Some(language) = evidence(self.lowers(0).take(whole), true) {
            return language;
        }
        self.read(cut(characters));
        detect(self.lowers(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folding::{base_letters, is_fraction, BREVE, NUMERO};
    use proptest::prelude::*;
    use unicode_normalization::char::canonical_combining_class;
    use unicode_normalization::UnicodeNormalization;

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,40}", more in "\\PC{0,20}") {
            let mut lexer = Lexer::default();
            lexer.read(&text);
            let seen = visible(&text);
            let parts = seen.chars().flat_map(|c| match c {
                NUMERO => vec![c],
                _ if is_fraction(c) => std::iter::once(' ').chain(c.nfkd()).collect(),
                _ => c.nfkd().collect(),
            });
            let marks = parts.filter(|&c| canonical_combining_class(c) == 0 || c == BREVE || is_attached(c));
            let plain = marks.map(|c| base_letters(c).map_or(c.to_string(), str::to_owned));
            let breves = plain.collect::<String>().replace("и\u{306}", "й").replace("И\u{306}", "Й");
            let folded = breves.replace(BREVE, "");
            prop_assert_eq!(&lexer.folded, &folded);
            let one: Vec<String> = (0..lexer.words.len()).map(|k| lexer.lower(k).to_owned()).collect();
            lexer.append(&more);
            let both: Vec<String> = (0..lexer.words.len()).map(|k| lexer.lower(k).to_owned()).collect();
            prop_assert_eq!(&both[..one.len()], &one[..]);
            for (k, word) in both.iter().enumerate() {
                prop_assert_eq!(word, &lexer.raw(k).to_lowercase());
                let _ = lexer.gap(k);
            }
            lexer.keywords(|_| ());
        }
    }
}
