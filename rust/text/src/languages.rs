//! The supported languages: each is a row of [`TABLE`] with its script, its stemmer and its function words.
//! Function words are not keywords, and `detection` recognises a language by them.

use crate::error::{Error, Result};
use crate::folding::{fold_into, spell_into, WordSet};
use crate::interner::Interner;
pub use crate::scripts::Script;
use snowball_stemmers_rs::{Algorithm, Stemmer};
use std::sync::OnceLock;

/// A language, as its row in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Language(u8);

impl Script {
    /// Return the language with the most readers in a script.
    pub(crate) fn language(self) -> Language {
        let code = match self {
            Self::Latin | Self::Other => "en",
            Self::Arabic => "ar",
            Self::Armenian => "hy",
            Self::Bengali => "bn",
            Self::Cyrillic => "ru",
            Self::Devanagari => "hi",
            Self::Ethiopic => "am",
            Self::Georgian => "ka",
            Self::Greek => "el",
            Self::Gujarati => "gu",
            Self::Gurmukhi => "pa",
            Self::Han => "zh",
            Self::Hangul => "ko",
            Self::Hebrew => "he",
            Self::Kana => "ja",
            Self::Kannada => "kn",
            Self::Khmer => "km",
            Self::Lao => "lo",
            Self::Malayalam => "ml",
            Self::Myanmar => "my",
            Self::Sinhala => "si",
            Self::Tamil => "ta",
            Self::Telugu => "te",
            Self::Thai => "th",
        };
        Language(TABLE.iter().position(|row| row.code == code).unwrap_or(0) as u8)
    }
}

/// The form in which words are matched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Stem(Algorithm),
    /// As written, because a mark makes a different word.
    Marked,
}

use Form::{Marked, Stem, Whole};

/// The properties of a language.
struct Row {
    /// ISO 639-1.
    code: &'static str,
    name: &'static str,
    script: Script,
    form: Form,
}

impl Row {
    fn stemmer(&self) -> Option<Stemmer> {
        match self.form {
            Stem(algorithm) => Some(Stemmer::create(algorithm)),
            Whole | Marked => None,
        }
    }

    /// Return the stop words. Without its marks a function word is a different word, so languages that keep
    /// marks have none.
    fn stop_words(&self, list: &str) -> WordSet {
        WordSet::new(if self.form == Marked { "" } else { list })
    }
}

const fn row(code: &'static str, name: &'static str, script: Script, form: Form) -> Row {
    Row { code, name, script, form }
}

/// The function words of each language: see the file.
const LISTS: &str = include_str!("data/function_words.txt");

/// Words that are frequent in English texts and not in other languages. They are used only for detection.
const ENGLISH: &str =
    "may also one two first many known would could upon since within although however later often \
after us";

// Indexes store the row of a language as its code, so append new rows at the end.
#[rustfmt::skip]
static TABLE: [Row; 57] = [
    row("en", "english", Script::Latin, Whole),
    row("none", "none", Script::Other, Whole),
    row("ar", "arabic", Script::Arabic, Stem(Algorithm::Arabic)),
    row("ca", "catalan", Script::Latin, Stem(Algorithm::Catalan)),
    row("cs", "czech", Script::Latin, Stem(Algorithm::Czech)),
    row("da", "danish", Script::Latin, Stem(Algorithm::Danish)),
    row("de", "german", Script::Latin, Stem(Algorithm::German)),
    row("el", "greek", Script::Greek, Stem(Algorithm::Greek)),
    row("es", "spanish", Script::Latin, Stem(Algorithm::Spanish)),
    row("et", "estonian", Script::Latin, Stem(Algorithm::Estonian)),
    row("eu", "basque", Script::Latin, Stem(Algorithm::Basque)),
    row("fa", "persian", Script::Arabic, Stem(Algorithm::Persian)),
    row("fi", "finnish", Script::Latin, Stem(Algorithm::Finnish)),
    row("fr", "french", Script::Latin, Stem(Algorithm::French)),
    row("ga", "irish", Script::Latin, Stem(Algorithm::Irish)),
    row("he", "hebrew", Script::Hebrew, Whole),
    row("hi", "hindi", Script::Devanagari, Stem(Algorithm::Hindi)),
    row("hu", "hungarian", Script::Latin, Stem(Algorithm::Hungarian)),
    row("hy", "armenian", Script::Armenian, Stem(Algorithm::Armenian)),
    row("id", "indonesian", Script::Latin, Stem(Algorithm::Indonesian)),
    row("it", "italian", Script::Latin, Stem(Algorithm::Italian)),
    row("ja", "japanese", Script::Kana, Whole),
    row("ko", "korean", Script::Hangul, Whole),
    row("lt", "lithuanian", Script::Latin, Stem(Algorithm::Lithuanian)),
    row("ne", "nepali", Script::Devanagari, Stem(Algorithm::Nepali)),
    row("nl", "dutch", Script::Latin, Stem(Algorithm::Dutch)),
    row("no", "norwegian", Script::Latin, Stem(Algorithm::Norwegian)),
    row("pl", "polish", Script::Latin, Stem(Algorithm::Polish)),
    row("pt", "portuguese", Script::Latin, Stem(Algorithm::Portuguese)),
    row("ro", "romanian", Script::Latin, Stem(Algorithm::Romanian)),
    row("ru", "russian", Script::Cyrillic, Stem(Algorithm::Russian)),
    row("sl", "slovenian", Script::Latin, Whole),
    row("sv", "swedish", Script::Latin, Stem(Algorithm::Swedish)),
    row("ta", "tamil", Script::Tamil, Stem(Algorithm::Tamil)),
    row("th", "thai", Script::Thai, Whole),
    row("tr", "turkish", Script::Latin, Stem(Algorithm::Turkish)),
    row("uk", "ukrainian", Script::Cyrillic, Stem(Algorithm::Ukrainian)),
    row("zh", "chinese", Script::Han, Whole),
    row("eo", "esperanto", Script::Latin, Stem(Algorithm::Esperanto)),
    row("sr", "serbian", Script::Cyrillic, Stem(Algorithm::Serbian)),
    row("st", "sesotho", Script::Latin, Stem(Algorithm::Sesotho)),
    row("yi", "yiddish", Script::Hebrew, Stem(Algorithm::Yiddish)),
    row("az", "azerbaijani", Script::Latin, Whole),
    row("sq", "albanian", Script::Latin, Whole),
    row("am", "amharic", Script::Ethiopic, Whole),
    row("bn", "bengali", Script::Bengali, Whole),
    row("gu", "gujarati", Script::Gujarati, Whole),
    row("ka", "georgian", Script::Georgian, Whole),
    row("km", "khmer", Script::Khmer, Whole),
    row("kn", "kannada", Script::Kannada, Whole),
    row("lo", "lao", Script::Lao, Whole),
    row("ml", "malayalam", Script::Malayalam, Whole),
    row("my", "burmese", Script::Myanmar, Whole),
    row("pa", "punjabi", Script::Gurmukhi, Whole),
    row("si", "sinhala", Script::Sinhala, Whole),
    row("te", "telugu", Script::Telugu, Whole),
    row("vi", "vietnamese", Script::Latin, Marked),
];

/// The function words of all languages, with the languages that have each, as bits.
pub(crate) struct Profile {
    pub words: Interner,
    pub owners: Vec<u64>,
}

/// Return the profile of the languages of [`TABLE`].
pub(crate) fn profile() -> &'static Profile {
    &built().profile
}

/// Data that is built once from the table.
struct Built {
    /// Snowball's English stemmer, which the keywords of English texts do not use.
    english: Stemmer,
    stemmers: Vec<Option<Stemmer>>,
    stop_words: Vec<WordSet>,
    /// Function words as they are in the source of the list.
    lists: Vec<Vec<&'static str>>,
    profile: Profile,
}

fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let lists: Vec<String> = TABLE.iter().map(function_words).collect();
        let mut profile = Profile { words: Interner::default(), owners: Vec::new() };
        for (at, list) in lists.iter().enumerate() {
            for word in list.split_ascii_whitespace().filter(|word| word.len() <= LONGEST) {
                let id = profile.words.add(word) as usize;
                profile.owners.resize(profile.words.len(), 0);
                profile.owners[id] |= 1 << at;
            }
        }
        Built {
            english: Stemmer::create(Algorithm::English),
            stemmers: TABLE.iter().map(Row::stemmer).collect(),
            stop_words: TABLE.iter().zip(&lists).map(|(row, list)| row.stop_words(list)).collect(),
            lists: TABLE.iter().map(listed).collect(),
            profile,
        }
    })
}

/// The longest function word that detection looks up, in bytes.
pub(crate) const LONGEST: usize = 16;

/// Return the function words of a row, as they are in the source of the list; none for a language that is detected
/// by its script, or not at all.
fn listed(row: &Row) -> Vec<&'static str> {
    let list = LISTS.lines().find_map(|line| line.strip_prefix(row.code)?.strip_prefix('|'));
    list.map(|words| words.split('|').collect()).unwrap_or_default()
}

/// Return the function words of a row, folded and in lower case, separated by blanks.
fn function_words(row: &Row) -> String {
    let mut list = listed(row).join(" ");
    if row.code == "en" {
        list = format!("{list} {ENGLISH}");
    }
    let mut folded = String::new();
    fold_into(&list, &mut folded);
    let folded = folded.to_lowercase();
    let words: Vec<&str> =
        folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

impl Language {
    pub const ENGLISH: Self = Self(0);
    /// No analysis by language or script.
    pub const NONE: Self = Self(1);

    /// Return whether analysis changes ASCII words only by removing stop words and plural endings.
    pub fn is_plain(self) -> bool {
        self == Self::ENGLISH || self == Self::NONE
    }

    /// Return the language of a code or name: `de`, `german`, `none`.
    ///
    /// ```
    /// use ketrag_text::languages::Language;
    ///
    /// assert_eq!(Language::by_name("german").unwrap().code(), "de");
    /// assert!(Language::by_name("klingon").is_err());
    /// ```
    pub fn by_name(name: &str) -> Result<Self> {
        let found = TABLE.iter().position(|row| row.code == name || row.name == name);
        found.map(|at| Self(at as u8)).ok_or_else(|| {
            let near = TABLE.iter().min_by_key(|row| distance(row.name, name)).map_or("", |row| row.name);
            let near = if distance(near, name) <= 3 { near } else { "auto" };
            Error::input(format!(
                "language {name:?} is unknown; did you mean {near:?}? (auto, a language, or none)"
            ))
        })
    }

    /// Return the language with this number in an index.
    pub fn numbered(number: u8) -> Result<Self> {
        if usize::from(number) < TABLE.len() {
            return Ok(Self(number));
        }
        Err(Error::input(format!("language number {number} does not exist")))
    }

    pub fn number(self) -> u8 {
        self.0
    }

    /// Return the row of the table.
    pub(crate) fn at(self) -> usize {
        usize::from(self.0)
    }

    /// Return the ISO 639-1 code.
    pub fn code(self) -> &'static str {
        self.row().code
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Return the function words, as they are in the source of the list; empty for a language without one.
    pub fn function_words(self) -> &'static [&'static str] {
        &built().lists[self.at()]
    }

    /// Return whether the script of the language has no capitals.
    pub fn is_caseless(self) -> bool {
        !matches!(
            self.row().script,
            Script::Latin | Script::Greek | Script::Cyrillic | Script::Armenian | Script::Other
        )
    }

    /// Iterate over languages in the order of their numbers, with their scripts.
    pub(crate) fn scripts() -> impl DoubleEndedIterator<Item = (Self, Script)> + ExactSizeIterator {
        TABLE.iter().enumerate().map(|(at, row)| (Self(at as u8), row.script))
    }

    /// Iterate over all languages, in the order of their numbers.
    pub fn every() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(|at| Self(at as u8))
    }

    /// Iterate over codes and names, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        TABLE.iter().map(|row| (row.code, row.name))
    }

    fn row(self) -> &'static Row {
        &TABLE[usize::from(self.0)]
    }

    /// Return whether a word (folded, lower case) is a function word of this language.
    pub fn drops(self, word: &str) -> bool {
        built().stop_words[usize::from(self.0)].has(word)
    }

    /// Return the language whose stemmer processes a word of a text in this language: this language if the
    /// word is in its script, otherwise the one with the most readers in the word's script.
    pub(crate) fn stems(self, word: &str) -> Option<Self> {
        if self == Self::NONE {
            return None;
        }
        let script = Script::of_word(word)?;
        let language = if script == self.row().script { self } else { script.language() };
        (language.row().form != Whole).then_some(language)
    }

    /// Return whether the stemmer depends on marks that folding removes: "é" in French, the pulli of Tamil.
    pub(crate) fn needs_marks(self) -> bool {
        matches!(self.row().script, Script::Latin | Script::Tamil)
    }

    /// Return whether marks make different words, as in Vietnamese.
    pub(crate) fn keeps_marks(self) -> bool {
        self.row().form == Marked
    }

    /// Return whether stems carry the code of the language. In Latin script the stem of one language is often
    /// a word of another, so only texts in this language may match it.
    pub(crate) fn is_marked(self) -> bool {
        self != Self::ENGLISH && self.row().script == Script::Latin
    }

    /// Return whether all words in Latin letters of a text in this language have its code.
    pub fn marks_latin(self) -> bool {
        self.is_marked() && self.row().form != Whole
    }

    /// Return the stem of a word that is folded and in lower case, in Latin letters. The marks that a stemmer would read are
    /// missing, so it is only comparable with other stems of folded words. English words have stems here, too.
    pub fn stem_without_marks(self, word: &str) -> Option<String> {
        let stemmer = match self {
            Self::ENGLISH => &built().english,
            _ if self.row().script == Script::Latin => built().stemmers[usize::from(self.0)].as_ref()?,
            _ => return None,
        };
        let mut stem = String::new();
        fold_into(&stemmer.stem(word), &mut stem);
        Some(stem)
    }

    /// Append the folded stem of a lower-case word to `out`, with its marks if the language keeps them. A
    /// word that would become empty is not stemmed.
    pub(crate) fn stem_into(self, word: &str, out: &mut String) {
        let start = out.len();
        if self.keeps_marks() {
            spell_into(word, out);
        } else if let Some(stemmer) = &built().stemmers[usize::from(self.0)] {
            match self.row().form {
                Stem(Algorithm::Arabic) => fold_into(&stemmer.stem(&without_affixes(word)), out),
                // The stemmer has the letters of Persian keyboards, which folding replaces.
                Stem(Algorithm::Persian) => {
                    fold_into(&stemmer.stem(&word.replace('ي', "ی").replace('ك', "ک")), out)
                }
                _ => fold_into(&stemmer.stem(word), out),
            }
        }
        if out.len() == start {
            fold_into(word, out);
        }
    }
}

/// Return an Arabic word without article, conjunction and common endings, as the light stemmer "light10" does (Larkey,
/// Ballesteros and Connell, Light Stemming for Arabic Information Retrieval, 2007). Snowball's stemmer keeps the
/// conjunction "and", which is written as part of the next word.
fn without_affixes(word: &str) -> String {
    const PREFIXES: [&str; 6] = ["وال", "بال", "كال", "فال", "لل", "ال"];
    const SUFFIXES: [&str; 8] = ["ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي"];
    let plain = word.replace('\u{640}', "").replace('ى', "ي").replace('ة', "ه");
    let long = |rest: &str| rest.chars().nth(1).is_some();
    let mut rest = plain.as_str();
    if let Some(after) = rest.strip_prefix('و').filter(|_| plain.chars().nth(3).is_some()) {
        rest = after;
    }
    if let Some(after) = PREFIXES.iter().find_map(|p| rest.strip_prefix(p).filter(|after| long(after))) {
        rest = after;
    }
    for suffix in SUFFIXES {
        rest = rest.strip_suffix(suffix).filter(|before| long(before)).unwrap_or(rest);
    }
    rest.to_owned()
}

/// Return the edit distance of two names.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &b) in other.iter().enumerate() {
            let next = (corner + usize::from(a != b)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stem(code: &str, word: &str) -> Option<String> {
        let found = Language::by_name(code).unwrap().stems(word)?;
        let mut out = String::new();
        found.stem_into(word, &mut out);
        Some(out)
    }

    #[test]
    fn codes_and_names_are_distinct_and_found() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(Language::by_name(row.code).unwrap().0 as usize, at);
            assert_eq!(Language::by_name(row.name).unwrap().0 as usize, at);
        }
        let lists = LISTS.lines().filter(|line| !line.starts_with('#'));
        let listed = TABLE.iter().filter(|row| !listed(row).is_empty()).count();
        assert_eq!((lists.count(), listed), (30, 30));
        let error = Language::by_name("germna").unwrap_err().to_string();
        assert!(error.contains("\"germna\"") && error.contains("\"german\""), "{error}");
        assert!(Language::numbered(TABLE.len() as u8).is_err());
    }

    #[test]
    fn vietnamese_keeps_marks() {
        let words = ["má", "mà", "ma", "hoà", "hòa"].map(|word| stem("vi", word).unwrap());
        assert!(words[0] != words[1] && words[1] != words[2] && words[3] == words[4], "{words:?}");
        assert_eq!(words[2], "ma");
        assert!(!Language::by_name("vi").unwrap().drops("cho"));
    }

    #[test]
    fn forms_of_one_word_have_one_stem() {
        for (code, forms) in [
            ("en", ["город", "города", "городов"]),
            ("en", ["والكتاب", "الكتاب", "كتابها"]),
            ("de", ["häuser", "haus", "hauses"]),
            ("fr", ["continué", "continuer", "continuation"]),
            ("hi", ["लडका", "लडके", "लडकों"]),
            ("el", ["βιβλια", "βιβλιων", "βιβλιου"]),
            ("ta", ["புத்தகம்", "புத்தகங்கள்", "புத்தகம்"]),
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stem(code, form)).collect();
            assert!(stems[0].is_some() && stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
        for (code, word) in [("en", "rings"), ("none", "города"), ("de", "pизa"), ("de", "7"), ("ru", "日本")]
        {
            assert_eq!(stem(code, word), None, "{word}");
        }
        assert_eq!(stem("ru", "rings"), None);
        assert!(stem("uk", "міста").is_some());
    }

    proptest! {
        #[test]
        fn no_word_vanishes(word in "[a-zà-ÿ\u{370}-\u{5ff}\u{600}-\u{6ff}\u{900}-\u{97f}\u{b80}-\u{bff}0-9]{1,12}", at in 0..TABLE.len()) {
            let word = word.to_lowercase();
            if let Some(language) = Language(at as u8).stems(&word) {
                let (mut folded, mut stem) = (String::new(), String::new());
                fold_into(&word, &mut folded);
                language.stem_into(&word, &mut stem);
                prop_assert!(folded.is_empty() || !stem.is_empty());
            }
        }
    }
}
