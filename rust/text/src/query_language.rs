//! The query language: phrases in quotes, exclusion with `-`, prefixes with `*`, and fields (`from:jonas`).
//!
//! [`parse`] never fails. What does not have the form of a demand is plain text: a colon followed by a blank
//! ("Re: kettle"), an address, a time, `std::vector`, a dash alone, an inch mark, a quote without its partner. A
//! text without marks has no parts at all, which costs one pass over its bytes.
//!
//! ```
//! use ketrag_text::query_language::{parse, Kind};
//!
//! assert!(parse("Who built the Fram?").is_empty());
//! let parts = parse("\"red kettle\" -old gask*");
//! let kinds: Vec<_> = parts.iter().map(|part| (part.kind, part.text, part.excluded)).collect();
//! assert_eq!(
//!     kinds,
//!     [(Kind::Phrase, "red kettle", false), (Kind::Phrase, "old", true), (Kind::Prefix, "gask", false)]
//! );
//! ```

use unicode_normalization::char::canonical_combining_class;

/// Maximum number of words of a query with marks. Longer texts, and texts of several lines, are usually pasted, and
/// their dashes and colons are not meant as marks.
pub const MOST_WORDS: usize = 32;
/// Number of plain words from which a query is a question, whose quotes prefer rather than demand. With a question
/// mark at its end, three are enough.
const QUESTION: usize = 6;
const SHORT_QUESTION: usize = 3;
/// Quotes: the first character opens, any of the others closes.
const QUOTES: [(char, &[char]); 4] =
    [('"', &['"']), ('“', &['”', '“', '"']), ('„', &['“', '”', '"']), ('«', &['»'])];
const LONGEST_FIELD: usize = 32;
/// Fields that every index has. Without a value, other names before a colon are text.
const FIELDS: [&str; 17] = [
    "title", "subject", "heading", "in", "path", "folder", "file", "type", "filetype", "ext", "after",
    "before", "date", "since", "until", "from", "to",
];

/// What a part of a query is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Plain words, as written.
    Text,
    /// Words that must follow each other, from quotes or after a dash.
    Phrase,
    /// Like `Phrase`; the last word may have any ending.
    Prefix,
    /// A phrase in a question: passages with it are preferred.
    Preferred,
    /// A field with a value. Whether the field exists is not known here. The value of one of [`FIELDS`] may be empty.
    Field,
    /// Plain words that would be a mark in a shorter query.
    Ignored,
}

/// A part of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    pub kind: Kind,
    /// The part as written, without blanks around it.
    pub raw: &'a str,
    /// The words, or the value of a field, without quotes and marks.
    pub text: &'a str,
    /// The name of a field as written, else empty.
    pub field: &'a str,
    /// Whether passages that match must not be returned.
    pub excluded: bool,
    /// Whether the value of a field was quoted.
    pub quoted: bool,
}

impl<'a> Part<'a> {
    fn plain(raw: &'a str) -> Self {
        Self { kind: Kind::Text, raw, text: raw, field: "", excluded: false, quoted: false }
    }
}

/// Return the parts of a query in order, or nothing if it is plain text.
pub fn parse(query: &str) -> Vec<Part<'_>> {
    let query = query.trim();
    if !may_have_marks(query) {
        return Vec::new();
    }
    let mut parts = split(query);
    // A query that only leaves something out is a text that begins with a dash.
    let wants = |part: &Part<'_>| part.kind == Kind::Field || !part.excluded && has_letter(part.text);
    if parts.iter().all(|part| part.kind == Kind::Text) || !parts.iter().any(wants) {
        return Vec::new();
    }
    let words = |part: &Part<'_>| part.text.split_whitespace().filter(|word| has_letter(word)).count();
    let plain: usize = parts.iter().filter(|part| part.kind == Kind::Text).map(words).sum();
    let pasted = parts.iter().map(words).sum::<usize>() > MOST_WORDS || query.contains('\n');
    let is_question = plain >= QUESTION || query.ends_with(['?', '？']) && plain >= SHORT_QUESTION;
    for part in &mut parts {
        match part.kind {
            Kind::Phrase | Kind::Prefix
                if !part.excluded && is_quoted(part.raw) && (pasted || is_question) =>
            {
                part.kind = Kind::Preferred;
            }
            Kind::Text => {}
            _ if pasted => *part = Part { kind: Kind::Ignored, ..Part::plain(part.raw) },
            // "The date: when is it?"
            Kind::Field if is_question && part.text.is_empty() => *part = Part::plain(part.raw),
            _ => {}
        }
    }
    parts
}

/// Return whether a text is a query with marks.
pub fn has_marks(query: &str) -> bool {
    !parse(query).is_empty()
}

/// Return whether a text has a character of a mark.
fn may_have_marks(query: &str) -> bool {
    query.bytes().any(|b| matches!(b, b'"' | b'*' | b':' | b'-'))
        || !query.is_ascii() && query.contains(|c| QUOTES.iter().any(|&(open, _)| open == c))
}

/// Return the runs of letters and digits of a text, with their combining marks.
pub fn runs(text: &str) -> impl Iterator<Item = &str> {
    let is_in_word = |c: char| c.is_alphanumeric() || canonical_combining_class(c) != 0;
    text.split(move |c: char| !is_in_word(c)).filter(|run| !run.is_empty())
}

fn is_quoted(raw: &str) -> bool {
    raw.starts_with(|c| QUOTES.iter().any(|&(open, _)| open == c))
}

fn has_letter(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

fn split(query: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let (mut at, mut plain) = (0, None::<(usize, usize)>);
    // "Ein- und -ausgang": after a word that ends with a dash, a dash before a word does not exclude it.
    let mut is_suspended = false;
    while at < query.len() {
        let rest = &query[at..];
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            at += blank;
            continue;
        }
        if let Some((part, length)) = mark(rest, is_suspended) {
            if let Some((start, end)) = plain.take() {
                parts.push(Part::plain(&query[start..end]));
            }
            parts.push(part);
            at += length;
            continue;
        }
        let token = token_of(rest);
        is_suspended |= token.len() > 1 && token.ends_with('-') && !token.starts_with('-');
        let end = at + token.len();
        plain = Some((plain.map_or(at, |(start, _)| start), end));
        at = end;
    }
    if let Some((start, end)) = plain {
        parts.push(Part::plain(&query[start..end]));
    }
    parts
}

fn token_of(rest: &str) -> &str {
    &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())]
}

/// Return the mark at the start of a text and its length in bytes.
fn mark(rest: &str, is_suspended: bool) -> Option<(Part<'_>, usize)> {
    let after_dash = rest.strip_prefix('-').filter(|after| {
        let mut letters = token_of(after).chars();
        let (first, second) = (letters.next(), letters.next());
        // A single letter is an option ("tar -x"), a number is negative ("-40").
        first.is_some_and(|c| is_quoted(after) || c.is_alphabetic() && second.is_some() && !is_suspended)
    });
    let (body, excluded) = after_dash.map_or((rest, false), |body| (body, true));
    let found = quote(body).or_else(|| field(body)).or_else(|| prefix(body)).or_else(|| {
        let token = token_of(body).trim_end_matches([',', ';', '.', '!', '?', ')']);
        excluded.then(|| (Part { kind: Kind::Phrase, ..Part::plain(token) }, token_of(body).len()))
    });
    let (part, length) = found?;
    let dash = rest.len() - body.len();
    Some((Part { raw: &rest[..dash + length], excluded, ..part }, dash + length))
}

/// Return the quoted words at the start of a text. A `*` before the closing quote makes the last word a prefix.
fn quote(rest: &str) -> Option<(Part<'_>, usize)> {
    let (inner, length) = quoted(rest)?;
    let (kind, text) = match inner.strip_suffix('*') {
        Some(text) if text.ends_with(char::is_alphanumeric) => (Kind::Prefix, text),
        _ => (Kind::Phrase, inner),
    };
    has_letter(text).then(|| (Part { kind, text, quoted: true, ..Part::plain(&rest[..length]) }, length))
}

/// Return what is between the quotes at the start of a text, and the length with the quotes.
fn quoted(rest: &str) -> Option<(&str, usize)> {
    let open = rest.chars().next()?;
    let (_, closing) = QUOTES.iter().find(|&&(first, _)| first == open)?;
    let body = &rest[open.len_utf8()..];
    let end = body.find(*closing)?;
    let close = body[end..].chars().next()?;
    Some((body[..end].trim(), open.len_utf8() + end + close.len_utf8()))
}

/// Return the field at the start of a text: a name, a colon and a value without a blank between them.
fn field(rest: &str) -> Option<(Part<'_>, usize)> {
    let at = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))?;
    let name = &rest[..at];
    let value = rest[at..].strip_prefix(':')?;
    let is_name =
        (2..=LONGEST_FIELD).contains(&name.len()) && name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !is_name {
        return None; // a time, a drive, a ratio
    }
    if let Some((text, length)) = quoted(value).filter(|(text, _)| !text.is_empty()) {
        let whole = at + 1 + length;
        let part = Part { kind: Kind::Field, text, field: name, quoted: true, ..Part::plain(&rest[..whole]) };
        return Some((part, whole));
    }
    let text = token_of(value).trim_end_matches([',', ';', '!', '?', ')']);
    if !has_letter(text) && FIELDS.contains(&name) {
        let whole = at + 1 + token_of(value).len();
        return Some((
            Part { kind: Kind::Field, text: "", field: name, ..Part::plain(&rest[..whole]) },
            whole,
        ));
    }
    // An address, a scope of C++ and a path of Windows are not fields.
    if !has_letter(text) || text.starts_with([':', '\\']) || text.starts_with("//") {
        return None;
    }
    let whole = at + 1 + token_of(value).len();
    Some((Part { kind: Kind::Field, text, field: name, ..Part::plain(&rest[..whole]) }, whole))
}

/// Return the prefix at the start of a text: letters and digits, and one star.
fn prefix(rest: &str) -> Option<(Part<'_>, usize)> {
    let token = token_of(rest);
    let text = token.strip_suffix('*')?;
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_word && has_letter(text))
        .then(|| (Part { kind: Kind::Prefix, text, ..Part::plain(token) }, token.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(query: &str) -> Vec<(Kind, &str, &str, bool)> {
        parse(query).iter().map(|part| (part.kind, part.text, part.field, part.excluded)).collect()
    }

    #[test]
    fn phrases_exclusions_and_prefixes() {
        use Kind::*;
        assert_eq!(parts("\"red kettle\""), [(Phrase, "red kettle", "", false)]);
        assert_eq!(parts("“red kettle” lid"), [(Phrase, "red kettle", "", false), (Text, "lid", "", false)]);
        assert_eq!(parts("kettle -old"), [(Text, "kettle", "", false), (Phrase, "old", "", true)]);
        assert_eq!(
            parts("kettle -\"old red\""),
            [(Text, "kettle", "", false), (Phrase, "old red", "", true)]
        );
        assert_eq!(parts("-gask* valve"), [(Prefix, "gask", "", true), (Text, "valve", "", false)]);
        assert_eq!(parts("\"red kett*\""), [(Prefix, "red kett", "", false)]);
        assert_eq!(parts("tar -xzf"), [(Text, "tar", "", false), (Phrase, "xzf", "", true)]);
    }

    #[test]
    fn fields() {
        use Kind::*;
        assert_eq!(parts("-type:pdf"), [(Field, "pdf", "type", true)]);
        assert_eq!(parts("from:jonas gent"), [(Field, "jonas", "from", false), (Text, "gent", "", false)]);
        assert_eq!(parts("title:\"red kettle\""), [(Field, "red kettle", "title", false)]);
        assert_eq!(parts("-type:pdf a"), [(Field, "pdf", "type", true), (Text, "a", "", false)]);
        assert_eq!(parts("in:clients/brandt"), [(Field, "clients/brandt", "in", false)]);
        assert_eq!(parts("after:2024-03"), [(Field, "2024-03", "after", false)]);
    }

    #[test]
    fn fields_without_a_value() {
        use Kind::*;
        assert_eq!(parts("title:"), [(Field, "", "title", false)]);
        assert_eq!(parts("-in: kettle"), [(Field, "", "in", true), (Text, "kettle", "", false)]);
        assert_eq!(parts("kettle title:\"\""), [(Text, "kettle", "", false), (Field, "", "title", false)]);
        assert_eq!(parts("type:* red"), [(Field, "", "type", false), (Text, "red", "", false)]);
        let kinds = |query| parse(query).iter().map(|part| part.kind).collect::<Vec<_>>();
        assert!(kinds("the next meeting date: when is it?").iter().all(|kind| *kind == Text));
    }

    #[test]
    fn text_with_signs_is_plain() {
        for query in [
            "Re: kettle", "note: call Ada", "at 14:30", "http://localhost:8080/a?b=c", "std::vector<int>",
            r"C:\Users\ada", "1:2", "a 5\" pipe", "3.5\" disk", "\"red kettle", "kettle\"", "-", "--",
            "- old", "-- old", "--flag", "tar -x", "-40 degrees", "kettle-old", "*", "**", "**bold**",
            "*args", "a*b", "f(x)*", ":", "::", ":)", "\"\"", "\" \"", "\"!?\"", "-\"\"", "-\"!", "Title:",
            "Title: red", "red:", "e-mail", "Ein- und -ausgang", "-gasket", "-old -new", "C++", "1 - 2",
            "(a:b)", "",
        ] {
            assert!(parse(query).is_empty(), "{query}: {:?}", parse(query));
        }
    }

    #[test]
    fn quotes_in_a_question_prefer() {
        let kinds = |query| parse(query).iter().map(|part| part.kind).collect::<Vec<_>>();
        assert_eq!(
            kinds("Who said \"I shall return\" in the last speech?"),
            [Kind::Text, Kind::Preferred, Kind::Text]
        );
        assert_eq!(kinds("price of \"red kettle\""), [Kind::Text, Kind::Phrase]);
        assert_eq!(kinds("\"red kettle\"?"), [Kind::Phrase, Kind::Text]);
    }

    #[test]
    fn long_and_pasted_texts_are_plain_but_for_quotes() {
        let long = format!("{} -old \"red kettle\" gask*", "word ".repeat(40));
        let kinds: Vec<_> = parse(&long).iter().map(|part| part.kind).collect();
        assert_eq!(kinds, [Kind::Text, Kind::Ignored, Kind::Preferred, Kind::Ignored]);
        assert!(parse("list:\n-old\n-new")
            .iter()
            .all(|part| matches!(part.kind, Kind::Text | Kind::Ignored)));
        assert!(parse(&"a1* ".repeat(500)).iter().all(|part| part.kind == Kind::Ignored));
    }

    proptest! {
        #[test]
        fn every_text_is_read(query in "[-\"“”„«»*: a-zé中0-9,.?\n]{0,60}") {
            let trimmed = query.trim();
            let found = parse(&query);
            // The parts are in order, do not overlap, and leave out nothing but blanks.
            let mut at = 0;
            for part in &found {
                let start = at + trimmed[at..].find(part.raw).unwrap();
                prop_assert!(trimmed[at..start].chars().all(char::is_whitespace));
                prop_assert!(part.raw.contains(part.text));
                prop_assert!(!part.text.is_empty() || FIELDS.contains(&part.field));
                prop_assert_eq!(part.kind == Kind::Field, !part.field.is_empty());
                at = start + part.raw.len();
            }
            prop_assert!(found.is_empty() || trimmed[at..].chars().all(char::is_whitespace));
            let is_question = trimmed.ends_with(['?', '？']) || found.len() > 1;
            prop_assert!(found.is_empty() || is_question || found.iter().any(|part| part.kind != Kind::Text));
        }

        #[test]
        fn any_characters_are_read(query in "\\PC{0,80}") {
            parse(&query);
        }
    }
}
