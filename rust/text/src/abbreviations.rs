//! Abbreviations and initials after which an English sentence continues despite the full stop.

/// Return whether the full stop that ends `before` belongs to an abbreviation or initial and `after`
/// continues the sentence.
pub(super) fn ends_nothing(before: &str, after: &str) -> bool {
    let stem = &before[..before.len() - 1];
    let word = last_word(stem);
    let lower = word.to_lowercase();
    if lower.is_empty() {
        return false;
    }
    if TITLES.binary_search(&lower.as_str()).is_ok() {
        return true;
    }
    if NUMBERED.binary_search(&lower.as_str()).is_ok() {
        return after.starts_with(|c: char| c.is_numeric()) || roman(first_word(after));
    }
    let initials = word.split('.').all(|part| {
        let mut letters = part.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_none()
    });
    (initials || EITHER.binary_search(&lower.as_str()).is_ok()) && !starts_a_sentence(after)
}

/// Return the letters, digits and full stops at the end, no longer than any abbreviation.
fn last_word(text: &str) -> &str {
    const LONGEST: usize = 12;
    let from = text
        .char_indices()
        .rev()
        .take(LONGEST + 1)
        .take_while(|&(_, c)| c.is_alphanumeric() || c == '.')
        .last()
        .map_or(text.len(), |(at, _)| at);
    &text[from..]
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

fn roman(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| matches!(b, b'I' | b'V' | b'X' | b'L' | b'C'))
}

/// Return whether the first word opens sentences rather than names.
fn starts_a_sentence(text: &str) -> bool {
    let word = first_word(text);
    // "A." and "I." are initials.
    let initial = word.len() == 1 && text[1..].starts_with('.');
    !initial && STARTERS.binary_search(&word).is_ok()
}

// All sorted by bytes, checked by a test.

/// Followed by a name.
const TITLES: &[&str] = &[
    "adm", "brig", "capt", "cf", "cmdr", "col", "cpl", "dr", "e.g", "eg", "fr", "gen", "gov", "hon", "i.e",
    "ie", "lt", "maj", "messrs", "mlle", "mme", "mr", "mrs", "ms", "mt", "mx", "ph", "pres", "prof", "pvt",
    "rep", "rev", "rt", "sen", "sgt", "st", "supt", "viz", "vs",
];

/// Abbreviations only if a number follows.
const NUMBERED: &[&str] = &[
    "art", "c", "ca", "ch", "chap", "eq", "eqs", "fig", "figs", "no", "nos", "nr", "op", "p", "para", "pp",
    "pt", "sec", "sect", "ser", "tab", "vol", "vols",
];

/// The sentence continues unless the next word opens one.
const EITHER: &[&str] = &[
    "a.d", "a.k.a", "a.m", "al", "anon", "approx", "apr", "assn", "aug", "ave", "b.c", "blvd", "bros", "co",
    "corp", "dec", "dept", "dist", "ed", "eds", "esq", "est", "etc", "feb", "ft", "inc", "jan", "jr", "jul",
    "jun", "ltd", "mar", "min", "misc", "nov", "oct", "p.m", "ph.d", "phd", "rd", "sep", "sept", "sq", "sr",
    "trans", "univ",
];

const STARTERS: &[&str] = &[
    "A", "After", "All", "Although", "An", "And", "Another", "As", "At", "Because", "Before", "Both", "But",
    "By", "During", "Each", "For", "From", "He", "Her", "Here", "His", "How", "However", "I", "If", "In",
    "It", "Its", "Later", "Many", "Most", "My", "No", "Not", "On", "One", "Our", "She", "Since", "So",
    "Some", "Such", "That", "The", "Their", "Then", "There", "These", "They", "This", "Those", "Though",
    "Thus", "To", "Under", "Until", "We", "What", "When", "Where", "Which", "While", "Who", "Why", "With",
    "You",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [TITLES, NUMBERED, EITHER, STARTERS] {
            assert!(list.windows(2).all(|w| w[0] < w[1]), "{list:?}");
        }
    }

    #[test]
    fn what_follows_decides() {
        assert!(ends_nothing("in the U.S.", "Senate"));
        assert!(!ends_nothing("in the U.S.", "The Senate"));
        assert!(ends_nothing("George A.", "A. Smith"));
        assert!(ends_nothing("see vol.", "IV of it"));
        assert!(!ends_nothing("no.", "Nobody"));
        assert!(!ends_nothing("it ends.", "Nobody"));
        assert!(!ends_nothing("..", "Nobody"));
    }
}
