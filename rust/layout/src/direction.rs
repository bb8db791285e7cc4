//! The order of the words of a line that has text from right to left, such as Hebrew or Arabic.

/// Return whether a word has letters that are written from right to left.
pub fn is_rtl(text: &str) -> bool {
    text.chars().any(is_of_rtl_script)
}

fn is_of_rtl_script(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}')
}

/// Return whether a character is a letter or mark that is written from right to left. Digits of Arabic are not.
pub fn is_rtl_letter(c: char) -> bool {
    is_of_rtl_script(c) && !c.is_numeric()
}

/// Return whether most words are written from right to left; of a tie, whether the rightmost word is.
pub fn is_mostly_rtl<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let (mut rtl, mut ltr, mut ends_rtl) = (0_usize, 0_usize, false);
    for word in words {
        if is_rtl(word) {
            (rtl, ends_rtl) = (rtl + 1, true);
        } else if word.chars().any(char::is_alphabetic) {
            (ltr, ends_rtl) = (ltr + 1, false);
        }
    }
    rtl > ltr || rtl == ltr && ends_rtl
}

/// Join words that are given from left to right, in the order in which they are read, with blanks between them.
///
/// ```
/// use ketrag_layout::direction::join;
///
/// assert_eq!(join(&["ice", "the"]), "ice the");
/// assert_eq!(join(&["2024", "שבת", "ביום"]), "ביום שבת 2024");
/// ```
pub fn join(words: &[&str]) -> String {
    if !words.iter().any(|word| is_rtl(word)) {
        return words.join(" ");
    }
    let mut order: Vec<&str> = words.to_vec();
    if is_mostly_rtl(words.iter().copied()) {
        order.reverse();
        // Foreign words and the numbers between them keep their order.
        reverse_runs(&mut order, true, |word| !is_rtl(word), |word| word.chars().any(char::is_alphabetic));
    } else {
        reverse_runs(
            &mut order,
            false,
            |word| !word.chars().any(char::is_alphabetic) || is_rtl(word),
            is_rtl,
        );
    }
    order.join(" ")
}

/// Reverse each run of words that are `inside` from its first `strong` word, or with `leads` from its beginning, to its
/// last strong word.
fn reverse_runs(
    words: &mut [&str],
    leads: bool,
    inside: impl Fn(&str) -> bool,
    strong: impl Fn(&str) -> bool,
) {
    let mut at = 0;
    while at < words.len() {
        let length = words[at..].iter().take_while(|word| inside(word)).count();
        let run = &mut words[at..at + length];
        let first = run.iter().position(|word| leads || strong(word));
        let last = run.iter().rposition(|word| strong(word));
        if let (Some(first), Some(last)) = (first, last) {
            run[first..=last].reverse();
        }
        at += length.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_reading_order() {
        assert_eq!(join(&["שבת", "ביום", "סגורה", "הספרייה"]), "הספרייה סגורה ביום שבת");
        assert_eq!(join(&["שבת", "ISO", "9001", "ביום"]), "ביום ISO 9001 שבת");
        assert_eq!(join(&["see", "שבת", "ביום", "today"]), "see ביום שבת today");
        assert_eq!(join(&["10", "20", "שבת"]), "שבת 20 10");
        assert_eq!(join(&[]), "");
    }
}
