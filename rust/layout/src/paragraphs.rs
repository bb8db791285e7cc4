//! Rows become paragraphs: hyphenated words are rejoined, table rows stay lines.

use crate::columns::TextRow;
use crate::matching::{is_item, is_letter_of_word};
use crate::page::{larger, least, median, most, smaller};
use ketrag_text::classes::{is_letter, is_word_re};
use ketrag_text::folding::is_unspaced;
use std::collections::HashSet;

/// Characters at the end of a line that decide how the next line is appended.
const LONGEST: usize = 60;

/// A paragraph with its bounding box. `open`: it may go on in the next column; `soft`: it ends inside a word.
#[derive(Clone, Debug, PartialEq)]
pub struct Paragraph {
    pub text: String,
    pub size: f64,
    pub bounds: [f64; 4],
    pub column: usize,
    pub rows: usize,
    pub open: bool,
    pub soft: bool,
}

/// Return whether a character is in a script without spaces, or one of its punctuation marks.
fn is_unspaced_text(c: char) -> bool {
    is_unspaced(c) || matches!(c, '\u{3001}'..='\u{303f}' | '\u{ff01}'..='\u{ff65}')
}

/// Words with a hyphen inside, in lower case: their hyphens are kept at the ends of lines, too.
#[derive(Debug, Default)]
pub struct Compounds(HashSet<String>);

impl Compounds {
    /// Add the hyphenated words of a line.
    pub fn add(&mut self, text: &str) {
        let mut begin = 0;
        for (at, hyphen) in text.match_indices(['-', '\u{2010}']) {
            if at < begin {
                continue;
            }
            let (before, after) = (&text[begin..at], &text[at + hyphen.len()..]);
            let first = last_word(before, usize::MAX);
            let second = first_word(after);
            // A word that the match before has used begins no other.
            let is_used = begin > 0 && first.len() == before.len();
            if first.chars().nth(1).is_some() && second.chars().nth(1).is_some() && !is_used {
                self.0.insert(format!("{first}-{second}").to_lowercase().replace('\u{2010}', "-"));
                begin = at + hyphen.len() + second.len();
            }
        }
    }

    /// Join two lines. A hyphen at the end of the first is dropped unless it belongs to the word.
    pub fn join(&self, text: &mut String, more: &str, soft: bool) {
        if more.is_empty() {
            return;
        }
        if soft {
            return self.join_word(text, more);
        }
        let mut ends = text.chars().rev();
        let is_hyphen = matches!(ends.next(), Some('-' | '\u{2010}' | '\u{ad}'));
        let is_inside = ends.clone().next().is_some_and(is_word_re) && !text.ends_with('\u{ad}');
        if is_hyphen && is_inside && stays_hyphenated(more) {
            return text.push_str(more); // 2019-2021, Meyer-Lund
        }
        if is_hyphen && ends.next().is_some_and(is_letter) && more.starts_with(char::is_lowercase) {
            text.pop();
            return self.join_word(text, more);
        }
        // Scripts without spaces between words have none at the end of a line.
        if !(text.ends_with(is_unspaced_text) && more.starts_with(is_unspaced_text)) {
            text.push(' ');
        }
        text.push_str(more);
    }

    fn join_word(&self, text: &mut String, more: &str) {
        let (first, second) = (last_word(text, LONGEST), first_word(more));
        let is_compound = !first.is_empty()
            && !second.is_empty()
            && (self.0.contains(&format!("{first}-{second}").to_lowercase()) || has_hyphen(first, second));
        if is_compound || stays_hyphenated(more) {
            text.push('-');
        }
        text.push_str(more);
    }
}

/// Return whether a hyphen before a text belongs to the word: a number or a name follows.
fn stays_hyphenated(more: &str) -> bool {
    more.starts_with(|c: char| c.is_numeric() || c.is_uppercase())
}

/// First parts of words that are written with a hyphen, and the second parts with which they are not.
const FIRST: [&str; 2] = ["self", "well"];
const NOT_SECOND: [&str; 12] =
    ["ish", "ishly", "ishness", "less", "lessly", "same", "hood", "ness", "ing", "come", "ington", "s"];
/// Second parts of words that are written with a hyphen, and the first parts with which they are not.
const SECOND: [&str; 7] = ["based", "related", "driven", "oriented", "known", "friendly", "specific"];
const NOT_FIRST: [&str; 8] = ["un", "inter", "cor", "mis", "de", "non", "re", "a"];

/// Return whether a word that is nowhere else in the document is written with a hyphen: `self-service`.
fn has_hyphen(first: &str, second: &str) -> bool {
    let (first, second) = (first.to_lowercase(), second.to_lowercase());
    FIRST.contains(&first.as_str()) && !NOT_SECOND.contains(&second.as_str())
        || SECOND.contains(&second.as_str())
            && !NOT_FIRST.contains(&first.as_str())
            && first.chars().count() > 2
}

/// Return the letters at the end of a text, at most `longest`.
fn last_word(text: &str, longest: usize) -> &str {
    let letters = text.char_indices().rev().take(longest).take_while(|&(_, c)| is_letter_of_word(c));
    letters.last().map_or("", |(at, _)| &text[at..])
}

fn first_word(text: &str) -> &str {
    &text[..text.find(|c| !is_letter_of_word(c)).unwrap_or(text.len())]
}

/// The left and the right edge of a column, and the distance of its rows.
#[derive(Clone, Copy)]
struct Edges {
    left: f64,
    right: f64,
    step: f64,
}

/// Return the paragraphs of the rows of a page.
pub fn paragraphs_of(rows: &[TextRow], compounds: &Compounds) -> Vec<Paragraph> {
    let edges = edges_of(rows);
    let mut found = Vec::new();
    let mut begin = 0;
    for at in 1..=rows.len() {
        if at == rows.len() || begins(&rows[at - 1], &rows[at], edges[rows[at].column]) {
            found.push(make_paragraph(&rows[begin..at], compounds));
            begin = at;
        }
    }
    found
}

/// Return the edges of each column.
fn edges_of(rows: &[TextRow]) -> Vec<Edges> {
    let count = rows.iter().map(|row| row.column + 1).max().unwrap_or(0);
    let mut columns: Vec<Vec<&TextRow>> = vec![Vec::new(); count];
    for row in rows {
        columns[row.column].push(row);
    }
    let edges = columns.iter().map(|own| {
        let steps = own.windows(2).filter(|pair| pair[1].top() > pair[0].top());
        Edges {
            left: least(own.iter().map(|row| row.left())),
            right: most(own.iter().map(|row| row.right())),
            step: median(steps.map(|pair| pair[1].top() - pair[0].top()).collect()),
        }
    });
    edges.collect()
}

fn make_paragraph(rows: &[TextRow], compounds: &Compounds) -> Paragraph {
    let (first, last) = (&rows[0], &rows[rows.len() - 1]);
    let bounds = [
        least(rows.iter().map(|row| row.bounds[0])),
        least(rows.iter().map(|row| row.bounds[1])),
        most(rows.iter().map(|row| row.bounds[2])),
        most(rows.iter().map(|row| row.bounds[3])),
    ];
    let mut text = first.text.clone();
    for pair in rows.windows(2) {
        let (before, row) = (&pair[0], &pair[1]);
        if row.cells > 1 || before.cells > 1 || row.table > 0 {
            text.push('\n');
            text.push_str(&row.text);
        } else {
            compounds.join(&mut text, &row.text, before.soft);
        }
    }
    let is_open = |c: char| is_word_re(c) || matches!(c, ',' | ';' | '-' | '(');
    let open = text.ends_with(is_open) && !text.contains('\t');
    Paragraph {
        size: first.size,
        bounds,
        column: first.column,
        rows: rows.len(),
        open,
        soft: last.soft,
        text,
    }
}

/// Return whether a row begins a paragraph.
fn begins(last: &TextRow, row: &TextRow, Edges { left, right, step }: Edges) -> bool {
    if (row.table > 0 || last.table > 0) && row.column == last.column {
        return row.table != last.table;
    }
    if row.column != last.column || (row.size - last.size).abs() > 0.15 * larger(row.size, last.size) {
        return true;
    }
    let down = row.top() - last.top();
    if down > smaller(1.4 * step + 1.0, 3.0 * larger(row.size, 4.0)) || down < -step {
        return true;
    }
    if row.cells > 1 && last.cells > 1 {
        return false;
    }
    if (row.cells > 1) != (last.cells > 1) || is_item(&row.text) {
        return true;
    }
    let is_end = last.text.is_empty() || last.text.ends_with(['.', '!', '?', ':', '”', '"']);
    let is_short = last.right() < right - 0.15 * (right - left) || row.left() > last.left() + 0.8 * row.size;
    if is_end && !last.soft && is_short {
        return true;
    }
    // Short lines below each other (an address, a form) stay separate.
    last.right() < left + 0.5 * (right - left) && row.text.starts_with(char::is_uppercase) && !last.soft
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(text: &str, more: &str, soft: bool) -> String {
        let mut compounds = Compounds::default();
        compounds.add("a well-known ship, well\u{2010}built-up");
        let mut text = text.to_string();
        compounds.join(&mut text, more, soft);
        text
    }

    #[test]
    fn hyphens_that_belong_to_a_word_stay() {
        assert_eq!(join("the well-", "known", false), "the well-known");
        assert_eq!(join("the Well", "built", true), "the Well-built");
        assert_eq!(join("the built-", "up", false), "the builtup");
        assert_eq!(join("the ex-", "ample", false), "the example");
        assert_eq!(join("the Meyer-", "Lund", false), "the Meyer-Lund");
        assert_eq!(join("in 2019-", "2021", false), "in 2019-2021");
        assert_eq!(join("the AB", "12", true), "the AB-12");
        assert_eq!(join("the self", "service", true), "the self-service");
        assert_eq!(join("the self", "ish", true), "the selfish");
        assert_eq!(join("the soft", "ware", true), "the software");
        assert_eq!(join("so -", "Then", false), "so - Then");
        assert_eq!(join("5-", "ample", false), "5- ample");
        assert_eq!(join("the ice", "", false), "the ice");
    }

    #[test]
    fn compounds_need_letters_on_both_sides() {
        let mut compounds = Compounds::default();
        compounds.add("a-bc de-fg-hi j-k 12-ab x2-ab Lm-No");
        let mut found: Vec<&str> = compounds.0.iter().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["de-fg", "lm-no"]);
    }

    #[test]
    fn many_rows_are_one_paragraph_in_linear_time() {
        let rows: Vec<TextRow> = (0..100_000)
            .map(|at| {
                let top = 12.0 * f64::from(at);
                let bounds = [10.0, top, 90.0, top + 10.0];
                TextRow { bounds, size: 10.0, text: "of ice and snow".into(), cells: 1, ..TextRow::default() }
            })
            .collect();
        let found = paragraphs_of(&rows, &Compounds::default());
        assert_eq!((found.len(), found[0].rows), (1, 100_000));
        assert_eq!(found[0].text.len(), 16 * 100_000 - 1);
    }
}
