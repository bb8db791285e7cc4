//! A cross-encoder: a transformer that reads a query and a passage together and scores how well they match
//! (`BertForSequenceClassification` with one label, such as the ms-marco-MiniLM models).

use super::batch::{batches, BY_TILES};
use super::body::Spares;
use super::choice::Precision;
use super::choice::{exact_way, float_ways, measure, ways, Timing, Way};
use super::config::{unsupported, Config, Family};
use super::folder::Folder;
use super::kernel::Form;
use super::load::Weights;
use super::model::{Body, SECOND};
use super::tensors::Tensors;
use super::tokens::{Pairs, Tokens};
use super::verify;
use crate::error::{Error, Result};
use crate::parallel::{map_ranges, map_ranges_with};
use crate::progress::Progress;
use crate::text::strings::{Strings, StringsBuf};
use std::path::Path;

/// Number of built-in pairs on which bf16 is compared with f32, and the maximum difference between two
/// scores, as a fraction of the range of all scores.
const TRIED: usize = 12;
const APART: f32 = 0.05;

/// A loaded model.
pub struct Classifier {
    body: Body,
    pairs: Pairs,
    pooler: (Vec<f32>, Vec<f32>),
    classifier: (Vec<f32>, f32),
    timings: Vec<Timing>,
    spare: Spares,
}

impl Classifier {
    /// Load a folder. `kernel` is a kernel's name, or auto: then those that support the precision are timed
    /// on the model's shapes, and the fastest is used. With [`Precision::Auto`] bf16 is used only if its
    /// scores of built-in pairs differ from those of f32 by a small fraction of their range, and never by
    /// `avx512-bf16`, which is only used for [`Precision::Bf16`] without tiles. int8 is used only if it is
    /// requested, so that scores do not depend on a measurement. Errors: another architecture, more than one
    /// label, a kernel that does not support the precision.
    pub fn open(
        path: &Path,
        precision: Precision,
        kernel: &str,
        threads: usize,
        progress: &Progress,
    ) -> Result<Self> {
        let folder = Folder::read(path)?;
        let config = Config::read(&folder.transformer)?;
        if config.family != Family::Bert || config.types < 2 {
            return Err(unsupported("a cross-encoder other than BERT's, with two types of tokens,"));
        }
        let longest = folder.longest.unwrap_or(usize::MAX).min(config.room());
        let name = folder.transformer.join("tokenizer.json");
        let tokens = Tokens::open(&name, config.vocabulary, longest, folder.lower, &folder.tokeniser)?;
        let hidden = config.hidden;
        let weights = Weights::open(&folder.transformer, config)?;
        let tensors = Tensors::open(&folder.transformer.join("model.safetensors"))?;
        if !tensors.has("classifier.weight") || !tensors.has("bert.pooler.dense.weight") {
            return Err(unsupported("a model without a pooler and a classifier (classifier.weight)"));
        }
        let read = |name: &str, shape: &[usize]| Ok(tensors.finite(name, shape)?.to_vec());
        let one = |error: Error| match error {
            Error::Damaged(what) => unsupported(format!("{what}: a classifier of other than one label")),
            other => other,
        };
        let labels = tensors.finite("classifier.weight", &[1, hidden]).map_err(one)?.to_vec();
        let bias = read("classifier.bias", &[1])?;
        let pooler = (
            read("bert.pooler.dense.weight", &[hidden, hidden])?,
            read("bert.pooler.dense.bias", &[hidden])?,
        );
        let pairs = tokens.pairs()?;
        let ways = pair_ways(precision, kernel)?;
        let mut timings = measure(&weights, &ways, threads, progress)?;
        let sample = if precision == Precision::Int8 { sample(&pairs)? } else { Vec::new() };
        let sample: Vec<&[u32]> = sample.iter().map(Vec::as_slice).collect();
        let pack = |way: Way| weights.pack(way.kernel, way.form, &sample, threads, progress);
        let first = timings[0].way;
        let mut made = Self {
            body: pack(first)?,
            pairs,
            pooler,
            classifier: (labels, bias.first().copied().unwrap_or(0.0)),
            timings: Vec::new(),
            spare: Spares::default(),
        };
        if precision == Precision::Auto && timings.len() > 1 && first.form != Form::F32 {
            let own = made.trial(threads)?;
            let fast = std::mem::replace(&mut made.body, pack(exact_way())?);
            if apart(&own, &made.trial(threads)?) <= APART {
                made.body = fast;
            }
        }
        timings.retain(|timing| !timing.microseconds.is_nan());
        made.timings = timings;
        Ok(made)
    }

    /// Return the model's scores of the built-in pairs.
    fn trial(&self, threads: usize) -> Result<Vec<f32>> {
        let texts: StringsBuf = verify::texts().view().iter().take(TRIED + 1).collect();
        let texts = texts.view();
        let silent = Progress::none();
        let rest: StringsBuf = texts.iter().skip(1).collect();
        self.scores(texts.get(0), &rest.view(), threads, &silent)
    }

    /// Return the time of each measured candidate, the fastest first; empty if there was no choice.
    pub fn timings(&self) -> &[Timing] {
        &self.timings
    }

    pub fn kernel(&self) -> &'static str {
        self.body.kernel.name()
    }

    /// Return "f32", "bf16" or "int8".
    pub fn precision(&self) -> &'static str {
        self.body.form.name()
    }

    /// Return the model's score for each text with `question`, before any activation. Higher is better. If
    /// both together exceed the model's limit, the longer of the two is shortened token by token, as in
    /// transformers. A score depends only on its pair. Errors: the deadline of `progress`.
    pub fn scores(
        &self,
        question: &str,
        texts: &Strings<'_>,
        threads: usize,
        progress: &Progress,
    ) -> Result<Vec<f32>> {
        progress.expect(texts.len() as u64);
        let uncounted = Progress::none();
        let pairs = map_ranges(texts.len(), 8, threads, &uncounted, |range| {
            let one = |i| {
                progress.check()?;
                marked(&self.pairs, question, texts.get(i))
            };
            range.map(one).collect::<Result<Vec<_>>>()
        })?
        .concat();
        let starts = batches(pairs.iter().map(Vec::len), BY_TILES);
        let scores = map_ranges_with(
            starts.len() - 1,
            1,
            threads,
            &uncounted,
            || self.spare.take(),
            |scratch, batch| {
                let pairs = &pairs[starts[batch.start]..starts[batch.end]];
                let sequences: Vec<&[u32]> = pairs.iter().map(Vec::as_slice).collect();
                let rows = self.body.run(&sequences, scratch.get(), progress)?;
                let stride = self.body.stride();
                let mut first = 0;
                let mut scores = Vec::with_capacity(pairs.len());
                for pair in pairs {
                    scores.push(self.head(&rows[first * stride..][..self.body.hidden]));
                    first += pair.len();
                }
                progress.advance(pairs.len() as u64);
                Ok(scores)
            },
        )?
        .concat();
        if !scores.iter().all(|x: &f32| x.is_finite()) {
            return Err(Error::damaged(
                "the cross-encoder's scores are not finite: its weights are too large",
            ));
        }
        Ok(scores)
    }

    /// Apply the pooler (tanh) and the classifier to the first token's vector.
    fn head(&self, x: &[f32]) -> f32 {
        let dot = |row: &[f32], x: &[f32]| -> f64 {
            row.iter().zip(x).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum()
        };
        let (weights, biases) = &self.pooler;
        let pooled: Vec<f32> = weights
            .chunks_exact(x.len())
            .zip(biases)
            .map(|(row, &bias)| (f64::from(bias) + dot(row, x)).tanh() as f32)
            .collect();
        let (weights, bias) = &self.classifier;
        (f64::from(*bias) + dot(weights, &pooled)) as f32
    }
}

/// Return the candidates: int8 only if it is requested, otherwise those of [`float_ways`].
fn pair_ways(precision: Precision, kernel: &str) -> Result<Vec<Way>> {
    if precision == Precision::Int8 {
        ways(precision, kernel)
    } else {
        float_ways(precision, kernel)
    }
}

/// Return the tokens of a pair. The tokens of the text are marked as the second type.
fn marked(pairs: &Pairs, question: &str, text: &str) -> Result<Vec<u32>> {
    let (mut ids, kinds) = pairs.ids(question, text)?;
    for (id, kind) in ids.iter_mut().zip(kinds) {
        *id |= if kind == 1 { SECOND } else { 0 };
    }
    Ok(ids)
}

/// Return the built-in pairs that calibrate int8: each built-in text with the next.
fn sample(pairs: &Pairs) -> Result<Vec<Vec<u32>>> {
    let texts = verify::texts();
    let texts = texts.view();
    (1..texts.len()).map(|i| marked(pairs, texts.get(i - 1), texts.get(i))).collect()
}

/// Return the largest difference between two scores of the same pair, as a fraction of the range of `exact`.
fn apart(own: &[f32], exact: &[f32]) -> f32 {
    let most = exact.iter().fold(f32::NEG_INFINITY, |most, &x| most.max(x));
    let least = exact.iter().fold(f32::INFINITY, |least, &x| least.min(x));
    let largest = own.iter().zip(exact).fold(0f32, |largest, (a, b)| largest.max((a - b).abs()));
    if largest > 0.0 {
        largest / (most - least)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Form, Kernel};

    #[test]
    fn int8_is_a_candidate_only_if_it_is_requested() {
        for kernel in Kernel::all() {
            let is_scored = pair_ways(Precision::Auto, kernel.name()).is_ok();
            assert_eq!(is_scored, kernel.forms() != [Form::Int8], "{}", kernel.name());
            let is_scored = pair_ways(Precision::Int8, kernel.name()).is_ok();
            assert_eq!(is_scored, kernel.serves(Form::Int8), "{}", kernel.name());
        }
        assert!(pair_ways(Precision::Int8, "auto").unwrap().iter().all(|way| way.form == Form::Int8));
    }

    #[test]
    fn differences_count_as_a_part_of_the_range() {
        assert_eq!(apart(&[1.0, 3.5], &[1.0, 3.0]), 0.25);
        assert_eq!(apart(&[2.0], &[2.0]), 0.0);
        assert_eq!(apart(&[2.5], &[2.0]), f32::INFINITY);
    }
}
