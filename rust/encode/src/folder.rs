//! Settings of a sentence-transformers folder: modules, pooling, prompts and length limits.

use super::config::{settings, unsupported};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::store::file_digest;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Version that changes whenever the same folder would give different vectors.
const VERSION: &str = "native encoder 1";

/// How token vectors become one vector. The results of several methods are concatenated in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pooling {
    /// The first token after a prompt, if the prompt is not pooled.
    Cls,
    Max,
    Mean,
    /// The sum divided by the square root of the number of tokens.
    MeanSqrt,
    /// The mean in which token `i` (from 1) has weight `i`.
    Weighted,
    /// The last token.
    Last,
}

/// A step after the pooling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A linear layer in this folder.
    Dense(PathBuf),
    Normalise,
}

/// The parsed folder.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The folder that contains config.json, the weights and the tokeniser.
    pub transformer: PathBuf,
    pub pooling: Vec<Pooling>,
    /// Whether a prompt's tokens take part in the pooling.
    pub pool_prompt: bool,
    pub steps: Vec<Step>,
    /// The longest input in tokens, if the folder limits it.
    pub longest: Option<usize>,
    pub lower: bool,
    /// The tokeniser's settings, or null.
    pub tokeniser: Value,
    /// (name, prompt).
    pub prompts: Vec<(String, String)>,
    pub default_prompt: Option<String>,
    /// Number of values of a vector that are used, if not all.
    pub cut: Option<usize>,
    /// Every settings file that was read, for the fingerprint.
    pub files: Vec<PathBuf>,
}

impl Folder {
    pub fn read(root: &Path) -> Result<Self> {
        if !root.is_dir() {
            return Err(Error::io(format!("{}: no such folder", root.display())));
        }
        let mut files = Vec::new();
        let mut read = |path: PathBuf| -> Result<Option<Value>> {
            let value = settings(&path)?;
            if value.is_some() {
                files.push(path);
            }
            Ok(value)
        };
        let mut folder = Self {
            transformer: root.to_path_buf(),
            pooling: vec![Pooling::Mean],
            pool_prompt: true,
            steps: Vec::new(),
            longest: None,
            lower: false,
            tokeniser: Value::Null,
            prompts: Vec::new(),
            default_prompt: None,
            cut: None,
            files: Vec::new(),
        };
        // A folder without modules uses mean pooling, as in sentence-transformers.
        if let Some(modules) = read(root.join("modules.json"))? {
            let modules = modules.as_array().ok_or_else(|| damaged(root, "modules.json is not a list"))?;
            for (place, module) in modules.iter().enumerate() {
                let kind = text(module, "type").ok_or_else(|| damaged(root, "a module without type"))?;
                let path = inside(root, text(module, "path").unwrap_or_default())?;
                match kind.rsplit('.').next().unwrap_or_default() {
                    "Transformer" if place == 0 => folder.transformer = path,
                    "Pooling" if place == 1 => {
                        let config = read(path.join("config.json"))?
                            .ok_or_else(|| Error::io(format!("{}: no config.json", path.display())))?;
                        (folder.pooling, folder.pool_prompt) = pooling(&config)?;
                    }
                    "Dense" if place > 1 => folder.steps.push(Step::Dense(path)),
                    "Normalize" if place > 1 => folder.steps.push(Step::Normalise),
                    other => {
                        return Err(unsupported(format!(
                            "the module {other:?} at position {place} is not built in"
                        )))
                    }
                }
            }
        }
        let mut own = Value::Null;
        for name in ["sentence_bert_config.json", "sentence_roberta_config.json"] {
            if own.is_null() {
                own = read(folder.transformer.join(name))?.unwrap_or(Value::Null);
            }
        }
        for name in ["query_length", "document_length", "query_expansion"] {
            if own.get(name).is_some_and(|value| !value.is_null() && value.as_bool() != Some(false)) {
                return Err(unsupported(format!("a separate limit for one role ({name}) is not built in")));
            }
        }
        folder.lower = own.get("do_lower_case").and_then(Value::as_bool).unwrap_or(false);
        let tokeniser = read(folder.transformer.join("tokenizer_config.json"))?.unwrap_or(Value::Null);
        let length = |value: &Value, name| value.get(name).and_then(Value::as_u64);
        // "No limit" is written as a huge number.
        folder.longest = length(&own, "max_seq_length")
            .or_else(|| length(&tokeniser, "model_max_length"))
            .filter(|&n| n > 0 && n < 1 << 24)
            .map(|n| n as usize);
        folder.tokeniser = tokeniser;
        let whole = read(root.join("config_sentence_transformers.json"))?.unwrap_or(Value::Null);
        folder.prompts = prompts(root, &whole)?;
        let cut = whole.get("truncate_dim").and_then(Value::as_u64).filter(|&n| n > 0);
        folder.cut = cut.and_then(|n| usize::try_from(n).ok());
        folder.default_prompt = text(&whole, "default_prompt_name").map(str::to_owned);
        folder.files = files;
        Ok(folder)
    }
}

/// Return the prompts of a model's settings, by name.
pub(super) fn prompts(root: &Path, whole: &Value) -> Result<Vec<(String, String)>> {
    let Some(prompts) = whole.get("prompts").and_then(Value::as_object) else { return Ok(Vec::new()) };
    let prompt = |(name, prompt): (&String, &Value)| match prompt {
        Value::Null => Ok((name.clone(), String::new())),
        Value::String(prompt) => Ok((name.clone(), prompt.clone())),
        _ => Err(damaged(root, "a prompt that is not a string")),
    };
    prompts.iter().map(prompt).collect()
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

pub(super) fn damaged(root: &Path, what: &str) -> Error {
    Error::damaged(format!("{}: {what}", root.display()))
}

/// Return a module's folder, which must be inside the model's.
pub(super) fn inside(root: &Path, path: &str) -> Result<PathBuf> {
    use std::path::Component::{CurDir, Normal};
    if Path::new(path).components().all(|part| matches!(part, Normal(_) | CurDir)) {
        Ok(if path.is_empty() { root.to_path_buf() } else { root.join(path) })
    } else {
        Err(damaged(root, "a module's path leaves the folder"))
    }
}

fn pooling(config: &Value) -> Result<(Vec<Pooling>, bool)> {
    let mut modes = Vec::new();
    // Newer folders name the modes; older ones have a flag for each.
    let mut named: Vec<String> = match config.get("pooling_mode") {
        Some(Value::String(mode)) => mode.split('+').map(str::to_owned).collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    if let Some(switches) = config.as_object() {
        for (name, value) in switches {
            if let Some(mode) = name.strip_prefix("pooling_mode_") {
                if value.as_bool() == Some(true) {
                    named.push(mode.to_owned());
                }
            }
        }
    }
    for name in named {
        modes.push(match name.as_str() {
            "cls" | "cls_token" => Pooling::Cls,
            "max" | "max_tokens" => Pooling::Max,
            "mean" | "mean_tokens" => Pooling::Mean,
            "mean_sqrt_len_tokens" => Pooling::MeanSqrt,
            "weightedmean" | "weightedmean_tokens" => Pooling::Weighted,
            "lasttoken" => Pooling::Last,
            other => return Err(unsupported(format!("the pooling {other:?} is not built in"))),
        });
    }
    // Without any mode the mean is used, as in sentence-transformers.
    if modes.is_empty()
        && !config.as_object().is_some_and(|c| c.keys().any(|k| k.starts_with("pooling_mode")))
    {
        modes.push(Pooling::Mean);
    }
    if modes.is_empty() {
        return Err(Error::damaged("the pooling module names no mode"));
    }
    modes.sort_unstable();
    modes.dedup();
    Ok((modes, config.get("include_prompt").and_then(Value::as_bool).unwrap_or(true)))
}

impl Folder {
    /// Return a digest of the precision and of all files on which vectors depend, read in full. `path` is the
    /// folder.
    pub fn digest(&self, path: &Path, precision: &str, progress: &Progress) -> Result<String> {
        let mut files = self.files.clone();
        let parts = ["config.json", "tokenizer.json", "model.safetensors"];
        files.extend(parts.map(|name| self.transformer.join(name)));
        for step in &self.steps {
            if let Step::Dense(folder) = step {
                files.extend(["config.json", "model.safetensors"].map(|name| folder.join(name)));
            }
        }
        files.sort();
        files.dedup();
        let mut all = blake3::Hasher::new();
        all.update(format!("{VERSION}\n{precision}\n").as_bytes());
        for file in files {
            let digest = file_digest(&file, progress)?;
            let name = file.strip_prefix(path).unwrap_or(&file);
            all.update(format!("{}\n{digest}\n", name.display()).as_bytes());
        }
        Ok(all.finalize().to_hex().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn folder(name: &str, files: &[(&str, Value)]) -> Result<Folder> {
        let root = std::env::temp_dir().join(format!("ketrag-folder-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("1_Pooling")).unwrap();
        for (name, value) in files {
            std::fs::write(root.join(name), value.to_string()).unwrap();
        }
        let read = Folder::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
        read
    }

    fn modules(types: &[&str]) -> (&'static str, Value) {
        let paths = ["", "1_Pooling", "2", "3"];
        let list = types.iter().zip(paths).map(|(t, p)| json!({"path": p, "type": format!("a.models.{t}")}));
        ("modules.json", list.collect())
    }

    #[test]
    fn a_whole_folder() {
        let read = folder(
        "whole",
        &[
            modules(&["Transformer", "Pooling", "Dense", "Normalize"]),
            ("1_Pooling/config.json", json!({"pooling_mode_cls_token": true, "pooling_mode_max_tokens": false, "pooling_mode_mean_tokens": true, "include_prompt": false})),
            ("sentence_bert_config.json", json!({"max_seq_length": 128, "do_lower_case": true})),
            ("config_sentence_transformers.json", json!({"prompts": {"query": "q: "}, "default_prompt_name": "query"})),
        ],
    )
    .unwrap();
        assert_eq!((read.pooling, read.pool_prompt), (vec![Pooling::Cls, Pooling::Mean], false));
        assert_eq!((read.longest, read.lower), (Some(128), true));
        assert_eq!(read.prompts, [("query".to_owned(), "q: ".to_owned())]);
        assert_eq!(read.default_prompt.as_deref(), Some("query"));
        assert!(matches!(read.steps.as_slice(), [Step::Dense(_), Step::Normalise]));
        assert_eq!(read.files.len(), 4);
    }

    #[test]
    fn the_plainest_folder_is_pooled_by_the_mean() {
        let read = folder("plain", &[("tokenizer_config.json", json!({"model_max_length": 1e30}))]).unwrap();
        assert_eq!((read.pooling, read.longest, read.steps), (vec![Pooling::Mean], None, vec![]));
        let silent = [modules(&["Transformer", "Pooling"]), ("1_Pooling/config.json", json!({}))];
        assert_eq!(folder("silent", &silent).unwrap().pooling, [Pooling::Mean]);
    }

    #[test]
    fn what_is_not_built_in_is_refused_by_name() {
        let refused = |name: &str, files: &[(&str, Value)]| folder(name, files).unwrap_err().to_string();
        let text = refused("cnn", &[modules(&["Transformer", "CNN"])]);
        assert!(text.contains("\"CNN\"") && text.contains("`sentence-transformers:` serves it"), "{text}");
        let odd = [
            modules(&["Transformer", "Pooling"]),
            ("1_Pooling/config.json", json!({"pooling_mode": "spectral"})),
        ];
        assert!(refused("odd", &odd).contains("\"spectral\""));
        let none = [
            modules(&["Transformer", "Pooling"]),
            ("1_Pooling/config.json", json!({"pooling_mode_mean_tokens": false})),
        ];
        assert!(refused("none", &none).contains("names no mode"));
        assert!(refused("file", &[modules(&["Transformer", "Pooling"])]).contains("no config.json"));
        let away = json!([{"path": "../elsewhere", "type": "Transformer"}]);
        assert!(refused("away", &[("modules.json", away)]).contains("leaves the folder"));
        assert!(refused("list", &[("modules.json", json!({}))]).contains("not a list"));
        assert!(matches!(Folder::read(Path::new("/nowhere/at/all")), Err(Error::Io(_))));
    }
}
