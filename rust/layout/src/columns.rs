//! The reading order of a page: column by column, with lines that span columns in between.
//!
//! A gutter is a vertical stripe that few lines cross, with columns of text on both sides. Short pieces of
//! text next to each other (forms, tables) are not columns and are read row by row.

use crate::direction::is_mostly_rtl;
use crate::matching::split_at_leaders;
use crate::merging::TableRow;
use crate::page::{larger, least, median, most, Line, Page};
use crate::ruled::{ruled_tables, RuledTable};
use crate::stripes::Stripe;
use crate::tables::tables_of;
use std::collections::HashSet;

/// Minimum number of lines in a column.
const LEAST: usize = 4;
const STEP: f64 = 2.0;
/// Maximum number of lines across a gutter, relative to the lines of the smaller side.
const CROSSING: f64 = 0.5;
/// Minimum median length of a column's lines in characters; shorter ones are table cells.
const WORDY: f64 = 14.0;
const FILLED: f64 = 0.55;
/// Minimum median width of the lines of running text next to a table, relative to its column.
const PROSE: f64 = 0.75;
const NARROW: f64 = 5.0;
/// A gap of this many letter heights separates cells.
const CELLS: f64 = 2.0;
const DEEPEST: usize = 4;

/// The text on one line of a column, with tabs between cells. `table` is 0 outside of tables; the first row of a
/// table has the stripes between its columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextRow {
    pub bounds: [f64; 4],
    pub size: f64,
    pub text: String,
    pub soft: bool,
    pub cells: usize,
    pub column: usize,
    pub table: usize,
    pub stripes: Vec<Stripe>,
}

impl TextRow {
    pub fn left(&self) -> f64 {
        self.bounds[0]
    }

    pub fn top(&self) -> f64 {
        self.bounds[1]
    }

    pub fn right(&self) -> f64 {
        self.bounds[2]
    }
}

/// Return the rows of a page in reading order; text that is not upright comes last.
pub fn rows_of(page: &Page) -> Vec<TextRow> {
    let (tables, lines) = ruled_tables(page);
    let places: Vec<Line> =
        tables.iter().map(|table| Line::new(table.bounds, table.size, String::new(), false)).collect();
    let ruled = places.iter().enumerate().map(|(at, line)| Piece { line, table: Some(at) });
    let plain = lines.iter().filter(|line| line.upright).map(|line| Piece { line, table: None });
    let mut order = Order { tables: &tables, column: 0, rows: Vec::new() };
    order.read(ruled.chain(plain).collect(), 0);
    let Order { rows: mut found, .. } = order;
    for row in &mut found {
        if row.text.contains(". . . .") || row.text.contains(".....") {
            row.text = split_at_leaders(&row.text); // a table of contents
            row.cells = row.text.matches('\t').count() + 1;
        }
    }
    let next = found.last().map_or(0, |row| row.column + 1);
    let turned = lines.iter().filter(|line| !line.upright);
    found.extend(turned.zip(next..).map(|(line, column)| line_row(line, column)));
    found
}

fn line_row(line: &Line, column: usize) -> TextRow {
    TextRow {
        bounds: [line.left, line.top, line.right, line.bottom],
        size: line.size,
        text: line.text.clone(),
        soft: line.soft,
        cells: 1,
        column,
        ..TextRow::default()
    }
}

/// A line, or the position of a table with rules.
#[derive(Clone, Copy)]
struct Piece<'a> {
    line: &'a Line,
    table: Option<usize>,
}

struct Order<'a> {
    tables: &'a [RuledTable],
    column: usize,
    rows: Vec<TextRow>,
}

impl Order<'_> {
    fn read(&mut self, pieces: Vec<Piece<'_>>, depth: usize) {
        let can_split = pieces.len() >= 2 * LEAST && depth < DEEPEST;
        let Some(gutter) = can_split.then(|| find_gutter(&pieces)).flatten() else {
            if !pieces.is_empty() {
                self.add_rows(pieces);
                self.column += 1;
            }
            return;
        };
        let is_across = |piece: &Piece<'_>| piece.line.left < gutter && gutter < piece.line.right;
        let (mut across, sides): (Vec<Piece<'_>>, Vec<Piece<'_>>) = pieces.into_iter().partition(is_across);
        across.sort_by(|a, b| (a.line.top + 0.0).total_cmp(&(b.line.top + 0.0)));
        let edges: Vec<f64> = across.iter().map(|piece| piece.line.twice_middle() / 2.0).collect();
        let mut bands: Vec<Vec<Piece<'_>>> = vec![Vec::new(); across.len() + 1];
        for piece in sides {
            let middle = piece.line.twice_middle() / 2.0;
            bands[edges.partition_point(|&edge| edge < middle)].push(piece);
        }
        let mut pending = Vec::new();
        for (number, band) in bands.into_iter().enumerate() {
            if !band.is_empty() {
                self.read(std::mem::take(&mut pending), DEEPEST);
                let (left, right): (Vec<Piece<'_>>, Vec<Piece<'_>>) =
                    band.into_iter().partition(|piece| piece.line.right <= gutter);
                self.read(left, depth + 1);
                self.read(right, depth + 1);
            }
            pending.extend(across.get(number));
        }
        self.read(pending, DEEPEST);
    }

    /// Add rows from top to bottom.
    fn add_rows(&mut self, pieces: Vec<Piece<'_>>) {
        let (mut places, mut lines): (Vec<Piece<'_>>, Vec<Piece<'_>>) =
            pieces.into_iter().partition(|piece| piece.table.is_some());
        places.sort_by(|a, b| (a.line.top + 0.0).total_cmp(&(b.line.top + 0.0)));
        let mut number = 1;
        for place in &places {
            let (above, below): (Vec<Piece<'_>>, Vec<Piece<'_>>) =
                lines.into_iter().partition(|piece| piece.line.top < place.line.top);
            lines = below;
            number = self.add_plain_rows(&above, number);
            if let Some(at) = place.table {
                self.add_ruled_rows(&self.tables[at], number);
            }
            number += 1;
        }
        self.add_plain_rows(&lines, number);
    }

    /// Add the rows of a table with rules.
    fn add_ruled_rows(&mut self, table: &RuledTable, number: usize) {
        let [left, first, right, last] = table.bounds;
        let step = (last - first) / table.rows.len() as f64;
        for (at, row) in table.rows.iter().enumerate() {
            let text = join_cells(row);
            let top = first + at as f64 * step;
            self.rows.push(TextRow {
                bounds: [left, top, right, top + step],
                size: table.size,
                cells: text.matches('\t').count() + 1,
                text,
                soft: false,
                column: self.column,
                table: number,
                stripes: if at == 0 { table.stripes.clone() } else { Vec::new() },
            });
        }
    }

    /// Add rows from top to bottom and return the number of the next table. Lines at the same height are
    /// concatenated from left to right.
    fn add_plain_rows(&mut self, pieces: &[Piece<'_>], first_number: usize) -> usize {
        let groups = group_by_height(pieces);
        let mut number = first_number;
        let mut at = 0;
        for table in tables_of(&groups) {
            if is_stretched(&groups[table.first..table.end]) {
                continue;
            }
            if let Some((middle, end)) = prose_columns(&groups, table.first, table.end) {
                self.add_text_rows(&groups[at..table.first]);
                self.add_columns(&groups[table.first..end], middle);
                at = end;
                continue;
            }
            self.add_text_rows(&groups[at..table.first]);
            let begin = self.rows.len();
            self.rows.extend(table.rows.iter().map(|row| table_row(&groups, row, self.column, number)));
            if let Some(row) = self.rows.get_mut(begin) {
                row.stripes = table.stripes;
            }
            at = table.end;
            number += 1;
        }
        self.add_text_rows(&groups[at..]);
        number
    }

    /// Add the rows left of `middle`, and then those right of it.
    fn add_columns(&mut self, groups: &[Vec<&Line>], middle: f64) {
        for is_left in [true, false] {
            self.column += 1;
            let side = side_of(groups, middle, is_left);
            self.rows.extend(side.iter().map(|group| text_row(group, self.column, true)));
        }
        self.column += 1;
    }

    fn add_text_rows(&mut self, groups: &[Vec<&Line>]) {
        let mut is_cut = false; // the row before ends inside a word
        for group in groups {
            let was_cut = std::mem::replace(&mut is_cut, ends_inside_a_word(group));
            self.rows.push(text_row(group, self.column, was_cut || is_cut));
        }
    }
}

/// The maximum number of lines of running text that look like a table because blanks were stretched.
const STRETCHED: usize = 3;

/// Return whether a few rows are lines of running text: one of them ends inside a word that the next one continues.
fn is_stretched(groups: &[Vec<&Line>]) -> bool {
    groups.len() <= STRETCHED
        && groups.split_last().is_some_and(|(_, own)| own.iter().any(|group| ends_inside_a_word(group)))
}

/// The minimum median length of the lines of two short columns of running text, in characters: names and values of a table
/// are shorter. This and the next three were chosen by looking at a page that a browser printed and at the tables of the
/// tests; other values were not compared.
const LONG: f64 = 20.0;
/// The lines of justified text end this near to the edge of their column, in points; at least this share of them do, because
/// the last lines of paragraphs do not.
const EDGE: f64 = 1.5;
const JUSTIFIED: f64 = 0.6;
/// A line that goes on below the other column is this many distances of lines below the line before.
const NEXT: f64 = 1.3;

/// Return the middle between two columns of running text that look like a table, and the end of their groups.
///
/// They are too short next to the other lines of the page for [`find_gutter`]. Both have long lines that are justified, or
/// one of them has a line that ends inside a word, which the next line of the same column continues.
fn prose_columns(groups: &[Vec<&Line>], first: usize, end: usize) -> Option<(f64, usize)> {
    let own = &groups[first..end];
    if own.len() < LEAST {
        return None;
    }
    let mut spans: Vec<(f64, f64)> = own.iter().flatten().map(|line| (line.left, line.right)).collect();
    spans.sort_by(|a, b| (a.0 + 0.0).total_cmp(&(b.0 + 0.0)));
    let mut columns: Vec<(f64, f64)> = Vec::new();
    for (left, right) in spans {
        match columns.last_mut() {
            Some(last) if left <= last.1 => last.1 = larger(last.1, right),
            _ => columns.push((left, right)),
        }
    }
    let [(_, before), (after, _)] = columns[..] else { return None };
    let middle = (before + after) / 2.0;
    let sides = [true, false].map(|is_left| side_of(own, middle, is_left));
    let is_long = |side: &Vec<Vec<&Line>>| {
        let length = |group: &Vec<&Line>| group.iter().map(|line| line.length + 1).sum::<usize>() as f64;
        side.len() >= LEAST && median(side.iter().map(length).collect()) >= LONG
    };
    let is_cut =
        |side: &Vec<Vec<&Line>>| side[..side.len() - 1].iter().any(|group| ends_inside_a_word(group));
    if !sides.iter().all(is_long) || !(sides.iter().any(is_cut) || sides.iter().all(is_justified)) {
        return None;
    }
    let middles: Vec<f64> = own.iter().map(|group| group[0].twice_middle() / 2.0).collect();
    let step = median(middles.windows(2).map(|pair| pair[1] - pair[0]).collect());
    let mut end = end;
    while end < groups.len() {
        let is_beside =
            groups[end].iter().all(|line| line.left >= middle && line.right <= columns[1].1 + EDGE);
        let distance = (groups[end][0].twice_middle() - groups[end - 1][0].twice_middle()) / 2.0;
        if !is_beside || distance > NEXT * step {
            break;
        }
        end += 1;
    }
    Some((middle, end))
}

/// Return the lines on one side of a vertical line, for each height at which there are some.
fn side_of<'a>(groups: &[Vec<&'a Line>], middle: f64, is_left: bool) -> Vec<Vec<&'a Line>> {
    let own = |group: &Vec<&'a Line>| -> Vec<&'a Line> {
        group.iter().copied().filter(|line| (line.left < middle) == is_left).collect()
    };
    groups.iter().map(own).filter(|group| !group.is_empty()).collect()
}

fn is_justified(side: &Vec<Vec<&Line>>) -> bool {
    let ends: Vec<f64> = side.iter().map(|group| most(group.iter().map(|line| line.right))).collect();
    let edge = most(ends.iter().copied());
    let full = ends.iter().filter(|&&right| right >= edge - EDGE).count();
    full as f64 >= JUSTIFIED * ends.len() as f64
}

fn ends_inside_a_word(group: &[&Line]) -> bool {
    group.last().is_some_and(|line| line.soft)
}

/// Return the lines at each height, from top to bottom and from left to right.
fn group_by_height<'a>(pieces: &[Piece<'a>]) -> Vec<Vec<&'a Line>> {
    let mut ordered: Vec<&Line> = pieces.iter().map(|piece| piece.line).collect();
    ordered.sort_by(|a, b| {
        let order = (a.twice_middle() + 0.0).total_cmp(&(b.twice_middle() + 0.0));
        order.then((a.left + 0.0).total_cmp(&(b.left + 0.0)))
    });
    let mut groups: Vec<Vec<&Line>> = Vec::new();
    let mut last = 0.0; // twice the lowest middle of a line that belongs to the group
    for line in ordered {
        let twice = line.twice_middle();
        if let Some(group) = groups.last_mut().filter(|_| twice < last) {
            group.push(line);
            continue;
        }
        groups.push(vec![line]);
        let (size, height) = (line.size, line.bottom - line.top);
        // The ink of letters is lower than their size. A value that was typed into a form may be some points higher
        // than its label.
        let own = if 1.0 < size && size < height { 0.9 * size } else { 1.1 * larger(height, 1.0) };
        last = twice + own;
    }
    for group in &mut groups {
        group.sort_by(|a, b| (a.left + 0.0).total_cmp(&(b.left + 0.0)));
    }
    groups
}

/// Return lines at the same height as one row, with tabs at wide gaps except in running text.
fn text_row(group: &[&Line], column: usize, is_running: bool) -> TextRow {
    if let [line] = group {
        return line_row(line, column);
    }
    let mut ordered = group.to_vec();
    if is_mostly_rtl(group.iter().map(|line| line.text.as_str())) {
        ordered.reverse();
    }
    let mut text = ordered[0].text.clone();
    let mut cells = 1;
    for pair in ordered.windows(2) {
        let gap = larger(pair[1].left - pair[0].right, pair[0].left - pair[1].right);
        let is_wide = !is_running && gap > CELLS * larger(pair[0].size, 1.0);
        cells += usize::from(is_wide);
        text.push(if is_wide { '\t' } else { ' ' });
        text.push_str(&pair[1].text);
    }
    let soft = ordered[ordered.len() - 1].soft;
    TextRow { text, soft, cells, column, ..bounded(group.iter().copied()) }
}

/// Return a row of a table, with a tab between columns.
fn table_row(groups: &[Vec<&Line>], row: &TableRow, column: usize, table: usize) -> TextRow {
    let text = join_cells(&row.cells);
    let cells = text.matches('\t').count() + 1;
    let members = row.members.iter().flat_map(|&member| groups[member].iter().copied());
    TextRow { text, cells, column, table, ..bounded(members) }
}

fn join_cells(cells: &[String]) -> String {
    let mut text = cells.join("\t");
    text.truncate(text.trim_end_matches('\t').len());
    text
}

/// Return a row without text around lines, with the size of the letters of the longest.
fn bounded<'a>(lines: impl Iterator<Item = &'a Line> + Clone) -> TextRow {
    let bounds = [
        least(lines.clone().map(|line| line.left)),
        least(lines.clone().map(|line| line.top)),
        most(lines.clone().map(|line| line.right)),
        most(lines.clone().map(|line| line.bottom)),
    ];
    let longest = lines.reduce(|a, b| if b.length > a.length { b } else { a });
    TextRow { bounds, size: longest.map_or(0.0, |line| line.size), ..TextRow::default() }
}

/// Return the middle of the gap between two columns, or None if there is only one column.
fn find_gutter(pieces: &[Piece<'_>]) -> Option<f64> {
    let lines: Vec<&Line> = pieces.iter().map(|piece| piece.line).collect();
    let first = least(lines.iter().map(|line| line.left));
    let last = most(lines.iter().map(|line| line.right));
    let width = last - first;
    if width < 60.0 {
        return None;
    }
    let half = 0.55 * width;
    let wide_lines = lines.iter().filter(|line| line.right - line.left > half).count();
    if wide_lines as f64 > 0.6 * lines.len() as f64 {
        return None; // one column: most lines cross the middle
    }
    let steps = (width / STEP) as usize + 2;
    let (mut covered, mut ended) = (vec![0_i64; steps + 1], vec![0_i64; steps + 1]);
    for line in &lines {
        let begin = ((line.left - first) / STEP) as usize;
        let end = ((line.right - first) / STEP) as usize + 1;
        covered[begin] += 1;
        covered[end] -= 1;
        ended[end] += 1;
    }
    let mut best: Option<(f64, usize, usize)> = None;
    let (mut crossing, mut left, mut start) = (0, 0, 0);
    let mut before = (-1, -1);
    for step in 0..=steps {
        crossing += covered[step];
        left += ended[step];
        if (crossing, left) == before {
            continue;
        }
        let smaller = before.1.min(lines.len() as i64 - before.0 - before.1);
        let wide = (step - start) as f64 * STEP;
        if smaller >= LEAST as i64 && before.0 as f64 <= CROSSING * smaller as f64 && wide >= NARROW {
            let value = (smaller - 2 * before.0) as f64 + wide.min(30.0) / 30.0;
            if best.is_none_or(|(other, ..)| value > other) {
                best = Some((value, start, step));
            }
        }
        (before, start) = ((crossing, left), step);
    }
    let (_, start, step) = best?;
    let gutter = first + (start + step) as f64 / 2.0 * STEP;
    are_columns(&lines, gutter, first, last).then_some(gutter)
}

/// Return whether both sides are running text at the same heights.
fn are_columns(lines: &[&Line], gutter: f64, first: f64, last: f64) -> bool {
    let left: Vec<&Line> = lines.iter().copied().filter(|line| line.right <= gutter).collect();
    let right: Vec<&Line> = lines.iter().copied().filter(|line| line.left >= gutter).collect();
    if left.len() < LEAST || right.len() < LEAST {
        return false;
    }
    let tops = [&left, &right].map(|side| least(side.iter().map(|line| line.top)));
    let bottoms = [&left, &right].map(|side| most(side.iter().map(|line| line.bottom)));
    let low = larger(tops[0], tops[1]);
    let high = crate::page::smaller(bottoms[0], bottoms[1]);
    if high - low < 2.0 * median(lines.iter().map(|line| line.bottom - line.top).collect()) {
        return false;
    }
    if is_beside(&left, first, gutter, &right) || is_beside(&right, gutter, last, &left) {
        return true;
    }
    [(left, first, gutter), (right, gutter, last)]
        .iter()
        .all(|(side, start, end)| is_filled(side, *start, *end))
}

/// Return whether the lines of a side are as long as those of a column of running text.
fn is_filled(side: &[&Line], start: f64, end: f64) -> bool {
    if median(side.iter().map(|line| line.length as f64).collect()) < WORDY {
        return false;
    }
    let wide = FILLED * (end - start);
    if median(side.iter().map(|line| line.right - line.left).collect()) >= wide {
        return true;
    }
    // A side may itself have columns. The lines at one height then fill it together.
    let heights: HashSet<i64> =
        side.iter().map(|line| (line.twice_middle() / (2.0 * larger(line.size, 4.0))) as i64).collect();
    side.iter().map(|line| line.right - line.left).sum::<f64>() >= wide * heights.len() as f64
}

/// Return whether a side is running text next to something else, whose lines are at other heights.
fn is_beside(side: &[&Line], start: f64, end: f64, other: &[&Line]) -> bool {
    if side.len() < 2 * LEAST || median(side.iter().map(|line| line.length as f64).collect()) < 2.0 * WORDY {
        return false;
    }
    if median(side.iter().map(|line| line.right - line.left).collect()) < PROSE * (end - start) {
        return false;
    }
    let mut middles: Vec<f64> = side.iter().map(|line| line.twice_middle() / 2.0).collect();
    middles.sort_by(f64::total_cmp);
    let is_level = |line: &&&Line| {
        let middle = line.twice_middle() / 2.0;
        let at = middles.partition_point(|&one| one < middle);
        let near = &middles[at.saturating_sub(1)..(at + 1).min(middles.len())];
        let distance = least(near.iter().map(|one| (middle - one).abs()));
        distance < 0.2 * larger(line.size, 1.0)
    };
    2 * other.iter().filter(is_level).count() < other.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::FARTHEST;

    fn line(left: f64, top: f64, right: f64, text: &str) -> Line {
        Line::new([left, top, right, top + 10.0], 10.0, text.into(), false)
    }

    fn texts(lines: Vec<Line>) -> Vec<String> {
        let page = Page { width: 600.0, height: 800.0, lines, ..Page::default() };
        rows_of(&page).into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn columns_are_read_one_after_the_other() {
        let text = "a line of running text in a column";
        let side = |name: &str, left: f64| -> Vec<Line> {
            (0..9)
                .map(|at| line(left, 100.0 + 12.0 * f64::from(at), left + 200.0, &format!("{name} {text}")))
                .collect()
        };
        let (left, right) = (side("left", 50.0), side("right", 300.0));
        let mixed = left.iter().zip(&right).flat_map(|(a, b)| [a.clone(), b.clone()]).collect();
        let expected: Vec<String> = left.iter().chain(&right).map(|line| line.text.clone()).collect();
        assert_eq!(texts(mixed), expected);
    }

    #[test]
    fn short_lines_next_to_each_other_are_a_row() {
        let lines = (0..8).flat_map(|at| {
            let top = 100.0 + 12.0 * f64::from(at);
            [line(50.0, top, 90.0, "Name"), line(300.0, top, 340.0, "Ann")]
        });
        assert_eq!(texts(lines.collect()), ["Name\tAnn"; 8]);
    }

    #[test]
    fn short_columns_of_justified_text_are_no_table() {
        let text = "some running text in a line";
        let side = |left: f64, count: u32, name: &str| -> Vec<Line> {
            (0..count)
                .map(|at| {
                    line(left, 100.0 + 12.0 * f64::from(at), left + 200.0, &format!("{name}{at} {text}"))
                })
                .collect()
        };
        let above: Vec<Line> =
            (0..9).map(|at| line(50.0, -20.0 + 12.0 * f64::from(at), 500.0, "wide")).collect();
        let (left, right) = (side(50.0, 4, "a"), side(300.0, 5, "b"));
        let lines = above.iter().chain(&left).chain(&right).cloned().collect();
        let expected: Vec<String> =
            above.iter().chain(&left).chain(&right).map(|line| line.text.clone()).collect();
        assert_eq!(texts(lines), expected);
        // Lines that end anywhere are cells.
        let ragged = |mut own: Vec<Line>| {
            for (at, line) in own.iter_mut().enumerate() {
                line.right -= 20.0 * (at % 3) as f64;
            }
            own
        };
        let sides = ragged(side(50.0, 4, "a")).into_iter().chain(ragged(side(300.0, 4, "b")));
        let cells = texts(above.iter().cloned().chain(sides).collect());
        assert_eq!(cells[9], format!("a0 {text}\tb0 {text}"));
    }

    #[test]
    fn hostile_coordinates_do_no_harm() {
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5.0];
        for a in numbers {
            for b in numbers {
                let mut own = Line::new([a, b, b, a], b, "words".into(), false);
                own.clamp();
                assert!(own.left.abs() <= FARTHEST && own.left <= own.right && own.top <= own.bottom);
                assert!(!texts(vec![own; 9]).is_empty());
            }
        }
    }
}
