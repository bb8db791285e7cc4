//! Patterns of words and lines: numbers, labels that continue, list items, leaders.

use ketrag_text::classes::{is_decimal, is_space, is_word_re};

/// A letter in the sense of a word that may be hyphenated: neither digit nor underscore.
pub fn is_letter_of_word(c: char) -> bool {
    c.is_ascii_alphabetic() || (!c.is_ascii() && is_word_re(c) && !is_decimal(c))
}

/// Python's `str.isdigit` of one character: decimal digits, and digits in circles or above the line.
pub fn is_digit(c: char) -> bool {
    is_decimal(c)
        || matches!(c,
            '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '₀'..='₉' | '\u{1369}'..='\u{1371}' | '\u{19da}'
            | '\u{2460}'..='\u{2468}' | '\u{2474}'..='\u{247c}' | '\u{2488}'..='\u{2490}' | '\u{24ea}'
            | '\u{24f5}'..='\u{24fd}' | '\u{24ff}' | '\u{2776}'..='\u{277e}' | '\u{2780}'..='\u{2788}'
            | '\u{278a}'..='\u{2792}' | '\u{10a40}'..='\u{10a43}' | '\u{10e60}'..='\u{10e68}'
            | '\u{11052}'..='\u{1105a}' | '\u{1f100}'..='\u{1f10a}')
}

fn is_sign(c: char) -> bool {
    matches!(
        c,
        '-' | '+'
            | '–'
            | '—'
            | '−'
            | '('
            | ')'
            | '<'
            | '>'
            | '±'
            | '~'
            | '$'
            | '€'
            | '£'
            | '¥'
            | '.'
            | ','
            | '%'
    )
}

/// Return whether a word consists of digits and their signs.
pub fn is_value(word: &str) -> bool {
    word.chars().all(|c| is_sign(c) || is_decimal(c))
}

/// Return whether a word is a number or stands for one.
pub fn is_number(word: &str) -> bool {
    let is_part = |c: char| is_sign(c) || matches!(c, '/' | ':' | '*' | '†' | '‡' | '§') || is_decimal(c);
    if word.chars().all(is_part) {
        return !matches!(word, "(000)" | "");
    }
    matches!(word, "na" | "n/a" | "na." | "n/a." | "(x)" | "(X)")
}

/// Return whether a word is a currency sign.
pub fn is_currency(word: &str) -> bool {
    let mut chars = word.chars();
    matches!(chars.next_back(), Some('$' | '€' | '£' | '¥'))
        && matches!(chars.as_str(), "" | "US" | "C" | "A" | "HK" | "R")
}

fn is_dot(c: char) -> bool {
    matches!(c, '.' | '·' | '…')
}

/// Return whether a word is one dot of a leader, or at least three; two dots stand for a missing value.
pub fn is_leader(word: &str) -> bool {
    word.chars().all(is_dot) && matches!(word.chars().take(3).count(), 1 | 3)
}

/// Replace leaders (at least four dots, also with spaces between them) by tabs, without those at the ends.
pub fn split_at_leaders(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut found = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let start = at + usize::from(is_space(chars[at]));
        let (mut end, mut dots) = (start, 0);
        while chars.get(end) == Some(&'.') {
            dots += 1;
            end += 1;
            end += usize::from(chars.get(end).is_some_and(|&c| is_space(c)));
        }
        if dots >= 4 {
            found.push('\t');
            at = end;
        } else {
            found.push(chars[at]);
            at += 1;
        }
    }
    found.trim_matches('\t').to_string()
}

/// Return whether a label continues in the next line.
pub fn continues(label: &str, more: &str) -> bool {
    let count = |sign: char| label.matches(sign).count();
    let is_open = count('(') > count(')') || ends_open(label);
    more.chars().next().is_some_and(char::is_lowercase) || (is_open && !label.ends_with(':'))
}

/// Return whether a label ends with a sign or an article after which something follows.
fn ends_open(label: &str) -> bool {
    if label.ends_with([',', '(', ';', '–', '—', '-']) {
        return true;
    }
    let start = label.char_indices().rev().take_while(|&(_, c)| is_word_re(c)).last().map(|(at, _)| at);
    let last = start.map_or("", |start| &label[start..]);
    matches!(
        last,
        "and" | "or" | "of" | "the" | "for" | "to" | "in" | "by" | "with" | "from" | "at" | "on" | "a"
    )
}

/// Return whether a line begins with the bullet or the number of an item.
pub fn is_item(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    if matches!(first, '•' | '‣' | '▪' | '●' | '○' | '◦' | '–' | '*' | '·') {
        return is_apart(&text[first.len_utf8()..]);
    }
    let rest = text.strip_prefix('(').unwrap_or(text);
    let digits = rest.chars().take(4).take_while(|&c| is_decimal(c)).count();
    let numerals = rest.bytes().take(5).take_while(|byte| matches!(byte, b'i' | b'v' | b'x')).count();
    let is_single = rest.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let ends = |count: usize| {
        let mut chars = rest.chars();
        let _ = chars.by_ref().take(count).count();
        matches!(chars.next(), Some('.' | ')')) && is_apart(chars.as_str())
    };
    ((1..=3).contains(&digits) && ends(digits))
        || (is_single && ends(1))
        || ((1..=4).contains(&numerals) && ends(numerals))
}

/// Return whether text begins with a space and has something after it.
fn is_apart(text: &str) -> bool {
    text.starts_with(is_space) && text.contains(|c| !is_space(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(words: &[&str], matches: fn(&str) -> bool) -> bool {
        words.iter().all(|word| matches(word))
    }

    fn none(words: &[&str], matches: fn(&str) -> bool) -> bool {
        !words.iter().any(|word| matches(word))
    }

    #[test]
    fn numbers_and_signs() {
        assert!(all(&["12", "(1,234)", "$5.6", "—", "n/a", "na.", "(X)", "12%*", "٣", "(0000"], is_number));
        assert!(none(&["(000)", "(000s)", "a", "1a", "n/a,", ""], is_number));
        assert!(all(&["$", "US$", "HK$", "€"], is_currency) && none(&["$5", "X$", "US"], is_currency));
        assert!(all(&[".", "...", "…", "......"], is_leader) && none(&["..", "", "a."], is_leader));
        assert!(is_digit('5') && is_digit('²') && !is_digit('½') && !is_digit('x'));
    }

    #[test]
    fn leaders_become_tabs() {
        assert_eq!(split_at_leaders("Ice . . . . . 12"), "Ice\t12");
        assert_eq!(split_at_leaders("Ice......12"), "Ice\t12");
        assert_eq!(split_at_leaders("and so on... ..... "), "and so on");
        assert_eq!(split_at_leaders("a . . . b"), "a . . . b");
    }

    #[test]
    fn labels_that_go_on() {
        assert!(continues("Cost of", "Sales") && continues("Net (of", "Tax)") && continues("Cost", "sales"));
        assert!(!continues("Cost", "Sales") && !continues("(Note:", "Sales") && !continues("Beta", "Sales"));
    }

    #[test]
    fn items() {
        assert!(all(&["• a", "1. Ice", "(a) ice", "12) x", "iv. x", "i) x", "– x"], is_item));
        assert!(none(&["", "a", "1.5 m", "ice. x", "1234. x", "•a", "1. ", "xxxxx. y", "The"], is_item));
    }
}
