//! Windows of tokens that are substrings of the source: every cut is between graphemes.
//!
//! Slicing tokens and decoding each slice, as the reference implementation does, splits characters that take
//! several tokens. Here each cut moves back to the nearest grapheme boundary.

use super::bpe::{Counter, Encoding};
use super::pieces::char_floor;
use crate::error::{Error, Result};
use crate::progress::Progress;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum distance that a cut moves back. A longer grapheme (thousands of marks on one letter) is cut
/// between characters.
const REACH: usize = 4096;

/// Return the greatest grapheme boundary in `floor..=at`, where `floor` is one. The time is proportional to
/// the distance, at most [`REACH`].
pub fn grapheme_floor(text: &str, at: usize, floor: usize) -> usize {
    let at = char_floor(text, at);
    if at <= floor || at == text.len() {
        return at.max(floor);
    }
    let bytes = text.as_bytes();
    // Two adjacent ASCII characters always have a boundary between them, except in CR LF.
    let parts = |i: usize| {
        bytes[i - 1].is_ascii() && bytes[i].is_ascii() && (bytes[i - 1], bytes[i]) != (b'\r', b'\n')
    };
    let lowest = char_floor(text, floor.max(at.saturating_sub(REACH)));
    let start = (lowest + 1..=at).rev().find(|&i| parts(i)).unwrap_or(lowest);
    if start == at {
        return at;
    }
    // Whether `at` is a boundary depends on what is before it and on the one character after it.
    let after = at + text[at..].chars().next().map_or(0, char::len_utf8);
    let best =
        text[start..after].grapheme_indices(true).map(|(i, _)| start + i).take_while(|&i| i <= at).last();
    match best {
        Some(i) if i > lowest => i,
        // No boundary was found: `floor` is one, any other lower end is only the reach.
        _ if lowest == floor => floor,
        _ => at,
    }
}

/// Return the end of a prefix of whole graphemes that takes at most `tokens` tokens: cut after that many
/// tokens and moved back. The time is proportional to the length of the prefix.
pub fn truncate(encoding: Encoding, text: &str, tokens: usize) -> usize {
    truncate_with(&mut Counter::new(encoding), text, tokens)
}

pub(crate) fn truncate_with(counter: &mut Counter, text: &str, tokens: usize) -> usize {
    // Read only as much as the tokens are likely to cover, more if they cover more.
    let mut reach = tokens.saturating_mul(8).saturating_add(64);
    loop {
        let part = &text[..char_floor(text, reach)];
        let Some((from, end)) = token_end(counter, part, tokens) else {
            if part.len() == text.len() {
                return text.len();
            }
            reach = reach.saturating_mul(2);
            continue;
        };
        let floor = grapheme_floor(text, end, 0);
        if floor == end && one_piece(counter.encoding(), &text[..end], from) {
            return end;
        }
        // A cut inside a piece may need more tokens than were cut; then step back.
        let mut end = floor;
        while end > 0 && counter.count(&text[..end]) > tokens {
            end = grapheme_floor(text, end - 1, 0);
        }
        return end;
    }
}

/// Return whether the end of `text`, cut between two tokens of the piece that begins at `from`, is still one
/// piece. Then it has exactly the tokens before the cut, because no pair was merged across it (or it is a
/// single token); earlier pieces did not look that far ahead.
fn one_piece(encoding: Encoding, text: &str, from: usize) -> bool {
    from < text.len() && encoding.pieces(text, from).next() == Some(text.len())
}

/// Return the end of the first `tokens` tokens and the start of its piece, or `None` if there are no more
/// tokens than that.
fn token_end(counter: &mut Counter, text: &str, tokens: usize) -> Option<(usize, usize)> {
    let bpe = counter.encoding().merges();
    let (mut seen, mut from) = (0, 0);
    for piece_end in counter.encoding().pieces(text, 0) {
        let piece = &text.as_bytes()[from..piece_end];
        let inside = counter.piece(piece);
        if seen + inside > tokens {
            let kept = bpe.encode(piece).into_iter().take(tokens - seen);
            return Some((from, from + kept.map(|token| bpe.token_len(token)).sum::<usize>()));
        }
        seen += inside;
        from = piece_end;
    }
    None
}

/// Return spans of `size` tokens, each beginning `size - overlap` tokens after the previous one, with cuts
/// moved back to grapheme boundaries. The last window reaches the end of the text (the reference
/// implementation adds one more inside it). Without overlap the concatenated spans are the text. A grapheme
/// of more than `size` tokens is a window by itself.
///
/// The counter is reused for many texts.
pub(crate) fn windows_with(
    counter: &mut Counter,
    text: &str,
    size: usize,
    overlap: usize,
    progress: &Progress,
) -> Result<Vec<(usize, usize)>> {
    if size == 0 || overlap >= size {
        return Err(Error::input(format!(
            "windows need a size above 0 and an overlap below it, not {size} and {overlap}"
        )));
    }
    let stride = size - overlap;
    let bpe = counter.encoding().merges();
    let (mut starts, mut ends) = (vec![0], Vec::new());
    // Tokens after which the next window starts, and the current one ends.
    let (mut next_start, mut next_end) = (stride, size);
    let (mut start_floor, mut end_floor) = (0, 0);
    let (mut seen, mut from, mut checked) = (0usize, 0, 0);
    for piece_end in counter.encoding().pieces(text, 0) {
        if piece_end - checked > 1 << 17 {
            progress.check()?;
            checked = piece_end;
        }
        let piece = &text.as_bytes()[from..piece_end];
        let inside = counter.piece(piece);
        if seen + inside < next_start.min(next_end) {
            seen += inside;
            from = piece_end;
            continue;
        }
        let mut at = from;
        for token in bpe.encode(piece) {
            at += bpe.token_len(token);
            seen += 1;
            if seen == next_start {
                start_floor = grapheme_floor(text, at, start_floor);
                starts.push(start_floor);
                next_start = next_start.saturating_add(stride);
            }
            if seen == next_end {
                end_floor = grapheme_floor(text, at, end_floor);
                ends.push(end_floor);
                next_end = next_end.saturating_add(stride);
            }
        }
        from = piece_end;
    }
    let mut spans = Vec::with_capacity(ends.len() + 1);
    let mut reached = 0;
    for (k, &start) in starts.iter().enumerate() {
        let end = ends.get(k).copied().unwrap_or(text.len());
        if end > reached {
            spans.push((start, end));
            reached = end;
        }
        if reached == text.len() {
            break;
        }
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn windows(text: &str, size: usize, overlap: usize) -> Result<Vec<(usize, usize)>> {
        windows_with(&mut Counter::new(Encoding::Cl100k), text, size, overlap, &Progress::none())
    }

    const TEXT: &str =
        "([a-z]{1,9}|[ .,\n]|\r\n|é|e\u{301}|中文字|👩‍👧‍👦|🇩🇪|กำ|\u{1100}\u{1161}|\u{0}|[^\u{0}]){0,60}";

    fn plain_floor(text: &str, at: usize) -> usize {
        text.grapheme_indices(true)
            .map(|(i, _)| i)
            .chain([text.len()])
            .take_while(|&i| i <= at)
            .last()
            .unwrap_or(0)
    }

    proptest! {
        #[test]
        fn floors_are_the_plain_ones(text in TEXT, at in 0usize..120) {
            prop_assert_eq!(grapheme_floor(&text, at.min(text.len()), 0), plain_floor(&text, at.min(text.len())));
        }

        #[test]
        fn windows_give_the_text_back(text in TEXT, size in 1usize..9, overlap in 0usize..4) {
            let overlap = overlap.min(size - 1);
            let whole = windows(&text, size, 0).unwrap();
            prop_assert_eq!(whole.iter().map(|&(a, b)| &text[a..b]).collect::<String>(), text.clone());
            let spans = windows(&text, size, overlap).unwrap();
            let mut reached = 0;
            for &(a, b) in &spans {
                prop_assert!(a <= reached && b > reached);
                prop_assert_eq!(plain_floor(&text, a), a);
                prop_assert_eq!(plain_floor(&text, b), b);
                reached = b;
            }
            prop_assert_eq!(reached, text.len());
        }

        #[test]
        fn truncated_text_fits_and_is_the_longest_of_the_cut(text in TEXT, tokens in 0usize..12) {
            let end = truncate(Encoding::Cl100k, &text, tokens);
            prop_assert_eq!(plain_floor(&text, end), end);
            prop_assert!(Encoding::Cl100k.count(&text[..end]) <= tokens);
            prop_assert_eq!(end == text.len(), Encoding::Cl100k.count(&text) <= tokens);
        }
    }

    #[test]
    fn plain_windows_hold_their_tokens() {
        let text = "one two three four five six seven";
        let spans = windows(text, 3, 1).unwrap();
        let parts: Vec<&str> = spans.iter().map(|&(a, b)| &text[a..b]).collect();
        assert_eq!(parts, ["one two three", " three four five", " five six seven"]);
        assert!(windows(text, 3, 3).is_err());
        assert!(windows(text, 0, 0).is_err());
        assert_eq!(windows("", 3, 0).unwrap(), []);
    }

    #[test]
    fn endless_graphemes_and_flags_take_linear_time() {
        for text in ["\u{301}".repeat(60_000), "🇩🇪".repeat(20_000), "中".repeat(30_000), "x".repeat(300_000)]
        {
            let spans = windows(&text, 200, 0).unwrap();
            assert!(spans.len() > 20, "{} {}", spans.len(), &text[..12]);
            assert!(spans.iter().all(|&(a, b)| b - a < 60_000 && a < b));
        }
    }
}
