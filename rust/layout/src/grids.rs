//! Grids that are drawn on a page: the rules between the cells of a table.
//!
//! Thin paths are merged into horizontal and vertical rules. Rules that touch each other form a grid. Grid
//! cells without a rule between them are one cell, whose text is stored in the first of them.

const THIN: f64 = 2.5;
const SHORTEST: f64 = 5.0;
/// Rules at most this many points apart touch each other.
const SLACK: f64 = 4.0;
const MOST_RULES: usize = 400;

/// The position of a rule across its direction, its start and its end.
#[derive(Clone, Copy, Debug)]
struct Rule {
    place: f64,
    begin: f64,
    end: f64,
}

/// The positions of a table's rules, and, row by row, the row and column of the first cell with which each
/// cell is merged.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    pub xs: Vec<f64>,
    pub ys: Vec<f64>,
    pub first: Vec<(u32, u32)>,
}

impl Grid {
    /// Return the row and column of a point, or None outside of the grid.
    pub fn cell(&self, x: f64, y: f64) -> Option<(u32, u32)> {
        let (row, column) = (interval(&self.ys, y)?, interval(&self.xs, x)?);
        Some(self.first[row * (self.xs.len() - 1) + column])
    }
}

/// Return the interval between sorted positions that contains a value.
pub fn interval(places: &[f64], value: f64) -> Option<usize> {
    let at = places.partition_point(|&place| place <= value);
    (at > 0 && at < places.len()).then(|| at - 1)
}

/// Return the grids that thin boxes (left, top, right, bottom) draw.
pub fn grids_of(boxes: impl Iterator<Item = [f64; 4]>) -> Vec<Grid> {
    let (mut across, mut down) = (Vec::new(), Vec::new());
    for [left, top, right, bottom] in boxes {
        if bottom - top <= THIN && right - left > SHORTEST {
            across.push(Rule { place: (top + bottom) / 2.0, begin: left, end: right });
        } else if right - left <= THIN && bottom - top > SHORTEST {
            down.push(Rule { place: (left + right) / 2.0, begin: top, end: bottom });
        }
    }
    let (across, down) = (join(across), join(down));
    if across.len() < 3 || down.len() < 3 || across.len() + down.len() > MOST_RULES {
        return Vec::new();
    }
    connect(&across, &down)
        .into_iter()
        .filter(|(rows, columns)| rows.len() > 2 && columns.len() > 2)
        .map(|(rows, columns)| make_grid(&rows, &columns))
        .filter(|grid| grid.xs.len() > 2 && grid.ys.len() > 2)
        .collect()
}

/// Merge rules at the same position that touch each other.
fn join(mut rules: Vec<Rule>) -> Vec<Rule> {
    // Adding zero makes -0 and 0 equal.
    let key = |rule: &Rule| [rule.place + 0.0, rule.begin + 0.0, rule.end + 0.0];
    rules.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])).then(a[2].total_cmp(&b[2]))
    });
    let mut found = Vec::new();
    let mut start = 0;
    while start < rules.len() {
        let place = rules[start].place;
        let after = rules[start..].iter().position(|rule| rule.place - place > 1.5);
        let end = after.map_or(rules.len(), |count| start + count);
        join_group(place, &mut rules[start..end], &mut found);
        start = end;
    }
    found
}

fn join_group(place: f64, group: &mut [Rule], found: &mut Vec<Rule>) {
    group.sort_by(|a, b| (a.begin + 0.0).total_cmp(&(b.begin + 0.0)));
    let (mut begin, mut end) = (-1e9, -1e9);
    for rule in group {
        if rule.begin - end > SLACK {
            if end > begin {
                found.push(Rule { place, begin, end });
            }
            begin = rule.begin;
        }
        if rule.end > end {
            end = rule.end;
        }
    }
    found.push(Rule { place, begin, end });
}

/// Return the horizontal and vertical rules of each set of rules that touch each other.
fn connect(across: &[Rule], down: &[Rule]) -> Vec<(Vec<Rule>, Vec<Rule>)> {
    let mut owner: Vec<usize> = (0..across.len() + down.len()).collect();
    for (i, row) in across.iter().enumerate() {
        for (j, column) in down.iter().enumerate() {
            let is_touching = row.begin - SLACK <= column.place
                && column.place <= row.end + SLACK
                && column.begin - SLACK <= row.place
                && row.place <= column.end + SLACK;
            if is_touching {
                let (a, b) = (root(&mut owner, i), root(&mut owner, across.len() + j));
                owner[b] = a;
            }
        }
    }
    let mut number = vec![usize::MAX; owner.len()];
    let mut sets: Vec<(Vec<Rule>, Vec<Rule>)> = Vec::new();
    for at in 0..owner.len() {
        let own = root(&mut owner, at);
        if number[own] == usize::MAX {
            number[own] = sets.len();
            sets.push((Vec::new(), Vec::new()));
        }
        let set = &mut sets[number[own]];
        match at.checked_sub(across.len()) {
            None => set.0.push(across[at]),
            Some(column) => set.1.push(down[column]),
        }
    }
    sets
}

fn root(owner: &mut [usize], mut at: usize) -> usize {
    while owner[at] != at {
        owner[at] = owner[owner[at]];
        at = owner[at];
    }
    at
}

fn make_grid(across: &[Rule], down: &[Rule]) -> Grid {
    let (xs, ys) = (places(down, across), places(across, down));
    let width = xs.len() - 1;
    let mut first: Vec<(u32, u32)> = Vec::with_capacity(width * (ys.len() - 1));
    for row in 0..ys.len() - 1 {
        let y = (ys[row] + ys[row + 1]) / 2.0;
        for column in 0..width {
            let x = (xs[column] + xs[column + 1]) / 2.0;
            first.push(if column > 0 && !has_rule(down, xs[column], y) {
                first[row * width + column - 1]
            } else if row > 0 && !has_rule(across, ys[row], x) {
                first[(row - 1) * width + column]
            } else {
                (row as u32, column as u32)
            });
        }
    }
    Grid { xs, ys, first }
}

/// Return the places of rules, and the ends of the others: the sides of a table may be open.
fn places(rules: &[Rule], others: &[Rule]) -> Vec<f64> {
    let mut every: Vec<f64> = rules.iter().map(|rule| rule.place).collect();
    every.push(others.iter().map(|rule| rule.begin).fold(f64::INFINITY, f64::min));
    every.push(others.iter().map(|rule| rule.end).fold(f64::NEG_INFINITY, f64::max));
    every.sort_by(f64::total_cmp);
    let mut found: Vec<f64> = Vec::with_capacity(every.len());
    for place in every {
        if found.last().is_none_or(|last| place - last > SLACK) {
            found.push(place);
        }
    }
    found
}

fn has_rule(rules: &[Rule], place: f64, at: f64) -> bool {
    rules.iter().any(|rule| (rule.place - place).abs() <= SLACK && rule.begin <= at && at <= rule.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn across(y: f64, left: f64, right: f64) -> [f64; 4] {
        [left, y, right, y + 0.5]
    }

    fn down(x: f64, top: f64, bottom: f64) -> [f64; 4] {
        [x, top, x + 0.5, bottom]
    }

    #[test]
    fn cells_without_a_rule_between_them_are_one() {
        let rules = [
            across(0.0, 0.0, 100.0),
            across(20.0, 50.0, 100.0),
            across(40.0, 0.0, 100.0),
            down(0.0, 0.0, 40.0),
            down(50.0, 0.0, 40.0),
            down(100.0, 0.0, 40.0),
        ];
        let grids = grids_of(rules.into_iter());
        assert_eq!(grids.len(), 1);
        assert_eq!(grids[0].cell(10.0, 10.0), Some((0, 0)));
        assert_eq!(grids[0].cell(10.0, 30.0), Some((0, 0)));
        assert_eq!(grids[0].cell(80.0, 30.0), Some((1, 1)));
        assert_eq!(grids[0].cell(80.0, 50.0), None);
    }

    #[test]
    fn rules_that_do_not_touch_are_no_grid() {
        let rules = (0..4).flat_map(|n| {
            let far = 100.0 * f64::from(n);
            [across(far, 0.0, 20.0), down(40.0 + far, 500.0, 600.0)]
        });
        assert!(grids_of(rules).is_empty());
    }

    #[test]
    fn infinite_and_undefined_boxes_are_no_grid() {
        let hostile = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0];
        let mut boxes = Vec::new();
        for a in hostile {
            for b in hostile {
                boxes.push([a, b, b, a]);
                boxes.push([a, a, b, b]);
                boxes.push([b, a, a, b]);
            }
        }
        grids_of(boxes.into_iter());
    }
}
