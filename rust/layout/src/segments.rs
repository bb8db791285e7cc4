//! The cells of lines at one height: words are joined at small gaps, currency signs with the value after them.

use crate::direction::join;
use crate::matching::{is_currency, is_digit, is_leader, is_number};
use crate::page::{larger, Line};
use std::borrow::Cow;

/// Words further apart than this many letter heights may be cells.
const SPLIT: f64 = 0.5;
/// Words of letters of one width, as in program code, are this many letters apart at least.
const WIDE: f64 = 1.2;
const TRAILING: [&str; 8] = [")", "%", ")%", "%)", "*", "**", "***", "pts"];

/// A word of a cell, with where it begins and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct CellWord<'a> {
    pub left: f64,
    pub right: f64,
    pub text: Cow<'a, str>,
}

/// Words that belong to one cell. `number`: it is a number or stands for one.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    pub left: f64,
    pub right: f64,
    pub words: Vec<CellWord<'a>>,
    pub number: bool,
}

impl<'a> Segment<'a> {
    /// Return a cell; `number` is found out.
    pub fn new(left: f64, right: f64, words: Vec<CellWord<'a>>) -> Segment<'a> {
        let mut found = Segment { left, right, words, number: false };
        found.number = found.is_number();
        found
    }

    fn is_number(&self) -> bool {
        self.words.len() < 5 && self.words.iter().all(|word| is_number(&word.text))
    }

    /// Return the text of the cell.
    pub fn text(&self) -> String {
        join(&self.words.iter().map(|word| word.text.as_ref()).collect::<Vec<&str>>())
    }

    /// Return the number of characters of the text.
    pub fn length(&self) -> usize {
        self.words.iter().map(|word| word.text.chars().count()).sum::<usize>() + self.words.len() - 1
    }

    fn ends_with_digit(&self) -> bool {
        self.words.last().is_some_and(|word| word.text.chars().next_back().is_some_and(is_digit))
    }
}

/// Return the words of a line, and the mean width of its letters.
fn words_of(line: &Line) -> (Vec<CellWord<'_>>, f64) {
    if line.words.is_empty() {
        let word = CellWord { left: line.left, right: line.right, text: Cow::Borrowed(&line.text) };
        return (vec![word], (line.right - line.left) / line.length as f64);
    }
    let words: Vec<CellWord<'_>> = line
        .words
        .iter()
        .map(|word| CellWord { left: word.left, right: word.right, text: Cow::Borrowed(&word.text) })
        .collect();
    let width: f64 = words.iter().map(|word| word.right - word.left).sum();
    let letters: usize = words.iter().map(|word| word.text.chars().count()).sum();
    (words, width / letters as f64)
}

/// Return the cells of lines at one height, from left to right.
pub fn segments_of<'a>(group: &[&'a Line]) -> Vec<Segment<'a>> {
    let leaders = group.iter().flat_map(|line| &line.words).filter(|word| is_leader(&word.text)).count();
    let mut row = Row { found: Vec::new(), pending: Vec::new(), begins: true };
    for line in group {
        let (words, letters) = words_of(line);
        let limit = larger(SPLIT * larger(line.size, 1.0), WIDE * letters);
        row.begins = true;
        for word in words {
            if leaders > 2 && is_leader(&word.text) {
                row.begins = true;
            } else {
                row.add(word, limit);
            }
        }
    }
    if let (Some(first), Some(last)) = (row.pending.first(), row.pending.last()) {
        row.found.push(Segment { left: first.left, right: last.right, words: row.pending, number: false });
    }
    for segment in &mut row.found {
        segment.number = segment.is_number();
    }
    row.found
}

/// The cells so far, currency signs that wait for a value, and whether the next word begins a cell.
struct Row<'a> {
    found: Vec<Segment<'a>>,
    pending: Vec<CellWord<'a>>,
    begins: bool,
}

impl<'a> Row<'a> {
    fn add(&mut self, word: CellWord<'a>, limit: f64) {
        if is_currency(&word.text) {
            self.pending.push(word);
            self.begins = true;
            return;
        }
        if !self.pending.is_empty() {
            self.add_value(word);
            self.begins = false;
            return;
        }
        if let Some(last) = self.found.last_mut() {
            if TRAILING.contains(&word.text.as_ref()) && last.ends_with_digit() {
                if let Some(number) = last.words.last_mut() {
                    number.text.to_mut().push_str(&word.text);
                }
                return;
            }
            if !self.begins && word.left - last.right <= limit {
                last.right = larger(last.right, word.right);
                last.words.push(word);
                return;
            }
        }
        self.found.push(Segment { left: word.left, right: word.right, words: vec![word], number: false });
        self.begins = false;
    }

    /// Add a word after a currency sign, which belongs to it if it is a value.
    fn add_value(&mut self, word: CellWord<'a>) {
        let pending = std::mem::take(&mut self.pending);
        let (left, right, end) = (pending[0].left, word.right, pending[pending.len() - 1].right);
        let mut sign: String = pending.iter().map(|word| word.text.as_ref()).collect();
        let is_value =
            word.text.starts_with(|c| is_digit(c) || matches!(c, '(' | '-' | '–' | '—' | '−' | '.'));
        let words = if is_value {
            sign.push_str(&word.text);
            vec![CellWord { left, right, text: Cow::Owned(sign) }]
        } else {
            vec![CellWord { left, right: end, text: Cow::Owned(sign) }, word]
        };
        self.found.push(Segment { left, right, words, number: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::word;

    fn texts(words: &[(f64, f64, &str)]) -> Vec<(String, bool)> {
        let words = words.iter().map(|&(left, right, text)| word(left, right, 0.0, text)).collect();
        let line = Line::of_words(words, 10.0, false);
        segments_of(&[&line]).iter().map(|own| (own.text(), own.number)).collect()
    }

    fn owned(cells: &[(&str, bool)]) -> Vec<(String, bool)> {
        cells.iter().map(|&(text, number)| (text.to_string(), number)).collect()
    }

    #[test]
    fn a_sign_belongs_to_the_value_after_it() {
        let found =
            texts(&[(0.0, 20.0, "Cash"), (60.0, 66.0, "$"), (90.0, 110.0, "(12"), (112.0, 118.0, ")%")]);
        assert_eq!(found, owned(&[("Cash", false), ("$(12)%", true)]));
        assert_eq!(texts(&[(0.0, 6.0, "$"), (20.0, 50.0, "millions")]), owned(&[("$ millions", false)]));
        assert_eq!(texts(&[(0.0, 20.0, "Cash"), (60.0, 66.0, "$")]), owned(&[("Cash", false), ("$", true)]));
    }

    #[test]
    fn leaders_end_a_cell() {
        let found = texts(&[
            (0.0, 20.0, "Ice"),
            (22.0, 24.0, "."),
            (26.0, 28.0, "."),
            (30.0, 32.0, "."),
            (34.0, 40.0, "5"),
        ]);
        assert_eq!(found, owned(&[("Ice", false), ("5", true)]));
    }
}
