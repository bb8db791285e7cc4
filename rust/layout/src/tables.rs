//! Tables among the rows of a page: which cells belong to one column, and which lines to one row.
//!
//! Columns are separated by stripes that few rows cross. A cell that crosses a stripe spans columns and is put into the
//! first of them. An empty cell stays empty, so that each value can be counted off to its column.

use crate::matching::{continues, is_number};
use crate::merging::{merge_rows, TableRow};
use crate::page::{larger, least, median, most, Line};
use crate::segments::{segments_of, CellWord, Segment};
use crate::stripes::{find_stripes, Stripe};

/// Numbers closer than this many letters belong to one cell.
const GAP: f64 = 0.75;
/// A row of a table has a gap of at least this many letter heights.
const CELL: f64 = 0.9;
/// The maximum number of rows of one cell between two rows of a table.
const SINGLES: usize = 4;
/// A table ends at a vertical gap of this many letter heights.
const FAR: f64 = 4.0;
/// A row of one cell with more characters than this is running text.
const PROSE: usize = 90;
/// The longest head over columns, in characters.
const LONGEST_HEAD: usize = 60;
/// Parts of a table may have other columns after a gap of this many distances of lines.
const APART: f64 = 1.5;

/// A row of two cells after one of at least this many may be a sum below a table: its label crosses the columns of the table.
/// Chosen by looking at invoices; the rows stay one table if that keeps all columns.
const MANY: usize = 4;

/// A table: the groups of lines from `first` to before `end`, and the stripes between its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub first: usize,
    pub end: usize,
    pub stripes: Vec<Stripe>,
    pub rows: Vec<TableRow>,
}

/// The lines at each height as cells, with their sizes and places.
struct Rows<'a> {
    cells: Vec<Vec<Segment<'a>>>,
    sizes: Vec<f64>,
    tops: Vec<f64>,
    bottoms: Vec<f64>,
    middles: Vec<f64>,
}

/// Consecutive rows with the same columns.
struct Part {
    begin: usize,
    end: usize,
    stripes: Vec<Stripe>,
}

/// Return the tables. `groups` are the lines at each height, from top to bottom.
pub fn tables_of(groups: &[Vec<&Line>]) -> Vec<Table> {
    let mut found: Vec<Table> = Vec::new();
    if groups.iter().filter(|group| group.len() > 1 || !group[0].words.is_empty()).count() < 2 {
        return found;
    }
    let rows = Rows {
        cells: groups.iter().map(|group| segments_of(group)).collect(),
        sizes: groups.iter().map(|group| most(group.iter().map(|line| line.size))).collect(),
        tops: groups.iter().map(|group| least(group.iter().map(|line| line.top))).collect(),
        bottoms: groups.iter().map(|group| most(group.iter().map(|line| line.bottom))).collect(),
        middles: groups
            .iter()
            .map(|group| group.iter().map(|line| line.twice_middle()).sum::<f64>() / (2 * group.len()) as f64)
            .collect(),
    };
    for part in find_parts(&rows) {
        let mut first = part.begin;
        while first > 0 && is_head(&rows, first - 1, &part.stripes) {
            if found.last().is_some_and(|table| first - 1 < table.end) {
                break;
            }
            first -= 1;
        }
        let cells = (first..part.end).map(|at| read_cells(&rows.cells[at], &part.stripes, at)).collect();
        let size = median(rows.sizes[first..part.end].to_vec());
        let rows = merge_rows(cells, &rows.middles[first..part.end], size);
        found.push(Table { first, end: part.end, stripes: part.stripes, rows });
    }
    found
}

/// Return the tables in blocks of rows; parts of a block with the same columns are one table.
fn find_parts(rows: &Rows<'_>) -> Vec<Part> {
    let mut found = Vec::new();
    for (first, end) in find_blocks(rows) {
        let limit =
            APART * median(rows.middles[first..end].windows(2).map(|pair| pair[1] - pair[0]).collect());
        let is_cut = |at: &usize| {
            (rows.cells[*at].len() > 1) != (rows.cells[*at - 1].len() > 1)
                || (rows.cells[*at].len() == 2 && rows.cells[*at - 1].len() >= MANY)
                || rows.middles[*at] - rows.middles[*at - 1] > limit
        };
        let cuts: Vec<usize> =
            [first].into_iter().chain((first + 1..end).filter(is_cut)).chain([end]).collect();
        let mut own: Vec<Part> = Vec::new();
        for cut in cuts.windows(2) {
            let (begin, end) = (cut[0], cut[1]);
            let stripes_of =
                |from: usize| find_stripes(&rows.cells[from..end], median(rows.sizes[from..end].to_vec()));
            let stripes = stripes_of(begin);
            if let Some(last) = own.last_mut() {
                let both = stripes_of(last.begin);
                if both.len() >= last.stripes.len().max(stripes.len()) {
                    (last.end, last.stripes) = (end, both);
                    continue;
                }
            }
            own.push(Part { begin, end, stripes });
        }
        for mut part in own {
            while part.begin < part.end && rows.cells[part.begin].len() < 2 {
                part.begin += 1;
            }
            while part.begin < part.end && rows.cells[part.end - 1].len() < 2 {
                part.end -= 1;
            }
            if !part.stripes.is_empty() && part.begin < part.end {
                found.push(part);
            }
        }
    }
    found
}

/// Return whether a row above a table is the head of some of its columns.
fn is_head(rows: &Rows<'_>, at: usize, stripes: &[Stripe]) -> bool {
    let [segment] = rows.cells[at].as_slice() else { return false };
    segment.left > stripes[0].left
        && segment.length() < LONGEST_HEAD
        && rows.tops[at + 1] - rows.tops[at] < 2.5 * rows.sizes[at + 1]
}

/// Return runs of rows (first, end) that may be tables; they begin and end with rows of several cells.
fn find_blocks(rows: &Rows<'_>) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, usize)> = None; // the first and the last row of several cells, their number
    for (at, row) in rows.cells.iter().enumerate() {
        let limit = CELL * larger(rows.sizes[at], 1.0);
        let is_seed = row.windows(2).any(|pair| pair[1].left - pair[0].right >= limit);
        if let Some((first, last, seeds)) = open {
            let size = larger(rows.sizes[at], rows.sizes[at - 1]);
            let is_far = rows.tops[at] - rows.bottoms[at - 1] > FAR * size;
            let singles = at - last - 1;
            if is_far || (!is_seed && (singles >= SINGLES || is_prose(&rows.cells, at))) {
                if seeds > 1 {
                    found.push((first, last + 1));
                }
                open = None;
            }
        }
        if is_seed {
            open = Some(open.map_or((at, at, 1), |(first, _, seeds)| (first, at, seeds + 1)));
        }
    }
    if let Some((first, last, _)) = open.filter(|&(.., seeds)| seeds > 1) {
        found.push((first, last + 1));
    }
    found
}

/// Return whether a row is running text rather than a long label that goes on in the next row.
fn is_prose(rows: &[Vec<Segment<'_>>], at: usize) -> bool {
    if rows[at].iter().map(Segment::length).sum::<usize>() <= PROSE {
        return false;
    }
    match (rows[at].last(), rows.get(at + 1)) {
        (Some(label), Some(after)) if after.len() > 1 => !continues(&label.text(), &after[0].text()),
        _ => true,
    }
}

/// Return whether a cell begins after a stripe; one inside it belongs to the nearer column.
fn is_after(part: &Segment<'_>, stripe: &Stripe) -> bool {
    if part.left >= stripe.left && part.right <= stripe.right {
        return part.left - stripe.left > stripe.right - part.right;
    }
    part.left >= (stripe.left + stripe.right) / 2.0
}

/// Return a row with each cell in its column.
fn read_cells(row: &[Segment<'_>], stripes: &[Stripe], number: usize) -> TableRow {
    let mut found = TableRow {
        cells: vec![String::new(); stripes.len() + 1],
        members: vec![number],
        ..TableRow::default()
    };
    for segment in row {
        split_segment(segment, stripes, |part| {
            let first = stripes.iter().filter(|stripe| is_after(part, stripe)).count();
            let last = stripes.iter().filter(|stripe| stripe.right < part.right).count().max(first);
            let column = if part.number { last } else { first };
            found.spans |= last > first && !part.number;
            let cell = &mut found.cells[column];
            if !cell.is_empty() {
                cell.push(' ');
            }
            cell.push_str(&part.text());
            if part.number {
                found.numbers.insert(column);
            }
        });
    }
    found
}

/// Call `add` with the parts of a segment, which is split at the stripes where a number begins or ends.
fn split_segment(segment: &Segment<'_>, stripes: &[Stripe], mut add: impl FnMut(&Segment<'_>)) {
    let words = &segment.words;
    let width: f64 = words.iter().map(|word| word.right - word.left).sum();
    let letters: usize = words.iter().map(|word| word.text.chars().count()).sum();
    let wide = GAP * width / letters as f64;
    let is_cut = |at: &usize| {
        let (before, word) = (&words[*at - 1], &words[*at]);
        let crosses = |stripe: &Stripe| before.right <= stripe.right && word.left >= stripe.left;
        stripes.iter().any(crosses)
            && (is_number(&word.text) || is_number(&before.text))
            && word.left - before.right > wide
    };
    let cuts: Vec<usize> = (1..words.len()).filter(is_cut).collect();
    if cuts.is_empty() {
        return add(segment);
    }
    let mut begin = 0;
    for end in cuts.into_iter().chain([words.len()]) {
        let part: Vec<CellWord<'_>> = words[begin..end].to_vec();
        add(&Segment::new(part[0].left, most(part.iter().map(|word| word.right)), part));
        begin = end;
    }
}
