//! First step of byte-pair encoding: split text into pieces that are encoded independently.
//!
//! A piece depends only on the text from its start onwards, so splitting can begin at the start of any piece.
//! Plain ASCII, which is most of English text, is split by hand-written code; everything else by the regular
//! expression of the vocabulary. Both give the same pieces (tested against each other).

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use std::sync::LazyLock;

/// Longer pieces are cut. Only unbroken runs of letters, marks or blanks get this long; the cut bounds the
/// time and memory for such a run and changes its token count by about one per cut.
const LONGEST: usize = 1 << 13;

// tiktoken's expressions end in `\s+(?!\S)|\s+`. Look-ahead is not regular, so blanks followed by one more
// blank are a separate pattern whose last character is returned to the input.
const BLANKS: [&str; 2] = [r"\s+\s", r"\s+"];
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+$";
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+$",
);

fn compiled(pattern: &str) -> Regex {
    Regex::new_many(&[pattern, BLANKS[0], BLANKS[1]]).expect("a test compiles both expressions")
}

/// Return the length of the first piece of `rest` by the vocabulary's expression.
fn piece_by_expression(rest: &str, cased: bool) -> usize {
    static PLAIN: LazyLock<Regex> = LazyLock::new(|| compiled(CL100K));
    static CASED: LazyLock<Regex> = LazyLock::new(|| compiled(O200K));
    let expression = if cased { &CASED } else { &PLAIN };
    // Some alternative matches any character; the whole rest is a safe fallback.
    let Some(found) = expression.find(Input::new(rest).anchored(Anchored::Yes)) else { return rest.len() };
    let end = found.end();
    if found.pattern().as_usize() != 1 {
        return end;
    }
    end - rest[..end].chars().next_back().map_or(0, char::len_utf8)
}

/// Iterates over the lengths of pieces of `text`, from `at` on.
pub(crate) struct Pieces<'a> {
    cased: bool,
    text: &'a str,
    at: usize,
}

impl<'a> Pieces<'a> {
    /// `cased`: words end between lower case and upper case (o200k).
    pub(crate) fn new(cased: bool, text: &'a str, at: usize) -> Self {
        Self { cased, text, at }
    }
}

impl Iterator for Pieces<'_> {
    /// End of the piece; it starts at the end of the previous one.
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        // Only this much is searched, else an endless piece would be searched again for each part.
        let rest = &self.text[self.at..char_floor(self.text, self.at + LONGEST)];
        if rest.is_empty() {
            return None;
        }
        let length = ascii_piece(rest.as_bytes(), self.cased);
        self.at += length.unwrap_or_else(|| piece_by_expression(rest, self.cased));
        Some(self.at)
    }
}

/// Return the greatest character boundary at or before `at`.
pub(crate) fn char_floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn blank(b: u8) -> bool {
    // `\s` contains the vertical tab; `u8::is_ascii_whitespace` does not.
    matches!(b, b'\t'..=b'\r' | b' ')
}

fn mark(b: u8) -> bool {
    b.is_ascii() && !b.is_ascii_alphanumeric() && !blank(b)
}

fn run(bytes: &[u8], from: usize, member: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|&b| !member(b)).map_or(bytes.len(), |n| from + n)
}

/// Return the end of a contraction ('s 't 're 've 'm 'll 'd in any case) at `at`.
fn contraction(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'\'') {
        return None;
    }
    let first = bytes.get(at + 1)?.to_ascii_lowercase();
    if matches!(first, b's' | b't' | b'm' | b'd') {
        return Some(at + 2);
    }
    let second = bytes.get(at + 2)?.to_ascii_lowercase();
    matches!((first, second), (b'r', b'e') | (b'v', b'e') | (b'l', b'l')).then_some(at + 3)
}

/// Return the length of the first piece if it and the character after it are ASCII.
fn ascii_piece(bytes: &[u8], cased: bool) -> Option<usize> {
    let first = bytes[0];
    // A piece before a non-ASCII character is left to the expression: the piece might continue there, or a
    // contraction might (an s may be folded from U+017F).
    let closed = |end: usize| bytes.get(end).is_none_or(u8::is_ascii).then_some(end);
    if !first.is_ascii() {
        return None;
    }
    if !cased && first == b'\'' {
        if let Some(end) = contraction(bytes, 0) {
            return Some(end);
        }
        closed(1)?;
    }
    let starts_word = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphabetic);
    let opener = !first.is_ascii_alphanumeric() && first != b'\r' && first != b'\n';
    if starts_word(0) || (opener && starts_word(1)) {
        let from = usize::from(!starts_word(0));
        return if cased {
            cased_word(bytes, from)
        } else {
            closed(run(bytes, from, |b| b.is_ascii_alphabetic()))
        };
    }
    if opener && bytes.get(1).is_some_and(|b| !b.is_ascii()) {
        return None;
    }
    if first.is_ascii_digit() {
        let end = run(&bytes[..bytes.len().min(3)], 0, |b| b.is_ascii_digit());
        return if end == 3 { Some(3) } else { closed(end) };
    }
    let from = usize::from(first == b' ');
    if bytes.get(from).copied().is_some_and(mark) {
        let end = closed(run(bytes, from, mark))?;
        return Some(run(bytes, end, |b| matches!(b, b'\r' | b'\n') || (cased && b == b'/')));
    }
    let end = closed(run(bytes, 0, blank))?;
    if let Some(last) = bytes[..end].iter().rposition(|&b| matches!(b, b'\r' | b'\n')) {
        return Some(last + 1);
    }
    // The last blank belongs to the following word.
    Some(if end == bytes.len() || end == 1 { end } else { end - 1 })
}

/// Upper case then lower case, and a contraction.
fn cased_word(bytes: &[u8], from: usize) -> Option<usize> {
    let upper = run(bytes, from, |b| b.is_ascii_uppercase());
    let end = run(bytes, upper, |b| b.is_ascii_lowercase());
    if bytes.get(end).is_some_and(|b| !b.is_ascii()) {
        return None;
    }
    if bytes.get(end) == Some(&b'\'') {
        if bytes[end..].iter().take(3).any(|b| !b.is_ascii()) {
            return None;
        }
        return Some(contraction(bytes, end).unwrap_or(end));
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(cased: bool, text: &str) -> Vec<usize> {
        Pieces::new(cased, text, 0).collect()
    }

    fn plain(cased: bool, text: &str) -> Vec<usize> {
        let mut ends = vec![];
        let mut at = 0;
        while at < text.len() {
            at += piece_by_expression(&text[at..], cased);
            ends.push(at);
        }
        ends
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]
        #[test]
        fn by_hand_equals_the_expression(text in "([a-cSTREVLMD'stremvld0-9 \t\n\r.!/(é\u{17f}中 \u{0b}\u{1f}_-]|  |'s|'Ll|\n\n| \n){0,40}") {
            for cased in [false, true] {
                prop_assert_eq!(ends(cased, &text), plain(cased, &text));
            }
        }

        #[test]
        fn any_text_too(text in any::<String>()) {
            for cased in [false, true] {
                prop_assert_eq!(ends(cased, &text), plain(cased, &text));
            }
        }
    }

    #[test]
    fn a_run_without_end_is_cut_between_characters() {
        let text = "é".repeat(LONGEST);
        let ends = ends(false, &text);
        assert_eq!(*ends.last().unwrap(), text.len());
        assert!(ends.len() >= 2 && ends.iter().all(|&e| text.is_char_boundary(e)));
    }
}
