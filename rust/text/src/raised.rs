//! Superscripts and subscripts in plain text: `10^6` for a power, `fee[1]` for the mark of a note, `H2O` and `x_i` for
//! what is lowered.
//!
//! Without a sign between them, 10⁶ is read as 106, and the year in 2019¹² cannot be found. A superscript does not say
//! which of the two it is, so the text before it decides unless the page marks it as a link to a note.

/// Marks that belong to the word or number before: `1st`, `n°`.
const ENDINGS: [&str; 12] = ["st", "nd", "rd", "th", "er", "re", "e", "o", "a", "ème", "eme", "ère"];
/// Units and functions of more than two letters that take an exponent.
const RAISED: [&str; 16] = [
    "sin", "cos", "tan", "cot", "log", "exp", "mol", "min", "sec", "rad", "kpc", "mpc", "ohm", "cell",
    "tanh", "sinh",
];
/// Words of one or two letters: what follows them is a note.
const WORDS: [&str; 28] = [
    "am", "an", "as", "at", "be", "by", "do", "go", "he", "if", "in", "is", "it", "me", "my", "no", "of",
    "on", "or", "so", "to", "up", "us", "we", "de", "er", "es", "la",
];
/// Characters of a mark that are printed as they are.
const SIGNS: &str = "*†‡§¶#′″'\"®™©°";

/// Return what is written for a superscript after the text `before`. `is_note`: it is a link to a note.
///
/// ```
/// use ketrag_text::raised::raised;
///
/// assert_eq!(raised("about 10", "6", false), "^6");
/// assert_eq!(raised("The fee", "1", false), "[1]");
/// assert_eq!(raised("in 2019", "12", false), "[12]");
/// assert_eq!(raised("the 21", "st", false), "st");
/// ```
pub fn raised(before: &str, text: &str, is_note: bool) -> String {
    let text = text.trim();
    let plain = plain_minus(text);
    let base = before.trim_end_matches(|c: char| !c.is_whitespace() && !c.is_alphanumeric() && c != ')');
    let is_mark = text.chars().all(|c| SIGNS.contains(c))
        || text.starts_with(['[', '('])
        || text == "TM"
        || text == "SM";
    if text.is_empty() || is_mark || text.chars().count() > 24 {
        return text.to_owned();
    }
    if is_note && plain.chars().all(|c| c.is_alphanumeric() || ", -–*".contains(c)) {
        return if before.is_empty() || before.ends_with(char::is_whitespace) {
            format!("[{text}] ")
        } else {
            format!("[{text}]")
        };
    }
    let word = last_word(base);
    let Some(last) = word.chars().next_back() else { return text.to_owned() };
    let is_digits = plain.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && plain.chars().all(|c| c.is_ascii_digit() || ", -–".contains(c));
    let after_number = last.is_ascii_digit();
    if ENDINGS.contains(&text.to_lowercase().as_str()) && (after_number || text.len() > 1) {
        return text.to_owned();
    }
    if is_ion(word, &plain) {
        return plain;
    }
    let is_signed = plain.starts_with(['-', '+']);
    let is_short_letter = plain.chars().count() == 1 && plain.chars().all(char::is_alphabetic);
    let is_note = before.len() > base.len() && !before.ends_with(['\'', '′', '|'])
        || !is_signed && (is_digits || is_short_letter) && !takes_exponent(base, word);
    if is_note && (is_digits || is_short_letter) {
        return format!("[{text}]");
    }
    format!("^{}", grouped(&plain))
}

/// Return what is written for a subscript after the text `before`.
///
/// ```
/// use ketrag_text::raised::lowered;
///
/// assert_eq!(lowered("H", "2"), "2");
/// assert_eq!(lowered("x", "i"), "_i");
/// ```
pub fn lowered(before: &str, text: &str) -> String {
    let plain = plain_minus(text.trim());
    let Some(last) = before.chars().next_back().filter(|c| c.is_alphanumeric() || *c == ')') else {
        return plain;
    };
    let is_digits = plain.bytes().all(|b| b.is_ascii_digit());
    if is_digits && !last.is_ascii_digit() || plain.chars().count() > 24 || plain.is_empty() {
        return plain;
    }
    format!("_{}", grouped(&plain))
}

/// Return whether a number after a word is an exponent: after numbers but years, variables, units and brackets.
fn takes_exponent(base: &str, word: &str) -> bool {
    if let Some(inner) = base.strip_suffix(')') {
        let last = inner.chars().next_back();
        let inner = last_word(inner);
        return last.is_some_and(|c| c.is_ascii_digit()) || inner.chars().count() < 3;
    }
    let letters: String = word.chars().rev().take_while(|c| c.is_alphabetic()).collect();
    let letters: String = letters.chars().rev().collect::<String>();
    if letters.is_empty() {
        let is_year = word.len() == 4 && (word.starts_with("19") || word.starts_with("20"));
        return !is_year && word.chars().filter(|c| c.is_alphabetic()).count() < 3;
    }
    let small = letters.to_lowercase();
    if letters.len() < word.len() {
        return small.chars().count() < 4; // a number with its unit
    }
    if small.chars().count() > 2 {
        return RAISED.contains(&small.as_str());
    }
    if WORDS.contains(&small.as_str()) {
        let before = base[..base.len() - word.len()].trim_end();
        return small == "in" && before.ends_with(|c: char| c.is_ascii_digit());
    }
    true
}

/// Return the last run of letters, digits and marks inside numbers.
fn last_word(text: &str) -> &str {
    let text = text.trim_end_matches(')');
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | ',');
    let begin = text
        .rfind(|c: char| !is_inside(c))
        .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    text[begin..].trim_start_matches(['.', ','])
}

/// Return whether a charge follows a chemical formula: `Ca` and `2+`.
fn is_ion(word: &str, charge: &str) -> bool {
    let digits = charge.trim_end_matches(['+', '-']);
    charge.len() == digits.len() + 1
        && digits.len() < 2
        && digits.bytes().all(|b| b.is_ascii_digit())
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.len() < 8
}

fn plain_minus(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, '−' | '–' | '‐' | '‑') { '-' } else { c })
        .filter(|c| !c.is_control())
        .collect()
}

/// Return text in parentheses if it is more than one number or word.
fn grouped(text: &str) -> String {
    let inner = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_simple =
        inner.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | ',' | '_' | '^' | '*' | '′'));
    if is_simple || text.starts_with('(') && text.ends_with(')') {
        text.to_owned()
    } else {
        format!("({text})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents() {
        for (before, text, wanted) in [
            ("2.5 × 10", "−6", "^-6"),
            ("10", "n+1", "^(n+1)"),
            ("an area of 5 m", "2", "^2"),
            ("40 km", "2", "^2"),
            ("4 in", "2", "^2"),
            ("kg m", "-1", "^-1"),
            ("E = mc", "2", "^2"),
            ("(x + 1)", "2", "^2"),
            ("R", "2", "^2"),
            ("2", "n", "^n"),
            ("σ", "2", "^2"),
        ] {
            assert_eq!(raised(before, text, false), wanted, "{before} {text}");
        }
    }

    #[test]
    fn marks_of_notes() {
        for (before, text, wanted) in [
            ("The harbour rose", "1", "[1]"),
            ("in 2019", "12", "[12]"),
            ("as we saw it", "3", "[3]"),
            ("the end.", "4", "[4]"),
            ("the end.”", "4,5", "[4,5]"),
            ("(Smith)", "2", "[2]"),
            ("Brandt", "a", "[a]"),
        ] {
            assert_eq!(raised(before, text, false), wanted, "{before} {text}");
        }
        assert_eq!(raised("10", "6", true), "[6]");
        assert_eq!(raised("", "1", true), "[1] ");
        assert_eq!(raised("word", "[7]", true), "[7]");
    }

    #[test]
    fn other_marks() {
        for (before, text, wanted) in [
            ("the 4", "th", "th"),
            ("Ca", "2+", "2+"),
            ("Cl", "−", "-"),
            ("Acme", "TM", "TM"),
            ("", "14", "14"),
            ("x", "*", "*"),
        ] {
            assert_eq!(raised(before, text, false), wanted, "{before} {text}");
        }
        for (before, text, wanted) in
            [("CO", "2", "2"), ("V", "max", "_max"), ("10", "2", "_2"), ("a", "i+1", "_(i+1)")]
        {
            assert_eq!(lowered(before, text), wanted, "{before} {text}");
        }
    }
}
