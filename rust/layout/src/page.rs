//! A page as its lines and drawn grids. Coordinates are in points from the top left of the displayed page.

use crate::direction::{is_rtl, join};
use crate::grids::Grid;

/// Maximum coordinate in points (35 metres). Coordinates are clamped to it.
pub const FARTHEST: f64 = 100_000.0;
/// A gap of this many letter heights may separate columns or cells.
const GAP: f64 = 0.9;

#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub text: String,
}

/// A piece of text at one height.
///
/// `soft`: it ends in the middle of a word, and its hyphen has been removed. `words` is empty in a line of running
/// text without wide gaps. `length` is that of the text in characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub size: f64,
    pub text: String,
    pub length: usize,
    pub soft: bool,
    pub upright: bool,
    pub words: Vec<Word>,
}

impl Line {
    /// Return a line without words.
    pub fn new(bounds: [f64; 4], size: f64, text: String, soft: bool) -> Line {
        let [left, top, right, bottom] = bounds;
        let length = text.chars().count();
        Line { left, top, right, bottom, size, text, length, soft, upright: true, words: Vec::new() }
    }

    /// Return words at one height as a line.
    pub fn of_words(words: Vec<Word>, size: f64, soft: bool) -> Line {
        let bounds = [
            least(words.iter().map(|word| word.left)),
            least(words.iter().map(|word| word.top)),
            most(words.iter().map(|word| word.right)),
            most(words.iter().map(|word| word.bottom)),
        ];
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let text = join(&texts);
        Line { words, ..Line::new(bounds, size, text, soft) }
    }

    /// Clamp the coordinates: a damaged or hostile matrix gives any number, infinity or NaN.
    pub fn clamp(&mut self) {
        let range = -FARTHEST..=FARTHEST;
        let is_finite = range.contains(&self.left)
            && range.contains(&self.top)
            && range.contains(&self.right)
            && range.contains(&self.bottom)
            && self.left <= self.right
            && self.top <= self.bottom
            && (0.0..=FARTHEST).contains(&self.size);
        let is_number = |word: &Word| !(word.left + word.top + word.right + word.bottom).is_nan();
        if is_finite && self.words.iter().all(is_number) {
            return;
        }
        (self.left, self.top) = (finite(self.left), finite(self.top));
        (self.right, self.bottom) = (finite(self.right).max(self.left), finite(self.bottom).max(self.top));
        self.size = finite(self.size);
        self.words.clear();
    }

    /// Return twice the height of the middle.
    pub fn twice_middle(&self) -> f64 {
        self.top + self.bottom
    }
}

fn finite(value: f64) -> f64 {
    if value.is_nan() {
        0.0
    } else {
        value.clamp(-FARTHEST, FARTHEST)
    }
}

/// Why a page has no lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Text,
    /// Its fonts do not map letters to Unicode.
    Unmapped,
    /// It has pictures and no text.
    Scanned,
}

/// The lines of a page.
///
/// `turned`: most of its text is written sideways. Then its lines, width and height are those of the page turned by
/// this angle in degrees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub width: f64,
    pub height: f64,
    pub turned: u16,
    pub state: State,
    /// Words that nobody sees: they are in the colour of the paper, outside of the page, or tiny.
    pub unseen: u32,
    pub lines: Vec<Line>,
    pub grids: Vec<Grid>,
}

impl Page {
    /// Return a box (left, top, right, bottom) on the page as it is displayed.
    pub fn displayed(&self, bounds: [f64; 4]) -> [f64; 4] {
        let [left, top, right, bottom] = bounds;
        match self.turned {
            90 => [top, self.width - right, bottom, self.width - left],
            180 => [self.width - right, self.height - bottom, self.width - left, self.height - top],
            270 => [self.height - bottom, left, self.height - top, right],
            _ => bounds,
        }
    }
}

/// Add the parts of a line between wide gaps to `lines`. `size` is that of the letters, or at most 1 if it is unknown.
pub fn split_words(mut words: Vec<Word>, soft: bool, mut size: f64, lines: &mut Vec<Line>) {
    if words.iter().any(|word| is_rtl(&word.text)) {
        words.sort_by(|a, b| (a.left + 0.0).total_cmp(&(b.left + 0.0)));
    }
    let height = most(words.iter().map(|word| word.bottom)) - least(words.iter().map(|word| word.top));
    if size <= 1.0 {
        size = larger(height, 1.0);
    }
    let limit = GAP * smaller(size, 2.5 * larger(height, 1.0));
    let mut part: Vec<Word> = Vec::with_capacity(words.len());
    for word in words {
        if let Some(before) = part.last() {
            let is_near = word.left - before.right <= limit && word.right >= before.left;
            if !is_near {
                lines.push(Line::of_words(std::mem::take(&mut part), size, false));
            }
        }
        part.push(word);
    }
    if !part.is_empty() {
        lines.push(Line::of_words(part, size, soft));
    }
}

/// Return the first value, or a later one that is smaller; 0 without values.
pub fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(smaller).unwrap_or(0.0)
}

/// Return the first value, or a later one that is larger; 0 without values.
pub fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.reduce(larger).unwrap_or(0.0)
}

pub fn smaller(a: f64, b: f64) -> f64 {
    if b < a {
        b
    } else {
        a
    }
}

pub fn larger(a: f64, b: f64) -> f64 {
    if b > a {
        b
    } else {
        a
    }
}

/// Return the median; the mean of the two in the middle if their number is even, 0 without values.
pub fn median(mut values: Vec<f64>) -> f64 {
    let count = values.len();
    if count == 0 {
        return 0.0;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f64::total_cmp);
    if count % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
    (lower + upper) / 2.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Return a word 10 points high.
    pub fn word(left: f64, right: f64, top: f64, text: &str) -> Word {
        Word { left, top, right, bottom: top + 10.0, text: text.into() }
    }

    #[test]
    fn a_line_is_split_at_wide_gaps_only() {
        let words = vec![word(0.0, 20.0, 0.0, "a"), word(24.0, 40.0, 0.0, "b"), word(60.0, 80.0, 0.0, "c")];
        let mut lines = Vec::new();
        split_words(words, true, 10.0, &mut lines);
        let texts: Vec<(&str, bool)> = lines.iter().map(|line| (line.text.as_str(), line.soft)).collect();
        assert_eq!(texts, [("a b", false), ("c", true)]);
    }

    #[test]
    fn hostile_coordinates_are_clamped() {
        let mut line =
            Line::new([f64::NAN, f64::NEG_INFINITY, 1e300, -3e9], f64::INFINITY, "a".into(), false);
        line.clamp();
        let found = [line.left, line.top, line.right, line.bottom, line.size];
        assert_eq!(found, [0.0, -FARTHEST, FARTHEST, -FARTHEST, FARTHEST]);
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(vec![]), 0.0);
    }
}
