//! UAX #29 sentence boundaries in ASCII text, where only a few rules apply. A sentence ends at a line break.
//! It also ends after a full stop, exclamation mark or question mark and the closing marks and blanks that
//! follow it, unless the next text continues the sentence.

/// Call `see` with each stretch between boundaries. The result equals that of `split_sentence_bound_indices`.
pub(crate) fn each_ascii_stretch(text: &[u8], mut see: impl FnMut(usize, usize)) {
    let mut from = 0;
    while from < text.len() {
        let to = stretch_end(text, from);
        see(from, to);
        from = to;
    }
}

fn is_term(b: u8) -> bool {
    matches!(b, b'.' | b'!' | b'?')
}

fn is_line_break(b: u8) -> bool {
    matches!(b, b'\n' | b'\r')
}

fn skip(text: &[u8], from: usize, member: impl Fn(u8) -> bool) -> usize {
    text[from..].iter().position(|&b| !member(b)).map_or(text.len(), |n| from + n)
}

/// Return the first boundary after `from`. The comments name the rules.
fn stretch_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        at = skip(text, at, |b| !is_term(b) && !is_line_break(b));
        let Some(&mark) = text.get(at) else { return text.len() };
        if is_line_break(mark) {
            // SB3, SB4
            return at + if mark == b'\r' && text.get(at + 1) == Some(&b'\n') { 2 } else { 1 };
        }
        let is_stop = mark == b'.';
        let after_letter = at > from && text[at - 1].is_ascii_alphabetic();
        at += 1;
        match text.get(at) {
            Some(next) if is_stop && next.is_ascii_digit() => continue, // SB6
            Some(next) if is_stop && after_letter && next.is_ascii_uppercase() => continue, // SB7
            _ => {}
        }
        at = skip(text, at, |b| matches!(b, b'"' | b'\'' | b'(' | b')' | b'[' | b']' | b'{' | b'}'));
        at = skip(text, at, |b| matches!(b, b' ' | b'\t' | b'\x0b' | b'\x0c'));
        match text.get(at) {
            None => return at,
            Some(b',' | b'-' | b':' | b';') => {} // SB8a
            Some(&next) if is_term(next) || is_line_break(next) => {} // SB8a, SB9, SB10
            Some(_) if is_stop && goes_on(text, at) => {} // SB8
            Some(_) => return at,                 // SB11
        }
    }
}

/// Return whether the next letter is lower case, with no mark or line break before it that may end a sentence.
fn goes_on(text: &[u8], from: usize) -> bool {
    let next = skip(text, from, |b| !b.is_ascii_alphabetic() && !is_line_break(b) && !is_term(b));
    text.get(next).is_some_and(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    fn found(text: &str) -> Vec<&str> {
        let mut parts = Vec::new();
        each_ascii_stretch(text.as_bytes(), |from, to| parts.push(&text[from..to]));
        parts
    }

    fn expected(text: &str) -> Vec<&str> {
        text.split_sentence_bounds().collect()
    }

    #[test]
    fn every_character_in_every_place() {
        for one in 0..128u8 {
            for other in 0..128u8 {
                let (a, b) = (char::from(one), char::from(other));
                for text in [
                    format!("x.{a}{b}y"),
                    format!("X! {a}{b}Y"),
                    format!("{a}{b}. Y"),
                    format!("x.) {a}1{b}y"),
                    format!("3{a}{b}\r\n y"),
                ] {
                    assert_eq!(found(&text), expected(&text), "{text:?}");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn boundaries_are_those_of_the_library(
            text in "([.!?]|[a-z]|[A-Z]|[0-9]|[ \t]|[\"')(\\]{]|[,;:-]|\r|\n|\r\n|[\u{0}-\u{7f}]){0,24}",
        ) {
            prop_assert_eq!(found(&text), expected(&text));
        }
    }
}
