//! A cross-encoder: a transformer that reads question and passage together and says in one number how well
//! they go together (`BertForSequenceClassification` with one label, as the ms-marco-MiniLM models are).

use super::body::{Body, SECOND};
use super::config::{unsupported, Config, Family};
use super::folder::Folder;
use super::load::Weights;
use super::machine::{Form, Kernel};
use super::spare::Spares;
use super::tensors::Tensors;
use super::tokens::{Pairs, Tokens};
use super::Precision;
use crate::error::{Error, Result};
use crate::parallel::{map_ranges, map_ranges_with};
use crate::progress::Progress;
use crate::text::strings::Strings;
use std::path::Path;

/// Tokens that go through the layers together, at least one pair.
const TOGETHER: usize = 512;

/// A loaded model.
pub struct Classifier {
    body: Body,
    pairs: Pairs,
    pooler: (Vec<f32>, Vec<f32>),
    classifier: (Vec<f32>, f32),
    spare: Spares,
}

impl Classifier {
    /// Loads a folder. [`Precision::Auto`] is bf16 where the processor has matrix tiles, else f32.
    /// Errors: another architecture, or more than one label.
    pub fn open(path: &Path, precision: Precision, threads: usize, progress: &Progress) -> Result<Self> {
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
        let form = match precision {
            Precision::Auto if !Kernel::Amx.here() => Form::F32,
            Precision::Auto | Precision::Bf16 => Form::Bf16,
            // Scores of pairs in bytes were not measured: f32 stands for them.
            Precision::F32 | Precision::Int8 => Form::F32,
        };
        let mut kernels = Kernel::all().into_iter().rev();
        let kernel = kernels.find(|k| k.serves(form) && *k != Kernel::Avx512Bf16);
        let body = weights.pack(kernel.unwrap_or(Kernel::Portable), form, &[], threads, progress)?;
        let bias = bias.first().copied().unwrap_or(0.0);
        Ok(Self {
            body,
            pairs: tokens.pairs()?,
            pooler,
            classifier: (labels, bias),
            spare: Spares::default(),
        })
    }

    pub fn kernel(&self) -> &'static str {
        self.body.kernel.name()
    }

    /// "f32" or "bf16".
    pub fn precision(&self) -> &'static str {
        if self.body.layout.low {
            "bf16"
        } else {
            "f32"
        }
    }

    /// For each text the model's number for it and `question`, before any squashing: the higher, the better.
    /// Where both are longer than the model reads, the longer is cut token by token, as transformers does.
    /// A number depends on its pair alone. Errors: the deadline of `progress`.
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
                let (mut ids, kinds) = self.pairs.ids(question, texts.get(i))?;
                for (id, kind) in ids.iter_mut().zip(kinds) {
                    *id |= if kind == 1 { SECOND } else { 0 };
                }
                Ok(ids)
            };
            range.map(one).collect::<Result<Vec<_>>>()
        })?
        .concat();
        let mut starts = vec![0];
        let mut tokens = 0;
        for (i, pair) in pairs.iter().enumerate() {
            if tokens > 0 && tokens + pair.len() > TOGETHER {
                starts.push(i);
                tokens = 0;
            }
            tokens += pair.len();
        }
        starts.push(pairs.len());
        let scores = map_ranges_with(
            if pairs.is_empty() { 0 } else { starts.len() - 1 },
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

    /// The first token's vector through the pooler (tanh) and the classifier.
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
