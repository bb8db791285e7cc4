//! The keywords, names and subjects of a query that exist in the index.

use crate::rank::links_view::LinksView;
use crate::text::lexical::Lexer;
use crate::text::names::MAX_PHRASE;
use crate::text::strings::Strings;

/// Ids of a query's keywords, names and subjects: ascending and distinct.
#[derive(Debug, Clone, Default)]
pub struct Question {
    pub keywords: Vec<u32>,
    pub names: Vec<u32>,
    pub subjects: Vec<u32>,
    lexer: Lexer,
}

impl Question {
    /// Read a query. Names and subjects are all known phrases of 1 to 8 words, in any case.
    pub fn read(&mut self, links: &LinksView<'_>, text: &str) {
        self.keywords.clear();
        self.names.clear();
        self.subjects.clear();
        self.lexer.read(text);
        self.lexer.query_keywords(links.languages(), |word| {
            self.keywords.extend(links.keywords.position(word).map(|at| at as u32));
        });
        let mut phrase = String::new();
        for first in 0..self.lexer.words.len() {
            known_phrases(&self.lexer, first, links.names, &mut phrase, &mut self.names);
            known_phrases(&self.lexer, first, links.subjects, &mut phrase, &mut self.subjects);
        }
        for ids in [&mut self.keywords, &mut self.names, &mut self.subjects] {
            ids.sort_unstable();
            ids.dedup();
        }
    }
}

/// Find known phrases that begin at word `first`. The strings are sorted: if none begins with a phrase, none
/// begins with a longer one.
fn known_phrases(
    text: &Lexer,
    first: usize,
    strings: Strings<'_>,
    phrase: &mut String,
    found: &mut Vec<u32>,
) {
    phrase.clear();
    let mut low = 0;
    for k in first..text.words.len().min(first + MAX_PHRASE) {
        if k > first {
            phrase.push(' ');
        }
        phrase.push_str(text.lower(k));
        low = first_not_below(strings, low, phrase.as_bytes());
        if low == strings.len() || !strings.bytes(low).starts_with(phrase.as_bytes()) {
            return;
        }
        if strings.bytes(low).len() == phrase.len() {
            found.push(low as u32);
        }
    }
}

/// Return the first string from `low` on that is not less than `phrase`. A longer phrase is mostly just after
/// its prefix, so the steps grow from one.
fn first_not_below(strings: Strings<'_>, mut low: usize, phrase: &[u8]) -> usize {
    let below = |at: usize| strings.bytes(at) < phrase;
    let (mut step, mut high) = (if low == 0 { strings.len() } else { 1 }, strings.len());
    while step < high - low {
        if !below(low + step) {
            high = low + step;
            break;
        }
        low += step + 1;
        step *= 2;
    }
    while low < high {
        let middle = (low + high) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
