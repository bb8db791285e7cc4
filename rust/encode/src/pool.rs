//! Pooling of token vectors into one vector, followed by dense layers and normalisation.

use super::config::{settings, unsupported};
use super::folder::{Pooling, Step};
use super::tensors::Tensors;
use crate::error::{Error, Result};
use serde_json::Value;
use std::path::Path;

/// A vector shorter than this is not normalised.
const SHORT: f64 = 1e-12;

/// The widest dense layer.
const WIDEST: u64 = 1 << 16;

/// A linear layer after the pooling.
struct Dense {
    weights: Vec<f32>,
    bias: Option<Vec<f32>>,
    inputs: usize,
    tanh: bool,
}

enum Stage {
    Dense(Dense),
    Normalise,
}

/// Everything after the transformer.
pub struct Head {
    pooling: Vec<Pooling>,
    /// Whether a prompt's tokens are left out.
    skip_prompt: bool,
    stages: Vec<Stage>,
    dimension: usize,
}

impl Head {
    /// Keep only the first `most` values of a vector.
    pub fn cut(&mut self, most: Option<usize>) {
        self.dimension = self.dimension.min(most.unwrap_or(usize::MAX));
    }

    /// Build the head for token vectors of `hidden` values.
    pub fn open(pooling: &[Pooling], pool_prompt: bool, steps: &[Step], hidden: usize) -> Result<Self> {
        let mut dimension = hidden * pooling.len();
        let mut stages = Vec::new();
        for step in steps {
            stages.push(match step {
                Step::Normalise => Stage::Normalise,
                Step::Dense(folder) => {
                    let dense = Dense::open(folder, dimension)?;
                    dimension = dense.weights.len() / dense.inputs;
                    Stage::Dense(dense)
                }
            });
        }
        Ok(Self { pooling: pooling.to_vec(), skip_prompt: !pool_prompt, stages, dimension })
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Return one vector of `dimension` values from the rows (of `stride` values, `hidden` of which count) of
    /// a window whose first `prompt` tokens belong to a prompt.
    pub fn run(&self, rows: &[f32], stride: usize, hidden: usize, prompt: usize) -> Vec<f32> {
        let count = rows.len() / stride;
        let from = if self.skip_prompt { prompt.min(count - 1) } else { 0 };
        let mut vector = Vec::with_capacity(hidden * self.pooling.len());
        for &mode in &self.pooling {
            pool(mode, rows, stride, hidden, from, &mut vector);
        }
        self.finish(vector)
    }

    /// Return one vector of length 1 from the rows of a span of a text. Where the text's vector is that of its
    /// first or last token, the mean of the rows takes its place.
    pub fn run_span(&self, rows: &[f32], stride: usize, hidden: usize) -> Vec<f32> {
        let mut vector = Vec::with_capacity(hidden * self.pooling.len());
        for &mode in &self.pooling {
            let mode = match mode {
                Pooling::Cls | Pooling::Last => Pooling::Mean,
                other => other,
            };
            pool(mode, rows, stride, hidden, 0, &mut vector);
        }
        let mut vector = self.finish(vector);
        normalise(&mut vector);
        vector
    }

    /// Pass a pooled vector through the dense layers and cut it to its dimension.
    fn finish(&self, mut vector: Vec<f32>) -> Vec<f32> {
        for stage in &self.stages {
            match stage {
                Stage::Normalise => normalise(&mut vector),
                Stage::Dense(dense) => vector = dense.run(&vector),
            }
        }
        vector.truncate(self.dimension);
        vector
    }
}

fn pool(mode: Pooling, rows: &[f32], stride: usize, hidden: usize, from: usize, out: &mut Vec<f32>) {
    let count = rows.len() / stride;
    let tokens = rows[from * stride..].chunks_exact(stride).map(|row| &row[..hidden]);
    match mode {
        // If a prompt is left out, the first token after it, as in sentence-transformers.
        Pooling::Cls => out.extend(&rows[from * stride..][..hidden]),
        Pooling::Last => out.extend(&rows[(count - 1) * stride..][..hidden]),
        Pooling::Max => {
            let mut most = vec![f32::NEG_INFINITY; hidden];
            for row in tokens {
                for (m, &x) in most.iter_mut().zip(row) {
                    *m = if x > *m { x } else { *m };
                }
            }
            out.extend(most);
        }
        Pooling::Mean | Pooling::MeanSqrt | Pooling::Weighted => {
            let (mut sums, mut total) = (vec![0.0f64; hidden], 0.0f64);
            for (i, row) in tokens.enumerate() {
                // Weights count from the window's first token, as in sentence-transformers.
                let weight = if mode == Pooling::Weighted { (from + i + 1) as f64 } else { 1.0 };
                total += weight;
                for (s, &x) in sums.iter_mut().zip(row) {
                    *s += weight * f64::from(x);
                }
            }
            let by = if mode == Pooling::MeanSqrt { total.sqrt() } else { total };
            out.extend(sums.iter().map(|&s| (s / by) as f32));
        }
    }
}

/// Scale to length 1, in f64; a vector of almost zero length is unchanged.
pub fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    if length >= SHORT {
        for x in vector {
            *x = (f64::from(*x) / length) as f32;
        }
    }
}

impl Dense {
    fn open(folder: &Path, inputs: usize) -> Result<Self> {
        let path = folder.join("config.json");
        let config =
            settings(&path)?.ok_or_else(|| Error::io(format!("{}: no such file", path.display())))?;
        let size = |name: &str| config.get(name).and_then(Value::as_u64).filter(|&n| n > 0 && n <= WIDEST);
        let wrong = |what: &str| Error::damaged(format!("{}: {what}", path.display()));
        let outputs = size("out_features")
            .ok_or_else(|| wrong("out_features must be a positive whole number"))?
            as usize;
        if size("in_features") != Some(inputs as u64) {
            return Err(wrong("in_features differs from the width of the layer before"));
        }
        for (name, usual) in
            [("module_input_name", "sentence_embedding"), ("module_output_name", "sentence_embedding")]
        {
            match config.get(name).and_then(Value::as_str) {
                Some(other) if other != usual => {
                    return Err(unsupported(format!("a dense layer on {other:?} is not built in")))
                }
                _ => {}
            }
        }
        let activation = config.get("activation_function").and_then(Value::as_str).unwrap_or("Tanh");
        let tanh = match activation.rsplit('.').next().unwrap_or_default() {
            "Tanh" => true,
            "Identity" => false,
            other => return Err(unsupported(format!("the activation {other:?} is not built in"))),
        };
        let weights = folder.join("model.safetensors");
        if !weights.exists() {
            return Err(unsupported(format!("{}: no model.safetensors", folder.display())));
        }
        let tensors = Tensors::open(&weights)?;
        let bias = config.get("bias").and_then(Value::as_bool).unwrap_or(true);
        Ok(Self {
            weights: tensors.finite("linear.weight", &[outputs, inputs])?.to_vec(),
            bias: if bias { Some(tensors.finite("linear.bias", &[outputs])?.to_vec()) } else { None },
            inputs,
            tanh,
        })
    }

    fn run(&self, x: &[f32]) -> Vec<f32> {
        let rows = self.weights.chunks_exact(self.inputs).enumerate();
        rows.map(|(i, row)| {
            let bias = self.bias.as_ref().map_or(0.0, |b| f64::from(b[i]));
            let sum = bias + row.iter().zip(x).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum::<f64>();
            if self.tanh {
                sum.tanh() as f32
            } else {
                sum as f32
            }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pooling() {
        // Three tokens of two values, padded to four.
        let rows = [1.0, 2.0, 0.0, 0.0, 3.0, -2.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0];
        let get = |mode, pool_prompt, prompt| {
            Head::open(&[mode], pool_prompt, &[], 2).unwrap().run(&rows, 4, 2, prompt)
        };
        let root = |x: f64| (x / 3f64.sqrt()) as f32;
        assert_eq!(get(Pooling::Cls, true, 1), [1.0, 2.0]);
        assert_eq!(get(Pooling::Max, true, 1), [5.0, 6.0]);
        assert_eq!(get(Pooling::Mean, true, 1), [3.0, 2.0]);
        assert_eq!(get(Pooling::MeanSqrt, true, 1), [root(9.0), root(6.0)]);
        assert_eq!(get(Pooling::Weighted, true, 1), [22.0 / 6.0, 16.0 / 6.0]);
        assert_eq!(get(Pooling::Last, true, 1), [5.0, 6.0]);
        // Without the prompt's token; the first token stays the first, and one token is always left.
        assert_eq!(get(Pooling::Mean, false, 1), [4.0, 2.0]);
        assert_eq!(get(Pooling::Weighted, false, 1), [21.0 / 5.0, 14.0 / 5.0]);
        assert_eq!(get(Pooling::Cls, false, 1), [3.0, -2.0]);
        assert_eq!(get(Pooling::Max, false, 9), [5.0, 6.0]);
        let both = Head::open(&[Pooling::Cls, Pooling::Mean], true, &[Step::Normalise], 2).unwrap();
        assert_eq!(both.dimension(), 4);
        let vector = both.run(&rows, 4, 2, 0);
        let length: f32 = vector.iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-6);
    }

    #[test]
    fn no_vector_is_divided_by_nothing() {
        let mut zero = [0.0f32; 3];
        normalise(&mut zero);
        assert_eq!(zero, [0.0; 3]);
        let mut vector = [3.0f32, 4.0];
        normalise(&mut vector);
        assert_eq!(vector, [0.6, 0.8]);
    }
}
