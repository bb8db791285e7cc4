//! Conversion of a folder's tensors to a packed [`Body`].

use super::attention::{Distances, Heads};
use super::buffer::Buffer;
use super::buffer::Layout;
use super::bytes::product::Linear as ByteLinear;
use super::config::{unsupported, Config, Family};
use super::kernel::{Form, Kernel};
use super::model::{Body, Layer, Layers};
use super::norm::Norm;
use super::product::Linear;
use super::simd::math::Activation;
use super::tensors::Tensors;
use super::tiles::product::Linear as TileLinear;
use crate::error::{Error, Result};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The weights of a folder, as stored.
pub struct Weights {
    pub config: Config,
    tensors: Arc<Tensors>,
    /// Common prefix of the names of all tensors.
    prefix: String,
}

/// The largest distance that MPNet distinguishes.
const FARTHEST: f64 = 128.0;

impl Weights {
    /// Open `model.safetensors` in `folder`.
    pub fn open(folder: &Path, config: Config) -> Result<Self> {
        Self::exist(folder)?;
        let path = folder.join("model.safetensors");
        let tensors = Arc::new(Tensors::open(&path)?);
        let base = match config.family {
            Family::Bert => "bert.",
            Family::Roberta => "roberta.",
            Family::Mpnet => "mpnet.",
            Family::DistilBert => "distilbert.",
        };
        let has = |prefix: &str| tensors.has(&format!("{prefix}embeddings.word_embeddings.weight"));
        let prefix = if !has("") && has(base) { base.to_owned() } else { String::new() };
        let weights = Self { config, tensors, prefix };
        // Checked once: rows of the table are read from the file at each use.
        let Config { vocabulary, hidden, .. } = weights.config;
        weights.tensors.finite(&weights.name("embeddings.word_embeddings.weight"), &[vocabulary, hidden])?;
        Ok(weights)
    }

    /// Return an error for a folder whose weights are not in one safetensors file.
    pub fn exist(folder: &Path) -> Result<()> {
        if folder.join("model.safetensors").is_file() {
            return Ok(());
        }
        Err(unsupported(format!(
            "{}: no model.safetensors (weights in one file of that format are read)",
            folder.display()
        )))
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        Ok(self.tensors.finite(&self.name(name), shape)?.to_vec())
    }

    fn norm(&self, name: &str, layout: Layout) -> Result<Norm> {
        let hidden = [self.config.hidden];
        // Old files call the two gamma and beta.
        let named = |new: &str, old: &str| {
            let (new, old) = (format!("{name}.{new}"), format!("{name}.{old}"));
            if self.tensors.has(&self.name(&old)) {
                self.read(&old, &hidden)
            } else {
                self.read(&new, &hidden)
            }
        };
        let (weight, bias) = (named("weight", "gamma")?, named("bias", "beta")?);
        Ok(Norm::new(layout, &weight, &bias, self.config.eps))
    }

    /// Return weights and bias with rows and columns moved to their padded positions and scaled.
    fn placed(
        &self,
        name: &str,
        (outputs, out_place): (usize, &Places),
        (inputs, in_place): (usize, &Places),
        scale: f32,
        into: &mut Dense,
    ) -> Result<()> {
        let weights = self.tensors.finite(&self.name(&format!("{name}.weight")), &[outputs, inputs])?;
        let bias = self.read(&format!("{name}.bias"), &[outputs])?;
        let mut row = vec![0.0; inputs];
        for j in 0..outputs {
            weights.row(j, &mut row);
            let place = out_place.of(j);
            into.bias[place] = bias[j] * scale;
            let line = &mut into.weights[place * into.inputs..(place + 1) * into.inputs];
            for (part, values) in row.chunks(in_place.head).enumerate() {
                let start = in_place.first + part * in_place.width;
                for (into, &x) in line[start..start + values.len()].iter_mut().zip(values) {
                    *into = x * scale;
                }
            }
        }
        Ok(())
    }

    /// Pack everything for `kernel` in `form`. For int8, `sample` calibrates the ranges of the layers'
    /// inputs.
    pub fn pack(
        &self,
        kernel: Kernel,
        form: Form,
        sample: &[&[u32]],
        threads: usize,
        progress: &Progress,
    ) -> Result<Body> {
        self.pack_some(kernel, form, sample, usize::MAX, threads, progress)
    }

    /// Like [`Weights::pack`], with only the first `most` layers.
    pub fn pack_some(
        &self,
        kernel: Kernel,
        form: Form,
        sample: &[&[u32]],
        most: usize,
        threads: usize,
        progress: &Progress,
    ) -> Result<Body> {
        let config = &self.config;
        let layout = kernel.layout(form);
        let stride = layout.pad(config.hidden);
        let head = config.hidden / config.heads;
        let heads = Heads { count: config.heads, width: layout.pad(head) };
        let count = config.layers.min(most);
        let layer = |range: Range<usize>| self.layer(range.start, layout, heads);
        let exact = |d: Dense| Linear::new(layout, &d.weights, &d.bias, d.bias.len(), d.inputs);
        let layers = if form == Form::Int8 {
            Layers::Watched(map_ranges(count, 1, threads, progress, |range| Ok(layer(range)?.pack(&exact)))?)
        } else if layout.tiles {
            Layers::Tiles(map_ranges(count, 1, threads, progress, |range| {
                Ok(layer(range)?.pack(|d| TileLinear::new(&d.weights, &d.bias, d.bias.len(), d.inputs)))
            })?)
        } else {
            Layers::Rows(map_ranges(count, 1, threads, progress, |range| Ok(layer(range)?.pack(&exact)))?)
        };
        let room = config.room();
        let table = self.read("embeddings.position_embeddings.weight", &[config.positions, config.hidden])?;
        let mut places = Buffer::new(room * stride);
        let kinds = if config.types > 0 {
            self.read("embeddings.token_type_embeddings.weight", &[config.types, config.hidden])?
        } else {
            vec![0.0; config.hidden]
        };
        for (place, row) in table.chunks_exact(config.hidden).skip(config.first_position).enumerate() {
            for (i, (&p, &t)) in row.iter().zip(&kinds).enumerate() {
                places[place * stride + i] = p + t;
            }
        }
        let types = kinds.chunks_exact(config.hidden).collect::<Vec<_>>();
        let second = match types[..] {
            [first, second, ..] => second.iter().zip(first).map(|(s, f)| s - f).collect(),
            _ => Vec::new(),
        };
        let mut body = Body {
            kernel,
            form,
            layout,
            hidden: config.hidden,
            heads,
            inner: layout.pad(config.intermediate),
            activation: config.activation,
            words: (
                Arc::clone(&self.tensors),
                self.name("embeddings.word_embeddings.weight"),
                config.vocabulary,
            ),
            places,
            second,
            norm: self.norm("embeddings.LayerNorm", layout)?,
            layers,
            distances: self.distances(room)?,
        };
        if form == Form::Int8 {
            let found = body.watch(sample, threads, progress)?;
            let bytes = |range: Range<usize>| {
                let found = &found[range.start];
                let mut place = 0;
                Ok(layer(range)?.pack(|d| {
                    let mut most = found[place].clone();
                    most.resize(d.inputs, 1.0);
                    place += 1;
                    ByteLinear::new(&d.weights, &d.bias, d.bias.len(), d.inputs, &most)
                }))
            };
            body.layers = Layers::Bytes(map_ranges(count, 1, threads, progress, bytes)?);
        }
        Ok(body)
    }

    fn layer(&self, index: usize, layout: Layout, heads: Heads) -> Result<Layer<Dense>> {
        let (hidden, inner) = (self.config.hidden, self.config.intermediate);
        let names: [&str; 8] = match self.config.family {
            Family::DistilBert => [
                "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
                "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm",
            ],
            Family::Mpnet => [
                "attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o",
                "attention.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
            ],
            Family::Bert | Family::Roberta => [
                "attention.self.query", "attention.self.key", "attention.self.value",
                "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
                "output.LayerNorm",
            ],
        };
        let stack = if self.config.family == Family::DistilBert { "transformer" } else { "encoder" };
        let names = names.map(|name| format!("{stack}.layer.{index}.{name}"));
        let straight = Places { head: hidden.max(inner), width: 0, first: 0 };
        let head = hidden / heads.count;
        let wide = heads.count * heads.width;
        let parted = |first| Places { head, width: heads.width, first };
        let mut project = Dense::new(3 * wide, layout.pad(hidden));
        // A score becomes the exponent of 2 (not e) of its share.
        let scale = (std::f64::consts::LOG2_E / (head as f64).sqrt()) as f32;
        for (part, (name, scale)) in names.iter().zip([scale, 1.0, 1.0]).enumerate() {
            let places = parted(part * wide);
            self.placed(name, (hidden, &places), (hidden, &straight), scale, &mut project)?;
        }
        let mut merge = Dense::new(layout.pad(hidden), wide);
        self.placed(&names[3], (hidden, &straight), (hidden, &parted(0)), 1.0, &mut merge)?;
        let mut up = Dense::new(layout.pad(inner), layout.pad(hidden));
        self.placed(&names[5], (inner, &straight), (hidden, &straight), 1.0, &mut up)?;
        let mut down = Dense::new(layout.pad(hidden), layout.pad(inner));
        self.placed(&names[6], (hidden, &straight), (inner, &straight), 1.0, &mut down)?;
        Ok(Layer {
            project,
            merge,
            norm: self.norm(&names[4], layout)?,
            up,
            down,
            last_norm: self.norm(&names[7], layout)?,
        })
    }

    /// Return the activation of the masked-language-model head.
    pub fn head_activation(&self) -> Activation {
        match self.config.family {
            Family::Bert | Family::DistilBert => self.config.activation,
            Family::Roberta | Family::Mpnet => Activation::Gelu,
        }
    }

    /// Return the parts of the masked-language-model head, whose names are not those of the encoder.
    pub fn word_head(&self, layout: Layout) -> Result<HeadParts> {
        let Config { hidden, vocabulary, .. } = self.config;
        let head =
            Self { config: self.config.clone(), tensors: Arc::clone(&self.tensors), prefix: String::new() };
        let [transform, norm, words, biases @ ..] = match self.config.family {
            Family::Bert => [
                "cls.predictions.transform.dense",
                "cls.predictions.transform.LayerNorm",
                "cls.predictions.decoder.weight",
                "cls.predictions.bias",
                "cls.predictions.decoder.bias",
            ],
            Family::DistilBert => [
                "vocab_transform", "vocab_layer_norm", "vocab_projector.weight", "vocab_projector.bias",
                "vocab_projector.bias",
            ],
            Family::Roberta | Family::Mpnet => [
                "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder.weight", "lm_head.bias",
                "lm_head.decoder.bias",
            ],
        };
        let Some(bias) = biases.into_iter().find(|name| self.tensors.has(name)) else {
            return Err(Error::input(format!(
                "the model has no masked-language-model head ({}), which gives the weights of terms",
                biases[0]
            )));
        };
        let straight = Places { head: hidden, width: 0, first: 0 };
        let place = (hidden, &straight);
        let mut dense = Dense::new(layout.pad(hidden), layout.pad(hidden));
        head.placed(transform, place, place, 1.0, &mut dense)?;
        let mut table = Dense::new(layout.pad(vocabulary), layout.pad(hidden));
        // Usually the table of word vectors, which is then stored once.
        let stored = self.name("embeddings.word_embeddings.weight");
        let words = if self.tensors.has(words) { words } else { stored.as_str() };
        let rows = self.tensors.finite(words, &[vocabulary, hidden])?;
        for (row, line) in table.weights.chunks_exact_mut(table.inputs).take(vocabulary).enumerate() {
            rows.row(row, &mut line[..hidden]);
        }
        table.bias[..vocabulary].copy_from_slice(&head.read(bias, &[vocabulary])?);
        Ok(HeadParts { transform: dense, norm: head.norm(norm, layout)?, words: table })
    }

    fn distances(&self, room: usize) -> Result<Option<Distances>> {
        let (buckets, heads) = (self.config.buckets, self.config.heads);
        if buckets == 0 {
            return Ok(None);
        }
        let table = self.read("encoder.relative_attention_bias.weight", &[buckets, heads])?;
        Ok(Some(Distances::new(heads, room, |head, distance| {
            table[bucket(distance, buckets) * heads + head] * std::f32::consts::LOG2_E
        })))
    }
}

/// Return the bucket of a distance `key - query` (T5: Raffel et al. 2020, section 2.1, as in MPNet): half of
/// them for each direction; of those, half exact and half logarithmic.
fn bucket(distance: isize, buckets: usize) -> usize {
    let half = buckets / 2;
    let side = if distance > 0 { half } else { 0 };
    let n = distance.unsigned_abs();
    let exact = half / 2;
    if n < exact {
        return side + n;
    }
    let exact = exact.max(1);
    // In f32, as the models were trained.
    let share = (n as f32 / exact as f32).ln() / (FARTHEST / exact as f64).ln() as f32;
    side + (exact + (share * (half - exact) as f32) as usize).min(half - 1)
}

/// Position of element `i` of a row: heads of `head` elements start `width` apart, from `first` on.
struct Places {
    head: usize,
    width: usize,
    first: usize,
}

impl Places {
    fn of(&self, i: usize) -> usize {
        self.first + i / self.head * self.width + i % self.head
    }
}

/// A padded matrix before it is packed, in the order of [`super::bytes::body::Most`].
pub struct Dense {
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
    pub inputs: usize,
}

/// A masked-language-model head before it is packed: a linear layer, its norm, and the table of words.
pub struct HeadParts {
    pub transform: Dense,
    pub norm: Norm,
    pub words: Dense,
}

impl Dense {
    fn new(outputs: usize, inputs: usize) -> Self {
        Self { weights: vec![0.0; outputs * inputs], bias: vec![0.0; outputs], inputs }
    }
}

impl Layer<Dense> {
    fn pack<L>(self, mut one: impl FnMut(Dense) -> L) -> Layer<L> {
        Layer {
            project: one(self.project),
            merge: one(self.merge),
            norm: self.norm,
            up: one(self.up),
            down: one(self.down),
            last_norm: self.last_norm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_original() {
        let got: Vec<usize> = [0, 1, -1, 7, -7, 8, -8, 16, -16, 40, -127, 128, -1000, 1000]
            .iter()
            .map(|&d| bucket(d, 32))
            .collect();
        assert_eq!(got, [0, 17, 1, 23, 7, 24, 8, 26, 10, 28, 15, 31, 15, 31]);
    }

    #[test]
    fn places_leave_room_between_heads() {
        let places = Places { head: 3, width: 4, first: 8 };
        assert_eq!((0..6).map(|i| places.of(i)).collect::<Vec<_>>(), [8, 9, 10, 12, 13, 14]);
    }
}
