//! Accents that a page draws apart from their letters, as TeX does with its oldest fonts: "M¨unchen" becomes "München".
//!
//! PDFium gives such an accent as a separate character, before its letter, or anywhere else on the line, because its
//! box is above all letters: "Universitat Erlangen-N ¨ urnberg".

use crate::characters::Characters;
use crate::direction::is_rtl_letter;
use crate::reversed::turn_words;
use ketrag_text::classes::is_space;
use unicode_normalization::char::compose;

/// How far before and after an accent its letter is looked for, in characters.
const WINDOW: usize = 160;
/// An accent is as high above its letter's baseline as another one is, within this share of the size of the letters.
const LEVEL: f64 = 0.4;
/// A gap wider than this share of the size of the letters is a space.
const SPACE: f64 = 0.15;

/// The characters of a page, with each accent and its letter as one character, and words that are written from right to
/// left in reading order.
pub(crate) struct Accented<'a, C> {
    characters: &'a C,
    /// The characters that are kept, and their units; none if all are kept as they are.
    kept: Option<(Vec<usize>, Vec<u32>)>,
}

impl<'a, C: Characters> Accented<'a, C> {
    pub(crate) fn new(characters: &'a C) -> Self {
        let units = characters.units();
        let mut composed = units.to_vec();
        let mut is_dropped = vec![false; units.len()];
        for (at, &unit) in units.iter().enumerate() {
            let Some(mark) = combining(unit) else { continue };
            if let Some((letter, whole)) = letter_of(characters, &composed, at, mark) {
                composed[letter] = whole;
                is_dropped[at] = true;
            }
        }
        let has_accents = is_dropped.contains(&true);
        let has_rtl = units.iter().any(|&unit| char::from_u32(unit).is_some_and(is_rtl_letter));
        if !has_accents && !has_rtl {
            return Accented { characters, kept: None };
        }
        if has_accents {
            drop_spaces(characters, &mut is_dropped);
        }
        let mut kept: Vec<usize> = (0..units.len()).filter(|&at| !is_dropped[at]).collect();
        let mut units: Vec<u32> = kept.iter().map(|&at| composed[at]).collect();
        let has_turned = has_rtl && turn_words(characters, &mut kept, &mut units);
        Accented { characters, kept: (has_accents || has_turned).then_some((kept, units)) }
    }

    fn at(&self, at: usize) -> usize {
        self.kept.as_ref().map_or(at, |(kept, _)| kept[at])
    }
}

impl<C: Characters> Characters for Accented<'_, C> {
    fn units(&self) -> &[u32] {
        self.kept.as_ref().map_or_else(|| self.characters.units(), |(_, units)| units)
    }
    fn bounds(&self, at: usize) -> [f32; 4] {
        self.characters.bounds(self.at(at))
    }
    fn matrix(&self, at: usize) -> [f32; 6] {
        self.characters.matrix(self.at(at))
    }
    fn font_size(&self, at: usize) -> f64 {
        self.characters.font_size(self.at(at))
    }
    fn origin(&self, at: usize) -> [f64; 2] {
        self.characters.origin(self.at(at))
    }
    fn angle(&self, at: usize) -> f32 {
        self.characters.angle(self.at(at))
    }
    fn is_unmapped(&self, at: usize) -> bool {
        self.characters.is_unmapped(self.at(at))
    }
    fn paths(&self) -> Vec<[f32; 4]> {
        self.characters.paths()
    }
    fn has_picture(&self) -> bool {
        self.characters.has_picture()
    }
    fn backgrounds(&self) -> Vec<[f32; 4]> {
        self.characters.backgrounds()
    }
    fn is_white(&self, at: usize) -> bool {
        self.characters.is_white(self.at(at))
    }
}

/// Return the combining mark of an accent that is a separate character.
fn combining(unit: u32) -> Option<char> {
    Some(match unit {
        0x60 => '\u{300}',
        0xb4 => '\u{301}',
        0x2c6 => '\u{302}',
        0x2dc => '\u{303}',
        0xaf | 0x2c9 => '\u{304}',
        0x2d8 => '\u{306}',
        0x2d9 => '\u{307}',
        0xa8 => '\u{308}',
        0x2da => '\u{30a}',
        0x2dd => '\u{30b}',
        0x2c7 => '\u{30c}',
        0xb8 => '\u{327}',
        0x2db => '\u{328}',
        _ => return None,
    })
}

/// Return the letter above or below which an accent is drawn, and the character that both are.
fn letter_of(characters: &impl Characters, units: &[u32], accent: usize, mark: char) -> Option<(usize, u32)> {
    let [left, _, right, _] = characters.bounds(accent).map(f64::from);
    let middle = (left + right) / 2.0;
    let level = characters.origin(accent)[1];
    // The nearest characters first: usually it is the next one.
    let after = accent + 1..units.len().min(accent + WINDOW);
    let before = (accent.saturating_sub(WINDOW)..accent).rev();
    after.chain(before).find_map(|at| {
        let letter = match char::from_u32(units[at])? {
            'ı' => 'i',
            'ȷ' => 'j',
            letter => letter,
        };
        let whole = compose(letter, mark)?;
        let [left, _, right, _] = characters.bounds(at).map(f64::from);
        let size = scaled_size(characters, at);
        let is_near =
            left <= middle && middle <= right && (characters.origin(at)[1] - level).abs() < LEVEL * size;
        is_near.then_some((at, u32::from(whole)))
    })
}

fn scaled_size(characters: &impl Characters, at: usize) -> f64 {
    let matrix = characters.matrix(at).map(f64::from);
    let scale = matrix[2].hypot(matrix[3]);
    characters.font_size(at) * if scale > 0.0 { scale } else { 1.0 }
}

/// Drop the spaces that PDFium has put around accents, unless the characters on both sides are apart.
fn drop_spaces(characters: &impl Characters, is_dropped: &mut [bool]) {
    let units = characters.units();
    let is_blank =
        |at: usize| units[at] != 0xa && units[at] != 0xd && char::from_u32(units[at]).is_some_and(is_space);
    let mut at = 0;
    while at < units.len() {
        if !is_dropped[at] {
            at += 1;
            continue;
        }
        let mut begin = at;
        while begin > 0 && is_blank(begin - 1) {
            begin -= 1;
        }
        while at < units.len() && (is_dropped[at] || is_blank(at)) {
            at += 1;
        }
        let spaces: Vec<usize> = (begin..at).filter(|&one| !is_dropped[one]).collect();
        let is_one_word = begin > 0 && at < units.len() && is_touching(characters, begin - 1, at);
        // One space is kept between words.
        let kept = usize::from(!is_one_word);
        spaces.iter().skip(kept).for_each(|&one| is_dropped[one] = true);
    }
}

/// Return whether a character is directly to the right of another one on its line.
fn is_touching(characters: &impl Characters, first: usize, second: usize) -> bool {
    let size = scaled_size(characters, first);
    let gap = f64::from(characters.bounds(second)[0]) - f64::from(characters.bounds(first)[2]);
    let fall = characters.origin(second)[1] - characters.origin(first)[1];
    gap.abs() < SPACE * size && fall.abs() < LEVEL * size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters at their places: a unit, left, right and baseline of each.
    struct Drawn(Vec<u32>, Vec<[f32; 3]>);

    impl Drawn {
        fn new(characters: &[(char, f32, f32, f32)]) -> Self {
            let units = characters.iter().map(|one| u32::from(one.0)).collect();
            Drawn(units, characters.iter().map(|one| [one.1, one.2, one.3]).collect())
        }
    }

    impl Characters for Drawn {
        fn units(&self) -> &[u32] {
            &self.0
        }
        fn bounds(&self, at: usize) -> [f32; 4] {
            let [left, right, line] = self.1[at];
            [left, line + 5.0, right, line]
        }
        fn matrix(&self, _: usize) -> [f32; 6] {
            [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
        }
        fn font_size(&self, _: usize) -> f64 {
            10.0
        }
        fn origin(&self, at: usize) -> [f64; 2] {
            [f64::from(self.1[at][0]), f64::from(self.1[at][2])]
        }
        fn angle(&self, _: usize) -> f32 {
            0.0
        }
        fn is_unmapped(&self, _: usize) -> bool {
            false
        }
        fn paths(&self) -> Vec<[f32; 4]> {
            Vec::new()
        }
        fn has_picture(&self) -> bool {
            false
        }
        fn backgrounds(&self) -> Vec<[f32; 4]> {
            Vec::new()
        }
        fn is_white(&self, _: usize) -> bool {
            false
        }
    }

    fn text(characters: &[(char, f32, f32, f32)]) -> String {
        let drawn = Drawn::new(characters);
        let found = Accented::new(&drawn);
        assert_eq!(found.units().len(), found.kept.as_ref().map_or(characters.len(), |kept| kept.0.len()));
        found.units().iter().filter_map(|&unit| char::from_u32(unit)).collect()
    }

    #[test]
    fn accents_before_their_letter_or_elsewhere_on_the_line() {
        assert_eq!(text(&[('f', 0.0, 4.0, 50.0), ('¨', 5.0, 7.0, 50.4), ('u', 4.0, 9.0, 50.0)]), "fü");
        let apart = [
            ('f', 0.0, 4.0, 50.0),
            ('u', 4.0, 9.0, 50.0),
            ('N', 20.0, 26.0, 50.0),
            (' ', 26.0, 26.0, 50.0),
            ('¨', 5.0, 7.0, 50.4),
            (' ', 9.0, 9.0, 50.0),
            ('a', 26.4, 30.0, 50.0),
        ];
        assert_eq!(text(&apart), "füNa");
        let mut words = apart;
        (words[6].1, words[6].2) = (29.0, 33.0);
        assert_eq!(text(&words), "füN a");
    }

    #[test]
    fn dotless_letters_and_letters_that_have_the_accent_above_them_only() {
        assert_eq!(text(&[('´', 5.0, 7.0, 50.0), ('ı', 4.0, 8.0, 50.0)]), "í");
        assert_eq!(text(&[('´', 5.0, 7.0, 50.0), ('x', 4.0, 8.0, 50.0)]), "´x");
        assert_eq!(text(&[('¨', 5.0, 7.0, 62.0), ('u', 4.0, 9.0, 50.0)]), "¨u"); // on the line above
        assert_eq!(text(&[('`', 0.0, 2.0, 50.0), ('a', 3.0, 8.0, 50.0)]), "`a");
        // a quotation mark
    }
}
