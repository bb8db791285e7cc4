//! Symbols that belong to a word: `C++`, `C#`, `.NET`, `--force`, `$HOME`, `@anna`, `#garden`, `45 %`, `#12`, `.75`. And function words that
//! capitals show to be names: the WHO, the IT department.

use super::numbers::is_digits;
use super::Lexer;
use crate::folding::{is_unspaced, WordSet};
use std::ops::Range;
use std::sync::OnceLock;

/// English function words that are names with a capital: May, Will, the film Her. Titles also have capitals at "Of the".
const NAMES: &str = "may will us it who her him them you now once can just";
/// Length in bytes of the longest of [`NAMES`].
pub(super) const NAMED_FUNCTION: usize = 4;

fn names() -> &'static WordSet {
    static SET: OnceLock<WordSet> = OnceLock::new();
    SET.get_or_init(|| WordSet::new(NAMES))
}

/// Longest word before "++" or "#", in characters: "Objective-C++" is one of the longest names.
const MAX_LETTERS: usize = 16;

/// Return whether a character is a letter of a script with blanks between words. In others, a symbol belongs to no word.
fn is_spaced_letter(c: char) -> bool {
    c.is_alphabetic() && !is_unspaced(c)
}

impl Lexer {
    /// Return the text in lower case if it is one word with symbols: "c#", ".net".
    pub fn symbol_word(&self) -> Option<String> {
        let whole = if self.words.len() == 1 { self.with_symbol(0..1) } else { None };
        whole.filter(|whole| whole.len() == self.folded.len())
    }

    /// Return whether symbols at its beginning or end belong to a run of words.
    pub(super) fn has_symbol(&self, words: Range<usize>) -> bool {
        !self.symbol_before(words.start).is_empty() || !self.symbol_after(words.end - 1).is_empty()
    }

    /// Return a run of words in lower case with its symbols, if it has any.
    pub(super) fn with_symbol(&self, words: Range<usize>) -> Option<String> {
        let (before, after) = (self.symbol_before(words.start), self.symbol_after(words.end - 1));
        let middle = || words.clone().map(|k| self.lower(k)).collect::<String>();
        let is_fraction = before == "." && self.lower(words.start).starts_with(|c: char| c.is_ascii_digit());
        let before = if is_fraction { "0." } else { before };
        (!before.is_empty() || !after.is_empty()).then(|| format!("{before}{}{after}", middle()))
    }

    /// Return the symbol that belongs to the beginning of word `k`: it follows a blank, a bracket or a quotation mark.
    fn symbol_before(&self, k: usize) -> &str {
        let (start, bytes) = (self.words[k].start, self.folded.as_bytes());
        let size = match start.checked_sub(1).map(|at| bytes[at]) {
            Some(b'.' | b'$' | b'@' | b'#') => 1,
            Some(b'-') if start > 1 && bytes[start - 2] == b'-' => 2,
            _ => return "",
        };
        let is_number = || is_digits(self.raw(k)) && matches!(bytes[start - 1], b'.' | b'#');
        let has_symbol = self.raw(k).starts_with(is_spaced_letter) || is_number();
        let is_free = self.folded[..start - size].chars().next_back().is_none_or(|c| {
            c.is_whitespace()
                || matches!(c, '(' | '[' | '{' | '"' | '\'' | '`' | '\u{201c}' | '\u{2018}' | '\u{ab}')
        });
        if has_symbol && is_free {
            &self.folded[start - size..start]
        } else {
            ""
        }
    }

    /// Return the symbol that belongs to the end of word `k`.
    pub(super) fn symbol_after(&self, k: usize) -> &str {
        let rest = &self.folded[self.words[k].end..];
        let symbol = match rest.as_bytes() {
            [b'%', ..] | [b' ', b'%', ..] => return if is_digits(self.raw(k)) { "%" } else { "" },
            [b'+', b'+', ..] => &rest[..2],
            [b'#', ..] => &rest[..1],
            _ => return "",
        };
        let raw = self.raw(k);
        let is_name = raw.chars().all(is_spaced_letter) && raw.chars().nth(MAX_LETTERS).is_none();
        let follows = rest[symbol.len()..].chars().next();
        if is_name && !follows.is_some_and(|c| c.is_alphabetic() || matches!(c, '+' | '#')) {
            symbol
        } else {
            ""
        }
    }

    /// Return whether capitals show that a word is a name even if it is a function word: it is in capitals next to a word
    /// that is not, or it is one of [`NAMES`] with a capital after a word in lower case.
    pub(super) fn is_named_function(&self, k: usize) -> bool {
        let raw = self.raw(k);
        if !raw.starts_with(char::is_uppercase) || raw.chars().nth(1).is_none() {
            return false;
        }
        let begins_lower = |k: usize| self.raw(k).starts_with(char::is_lowercase);
        let has_lower = |k: usize| self.raw(k).chars().any(char::is_lowercase);
        match has_lower(k) {
            false => (k > 0 && has_lower(k - 1)) || (k + 1 < self.words.len() && has_lower(k + 1)),
            true => k > 0 && self.gap(k) == " " && begins_lower(k - 1) && names().has(self.lower(k)),
        }
    }
}
