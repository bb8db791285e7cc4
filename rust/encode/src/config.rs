//! `config.json`: the architecture of a model and its sizes.

use super::simd::math::Activation;
use crate::error::{Error, Result};
use serde_json::Value;
use std::path::Path;

/// Maximum size of a settings file. Settings files are small, and larger ones are not read.
const LONGEST_SETTINGS: u64 = 4 << 20;

/// The families of encoders with a native implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Bert,
    /// RoBERTa, XLM-RoBERTa and CamemBERT: like BERT, with positions after the padding id.
    Roberta,
    /// MPNet: no types; a bias for the distance between tokens, shared by all layers.
    Mpnet,
    /// DistilBERT: BERT without token types, with other parameter names.
    DistilBert,
}

/// The sizes of an encoder.
#[derive(Debug, Clone)]
pub struct Config {
    pub family: Family,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub intermediate: usize,
    pub vocabulary: usize,
    /// Number of rows of the table of positions.
    pub positions: usize,
    /// The position of the first token.
    pub first_position: usize,
    pub types: usize,
    /// Buckets of distances (MPNet), otherwise 0.
    pub buckets: usize,
    pub activation: Activation,
    pub eps: f32,
}

/// Return the error for a model without native support, with an alternative.
pub fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::input(format!("{what}; `sentence-transformers:` serves it"))
}

/// Read a JSON settings file, or return `None` if it does not exist.
pub fn settings(path: &Path) -> Result<Option<Value>> {
    let failed = |e: std::io::Error| Error::io(format!("{}: {e}", path.display())).caused_by(e);
    let size = match std::fs::metadata(path) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    if size > LONGEST_SETTINGS {
        return Err(Error::damaged(format!(
            "{}: {size} bytes are too many for a settings file",
            path.display()
        )));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let value = serde_json::from_slice(&bytes)
        .map_err(|e| Error::damaged(format!("{}: {e}", path.display())).caused_by(e))?;
    Ok(Some(value))
}

impl Config {
    /// Read the configuration of a model's folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let value = settings(&path)?.ok_or_else(|| {
            Error::io(format!("{}: no such file; is this a model's folder?", path.display()))
        })?;
        Self::parse(&value).map_err(|error| match error {
            Error::Damaged(what) => Error::damaged(format!("{}: {what}", path.display())),
            other => other,
        })
    }

    fn parse(value: &Value) -> Result<Self> {
        let model_type = value.get("model_type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let family = match model_type.as_str() {
            "bert" => Family::Bert,
            "roberta" | "xlm-roberta" | "camembert" => Family::Roberta,
            "mpnet" => Family::Mpnet,
            "distilbert" => Family::DistilBert,
            "" => return Err(unsupported("the settings name no architecture (model_type)")),
            other => return Err(unsupported(format!("the architecture {other:?} is not built in"))),
        };
        if let Some(kind) = value.get("position_embedding_type").and_then(Value::as_str) {
            if kind != "absolute" {
                return Err(unsupported(format!("positions of the kind {kind:?} are not built in")));
            }
        }
        if value.get("is_decoder").and_then(Value::as_bool) == Some(true) {
            return Err(unsupported("a decoder is not built in"));
        }
        // Limits far above those of any real model, so that no product below can overflow.
        let size = |name: &str, most: usize| -> Result<usize> {
            match value.get(name).and_then(Value::as_u64) {
                Some(n) if (1..=most as u64).contains(&n) => Ok(n as usize),
                _ => Err(Error::damaged(format!("{name} must be a whole number from 1 to {most}"))),
            }
        };
        let names = match family {
            Family::DistilBert => ["dim", "n_layers", "n_heads", "hidden_dim", "activation"],
            _ => {
                ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"]
            }
        };
        let activation = value.get(names[4]).and_then(Value::as_str).unwrap_or("gelu");
        let eps = value.get("layer_norm_eps").and_then(Value::as_f64).unwrap_or(1e-12);
        if !(0.0..=1.0).contains(&eps) {
            return Err(Error::damaged("layer_norm_eps must be from 0 to 1"));
        }
        let padding = value.get("pad_token_id").and_then(Value::as_u64).unwrap_or(1).min(1 << 20) as usize;
        let config = Self {
            family,
            hidden: size(names[0], 16_384)?,
            layers: size(names[1], 512)?,
            heads: size(names[2], 1024)?,
            intermediate: size(names[3], 65_536)?,
            vocabulary: size("vocab_size", 1 << 24)?,
            positions: size("max_position_embeddings", 1 << 17)?,
            first_position: if matches!(family, Family::Bert | Family::DistilBert) { 0 } else { padding + 1 },
            types: match family {
                Family::Mpnet | Family::DistilBert => 0,
                _ => size("type_vocab_size", 1024)?,
            },
            buckets: match family {
                Family::Mpnet if value.get("relative_attention_num_buckets").is_some() => {
                    size("relative_attention_num_buckets", 4096)?
                }
                Family::Mpnet => 32,
                _ => 0,
            },
            activation: Activation::named(activation)
                .ok_or_else(|| unsupported(format!("the activation {activation:?} is not built in")))?,
            eps: eps as f32,
        };
        if !config.hidden.is_multiple_of(config.heads) {
            return Err(Error::damaged(format!(
                "{} {} is not a multiple of {} {}",
                names[0], config.hidden, names[2], config.heads
            )));
        }
        if config.first_position >= config.positions {
            return Err(Error::damaged("max_position_embeddings leaves no room for a token"));
        }
        if config.buckets == 1 || !config.buckets.is_multiple_of(2) {
            return Err(Error::damaged("relative_attention_num_buckets must be even"));
        }
        Ok(config)
    }

    /// Return the number of tokens for which there are positions.
    pub fn room(&self) -> usize {
        self.positions - self.first_position
    }
}
