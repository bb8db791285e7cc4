//! A piece of a document, and the cutting of sentences that are too long for one piece.

use super::block::Span;
use super::bpe::Counter;
use super::sentences::trimmed;
use super::windows::truncate_with;
use crate::error::Result;
use crate::progress::Progress;

/// A piece of a document: byte span, tokens of its text, and its sentences (byte spans in the
/// document, ascending).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub span: Span,
    pub tokens: usize,
    pub sentences: Vec<Span>,
    /// The context of a block that the piece continues: whole lines, printed before its text.
    pub before: String,
    /// Printed after its text: a line that closes a construct opened by `before` or the text.
    pub after: String,
}

/// Cut a sentence of more than `most` tokens into pieces of at most that: at a blank near the end of the
/// window if there is one, else between graphemes.
pub(crate) fn cut_sentence(
    text: &str,
    span: (usize, usize),
    most: usize,
    counter: &mut Counter,
    progress: &Progress,
    out: &mut Vec<(usize, usize)>,
) -> Result<()> {
    let mut start = span.0;
    while start < span.1 {
        progress.check()?;
        let rest = &text[start..span.1];
        let mut end = truncate_with(counter, rest, most);
        if end == 0 {
            // A single grapheme with more tokens than a chunk may hold stays whole.
            end = first_grapheme(rest);
        } else if end < rest.len() {
            end = word_end(rest, end);
        }
        out.extend(trimmed(text, start, start + end));
        start += end;
    }
    Ok(())
}

fn first_grapheme(text: &str) -> usize {
    use unicode_segmentation::UnicodeSegmentation;
    const LONGEST: usize = 4096;
    let part = &text[..super::pieces::char_floor(text, LONGEST.min(text.len()))];
    part.graphemes(true).next().map_or(text.len(), str::len)
}

/// Return `end`, or the last blank within the length of a word before it.
fn word_end(text: &str, end: usize) -> usize {
    const WORD: usize = 48;
    let bytes = text.as_bytes();
    let lowest = end.saturating_sub(WORD).max(end / 2) + 1;
    (lowest..=end).rev().find(|&i| bytes[i].is_ascii_whitespace()).unwrap_or(end)
}
