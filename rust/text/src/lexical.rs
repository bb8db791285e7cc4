//! The words of the walk: accent-folded runs of letters and digits. Their keywords exclude stop words and are
//! stemmed ([`keywords`]).

mod keywords;

pub use keywords::{openers, plain_keyword, stop_words, Role};

use crate::clusters::is_attached;
use crate::detection::{detect, evidence};
use crate::folding::fold_into;
use crate::identifiers::{each_part, has_inner_capital, is_marked, is_numbered, link, Link, MAX_PARTS};
use crate::languages::Language;
use std::ops::Range;

/// Position of a word in the folded text and in the lower-cased words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub start: usize,
    pub end: usize,
    lower: (usize, usize),
}

/// Number of characters that are read first to detect the language. They are enough for most English texts.
const GLANCE: usize = 240;

/// Splits texts into words; its buffers are reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Lexer {
    /// The text without accents (NFKD without combining marks), case as written.
    pub folded: String,
    /// The text as written, for stems that depend on marks. Empty if the text is ASCII.
    source: String,
    lower: String,
    pub words: Vec<Word>,
    /// The words of each code identifier that has parts: ascending ranges without common words.
    identifiers: Vec<Range<usize>>,
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
        self.identifiers.clear();
    }

    /// Append the words of `text`. No word extends across the border to the previous text. Returns the offset
    /// in `folded` at which the new text begins.
    pub fn append(&mut self, text: &str) -> usize {
        let (start, first_word) = (self.folded.len(), self.words.len());
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
        self.find_identifiers(first_word);
        start
    }

    /// Find the code identifiers among the words from `first` on.
    fn find_identifiers(&mut self, first: usize) {
        let mut at = first;
        while at < self.words.len() {
            let mut end = self.chain_end(at, |link| link != Link::Hyphen);
            if self.link_before(end) == Some(Link::Hyphen) {
                let long = self.chain_end(at, |_| true);
                let is_code = is_marked(&self.folded, self.words[at].start..self.words[long - 1].end);
                if is_code || is_numbered(self.raw(at), self.raw(long - 1)) {
                    end = long;
                }
            }
            let has_letters = |k: usize| self.raw(k).chars().any(char::is_alphabetic);
            let is_chain = end > at + 1 && (at..end).any(has_letters);
            if is_chain || (at..end).any(|k| has_inner_capital(self.raw(k))) {
                self.identifiers.push(at..end);
            }
            at = end;
        }
    }

    /// Return the end of the run of words, from `first` on, that such links connect, at most [`MAX_PARTS`].
    fn chain_end(&self, first: usize, connects: impl Fn(Link) -> bool) -> usize {
        let mut end = first + 1;
        while end < first + MAX_PARTS && self.link_before(end).is_some_and(&connects) {
            end += 1;
        }
        end
    }

    /// Return how word `k` is connected with the one before it.
    fn link_before(&self, k: usize) -> Option<Link> {
        let (before, word) = (self.words[k - 1], self.words.get(k)?);
        // Few words are so close to each other.
        match word.start - before.end <= 2 {
            true => link(self.raw(k - 1), self.gap(k), self.raw(k)),
            false => None,
        }
    }

    /// Return the words that a code identifier adds to its own words, in lower case, and whether they are
    /// parts. These are runs with underscores, the identifier as a whole without its connectors, and the
    /// parts of words in camel case. Each is returned once, and only if it is not a word of the identifier.
    /// Single characters are omitted.
    fn added_words(&self, words: Range<usize>) -> Vec<(String, bool)> {
        let mut added: Vec<(String, bool)> = Vec::new();
        let mut add = |word: String, is_part: bool| {
            let is_own = words.clone().any(|k| self.lower(k) == word);
            let is_new = || added.iter().all(|(one, _)| *one != word);
            if !is_own && word.chars().nth(1).is_some() && is_new() {
                added.push((word, is_part));
            }
        };
        let mut first = words.start;
        for end in words.start + 1..=words.end {
            if end == words.end || self.link_before(end) != Some(Link::Underscore) {
                add((first..end).map(|k| self.lower(k)).collect(), false);
                first = end;
            }
        }
        add(words.clone().map(|k| self.lower(k)).collect(), false);
        for k in words.clone() {
            each_part(self.raw(k), |part| add(part.to_lowercase(), true));
        }
        added
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
    use crate::folding::BREVE;
    use proptest::prelude::*;
    use unicode_normalization::char::canonical_combining_class;
    use unicode_normalization::UnicodeNormalization;

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,40}", more in "\\PC{0,20}") {
            let mut lexer = Lexer::default();
            lexer.read(&text);
            let parts = text.chars().flat_map(|c| c.nfkd());
            let marks = parts.filter(|&c| canonical_combining_class(c) == 0 || c == BREVE || is_attached(c));
            let breves = marks.collect::<String>().replace("и\u{306}", "й").replace("И\u{306}", "Й");
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
