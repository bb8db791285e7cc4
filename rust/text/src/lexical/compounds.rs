//! Compounds: runs of words that are also matched as one, and words that are also matched by their parts.
//!
//! All forms of a compound are at one place of the text, so they do not make it longer.

use super::{Compound, Kind, Lexer};
use crate::identifiers::{
    each_part, has_inner_capital, is_marked, is_numbered, is_suffix, link, Link, MAX_PARTS,
};
use std::ops::Range;

impl Lexer {
    /// Find the compounds among the words from `first` on.
    pub(super) fn find_compounds(&mut self, first: usize) {
        let mut at = first;
        while at < self.words.len() {
            let (end, kind) = self.compound_at(at);
            let is_word = end == at + 1 && !self.has_symbol(at..end);
            let has_letters = |k: usize| self.raw(k).chars().any(char::is_alphabetic);
            let has_forms = if is_word {
                has_inner_capital(self.raw(at)) || self.has_number_parts(at) || self.is_named_function(at)
            } else {
                end == at + 1 || (at..end).any(has_letters) || self.number_forms(at).is_some()
            };
            if has_forms {
                self.compounds.push(Compound { words: at..end, kind, is_word });
            }
            at = end;
        }
    }

    /// Return the end and the kind of the compound that begins at word `at`, if only of one word.
    fn compound_at(&self, at: usize) -> (usize, Kind) {
        if let Some(end) = self.file_name_end(at) {
            return (end, Kind::Code);
        }
        if let Some(number) = self.number_forms(at) {
            return (number.end, Kind::Code);
        }
        let end = self.chain_end(at, |link| !matches!(link, Link::Hyphen | Link::Slash));
        match self.link_before(end) {
            Some(Link::Slash | Link::Hyphen) => {}
            _ if end == at + 1 && self.is_elided(end) => return (end + 1, Kind::Prose),
            _ => return (end, Kind::Code),
        }
        let long = self.chain_end(at, |_| true);
        if self.is_path(at..long) {
            return (long, Kind::Code);
        }
        let long = self.chain_end(at, |link| link != Link::Slash);
        let is_code = is_marked(&self.folded, self.words[at].start..self.words[long - 1].end);
        if is_code || is_numbered(self.raw(at), self.raw(long - 1)) {
            return (long, Kind::Code);
        }
        let hyphened = self.chain_end(at, |link| link == Link::Hyphen);
        let is_prose = hyphened > end && (at..hyphened).all(|k| self.raw(k).chars().all(char::is_alphabetic));
        if is_prose {
            (hyphened, Kind::Prose)
        } else {
            (end, Kind::Code)
        }
    }

    /// Return the end of a file's name with hyphens that begins at word `at`: "2024-03-05.md". Names without hyphens are
    /// identifiers.
    fn file_name_end(&self, at: usize) -> Option<usize> {
        if self.link_before(at + 1) != Some(Link::Hyphen) {
            return None;
        }
        let end = self.chain_end(at, |link| link != Link::Slash);
        let is_file = self.link_before(end - 1) == Some(Link::Dot) && is_suffix(self.raw(end - 1));
        (is_file && self.link_before(end) != Some(Link::Slash)).then_some(end)
    }

    /// Return whether an apostrophe connects word `k` with a prefix before it, as in "O'Brien".
    fn is_elided(&self, k: usize) -> bool {
        if k >= self.words.len() || !matches!(self.gap(k), "'" | "\u{2019}") {
            return false;
        }
        let is_capital = |word: &str| word.chars().next().is_some_and(char::is_uppercase);
        self.raw(k - 1).chars().nth(2).is_none() && is_capital(self.raw(k - 1)) && is_capital(self.raw(k))
    }

    /// Return whether a chain of words is a path: it has a slash, and a second one, one before it, or a dot.
    fn is_path(&self, words: Range<usize>) -> bool {
        let count =
            |link: Link| (words.start + 1..words.end).filter(|&k| self.link_before(k) == Some(link)).count();
        let slashes = count(Link::Slash);
        let begins = self.folded[..self.words[words.start].start].ends_with('/');
        slashes > 1 || (slashes == 1 && (begins || count(Link::Dot) > 0))
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
        match word.start - before.end <= 3 {
            true => link(self.raw(k - 1), self.gap(k), self.raw(k)),
            false => None,
        }
    }

    /// Return the words that a compound adds to its own words, in lower case, and whether they are parts. These are the
    /// compound as a whole without its connectors, its runs without slashes and "@" and those with underscores, the parts
    /// of words in camel case, and forms of numbers and with symbols. Each is returned once, and only if it is not a
    /// word of the compound. Single letters are omitted.
    pub(super) fn added_words(&self, compound: &Compound) -> Vec<(String, bool)> {
        let words = compound.words.clone();
        let mut added: Vec<(String, bool)> = Vec::new();
        let mut add = |word: String, is_part: bool| {
            let is_own = words.clone().any(|k| self.lower(k) == word);
            let is_long = word.chars().nth(1).is_some() || word.bytes().all(|byte| byte.is_ascii_digit());
            if !is_own && is_long && added.iter().all(|(one, _)| *one != word) {
                added.push((word, is_part));
            }
        };
        if let Some(number) = self.number_forms(words.start).filter(|number| number.end == words.end) {
            number.wholes.into_iter().for_each(|whole| add(whole, false));
            return added;
        }
        let joined = |range: Range<usize>| range.map(|k| self.lower(k)).collect::<String>();
        for separates in [|link| link != Link::Underscore, |link| matches!(link, Link::Slash | Link::At)] {
            let mut first = words.start;
            for end in words.start + 1..=words.end {
                if end == words.end || self.link_before(end).is_none_or(separates) {
                    add(joined(first..end), false);
                    first = end;
                }
            }
        }
        add(joined(words.clone()), false);
        if let Some(whole) = self.with_symbol(words.clone()) {
            add(whole, false);
        }
        for k in words.clone() {
            each_part(self.raw(k), |part| add(part.to_lowercase(), true));
            self.each_part_of_number(k, |part| add(part.to_owned(), true));
        }
        added
    }
}
