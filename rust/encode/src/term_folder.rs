//! Settings of a sparse encoder's folder: where its parts are, and how logits become weights.
//!
//! Read are folders of sentence-transformers' `SparseEncoder` (a masked language model with SPLADE pooling, alone or
//! behind a router whose queries are a table of weights), and plain folders of a masked language model, with the
//! table in `idf.json` if there is one.

use super::config::settings;
use super::folder::{damaged, inside, prompts, text};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::store::file_digest;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Changes whenever the same folder would give different weights.
const VERSION: &str = "native sparse encoder 1";

/// Weights of the tokens of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Table {
    /// A JSON object of tokens and weights.
    Json(PathBuf),
    /// The tensor `weight` of a safetensors file.
    Tensor(PathBuf),
}

/// The parsed folder.
#[derive(Debug, Clone)]
pub struct TermFolder {
    /// The folder of config.json, the weights and the tokeniser.
    pub transformer: PathBuf,
    /// Whether the logarithm is taken twice.
    pub is_damped: bool,
    /// Replaces the model for queries.
    pub table: Option<Table>,
    /// The longest input in tokens, if the folder limits it.
    pub longest: Option<usize>,
    pub lower: bool,
    /// The tokeniser's settings, or null.
    pub tokeniser: Value,
    pub query_prompt: String,
    pub document_prompt: String,
    root: PathBuf,
    /// Every settings file that was read, for a fingerprint.
    files: Vec<PathBuf>,
}

/// A module of a folder: the last part of its type, and its path.
type Module = (String, PathBuf);

impl TermFolder {
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
            is_damped: false,
            table: None,
            longest: None,
            lower: false,
            tokeniser: Value::Null,
            query_prompt: String::new(),
            document_prompt: String::new(),
            root: root.to_path_buf(),
            files: Vec::new(),
        };
        if let Some(modules) = read(root.join("modules.json"))? {
            let mut modules = module_list(root, &modules)?;
            let mut queries = Vec::new();
            if matches!(&modules[..], [(kind, _)] if kind == "Router" || kind == "Asym") {
                let router = read(root.join("router_config.json"))?
                    .ok_or_else(|| damaged(root, "a router without router_config.json"))?;
                queries = route(root, &router, "query")?;
                modules = route(root, &router, "document")?;
            }
            let [(first, transformer), (second, pooling)] = &modules[..] else {
                return Err(refused(&modules));
            };
            if !matches!(first.as_str(), "Transformer" | "MLMTransformer") || second != "SpladePooling" {
                return Err(refused(&modules));
            }
            folder.transformer = transformer.clone();
            let pooling = read(pooling.join("config.json"))?
                .ok_or_else(|| damaged(root, "SpladePooling without config.json"))?;
            folder.is_damped = pooling_of(&pooling)?;
            match &queries[..] {
                [] => {}
                [(kind, path)] if kind == "SparseStaticEmbedding" => {
                    let own = read(path.join("config.json"))?.unwrap_or(Value::Null);
                    folder.table = Some(match text(&own, "path") {
                        Some(file) => Table::Json(inside(path, file)?),
                        None => Table::Tensor(path.join("model.safetensors")),
                    });
                }
                same if same == modules => {}
                other => return Err(refused(other)),
            }
        } else if root.join("idf.json").is_file() {
            folder.table = Some(Table::Json(root.join("idf.json")));
        }
        let own = read(folder.transformer.join("sentence_bert_config.json"))?.unwrap_or(Value::Null);
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
        for (name, prompt) in prompts(root, &whole)? {
            match name.as_str() {
                "query" => folder.query_prompt = prompt,
                "document" => folder.document_prompt = prompt,
                _ => {}
            }
        }
        folder.files = files;
        Ok(folder)
    }

    /// Return a digest of all files on which weights depend, read in full.
    pub fn digest(&self, progress: &Progress) -> Result<String> {
        let parts = ["config.json", "tokenizer.json", "model.safetensors"];
        let mut files = self.files.clone();
        files.extend(parts.map(|name| self.transformer.join(name)));
        files.extend(self.table.iter().map(|table| match table {
            Table::Json(path) | Table::Tensor(path) => path.clone(),
        }));
        files.sort();
        files.dedup();
        let mut all = blake3::Hasher::new();
        all.update(format!("{VERSION}\n").as_bytes());
        for file in files {
            let digest = file_digest(&file, progress)?;
            let name = file.strip_prefix(&self.root).unwrap_or(&file);
            all.update(format!("{}\n{digest}\n", name.display()).as_bytes());
        }
        Ok(all.finalize().to_hex().to_string())
    }
}

fn refused(modules: &[Module]) -> Error {
    let kinds: Vec<&str> = modules.iter().map(|(kind, _)| kind.as_str()).collect();
    Error::input(format!(
        "a sparse encoder has a transformer and SpladePooling, and its queries may have a SparseStaticEmbedding; got {}",
        kinds.join(", ")
    ))
}

fn last(kind: &str) -> String {
    kind.rsplit('.').next().unwrap_or_default().to_owned()
}

/// Return the modules of `modules.json`.
fn module_list(root: &Path, modules: &Value) -> Result<Vec<Module>> {
    let modules = modules.as_array().ok_or_else(|| damaged(root, "modules.json is not a list"))?;
    let module = |module: &Value| {
        let kind = text(module, "type").ok_or_else(|| damaged(root, "a module without type"))?;
        Ok((last(kind), inside(root, text(module, "path").unwrap_or_default())?))
    };
    modules.iter().map(module).collect()
}

/// Return the modules of one route of a router.
fn route(root: &Path, router: &Value, role: &str) -> Result<Vec<Module>> {
    let wrong = || damaged(root, "router_config.json does not list the modules of queries and documents");
    let paths = router.get("structure").and_then(|s| s.get(role)).and_then(Value::as_array);
    let module = |path: &Value| {
        let path = path.as_str().ok_or_else(wrong)?;
        let kind = router.get("types").and_then(|types| text(types, path)).ok_or_else(wrong)?;
        Ok((last(kind), inside(root, path)?))
    };
    paths.ok_or_else(wrong)?.iter().map(module).collect()
}

/// Return whether SPLADE pooling takes the logarithm twice. Errors: another pooling than the maximum.
fn pooling_of(config: &Value) -> Result<bool> {
    let strategy = text(config, "pooling_strategy").unwrap_or("max");
    if strategy != "max" {
        return Err(Error::input(format!("SpladePooling with the strategy {strategy:?} is not built in")));
    }
    match text(config, "activation_function").unwrap_or("relu") {
        "relu" => Ok(false),
        "log1p_relu" => Ok(true),
        other => Err(Error::input(format!("SpladePooling with the activation {other:?} is not built in"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pooling_is_a_maximum() {
        assert_eq!(pooling_of(&json!({})), Ok(false));
        assert_eq!(pooling_of(&json!({"activation_function": "log1p_relu"})), Ok(true));
        assert!(pooling_of(&json!({"pooling_strategy": "sum"})).is_err());
        assert!(pooling_of(&json!({"activation_function": "gelu"})).is_err());
    }

    #[test]
    fn routes_stay_in_the_folder() {
        let root = Path::new("/m");
        let router =
            |path: &str| json!({"types": {path: "a.b.SpladePooling"}, "structure": {"query": [path]}});
        assert_eq!(
            route(root, &router("q"), "query"),
            Ok(vec![("SpladePooling".to_owned(), PathBuf::from("/m/q"))])
        );
        assert!(route(root, &router("../q"), "query").is_err());
        assert!(route(root, &router("q"), "document").is_err());
    }
}
