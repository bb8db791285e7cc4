//! The rows of the tables of entities and relations (10-ketrag 1.4), as they are printed and counted.

use std::fmt::Write;

/// Line breaks would end a row; they become spaces. Nothing else is altered: the tables are read by
/// a model, and by programs that know the rows of graphrag.
pub fn push_cell(out: &mut String, cell: &str) {
    let start = out.len();
    out.push_str(cell);
    if cell.bytes().any(|b| matches!(b, b'\n' | b'\r')) {
        let flat = out[start..].replace(['\n', '\r'], " ");
        out.truncate(start);
        out.push_str(&flat);
    }
}

/// `id|entity|description|number of relationships` with its line break.
pub fn push_entity(out: &mut String, id: u32, name: &str, description: &str, rank: u32) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{id}|");
    push_cell(out, name);
    out.push('|');
    push_cell(out, description);
    let _ = writeln!(out, "|{rank}");
}

/// What a relation's row shows, apart from its links.
#[derive(Debug, Clone, Copy)]
pub struct RelationCells<'a> {
    pub id: u32,
    pub source: &'a str,
    pub target: &'a str,
    pub description: &'a str,
    pub weight: f64,
    pub rank: u32,
}

/// `id|source|target|description|weight|rank`: all of a relation's row that no question changes.
pub fn push_relation(out: &mut String, cells: RelationCells<'_>) {
    let _ = write!(out, "{}|", cells.id);
    for cell in [cells.source, cells.target, cells.description] {
        push_cell(out, cell);
        out.push('|');
    }
    if cells.weight != 0.0 {
        // The shortest digits that read back as the same number, always with a point or an exponent.
        let _ = write!(out, "{:?}", cells.weight);
    }
    let _ = write!(out, "|{}", cells.rank);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_on_one_line() {
        let mut out = String::new();
        push_entity(&mut out, 7, "A|B", "one\r\ntwo", 3);
        assert_eq!(out, "7|A|B|one  two|3\n");
        out.clear();
        let cells =
            RelationCells { id: 0, source: "A", target: "B\n", description: "", weight: 2.0, rank: 9 };
        push_relation(&mut out, cells);
        assert_eq!(out, "0|A|B ||2.0|9");
        out.clear();
        push_relation(&mut out, RelationCells { weight: 0.0, target: "B", ..cells });
        assert_eq!(out, "0|A|B|||9");
    }
}
