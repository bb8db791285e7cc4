//! Queries of function words only: "to be or not to be", "WHO". The index has no function words, because nearly every
//! passage has most of them, so the texts are searched. So they are for a single character or syllable of a script without
//! spaces between words ("館", "น้ำ"), because the index has only pairs of them.
//!
//! The score of a unit is the number of words of the query that it has, plus the length of the longest run of words that
//! the query and the unit share, plus a half for each word with the capitals of the query.

use crate::error::Result;
use crate::progress::Progress;
use crate::sparse::{leaves, Leaders, Mask, Scored};
use crate::text::folding::is_piece;
use crate::text::languages::Language;
use crate::text::lexical::Lexer;

/// Words of a query that are searched.
const MAX_WORDS: usize = 32;
/// Weight of a word with the same capitals.
const CAPITALS: f64 = 0.5;

/// Return whether a query has only function words, or is a single character or syllable of a script without spaces.
pub fn are_all(question: &str, languages: &[Language]) -> bool {
    let mut lexer = Lexer::default();
    lexer.read(question);
    lexer.are_function_words(languages) || single_piece(&lexer).is_some()
}

/// Return the only word of a query, if it is a single character or syllable of a script without spaces.
fn single_piece(query: &Lexer) -> Option<&str> {
    query.lowers(0).next().filter(|word| query.words.len() == 1 && is_piece(word))
}

/// Return the `top` best of the units that pass the optional filter: score descending, id ascending. `text` returns
/// the title and the text of a unit.
pub fn rank<'a>(
    units: usize,
    text: impl Fn(u32) -> Result<[&'a str; 2]>,
    question: &str,
    top: usize,
    mask: Option<&Mask>,
    progress: &Progress,
) -> Result<Vec<Scored>> {
    let (mut query, mut unit) = (Lexer::default(), Lexer::default());
    query.read(question);
    let count = query.words.len().min(MAX_WORDS);
    let single = single_piece(&query);
    let mut best = Leaders::new(top);
    for id in (0..units as u32).filter(|&id| leaves(mask, id)) {
        progress.check()?;
        let [title, body] = text(id)?;
        unit.read(title);
        unit.append("\n");
        unit.append(body);
        let score = match single {
            Some(piece) => unit.lowers(0).map(|word| word.matches(piece).count()).sum::<usize>() as f64,
            None => score(&query, count, &unit),
        };
        if score > 0.0 {
            best.push(Scored { id, score });
        }
    }
    Ok(best.finish())
}

fn score(query: &Lexer, count: usize, unit: &Lexer) -> f64 {
    let (mut has, mut has_capitals) = ([false; MAX_WORDS], [false; MAX_WORDS]);
    // For each word of the query: the length of the shared run that ends at it and at the unit's last word.
    let (mut before, mut longest) = ([0u32; MAX_WORDS], 0);
    for at in 0..unit.words.len() {
        let mut now = [0u32; MAX_WORDS];
        for k in (0..count).filter(|&k| query.lower(k) == unit.lower(at)) {
            now[k] = 1 + if k > 0 { before[k - 1] } else { 0 };
            longest = longest.max(now[k]);
            has[k] = true;
            has_capitals[k] |= query.raw(k) == unit.raw(at);
        }
        before = now;
    }
    let number = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count() as f64;
    number(&has) + f64::from(longest.saturating_sub(1)) + CAPITALS * number(&has_capitals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_and_capitals_decide() {
        let texts = ["To be, or not to be, that is", "not to be or to", "the WHO says who", "nothing"];
        let rank = |question: &str| {
            let text = |id: u32| Ok(["", texts[id as usize]]);
            let found = rank(texts.len(), text, question, 9, None, &Progress::none()).unwrap();
            found.into_iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(rank("to be or not to be"), [0, 1]);
        assert_eq!((rank("WHO"), rank("that"), rank("us")), (vec![2], vec![0], vec![]));
        assert!(are_all("To be", &[]) && !are_all("to sail", &[]) && !are_all("?", &[]));
        let french = [Language::by_name("fr").unwrap()];
        assert!(are_all("c", &french) && !are_all("C++", &french) && !are_all("C#", &french));
    }

    #[test]
    fn a_single_character_is_found_within_words() {
        let texts = ["図書館へ", "犬", "館と館", "น้ำเย็น"];
        let text = |id: u32| Ok(["", texts[id as usize]]);
        for (query, units) in [("館", &[2, 0][..]), ("น้ำ", &[3])] {
            let found = rank(texts.len(), text, query, 9, None, &Progress::none()).unwrap();
            assert_eq!(found.into_iter().map(|one| one.id).collect::<Vec<_>>(), units);
        }
        assert!(are_all("館", &[]) && !are_all("図書", &[]) && !are_all("x", &[]));
    }
}
