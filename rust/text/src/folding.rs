//! Accent folding and sets of words, which the analysis of every language uses.

use crate::clusters::{is_attached, is_inside};
use crate::interner::Interner;
use unicode_normalization::char::{canonical_combining_class, decompose_compatible};
use unicode_normalization::UnicodeNormalization;

/// A fixed set of words.
pub struct WordSet {
    words: Interner,
    /// Length in bytes of the longest word, so that most words need no lookup.
    longest: usize,
}

impl WordSet {
    pub fn new(words: &str) -> Self {
        let mut set = Self { words: Interner::default(), longest: 0 };
        for word in words.split_ascii_whitespace() {
            set.words.add(word);
            set.longest = set.longest.max(word.len());
        }
        set
    }

    pub fn has(&self, word: &str) -> bool {
        word.len() <= self.longest && self.words.get(word).is_some()
    }
}

/// Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar.
pub fn is_unspaced(c: char) -> bool {
    matches!(c as u32, 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x19E0..=0x19FF
        | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3038..=0x303B | 0x3041..=0x30FF
        | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F
        | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x1AFF0..=0x1B16F | 0x20000..=0x3FFFF)
}

/// Return whether a text is a single piece of a script without spaces: a character, or a syllable (see `clusters`).
pub fn is_piece(text: &str) -> bool {
    let following = || text.chars().skip(1);
    text.starts_with(is_unspaced) && text.chars().zip(following()).all(|(before, c)| is_inside(before, c))
}

/// The sign "№" is not part of a word; its decomposition "No" would be.
pub(crate) const NUMERO: char = '№';

/// Return whether a character is a fraction, such as "½". A blank separates it from a number before it: "3½" is not 31/2.
pub(crate) fn is_fraction(c: char) -> bool {
    matches!(c, '\u{bc}'..='\u{be}' | '\u{2150}'..='\u{215f}' | '\u{2189}')
}

/// Return the bytes that a character has in the folded text.
pub(crate) fn folded_size(c: char) -> usize {
    if c == NUMERO {
        return c.len_utf8();
    }
    let mut size = usize::from(is_fraction(c));
    decompose_compatible(c, |part| {
        if let Some(letters) = base_letters(part) {
            size += letters.len();
        } else if is_kept(part) {
            size += part.len_utf8();
        }
    });
    size
}

/// The zeros of digits that people also write in ASCII: Arabic, Persian, those of Indic scripts, Thai, Lao, Burmese, Khmer.
const ZEROS: [u32; 15] = [
    0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0, 0x1040, 0x17E0,
];
const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Return the plain letters for a Latin letter whose mark is a part of it, and which has no decomposition in Unicode:
/// what people type who lack the key. Digits of other scripts become those of ASCII.
pub(crate) fn base_letters(c: char) -> Option<&'static str> {
    Some(match c {
        // Persian and Urdu keyboards have other letters for these than Arabic ones.
        'ی' => "ي",
        'ک' => "ك",
        'ہ' => "ه",
        '\u{660}'..='\u{17E9}' => {
            let after = ZEROS.partition_point(|&zero| zero <= c as u32);
            let zero = ZEROS[after.checked_sub(1)?];
            return DIGITS.get((c as u32 - zero) as usize).copied();
        }
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "Ae",
        'œ' => "oe",
        'Œ' => "Oe",
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'đ' | 'ð' | 'ɗ' => "d",
        'Đ' | 'Ð' | 'Ɗ' => "D",
        'ħ' => "h",
        'Ħ' => "H",
        'ı' => "i",
        'ŧ' => "t",
        'Ŧ' => "T",
        'þ' => "th",
        'Þ' => "Th",
        'ŋ' => "n",
        'Ŋ' => "N",
        'ə' => "e",
        'Ə' => "E",
        'ɓ' => "b",
        'Ɓ' => "B",
        'ƙ' => "k",
        'Ƙ' => "K",
        // The okina of Hawaiian, and the marks of transliterated Arabic and Hebrew: people leave them out.
        '\u{2bb}'..='\u{2bc}' | '\u{2be}'..='\u{2bf}' => "",
        _ => return None,
    })
}

/// Return whether folding keeps a character. In Thai, Lao, Burmese and Khmer some combining marks are vowels,
/// and without them a word becomes another word.
fn is_kept(c: char) -> bool {
    canonical_combining_class(c) == 0 || is_attached(c)
}

/// Append the text in NFKD without combining marks, with plain letters for "ł", "ø", "ß" and their like. (Most marks are dropped, so their canonical order does not
/// matter: each character is decomposed separately.) The Cyrillic short i, "й", is a letter and keeps its breve:
/// endings contain it.
pub fn fold_into(text: &str, out: &mut String) {
    let start = out.len();
    out.reserve(text.len());
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b >= 0x80) {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        if let Some(c) = chars.next() {
            if c == NUMERO {
                out.push(c);
                rest = chars.as_str();
                continue;
            }
            if is_fraction(c) {
                out.push(' ');
            }
            decompose_compatible(c, |part| {
                if let Some(letters) = base_letters(part) {
                    out.push_str(letters);
                } else if is_kept(part) {
                    out.push(part);
                } else if part == BREVE && out.len() > start {
                    shorten_i(out);
                }
            });
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
}

/// The mark that turns и into й.
pub(crate) const BREVE: char = '\u{306}';

/// Replace и at the end of a text by й, which has as many bytes.
fn shorten_i(text: &mut String) {
    let short = match text.chars().next_back() {
        Some('и') => 'й',
        Some('И') => 'Й',
        _ => return,
    };
    text.pop();
    text.push(short);
}

/// Grave, acute, tilde, hook above, dot below.
const TONES: [char; 5] = ['\u{300}', '\u{301}', '\u{303}', '\u{309}', '\u{323}'];

/// Append a word with its marks and the mark of its tone at the end, because "hoà" and "hòa" are spellings of
/// the same word.
pub(crate) fn spell_into(word: &str, out: &mut String) {
    let is_tone = |c: &char| TONES.contains(c);
    out.extend(word.nfd().filter(|c| !is_tone(c)).nfc());
    out.extend(word.nfd().filter(is_tone));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_dropped_but_not_that_of_a_short_i() {
        for (text, folded) in [
            ("Éé ﬁ", "Ee fi"),
            ("йЙи\u{306}", "йЙй"),
            ("\u{306}а\u{306}", "а"),
            ("ё", "е"),
            ("ที่ดู", "ที่ดู"),
            ("Łódź ĐØß ığdır", "Lodz DOss igdir"),
            ("٣٤٥ १२३ ๒๕๖๗ ۰۹ ك", "345 123 2567 09 ك"),
            ("علی کتاب Hawaiʻi №5", "علي كتاب Hawaii №5"),
            ("3½ ⅟7", "3 1⁄2  1⁄7"),
        ] {
            let mut out = String::from("и");
            fold_into(text, &mut out);
            assert_eq!(out.strip_prefix('и'), Some(folded));
            assert_eq!(text.chars().map(folded_size).sum::<usize>(), folded.len());
        }
    }

    #[test]
    fn a_set_has_its_words() {
        let set = WordSet::new("of the");
        assert!(set.has("of") && set.has("the") && !set.has("o") && !set.has("thee"));
    }

    #[test]
    fn tones_are_at_the_end() {
        for (word, spelled) in
            [("hoà", "hoa\u{300}"), ("tiếng", "tiêng\u{301}"), ("đã", "đa\u{303}"), ("ma", "ma")]
        {
            let mut out = String::new();
            spell_into(word, &mut out);
            assert_eq!(out, spelled);
        }
    }
}
