//! Keywords that are other forms of a query's word, for texts whose language is unknown.
//!
//! A text of a few words has too few function words for its language to be detected, and counts as English, so that its
//! words are whole: "talossa". A query with "talo" finds it by the stem that both have in Finnish. The vocabulary is
//! sorted, and words with the same stem begin alike, so only a short range of it is compared.

use crate::text::languages::Language;
use crate::text::strings::Strings;
use std::ops::Range;

/// Minimum length in letters of a common stem. "ev" and "evlerde" are compared only in the languages of an index.
const SHORTEST: usize = 3;
/// Maximum length in bytes of a word.
const LONGEST: usize = 40;
/// Letters at the end of a stem that may differ from those of a word: "knives" has the stem "knive".
const MAY_DIFFER: usize = 1;
/// Maximum number of keywords that are compared, which bounds the time. Of 12,140 texts of a few words in five languages, 100
/// finds 1.4 to 1.8 % fewer with another form of a word, and 40,000 as many as 4,000, in the same time.
const MOST: usize = 4_000;

/// A keyword and the number of languages in which it shares a stem with a word.
pub type Form = (u32, usize);

/// Return the keywords of English texts that share a stem with a word (folded and in lower case) in one of some languages,
/// in the order of the vocabulary, without the word itself.
pub fn same_stem(keywords: Strings<'_>, word: &str, languages: &[Language]) -> Vec<Form> {
    let is_latin = |word: &str| word.len() <= LONGEST && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let stems: Vec<(Language, String)> = match is_latin(word) {
        true => languages.iter().filter_map(|&one| Some((one, one.stem_without_marks(word)?))).collect(),
        false => Vec::new(),
    };
    let stems: Vec<(Language, String)> =
        stems.into_iter().filter(|(_, stem)| stem.len() >= SHORTEST || stem == word).collect();
    let Some(shared) = stems.iter().map(|(_, stem)| common(stem, word)).min() else { return Vec::new() };
    let beginning = &word[..shared.saturating_sub(MAY_DIFFER).max(SHORTEST - 1).min(word.len())];
    let mut found = Vec::new();
    for key in range(keywords, beginning.as_bytes()).take(MOST) {
        let other = keywords.get(key);
        if other == word || !is_latin(other) {
            continue;
        }
        let same = |(language, stem): &&(Language, String)| {
            language.stem_without_marks(other).as_ref() == Some(stem)
        };
        let count = stems.iter().filter(same).count();
        if count > 0 {
            found.push((key as u32, count));
        }
    }
    found
}

/// Return how many bytes two words have in common at their beginnings.
fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

/// Return the range of the strings that begin so. They are sorted.
fn range(strings: Strings<'_>, beginning: &[u8]) -> Range<usize> {
    let first = |is_before: &dyn Fn(&[u8]) -> bool| {
        let (mut low, mut high) = (0, strings.len());
        while low < high {
            let middle = (low + high) / 2;
            match is_before(strings.bytes(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    };
    first(&|bytes| bytes < beginning)..first(&|bytes| bytes < beginning || bytes.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::strings::StringsBuf;

    #[test]
    fn words_with_a_common_stem_are_found() {
        let mut words = [
            "hauser", "hausmann", "running", "talossa", "taloja", "tall", "kirjoja", "study", "evlerde",
            "every",
        ];
        words.sort_unstable();
        let strings: StringsBuf = words.iter().collect();
        for (word, code, expected) in [
            ("haus", "de", &["hauser"][..]),
            ("run", "en", &["running"]),
            ("talo", "fi", &["taloja", "talossa"]),
            ("talo", "en", &[]),
            ("studied", "en", &["study"]),
            ("ev", "tr", &["evlerde"]),
            ("дом", "ru", &[]),
            ("haus", "ru", &[]),
            ("", "de", &[]),
        ] {
            let found = same_stem(strings.view(), word, &[Language::by_name(code).unwrap()]);
            let found: Vec<&str> = found.iter().map(|&(key, _)| words[key as usize]).collect();
            assert_eq!(found, expected, "{word}");
        }
    }
}
