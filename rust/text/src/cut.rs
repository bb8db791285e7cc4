//! Cuts one document into chunks: of whole blocks, or in windows of tokens.

use super::blocks::{Mark, Span};
use super::bpe::Counter;
use super::passages::cut_blocks;
use super::sentences::Splitter;
use super::windows::windows_with;

use crate::error::{Error, Result};
use crate::progress::Progress;

pub use super::piece::Piece;

/// The method by which a document is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// As many whole blocks as fit into `max_tokens`. A longer block is cut where its kind allows: text is
    /// cut between sentences, and a longer sentence into windows.
    Sentences { max_tokens: usize },
    /// The paper's windows of `tokens`, each sharing `overlap` tokens with the previous one.
    Windows { tokens: usize, overlap: usize },
}

impl Default for Cut {
    fn default() -> Self {
        Self::Sentences { max_tokens: 200 }
    }
}

impl Cut {
    /// Return the maximum number of tokens of a chunk.
    pub fn size(self) -> usize {
        match self {
            Self::Sentences { max_tokens } => max_tokens,
            Self::Windows { tokens, .. } => tokens,
        }
    }

    /// Return the same cut with chunks of `percent` of the size. Windows keep their size.
    pub fn scaled(self, percent: usize) -> Self {
        match self {
            Self::Sentences { max_tokens } => {
                Self::Sentences { max_tokens: (max_tokens as u128 * percent as u128 / 100) as usize }
            }
            Self::Windows { .. } => self,
        }
    }

    pub fn check(self) -> Result<()> {
        match self {
            Self::Sentences { max_tokens: 0 } => {
                Err(Error::input("units need room for at least one token, not 0"))
            }
            Self::Windows { tokens, overlap } if overlap >= tokens => Err(Error::input(format!(
                "windows need a size above 0 and an overlap below it, not {tokens} and {overlap}"
            ))),
            _ => Ok(()),
        }
    }
}

/// Cut `text[from..]` (shorter than 4 GiB) into chunks, in order. A blank text yields none. `marks` is the
/// reader's information about spans of the text, in ascending order.
pub fn cut_document(
    text: &str,
    from: usize,
    marks: &[(Span, Mark)],
    cut: Cut,
    splitter: Splitter,
    counter: &mut Counter,
    progress: &Progress,
) -> Result<Vec<Piece>> {
    cut.check()?;
    if text[from..].trim_start().is_empty() {
        return Ok(Vec::new());
    }
    match cut {
        Cut::Sentences { max_tokens } => {
            cut_blocks(text, from, marks, max_tokens, splitter, counter, progress)
        }
        Cut::Windows { tokens, overlap } => windows_with(counter, &text[from..], tokens, overlap, progress)?
            .into_iter()
            .map(|(start, end)| {
                let span = (start + from, end + from);
                let part = &text[span.0..span.1];
                let mut sentences = Vec::new();
                splitter.split(part, progress, &mut sentences)?;
                for s in &mut sentences {
                    *s = (s.0 + span.0, s.1 + span.0);
                }
                Ok(piece_of(span, counter.count(part), sentences))
            })
            .collect(),
    }
}

fn piece_of(span: Span, tokens: usize, sentences: Vec<Span>) -> Piece {
    Piece { span, tokens, sentences, before: String::new(), after: String::new() }
}

#[cfg(test)]
mod tests {
    use super::super::bpe::Encoding;
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &str, cut: Cut) -> Vec<Piece> {
        let mut counter = Counter::new(Encoding::Cl100k);
        cut_document(text, 0, &[], cut, Splitter::Standard, &mut counter, &Progress::none()).unwrap()
    }

    #[test]
    fn units_are_whole_sentences_and_the_last_is_no_leftover() {
        let sentence = "The quick brown fox jumps over the lazy dog again. ";
        let pieces = cut(&sentence.repeat(12), Cut::Sentences { max_tokens: 100 });
        assert_eq!(pieces.iter().map(|p| p.sentences.len()).collect::<Vec<_>>(), [6, 6]);
        let pieces = cut(&sentence.repeat(9), Cut::Sentences { max_tokens: 1000 });
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].tokens, Encoding::Cl100k.count(sentence.repeat(9).trim()));
        assert!(cut(" \n ", Cut::default()).is_empty());
        assert!(Cut::Sentences { max_tokens: 0 }.check().is_err());
        assert!(Cut::Windows { tokens: 5, overlap: 5 }.check().is_err());
    }

    #[test]
    fn an_endless_line_is_cut_in_linear_time() {
        for text in
            ["word ".repeat(50_000), "x1y-".repeat(50_000), "🇩🇪".repeat(20_000), "\u{301}".repeat(50_000)]
        {
            let pieces = cut(&text, Cut::Sentences { max_tokens: 200 });
            assert!(pieces.len() > 50);
            assert!(pieces.iter().all(|p| p.tokens <= 250), "{}", &text[..8]);
        }
    }

    proptest! {
        #[test]
        fn pieces_hold_their_sentences_and_all_text(
            text in "([A-Z][a-z]{0,9}|[a-z ]{3,9}|\\. |[.!?\n ]|\n\n|é|中文。|👩‍👧|\u{0}|.){0,80}",
            size in 1usize..30,
            overlap in 0usize..9,
        ) {
            for way in [Cut::Sentences { max_tokens: size }, Cut::Windows { tokens: size, overlap: overlap.min(size - 1) }] {
                let mut reached = 0;
                for piece in cut(&text, way) {
                    let (a, b) = piece.span;
                    prop_assert!(b > a && b > reached);
                    prop_assert_eq!(piece.tokens, Encoding::Cl100k.count(&text[a..b]));
                    if a > reached {
                        prop_assert_eq!(text[reached..a].trim(), "");
                    }
                    if let Cut::Sentences { .. } = way {
                        // A short last piece may have been merged into it.
                        prop_assert!(piece.tokens <= size + size / 4 || piece.sentences.len() == 1);
                        prop_assert_eq!(piece.sentences[0].0, a);
                    }
                    prop_assert!(piece.sentences.iter().all(|s| a <= s.0 && s.0 < s.1 && s.1 <= b));
                    prop_assert!(piece.sentences.windows(2).all(|w| w[0].1 <= w[1].0));
                    reached = b;
                }
                prop_assert_eq!(text[reached..].trim(), "");
            }
        }
    }
}
