//! Character classes of Python and of its `regex` package where they differ from Rust's: the reference
//! implementations' tokenisers are defined by them.

use unicode_normalization::char::is_combining_mark;

/// The zeros of all runs of ten decimal digits (category Nd, Unicode 16).
const ZEROS: [u32; 77] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50,
    0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x10d40,
    0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da,
    0x11730, 0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x11de0, 0x11f50, 0x16130, 0x16a60,
    0x16ac0, 0x16b50, 0x16d70, 0x1ccf0, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0,
    0x1e4f0, 0x1e5f1, 0x1e950, 0x1fbf0,
];

/// Category Nl.
const LETTER_NUMBERS: [(u32, u32); 12] = [
    (0x16ee, 0x16f0),
    (0x2160, 0x2182),
    (0x2185, 0x2188),
    (0x3007, 0x3007),
    (0x3021, 0x3029),
    (0x3038, 0x303a),
    (0xa6e6, 0xa6ef),
    (0x10140, 0x10174),
    (0x10341, 0x10341),
    (0x1034a, 0x1034a),
    (0x103d1, 0x103d5),
    (0x12400, 0x1246e),
];

/// Symbols (category So) that Unicode counts as alphabetic.
const LETTER_SYMBOLS: [(u32, u32); 4] =
    [(0x24b6, 0x24e9), (0x1f130, 0x1f149), (0x1f150, 0x1f169), (0x1f170, 0x1f189)];

fn within(ranges: &[(u32, u32)], c: char) -> bool {
    ranges.iter().any(|&(first, last)| (first..=last).contains(&(c as u32)))
}

/// `\d`: category Nd.
pub fn is_decimal(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    let after = ZEROS.partition_point(|&zero| zero <= c as u32);
    c.is_numeric() && after > 0 && c as u32 - ZEROS[after - 1] < 10
}

/// Python's `str.isalpha` of one character: category L.
pub fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    c.is_alphabetic() && !is_combining_mark(c) && !within(&LETTER_NUMBERS, c) && !within(&LETTER_SYMBOLS, c)
}

/// `\w` of the `regex` package: alphabetic, a mark, a decimal digit, a connector or a joiner.
pub fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    c.is_alphabetic()
        || is_combining_mark(c)
        || is_decimal(c)
        || matches!(c, '\u{200c}' | '\u{200d}' | '\u{203f}' | '\u{2040}' | '\u{2054}' | '\u{fe33}')
        || matches!(c, '\u{fe34}' | '\u{fe4d}'..='\u{fe4f}' | '\u{ff3f}')
}

/// `\w` of Python's `re`: `str.isalnum` or `_`.
pub fn is_word_re(c: char) -> bool {
    is_letter(c) || c.is_numeric() || c == '_'
}

/// Python's `str.isspace`; the class of Rust (that of `\s` in the `regex` package) lacks four controls.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_at_their_borders() {
        assert!(ZEROS.windows(2).all(|w| w[0] < w[1]));
        let decimals: String = "09٠٩०９𝟎𝟿a²½Ⅷ〇一".chars().filter(|&c| is_decimal(c)).collect();
        assert_eq!(decimals, "09٠٩०９𝟎𝟿");
        let letters: String = "aZéªß日ा\u{301}ⅧⒶ5_".chars().filter(|&c| is_letter(c)).collect();
        assert_eq!(letters, "aZéªß日");
        let words: String = "aा\u{301}Ⓐ5_²‿-".chars().filter(|&c| is_word(c)).collect();
        assert_eq!(words, "aा\u{301}Ⓐ5_‿");
        assert!(is_word_re('²') && !is_word_re('\u{301}'));
        assert!(is_space('\u{1c}') && is_space('\u{a0}') && !is_space('\u{200b}'));
    }
}
