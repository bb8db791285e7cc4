//! Lines that belong to one row of a table become one row.

use crate::matching::continues;
use crate::page::median;
use std::collections::BTreeSet;

/// Lines closer than this share of the distance of rows belong to one row.
const CLOSE: f64 = 0.85;

/// A row of a table: the text of each column, the groups of lines that it consists of, the columns with numbers, and
/// whether a cell spans columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableRow {
    pub cells: Vec<String>,
    pub members: Vec<usize>,
    pub numbers: BTreeSet<usize>,
    pub spans: bool,
}

/// Merge lines that belong to one row of the table. `middles` are their heights.
pub fn merge_rows(rows: Vec<TableRow>, middles: &[f64], size: f64) -> Vec<TableRow> {
    let steps: Vec<f64> = middles.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let close = closest(&rows, &steps, size);
    let is_counted = rows.iter().any(has_values);
    let mut is_headed = rows.first().is_some_and(has_values);
    let mut found: Vec<TableRow> = Vec::with_capacity(rows.len());
    for (at, row) in rows.into_iter().enumerate() {
        let Some(last) = found.last_mut() else {
            found.push(row);
            continue;
        };
        let step = steps[at - 1];
        let mut is_same = false;
        if last.numbers.is_disjoint(&row.numbers) {
            is_same = step <= close || goes_on(last, &row, step, size);
            let is_head = !is_headed && (is_counted || last.cells[0].is_empty() || row.cells[0].is_empty());
            if !is_same && is_head && !has_values(&row) && !last.spans {
                let filled = row.cells.iter().filter(|cell| !cell.is_empty()).count();
                is_same = step <= 1.35 * size && !row.spans && filled > 1;
            }
        }
        is_headed = is_headed || (has_values(&row) && !row.cells[0].is_empty());
        if is_same && (!last.spans || is_headed) {
            append(last, row);
        } else {
            found.push(row);
        }
    }
    found
}

/// Return whether a row has numbers outside of the first column.
fn has_values(row: &TableRow) -> bool {
    row.numbers.iter().any(|&column| column > 0)
}

fn append(last: &mut TableRow, row: TableRow) {
    for (cell, more) in last.cells.iter_mut().zip(row.cells) {
        if !cell.is_empty() && !more.is_empty() {
            cell.push(' ');
        }
        cell.push_str(&more);
    }
    last.members.extend(row.members);
    last.numbers.extend(row.numbers);
    last.spans |= row.spans;
}

/// Return the distance up to which lines belong to one row.
fn closest(rows: &[TableRow], steps: &[f64], size: f64) -> f64 {
    let pairs = || rows.windows(2).zip(steps);
    let both = |pair: &[TableRow]| !pair[0].numbers.is_disjoint(&pair[1].numbers);
    let mut apart: Vec<f64> = pairs().filter(|(pair, _)| both(pair)).map(|(_, &step)| step).collect();
    if apart.is_empty() {
        let is_full = |pair: &[TableRow]| {
            let cells = pair[0].cells.iter().zip(&pair[1].cells);
            let common = cells.filter(|(a, b)| !a.is_empty() && !b.is_empty()).count();
            !pair[0].cells[0].is_empty() && !pair[1].cells[0].is_empty() && common > 1
        };
        let full: Vec<f64> = pairs().filter(|(pair, _)| is_full(pair)).map(|(_, &step)| step).collect();
        if 2 * full.len() >= steps.len() {
            apart = full;
        }
    }
    if apart.is_empty() {
        valley(steps, size)
    } else {
        CLOSE * median(apart)
    }
}

/// Return the distance that separates lines of a row from rows, if there are two kinds of distances.
fn valley(steps: &[f64], size: f64) -> f64 {
    let mut ordered = steps.to_vec();
    ordered.sort_by(f64::total_cmp);
    let is_valley = |pair: &&[f64]| pair[1] >= 1.25 * pair[0] && pair[0] <= 1.5 * size && pair[0] > 0.0;
    ordered.windows(2).find(is_valley).map_or(0.0, |pair| (pair[0] + pair[1]) / 2.0)
}

/// Return whether a row continues the label of the row before it.
fn goes_on(last: &TableRow, row: &TableRow, step: f64, size: f64) -> bool {
    if step > 1.6 * size || last.cells[0].is_empty() || row.cells[0].is_empty() {
        return false;
    }
    let is_label = |row: &TableRow| row.cells[1..].iter().all(String::is_empty);
    continues(&last.cells[0], &row.cells[0]) && (is_label(last) || is_label(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(member: usize, cells: [&str; 2]) -> TableRow {
        let numbers = (0..2).filter(|&at| crate::matching::is_number(cells[at])).collect();
        TableRow { cells: cells.map(String::from).to_vec(), members: vec![member], numbers, spans: false }
    }

    #[test]
    fn a_label_of_two_lines_is_one_row() {
        let rows = vec![
            row(0, ["Cash", "1"]),
            row(1, ["Stock, of which 5 and", ""]),
            row(2, ["6 were issued", "2"]),
        ];
        let found = merge_rows(rows, &[0.0, 16.0, 28.0], 10.0);
        let cells: Vec<String> = found.iter().map(|row| row.cells.join("|")).collect();
        assert_eq!(cells, ["Cash|1", "Stock, of which 5 and 6 were issued|2"]);
        assert_eq!(found[1].members, [1, 2]);
    }
}
