//! Documents from JSON lines: `{"_id": ..., "title": ..., "text": ..., "metadata": ...}`.
//!
//! Only unambiguous lines are parsed here. All other lines (invalid JSON, another encoding, values of other
//! types, metadata, other fields) are left to the caller, whose slower parser reports the errors.

use super::strings::StringsBuf;
use blake2b_simd::Params;
use serde::de::IgnoredAny;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Lines of at least this length are searched for integers that Python does not convert.
const LONG: usize = 4300;
/// Number of opening brackets in a line beyond which it may be nested too deeply for Python.
const DEEP: usize = 200;
/// Longer titles are left to the caller, which cuts them (`LONGEST_TITLE` of `readers/titles.py`).
const TITLE: usize = 300;
/// Bytes of a hash.
const HASH: usize = 32;
/// The metadata of every document parsed here, in the format of the tables.
const METADATA: &[u8] = b"{}";

/// The documents parsed from a block of lines, in order, and the lines that are left to the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents {
    pub ids: StringsBuf,
    pub titles: StringsBuf,
    pub texts: StringsBuf,
    /// For each document, the hash of id, title, text and metadata.
    pub hashes: Vec<[u8; HASH]>,
    pub left: Vec<Left>,
    /// Number of lines, including blank ones.
    pub lines: usize,
}

/// A line that is left to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The number of documents before it.
    pub before: usize,
    /// The number of the line, from 0, and its byte range in the block.
    pub line: usize,
    pub start: usize,
    pub end: usize,
    /// Whether the line certainly is not JSON in UTF-8. If not, the caller finds out.
    pub is_bad: bool,
}

/// Read whole lines. A document without an id is named after its line: `name(line)`, from 0 on.
///
/// ```
/// use ketrag_text::json_lines::read_lines;
///
/// let lines = "{\"_id\": \"a\", \"text\": \"one\"}\n\n{\"text\": \"t\\u0077o\"}\n[1]\n";
/// let found = read_lines(lines.as_bytes(), |line| format!("f:{line}"));
/// assert_eq!(found.ids.view().iter().collect::<Vec<_>>(), ["a", "f:2"]);
/// assert_eq!(found.texts.view().get(1), "two");
/// assert_eq!((found.left[0].line, found.left[0].before, found.lines), (3, 2, 4));
/// ```
pub fn read_lines(block: &[u8], name: impl Fn(usize) -> String) -> Documents {
    let mut out = Documents::default();
    let mut start = 0;
    while start < block.len() {
        let length = block[start..].iter().position(|&byte| byte == b'\n');
        let end = length.map_or(block.len(), |length| start + length + 1);
        let (line, at) = (&block[start..end], out.lines);
        out.lines += 1;
        if !line.iter().all(|byte| b" \t\n\r\x0b\x0c".contains(byte)) {
            match read_line(line) {
                Ok(record) => out.add(&record, || name(at)),
                Err(is_bad) => out.left.push(Left { before: out.hashes.len(), line: at, start, end, is_bad }),
            }
        }
        start = end;
    }
    out
}

/// Return the hash of a document: of its id, title, text and metadata, and of its locators if it has any.
///
/// ```
/// use ketrag_text::json_lines::hash_of;
///
/// assert_ne!(hash_of([b"a".as_slice(), b"bc"]), hash_of([b"ab".as_slice(), b"c"]));
/// ```
pub fn hash_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; HASH] {
    let mut hasher = Params::new().hash_length(HASH).to_state();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut hash = [0; HASH];
    hash.copy_from_slice(hasher.finalize().as_bytes());
    hash
}

/// Return whether a document can be stored as it is: it has an id, a text that is not blank, and no long title.
///
/// ```
/// use ketrag_text::json_lines::is_plain;
///
/// assert!(is_plain("a", "", "one") && !is_plain("", "", "one") && !is_plain("a", "", " \u{1f}"));
/// ```
#[must_use]
pub fn is_plain(id: &str, title: &str, text: &str) -> bool {
    let has_zero = [id, title, text].iter().any(|text| text.contains('\0'));
    let is_long = title.len() > TITLE && title.chars().count() > TITLE;
    !has_zero && !is_long && !id.is_empty() && !is_blank(text)
}

impl Documents {
    fn add(&mut self, record: &Record<'_>, name: impl Fn() -> String) {
        let id = match record.own.as_ref().or(record.id.as_ref()) {
            Some(Id::Number(number)) => Cow::Owned(number.to_string()),
            Some(Id::Text(text)) if !text.is_empty() => Cow::Borrowed(text.as_ref()),
            _ => Cow::Owned(name()),
        };
        let title = record.title.as_deref().unwrap_or_default();
        self.hashes.push(hash_of([id.as_bytes(), title.as_bytes(), record.text.as_bytes(), METADATA]));
        self.ids.push(&id);
        self.titles.push(title);
        self.texts.push(&record.text);
    }
}

/// A line. Repeated and other fields, values of other types and invalid strings are errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record<'a> {
    #[serde(rename = "_id", borrow, default)]
    own: Option<Id<'a>>,
    #[serde(borrow, default)]
    id: Option<Id<'a>>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    metadata: Option<BTreeMap<Cow<'a, str>, IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id<'a> {
    Number(i64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

/// Return the document of a line; if the line is left to the caller, whether it certainly is not JSON.
fn read_line(line: &[u8]) -> Result<Record<'_>, bool> {
    // Otherwise a list of the right values would be accepted, too.
    let is_list = line.trim_ascii_start().first() != Some(&b'{');
    let has_long_number = || line.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > LONG);
    let brackets = line.iter().filter(|&&byte| byte == b'[' || byte == b'{').count();
    if is_list || brackets > DEEP || (line.len() > LONG && has_long_number()) {
        return Err(false);
    }
    let record: Record<'_> = serde_json::from_slice(line).map_err(|error| {
        // Python's parser also accepts escaped halves of characters, NaN and Infinity. Other lines may have bytes of
        // another encoding, for which it is looked.
        let is_odd = |byte: &u8| !byte.is_ascii() || *byte == 0 || b"\\NI".contains(byte);
        (error.is_syntax() || error.is_eof()) && !line.iter().any(is_odd)
    })?;
    let title = record.title.as_deref().unwrap_or_default();
    let ids = [&record.own, &record.id].into_iter().flatten();
    let has_zero = ids.filter_map(Id::text).any(|text| text.contains('\0'));
    let is_plain = !has_zero && record.metadata.as_ref().is_none_or(BTreeMap::is_empty);
    if is_plain && self::is_plain(" ", title, &record.text) {
        Ok(record)
    } else {
        Err(false)
    }
}

impl Id<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Number(_) => None,
            Self::Text(text) => Some(text),
        }
    }
}

/// Return whether a text contains only characters that every definition treats as white space.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> (Vec<(String, String, String)>, Vec<usize>) {
        let found = read_lines(lines.as_bytes(), |line| format!("f:{}", line + 1));
        let own = |strings: &StringsBuf, i: usize| strings.view().get(i).to_owned();
        let documents = (0..found.hashes.len())
            .map(|i| (own(&found.ids, i), own(&found.titles, i), own(&found.texts, i)))
            .collect();
        (documents, found.left.iter().map(|left| left.line).collect())
    }

    #[test]
    fn plain_lines_are_read_and_all_others_left() {
        let good = [
            (r#"{"_id": "a", "id": "b", "title": "T", "text": "x"}"#, ("a", "T", "x")),
            (r#"{"_id":null,"id":-12,"title":null,"text":"x","metadata":{ }}"#, ("-12", "", "x")),
            (r#"{"_id":"","text":"x","metadata":null}"#, ("f:1", "", "x")),
            (
                "\t{\"text\" : \"\u{e9}\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\\b\\f\\r\\t\"}\r\n",
                ("f:1", "", "éé😀\n\"\\/\u{8}\u{c}\r\t"),
            ),
            (r#"{"\u0074ext":"b"}"#, ("f:1", "", "b")),
            (r#"{"text":"x","_id":123456789012345678}"#, ("123456789012345678", "", "x")),
        ];
        for (line, (id, title, text)) in good {
            assert_eq!(read(line), (vec![(id.into(), title.into(), text.into())], vec![]), "{line}");
        }
        let left = [
            "{}",
            "[]",
            "{\"text\":1}",
            r#"{"text":"x"} y"#,
            r#"{"text":"x",}"#,
            r#"{"text":"x" "id":1}"#,
            r#"{"text":"\ud800"}"#,
            r#"{"text":"\ud800\u0041"}"#,
            r#"{"text":"\udc00"}"#,
            r#"{"text":"\u0000"}"#,
            r#"{"text":"\x"}"#,
            r#"{"text":"\u12"}"#,
            "{\"text\":\"a\u{1}\"}",
            r#"{"text":"x","_id":1.0}"#,
            r#"{"text":"x","_id":-0}"#,
            r#"{"text":"x","_id":12345678901234567890}"#,
            r#"{"text":"a","text":"b"}"#,
            r#"["a",null,null,"x",null]"#,
            r#"{"text":"x","_id":true}"#,
            r#"{"text":"x","title":3}"#,
            r#"{"text":"x","metadata":{"a":1}}"#,
            r#"{"text":"x","metadata":[]}"#,
            r#"{"text":"x","n":1}"#,
            r#"{"text":"x","n":01}"#,
            r#"{"text":"x","n":1.}"#,
            r#"{"text":"x","n":NaN}"#,
            r#"{"text":"x","n":nul}"#,
            r#"{"text":" \u2028"}"#,
            r#"{"title":"only","text":" "}"#,
            "\u{feff}{\"text\":\"x\"}",
            r#"{"text":"x"#,
            "{\"text\":\"a\tb\"}",
        ];
        for line in left {
            assert_eq!(read(line), (vec![], vec![0]), "{line}");
        }
        let titled = |title: &str| read(&format!("{{\"text\":\"x\",\"title\":\"{title}\"}}")).1;
        assert_eq!((titled(&"é".repeat(300)), titled(&"é".repeat(301))), (vec![], vec![0]));
        let deep = format!("{{\"text\":\"x\",\"n\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let long = format!("{{\"text\":\"x\",\"n\":{}}}", "1".repeat(5000));
        assert_eq!((read(&deep).1, read(&long).1), (vec![0], vec![0]));
        assert_eq!(read_lines(b"{\"text\":\"\xff\"}", |_| String::new()).left.len(), 1);
    }

    #[test]
    fn lines_are_counted_and_hashes_are_those_of_the_tables() {
        let (documents, left) = read("\n \t\r\n{\"text\":\"a\"}\n{\"text\":1}\n{\"text\":\"b\"}");
        assert_eq!((documents.len(), left), (2, vec![3]));
        assert_eq!((documents[0].0.as_str(), documents[1].0.as_str()), ("f:3", "f:5"));
        assert_eq!(read_lines(b"", |_| String::new()), Documents::default());
        let hash = read_lines(b"{\"_id\":\"a\",\"text\":\"x\"}", |_| String::new()).hashes[0];
        assert_eq!(hash[..4], [0xb4, 0x9f, 0x34, 0xf1]);
    }

    #[test]
    fn lines_that_no_parser_reads_are_marked() {
        let is_bad = |line: &str| read_lines(line.as_bytes(), |_| String::new()).left[0].is_bad;
        for line in ["{", "{]", "{\"text\":\"a", "{\"text\":\"a\",}", "{\"text\":\"a\"} b", "{'a': 1}"] {
            assert!(is_bad(line), "{line}");
        }
        // Python reads these, or another encoding may be meant, or the error is another one.
        for line in [
            "{\"text\":\"a\",\"b\":NaN}",
            "{\"text\":\"a\",\"b\":-Infinity}",
            "{\"text\":\"\\ud800\"}",
            "{\"text\":1}",
            "{\"a\":1}",
            "{\"text\":\"é",
            "{\"text\":\"a\0",
            "[1",
            "{}",
            "{\"text\":\" \"}",
        ] {
            assert!(!is_bad(line), "{line}");
        }
    }
}
