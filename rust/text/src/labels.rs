//! What a document is also found by: the name of its file and of its folders, and the people of a mail.

use serde_json::{Map, Value};

/// Separates the title of a document from its label, where both are one string.
pub const SEPARATOR: char = '\u{1f}';
/// Maximum length of a suffix such as "markdown", in characters.
const MAX_SUFFIX: usize = 10;

/// Return the path of a file from the id of a document, without the number of a row, page or mail in it; `None` for ids
/// that are not paths.
///
/// ```
/// use ketrag_text::labels::path_of;
///
/// assert_eq!(path_of("clients/counts_2021.csv#2"), Some("clients/counts_2021.csv"));
/// assert_eq!(path_of("jonas.mbox:1"), Some("jonas.mbox"));
/// assert_eq!((path_of("26-1"), path_of("v1.2"), path_of("St. Louis")), (None, None, None));
/// ```
pub fn path_of(id: &str) -> Option<&str> {
    let path = id.split_once('#').map_or(id, |(path, _)| path);
    let path = match path.rsplit_once(':') {
        Some((file, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => file,
        _ => path,
    };
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let (stem, suffix) = name.rsplit_once('.')?;
    let is_suffix = suffix.chars().nth(MAX_SUFFIX).is_none()
        && suffix.starts_with(|c: char| c.is_ascii_alphabetic())
        && suffix.chars().all(|c| c.is_ascii_alphanumeric());
    (is_suffix && !stem.is_empty()).then_some(path)
}

/// Metadata fields that hold people: senders, authors, recipients.
const PEOPLE: [&str; 6] = ["from", "sender", "author", "to", "cc", "recipients"];
/// Maximum number of bytes of people that are read: a mail may have thousands of recipients.
const MAX_PEOPLE: usize = 4096;
/// What a mail is called in a query such as "mail from Jonas".
const MAIL: &str = "mail email";

/// The fields of a document besides its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Labelled<'a> {
    pub title: &'a str,
    pub path: &'a str,
    pub people: &'a str,
}

/// Return the label of a document, to be appended to its title: the path of its file and its people, each after a
/// separator. It is empty if the id is not a path and the metadata, a JSON object or nothing, name nobody.
///
/// ```
/// use ketrag_text::labels::{label_of, split};
///
/// let title = "new address".to_owned() + &label_of("a/jonas.mbox:1", r#"{"from": "Jonas <jo@x.org>"}"#);
/// let found = split(&title);
/// assert_eq!((found.title, found.path, found.people), ("new address", "a/jonas.mbox", "Jonas <jo@x.org>"));
/// assert_eq!(label_of("26-1", ""), "");
/// ```
pub fn label_of(id: &str, metadata: &str) -> String {
    let (path, people) = (path_of(id).unwrap_or_default(), people_of(metadata));
    if path.is_empty() && people.is_empty() {
        return String::new();
    }
    format!("{SEPARATOR}{path}{SEPARATOR}{people}")
}

/// Return the people that metadata name, and the words for a mail if they are those of a mail.
pub fn people_of(metadata: &str) -> String {
    if !PEOPLE.iter().any(|name| metadata.contains(name)) {
        return String::new();
    }
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(metadata) else { return String::new() };
    let mut people = Vec::new();
    for value in PEOPLE.iter().filter_map(|&name| fields.get(name)) {
        match value {
            Value::String(one) => people.push(one.as_str()),
            Value::Array(several) => people.extend(several.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    people.extend(is_mail(&fields).then_some(MAIL));
    let found = people.join(", ").replace(SEPARATOR, " ");
    let end = found.char_indices().map(|(at, _)| at).take_while(|&at| at <= MAX_PEOPLE).last();
    match found.len() > MAX_PEOPLE {
        true => found[..end.unwrap_or(0)].to_owned(),
        false => found,
    }
}

/// Return whether metadata are those of a mail, which has a sender and a date or an id.
fn is_mail(fields: &Map<String, Value>) -> bool {
    let has = |name: &str| fields.contains_key(name);
    fields.get("from").is_some_and(Value::is_string) && (has("date") || has("message_id"))
}

/// Return the suffix of a path without its dot; empty if there is none.
pub fn suffix_of(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

/// Split a title with a label into its fields.
pub fn split(title: &str) -> Labelled<'_> {
    let mut parts = title.splitn(3, SEPARATOR);
    let mut next = || parts.next().unwrap_or_default();
    Labelled { title: next(), path: next(), people: next() }
}
