//! Superscripts and subscripts of a line of a page: 10⁶ becomes `10^6`, and the mark of a note `fee[1]`.
//!
//! A character is raised or lowered if it is smaller than the letters before it and its baseline is not theirs.

use crate::characters::{maximum, minimum, Characters, Mark};
use ketrag_text::classes::is_space;
use ketrag_text::raised::{lowered, raised};

/// Letters of more than this share of the size of the letters before are neither raised nor lowered. Word draws
/// superscripts at 0.65 of the size, TeX at 0.7, ReportLab and browsers at 0.8.
const SMALLER: f64 = 0.93;
/// Letters smaller than this share follow a dropped capital.
const SMALLEST: f64 = 0.4;
/// Distances between baselines, as shares of the size of the larger letters. A line pitch is 1 and more.
const RISE: std::ops::Range<f64> = 0.12..0.8;
const DROP: std::ops::Range<f64> = 0.05..0.6;
/// Maximum lengths of a superscript and a subscript that are printed as such.
const LONGEST: [usize; 2] = [12, 8];
/// A superscript apart from the word before is at most this many characters long, and this share of the size away.
const APART: usize = 5;
const NEAR: f64 = 0.35;
/// Two characters this close to each other, as a share of their size, belong to one word.
const TOUCHING: f64 = 0.1;
/// Bytes of the text before a superscript that are kept.
const LONGEST_LINE: usize = 400;
/// Baselines that differ by this share of the size or less are the same.
const LEVEL: f64 = 0.03;
/// Cosine of the angle between the directions of two characters of one line, at least.
const SAME: f64 = 0.99;

/// The point where a character begins, the direction of its line, and the size of its font, in coordinates of the file.
/// Lines also run up, down or across the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    origin: [f64; 2],
    direction: [f64; 2],
    size: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shift {
    None,
    Raised,
    Lowered,
}

impl Level {
    pub(crate) fn of(characters: &impl Characters, at: usize) -> Level {
        let matrix = characters.matrix(at).map(f64::from);
        let size = characters.font_size(at) * matrix[2].hypot(matrix[3]);
        let length = matrix[0].hypot(matrix[1]);
        let direction = [matrix[0] / length, matrix[1] / length];
        Level { origin: characters.origin(at), direction, size }
    }

    /// Return how far a point is above the baseline.
    fn rise(self, [x, y]: [f64; 2]) -> f64 {
        (y - self.origin[1]) * self.direction[0] - (x - self.origin[0]) * self.direction[1]
    }

    fn is_parallel(self, other: Level) -> bool {
        let [x, y] = self.direction;
        x * other.direction[0] + y * other.direction[1] > SAME
    }

    /// Return how a character of this level is shifted from `base`. Undefined coordinates are not shifted.
    fn shift(self, base: Level) -> Shift {
        let share = self.size / base.size;
        let rise = base.rise(self.origin) / base.size;
        if !(SMALLEST..SMALLER).contains(&share) || !self.is_parallel(base) {
            Shift::None
        } else if RISE.contains(&rise) {
            Shift::Raised
        } else if DROP.contains(&-rise) {
            Shift::Lowered
        } else {
            Shift::None
        }
    }
}

/// Return where a character begins and ends on the way in a direction.
fn ends(characters: &impl Characters, at: usize, [x, y]: [f64; 2]) -> [f64; 2] {
    let [left, top, right, bottom] = characters.bounds(at).map(f64::from);
    let (across, up) = ([x * left, x * right], [y * bottom, y * top]);
    [
        minimum(across[0], across[1]) + minimum(up[0], up[1]),
        maximum(across[0], across[1]) + maximum(up[0], up[1]),
    ]
}

/// Return whether the text at `next` goes on in the line that ends at `last`: PDFium breaks lines at superscripts.
pub(crate) fn goes_on(characters: &impl Characters, last: usize, next: usize) -> bool {
    let (first, second) = (Level::of(characters, last), Level::of(characters, next));
    let size = first.size.max(second.size);
    let gap = ends(characters, next, first.direction)[0] - ends(characters, last, first.direction)[1];
    let distance = first.rise(second.origin).abs();
    if second.shift(first) != Shift::None || first.shift(second) != Shift::None {
        gap > -NEAR * size && gap < size
    } else {
        // An exponent directly after a subscript.
        first.is_parallel(second)
            && gap.abs() < TOUCHING * size
            && distance > LEVEL * size
            && distance < size + size * TOUCHING
    }
}

/// Return whether the characters of a line are all on one baseline.
pub(crate) fn is_level(characters: &impl Characters, marks: &[Mark]) -> bool {
    let base = Level::of(characters, marks[0].start);
    !marks.iter().any(|mark| mark.is_glued || has_other_level(characters, mark, base))
}

/// Return whether characters of a word are not on the baseline of `base`. In a word of letters only the ends are checked.
fn has_other_level(characters: &impl Characters, mark: &Mark, base: Level) -> bool {
    let is_other = |at: usize| base.rise(characters.origin(at)).abs() > LEVEL * base.size.max(1.0);
    let is_letter = |&unit: &u32| char::from_u32(unit).is_some_and(char::is_alphabetic);
    is_other(mark.start)
        || is_other(mark.end - 1)
        || !characters.units()[mark.start..mark.end].iter().all(is_letter)
            && (mark.start + 1..mark.end - 1).any(is_other)
}

/// Reads the words of a line from left to right.
pub(crate) struct LineReader<'a, C> {
    characters: &'a C,
    /// The level of the last letters that are neither raised nor lowered.
    base: Option<Level>,
    /// The text of the line so far, at least its last words.
    before: String,
}

impl<'a, C: Characters> LineReader<'a, C> {
    pub(crate) fn new(characters: &'a C) -> LineReader<'a, C> {
        LineReader { characters, base: None, before: String::new() }
    }

    /// Return the text of a word, and whether it is printed at the end of the word before, which is `gap` points away:
    /// it is a superscript, or PDFium has divided the word.
    pub(crate) fn read(&mut self, mark: &Mark, gap: f64, clean: impl Fn(&[u32]) -> String) -> (String, bool) {
        let units = &self.characters.units()[mark.start..mark.end];
        let Some(base) = self.shifted_base(mark) else {
            let text = clean(units);
            if !mark.is_glued {
                self.before.push(' ');
            }
            self.before.push_str(&text);
            return (text, mark.is_glued);
        };
        let mut base = base;
        let levels: Vec<Level> = (mark.start..mark.end).map(|at| Level::of(self.characters, at)).collect();
        let shifts: Vec<Shift> = levels
            .iter()
            .map(|&level| {
                let shift = level.shift(base);
                if shift == Shift::None {
                    base = level;
                }
                shift
            })
            .collect();
        self.base = Some(base);
        let is_whole = shifts.iter().all(|&shift| shift == Shift::Raised);
        // A word that begins left of the end of the word before is a cell above that one, not its superscript.
        let is_near = gap.abs() < NEAR * base.size;
        let is_close = !self.before.is_empty() && is_near && units.len() <= APART;
        let is_attached = mark.is_glued || is_whole && is_close;
        if !is_attached {
            self.before.push(' ');
        }
        let begin = self.before.len();
        let mut at = 0;
        let runs = shifts.iter().zip(&levels).collect::<Vec<_>>();
        for run in runs.chunk_by(|a, b| a.0 == b.0 && (a.0 != &Shift::None || a.1.shift(*b.1) == Shift::None))
        {
            let text = clean(&units[at..at + run.len()]);
            at += run.len();
            if at == run.len() && self.is_note_number(&levels[..at], &levels[at..], &text) {
                self.before.push_str(&text);
                self.before.push(' ');
                continue;
            }
            let next = next_visible(self.characters.units(), mark.start + at);
            let is_numerator = next.is_some_and(|at| matches!(self.characters.units()[at], 0x2f | 0x2044));
            if *run[0].0 == Shift::Raised
                && is_numerator
                && self.before.ends_with(|c: char| c.is_ascii_digit())
            {
                self.before.push(' '); // 2 1/2
            } else if is_attached || begin < self.before.len() {
                let written = self.written(*run[0].0, &text);
                self.before.push_str(&written);
                continue;
            }
            self.before.push_str(&text);
        }
        let text = self.before[begin..].to_owned();
        if self.before.len() > LONGEST_LINE {
            self.before = text.clone();
        }
        (text, is_attached)
    }

    /// Return whether a word begins with the number of a note, raised before the text of the note.
    fn is_note_number(&self, first: &[Level], rest: &[Level], text: &str) -> bool {
        self.before.trim().is_empty()
            && rest.len() > 2
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && first[0].shift(rest[0]) == Shift::Raised
    }

    /// Return the level of the line before a word if characters of the word are at another one.
    fn shifted_base(&mut self, mark: &Mark) -> Option<Level> {
        let base = *self.base.get_or_insert_with(|| Level::of(self.characters, mark.start));
        has_other_level(self.characters, mark, base).then_some(base)
    }

    fn written(&self, shift: Shift, text: &str) -> String {
        let length = text.chars().count();
        let is_fraction = self.before.ends_with(['/', '⁄']);
        let is_logo = text == "A" && self.before.ends_with('L'); // LaTeX
        match shift {
            Shift::Raised if length <= LONGEST[0] && !is_logo => raised(&self.before, text, false),
            Shift::Lowered if length <= LONGEST[1] && !is_fraction => lowered(&self.before, text),
            _ => text.to_owned(),
        }
    }
}

/// Return the first of a few characters at or after `from` that is not a space.
pub(crate) fn next_visible(units: &[u32], from: usize) -> Option<usize> {
    (from..units.len().min(from + 4)).find(|&at| !char::from_u32(units[at]).is_some_and(is_space))
}
