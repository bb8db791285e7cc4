//! Words written from right to left that PDFium gives from left to right, as it does with some words of pages that
//! browsers print: "ةنيفسلا" becomes "السفينة".

use crate::characters::Characters;
use crate::direction::is_rtl_letter;
use unicode_normalization::char::is_combining_mark;

/// Characters at a larger angle in radians are not on a level line, where right and left mean nothing.
const LEVEL: f32 = 0.1;
/// The longest word; text without blanks that is longer stays as it is.
const LONGEST: usize = 200;

/// Bring the letters of each word into reading order, if more of them are to the right of the one before than to its
/// left. `kept` are the characters and `units` their code units, which are moved alike. Returns whether a word changed.
pub(crate) fn turn_words(characters: &impl Characters, kept: &mut [usize], units: &mut [u32]) -> bool {
    let is_letter = |unit: u32| char::from_u32(unit).is_some_and(is_rtl_letter);
    let (mut at, mut has_changed) = (0, false);
    while at < units.len() {
        let length = units[at..].iter().take_while(|&&unit| is_letter(unit)).count();
        let word = at..at + length;
        if (2..=LONGEST).contains(&length)
            && is_reversed(characters, &kept[word.clone()], &units[word.clone()])
        {
            turn(characters, &mut kept[word.clone()], &mut units[word]);
            has_changed = true;
        }
        at += length.max(1);
    }
    has_changed
}

fn middle(characters: &impl Characters, at: usize) -> f64 {
    let [left, _, right, _] = characters.bounds(at).map(f64::from);
    (left + right) / 2.0
}

fn is_mark(unit: u32) -> bool {
    char::from_u32(unit).is_some_and(is_combining_mark)
}

fn is_reversed(characters: &impl Characters, kept: &[usize], units: &[u32]) -> bool {
    if characters.angle(kept[0]).abs() > LEVEL {
        return false;
    }
    let letters = kept.iter().zip(units).filter(|(_, &unit)| !is_mark(unit));
    let middles: Vec<f64> = letters.map(|(&at, _)| middle(characters, at)).collect();
    let ascending = middles.windows(2).filter(|pair| pair[1] > pair[0]).count();
    2 * ascending > middles.len().saturating_sub(1)
}

/// Order the letters of a word from right to left, each with the marks above and below it.
fn turn(characters: &impl Characters, kept: &mut [usize], units: &mut [u32]) {
    let mut letters: Vec<(f64, Vec<(usize, u32)>)> = Vec::new();
    let (marks, plain): (Vec<_>, Vec<_>) =
        kept.iter().copied().zip(units.iter().copied()).partition(|&(_, unit)| is_mark(unit));
    letters.extend(plain.into_iter().map(|one| (middle(characters, one.0), vec![one])));
    letters.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut alone = Vec::new();
    for mark in marks {
        let place = middle(characters, mark.0);
        let nearest = letters.iter_mut().min_by(|a, b| (a.0 - place).abs().total_cmp(&(b.0 - place).abs()));
        match nearest {
            Some((_, own)) => own.push(mark),
            None => alone.push(mark),
        }
    }
    let ordered = letters.into_iter().flat_map(|(_, own)| own).chain(alone);
    for ((at, unit), (own_at, own_unit)) in kept.iter_mut().zip(units).zip(ordered) {
        (*at, *unit) = (own_at, own_unit);
    }
}
