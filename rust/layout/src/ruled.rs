//! Tables with drawn rules: the text between rules is a cell.

use crate::direction::join;
use crate::grids::{interval, Grid};
use crate::matching::is_value;
use crate::page::{most, Line, Page, Word};
use crate::stripes::Stripe;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The minimum share of the cells of a table that have text; diagrams have less.
const FILLED: f64 = 0.4;
/// The maximum share of words that cross a rule.
const ACROSS: f64 = 0.03;
/// A cell over several rows with text in more than this share of them has a label for each of them.
const LABELLED: f64 = 0.6;

type Cell = (u32, u32);

/// A table with rules: its box, the rules between its columns, the size of its letters, and its rows.
pub struct RuledTable {
    pub bounds: [f64; 4],
    pub stripes: Vec<Stripe>,
    pub size: f64,
    pub rows: Vec<Vec<String>>,
}

/// The words of a line that are inside of a grid.
struct Inside<'a> {
    line: &'a Line,
    words: Vec<(&'a Word, Cell)>,
}

/// Return the tables of a page's grids, and the lines outside of them.
pub fn ruled_tables(page: &Page) -> (Vec<RuledTable>, Vec<Cow<'_, Line>>) {
    let mut lines: Vec<Cow<'_, Line>> = page.lines.iter().map(Cow::Borrowed).collect();
    let mut found = Vec::new();
    for grid in &page.grids {
        let Some(table) = read_table(grid, &lines) else { continue };
        found.push(table);
        lines = outside(grid, lines);
    }
    (found, lines)
}

fn cell_of(grid: &Grid, word: &Word) -> Option<Cell> {
    grid.cell((word.left + word.right) / 2.0, (word.top + word.bottom) / 2.0)
}

/// Return the lines without the words that are inside of a grid.
fn outside<'a>(grid: &Grid, lines: Vec<Cow<'a, Line>>) -> Vec<Cow<'a, Line>> {
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let rest: Vec<&Word> = line.words.iter().filter(|word| cell_of(grid, word).is_none()).collect();
        if !line.upright || rest.len() == line.words.len() {
            found.push(line);
        } else if !rest.is_empty() {
            let rest = rest.into_iter().cloned().collect();
            found.push(Cow::Owned(Line::of_words(rest, line.size, false)));
        }
    }
    found
}

/// Return a grid as a table, or None if it is not a table with a rule between its rows.
fn read_table(grid: &Grid, lines: &[Cow<'_, Line>]) -> Option<RuledTable> {
    let mut inside: Vec<Inside<'_>> = Vec::new();
    for line in lines.iter().filter(|line| line.upright) {
        let words: Vec<(&Word, Cell)> =
            line.words.iter().filter_map(|word| Some((word, cell_of(grid, word)?))).collect();
        if !words.is_empty() {
            inside.push(Inside { line, words });
        }
    }
    inside.sort_by(|a, b| {
        let key = |own: &Inside<'_>| [own.line.twice_middle() + 0.0, own.line.left + 0.0];
        let (a, b) = (key(a), key(b));
        a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
    });
    let cells = read_cells(grid, &inside);
    let filled: BTreeSet<u32> = cells.keys().map(|&(row, _)| row).collect();
    let columns: BTreeSet<u32> = cells.keys().map(|&(_, column)| column).collect();
    if filled.len() < 2 || columns.len() < 2 {
        return None;
    }
    let every: BTreeSet<Cell> = grid.first.iter().copied().collect();
    let is_single = |row: u32| every.range((row, 0)..(row + 1, 0)).count() < 2;
    if 3 * filled.iter().filter(|&&row| is_single(row)).count() > filled.len() {
        return None; // no rules between its columns
    }
    if (cells.len() as f64) < FILLED * every.len() as f64 || crossing(grid, &inside) > ACROSS {
        return None;
    }
    let is_number = |text: &String| text.split(' ').all(is_value);
    if cells.values().any(|texts| texts.len() > 1 && texts.iter().all(is_number)) {
        return None; // several rows between two rules
    }
    let (height, width) = (grid.ys.len() - 1, grid.xs.len() - 1);
    let text = |row: u32, column: u32| cells.get(&(row, column)).map_or(String::new(), |own| own.join(" "));
    let rows = (0..height as u32)
        .map(|row| (0..width as u32).map(|column| text(row, column)).collect::<Vec<String>>())
        .filter(|row| row.iter().any(|text| !text.is_empty()))
        .collect();
    let bounds = [grid.xs[0], grid.ys[0], grid.xs[width], grid.ys[height]];
    let stripes = grid.xs[1..width].iter().map(|&x| Stripe { left: x, right: x }).collect();
    Some(RuledTable { bounds, stripes, size: most(inside.iter().map(|own| own.line.size)), rows })
}

/// Return the lines of text of each cell; labels without rules between them are in the rows next to them.
fn read_cells(grid: &Grid, inside: &[Inside<'_>]) -> BTreeMap<Cell, Vec<String>> {
    let mut cells: Vec<(Cell, Vec<(u32, String)>)> = Vec::new();
    let mut number: HashMap<Cell, usize> = HashMap::new();
    for own in inside {
        let mut words = own.words.clone();
        words.sort_by(|(a, _), (b, _)| {
            let key = |word: &Word| [word.left, word.top, word.right, word.bottom].map(|value| value + 0.0);
            let (x, y) = (key(a), key(b));
            let order = x.iter().zip(&y).map(|(one, other)| one.total_cmp(other)).find(|order| order.is_ne());
            order.unwrap_or_else(|| a.text.cmp(&b.text))
        });
        let mut parts: Vec<(Cell, Vec<&Word>)> = Vec::new();
        for (word, cell) in words {
            match parts.iter_mut().find(|(other, _)| *other == cell) {
                Some((_, part)) => part.push(word),
                None => parts.push((cell, vec![word])),
            }
        }
        for (cell, part) in parts {
            let middle = (part[0].top + part[0].bottom) / 2.0;
            let row = interval(&grid.ys, middle).map_or(cell.0, |row| row as u32);
            let text = join(&part.iter().map(|word| word.text.as_str()).collect::<Vec<&str>>());
            let at = *number.entry(cell).or_insert_with(|| {
                cells.push((cell, Vec::new()));
                cells.len() - 1
            });
            cells[at].1.push((row, text));
        }
    }
    let mut heights: HashMap<Cell, usize> = HashMap::new();
    let width = grid.xs.len() - 1;
    for (at, first) in grid.first.iter().enumerate() {
        if (at % width) as u32 == first.1 {
            *heights.entry(*first).or_default() += 1;
        }
    }
    let mut found: BTreeMap<Cell, Vec<String>> = BTreeMap::new();
    for (cell, texts) in cells {
        let rows: BTreeSet<u32> = texts.iter().map(|(row, _)| *row).collect();
        let height = heights.get(&cell).copied().unwrap_or(0) as f64;
        let are_rows = rows.len() == texts.len() && texts.len() as f64 > (LABELLED * height).max(2.0);
        for (row, text) in texts {
            found.entry(if are_rows { (row, cell.1) } else { cell }).or_default().push(text);
        }
    }
    found
}

/// Return the share of words that cross a rule; a single one counts nothing.
fn crossing(grid: &Grid, inside: &[Inside<'_>]) -> f64 {
    let (mut total, mut count) = (0.0, 0.0);
    for (word, _) in inside.iter().flat_map(|own| &own.words) {
        let middle = (word.top + word.bottom) / 2.0;
        total += 1.0;
        if word.right - word.left > 4.0
            && grid.cell(word.left + 2.0, middle) != grid.cell(word.right - 2.0, middle)
        {
            count += 1.0;
        }
    }
    (count - 1.0) / total
}
