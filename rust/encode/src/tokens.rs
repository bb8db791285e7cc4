//! Tokenisation of texts into windows of ids, by the model's `tokenizer.json`.

use super::config::unsupported;
use super::span_tokens::SpanTokens;
use crate::error::{Error, Result};
use serde_json::Value;
use std::ops::Range;
use std::path::Path;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::{NormalizerWrapper, Tokenizer, TruncationParams};

/// A tokeniser with the special tokens around a text and the longest window.
pub struct Tokens {
    tokeniser: Tokenizer,
    /// Special tokens before and after a text.
    before: Vec<u32>,
    after: Vec<u32>,
    /// The longest window, including special tokens.
    longest: usize,
    lower: bool,
}

/// Combines two texts into one input by the tokeniser's template.
pub struct Pairs {
    tokeniser: Tokenizer,
    lower: bool,
}

impl Pairs {
    /// Return token ids, and for each the text (0 or 1) to which it belongs. If a pair is too long, the
    /// longer text loses tokens.
    pub fn ids(&self, first: &str, second: &str) -> Result<(Vec<u32>, Vec<u32>)> {
        let clean = |text: &str| if self.lower { text.to_lowercase() } else { text.to_owned() };
        let pair = (clean(trimmed(first)), clean(trimmed(second)));
        let encoding = self
            .tokeniser
            .encode_fast(pair, true)
            .map_err(|e| Error::input(format!("the tokeniser rejects a text: {e}")))?;
        Ok((encoding.get_ids().to_vec(), encoding.get_type_ids().to_vec()))
    }
}

/// The tokens that precede every text.
#[derive(Debug, Clone, Default)]
pub struct Lead {
    text: String,
    ids: Vec<u32>,
}

/// The windows of one text: each has all special tokens and the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Windows {
    /// The concatenated windows.
    pub ids: Vec<u32>,
    /// The length of each window.
    pub lengths: Vec<usize>,
    /// The number of the text's tokens in each window, at least 1: its weight in the mean.
    pub weights: Vec<u64>,
    /// Tokens of the prompt (including leading special tokens) at the start of each window.
    pub prompt: usize,
}

/// The tokens of a span of a text: rows of one of its windows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanRows {
    pub window: usize,
    pub rows: Range<usize>,
}

/// A token of a text: its window, its row there, and the offset of its last byte in the cleaned text.
struct Placed {
    window: usize,
    row: usize,
    last: usize,
}

/// Maximum size of a tokeniser's file.
const LONGEST_FILE: u64 = 256 << 20;

impl Tokens {
    /// Read `tokenizer.json`; ids must be less than `vocabulary`, windows at most `longest`. `settings` is
    /// the tokeniser's settings file, whose setting for letter case overrides that of `tokenizer.json`.
    pub fn open(
        path: &Path,
        vocabulary: usize,
        longest: usize,
        lower: bool,
        settings: &Value,
    ) -> Result<Self> {
        let name = path.display();
        let failed = |e: std::io::Error| Error::io(format!("{name}: {e}")).caused_by(e);
        if std::fs::metadata(path).map_err(failed)?.len() > LONGEST_FILE {
            return Err(Error::damaged(format!("{name}: too large for a tokeniser")));
        }
        let bytes = std::fs::read(path).map_err(failed)?;
        let mut tokeniser =
            Tokenizer::from_bytes(&bytes).map_err(|e| Error::damaged(format!("{name}: {e}")).caused_by(e))?;
        tokeniser.with_padding(None);
        tokeniser.with_truncation(None).map_err(|e| Error::damaged(format!("{name}: {e}")).caused_by(e))?;
        if let Some(own) = letters(&tokeniser, settings) {
            tokeniser.with_normalizer(Some(own));
        }
        let largest = tokeniser.get_vocab(true).into_values().max().unwrap_or(0);
        if largest as usize >= vocabulary {
            return Err(Error::damaged(format!(
                "{name}: token {largest} has no row in the model's table of {vocabulary}"
            )));
        }
        if vocabulary > 2 * (largest as usize + 1) {
            return Err(Error::damaged(format!(
                "{name}: belongs to another model: it has {} words, but the model has {vocabulary}",
                largest + 1
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

    /// Determine the tokens that the tokeniser adds around a text.
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
        Err(Error::damaged("the tokeniser returns no tokens for plain letters"))
    }

    fn ids(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        let encoding = self
            .tokeniser
            .encode_fast(text, special)
            .map_err(|e| Error::input(format!("the tokeniser rejects a text: {e}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Return the id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.tokeniser.token_to_id(token)
    }

    /// Return the ids of special tokens, such as the first of a window.
    pub fn special_ids(&self) -> Vec<u32> {
        let added = self.tokeniser.get_added_tokens_decoder().into_iter();
        added.filter(|(_, token)| token.special).map(|(id, _)| id).collect()
    }

    /// Return the tokens of a text after a prompt, without special tokens and uncut.
    pub fn own_ids(&self, text: &str, prompt: &str) -> Result<Vec<u32>> {
        let text = trimmed(text);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        self.ids(&self.cleaned(&format!("{prompt}{text}")), false)
    }

    /// Prepare the tokeniser for pairs, within the longest window.
    pub fn pairs(self) -> Result<Pairs> {
        let mut tokeniser = self.tokeniser;
        let limit = TruncationParams { max_length: self.longest, ..TruncationParams::default() };
        tokeniser
            .with_truncation(Some(limit))
            .map_err(|e| Error::damaged(format!("the tokeniser cannot truncate pairs: {e}")).caused_by(e))?;
        Ok(Pairs { tokeniser, lower: self.lower })
    }

    /// Prepare the tokeniser for quoting from texts, within the longest window. Errors: lower-casing before the
    /// tokeniser, after which its offsets are not those of the text.
    pub fn span_tokens(self) -> Result<SpanTokens> {
        if self.lower {
            return Err(unsupported(
                "a tokeniser with do_lower_case, which changes the offsets of the text,",
            ));
        }
        SpanTokens::new(self.tokeniser, self.longest)
    }

    /// Tokenise a prompt, once for all texts. Errors: it leaves no room for a text.
    pub fn lead(&self, prompt: &str) -> Result<Lead> {
        let ids = if prompt.is_empty() { vec![] } else { self.ids(&self.cleaned(trimmed(prompt)), false)? };
        if ids.len() >= self.room() {
            return Err(Error::input(format!("the prompt alone fills the model's {} tokens", self.longest)));
        }
        Ok(Lead { text: prompt.to_owned(), ids })
    }

    /// Return the number of tokens of a window without the special ones.
    fn room(&self) -> usize {
        self.longest - self.before.len() - self.after.len()
    }

    fn cleaned(&self, text: &str) -> String {
        if self.lower {
            text.to_lowercase()
        } else {
            text.to_owned()
        }
    }

    /// Return the number of tokens of a text without special tokens and prompt, uncut.
    pub fn count(&self, text: &str) -> Result<usize> {
        let text = trimmed(text);
        Ok(if text.is_empty() { 0 } else { self.ids(&self.cleaned(text), false)?.len() })
    }

    /// Return the windows of a text after a prompt. An empty text has none; one whose characters yield no
    /// tokens has a window of the special tokens, if there are any. A text that exceeds the model's limit is
    /// cut into the fewest windows, of sizes that differ by at most one, each after the prompt.
    pub fn windows(&self, text: &str, lead: &Lead) -> Result<Windows> {
        self.cut(text, lead, None)
    }

    /// Return the windows of a text like [`Tokens::windows`], and the rows of each span of its bytes. A span that
    /// several windows share has the rows of the window with most of its tokens; one without tokens has none.
    pub fn windows_and_spans(
        &self,
        text: &str,
        lead: &Lead,
        spans: &[[u32; 2]],
    ) -> Result<(Windows, Vec<SpanRows>)> {
        let mut placed = Vec::new();
        let windows = self.cut(text, lead, Some(&mut placed))?;
        let start = text.len() - text.trim_start_matches(is_blank).len();
        let cleaned = self.cleaned_offsets(trimmed(text));
        let offset = |byte: u32| cleaned((byte as usize).saturating_sub(start));
        let rows = spans.iter().map(|&[from, to]| {
            let from = placed.partition_point(|token| token.last < offset(from));
            let to = placed.partition_point(|token| token.last < offset(to));
            largest_share(&placed[from..to.max(from)])
        });
        let rows = rows.collect();
        Ok((windows, rows))
    }

    /// Return a function from byte offsets in a text to those in the cleaned text.
    fn cleaned_offsets(&self, text: &str) -> impl Fn(usize) -> usize {
        let grown: Vec<(usize, usize)> = if self.lower {
            let mut at = 0;
            let lowered = text.char_indices().map(|(byte, c)| {
                let here = (byte, at);
                at += c.to_lowercase().map(char::len_utf8).sum::<usize>();
                here
            });
            lowered.collect()
        } else {
            Vec::new()
        };
        let end = if self.lower { text.to_lowercase().len() } else { text.len() };
        move |byte| {
            if grown.is_empty() {
                return byte.min(end);
            }
            let at = grown.partition_point(|&(start, _)| start < byte);
            grown.get(at).map_or(end, |&(_, lowered)| lowered)
        }
    }

    fn cut(&self, text: &str, lead: &Lead, mut placed: Option<&mut Vec<Placed>>) -> Result<Windows> {
        let text = trimmed(text);
        let mut out = Windows::default();
        if text.is_empty() {
            return Ok(out);
        }
        let head = &lead.ids;
        if !lead.text.is_empty() {
            out.prompt = self.before.len() + head.len();
        }
        let before = self.before.len();
        let whole = self.tokenised(&self.cleaned(&format!("{}{text}", lead.text)), placed.is_some())?;
        if whole.ids.len() <= self.room() {
            if whole.ids.len() + before + self.after.len() > 0 {
                let weight = whole.ids.len().saturating_sub(head.len()).max(1);
                out.push(&[&self.before, &whole.ids, &self.after], weight);
            }
            if let Some(placed) = &mut placed {
                let prompt = self.cleaned(&lead.text).len();
                whole.place(prompt, placed, |token| (0, before + token));
            }
            return Ok(out);
        }
        let own = self.tokenised(&self.cleaned(text), placed.is_some())?;
        let count = own.ids.len().div_ceil(self.room() - head.len()).max(1);
        let (size, more) = (own.ids.len() / count, own.ids.len() % count);
        if let Some(placed) = &mut placed {
            // The first `more` windows have one token more than the others.
            let long = more * (size + 1);
            own.place(0, placed, |token| {
                let (window, row) = match token < long {
                    true => (token / (size + 1), token % (size + 1)),
                    false => (more + (token - long) / size, (token - long) % size),
                };
                (window, before + head.len() + row)
            });
        }
        let mut rest = own.ids.as_slice();
        for number in 0..count {
            let (piece, after) = rest.split_at(size + usize::from(number < more));
            out.push(&[&self.before, head, piece, &self.after], piece.len().max(1));
            rest = after;
        }
        Ok(out)
    }

    /// Return the tokens of a text without special ones, with their byte offsets if `placed`.
    fn tokenised(&self, text: &str, placed: bool) -> Result<Tokenised> {
        if !placed {
            return Ok(Tokenised { ids: self.ids(text, false)?, offsets: Vec::new() });
        }
        let encoding = self
            .tokeniser
            .encode(text, false)
            .map_err(|e| Error::input(format!("the tokeniser rejects a text: {e}")))?;
        Ok(Tokenised { ids: encoding.get_ids().to_vec(), offsets: encoding.get_offsets().to_vec() })
    }
}

/// Tokens of a text, and where each is in it, in bytes.
struct Tokenised {
    ids: Vec<u32>,
    offsets: Vec<(usize, usize)>,
}

impl Tokenised {
    /// Append the tokens behind the first `prompt` bytes; `find` returns a token's window and row.
    fn place(&self, prompt: usize, placed: &mut Vec<Placed>, find: impl Fn(usize) -> (usize, usize)) {
        let mut last = 0;
        for (token, &(start, end)) in self.offsets.iter().enumerate() {
            if end > start && end > prompt {
                let (window, row) = find(token);
                last = last.max(end - 1 - prompt);
                placed.push(Placed { window, row, last });
            }
        }
    }
}

/// Return the rows of the window that has most of these tokens, of several the first.
fn largest_share(tokens: &[Placed]) -> SpanRows {
    let mut best = SpanRows::default();
    for part in tokens.chunk_by(|a, b| a.window == b.window) {
        let rows = part[0].row..part[part.len() - 1].row + 1;
        if rows.len() > best.rows.len() {
            best = SpanRows { window: part[0].window, rows };
        }
    }
    best
}

/// Return BERT's normaliser if the settings differ from `tokenizer.json`, as `transformers` does.
fn letters(tokeniser: &Tokenizer, settings: &Value) -> Option<BertNormalizer> {
    let class = settings.get("tokenizer_class").and_then(Value::as_str).unwrap_or("Bert");
    let Some(NormalizerWrapper::BertNormalizer(found)) = tokeniser.get_normalizer() else { return None };
    if !class.starts_with("Bert") && !class.starts_with("MPNet") {
        return None;
    }
    let switch = |name, usual| settings.get(name).and_then(Value::as_bool).unwrap_or(usual);
    let lowercase = switch("do_lower_case", found.lowercase);
    let chinese = switch("tokenize_chinese_chars", found.handle_chinese_chars);
    let accents = match settings.get("strip_accents") {
        Some(Value::Bool(strip)) => Some(*strip),
        Some(Value::Null) => None,
        _ => found.strip_accents,
    };
    let same =
        (lowercase, chinese, accents) == (found.lowercase, found.handle_chinese_chars, found.strip_accents);
    (!same).then(|| BertNormalizer::new(found.clean_text, chinese, accents, lowercase))
}

/// Like Python's `str.strip`.
fn trimmed(text: &str) -> &str {
    text.trim_matches(is_blank)
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

impl Windows {
    fn push(&mut self, parts: &[&[u32]], weight: usize) {
        let before = self.ids.len();
        for part in parts {
            self.ids.extend_from_slice(part);
        }
        self.lengths.push(self.ids.len() - before);
        self.weights.push(weight as u64);
    }
}
