//! Rows of the tables of entities and relations, as they are printed and counted.

use std::fmt::Write;

/// Append a cell, with line breaks replaced by spaces because they would end the row. Nothing else is
/// changed: the tables are read by LLMs, and by programs that expect graphrag's rows.
pub fn push_cell(out: &mut String, cell: &str) {
    let start = out.len();
    out.push_str(cell);
    if cell.bytes().any(|b| matches!(b, b'\n' | b'\r')) {
        let flat = out[start..].replace(['\n', '\r'], " ");
        out.truncate(start);
        out.push_str(&flat);
    }
}

/// Append `id|entity|description|number of relationships` and a line break.
pub fn push_entity(out: &mut String, id: u32, name: &str, description: &str, rank: u32) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{id}|");
    push_cell(out, name);
    out.push('|');
    push_cell(out, description);
    let _ = writeln!(out, "|{rank}");
}

/// Cells of a relation's row, without its links.
#[derive(Debug, Clone, Copy)]
pub struct RelationCells<'a> {
    pub id: u32,
    pub source: &'a str,
    pub target: &'a str,
    pub description: &'a str,
    pub weight: f64,
    pub rank: u32,
}

/// Append `id|source|target|description|weight|rank`: all of a relation's row that does not depend on the
/// query.
pub fn push_relation(out: &mut String, cells: RelationCells<'_>) {
    let _ = write!(out, "{}|", cells.id);
    for cell in [cells.source, cells.target, cells.description] {
        push_cell(out, cell);
        out.push('|');
    }
    if cells.weight != 0.0 {
        // The shortest digits that parse to the same number, always with a decimal point or an exponent.
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
