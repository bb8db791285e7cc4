//! Texts as windows of token ids, as the model's own `tokenizer.json` makes them.

use crate::error::{Error, Result};
use std::path::Path;
use tokenizers::Tokenizer;

/// A tokeniser with the special tokens around a text and the longest window.
pub struct Tokens {
    tokeniser: Tokenizer,
    /// Special tokens before and after a text.
    before: Vec<u32>,
    after: Vec<u32>,
    /// The longest window, special tokens included.
    longest: usize,
    lower: bool,
}

/// The windows of one text: each has all special tokens and the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows {
    /// The windows laid end to end.
    pub ids: Vec<u32>,
    /// The length of each window.
    pub lengths: Vec<usize>,
    /// Tokens of the prompt (first special tokens included) at the start of each window.
    pub prompt: usize,
}

/// A tokeniser's file is at most this long.
const LONGEST_FILE: u64 = 256 << 20;

impl Tokens {
    /// Reads `tokenizer.json`; ids must stay below `vocabulary`, windows within `longest`.
    pub fn open(path: &Path, vocabulary: usize, longest: usize, lower: bool) -> Result<Self> {
        let name = path.display();
        let failed = |e: std::io::Error| Error::Io(format!("{name}: {e}"));
        if std::fs::metadata(path).map_err(failed)?.len() > LONGEST_FILE {
            return Err(Error::damaged(format!("{name}: too large for a tokeniser")));
        }
        let bytes = std::fs::read(path).map_err(failed)?;
        let mut tokeniser =
            Tokenizer::from_bytes(&bytes).map_err(|e| Error::damaged(format!("{name}: {e}")))?;
        tokeniser.with_padding(None);
        tokeniser.with_truncation(None).map_err(|e| Error::damaged(format!("{name}: {e}")))?;
        let largest = tokeniser.get_vocab(true).into_values().max().unwrap_or(0);
        if largest as usize >= vocabulary {
            return Err(Error::damaged(format!(
                "{name}: token {largest} has no row in the model's table of {vocabulary}"
            )));
        }
        let mut tokens = Self { tokeniser, before: vec![], after: vec![], longest, lower };
        (tokens.before, tokens.after) = tokens.specials()?;
        if tokens.before.len() + tokens.after.len() >= longest {
            return Err(Error::damaged(format!(
                "{name}: the longest input of {longest} has no room for text"
            )));
        }
        Ok(tokens)
    }

    /// Finds out what the tokeniser puts around a text.
    fn specials(&self) -> Result<(Vec<u32>, Vec<u32>)> {
        for probe in ["a", "0", "."] {
            let (bare, whole) = (self.ids(probe, false)?, self.ids(probe, true)?);
            if bare.is_empty() {
                continue;
            }
            if let Some(at) = whole.windows(bare.len()).position(|w| w == bare) {
                return Ok((whole[..at].to_vec(), whole[at + bare.len()..].to_vec()));
            }
        }
        Err(Error::damaged("the tokeniser makes no tokens of plain letters"))
    }

    fn ids(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        let encoding = self
            .tokeniser
            .encode_fast(text, special)
            .map_err(|e| Error::input(format!("the tokeniser refuses a text: {e}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The windows of `prompt` and `text`; none where the text has no tokens.
    pub fn windows(&self, text: &str, prompt: &str) -> Result<Windows> {
        // As Python's str.strip.
        let space = |c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c);
        let text = text.trim_matches(space);
        let mut out = Windows::default();
        if text.is_empty() {
            return Ok(out);
        }
        let mut body = if self.lower {
            self.ids(&format!("{prompt}{text}").to_lowercase(), false)?
        } else if prompt.is_empty() {
            self.ids(text, false)?
        } else {
            self.ids(&format!("{prompt}{text}"), false)?
        };
        // The prompt's tokens are repeated in each window, if they are tokens of their own.
        let mut lead = self.before.clone();
        if !prompt.is_empty() {
            let prompt = if self.lower { prompt.to_lowercase() } else { prompt.to_owned() };
            let ids = self.ids(&prompt, false)?;
            if body.starts_with(&ids) && lead.len() + ids.len() + self.after.len() < self.longest {
                body.drain(..ids.len());
                lead.extend(ids);
            }
            out.prompt = lead.len();
        }
        let room = self.longest - lead.len() - self.after.len();
        out.ids.reserve(body.len() + (lead.len() + self.after.len()) * body.len().div_ceil(room));
        for piece in body.chunks(room) {
            out.ids.extend(lead.iter().chain(piece).chain(&self.after));
            out.lengths.push(lead.len() + piece.len() + self.after.len());
        }
        Ok(out)
    }
}
