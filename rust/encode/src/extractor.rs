//! Extractive question answering: a transformer that reads a question together with a text and scores each
//! position as start and end of the answer (`BertForQuestionAnswering` and its equivalents for RoBERTa and
//! MPNet).

use super::batch::{batches, BY_TILES};
use super::body::Spares;
use super::choice::Precision;
use super::choice::{float_ways, measure, Timing};
use super::config::{settings, unsupported, Config, Family};
use super::folder::Folder;
use super::load::Weights;
use super::model::{Body, SECOND};
use super::span_tokens::{SpanTokens, SpanWindow};
use super::tensors::Tensors;
use super::tokens::Tokens;
use crate::error::{Error, Result};
use crate::parallel::{map_ranges, map_ranges_with};
use crate::progress::Progress;
use crate::text::folding::is_unspaced;
use crate::text::strings::Strings;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Maximum number of tokens of an answer.
const ANSWER: usize = 30;

/// A loaded model.
pub struct Extractor {
    body: Body,
    tokens: SpanTokens,
    /// Whether tokens of the text have the second type.
    has_types: bool,
    /// Weights of the start and end outputs, with their biases.
    outputs: [(Vec<f32>, f32); 2],
    folder: Folder,
    path: PathBuf,
    timings: Vec<Timing>,
    spare: Spares,
}

/// The best span of each text, and the score of "no answer".
pub struct Spans {
    /// Offsets in characters. A text without tokens has an empty span with the lowest score.
    pub starts: Vec<u64>,
    pub ends: Vec<u64>,
    /// The sum of the start and end logits. Start and end are at most [`ANSWER`] tokens apart.
    pub scores: Vec<f32>,
    /// The same sum for the first token, which represents "no answer": the lowest of the text's windows.
    pub none: Vec<f32>,
    /// Whether the question was too long, so that only its beginning was read.
    pub is_cut: bool,
}

/// The best span of a window, in characters.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Best {
    start: usize,
    end: usize,
    score: f64,
    none: f64,
}

impl Extractor {
    /// Load a folder. `kernel` is as in [`super::Encoder::open`]. [`Precision::Auto`] and [`Precision::Int8`]
    /// are f32, so that all machines quote the same; a kernel that has no f32 computes in bf16. Errors:
    /// another architecture, other outputs than start and end, a tokeniser that does not fit.
    pub fn open(
        path: &Path,
        precision: Precision,
        kernel: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Self> {
        let folder = Folder::read(path)?;
        let config = Config::read(&folder.transformer)?;
        check_labels(&folder.transformer)?;
        let longest = folder.longest.unwrap_or(usize::MAX).min(config.room());
        let name = folder.transformer.join("tokenizer.json");
        let tokens = Tokens::open(&name, config.vocabulary, longest, folder.lower, &folder.tokeniser)?;
        let (hidden, has_types) = (config.hidden, config.family == Family::Bert && config.types > 1);
        let weights = Weights::open(&folder.transformer, config)?;
        let tensors = Tensors::open(&folder.transformer.join("model.safetensors"))?;
        if !tensors.has("qa_outputs.weight") {
            return Err(unsupported("a model without outputs for start and end (qa_outputs.weight)"));
        }
        let rows = tensors.finite("qa_outputs.weight", &[2, hidden])?.to_vec();
        let bias = tensors.finite("qa_outputs.bias", &[2])?.to_vec();
        let exact = match precision {
            Precision::Auto if kernel != "auto" => Precision::Auto,
            Precision::Bf16 => Precision::Bf16,
            _ => Precision::F32,
        };
        let mut timings = measure(&weights, &float_ways(exact, kernel)?, threads, progress)?;
        let way = timings[0].way;
        timings.retain(|timing| !timing.microseconds.is_nan());
        Ok(Self {
            body: weights.pack(way.kernel, way.form, &[], threads, progress)?,
            tokens: tokens.span_tokens()?,
            has_types,
            outputs: [(rows[..hidden].to_vec(), bias[0]), (rows[hidden..].to_vec(), bias[1])],
            folder,
            path: path.to_path_buf(),
            timings,
            spare: Spares::default(),
        })
    }

    /// Return the time of each measured candidate, the fastest first; empty if there was no choice.
    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }

    pub fn kernel(&self) -> &'static str {
        self.body.kernel.name()
    }

    /// "f32" or "bf16".
    pub fn precision(&self) -> &'static str {
        self.body.form.name()
    }

    /// Return a digest of the precision and of all files on which answers depend. Reads them in full.
    pub fn fingerprint(&self, progress: &Progress) -> Result<String> {
        self.folder.digest(&self.path, self.precision(), progress)
    }

    /// Return the span of each text that answers `question` best. A long text is read in overlapping windows,
    /// and a long question is truncated to its limit. A span begins and ends with whole words. The result of
    /// a text depends only on the text and the question. Errors: the deadline of `progress`, or logits that
    /// are not finite.
    pub fn spans(
        &self,
        question: &str,
        texts: &Strings<'_>,
        threads: usize,
        progress: &Progress,
    ) -> Result<Spans> {
        let question = self.tokens.question(question)?;
        let uncounted = Progress::none();
        let windows: Vec<Vec<SpanWindow>> = map_ranges(texts.len(), 1, threads, &uncounted, |range| {
            let one = |i| {
                progress.check()?;
                self.tokens.windows(&question, texts.get(i))
            };
            range.map(one).collect::<Result<Vec<_>>>()
        })?
        .into_iter()
        .flatten()
        .collect();
        let every: Vec<&SpanWindow> = windows.iter().flatten().collect();
        let starts = batches(every.iter().map(|window| window.ids.len()), BY_TILES);
        progress.expect(every.len() as u64);
        let found = map_ranges_with(
            starts.len() - 1,
            1,
            threads,
            &uncounted,
            || self.spare.take(),
            |scratch, batch| {
                let some = &every[starts[batch.start]..starts[batch.end]];
                let ids: Vec<Vec<u32>> = some.iter().map(|window| self.ids(window)).collect();
                let sequences: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
                let rows = self.body.run(&sequences, scratch.get(), progress)?;
                let (mut first, mut best) = (0, Vec::with_capacity(some.len()));
                for window in some {
                    best.push(self.best(window, &rows[first * self.body.stride()..])?);
                    first += window.ids.len();
                }
                progress.advance(some.len() as u64);
                Ok(best)
            },
        )?
        .concat();
        let mut spans = Spans {
            starts: Vec::new(),
            ends: Vec::new(),
            scores: Vec::new(),
            none: Vec::new(),
            is_cut: question.is_cut,
        };
        let mut rest = found.as_slice();
        for (i, own) in windows.iter().enumerate() {
            let (mine, after) = rest.split_at(own.len());
            rest = after;
            spans.push(texts.get(i), mine);
        }
        Ok(spans)
    }

    /// Return a window's ids, those of the text marked if the model has types of tokens.
    fn ids(&self, window: &SpanWindow) -> Vec<u32> {
        let mark = |(&id, &kind): (&u32, &u32)| if self.has_types && kind == 1 { id | SECOND } else { id };
        window.ids.iter().zip(&window.kinds).map(mark).collect()
    }

    /// Return the best span of a window from the vectors of its tokens.
    fn best(&self, window: &SpanWindow, rows: &[f32]) -> Result<Best> {
        let (stride, hidden) = (self.body.stride(), self.body.hidden);
        let logits = |(weights, bias): &(Vec<f32>, f32)| -> Vec<f64> {
            let dot = |row: &[f32]| -> f64 {
                row[..hidden].iter().zip(weights).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum()
            };
            let own = rows.chunks_exact(stride).take(window.ids.len());
            own.map(|row| dot(row) + f64::from(*bias)).collect()
        };
        let (starts, ends) = (logits(&self.outputs[0]), logits(&self.outputs[1]));
        if !starts.iter().chain(&ends).all(|x| x.is_finite()) {
            return Err(Error::damaged(format!(
                "{}: the model's scores are not finite; its weights are too large",
                self.path.display()
            )));
        }
        let text = window.text.clone();
        let (first, last, score) = best_span(&starts[text.clone()], &ends[text]);
        let (start, end) = (window.places[first].0, window.places[last].1);
        Ok(Best { start, end, score, none: starts[0] + ends[0] })
    }
}

impl Spans {
    /// Add the result of a text: the best span of its windows, the first if several are equal.
    fn push(&mut self, text: &str, windows: &[Best]) {
        let better = |best: Best, next: &Best| if next.score > best.score { *next } else { best };
        let nothing = Best { start: 0, end: 0, score: f64::NEG_INFINITY, none: 0.0 };
        let best = windows.iter().fold(nothing, better);
        let (start, end) = whole_words(text, best.start, best.end);
        self.starts.push(start as u64);
        self.ends.push(end as u64);
        self.scores.push(best.score as f32);
        let none = windows.iter().map(|window| window.none).fold(f64::INFINITY, f64::min);
        self.none.push(if windows.is_empty() { 0.0 } else { none as f32 });
    }
}

/// Return the pair of tokens (start, end), at most [`ANSWER`] long, with the largest sum of logits, and the
/// sum. If several sums are equal, the first pair is returned.
fn best_span(starts: &[f64], ends: &[f64]) -> (usize, usize, f64) {
    let mut best = (0, 0, f64::NEG_INFINITY);
    for (i, start) in starts.iter().enumerate() {
        for (j, end) in ends.iter().enumerate().skip(i).take(ANSWER) {
            if start + end > best.2 {
                best = (i, j, start + end);
            }
        }
    }
    best
}

/// Widen a span of characters to whole words, in scripts that put spaces between them, and drop blanks around it.
fn whole_words(text: &str, start: usize, end: usize) -> (usize, usize) {
    let chars: Vec<char> = text.chars().collect();
    let end = end.min(chars.len());
    let start = start.min(end);
    let in_word = |i: usize| chars.get(i).is_some_and(|&c| c.is_alphanumeric() && !is_unspaced(c));
    let (mut first, mut last) = (start, end);
    while first < last && chars[first].is_whitespace() {
        first += 1;
    }
    while first < last && chars[last - 1].is_whitespace() {
        last -= 1;
    }
    if first == last {
        return (first, last);
    }
    while first > 0 && in_word(first - 1) && in_word(first) {
        first -= 1;
    }
    while in_word(last - 1) && in_word(last) {
        last += 1;
    }
    (first, last)
}

/// Return an error if the settings name the outputs in an order other than start, end. Other names (LABEL_0,
/// LABEL_1) do not define an order.
fn check_labels(folder: &Path) -> Result<()> {
    let value = settings(&folder.join("config.json"))?.unwrap_or(Value::Null);
    let label = |number: &str| -> String {
        let label = value.get("id2label").and_then(|labels| labels.get(number)).and_then(Value::as_str);
        label.unwrap_or_default().to_lowercase()
    };
    if label("0").contains("end") && label("1").contains("start") {
        return Err(unsupported(
            "labels in the order end, start: transformers reads the first output as the start, so it is unclear \
             which is meant (id2label in config.json)",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{best_span, whole_words, ANSWER};

    #[test]
    fn the_best_span_is_short_and_forward() {
        assert_eq!(best_span(&[1.0, 5.0, 0.0], &[9.0, 0.0, 2.0]), (0, 0, 10.0));
        assert_eq!(best_span(&[1.0, 5.0, 0.0], &[3.0, 0.0, 2.0]), (1, 2, 7.0));
        assert_eq!(best_span(&[2.0, 2.0], &[1.0, 1.0]), (0, 0, 3.0));
        let mut ends = vec![0.0; ANSWER + 1];
        ends[ANSWER] = 9.0;
        let mut starts = vec![-9.0; ANSWER + 1];
        starts[0] = 5.0;
        assert_eq!(best_span(&starts, &ends), (0, 0, 5.0));
    }

    #[test]
    fn spans_are_whole_words() {
        let cut = |text: &str, start, end| {
            let (first, last) = whole_words(text, start, end);
            text.chars().skip(first).take(last - first).collect::<String>()
        };
        assert_eq!(cut("in Königsberg, 1724", 5, 8), "Königsberg");
        assert_eq!(cut("in Königsberg, 1724", 2, 15), "Königsberg,");
        assert_eq!(cut("a 🙂 bc", 2, 3), "🙂");
        assert_eq!(cut("这座桥建于一九五七年", 5, 9), "一九五七");
        assert_eq!(cut("  ", 0, 2), "");
        assert_eq!(cut("short", 3, 99), "short");
    }
}
