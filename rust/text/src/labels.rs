//! The name of a document's file and of its folders, as words by which the document is found.

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

/// Return the label of a document, after the separator; empty if its id is not a path.
pub fn label_of(id: &str) -> String {
    path_of(id).map(|path| format!("{SEPARATOR}{path}")).unwrap_or_default()
}

/// Return the suffix of a path without its dot; empty if there is none.
pub fn suffix_of(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

/// Split a title from the label after it.
pub fn split(title: &str) -> (&str, &str) {
    title.split_once(SEPARATOR).unwrap_or((title, ""))
}
