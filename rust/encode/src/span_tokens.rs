//! Tokenisation of a question with a text into overlapping windows that know where their tokens are in the text.
//!
//! The windows are those of question answering in transformers: at most [`WINDOW`] tokens, the question first,
//! cut to [`QUESTION`] tokens, and [`OVERLAP`] tokens of the text shared by neighbouring windows.

use super::config::unsupported;
use crate::error::{Error, Result};
use std::ops::Range;
use tokenizers::{Encoding, PostProcessor, Tokenizer, TruncationDirection};

/// Maximum length of a window, of the question in it, and of the text that two windows share. Of a model that
/// reads less, the question gets at most half, and windows share at most half of the rest.
const WINDOW: usize = 384;
const QUESTION: usize = 64;
const OVERLAP: usize = 128;

/// A tokeniser for questions with texts.
pub struct SpanTokens {
    tokeniser: Tokenizer,
    /// Tokens of a window, without the special ones.
    room: usize,
}

/// A question in tokens, cut to its limit.
pub struct Question {
    encoding: Encoding,
    /// Whether it was cut.
    pub is_cut: bool,
}

/// A question with a part of a text.
pub struct SpanWindow {
    pub ids: Vec<u32>,
    /// The text (0 or 1) to which each token belongs.
    pub kinds: Vec<u32>,
    /// The text's tokens among all.
    pub text: Range<usize>,
    /// Where each of the text's tokens is in it, in characters.
    pub places: Vec<(usize, usize)>,
}

fn rejected(error: impl std::fmt::Display) -> Error {
    Error::input(format!("the tokeniser rejects a text: {error}"))
}

impl SpanTokens {
    /// Prepare a tokeniser without truncation for windows of at most `longest` tokens.
    pub fn new(tokeniser: Tokenizer, longest: usize) -> Result<Self> {
        let added = tokeniser.get_post_processor().map_or(0, |processor| processor.added_tokens(true));
        let room = longest.min(WINDOW).saturating_sub(added);
        if room < 4 {
            return Err(Error::damaged(format!(
                "the longest input of {longest} tokens has no room for a question and a text"
            )));
        }
        Ok(Self { tokeniser, room })
    }

    /// Tokenise a question, once for all texts.
    pub fn question(&self, question: &str) -> Result<Question> {
        let mut encoding = self.tokeniser.encode_char_offsets(question, false).map_err(rejected)?;
        let most = QUESTION.min(self.room / 2);
        let is_cut = encoding.len() > most;
        encoding.truncate(most, 0, TruncationDirection::Right);
        encoding.take_overflowing();
        Ok(Question { encoding, is_cut })
    }

    /// Return the windows of a text; none for a text without tokens.
    pub fn windows(&self, question: &Question, text: &str) -> Result<Vec<SpanWindow>> {
        let mut whole = self.tokeniser.encode_char_offsets(text, false).map_err(rejected)?;
        if whole.is_empty() {
            return Ok(Vec::new());
        }
        let room = self.room - question.encoding.len();
        whole.truncate(room, OVERLAP.min(room / 2), TruncationDirection::Right);
        let rest = whole.take_overflowing();
        std::iter::once(whole).chain(rest).map(|part| self.window(question, part)).collect()
    }

    fn window(&self, question: &Question, part: Encoding) -> Result<SpanWindow> {
        let length = part.len();
        let encoding =
            self.tokeniser.post_process(question.encoding.clone(), Some(part), true).map_err(rejected)?;
        let owners = encoding.get_sequence_ids();
        let first = owners.iter().position(|&owner| owner == Some(1)).unwrap_or(owners.len());
        let text = first..first + length;
        if first == 0 || owners.iter().filter(|&&owner| owner == Some(1)).count() != length {
            return Err(unsupported("a tokeniser that does not put a question before a text"));
        }
        Ok(SpanWindow {
            ids: encoding.get_ids().to_vec(),
            kinds: encoding.get_type_ids().to_vec(),
            places: encoding.get_offsets()[text.clone()].to_vec(),
            text,
        })
    }
}
