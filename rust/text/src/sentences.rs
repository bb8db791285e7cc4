//! Split text into sentences: byte spans, trimmed, never empty, in order, without overlap.

use super::abbreviations::ends_nothing;
use super::ascii_sentences::each_ascii_stretch;
use super::pieces::char_floor;
use crate::error::{Error, Result};
use crate::progress::Progress;
use unicode_segmentation::UnicodeSegmentation;

/// How sentences are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Splitter {
    /// The boundaries of UAX #29 and nothing else.
    Uax29,
    /// The boundaries of UAX #29, except after abbreviations and initials, before a word in lower case, and
    /// at a wrapped line. Fragments shorter than [`SHORTEST`] characters are merged with a neighbour in their
    /// paragraph. Blank lines always separate.
    #[default]
    Standard,
}

/// Shorter fragments, in characters, are not sentences.
pub const SHORTEST: usize = 15;
/// A line at least this long that ends without a full stop is taken for a wrapped one.
const WRAPPED: usize = 50;
/// A sentence ends after this many characters without letter or digit. This also keeps the search for
/// boundaries linear, since it looks ahead from each blank after a full stop.
const JUNK: usize = 64;
/// Bytes searched for boundaries between two checks of the progress. A longer sentence is cut.
const STEP: usize = 1 << 20;

impl Splitter {
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "uax29" => Ok(Self::Uax29),
            "standard" => Ok(Self::Standard),
            _ => {
                Err(Error::input(format!("unknown sentence splitter {name:?}: there are standard and uax29")))
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Uax29 => "uax29",
            Self::Standard => "standard",
        }
    }

    /// Append the spans of the sentences of `text` to `out`.
    pub fn split(self, text: &str, progress: &Progress, out: &mut Vec<(usize, usize)>) -> Result<()> {
        if self == Self::Uax29 {
            return each_stretch(text, progress, |start, end| out.extend(trimmed(text, start, end)));
        }
        let mut start = 0;
        while start < text.len() {
            let end = paragraph_end(text, start);
            standard(text, start, end, progress, out)?;
            start = end;
        }
        Ok(())
    }
}

/// Return `start..end` without blanks at its ends, or `None` if it is blank.
pub(crate) fn trimmed(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let part = &text[start..end];
    let start = start + (part.len() - part.trim_start().len());
    let part = part.trim();
    (!part.is_empty()).then_some((start, start + part.len()))
}

/// Return the end of the paragraph that begins at `start`: after the next blank line.
fn paragraph_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(line) = bytes[at..].iter().position(|&b| b == b'\n') {
        at += line + 1;
        let next = bytes[at..].iter().position(|b| !matches!(b, b' ' | b'\t' | b'\r'));
        match next {
            Some(blank) if bytes[at + blank] == b'\n' => return at + blank + 1,
            Some(blank) => at += blank,
            None => break,
        }
    }
    text.len()
}

/// Call `see` with the stretches between boundaries of UAX #29, untrimmed.
fn each_stretch(text: &str, progress: &Progress, mut see: impl FnMut(usize, usize)) -> Result<()> {
    let (mut from, mut junk) = (0, 0);
    for (at, c) in text.char_indices() {
        if c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric()) {
            junk = 0;
            continue;
        }
        junk += 1;
        if junk >= JUNK {
            let to = at + c.len_utf8();
            within(text, from, to, progress, &mut see)?;
            (from, junk) = (to, 0);
        }
    }
    within(text, from, text.len(), progress, &mut see)
}

/// Like [`each_stretch`] for a part without junk, 1 MiB at a time, so that a cancellation is noticed.
fn within(
    text: &str,
    mut from: usize,
    to: usize,
    progress: &Progress,
    see: &mut impl FnMut(usize, usize),
) -> Result<()> {
    while to - from > STEP {
        progress.check()?;
        let part = &text[from..char_floor(text, from + STEP)];
        let mut ends: Vec<usize> = Vec::new();
        each_bound(part, |_, end| ends.push(from + end));
        // The end of the part may have hidden the text that decides on the last two.
        let sure = if ends.len() > 2 { ends.len() - 2 } else { ends.len() };
        for &end in &ends[..sure] {
            see(from, end);
            from = end;
        }
    }
    each_bound(&text[from..to], |start, end| see(from + start, from + end));
    Ok(())
}

/// Call `see` with the stretches of a text between boundaries of UAX #29.
fn each_bound(text: &str, mut see: impl FnMut(usize, usize)) {
    if text.is_ascii() {
        return each_ascii_stretch(text.as_bytes(), see);
    }
    for (at, part) in text.split_sentence_bound_indices() {
        see(at, at + part.len());
    }
}

/// The sentences of one paragraph.
fn standard(
    text: &str,
    start: usize,
    end: usize,
    progress: &Progress,
    out: &mut Vec<(usize, usize)>,
) -> Result<()> {
    let first = out.len();
    let paragraph = &text[start..end];
    let mut line_start = start;
    each_stretch(paragraph, progress, |from, to| {
        let Some(span) = trimmed(text, start + from, start + to) else { return };
        let Some(last) = (out.len() > first).then(|| out.len() - 1) else {
            line_start = span.0;
            out.push(span);
            return;
        };
        let before = out[last];
        let gap = &text[before.1..span.0];
        let wrapped = gap.contains(['\n', '\r', '\u{2028}', '\u{85}']);
        let line = before.1.saturating_sub(line_start);
        if wrapped {
            line_start = span.0;
        }
        let whole = &text[before.0..before.1];
        let short = shorter(whole) || shorter(&text[span.0..span.1]);
        if short || goes_on(whole, &text[span.0..span.1], wrapped.then_some(line)) {
            out[last].1 = span.1;
        } else {
            out.push(span);
        }
    })
}

fn shorter(text: &str) -> bool {
    // With at most four bytes per character, a text this long needs no counting.
    text.len() < SHORTEST * 4 && text.chars().count() < SHORTEST
}

/// Return whether `after` continues the sentence `before`; `line` is the length of the last line of `before`
/// if a line break separates them.
fn goes_on(before: &str, after: &str, line: Option<usize>) -> bool {
    let bare = before.trim_end_matches(['"', '\'', ')', ']', '}', '”', '’', '»']);
    let opening = after.trim_start_matches(['"', '\'', '(', '[', '“', '‘', '«']);
    let Some(next) = opening.chars().next() else { return false };
    if next.is_lowercase() {
        return true;
    }
    match bare.chars().next_back() {
        // If a closing mark follows, the full stop is not part of an abbreviation.
        Some('.') if bare.len() == before.len() => ends_nothing(bare, opening),
        Some('.' | '!' | '?' | '…' | ':' | ';' | '。' | '！' | '？' | '।' | '؟') => false,
        _ => match line {
            Some(length) => length >= WRAPPED && !opens_an_item(after, next),
            None => false,
        },
    }
}

/// Return whether a line begins a list item, a row or a heading.
fn opens_an_item(line: &str, next: char) -> bool {
    if next.is_numeric() {
        let rest = line.trim_start_matches(char::is_numeric);
        return rest.starts_with(['.', ')', '|', '\t']);
    }
    !next.is_alphanumeric() && !line.starts_with(['(', '"', '“', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<&str> {
        let mut spans = Vec::new();
        Splitter::Standard.split(text, &Progress::none(), &mut spans).unwrap();
        spans.iter().map(|&(a, b)| &text[a..b]).collect()
    }

    #[test]
    fn abbreviations_and_initials_end_nothing() {
        for whole in [
            "Dr. Smith met Mr. Jones at No. 5 St. James Street in the U.S. Senate building.",
            "J. K. Rowling wrote vol. 3 of it, e.g. Chapter 7, with Prof. A. B. Cole Jr. and others.",
            "He asked \"Why?\" and left the building without an answer.",
            "Yahoo! is a company that was founded in January 1994.",
            "The line was wrapped in the middle of a long sentence by\nJohn Smith, who wrote it.",
        ] {
            assert_eq!(split(whole), [whole]);
        }
    }

    #[test]
    fn sentences_part() {
        assert_eq!(
            split("He moved to the U.S. He stayed there. \"It was good!\" Then came a third one."),
            ["He moved to the U.S.", "He stayed there. \"It was good!\"", "Then came a third one."]
        );
        assert_eq!(
            split(
                "A heading\n\nThe first sentence is here. The second is 3.5 long.\r\n \r\nlower case start"
            ),
            ["A heading", "The first sentence is here.", "The second is 3.5 long.", "lower case start"]
        );
        assert_eq!(
            split("- first item of the list\n- second item of the list"),
            ["- first item of the list", "- second item of the list"]
        );
        assert_eq!(
            split("Only this was said, no. Then he went away."),
            ["Only this was said, no.", "Then he went away."]
        );
        assert_eq!(split("这是第一个句子，它比较长一些吧。这是第二个句子，它也比较长一些。").len(), 2);
        assert!(split(" \n\n \t ").is_empty());
    }

    #[test]
    fn names_of_splitters() {
        for splitter in [Splitter::Uax29, Splitter::Standard] {
            assert_eq!(Splitter::by_name(splitter.name()), Ok(splitter));
        }
        assert!(Splitter::by_name("punkt").is_err());
    }

    #[test]
    fn hostile_runs_take_linear_time() {
        for text in [" ", ")", ". ", "a.) ", "\n", "\u{3000}", "x", "1. ", "\u{301}", ".\u{301} "] {
            let text = format!("An end.{}", text.repeat(100_000));
            let mut spans = Vec::new();
            Splitter::Standard.split(&text, &Progress::none(), &mut spans).unwrap();
            Splitter::Uax29.split(&text, &Progress::none(), &mut spans).unwrap();
            assert!(!spans.is_empty());
        }
    }

    #[test]
    fn long_texts_are_cut_where_short_ones_are() {
        let text = "Mr. A. said (no?) 1 2 3. And so it went on for a while. ".repeat(2 * STEP / 50);
        let mut spans = Vec::new();
        Splitter::Uax29.split(&text, &Progress::none(), &mut spans).unwrap();
        let plain: Vec<&str> = text.split_sentence_bounds().map(str::trim).collect();
        assert!(spans.iter().map(|&(a, b)| &text[a..b]).eq(plain));
        let progress = Progress::none();
        progress.stop();
        assert_eq!(Splitter::Standard.split(&text, &progress, &mut spans), Err(Error::Cancelled));
    }

    proptest! {
        #[test]
        fn spans_hold_all_but_blanks(text in "(Mr\\. |[A-Z][a-z]{0,9}|[.!?]|[\n ]|\n\n|\\)|“|é|中。|👩‍👧|\u{0}|\u{85}|.){0,60}") {
            for splitter in [Splitter::Standard, Splitter::Uax29] {
                let mut spans = Vec::new();
                splitter.split(&text, &Progress::none(), &mut spans).unwrap();
                let mut at = 0;
                for &(a, b) in &spans {
                    prop_assert!(a >= at && b > a);
                    prop_assert_eq!(text[a..b].trim(), &text[a..b]);
                    prop_assert_eq!(text[at..a].trim(), "");
                    at = b;
                }
                prop_assert_eq!(text[at..].trim(), "");
            }
        }
    }
}
