//! Token counts and token ids of the public byte-pair vocabularies cl100k and o200k, which are embedded in
//! the library.
//!
//! Special tokens ("<|endoftext|>") are treated as plain text. Counts equal those of tiktoken's
//! `encode_ordinary`.

use super::merges::Merges;
use super::pieces::Pieces;
use super::strings::Strings;
use crate::error::{Error, Result};
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use std::sync::LazyLock;

/// A named vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// GPT-3.5, GPT-4: the tokeniser of the papers.
    #[default]
    Cl100k,
    /// GPT-4o and later.
    O200k,
}

impl Encoding {
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "cl100k_base" => Ok(Self::Cl100k),
            "o200k_base" => Ok(Self::O200k),
            _ => Err(Error::input(format!("encoding must be cl100k_base or o200k_base, not {name:?}"))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Cl100k => "cl100k_base",
            Self::O200k => "o200k_base",
        }
    }

    pub(crate) fn merges(self) -> &'static Merges {
        static CL100K: LazyLock<Merges> =
            LazyLock::new(|| Merges::new(include_bytes!("data/cl100k_base.bin"), None));
        static O200K: LazyLock<Merges> =
            LazyLock::new(|| Merges::new(include_bytes!("data/o200k_base.bin"), Some(&CL100K)));
        match self {
            Self::Cl100k => &CL100K,
            Self::O200k => &O200K,
        }
    }

    pub(crate) fn pieces(self, text: &str, at: usize) -> Pieces<'_> {
        Pieces::new(self == Self::O200k, text, at)
    }

    /// Return the number of tokens of `text`. For many texts use a [`Counter`].
    pub fn count(self, text: &str) -> usize {
        let bpe = self.merges();
        let mut from = 0;
        let mut count = 0;
        for end in self.pieces(text, 0) {
            count += bpe.count(&text.as_bytes()[from..end]);
            from = end;
        }
        count
    }

    /// Return the tokens of `text`, which tests compare with other ways of counting.
    #[cfg(test)]
    fn encode(self, text: &str) -> Vec<u32> {
        let bpe = self.merges();
        let mut from = 0;
        let mut tokens = Vec::new();
        for end in self.pieces(text, 0) {
            tokens.extend(bpe.encode(&text.as_bytes()[from..end]));
            from = end;
        }
        tokens
    }
}

/// Pieces up to this many bytes are cached with their counts.
const REMEMBERED: usize = 15;
const SLOTS: usize = 1 << 13;

/// Number of cache slots for long pieces: runs without blanks are counted repeatedly while they are cut. A run of
/// dashes is cut into sentences of 64 characters, of which a passage has hundreds: with 16 slots 1 MB took 20 s.
const LONG_SLOTS: usize = 512;
/// Pieces longer than this many bytes are cached, because encoding takes longer than comparing.
const LONG: usize = 96;
/// Pieces longer than this are not cached, so that the cache takes at most 32 MB.
const LONGEST: usize = 1 << 16;

/// Counts tokens and caches the counts of recent short pieces, because most of a text is common words.
pub struct Counter {
    encoding: Encoding,
    /// Direct-mapped cache: a piece with its length as one number, and its count. Zero marks a free slot.
    slots: Vec<(u128, u32)>,
    /// Long pieces and their counts, in the slot that length and first byte select.
    long: Vec<(Vec<u8>, usize)>,
}

impl Counter {
    pub fn new(encoding: Encoding) -> Self {
        Self { encoding, slots: vec![(0, 0); SLOTS], long: vec![(Vec::new(), 0); LONG_SLOTS] }
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub fn count(&mut self, text: &str) -> usize {
        let encoding = self.encoding;
        let mut from = 0;
        let mut count = 0;
        for end in encoding.pieces(text, 0) {
            count += self.piece(&text.as_bytes()[from..end]);
            from = end;
        }
        count
    }

    /// Return the token count of one piece.
    pub(crate) fn piece(&mut self, piece: &[u8]) -> usize {
        let bpe = self.encoding.merges();
        if piece.len() > LONGEST {
            return bpe.count(piece);
        }
        if piece.len() > LONG {
            // Many pieces have lengths with a common divisor, so the high bits of a product select the slot.
            let mixed = (piece.len() as u64 ^ u64::from(piece[0]) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let slot = mixed >> (64 - LONG_SLOTS.trailing_zeros());
            let (known, count) = &mut self.long[slot as usize];
            if known != piece {
                *count = bpe.count(piece);
                known.clear();
                known.extend_from_slice(piece);
            }
            return *count;
        }
        if piece.len() > REMEMBERED {
            return bpe.count(piece);
        }
        let mut bytes = [0u8; 16];
        bytes[..piece.len()].copy_from_slice(piece);
        bytes[REMEMBERED] = piece.len() as u8;
        let key = u128::from_le_bytes(bytes);
        let folded = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut self.slots[(folded >> (64 - SLOTS.trailing_zeros())) as usize];
        if slot.0 != key {
            *slot = (key, bpe.count(piece) as u32);
        }
        slot.1 as usize
    }

    /// Return the token count of `title`, a newline and `text`. `text` must not begin with a blank; `titled`
    /// comes from [`Counter::title`].
    pub(crate) fn titled(&mut self, titled: usize, title: &str, text: &str, plain: usize) -> usize {
        if title.is_empty() {
            return plain;
        }
        // A piece ends after the newline, so the counts add up. The only exception is in o200k: a slash forms
        // one piece with the newline before it if a punctuation mark precedes the newline.
        if text.starts_with(['/', '\r', '\n']) || text.starts_with(char::is_whitespace) {
            return self.count(&format!("{title}\n{text}"));
        }
        titled + plain
    }

    /// Return the token count of a title and its newline.
    pub(crate) fn title(&mut self, title: &str) -> usize {
        match title {
            "" => 0,
            _ => self.count(&format!("{title}\n")),
        }
    }
}

/// The pieces of one text with cumulative counts. The exact count of any substring costs only the few pieces
/// at its ends.
pub struct Tally<'a> {
    text: &'a str,
    ends: Vec<u32>,
    /// Cumulative token count at each end.
    sums: Vec<u32>,
}

impl<'a> Tally<'a> {
    /// `text` must be shorter than 4 GiB (the caller checks).
    pub fn new(counter: &mut Counter, text: &'a str, progress: &Progress) -> Result<Self> {
        let (mut ends, mut sums) = (Vec::new(), Vec::new());
        let (mut from, mut sum, mut checked) = (0, 0u32, 0);
        for end in counter.encoding.pieces(text, 0) {
            sum += counter.piece(&text.as_bytes()[from..end]) as u32;
            ends.push(end as u32);
            sums.push(sum);
            from = end;
            if end - checked > 1 << 17 {
                progress.check()?;
                checked = end;
            }
        }
        Ok(Self { text, ends, sums })
    }

    fn before(&self, piece: usize) -> u32 {
        if piece == 0 {
            0
        } else {
            self.sums[piece - 1]
        }
    }

    /// Return the number of tokens of `text[start..end]` on its own. Both must be character boundaries.
    pub fn count(&self, counter: &mut Counter, start: usize, end: usize) -> usize {
        let part = &self.text[..end];
        let mut sum = 0;
        let mut from = start;
        // Count until a piece of the substring ends where a piece of the text does: from there on they agree.
        let mut piece = self.ends.partition_point(|&e| (e as usize) < start);
        if self.ends.get(piece).is_none_or(|&e| e as usize != start) && start > 0 {
            let mut met = false;
            for own in counter.encoding.pieces(part, start) {
                sum += counter.piece(&part.as_bytes()[from..own]);
                from = own;
                while self.ends.get(piece).is_some_and(|&e| (e as usize) < own) {
                    piece += 1;
                }
                if self.ends.get(piece).is_some_and(|&e| e as usize == own) {
                    met = true;
                    break;
                }
            }
            if !met {
                return sum;
            }
            piece += 1;
        } else if start > 0 {
            piece += 1;
        }
        // Pieces of the text that end before the last one that the end of the substring might change.
        let last = self.ends.partition_point(|&e| e as usize <= end);
        let mut keep = last;
        // A piece that ends at or before `end` did not depend on text beyond `end`, except blanks, which
        // depend on the next character.
        while keep > piece && self.blank_piece(keep - 1) {
            keep -= 1;
        }
        if keep > piece {
            sum += (self.sums[keep - 1] - self.before(piece)) as usize;
            from = self.ends[keep - 1] as usize;
        }
        for own in counter.encoding.pieces(part, from) {
            sum += counter.piece(&part.as_bytes()[from..own]);
            from = own;
        }
        sum
    }

    fn blank_piece(&self, piece: usize) -> bool {
        let from = if piece == 0 { 0 } else { self.ends[piece - 1] as usize };
        self.text[from..self.ends[piece] as usize].chars().all(char::is_whitespace)
    }
}

/// Return the token counts of many texts, as `u32`; a text with more tokens is an error.
pub fn count_many(
    encoding: Encoding,
    texts: Strings<'_>,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<u32>> {
    progress.expect(texts.len() as u64);
    let parts = map_ranges_with(
        texts.len(),
        64,
        threads,
        progress,
        || Counter::new(encoding),
        |counter, range| {
            range
                .map(|i| {
                    progress.check()?;
                    u32::try_from(counter.count(texts.get(i)))
                        .map_err(|_| Error::input(format!("text {i} has too many tokens")))
                })
                .collect::<Result<Vec<u32>>>()
        },
    )?;
    Ok(parts.concat())
}

#[cfg(test)]
mod tests {
    use super::super::strings::StringsBuf;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_counts() {
        for (text, count) in [("", 0), ("hello world", 2), ("<|endoftext|>", 7)] {
            assert_eq!(Encoding::Cl100k.count(text), count, "{text:?}");
        }
        assert_eq!(Encoding::Cl100k.encode("hello world"), [15339, 1917]);
        assert_eq!(Encoding::O200k.encode("hello world"), [24912, 2375]);
        assert!(Encoding::by_name("gpt2").is_err());
        assert_eq!(Encoding::by_name("o200k_base").unwrap().name(), "o200k_base");
    }

    #[test]
    fn a_run_without_blanks_takes_linear_time() {
        let text = "a1b2-xyzé".repeat(50_000);
        assert!(Encoding::Cl100k.count(&text) > 50_000);
        let text = " ".repeat(500_000) + &"x".repeat(500_000);
        assert!(Encoding::O200k.count(&text) > 1000);
    }

    proptest! {
        #[test]
        fn all_ways_of_counting_agree(text in "([a-zA-Z']{1,8}|[ \n\t]{1,3}|[.!?/]|[0-9]{1,5}|é|中文|👩‍👧){0,40}", a in 0usize..200, b in 0usize..200) {
            for encoding in [Encoding::Cl100k, Encoding::O200k] {
                let plain = encoding.count(&text);
                let mut counter = Counter::new(encoding);
                prop_assert_eq!(counter.count(&text), plain);
                prop_assert_eq!(encoding.encode(&text).len(), plain);
                let tally = Tally::new(&mut counter, &text, &Progress::none()).unwrap();
                let cut = |x: usize| super::super::pieces::char_floor(&text, x);
                let (start, end) = (cut(a.min(b)), cut(a.max(b)));
                prop_assert_eq!(tally.count(&mut counter, start, end), encoding.count(&text[start..end]), "{} {}", start, end);
            }
        }

        #[test]
        fn titles_add_up(title in "[a-c.)/ \n]{0,6}", text in "[a-c./)é\n ]{0,8}") {
            for encoding in [Encoding::Cl100k, Encoding::O200k] {
                let mut counter = Counter::new(encoding);
                let (head, plain) = (counter.title(&title), counter.count(&text));
                let whole = if title.is_empty() { text.clone() } else { format!("{title}\n{text}") };
                prop_assert_eq!(counter.titled(head, &title, &text, plain), encoding.count(&whole));
            }
        }
    }

    #[test]
    fn long_pieces_that_are_remembered_are_told_apart() {
        let mut counter = Counter::new(Encoding::Cl100k);
        let mut last = "x".repeat(200);
        last.replace_range(150..151, "y");
        for text in ["x".repeat(200), "y".repeat(200), last, "x".repeat(200), "x".repeat(216)] {
            for _ in 0..2 {
                assert_eq!(counter.count(&text), Encoding::Cl100k.count(&text), "{text}");
            }
        }
    }

    #[test]
    fn many_texts_on_any_number_of_threads() {
        let texts: StringsBuf = (0..300).map(|i| "word ".repeat(i % 7)).collect();
        let expected: Vec<u32> = texts.view().iter().map(|t| Encoding::Cl100k.count(t) as u32).collect();
        for threads in [1, 2, 5] {
            let counts = count_many(Encoding::Cl100k, texts.view(), threads, &Progress::none());
            assert_eq!(counts.unwrap(), expected);
        }
    }
}
