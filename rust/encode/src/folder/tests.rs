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
