//! Token counts in a named encoding, without loading its vocabulary if the text is one of our row marks.
//!
//! Loading a vocabulary takes longer than a whole query may; printing a context counts only marks and line
//! ends, unless a row must be cut.

use crate::text::bpe::Encoding;
use unicode_segmentation::UnicodeSegmentation;

/// Counts the tokens of a text in some encoding.
pub trait Count: Sync {
    fn count(&self, text: &str) -> usize;

    /// Return the length in bytes of a long prefix of `text` that ends at a grapheme boundary and has at most
    /// `most` tokens (the longest, provided that counts grow with the text).
    fn cut(&self, text: &str, most: usize) -> usize {
        // No token of the known encodings is longer than 128 bytes.
        let mut end = text.len().min(most.saturating_mul(128));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let head = &text[..end];
        let mut ends: Vec<usize> = head.grapheme_indices(true).map(|(i, _)| i).collect();
        if end == text.len() {
            ends.push(end);
        }
        // `ends[low]` always fits; `high` may not.
        let (mut low, mut high) = (0, ends.len());
        while low + 1 < high {
            let middle = (low + high) / 2;
            if self.count(&text[..ends[middle]]) <= most {
                low = middle;
            } else {
                high = middle;
            }
        }
        ends.get(low).copied().unwrap_or(0)
    }
}

impl<F: Fn(&str) -> usize + Sync> Count for F {
    fn count(&self, text: &str) -> usize {
        self(text)
    }
}

impl Count for Encoding {
    fn count(&self, text: &str) -> usize {
        known(text).unwrap_or_else(|| Encoding::count(*self, text))
    }
}

/// Return the count of a mark or line end, the same in both encodings: they group digits by threes.
fn known(text: &str) -> Option<usize> {
    let number = |start: &str, end: &str| {
        let digits = text.strip_prefix(start)?.strip_suffix(end)?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.len().div_ceil(3))
    };
    match text {
        "" => Some(0),
        "\n" | "\n\n" => Some(1),
        _ => number("[", "]\n")
            .map(|n| n + 2)
            .or_else(|| number("chunk_", "|").map(|n| n + 3))
            .or_else(|| number("", "|").map(|n| n + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_what_the_vocabulary_says() {
        let ranks = (1..3000).chain([99_999, 100_000, 1_234_567, 4_294_967_295u64]);
        let marks =
            ranks.flat_map(|rank| [format!("[{rank}]\n"), format!("chunk_{rank}|"), format!("{rank}|")]);
        let ends = ["", "\n", "\n\n"].map(str::to_owned);
        for mark in marks.chain(ends) {
            let count = known(&mark).unwrap();
            for encoding in [Encoding::Cl100k, Encoding::O200k] {
                assert_eq!(Encoding::count(encoding, &mark), count, "{mark:?}");
            }
        }
        assert_eq!(known("[x]\n").or(known("[]\n")).or(known("chunk_|")).or(known("|")), None);
        assert_eq!(Encoding::Cl100k.count("a text"), 2);
    }
}
