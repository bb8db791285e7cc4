//! Words of the walk: accent-folded runs of letters and digits, and their keywords without stop words and
//! plural s.

use crate::interner::Interner;
use std::sync::OnceLock;
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

/// Words that are never keywords, and never the first word of a name or subject.
const STOP_WORDS: &str = "a an and are as at be been being but by can could did do does doing done \
for from had has have having he her here hers him himself his how i if in into is it its itself just \
may me might more most must my no nor not now of off on once only or other our out over own same \
shall she should so some such than that the their theirs them themselves then there these they this \
those through to too under until up upon very was we were what when where which while who whom whose \
why will with would you your also s t d ll re ve m";

/// Words that open sentences: capitalised and on their own, they are not names.
const OPENERS: &str = "a according after all although among an another are as at because before \
between born both by currently despite did does during each early first following for from he how \
however in is it its later located many name number on once one originally other second several she \
since that the there these they this though three today two under upon was we what when where which \
while who why with within without you";

/// A fixed set of words.
pub struct WordSet(Interner);

impl WordSet {
    pub fn new(words: &str) -> Self {
        let mut set = Interner::default();
        for word in words.split_ascii_whitespace() {
            set.add(word);
        }
        Self(set)
    }

    pub fn has(&self, word: &str) -> bool {
        // No listed word is longer, so most words need no lookup.
        word.len() <= 12 && self.0.get(word).is_some()
    }
}

pub fn stop_words() -> &'static WordSet {
    static SET: OnceLock<WordSet> = OnceLock::new();
    SET.get_or_init(|| WordSet::new(STOP_WORDS))
}

pub fn openers() -> &'static WordSet {
    static SET: OnceLock<WordSet> = OnceLock::new();
    SET.get_or_init(|| WordSet::new(OPENERS))
}

/// Position of one word in the folded text and in the lower-cased words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub start: usize,
    pub end: usize,
    lower: (usize, usize),
}

/// Splits texts into words; its buffers are reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Lexer {
    /// The text without accents (NFKD without combining marks), case as written.
    pub folded: String,
    lower: String,
    pub words: Vec<Word>,
}

impl Lexer {
    pub fn read(&mut self, text: &str) {
        self.clear();
        self.append(text);
    }

    pub fn clear(&mut self) {
        self.folded.clear();
        self.lower.clear();
        self.words.clear();
    }

    /// Append the words of `text`; no word spans the border. Returns the offset in `folded` at which the new
    /// text begins.
    pub fn append(&mut self, text: &str) -> usize {
        let start = self.folded.len();
        fold_into(text, &mut self.folded);
        if self.folded.is_ascii() && self.lower.len() == start {
            self.ascii_words(start);
        } else {
            self.any_words(start);
        }
        start
    }

    /// ASCII: lower-casing preserves offsets, so words need not be copied one by one.
    fn ascii_words(&mut self, start: usize) {
        self.lower.push_str(&self.folded[start..]);
        self.lower[start..].make_ascii_lowercase();
        let bytes = self.folded.as_bytes();
        let mut at = start;
        while at < bytes.len() {
            if !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let first = at;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            self.words.push(Word { start: first, end: at, lower: (first, at) });
        }
    }

    fn any_words(&mut self, start: usize) {
        let Self { folded, lower, words } = self;
        let mut open: Option<usize> = None;
        let ends = folded[start..].char_indices().map(|(i, c)| (start + i, c));
        for (at, c) in ends.chain([(folded.len(), ' ')]) {
            match (c.is_alphanumeric(), open) {
                (true, None) => open = Some(at),
                (false, Some(first)) => {
                    let begin = lower.len();
                    let word = &folded[first..at];
                    if word.is_ascii() {
                        lower.push_str(word);
                        lower[begin..].make_ascii_lowercase();
                    } else {
                        lower.push_str(&word.to_lowercase());
                    }
                    words.push(Word { start: first, end: at, lower: (begin, lower.len()) });
                    open = None;
                }
                _ => {}
            }
        }
    }

    /// Return word `k` in lower case.
    pub fn lower(&self, k: usize) -> &str {
        let (start, end) = self.words[k].lower;
        &self.lower[start..end]
    }

    /// Return word `k` as written, without accents.
    pub fn raw(&self, k: usize) -> &str {
        &self.folded[self.words[k].start..self.words[k].end]
    }

    /// Return the text between word `k` and the word before it.
    pub fn gap(&self, k: usize) -> &str {
        &self.folded[if k == 0 { 0 } else { self.words[k - 1].end }..self.words[k].start]
    }

    /// Call `each` with the keywords, with repetitions, in text order.
    pub fn keywords(&self, mut each: impl FnMut(&str)) {
        let stops = stop_words();
        let mut buffer = String::new();
        for k in 0..self.words.len() {
            let word = self.lower(k);
            if word.is_ascii() || !word.chars().any(is_unspaced) {
                if !stops.has(word) {
                    stem(word, &mut buffer, &mut each);
                }
            } else {
                unspaced(word, &mut each);
            }
        }
    }
}

/// Remove a plural s: "cities" -> "city", "rings" -> "ring"; not after s, u or i, nor in words of at most
/// three letters.
fn stem(word: &str, buffer: &mut String, each: &mut impl FnMut(&str)) {
    let long = |n: usize| if word.is_ascii() { word.len() > n } else { word.chars().count() > n };
    if !word.ends_with('s') || !long(3) || ["ss", "us", "is"].iter().any(|e| word.ends_with(e)) {
        return each(word);
    }
    match word.strip_suffix("ies") {
        Some(root) if long(4) => {
            buffer.clear();
            buffer.push_str(root);
            buffer.push('y');
            each(buffer);
        }
        _ => each(&word[..word.len() - 1]),
    }
}

/// Split text in scripts without spaces between words into overlapping pairs of characters; a single
/// character is a keyword by itself, and so are other runs within the same word.
fn unspaced(word: &str, each: &mut impl FnMut(&str)) {
    let marks: Vec<(usize, char)> = word.char_indices().collect();
    let at = |k: usize| marks.get(k).map_or(word.len(), |m| m.0);
    let mut first = 0;
    while first < marks.len() {
        let kind = is_unspaced(marks[first].1);
        let mut last = first + 1;
        while last < marks.len() && is_unspaced(marks[last].1) == kind {
            last += 1;
        }
        if !kind || last == first + 1 {
            let run = &word[at(first)..at(last)];
            if kind || !stop_words().has(run) {
                each(run);
            }
        } else {
            (first..last - 1).for_each(|k| each(&word[at(k)..at(k + 2)]));
        }
        first = last;
    }
}

/// Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar.
fn is_unspaced(c: char) -> bool {
    matches!(c as u32, 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x19E0..=0x19FF
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3038..=0x303B | 0x3041..=0x30FF
        | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F
        | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x1AFF0..=0x1B16F | 0x20000..=0x3FFFF)
}

/// Append the text in NFKD without combining marks. (The marks are dropped, so their canonical order does not
/// matter: each character is decomposed separately.)
pub fn fold_into(text: &str, out: &mut String) {
    out.reserve(text.len());
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b >= 0x80) {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        if let Some(c) = chars.next() {
            decompose_compatible(c, |part| {
                if canonical_combining_class(part) == 0 {
                    out.push(part);
                }
            });
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    fn keywords(text: &str) -> Vec<String> {
        let mut lexer = Lexer::default();
        lexer.read(text);
        let mut found = Vec::new();
        lexer.keywords(|w| found.push(w.to_owned()));
        found
    }

    #[test]
    fn plurals_stop_words_and_accents() {
        assert_eq!(
            keywords("The cities of Zürich's rings, bus, glass, this_is gas; ties ÉCOLES"),
            ["city", "zurich", "ring", "bus", "glass", "gas", "tie", "ecole"]
        );
        assert_eq!(keywords(""), Vec::<String>::new());
        assert_eq!(keywords("… — _"), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(keywords("日本語 x"), ["日本", "本語", "x"]);
        assert_eq!(keywords("2023年"), ["2023", "年"]);
        assert_eq!(keywords("ไทย"), ["ไท", "ทย"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,40}", more in "\\PC{0,20}") {
            let mut lexer = Lexer::default();
            lexer.read(&text);
            let folded: String = text.nfkd().filter(|&c| canonical_combining_class(c) == 0).collect();
            prop_assert_eq!(&lexer.folded, &folded);
            let one: Vec<String> = (0..lexer.words.len()).map(|k| lexer.lower(k).to_owned()).collect();
            lexer.append(&more);
            let both: Vec<String> = (0..lexer.words.len()).map(|k| lexer.lower(k).to_owned()).collect();
            prop_assert_eq!(&both[..one.len()], &one[..]);
            for (k, word) in both.iter().enumerate() {
                prop_assert_eq!(word, &lexer.raw(k).to_lowercase());
                let _ = lexer.gap(k);
            }
            keywords(&text);
        }
    }
}
