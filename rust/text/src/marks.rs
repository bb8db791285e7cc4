//! Words of languages in which marks make different words, such as Vietnamese.

use unicode_normalization::UnicodeNormalization;

/// Grave, acute, tilde, hook above, dot below.
const TONES: [char; 5] = ['\u{300}', '\u{301}', '\u{303}', '\u{309}', '\u{323}'];

/// Append a word with its marks and the mark of its tone at the end, because "hoà" and "hòa" are spellings of
/// the same word.
pub(crate) fn spell_into(word: &str, out: &mut String) {
    let is_tone = |c: &char| TONES.contains(c);
    out.extend(word.nfd().filter(|c| !is_tone(c)).nfc());
    out.extend(word.nfd().filter(is_tone));
}

/// Append a folded word as it is typed without marks.
pub(crate) fn bare_into(folded: &str, out: &mut String) {
    out.extend(folded.chars().map(|c| if c == 'đ' { 'd' } else { c }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tones_are_at_the_end() {
        for (word, spelled, bare) in [
            ("hoà", "hoa\u{300}", "hoa"),
            ("tiếng", "tiêng\u{301}", "tieng"),
            ("đã", "đa\u{303}", "da"),
            ("ma", "ma", "ma"),
        ] {
            let (mut out, mut folded) = (String::new(), String::new());
            spell_into(word, &mut out);
            assert_eq!(out, spelled);
            crate::folding::fold_into(word, &mut folded);
            out.clear();
            bare_into(&folded, &mut out);
            assert_eq!(out, bare);
        }
    }
}
