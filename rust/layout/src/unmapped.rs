//! Letters without Unicode values: whether a page has them, and which of them are read all the same.

use crate::characters::{is_blank, sample, Characters, SAMPLED};

/// Return whether letters have no Unicode values, judging by the text and a sample of them.
pub(crate) fn is_unmapped(characters: &impl Characters) -> bool {
    let units = characters.units();
    let bad = units.iter().filter(|&&unit| is_bad(unit)).count();
    if bad > 0 {
        let seen = units.iter().filter(|&&unit| !is_blank(unit)).count();
        if seen >= 20 && bad as f64 > 0.2 * seen as f64 {
            return true;
        }
    }
    let places: Vec<usize> = sample(units, SAMPLED).collect();
    if places.len() < SAMPLED / 3 {
        return false;
    }
    let wrong = places.iter().filter(|&&at| characters.is_unmapped(at)).count();
    wrong as f64 > 0.4 * places.len() as f64 && !is_plausible(units)
}

/// Frequency of the letters a to z in prose, per thousand: the mean of English, German, French and Spanish.
const FREQUENCY: [f64; 26] = [
    82.0, 14.0, 31.0, 42.0, 146.0, 14.0, 18.0, 26.0, 71.0, 4.0, 5.0, 46.0, 28.0, 78.0, 62.0, 22.0, 6.0, 66.0,
    68.0, 72.0, 42.0, 12.0, 10.0, 3.0, 10.0, 7.0,
];
/// Letters with which a text can be judged.
const JUDGED: usize = 40;
/// Minimum similarity (cosine) of the letters of a page to those of prose. Pages of English, French and R code in
/// fonts of TeX have 0.9 and more; the same pages with letters exchanged at random have 0.75 at most.
const PLAUSIBLE: f64 = 0.86;

/// Return whether characters without a map to Unicode are letters all the same, as those of TeX's bitmap fonts.
fn is_plausible(units: &[u32]) -> bool {
    let mut counts = [0.0; 26];
    for letter in units.iter().filter_map(|&unit| u8::try_from(unit).ok()).filter(u8::is_ascii_alphabetic) {
        counts[usize::from(letter.to_ascii_lowercase() - b'a')] += 1.0;
    }
    let seen = units.iter().filter(|&&unit| !is_blank(unit)).count() as f64;
    let letters: f64 = counts.iter().sum();
    let product: f64 = counts.iter().zip(FREQUENCY).map(|(own, usual)| own * usual).sum();
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    letters >= JUDGED as f64 && letters > 0.2 * seen && product > PLAUSIBLE * norm(&counts) * norm(&FREQUENCY)
}

/// Return the character that a code of TeX's encodings OT1 and T1 stands for in a font without a map to Unicode.
pub fn tex_character(code: u32) -> Option<u32> {
    Some(match code {
        0x0b | 0x1b => 0xfb00, // ff
        0x0c | 0x1c => 0xfb01, // fi
        0x0d | 0x1d => 0xfb02, // fl
        0x0e | 0x1e => 0xfb03, // ffi
        0x0f | 0x1f => 0xfb04, // ffl
        0x10 => 0x201c,
        0x11 => 0x201d,
        0x12 => 0x201e,
        0x15 => 0x2013,
        0x16 => 0x2014,
        _ => return None,
    })
}

fn is_bad(unit: u32) -> bool {
    matches!(unit, 0..=8 | 0xe..=0x1f | 0xfffd | 0xe000..=0xf8ff)
}
