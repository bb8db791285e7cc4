//! Abbreviations, initials and ordinals after which a sentence continues despite the full stop.

/// Return whether the full stop between `stem` and `after` belongs to an abbreviation, an initial or an
/// ordinal, so that the sentence continues with `after`.
pub(super) fn goes_on_after(stem: &str, after: &str) -> bool {
    let word = last_word(stem, |c| c == '.');
    let rest = &stem[..stem.len() - word.len()];
    let Some(next) = after.chars().next().filter(|_| !word.is_empty()) else { return false };
    let first = first_word(after);
    let mut lower = word.to_lowercase();
    if is_letter(word) {
        if is_letter(first) && after[first.len()..].starts_with('.') {
            return true;
        }
        if let Some(letter) = letter_before(rest) {
            let pair = format!("{letter}.{word}").to_lowercase();
            if has(TITLES, &pair) || has(EITHER, &pair) {
                lower = pair;
            }
        }
    }
    if has(TITLES, &lower) {
        return true;
    }
    if has(NUMBERED, &lower) && !(is_letter(word) && word.starts_with(char::is_uppercase)) {
        return next.is_numeric() || is_roman(first);
    }
    if matches!(word.len(), 1..=2) && word.bytes().all(|b| b.is_ascii_digit()) {
        return has(MONTHS, first)
            || ((next.is_uppercase() || next.is_numeric())
                && before_blank(rest).is_some_and(|rest| has(BEFORE_ORDINALS, last_word(rest, |_| false)))
                && !starts_a_sentence(after));
    }
    if rest.trim_end().ends_with('°') {
        return false;
    }
    let is_initial = |part: &str| {
        let mut letters = part.chars();
        // Hebrew and Arabic have no upper case.
        letters.next().is_some_and(|c| c.is_uppercase() || matches!(c, 'א'..='ي')) && letters.next().is_none()
    };
    (word.split('.').all(is_initial) || has(EITHER, &lower)) && !starts_a_sentence(after)
}

fn has(list: &[&str], word: &str) -> bool {
    list.binary_search(&word).is_ok()
}

/// Return the trailing letters, digits and characters of `others`, at most as long as the longest
/// abbreviation.
fn last_word(text: &str, others: impl Fn(char) -> bool) -> &str {
    const LONGEST: usize = 12;
    let from = text
        .char_indices()
        .rev()
        .take(LONGEST + 1)
        .take_while(|&(_, c)| c.is_alphanumeric() || others(c))
        .last()
        .map_or(text.len(), |(at, _)| at);
    &text[from..]
}

/// Return `text` without its trailing blank, or `None` if it has none.
fn before_blank(text: &str) -> Option<&str> {
    text.strip_suffix(char::is_whitespace)
}

/// Return the single letter that ends `text` with a full stop and a blank, as in `z. B`.
fn letter_before(text: &str) -> Option<char> {
    let text = before_blank(text)?.strip_suffix('.')?;
    let letter = text.chars().next_back().filter(|c| c.is_alphabetic())?;
    let before = text[..text.len() - letter.len_utf8()].chars().next_back();
    before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.').then_some(letter)
}

fn is_letter(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none()
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

fn is_roman(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| matches!(b, b'I' | b'V' | b'X' | b'L' | b'C'))
}

/// Return whether the first word usually opens sentences and not names.
fn starts_a_sentence(text: &str) -> bool {
    let word = first_word(text);
    // "A." and "I." are initials.
    let initial = word.len() == 1 && text[1..].starts_with('.');
    !initial && has(STARTERS, word)
}

// Every list is sorted by bytes, which a test checks.

/// Abbreviations that precede a name.
const TITLES: &[&str] = &[
    "adm", "brig", "bzw", "capt", "cf", "cmdr", "col", "cpl", "d.h", "dhr", "dipl", "dott", "dr", "dr.h.c",
    "dra", "e.g", "eg", "evtl", "exkl", "fr", "frl", "gen", "ggf", "gov", "hon", "hrn", "i.d", "i.e", "ie",
    "inkl", "lt", "maj", "messrs", "mevr", "mgr", "mio", "mlle", "mme", "mr", "mrd", "mrs", "ms", "mt", "mx",
    "np", "p.ej", "p.ex", "ph", "pres", "prof", "pvt", "rep", "rev", "rt", "sen", "sgt", "sig", "sogen",
    "sra", "srta", "st", "supt", "tsd", "u.a", "vgl", "viz", "vs", "z.b", "z.t", "акад", "проф", "т.е", "ул",
    "डॉ", "प्रो",
];

/// Abbreviations only if a number follows.
const NUMBERED: &[&str] = &[
    "abb", "abs", "art", "aufl", "bd", "bde", "blz", "c", "ca", "cap", "ch", "chap", "eq", "eqs", "fig",
    "figs", "kap", "no", "nos", "nr", "nrn", "núm", "op", "p", "para", "pos", "pp", "pt", "pág", "págs",
    "rs", "sec", "sect", "ser", "tab", "tel", "vol", "vols", "ziff", "гл", "рис", "стр", "табл",
];

/// Abbreviations after which the sentence continues unless the next word opens one.
const EITHER: &[&str] = &[
    "a.d", "a.k.a", "a.m", "al", "anon", "approx", "apr", "ariz", "assn", "assoc", "aug", "ave", "b.c",
    "blvd", "bros", "calif", "co", "colo", "comm", "conn", "corp", "cu", "dec", "dept", "dist", "div", "ed",
    "eds", "esq", "est", "etc", "feb", "fl", "fla", "ft", "gal", "geb", "gest", "hrsg", "inc", "intl", "jan",
    "jr", "jul", "jun", "lb", "lbs", "ltd", "mar", "mfg", "mich", "min", "minn", "misc", "natl", "nov",
    "oct", "okla", "oz", "p.m", "ph.d", "phd", "proc", "rd", "sep", "sept", "sq", "sr", "tenn", "trans",
    "univ", "дж",
];

const STARTERS: &[&str] = &[
    "A", "After", "All", "Although", "An", "And", "Another", "As", "At", "Because", "Before", "Both", "But",
    "By", "During", "Each", "For", "From", "He", "Her", "Here", "His", "How", "However", "I", "If", "In",
    "It", "Its", "Later", "Many", "Most", "My", "No", "Not", "On", "One", "Our", "She", "Since", "So",
    "Some", "Such", "That", "The", "Their", "Then", "There", "These", "They", "This", "Those", "Though",
    "Thus", "To", "Under", "Until", "We", "What", "When", "Where", "Which", "While", "Who", "Why", "With",
    "You",
];

/// Words that follow a German ordinal, regardless of the word before it.
const MONTHS: &[&str] = &[
    "April", "August", "Dezember", "Februar", "Jahrhundert", "Jahrtausend", "Januar", "Juli", "Juni",
    "Jänner", "Mai", "März", "November", "Oktober", "September", "Weltkrieg", "Weltkriegs",
];

/// Words that precede a German ordinal.
const BEFORE_ORDINALS: &[&str] = &[
    "ab", "am", "beim", "bis", "das", "dem", "den", "der", "des", "die", "ihr", "ihre", "im", "sein",
    "seine", "seit", "vom", "zum", "zur",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [TITLES, NUMBERED, EITHER, STARTERS, MONTHS, BEFORE_ORDINALS] {
            assert!(list.windows(2).all(|w| w[0] < w[1]), "{list:?}");
        }
    }

    #[test]
    fn what_follows_decides() {
        assert!(goes_on_after("in the U.S", "Senate"));
        assert!(!goes_on_after("in the U.S", "The Senate"));
        assert!(goes_on_after("George A", "A. Smith"));
        assert!(goes_on_after("see vol", "IV of it"));
        assert!(!goes_on_after("no", "Nobody"));
        assert!(!goes_on_after("it ends", "Nobody"));
        assert!(!goes_on_after("at 30 °C", "Nobody"));
        assert!(!goes_on_after(".", "Nobody"));
    }

    #[test]
    fn languages_other_than_english() {
        for (stem, after) in [
            ("z", "B. Autos"),
            ("etwas, z. B", "Autos"),
            ("sie starb am 3", "Mai 1990"),
            ("nach dem 2", "Weltkrieg"),
            ("в 1837 г. умер А", "С. Пушкин"),
            ("هو د", "أحمد"),
            ("वह डॉ", "राम"),
        ] {
            assert!(goes_on_after(stem, after), "{stem}. {after}");
        }
        assert!(!goes_on_after("Er ist 5", "Der Hund bellt"));
        assert!(!goes_on_after("es waren die 3", "The end"));
        assert!(!goes_on_after("и т. д", "Он ушёл"));
    }
}
