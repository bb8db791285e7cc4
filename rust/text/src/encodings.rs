//! Detection and decoding of text in encodings other than UTF-8.
//!
//! The encoding is guessed by `chardetng`, the detector of Firefox, from the first megabyte that is not
//! UTF-8. Bytes that are mostly UTF-8 are decoded as UTF-8, and only the invalid bytes or the lines in
//! another encoding are decoded differently.
//!
//! ```
//! use ketrag_text::encodings::decode;
//!
//! let found = decode(b"\xb1\xb1\xbe\xa9\xb4\xf3\xd1\xa7", None);
//! assert_eq!((found.text.as_str(), found.encoding.as_deref()), ("北京大学", Some("gbk")));
//! ```

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, REPLACEMENT, UTF_16BE, UTF_16LE, UTF_8, WINDOWS_1252};
use std::collections::HashSet;

/// Number of bytes on which the guess is based.
const SAMPLE: usize = 1 << 20;
/// Number of UTF-8 characters per invalid byte from which on only this byte is assumed to be in another
/// encoding.
const FEW_WRONG: usize = 4;
/// Maximum number of lines that are not UTF-8 per non-ASCII line that is UTF-8, for a text to be considered a
/// mix of two encodings. In other encodings hardly any line is valid UTF-8 by chance.
const MANY_WRONG_LINES: usize = 4;
/// Below this number of distinct non-ASCII letters, windows-1252 is the only single-byte encoding that is
/// guessed, if it fits. Below the second number, a guess of another encoding is not certain.
const FEW_LETTERS: usize = 4;
/// One of this many non-ASCII letters may be in a position where a wrong guess would put it.
const PER_ODD: usize = 12;
/// One of this many characters may be damaged if the encoding is declared, in addition to the first ten.
const PER_DAMAGED: usize = 200;

/// A decoded text, and how it was decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    pub text: String,
    /// The assumed encoding in lower case; None for UTF-8.
    pub encoding: Option<String>,
    /// Whether the decoded text looks like real text.
    pub is_sure: bool,
    /// Whether it is the encoding that was declared.
    pub is_declared: bool,
}

impl Decoded {
    fn new(text: String, encoding: &'static Encoding, is_sure: bool) -> Self {
        let name = (encoding != UTF_8).then(|| encoding.name().to_ascii_lowercase());
        Self { text, encoding: name, is_sure, is_declared: false }
    }
}

/// Return the text of bytes without a byte order mark.
///
/// Valid UTF-8 is UTF-8 whatever is `declared`, unless that is ISO-2022-JP, whose bytes are ASCII. A declared encoding counts
/// if nearly all bytes are valid in it; else the encoding is guessed.
#[must_use]
pub fn decode(data: &[u8], declared: Option<&str>) -> Decoded {
    let declared = declared.and_then(|label| Encoding::for_label(label.as_bytes()));
    let first_wrong = match std::str::from_utf8(data) {
        Ok(text) if declared != Some(ISO_2022_JP) && !has_japanese_escape(data) => {
            return Decoded::new(text.to_owned(), UTF_8, true)
        }
        Ok(_) => 0,
        Err(error) => error.valid_up_to(),
    };
    if let Some(declared) = declared.filter(|one| ![UTF_8, UTF_16BE, UTF_16LE, REPLACEMENT].contains(one)) {
        let (text, has_errors) = declared.decode_without_bom_handling(data);
        if !has_errors || damaged(&text) <= 10 + text.len() / PER_DAMAGED {
            return Decoded { is_declared: true, ..Decoded::new(text.into_owned(), declared, true) };
        }
    }
    let counts = Counts::of(data);
    if counts.valid >= FEW_WRONG * counts.wrong && counts.wrong > 0 {
        return Decoded::new(by_bytes(data), UTF_8, true);
    }
    if MANY_WRONG_LINES * counts.valid_lines >= counts.wrong_lines && counts.valid_lines > 0 {
        return by_lines(data);
    }
    let start = if first_wrong < SAMPLE { 0 } else { line_start(data, first_wrong) };
    let end = data.len().min(start + SAMPLE);
    let guess = guess(&[&data[start..end]], end == data.len());
    let (text, has_errors) = guess.decode_without_bom_handling(data);
    let is_sure = !has_errors && looks_right(&text, guess);
    Decoded::new(text.into_owned(), guess, is_sure)
}

/// Return whether a text switches to the characters of Japanese as ISO-2022-JP does.
fn has_japanese_escape(data: &[u8]) -> bool {
    let head = &data[..data.len().min(SAMPLE)];
    head.windows(3).any(|bytes| bytes == b"\x1b$B" || bytes == b"\x1b$@")
}

fn damaged(text: &str) -> usize {
    text.matches('\u{fffd}').count()
}

/// Return the encoding that the detector guesses. One or two words with a non-ASCII letter are not enough to
/// guess a Baltic, Polish or Turkish encoding.
fn guess(parts: &[&[u8]], is_whole: bool) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    for part in parts {
        detector.feed(part, false);
    }
    if is_whole {
        detector.feed(b"", true);
    }
    let found = detector.guess(None, Utf8Detection::Deny);
    if found.is_single_byte() && found != WINDOWS_1252 {
        let texts = |encoding: &'static Encoding| -> String {
            parts.iter().map(|part| encoding.decode_without_bom_handling(part).0).collect()
        };
        let own = texts(found);
        let letters: HashSet<char> =
            own.chars().filter(|char| !char.is_ascii() && char.is_alphabetic()).collect();
        let ascii = own.bytes().filter(u8::is_ascii_alphabetic).count();
        let is_mostly_ascii = ascii >= own.chars().filter(|char| !char.is_ascii()).count();
        if letters.len() < FEW_LETTERS && (is_mostly_ascii || looks_right(&texts(WINDOWS_1252), WINDOWS_1252))
        {
            return WINDOWS_1252;
        }
    }
    found
}

/// Return whether the letters of a decoded text are where languages have them: no control characters, and few
/// symbols or capitals within words.
fn looks_right(text: &str, encoding: &'static Encoding) -> bool {
    let (mut letters, mut odd) = (0, 0);
    let mut before = (' ', ' ');
    for char in text.chars() {
        if ('\u{80}'..'\u{a0}').contains(&char) {
            return false;
        }
        let is_within = before.0.is_alphabetic() && char.is_alphabetic();
        let is_symbol = !before.1.is_ascii() && !before.1.is_alphanumeric() && !joins_letters(before.1);
        let is_capital =
            before.1.is_lowercase() && char.is_uppercase() && !(before.1.is_ascii() && char.is_ascii());
        if (is_within && is_symbol) || is_capital {
            odd += 1;
        }
        if !char.is_ascii() && char.is_alphabetic() {
            letters += 1;
        }
        before = (before.1, char);
    }
    let is_plain = encoding == WINDOWS_1252 || !encoding.is_single_byte() || letters >= FEW_LETTERS;
    is_plain && odd * PER_ODD <= letters
}

/// Return whether a mark may be between two letters: an apostrophe, a hyphen, a dash, a middle dot or a vowel
/// mark.
fn joins_letters(char: char) -> bool {
    matches!(char, '\u{a0}' | '\u{ad}' | '·' | '´' | '’' | '‘' | '\u{2010}'..='\u{2015}' | '…' | '・' | '「'..='』' | '、' | '。')
        || ('\u{300}'..='\u{36f}').contains(&char)
        || ('\u{591}'..='\u{652}').contains(&char)
        || ('\u{e31}'..='\u{e4e}').contains(&char)
        || ('\u{3000}'..='\u{303f}').contains(&char)
        || ('\u{ff00}'..='\u{ff0f}').contains(&char)
}

/// Counts of non-ASCII characters in UTF-8 and of invalid bytes, and of lines with only the former and only
/// the latter.
#[derive(Default)]
struct Counts {
    valid: usize,
    wrong: usize,
    valid_lines: usize,
    wrong_lines: usize,
}

impl Counts {
    fn of(data: &[u8]) -> Self {
        let mut found = Self::default();
        for line in lines(data) {
            let (valid, wrong) = of_line(line);
            found.valid += valid;
            found.wrong += wrong;
            found.valid_lines += usize::from(valid > 0 && wrong == 0);
            found.wrong_lines += usize::from(wrong > 0);
        }
        found
    }
}

/// Return the characters beyond ASCII that are UTF-8, and the bytes that are not.
fn of_line(line: &[u8]) -> (usize, usize) {
    if line.is_ascii() {
        return (0, 0);
    }
    line.utf8_chunks().fold((0, 0), |(valid, wrong), chunk| {
        let own = chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        (valid + own, wrong + chunk.invalid().len())
    })
}

fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    data.split_inclusive(|byte| *byte == b'\n')
}

fn line_start(data: &[u8], at: usize) -> usize {
    data[..at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |found| found + 1)
        .max(at.saturating_sub(SAMPLE / 2))
}

/// Decode UTF-8 with a few invalid bytes, which are decoded as windows-1252.
fn by_bytes(data: &[u8]) -> String {
    let mut text = String::with_capacity(data.len());
    for chunk in data.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&WINDOWS_1252.decode_without_bom_handling(chunk.invalid()).0);
    }
    text
}

/// Decode a text with some lines in UTF-8 and some in another encoding, as after appending to a file.
fn by_lines(data: &[u8]) -> Decoded {
    let is_other = |line: &&[u8]| {
        let (valid, wrong) = of_line(line);
        wrong > valid
    };
    let mut left = SAMPLE;
    let sample: Vec<&[u8]> = lines(data)
        .filter(is_other)
        .map_while(|line| {
            let part = &line[..line.len().min(left)];
            left -= part.len();
            (!part.is_empty()).then_some(part)
        })
        .collect();
    let guess = guess(&sample, false);
    let mut text = String::with_capacity(data.len());
    for line in lines(data) {
        if is_other(&line) {
            text.push_str(&guess.decode_without_bom_handling(line).0);
        } else {
            text.push_str(&by_bytes(line));
        }
    }
    Decoded::new(text, guess, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, label: &str) -> Vec<u8> {
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let (data, _, has_errors) = encoding.encode(text);
        assert!(!has_errors, "{label}");
        data.into_owned()
    }

    #[test]
    fn short_texts_in_many_encodings() {
        for (label, text) in [
            ("gbk", "北京大学的图书馆建于一九零二年。"),
            ("big5", "臺灣大學圖書館建於一九二八年"),
            ("shift_jis", "東京駅は1914年に開業した。"),
            ("euc-jp", "東京駅は1914年に開業した。"),
            ("euc-kr", "서울은 대한민국의 수도이다"),
            ("koi8-r", "Москва основана в 1147 году князем Юрием Долгоруким."),
            ("windows-1251", "Москва основана в 1147 году князем Юрием Долгоруким."),
            ("ibm866", "Москва основана в 1147 году князем Юрием Долгоруким."),
            ("windows-1252", "The café’s “special” costs 5€ – naïve résumé"),
            ("windows-1252", "A long sentence with one name in it: Müller"),
            ("windows-1250", "Zażółć gęślą jaźń"),
            ("windows-1253", "Η Αθήνα είναι η πρωτεύουσα της Ελλάδας"),
            ("windows-1254", "İstanbul Türkiye'nin en kalabalık şehridir"),
            ("windows-1255", "ירושלים היא עיר הבירה של מדינת ישראל"),
            ("windows-1256", "القاهرة هي عاصمة جمهورية مصر العربية"),
            ("windows-874", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"),
            ("iso-2022-jp", "東京駅は1914年に開業した。"),
        ] {
            let found = decode(&encoded(text, label), None);
            assert_eq!(found.text, text, "{label} {:?}", found.encoding);
            assert!(found.is_sure, "{label}");
        }
    }

    #[test]
    fn symbols_of_western_texts_are_no_polish_letters() {
        for text in [
            "Temperature 20 °C ± 2",
            "a tolerance of ±5 µm",
            "© 2019, § 5",
            "It’s “quoted” – and that’s that.",
            "A naïve reader of a naïve text is naïve",
        ] {
            let found = decode(&encoded(text, "windows-1252"), None);
            assert_eq!((found.text.as_str(), found.is_sure), (text, true));
        }
    }

    #[test]
    fn encodings_that_no_web_page_has_are_unsure() {
        // "Die Straße führt über die Brücke" in code page 437, and in that of old Macs
        for data in [
            &b"Die Stra\xe1e f\x81hrt \x81ber die Br\x81cke"[..],
            b"Die Stra\xa7e f\x9fhrt \x9fber die Br\x9fcke",
        ] {
            assert!(!decode(data, None).is_sure);
        }
    }

    #[test]
    fn a_few_odd_bytes_do_not_make_a_text_cyrillic() {
        let found = decode(b"caf\xe9 \x81\x8d", None);
        assert_eq!((found.encoding.as_deref(), found.is_sure), (Some("windows-1252"), false));
        assert!(found.text.starts_with("café "));
    }

    #[test]
    fn valid_utf8_wins_over_what_is_declared() {
        let text = "Größe, naïve";
        assert_eq!(decode(text.as_bytes(), Some("windows-1252")).text, text);
        assert_eq!(decode(&encoded(text, "windows-1252"), Some("utf-8")).text, text);
        assert_eq!(decode(&encoded("日本", "iso-2022-jp"), Some("iso-2022-jp")).text, "日本");
        assert_eq!(decode(&encoded("Привет", "koi8-r"), Some("koi8-r")).encoding.as_deref(), Some("koi8-r"));
        // A declaration that nearly no byte meets is wrong.
        let western = encoded(&"naïve ".repeat(40), "windows-1252");
        assert_eq!(decode(&western, Some("euc-jp")).encoding.as_deref(), Some("windows-1252"));
    }

    #[test]
    fn a_wrong_byte_in_utf8_is_one_character() {
        let found = decode(b"caf\xe9 \xe2\x80\x9cx\xe2\x80\x9d \xc3\xa9\xc3\xa9", None);
        assert_eq!((found.text.as_str(), found.encoding, found.is_sure), ("café “x” éé", None, true));
    }

    #[test]
    fn a_file_may_change_its_encoding_in_the_middle() {
        let first = "Die Straße führt über die Brücke.\n".repeat(30);
        let second = "北京大学的图书馆建于一九零二年。\n".repeat(20);
        let data = [first.as_bytes(), &encoded(&second, "gbk")].concat();
        let found = decode(&data, None);
        assert_eq!(found.text, first + &second);
        assert_eq!((found.encoding.as_deref(), found.is_sure), (Some("gbk"), false));
    }

    #[test]
    fn the_sample_begins_where_the_text_is_not_utf8() {
        let first = "plain\n".repeat(SAMPLE / 4);
        let second = "Москва основана в 1147 году князем Юрием Долгоруким.\n";
        let data = [first.as_bytes(), &encoded(second, "windows-1251")].concat();
        let found = decode(&data, None);
        assert!(found.text.ends_with(second));
        assert_eq!(found.text.len(), first.len() + second.len());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_decoded(data in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let found = decode(&data, None);
            if let Ok(text) = std::str::from_utf8(&data) {
                if !has_japanese_escape(&data) {
                    proptest::prop_assert_eq!(&found.text, text);
                }
            }
        }
    }
}
