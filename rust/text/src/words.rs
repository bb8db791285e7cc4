//! The keyword tokeniser.
//!
//! NFKC, word boundaries of UAX #29, full lower case, pairs of pieces (see `clusters`) for scripts without spaces between
//! words; tokens without letter or digit and stop words are dropped, and tokens of other languages than English are
//! stemmed. Blanks separate words, so text is
//! processed blank by blank: ASCII stretches take a fast path, others are normalised in a copy that maps back
//! to the source.

use super::stopwords::StopWords;
use crate::clusters::{each_pair, is_attached};
use crate::error::Result;
use crate::languages::Language;
use crate::lexical::Lexer;
use crate::stemmed::Stemmed;
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};
use unicode_normalization::{is_nfkc_quick, IsNormalized, UnicodeNormalization};
use unicode_segmentation::UnicodeSegmentation;

/// Characters from which the language of a text is detected.
const DETECTED: usize = 700;

/// The languages in which a text is read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reading {
    /// Words unstemmed, without these stop words.
    Plain(StopWords),
    /// In the detected language of the text.
    Detect,
    In(Language),
    /// In each of these languages, as for a query.
    Each(Vec<Language>),
}

/// Finds words. It holds buffers, so reuse one instance for many texts.
#[derive(Debug, Clone)]
pub struct Words {
    reading: Reading,
    lower: String,
    copy: String,
    /// For each byte of `copy`, the byte of the source it came from.
    origin: Vec<u32>,
    lexer: Lexer,
    stemmed: Stemmed,
}

impl Words {
    pub fn new(stop: StopWords) -> Self {
        let reading = match stop {
            StopWords::Detect => Reading::Detect,
            StopWords::Of(Language::ENGLISH) => Reading::Plain(StopWords::English),
            StopWords::Of(Language::NONE) => Reading::Plain(StopWords::None),
            StopWords::Of(language) => Reading::In(language),
            plain => Reading::Plain(plain),
        };
        Self {
            reading,
            lower: String::new(),
            copy: String::new(),
            origin: Vec::new(),
            lexer: Lexer::default(),
            stemmed: Stemmed::default(),
        }
    }

    pub fn by_language(language: &str) -> Result<Self> {
        Ok(Self::new(StopWords::by_name(language)?))
    }

    /// Return a reader of queries to an index whose texts were read with `stop` and are in these languages
    /// (empty: English). A query is read in all of them, because a few words do not determine the language.
    pub fn of_queries(stop: StopWords, languages: &[Language]) -> Self {
        let mut words = Self::new(stop);
        if words.reading == Reading::Detect {
            words.reading = match languages {
                [] => Reading::Plain(StopWords::English),
                _ => Reading::Each(languages.to_vec()),
            };
        }
        words
    }

    /// Return the language in which a text is read.
    pub fn language(&mut self, text: &str) -> Language {
        match &self.reading {
            Reading::Plain(StopWords::None) => Language::NONE,
            Reading::Plain(_) => Language::ENGLISH,
            Reading::In(language) => *language,
            Reading::Detect | Reading::Each(_) => self.lexer.detect_start(text, DETECTED),
        }
    }

    /// Call `see` with each token of `text` and the byte at which its first character starts, in order.
    /// Pairs that start at the same byte are in order as well. [`StopWords::Detect`] reads the text in the language
    /// that it is in: in other languages than English, tokens are stems.
    pub fn for_each_word(&mut self, text: &str, see: impl FnMut(&str, usize)) {
        let language = self.language(text);
        self.for_each_word_in(language, text, see);
    }

    /// Like [`Words::for_each_word`] for a part of a text whose language is known.
    pub fn for_each_word_in(&mut self, language: Language, text: &str, mut see: impl FnMut(&str, usize)) {
        match &self.reading {
            Reading::Plain(stop) => return self.each(*stop, text, see),
            Reading::Detect if language == Language::ENGLISH => {
                return self.each(StopWords::English, text, see)
            }
            _ => {}
        }
        let mut stemmed = std::mem::take(&mut self.stemmed);
        let reading = self.reading.clone();
        self.each(StopWords::None, text, |token, at| match &reading {
            Reading::Each(languages) => stemmed.of_query(language, languages, token, |word| see(word, at)),
            _ => stemmed.of_text(language, token, |word| see(word, at)),
        });
        self.stemmed = stemmed;
    }

    /// Call `see` with each token that is not a stop word, unstemmed.
    fn each(&mut self, stop: StopWords, text: &str, mut see: impl FnMut(&str, usize)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if blank(bytes[at]) {
                at += 1;
                continue;
            }
            let mut end = at;
            let mut ascii = true;
            while end < bytes.len() && !blank(bytes[end]) {
                ascii &= bytes[end].is_ascii();
                end += 1;
            }
            if ascii {
                self.ascii(stop, &text[at..end], at, &mut see);
            } else {
                self.any(stop, &text[at..end], at, &mut see);
            }
            at = end;
        }
    }

    fn ascii(&mut self, stop: StopWords, stretch: &str, base: usize, see: &mut impl FnMut(&str, usize)) {
        let bytes = stretch.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if !word_byte(bytes[at]) {
                at += 1;
                continue;
            }
            let end = ascii_word_end(bytes, at);
            let word = &stretch[at..end];
            if word.bytes().any(|b| b.is_ascii_alphanumeric()) {
                self.lower.clear();
                self.lower.push_str(word);
                self.lower.make_ascii_lowercase();
                if !stop.contains(&self.lower) {
                    see(&self.lower, base + at);
                }
            }
            at = end;
        }
    }

    fn any(&mut self, stop: StopWords, stretch: &str, base: usize, see: &mut impl FnMut(&str, usize)) {
        let copied = is_nfkc_quick(stretch.chars()) != IsNormalized::Yes;
        if copied {
            self.normalise(stretch);
        }
        let copy = std::mem::take(&mut self.copy);
        let text = if copied { copy.as_str() } else { stretch };
        let mut rest = 0;
        while rest < text.len() {
            let run = text[rest..].chars().next().is_some_and(unparted);
            let end = text[rest..]
                .char_indices()
                .find(|&(_, c)| unparted(c) != run && !(run && selector(c)))
                .map_or(text.len(), |(i, _)| rest + i);
            let part = &text[rest..end];
            let from = |i: usize| base + if copied { self.origin[rest + i] as usize } else { rest + i };
            let mut token = |lower: &str, i: usize| {
                if lower.chars().any(is_letter) && !stop.contains(lower) {
                    see(lower, from(i));
                }
            };
            if run {
                each_pair(part.char_indices().filter(|&(_, c)| !selector(c)), &mut token);
            } else {
                for (i, word) in part.unicode_word_indices() {
                    // A mark on a blank forms one segment with it; the blank is not part of a word.
                    let bare = word.trim_start();
                    token(&bare.trim_end().to_lowercase(), i + (word.len() - bare.len()));
                }
            }
            rest = end;
        }
        self.copy = copy;
    }

    /// Fill `copy` and `origin`. A cluster is a stretch that no composition crosses.
    fn normalise(&mut self, stretch: &str) {
        self.copy.clear();
        self.origin.clear();
        let mut from = 0;
        while from < stretch.len() {
            let end = stretch[from..]
                .char_indices()
                .skip(1)
                .find(|&(_, c)| starts_cluster(c))
                .map_or(stretch.len(), |(i, _)| from + i);
            self.copy.extend(stretch[from..end].nfkc());
            self.origin.resize(self.copy.len(), from as u32);
            from = end;
        }
    }
}

/// Return whether a byte is an ASCII blank. Neither words nor compositions extend across it.
fn blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

fn word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Return the end of the word that begins at `at` (UAX #29, WB5 to WB13b, on ASCII).
fn ascii_word_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&b) = bytes.get(end) {
        if word_byte(b) {
            end += 1;
            continue;
        }
        let (before, after) = (bytes[end - 1], bytes.get(end + 1).copied().unwrap_or(b' '));
        let letters = before.is_ascii_alphabetic() && after.is_ascii_alphabetic();
        let digits = before.is_ascii_digit() && after.is_ascii_digit();
        let joined = match b {
            b':' => letters,
            b'.' | b'\'' => letters || digits,
            b',' | b';' => digits,
            _ => false,
        };
        if !joined {
            break;
        }
        end += 2;
    }
    end
}

/// Return whether a character's script is written without spaces between words.
fn unparted(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF            // Thai, Lao
        | 0x1000..=0x109F          // Myanmar
        | 0x1780..=0x17FF          // Khmer
        | 0x19E0..=0x19FF          // Khmer symbols
        | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3038..=0x303B
        | 0x3040..=0x309F          // Hiragana
        | 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF // Katakana, without its middle dot
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF // Han
        | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F // Myanmar, extended
        | 0x1AFF0..=0x1B16F        // Kana, extended
        | 0x20000..=0x3FFFF) // Han, extended
}

/// Return whether a character is a variation selector: it chooses a glyph and is not part of a token.
fn selector(c: char) -> bool {
    matches!(u32::from(c), 0xFE00..=0xFE0F | 0xE0100..=0xE01EF)
}

/// Return whether a character is a token by itself. Vowels and marks that belong to a consonant are not.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !is_attached(c)
}

/// Return whether nothing before `c` composes or reorders with what `c` becomes.
fn starts_cluster(c: char) -> bool {
    if c.is_ascii() {
        return true;
    }
    let mut first = None;
    decompose_compatible(c, |d| {
        first.get_or_insert(d);
    });
    let first = first.unwrap_or(c);
    canonical_combining_class(first) == 0 && is_nfkc_quick(std::iter::once(first)) == IsNormalized::Yes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<(String, usize)> {
        let mut out = Vec::new();
        Words::new(StopWords::English).for_each_word(text, |w, at| out.push((w.to_owned(), at)));
        out
    }

    fn tokens(text: &str) -> Vec<String> {
        words(text).into_iter().map(|(w, _)| w).collect()
    }

    /// The literal definition on a whole text: NFKC, segments, lower case, bigrams.
    fn plain(text: &str) -> Vec<String> {
        let copy: String = text.nfkc().collect();
        let mut parts: Vec<(bool, String)> = Vec::new();
        for c in copy.chars() {
            match parts.last_mut() {
                Some((run, part)) if *run == unparted(c) || (*run && selector(c)) => part.push(c),
                _ => parts.push((unparted(c), c.to_string())),
            }
        }
        let mut out = Vec::new();
        for (run, part) in parts {
            if run {
                let chars = part.chars().filter(|&c| !selector(c)).enumerate();
                each_pair(chars, |pair, _| out.push(pair.to_owned()));
            } else {
                out.extend(part.split_word_bounds().map(|w| w.trim().to_lowercase()));
            }
        }
        out.retain(|w| w.chars().any(is_letter) && !StopWords::English.contains(w));
        out
    }

    #[test]
    fn stop_words_are_those_of_the_language_of_the_text() {
        let mut auto = Words::by_language("auto").unwrap();
        let mut read = |text: &str| {
            let mut found = Vec::new();
            auto.for_each_word(text, |w, _| found.push(w.to_owned()));
            found
        };
        assert_eq!(read("The city was founded by и"), ["city", "founded", "и"]);
        assert_eq!(read("Город и улицы"), ["город", "улиц"]);
        assert_eq!(
            read("Die Stadt wurde von einem Herzog nicht gegründet"),
            ["stadt@de", "herzog@de", "gegrund@de"]
        );
        assert_eq!(
            read("L’école et les élèves de la ville sont dans une vallée, mais l'eau n'est pas là"),
            ["ecol@fr", "elev@fr", "vill@fr", "vall@fr", "eau@fr"]
        );
        // Pairs of kana keep their marks.
        assert_eq!(read("がな 犬"), ["がな", "犬"]);
    }

    #[test]
    fn a_query_is_read_in_every_language_of_the_index() {
        let read = |codes: &[&str], text: &str| {
            let languages: Vec<_> = codes.iter().map(|code| Language::by_name(code).unwrap()).collect();
            let mut found = Vec::new();
            Words::of_queries(StopWords::Detect, &languages)
                .for_each_word(text, |w, _| found.push(w.to_owned()));
            found
        };
        assert_eq!(read(&[], "The Häuser"), ["häuser"]);
        assert_eq!(read(&["en", "de"], "The Häuser"), ["häuser", "haus@de"]);
        assert_eq!(
            read(&["en", "de"], "Was war die Aufgabe der Häuser?"),
            ["aufgabe", "aufgab@de", "häuser", "haus@de"]
        );
        assert_eq!(
            read(&["en", "ru", "zh"], "города 北京市 Café"),
            ["города", "город", "北京", "京市", "café", "cafe"]
        );
        let mut forced = Words::of_queries(StopWords::by_name("german").unwrap(), &[]);
        forced.for_each_word("der Häuser", |word, at| assert_eq!((word, at), ("haus@de", 4)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn blank_by_blank_equals_the_whole(text in "([a-zA-Z]{1,4}|[0-9]|[ .,:;'_\t\n\r-]|[éÉﬁ²Åｶﾞﾟ\u{301}\u{327}’]|[東京都カナ]|ภา|각|\u{1100}\u{1161}\u{11a8}|İ|ΑΣ|👩‍👧|\u{0}|\u{a0}|\u{3000}|\u{ad}){0,40}") {
            prop_assert_eq!(tokens(&text), plain(&text));
        }
    }
}
