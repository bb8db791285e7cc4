//! Words that the texts of an index write apart and a query as one, or the reverse: "heatpump" for "heat pump" and
//! `HeatPumpManual`, "key board" for "keyboard", "HTTP404" for "HTTP 404", "RFC 2616" for "RFC2616".

use crate::rank::links_view::LinksView;
use crate::text::folding::fold_into;
use crate::text::languages::Language;
use crate::text::lexical::{Lexer, Role};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Minimum length in letters of each of the two words. Digits are divided from letters at any length. With two, "tcpip"
/// finds TCP/IP and "hanoi" finds "Ha Noi"; with three it finds neither, and the recall@5 of the six sets of
/// benches/gate.py is the same.
const SHORTEST: usize = 2;
/// Ways to divide a word that are compared with texts: those whose words have most units in common.
const WAYS: usize = 4;
/// Units whose text is read for each of them.
const READ: usize = 16;

/// Return the two words of which a word in lower case consists, if one follows the other in a text of the index or both
/// begin in one word in camel case. `text` returns all that is indexed of a unit, and its language.
pub(super) fn divided(
    links: &LinksView<'_>,
    word: &str,
    text: &impl Fn(u32) -> Option<(String, Language)>,
    lexer: &mut Lexer,
) -> Option<String> {
    let count = word.chars().count();
    let has_digits = word.chars().any(char::is_numeric);
    let is_border = |at: usize| {
        let is_digit = |c: Option<char>| c.is_some_and(char::is_numeric);
        is_digit(word[..at].chars().next_back()) != is_digit(word[at..].chars().next())
    };
    let may_divide = |k: usize, at: usize| match has_digits {
        true => k > 0 && is_border(at),
        false => (SHORTEST..=count.saturating_sub(SHORTEST)).contains(&k),
    };
    let ends =
        word.char_indices().enumerate().filter(|&(k, (at, _))| may_divide(k, at)).map(|(_, (at, _))| at);
    let mut ways: Vec<(Reverse<usize>, usize, Vec<u32>)> = ends
        .filter_map(|at| {
            let first = units_of(links, &word[..at], lexer);
            let second = units_of(links, &word[at..], lexer);
            // The index has no function words: "back up".
            let mut is_function = |part: &str| {
                lexer.read(part);
                lexer.are_function_words(links.languages())
            };
            let common: Vec<u32> = match (first.is_empty(), second.is_empty()) {
                (false, true) if is_function(&word[at..]) => first.into_iter().collect(),
                (true, false) if is_function(&word[..at]) => second.into_iter().collect(),
                _ => second.intersection(&first).copied().collect(),
            };
            match common.len() {
                0 => None,
                many => Some((Reverse(many), at, common)),
            }
        })
        .collect();
    ways.sort_unstable();
    ways.truncate(WAYS);
    let (_, at, _) = ways.into_iter().find(|(_, at, units)| {
        units.iter().take(READ).any(|&unit| {
            text(unit).is_some_and(|(text, _)| {
                lexer.read(&text);
                are_adjacent(lexer, word.split_at(*at))
            })
        })
    })?;
    Some(format!("{} {}", &word[..at], &word[at..]))
}

/// Return the units that have a word, in any language of the index.
fn units_of(links: &LinksView<'_>, word: &str, lexer: &mut Lexer) -> BTreeSet<u32> {
    lexer.read(word);
    let mut units = BTreeSet::new();
    lexer.query_roles(links.languages(), |keyword, role| {
        if let (Role::Word(_), Some(key)) = (role, links.keywords.position(keyword)) {
            units.extend(links.keyword_units.row(key).iter().copied());
        }
    });
    units
}

/// Return whether one word of a text is followed by the other, or a word in camel case has both. A plural s does not count.
fn are_adjacent(text: &Lexer, (first, second): (&str, &str)) -> bool {
    let singular = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
    let folded = |word: &str| {
        let mut out = String::new();
        fold_into(word, &mut out);
        out
    };
    let (first, second) = (folded(first), folded(second));
    let (second, whole) = (singular(&second), singular(&format!("{first}{second}")));
    (0..text.words.len()).any(|k| {
        let is_pair =
            text.lower(k) == first && k + 1 < text.words.len() && singular(text.lower(k + 1)) == second;
        is_pair || text.lower(k).contains(&whole)
    })
}

/// Return the keyword of a word and the word next to it, written as one, if the index has it.
pub(super) fn merged(
    links: &LinksView<'_>,
    word: &str,
    [before, after]: [Option<&str>; 2],
    lexer: &mut Lexer,
) -> Option<u32> {
    let pairs = [before.map(|one| format!("{one}{word}")), after.map(|one| format!("{word}{one}"))];
    pairs.into_iter().flatten().find_map(|whole| {
        lexer.read(&whole.to_lowercase());
        let mut found = None;
        lexer.query_roles(links.languages(), |keyword, role| {
            if matches!(role, Role::Word(_)) {
                found = found.or(links.keywords.position(keyword));
            }
        });
        found.map(|key| key as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_adjacent_in_text_or_in_camel_case() {
        for (text, expected) in [
            ("The heat pump is new.", true),
            ("Heat pumps", true),
            ("HeatPumpManual.txt", true),
            ("heat-pump", true),
            ("The pump has heat.", false),
            ("heat of a pump", false),
        ] {
            let mut lexer = Lexer::default();
            lexer.read(text);
            assert_eq!(are_adjacent(&lexer, ("heat", "pump")), expected, "{text}");
            assert_eq!(are_adjacent(&lexer, ("heat", "pumps")), expected, "{text}");
        }
        let mut lexer = Lexer::default();
        lexer.read("Das Wetter-\nhäuschen");
        assert!(are_adjacent(&lexer, ("wetter", "häuschen")));
    }
}
