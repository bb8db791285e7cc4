//! Compounds: runs of words that are also matched as one, and words that are also matched by their parts.
//!
//! All forms of a compound are at one place of the text, so they do not make it longer.

use super::numbers::HEXADECIMAL;
use super::symbols::NAMED_FUNCTION;
use super::{Compound, Kind, Lexer};
use crate::folding::is_unspaced;
use crate::identifiers::{
    each_part, has_inner_capital, is_marked, is_numbered, is_suffix, link, Link, MAX_PARTS,
};
use std::ops::Range;

/// Ends of English words after an apostrophe.
const ENCLITICS: [&str; 7] = ["s", "t", "d", "ll", "re", "ve", "m"];
/// Words of French, Italian and Catalan that lose their last vowel before another one.
const ELIDED: [&str; 22] = [
    "l", "d", "j", "m", "t", "s", "c", "n", "qu", "jusqu", "lorsqu", "puisqu", "quoiqu", "un", "dell", "all",
    "nell", "dall", "sull", "coll", "quell", "quest",
];

fn is_apostrophe(gap: &str) -> bool {
    matches!(gap, "'" | "\u{2019}")
}

impl Lexer {
    /// Find the compounds among the words from `first` on.
    pub(super) fn find_compounds(&mut self, first: usize) {
        let mut at = first;
        while at < self.words.len() {
            if self.is_plain(at) {
                at += 1;
                continue;
            }
            let (end, kind) = self.compound_at(at);
            let is_word = self.is_word(at..end);
            if self.has_forms(at..end, is_word) {
                self.compounds.push(Compound { words: at..end, kind, is_word });
            }
            at = end;
        }
    }

    fn is_word(&self, words: Range<usize>) -> bool {
        words.len() == 1 && !self.has_symbol(words)
    }

    /// Return whether a run of words is also matched in other forms than its words.
    fn has_forms(&self, words: Range<usize>, is_word: bool) -> bool {
        let at = words.start;
        if is_word {
            return has_inner_capital(self.raw(at))
                || self.has_number_parts(at)
                || self.is_named_function(at);
        }
        let has_letters = |k: usize| self.raw(k).chars().any(char::is_alphabetic);
        words.len() == 1 || words.clone().any(has_letters) || self.number_forms(at).is_some()
    }

    /// Return whether a word is of small letters and digits behind its first letter, between blanks or before a comma or full
    /// stop. No compound begins with it and it has no forms alone; nearly all words are such, and need no further look.
    fn is_plain(&self, at: usize) -> bool {
        let (word, bytes) = (self.words[at], self.folded.as_bytes());
        let Some(next) = self.words.get(at + 1) else { return false };
        let is_blank = |byte: u8| matches!(byte, b' ' | b'\n');
        let is_apart = match next.start - word.end {
            1 => is_blank(bytes[word.end]),
            2 => matches!(bytes[word.end], b'.' | b',') && is_blank(bytes[word.end + 1]),
            _ => false,
        };
        if !is_apart || word.start > 0 && !is_blank(bytes[word.start - 1]) {
            return false;
        }
        let (first, rest) = (bytes[word.start], &bytes[word.start + 1..word.end]);
        // A capital may show that a function word is a name.
        let begins = first.is_ascii_lowercase() || first.is_ascii_uppercase() && rest.len() >= NAMED_FUNCTION;
        begins
            && rest.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && (rest.len() + 1 < HEXADECIMAL || rest.iter().all(u8::is_ascii_lowercase))
    }

    /// Return the end and the kind of the compound that begins at word `at`, if only of one word.
    fn compound_at(&self, at: usize) -> (usize, Kind) {
        if let Some(end) = self.file_name_end(at) {
            return (end, Kind::Code);
        }
        if let Some(number) = self.number_forms(at) {
            return (number.end, Kind::Code);
        }
        if let Some(end) = self.initials_end(at) {
            return (end, Kind::Prose);
        }
        let end = self.chain_end(at, |link| !matches!(link, Link::Hyphen | Link::Slash));
        match self.link_before(end) {
            Some(Link::Slash | Link::Hyphen) => {}
            _ if end == at + 1 && self.has_apostrophe(end) => {
                let last = (end..at + MAX_PARTS).find(|&k| !self.has_apostrophe(k));
                return (last.unwrap_or(at + MAX_PARTS), Kind::Prose);
            }
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

    /// Return whether an apostrophe is part of a name or word, before word `k`: "O'Brien", "Xi'an", "Qur'an", or in Hebrew a
    /// quotation mark as in צה"ל. Words that are only written short are apart: "dog's", "they're", "l'eau".
    fn has_apostrophe(&self, k: usize) -> bool {
        if k >= self.words.len() || !is_apostrophe(self.gap(k)) && !matches!(self.gap(k), "\"" | "\u{5f4}") {
            return false;
        }
        let is_hebrew = |word: &str| word.starts_with(|c| ('\u{5d0}'..='\u{5ea}').contains(&c));
        if !is_apostrophe(self.gap(k)) {
            return is_hebrew(self.raw(k - 1)) && is_hebrew(self.raw(k));
        }
        let is_word = |k: usize| self.raw(k).chars().all(|c| c.is_alphabetic() && !is_unspaced(c));
        is_word(k - 1) && is_word(k) && !ENCLITICS.contains(&self.lower(k)) && !self.is_elided(k - 1)
    }

    /// Return whether word `k` is an article or another short word that is attached to the next word: "l'eau", "dell'arte".
    /// In "L'Oréal" it is a part of a name.
    pub(super) fn is_elided(&self, k: usize) -> bool {
        if k + 1 >= self.words.len() || !is_apostrophe(self.gap(k + 1)) || !ELIDED.contains(&self.lower(k)) {
            return false;
        }
        let is_capital = |k: usize| self.raw(k).starts_with(char::is_uppercase);
        let begins = self.lower(k + 1).starts_with(['a', 'e', 'i', 'o', 'u', 'y', 'h']);
        begins && !(is_capital(k) && is_capital(k + 1))
    }

    /// Return the end of the initials that begin at word `at`: "U.S.A.", "Ph.D.", "p.m."; not "e.g." and "i.e.".
    fn initials_end(&self, at: usize) -> Option<usize> {
        let is_letter = |k: usize| {
            let mut letters = self.raw(k).chars();
            letters.next().is_some_and(|c| c.is_alphabetic() && !is_unspaced(c)) && letters.next().is_none()
        };
        let is_capital = |k: usize| self.raw(k).starts_with(char::is_uppercase);
        if !is_letter(at) && self.raw(at) != "Ph" {
            return None;
        }
        let limit = self.words.len().min(at + MAX_PARTS);
        let end = (at + 1..limit).find(|&k| self.gap(k) != "." || !is_letter(k)).unwrap_or(limit);
        let is_closed = is_capital(end - 1) || self.folded[self.words[end - 1].end..].starts_with('.');
        let is_abbreviation = matches!((self.raw(at), self.raw(end - 1)), ("e", "g") | ("i", "e"));
        (end > at + 1 && is_closed && !is_abbreviation).then_some(end)
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
            let has_percent = self.symbol_after(words.end - 1) == "%";
            for whole in number.wholes {
                if has_percent {
                    add(format!("{whole}%"), false);
                }
                add(whole, false);
            }
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
            self.plain_measure(k).into_iter().for_each(|whole| add(whole, false));
            each_part(self.raw(k), |part| add(part.to_lowercase(), true));
            self.each_part_of_number(k, |part| add(part.to_owned(), true));
        }
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_words_begin_no_compound(text in "([A-Z]?[a-z]{0,5}[0-9]{0,4}|[0-9a-f]{7,9}|Will|May|Ph|x|gb|kg|[ \n]|, |\\. |[-.,;:'/_@#&+%^\"]){0,24}") {
            let mut lexer = Lexer::default();
            lexer.read(&text);
            for at in (0..lexer.words.len()).filter(|&at| lexer.is_plain(at)) {
                let end = lexer.compound_at(at).0;
                prop_assert_eq!(end, at + 1, "{}", lexer.raw(at));
                prop_assert!(!lexer.has_forms(at..end, lexer.is_word(at..end)), "{}", lexer.raw(at));
            }
        }
    }
}
