//! The lines of a page from the characters that PDFium found, with two boxes for each word.
//!
//! PDFium joins all text at one height into a line, across columns too. A line is split at wide gaps between words.

use crate::accents::Accented;
use crate::characters::{is_blank, maximum, minimum, sample, Characters, Mark, View, RIM};
use crate::direction::is_rtl_letter;
use crate::grids::{grids_of, Grid};
use crate::levels::{goes_on, is_level, next_visible, LineReader};
use crate::page::{smaller, split_words, Line, Page, State, Word, FARTHEST};
use crate::unmapped::is_unmapped;
use crate::unseen::Unseen;
use ketrag_text::classes::{is_letter, is_space};

/// Words of letters of one width, as in program code, are this many letters apart at most.
const WIDE: f64 = 1.2;
/// A gap of this many letter heights may separate columns or cells.
const GAP: f64 = 0.9;
/// Words closer than this many letter heights are one word.
const TOUCHING: f64 = 0.07;
/// Parts of a word that PDFium has put on two lines are closer than this many letter heights.
const GLUED: f64 = 0.12;
/// Words further apart than this many letter heights may be cells.
const SPLIT: f64 = 0.5;
/// Size in points that the letters of an added text have at most: fields are higher than their letters.
const USUAL: f64 = 12.0;
const TURNS: usize = 12;

/// Left, top, right and bottom of a text in coordinates of the file, and the text.
pub type PlacedText = (f64, f64, f64, f64, String);

/// Return the lines of a page in drawing order, and then the lines of `texts`. `width` and `height` are those of the
/// displayed page, which is rotated by `rotation` degrees.
pub fn lines_of(
    characters: &impl Characters,
    width: f64,
    height: f64,
    rotation: u16,
    texts: &[PlacedText],
) -> Page {
    let characters = &Accented::new(characters);
    let units = characters.units();
    let mut page = Page { width, height, ..Page::default() };
    let state = || if characters.has_picture() { State::Scanned } else { State::Text };
    if units.is_empty() && texts.is_empty() {
        return Page { state: state(), ..page };
    }
    let own = if matches!(rotation, 90 | 270) { (height, width) } else { (width, height) };
    page.turned = turn(characters, rotation);
    if matches!(page.turned, 90 | 270) {
        (page.width, page.height) = (height, width);
    }
    if is_unmapped(characters) {
        return Page { state: State::Unmapped, ..page };
    }
    let view = View { rotation: (rotation + page.turned) % 360, width: own.0, height: own.1 };
    let unseen = Unseen::new(characters, view);
    page.grids = grids_of(characters.paths().into_iter().map(|path| view.place(path.map(f64::from))));
    page.lines = read_lines(characters, view, &page.grids, &unseen);
    page.unseen = unseen.count.get();
    page.lines.extend(texts.iter().map(|text| placed_line(text, view)));
    for line in &mut page.lines {
        line.clamp();
    }
    if page.lines.is_empty() {
        page.state = state();
    }
    page
}

fn placed_line((left, top, right, bottom, text): &PlacedText, view: View) -> Line {
    let [left, top, right, bottom] = view.place([*left, *top, *right, *bottom]);
    let word = Word { left, top, right, bottom, text: text.clone() };
    Line::of_words(vec![word], smaller(bottom - top, USUAL), false)
}

/// Return by how many degrees the page must be turned clockwise for most of the text to be upright. The angles of
/// characters are clockwise too: text that runs upwards has 270.
fn turn(characters: &impl Characters, rotation: u16) -> u16 {
    let angles: Vec<f64> = sample(characters.units(), TURNS)
        .map(|at| f64::from(characters.angle(at)).to_degrees().round_ties_even())
        .map(|angle| (-angle - f64::from(rotation)).rem_euclid(360.0))
        .collect();
    let is_most = |turned: u16| {
        let same = angles.iter().filter(|&&angle| (angle - f64::from(turned)).abs() <= 1.0).count();
        same as f64 > 0.7 * angles.len() as f64
    };
    [90, 180, 270].into_iter().find(|&turned| is_most(turned)).unwrap_or(0)
}

/// PDFium's marks of a word that is cut by the end of a line.
fn is_cut(unit: u32) -> bool {
    matches!(unit, 0xfffe | 2)
}

fn is_break(unit: u32) -> bool {
    matches!(unit, 0xa | 0xd) || is_cut(unit)
}

fn read_lines(characters: &impl Characters, view: View, grids: &[Grid], unseen: &Unseen) -> Vec<Line> {
    let units = characters.units();
    let mut lines = Vec::new();
    let mut marks: Vec<Mark> = Vec::new();
    let mut start = 0;
    while start < units.len() {
        let end = end_of_line(characters, start);
        let soft = units.get(end).is_some_and(|&unit| is_cut(unit));
        mark_words(characters, view, start..end, &mut marks);
        let count = marks.len();
        marks.retain(|mark| unseen.is_seen(characters, mark.start, mark.bounds));
        if marks.len() < count && !marks.is_empty() {
            split_words(read_words(characters, &marks), soft, 0.0, &mut lines);
        } else if !marks.is_empty() {
            let mut runs = marks.chunk_by(|a, b| !is_apart(a, b)).peekable();
            let mut begin = start;
            while let Some(run) = runs.next() {
                let is_last = runs.peek().is_none();
                let stop = if is_last { end } else { run[run.len() - 1].end };
                read_line(characters, view, grids, (begin, stop, soft && is_last), run, &mut lines);
                begin = runs.peek().map_or(end, |next| next[0].start);
            }
        }
        start = end + 1;
    }
    lines
}

/// Return the end of the line that begins at `start`. PDFium also begins a line after a superscript.
fn end_of_line(characters: &impl Characters, start: usize) -> usize {
    let units = characters.units();
    let next_break =
        |from: usize| units[from..].iter().position(|&unit| is_break(unit)).map_or(units.len(), |n| from + n);
    let mut end = next_break(start);
    while end > start && end < units.len() && !is_cut(units[end]) && !is_blank(units[end - 1]) {
        match next_visible(units, end) {
            Some(next) if !is_break(units[next]) && goes_on(characters, end - 1, next) => {
                end = next_break(next);
            }
            _ => break,
        }
    }
    end
}

/// Return whether the second of two words is not at the height of the first, although PDFium has them on one line: the
/// values of a form, each of which is drawn apart. Words that are written up or down the page are taller than wide.
fn is_apart(first: &Mark, second: &Mark) -> bool {
    let is_level = |mark: &Mark| {
        let [left, top, right, bottom] = mark.bounds;
        let share = if mark.end - mark.start > 1 { 0.9 } else { 0.4 };
        right - left > share * (bottom - top)
    };
    (second.bounds[1] > first.bounds[3] || second.bounds[3] < first.bounds[1])
        && is_level(first)
        && is_level(second)
}

fn mark_words(
    characters: &impl Characters,
    view: View,
    range: std::ops::Range<usize>,
    marks: &mut Vec<Mark>,
) {
    marks.clear();
    let units = characters.units();
    let mut at = range.start;
    while at < range.end {
        if is_blank(units[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < range.end && !is_blank(units[at]) {
            at += 1;
        }
        let bounds = view.word(characters.bounds(start), characters.bounds(at - 1));
        let is_glued = marks.last().is_some_and(|last| {
            units[last.end..start].iter().all(|&unit| is_break(unit))
                && (bounds[0] - last.bounds[2]).abs() < GLUED * (last.bounds[3] - last.bounds[1])
        });
        marks.push(Mark { start, end: at, bounds, is_glued });
    }
}

/// Add the parts of one line.
fn read_line(
    characters: &impl Characters,
    view: View,
    grids: &[Grid],
    (start, end, soft): (usize, usize, bool),
    marks: &[Mark],
    lines: &mut Vec<Line>,
) {
    let units = characters.units();
    let matrix = characters.matrix(start).map(f64::from);
    let scale = matrix[2].hypot(matrix[3]);
    let size = characters.font_size(start) * if scale > 0.0 && scale < FARTHEST { scale } else { 1.0 };
    let bounds = marks[1..].iter().fold(marks[0].bounds, |own, mark| {
        let [left, top, right, bottom] = mark.bounds;
        [minimum(own[0], left), minimum(own[1], top), maximum(own[2], right), maximum(own[3], bottom)]
    });
    let middle = (bounds[1] + bounds[3]) / 2.0;
    let is_outside = |grid: &Grid| middle < grid.ys[0] || middle > grid.ys[grid.ys.len() - 1];
    let is_turned = bounds[3] - bounds[1] > 2.0 * (bounds[2] - bounds[0]) && end - start > 2;
    if !is_turned && is_running(marks, size) && grids.iter().all(is_outside) {
        let text = if is_level(characters, marks) {
            clean(&units[start..end])
        } else {
            Line::of_words(read_words(characters, marks), size, soft).text
        };
        if !text.is_empty() {
            lines.push(Line::new(bounds, size, text, soft));
        }
        return;
    }
    let words = read_words(characters, marks);
    if words.is_empty() {
        return;
    }
    if is_turned {
        let angle = matrix[2].atan2(matrix[0]).to_degrees() - f64::from(view.rotation);
        let mut line = Line::of_words(words, size, soft);
        line.upright = (angle + 6.0).rem_euclid(360.0) < 12.0;
        lines.push(line);
    } else {
        split_words(words, soft, size, lines);
    }
}

/// Return whether the words of a line are at the distances of running text.
fn is_running(marks: &[Mark], size: f64) -> bool {
    let width: f64 = marks.iter().map(|mark| mark.bounds[2] - mark.bounds[0]).sum();
    let count: usize = marks.iter().map(|mark| mark.end - mark.start).sum();
    let limit = maximum(SPLIT * size, minimum(WIDE * (width / count as f64), GAP * size));
    size > 1.0
        && SPLIT * size <= limit
        && marks.windows(2).all(|pair| {
            let gap = pair[1].bounds[0] - pair[0].bounds[2];
            gap >= TOUCHING * size && gap <= limit
        })
}

/// Return the words of a line; the parts of a word that PDFium has torn are joined.
fn read_words(characters: &impl Characters, marks: &[Mark]) -> Vec<Word> {
    let units = characters.units();
    let mut reader = (!is_level(characters, marks)).then(|| LineReader::new(characters));
    let mut found: Vec<Word> = Vec::with_capacity(marks.len());
    for mark in marks {
        let [left, top, right, bottom] = mark.bounds;
        let gap = found.last().map_or(f64::INFINITY, |last| left - last.right);
        let (text, is_attached) = match &mut reader {
            Some(reader) => reader.read(mark, gap, clean),
            None => (clean(&units[mark.start..mark.end]), false),
        };
        if text.is_empty() {
            continue;
        }
        let height = (bottom - top) / (1.0 - 2.0 * RIM);
        match found.last_mut() {
            Some(last) if is_torn_rtl(last, right, height, &text) => {
                last.left = left;
                last.top = smaller(last.top, top);
                last.bottom = crate::page::larger(last.bottom, bottom);
                last.text.push_str(&text);
            }
            Some(last) if is_attached || is_torn(last, left, height, &text) => {
                last.top = smaller(last.top, top);
                last.right = right;
                last.bottom = crate::page::larger(last.bottom, bottom);
                last.text.push_str(&text);
            }
            _ => found.push(Word { left, top, right, bottom, text }),
        }
    }
    found
}

/// Return whether PDFium put a space between two parts of a word, which touch each other.
fn is_torn(last: &Word, left: f64, height: f64, text: &str) -> bool {
    let gap = left - last.right;
    -TOUCHING * height < gap
        && gap < TOUCHING * height
        && last.text.chars().next_back().is_some_and(is_letter)
        && text.chars().next().is_some_and(char::is_lowercase)
}

/// The same of a word that is written from right to left, and goes on to the left.
fn is_torn_rtl(last: &Word, right: f64, height: f64, text: &str) -> bool {
    let gap = last.left - right;
    let (before, after) = (last.text.chars().next_back(), text.chars().next());
    -TOUCHING * height < gap
        && gap < TOUCHING * height
        && before.is_some_and(is_rtl_letter)
        && after.is_some_and(is_rtl_letter)
}

/// Return code units as text: with surrogate pairs joined and lone surrogates dropped, ligatures as letters, and
/// single spaces.
fn clean(units: &[u32]) -> String {
    let mut found = String::with_capacity(units.len());
    let mut is_apart = false;
    let mut at = 0;
    while at < units.len() {
        let (c, next) = match (units[at], units.get(at + 1)) {
            (high @ 0xd800..=0xdbff, Some(&low @ 0xdc00..=0xdfff)) => {
                (char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)), at + 2)
            }
            (unit, _) => (char::from_u32(unit), at + 1),
        };
        at = next;
        let Some(c) = c.filter(|&c| c != '\0' && c != '\u{feff}') else { continue };
        if is_space(c) {
            is_apart = !found.is_empty();
            continue;
        }
        if is_apart {
            found.push(' ');
            is_apart = false;
        }
        match ligature(c) {
            Some(letters) => found.push_str(letters),
            None => found.push(c),
        }
    }
    found
}

fn ligature(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text in letters 6 points wide and 10 high, on lines 12 points apart; `~` is a gap of 20 points.
    struct Typed {
        units: Vec<u32>,
        at: Vec<(f32, f32)>,
    }

    fn typed(text: &str) -> Typed {
        let (mut x, mut y) = (0.0, 700.0);
        let mut found = Typed { units: Vec::new(), at: Vec::new() };
        for unit in text.encode_utf16() {
            found.units.push(if unit == u16::from(b'~') { 32 } else { u32::from(unit) });
            found.at.push((x, y));
            x += if unit == u16::from(b'~') { 20.0 } else { 6.0 };
            if unit == 10 {
                (x, y) = (0.0, y - 12.0);
            }
        }
        found
    }

    impl Characters for Typed {
        fn units(&self) -> &[u32] {
            &self.units
        }
        fn bounds(&self, at: usize) -> [f32; 4] {
            let (x, y) = self.at[at];
            [x, y + 10.0, x + 6.0, y]
        }
        fn matrix(&self, _: usize) -> [f32; 6] {
            [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
        }
        fn font_size(&self, _: usize) -> f64 {
            10.0
        }
        fn origin(&self, at: usize) -> [f64; 2] {
            [f64::from(self.at[at].0), f64::from(self.at[at].1)]
        }
        fn angle(&self, _: usize) -> f32 {
            0.0
        }
        fn is_unmapped(&self, at: usize) -> bool {
            self.units[at] == u32::from(b'?')
        }
        fn paths(&self) -> Vec<[f32; 4]> {
            Vec::new()
        }
        fn has_picture(&self) -> bool {
            true
        }
        fn backgrounds(&self) -> Vec<[f32; 4]> {
            Vec::new()
        }
        fn is_white(&self, _: usize) -> bool {
            false
        }
    }

    fn texts(text: &str) -> Vec<(String, usize, bool)> {
        let page = lines_of(&typed(text), 600.0, 800.0, 0, &[]);
        page.lines.into_iter().map(|line| (line.text, line.words.len(), line.soft)).collect()
    }

    #[test]
    fn running_text_has_no_words_and_cells_have() {
        let found = texts("the ice\nCash~12\nwell\u{fffe}known");
        let expected = [
            ("the ice", 0, false),
            ("Cash", 1, false),
            ("12", 1, false),
            ("well", 0, true),
            ("known", 0, false),
        ];
        assert_eq!(found, expected.map(|(text, words, soft)| (text.to_string(), words, soft)));
    }

    #[test]
    fn words_from_right_to_left_are_in_reading_order() {
        // Each character is to the right of the one before, with its mark at the same place.
        let mut page = typed("ة\u{64b}نيفس");
        page.at[1] = page.at[0];
        let lines = lines_of(&page, 600.0, 800.0, 0, &[]).lines;
        assert_eq!(lines[0].text, "سفينة\u{64b}");
        // The second part of the word touches the first one on the left.
        let mut page = typed("كار اب");
        for (at, x) in [100.0, 106.0, 112.0, 96.0, 94.0, 88.0].into_iter().enumerate() {
            page.at[at].0 = x;
        }
        assert_eq!(lines_of(&page, 600.0, 800.0, 0, &[]).lines[0].text, "راكاب");
    }

    #[test]
    fn characters_become_text() {
        let units: Vec<u32> = "\u{fb01}n\u{a0} \u{1f600}\0!".encode_utf16().map(u32::from).collect();
        assert_eq!(clean(&units), "fin \u{1f600}!");
        assert_eq!(clean(&[0xd800, 97, 0xdc00]), "a");
    }

    #[test]
    fn lines_are_on_the_page_whatever_its_matrices_are() {
        let text = "the ice\n".repeat(9) + "Cash~12";
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -3e9] {
            let mut characters = typed(&text);
            let first = text.len() - "Cash~12".len();
            characters.at[first..].fill((number, 300.0));
            for at in [0, 8, 16] {
                characters.at[at].1 = number;
            }
            let page = lines_of(&characters, 600.0, 800.0, 0, &[]);
            // A line outside of the page is not seen.
            assert!(page.lines.len() + page.unseen as usize >= 10);
            for line in &page.lines {
                let numbers = [line.left, line.top, line.right, line.bottom, line.size];
                assert!(numbers.iter().all(|one| one.abs() <= FARTHEST), "{number}: {numbers:?}");
                assert!(line.left <= line.right && line.top <= line.bottom, "{number}: {numbers:?}");
            }
            assert!(!crate::columns::rows_of(&page).is_empty());
        }
    }

    #[test]
    fn pages_without_text_or_unicode() {
        assert_eq!(lines_of(&typed(""), 600.0, 800.0, 0, &[]).state, State::Scanned);
        assert_eq!(lines_of(&typed(" \n "), 600.0, 800.0, 0, &[]).state, State::Scanned);
        assert_eq!(lines_of(&typed(&"?".repeat(80)), 600.0, 800.0, 0, &[]).state, State::Unmapped);
        assert_eq!(lines_of(&typed(&"\u{e000}".repeat(80)), 600.0, 800.0, 0, &[]).state, State::Unmapped);
    }
}
