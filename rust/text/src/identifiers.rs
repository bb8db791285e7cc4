//! Code identifiers, addresses and paths: runs of words that form one of them, and the parts of a word in camel case.
//!
//! An identifier can be found by its parts and as a whole, regardless of how its parts are connected:
//! `HttpRetryPolicy`, `http_retry_policy` and `http.retry.policy` have the whole "httpretrypolicy" and the
//! parts "http", "retry" and "policy".

use crate::folding::is_unspaced;
use std::ops::Range;

/// Maximum number of words of an identifier, and of parts of a word.
pub const MAX_PARTS: usize = 16;
/// Maximum size in bytes of a word that is split. Longer words are encoded data.
const MAX_WORD: usize = 64;
/// Minimum number of letters of the longest part of a word: "LaTeX" and "PhD" are plain words.
const MIN_LETTERS: usize = 3;

/// Call `each` with the parts of a word in camel case. A run of capitals is one part. Digits belong to the
/// part before them. Surnames with "Mc" are not split.
pub fn each_part<'a>(word: &'a str, mut each: impl FnMut(&'a str)) {
    if !has_inner_capital(word) || word.len() > MAX_WORD {
        return;
    }
    let mut cuts = [0; MAX_PARTS + 1];
    let mut count = 1;
    let (mut before, mut rest) = (' ', word.chars());
    while let Some(c) = rest.next() {
        let mut ahead = rest.clone();
        let mut is_next_lower = || ahead.next().is_some_and(char::is_lowercase);
        let begins = c.is_uppercase()
            && (before.is_lowercase()
                || (before.is_numeric() && is_next_lower())
                // "HTTPServer", but not "URLs".
                || (before.is_uppercase() && is_next_lower() && is_next_lower()));
        if begins {
            if count == MAX_PARTS {
                return;
            }
            cuts[count] = word.len() - rest.as_str().len() - c.len_utf8();
            count += 1;
        }
        before = c;
    }
    cuts[count] = word.len();
    let parts = || cuts[..=count].windows(2).map(|ends| &word[ends[0]..ends[1]]);
    let has_letters = |part: &str| part.chars().filter(|c| c.is_alphabetic()).count() >= MIN_LETTERS;
    if count > 1 && &word[..cuts[1]] != "Mc" && parts().any(has_letters) {
        parts().for_each(&mut each);
    }
}

/// Return whether a capital follows the first character of a word.
pub fn has_inner_capital(word: &str) -> bool {
    match word.is_ascii() {
        true => word.bytes().skip(1).any(|b| b.is_ascii_uppercase()),
        false => word.chars().skip(1).any(char::is_uppercase),
    }
}

/// How two adjacent words are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Underscore,
    Dot,
    /// As in `R&D` and `jonas@example.org`.
    And,
    At,
    /// Connects words only in paths.
    Slash,
    /// Connects words only in code (see [`is_marked`]) and in paths. In prose it joins them.
    Hyphen,
}

/// Return how two words with `gap` between them are connected. An ampersand connects words of letters. A dot connects words of at least two
/// characters that begin with a letter, because "e.g.", "U.S." and "3.14" are not identifiers, and a number with the suffix of
/// a file: "counts_2021.csv".
pub fn link(first: &str, gap: &str, second: &str) -> Option<Link> {
    // "P & L" is also written "P&L".
    let is_initial = |word: &str| word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase());
    // A word that is divided at the end of a line.
    let is_continued =
        |first: &str, second: &str| first.chars().nth(1).is_some() && second.starts_with(char::is_lowercase);
    let link = match gap {
        "_" | "__" => Link::Underscore,
        "." => Link::Dot,
        "-" | "\u{2010}" | "\u{200c}" => Link::Hyphen,
        "-\n" | "-\r\n" if is_continued(first, second) => Link::Hyphen,
        "&" => Link::And,
        " & " if is_initial(first) && is_initial(second) => Link::And,
        "@" => Link::At,
        "/" => Link::Slash,
        _ => return None,
    };
    let is_unspaced_word = |word: &str| !word.is_ascii() && word.chars().any(is_unspaced);
    let is_named = |word: &str| {
        let mut chars = word.chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.next().is_some()
    };
    let is_plain = |word: &str| word.chars().all(char::is_alphabetic);
    let connects = match link {
        Link::Dot if first.bytes().all(|byte| byte.is_ascii_digit()) => is_suffix(second),
        Link::Dot => is_named(first) && is_named(second),
        Link::And => is_plain(first) && is_plain(second),
        _ => true,
    };
    (connects && !is_unspaced_word(first) && !is_unspaced_word(second)).then_some(link)
}

/// Return whether a word may be the suffix of a file's name: 2 to 5 small letters and digits that begin with a letter.
pub fn is_suffix(word: &str) -> bool {
    (2..6).contains(&word.len())
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Return whether the context of a range in `text` shows that its hyphens are part of an identifier: it
/// follows a backquote or two hyphens, as in `--max-retries`, or precedes an equals sign. Other words with
/// hyphens are prose.
pub fn is_marked(text: &str, range: Range<usize>) -> bool {
    let before = &text[..range.start];
    let is_option = before
        .strip_suffix("--")
        .is_some_and(|rest| !rest.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '-'));
    before.ends_with('`') || is_option || text[range.end..].starts_with('=')
}

/// Return whether a run of words with hyphens, given its first and last word, ends in an item number:
/// `item-63`, `ISO-8859-1`.
pub fn is_numbered(first: &str, last: &str) -> bool {
    first.chars().all(char::is_alphabetic) && last.chars().all(char::is_numeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(word: &str) -> Vec<&str> {
        let mut found = Vec::new();
        each_part(word, |part| found.push(part));
        found
    }

    #[test]
    fn words_in_camel_case_have_parts() {
        for (word, expected) in [
            ("HttpRetryPolicy", &["Http", "Retry", "Policy"][..]),
            ("HTTPServer", &["HTTP", "Server"]),
            ("parseHTTP", &["parse", "HTTP"]),
            ("utf8Decoder", &["utf8", "Decoder"]),
            ("ПолучитьДанные", &["Получить", "Данные"]),
            ("sha256", &[]),
            ("Vector3D", &[]),
            ("URLs", &[]),
            ("PhD", &[]),
            ("McDonald", &[]),
            ("HTTP", &[]),
            ("word", &[]),
            ("", &[]),
        ] {
            assert_eq!(parts(word), expected, "{word}");
        }
        assert!(parts(&"Part".repeat(MAX_PARTS)).len() == MAX_PARTS && parts(&"Part".repeat(17)).is_empty());
    }

    #[test]
    fn words_are_connected_in_code() {
        assert_eq!(link("a", "_", "1"), Some(Link::Underscore));
        assert_eq!(link("os", ".", "path"), Some(Link::Dot));
        assert_eq!((link("e", ".", "g"), link("3", ".", "14"), link("a", " ", "b")), (None, None, None));
        assert_eq!((link("名前", "_", "a"), link("a1", "&", "b")), (None, None));
        assert_eq!((link("AT", "&", "T"), link("j", "@", "a")), (Some(Link::And), Some(Link::At)));
        assert!(
            is_marked("use --max-retries", 6..17) && is_marked("`a-b`", 1..4) && is_marked("a-b=1", 0..3)
        );
        assert!(!is_marked("so--well-known", 4..14) && !is_marked("a-b", 0..3));
        assert!(is_numbered("item", "63") && !is_numbered("mid", "1990s") && !is_numbered("19", "2"));
    }

    proptest! {
        #[test]
        fn parts_are_the_word(word in "([A-Za-z]|[A-Z][a-z]{2,4}|[0-9éÉßИи]){0,30}") {
            let found = parts(&word);
            prop_assert!(found.is_empty() || (found.concat() == word && found.iter().all(|part| !part.is_empty())));
        }
    }
}
