//! Characters that a reader of a text does not see, and that must not separate or change its words.
//!
//! Default-ignorable characters (soft hyphens, zero-width spaces and joiners, byte-order marks, variation selectors,
//! marks of direction) vanish, a terminal escape sequence becomes a blank, and a line break between two characters of
//! scripts without spaces vanishes.

use crate::folding::is_unspaced;
use std::borrow::Cow;
use std::ops::Range;

/// Zero-width non-joiner. Between Arabic letters it separates the parts of a compound, and is kept.
pub(crate) const NON_JOINER: char = '\u{200c}';
/// Maximum length in bytes of the argument of an operating system command, such as the title of a window. Without a limit,
/// an escape sequence that is not closed would hide the rest of the text.
const MAX_COMMAND: usize = 1_000;

/// Return whether Unicode's `Default_Ignorable_Code_Point` has a character.
pub fn is_ignorable(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFF8
        | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// A range of a text that a reader does not see, and whether a blank replaces it.
type Hidden = (Range<usize>, bool);

/// Call `each` with the hidden ranges of a text, in order.
pub(crate) fn each_hidden(text: &str, mut each: impl FnMut(Range<usize>, bool)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|&byte| may_hide(byte)) {
        let begin = at + found;
        match hidden_at(text, begin) {
            Some((range, is_blank)) => {
                at = range.end;
                each(range, is_blank);
            }
            None => {
                at = begin + 1;
                while !text.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
    }
}

/// Return whether a hidden range may begin with a byte.
fn may_hide(byte: u8) -> bool {
    matches!(byte, 0x1B | b'\n' | b'\r' | 0xC2 | 0xCD | 0xD8 | 0xE1..=0xE3 | 0xEF | 0xF0 | 0xF3)
}

/// Return the hidden range that begins at byte `at`, if any.
fn hidden_at(text: &str, at: usize) -> Option<Hidden> {
    let rest = &text[at..];
    let first = rest.chars().next()?;
    match first {
        '\u{1b}' => Some((at..at + escape_length(rest.as_bytes()), true)),
        '\n' | '\r' => wrapped_line(text, at),
        NON_JOINER if is_arabic(text[..at].chars().next_back()) && is_arabic(rest.chars().nth(1)) => None,
        c if is_ignorable(c) => Some((at..at + c.len_utf8(), false)),
        _ => None,
    }
}

fn is_arabic(c: Option<char>) -> bool {
    c.is_some_and(|c| matches!(u32::from(c), 0x620..=0x6FF | 0x750..=0x77F | 0x8A0..=0x8FF | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC))
}

/// Return the range of one line break, with the indentation of the next line, between two characters of scripts
/// without spaces.
fn wrapped_line(text: &str, at: usize) -> Option<Hidden> {
    if !text[..at].chars().next_back().is_some_and(is_unspaced) {
        return None;
    }
    let rest = &text[at..];
    let line = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(['\n', '\r']))?;
    let next = line.trim_start_matches([' ', '\t', '\u{3000}']);
    let begins = next.chars().next().is_some_and(is_unspaced);
    begins.then(|| (at..text.len() - next.len(), false))
}

/// Return the length in bytes of the terminal escape sequence with which a text begins: CSI, OSC, or another one.
fn escape_length(bytes: &[u8]) -> usize {
    let run = |from: usize, low: u8, high: u8| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|&&byte| (low..=high).contains(&byte)).count()
    };
    let closed = |end: usize, low: u8, high: u8| match bytes.get(end) {
        Some(byte) if (low..=high).contains(byte) => end + 1,
        _ => end,
    };
    match bytes.get(1) {
        Some(b'[') => closed(run(run(2, 0x30, 0x3F), 0x20, 0x2F), 0x40, 0x7E),
        Some(b']') => {
            let argument = &bytes[..bytes.len().min(MAX_COMMAND)];
            let bell = argument.iter().position(|&byte| byte == 7).map(|end| end + 1);
            let string = argument.windows(2).position(|two| two == b"\x1b\\").map(|end| end + 2);
            match (bell, string) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b).unwrap_or(2),
            }
        }
        Some(_) => closed(run(1, 0x20, 0x2F), 0x30, 0x7E),
        None => 1,
    }
}

/// Return the text without what a reader does not see.
///
/// ```
/// use ketrag_text::characters::visible;
///
/// assert_eq!(visible("com\u{ad}pressor \u{1b}[32mOK\u{1b}[0m 码\n头"), "compressor  OK  码头");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut from = 0;
    each_hidden(text, |range, is_blank| {
        out.push_str(&text[from..range.start]);
        if is_blank {
            out.push(' ');
        }
        from = range.end;
    });
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ignorable_characters_are_those_of_unicode() {
        let parsed = regex_syntax::parse(r"\p{Default_Ignorable_Code_Point}").unwrap();
        let regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) = parsed.kind()
        else {
            panic!("a class of characters")
        };
        for c in '\0'..=char::MAX {
            let is_listed = class.ranges().iter().any(|range| (range.start()..=range.end()).contains(&c));
            assert_eq!(is_ignorable(c), is_listed, "{:x}", u32::from(c));
            assert!(!is_ignorable(c) || may_hide(c.encode_utf8(&mut [0; 4]).as_bytes()[0]));
        }
    }

    #[test]
    fn hidden_characters_do_not_separate_words() {
        for (text, expected) in [
            ("gen\u{200b}erator tur\u{2060}bine conn\u{feff}ector", "generator turbine connector"),
            ("\u{feff}a\u{fe0f} \u{200f}b\u{202c}", "a b"),
            ("\u{1b}]0;title\u{7}text \u{1b}]8;;http://a\u{1b}\\link", " text  link"),
            ("\u{1b}(B0 \u{1b}=x \u{1b}[1;31", " 0  x  "),
            ("灯\n塔 灯\r\n  塔 灯\n\n塔 灯\na a\n塔", "灯塔 灯塔 灯\n\n塔 灯\na a\n塔"),
            ("می\u{200c}خواهم क्\u{200d}ष a\u{200c}b", "می\u{200c}خواهم क्ष ab"),
            ("plain text", "plain text"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    proptest! {
        #[test]
        fn every_text_can_be_read(text in "(\\PC|[\u{1b}\n\r\\[\\];m0\u{7}灯塔\u{ad}\u{200c}ا]){0,40}") {
            let found = visible(&text);
            prop_assert!(!found.as_bytes().contains(&0x1B));
            prop_assert!(found.chars().all(|c| !is_ignorable(c) || c == NON_JOINER));
        }
    }
}
