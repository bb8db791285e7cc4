//! The stripes between the columns of a table, which few of its rows cross.

use crate::segments::Segment;

/// The minimum width of a stripe in letter heights.
const STRIPE: f64 = 0.3;
/// The maximum share of rows that cross a stripe.
const CROSSED: f64 = 0.25;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stripe {
    pub left: f64,
    pub right: f64,
}

/// A place where the number of rows that cross, or that have cells on both sides, changes.
struct Edge {
    x: f64,
    crossing: i64,
    inside: i64,
}

/// Return the stripes between the columns of rows that have several cells.
pub fn find_stripes(rows: &[Vec<Segment<'_>>], size: f64) -> Vec<Stripe> {
    let several = || rows.iter().map(Vec::as_slice).filter(|row| row.len() > 1);
    // Without heads, which span columns.
    let mut counted: Vec<&[Segment<'_>]> =
        several().filter(|row| row[1..].iter().any(|one| one.number)).collect();
    if counted.len() < 2 {
        counted = several().collect();
    }
    let least = STRIPE * size;
    let mut found = Vec::new();
    for (left, right) in free_ranges(&counted) {
        let is_inside = |one: &&Segment<'_>| one.left >= left - 0.01 && one.right <= right + 0.01;
        let mut own: Vec<&Segment<'_>> =
            counted.iter().flat_map(|row| row.iter()).filter(is_inside).collect();
        let mut at = left;
        for (start, end) in cluster(&mut own) {
            if start - at >= least {
                found.push(Stripe { left: at, right: start });
            }
            at = crate::page::larger(at, end);
        }
        if right - at >= least {
            found.push(Stripe { left: at, right });
        }
    }
    found
}

/// Return the ranges that few of the rows cross that have cells on both sides.
fn free_ranges(rows: &[&[Segment<'_>]]) -> Vec<(f64, f64)> {
    let mut edges: Vec<Edge> = Vec::new();
    for row in rows {
        for one in *row {
            edges.push(Edge { x: one.left + 0.0, crossing: 1, inside: 0 });
            edges.push(Edge { x: one.right + 0.0, crossing: -1, inside: 0 });
        }
        edges.push(Edge { x: row[0].right + 0.0, crossing: 0, inside: 1 });
        edges.push(Edge { x: row[row.len() - 1].left + 0.0, crossing: 0, inside: -1 });
    }
    edges.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut found = Vec::new();
    let (mut crossing, mut inside) = (0, 0);
    let mut begun: Option<f64> = None;
    for (number, edge) in edges.iter().enumerate() {
        crossing += edge.crossing;
        inside += edge.inside;
        if edges.get(number + 1).is_some_and(|next| next.x == edge.x) {
            continue;
        }
        let clear = inside - crossing; // the rows with cells on both sides that do not cross
        let is_free = clear >= 2 && crossing as f64 <= CROSSED * clear as f64;
        match begun {
            None if is_free => begun = Some(edge.x),
            Some(start) if !is_free => {
                found.push((start, edge.x));
                begun = None;
            }
            _ => {}
        }
    }
    found
}

/// Return the extents of the groups of overlapping cells that have a number or at least three cells.
fn cluster(cells: &mut [&Segment<'_>]) -> Vec<(f64, f64)> {
    cells.sort_by(|a, b| (a.left + 0.0).total_cmp(&(b.left + 0.0)));
    let mut found = Vec::new();
    let mut begin = 0;
    while begin < cells.len() {
        let mut right = cells[begin].right;
        let mut end = begin + 1;
        while end < cells.len() && cells[end].left <= right {
            right = crate::page::larger(right, cells[end].right);
            end += 1;
        }
        let group = &cells[begin..end];
        if group.len() > 2 || group.iter().any(|one| one.number) {
            found.push((group[0].left, right));
        }
        begin = end;
    }
    found
}
