//! The column heads of a table that continues on the next page.
//!
//! A table at the end of a page continues if the next page begins with a table that has the same columns and
//! no heads. The heads are repeated before the rows on the next page, so that passages with these rows name
//! their columns.

use crate::columns::TextRow;
use crate::matching::is_digit;
use crate::page::{least, most};
use crate::stripes::Stripe;
use ketrag_text::classes::is_letter;

/// The maximum number of rows with heads.
const MOST_HEADS: usize = 4;
/// Columns that line up begin, end or have their middle at most this many points apart on both pages.
const SLACK: f64 = 4.0;

/// The heads and the columns of the table at the end of a page.
struct Open {
    heads: Vec<TextRow>,
    columns: Vec<Stripe>,
}

/// Add the heads of tables that continue on the next page to their rows there.
pub fn repeat_heads(pages: &mut [Vec<TextRow>]) {
    let mut open: Option<Open> = None;
    for rows in pages {
        let count = rows.iter().take_while(|row| is_of(row, rows.first())).count();
        let is_whole = count == rows.len();
        let heads =
            open.take().filter(|own| count > 1 && is_continued(own, &rows[..count])).map(|own| own.heads);
        if let Some(heads) = &heads {
            let first = rows[0].clone();
            let copies = heads.iter().enumerate().map(|(at, head)| TextRow {
                text: head.text.clone(),
                cells: head.cells,
                stripes: if at == 0 { first.stripes.clone() } else { Vec::new() },
                ..first.clone()
            });
            let copies: Vec<TextRow> = copies.collect();
            rows.splice(0..0, copies);
        }
        // The heads of a table that fills a whole page are those at its beginning.
        open = find_open(rows).map(|own| match heads {
            Some(heads) if is_whole => Open { heads, ..own },
            _ => own,
        });
    }
}

/// Return whether a row belongs to the same table as another row.
fn is_of(row: &TextRow, other: Option<&TextRow>) -> bool {
    other.is_some_and(|other| row.table > 0 && row.table == other.table && row.column == other.column)
}

/// Return the table at the end of a page, if it has heads.
fn find_open(rows: &[TextRow]) -> Option<Open> {
    let count = rows.iter().rev().take_while(|row| is_of(row, rows.last())).count();
    let table = &rows[rows.len() - count..];
    let heads = count_heads(table);
    if heads == 0 {
        return None;
    }
    Some(Open { heads: table[..heads].to_vec(), columns: columns_of(table) })
}

/// Return the number of rows at the beginning of a table that are column heads: they have an empty first
/// column or no numbers, and one of them has a head for at least half of the columns. A line of a multi-line
/// cell has fewer.
fn count_heads(table: &[TextRow]) -> usize {
    let is_head = |row: &TextRow| {
        let has_years = row.text.starts_with('\t') && row.text.split('\t').all(may_head);
        row.cells > 1 && (has_years || !row.text.contains(is_digit))
    };
    let count = table.iter().take_while(|row| is_head(row)).count();
    let filled = |row: &TextRow| row.text.split('\t').skip(1).filter(|cell| !cell.is_empty()).count();
    let is_full = |row: &TextRow| 2 * filled(row) >= table[0].stripes.len();
    if count < table.len() && count <= MOST_HEADS && table[..count].iter().any(is_full) {
        count
    } else {
        0
    }
}

/// Return whether a cell may be a head: not a number other than a year.
fn may_head(cell: &str) -> bool {
    let is_year = cell.chars().count() == 4 && cell.chars().all(is_digit);
    is_year || !cell.contains(is_digit) || cell.contains(is_letter)
}

/// Return whether a table at the beginning of a page has no heads and the same columns as an open table.
fn is_continued(open: &Open, table: &[TextRow]) -> bool {
    let columns = columns_of(table);
    let is_near = |(a, b): (&Stripe, &Stripe)| {
        let (begin, end) = (b.left - a.left, b.right - a.right);
        begin.abs() <= SLACK || end.abs() <= SLACK || (begin + end).abs() <= 2.0 * SLACK
    };
    count_heads(table) == 0
        && table.iter().take(MOST_HEADS).any(|row| row.text.contains(is_digit))
        && columns.len() == open.columns.len()
        && open.columns.iter().zip(&columns).all(is_near)
}

/// Return the left and right edges of a table's columns.
fn columns_of(table: &[TextRow]) -> Vec<Stripe> {
    let mut left = least(table.iter().map(TextRow::left));
    let mut found = Vec::with_capacity(table[0].stripes.len() + 1);
    for stripe in &table[0].stripes {
        found.push(Stripe { left, right: stripe.left });
        left = stripe.right;
    }
    found.push(Stripe { left, right: most(table.iter().map(TextRow::right)) });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(texts: &[&str], edges: &[f64]) -> Vec<TextRow> {
        let row = |(at, text): (usize, &&str)| TextRow {
            text: text.to_string(),
            cells: text.matches('\t').count() + 1,
            table: 1,
            stripes: if at == 0 {
                edges.iter().map(|&x| Stripe { left: x, right: x + 20.0 }).collect()
            } else {
                vec![]
            },
            ..TextRow::default()
        };
        texts.iter().enumerate().map(row).collect()
    }

    fn texts(mut pages: Vec<Vec<TextRow>>) -> Vec<String> {
        repeat_heads(&mut pages);
        let join =
            |rows: Vec<TextRow>| rows.into_iter().map(|row| row.text).collect::<Vec<String>>().join("|");
        pages.into_iter().map(join).collect()
    }

    const FIRST: [&str; 3] = ["\t2022\t2021", "Cash\t1\t2", "Ice\t3\t4"];
    const NEXT: [&str; 2] = ["Coal\t5\t6", "Total\t9\t12"];

    #[test]
    fn rows_on_the_next_pages_get_the_heads() {
        let edges = [100.0, 200.0];
        let pages = vec![table(&FIRST, &edges), table(&NEXT, &[103.0, 198.0]), table(&NEXT, &edges)];
        let next = "\t2022\t2021|Coal\t5\t6|Total\t9\t12";
        assert_eq!(texts(pages)[1..], [next, next]);
    }

    #[test]
    fn a_cell_that_goes_on_is_not_a_head() {
        let edges = [100.0, 200.0, 300.0, 400.0];
        let first = table(&["No\tShip\tFrom\tTo\tDays", "1\ta\tb\tc\t2"], &edges);
        let next = table(&["\tGroup", "2\ta\tb\tc\t4"], &edges);
        let found = texts(vec![first, next.clone(), next]);
        let expected = "No\tShip\tFrom\tTo\tDays|\tGroup|2\ta\tb\tc\t4";
        assert_eq!(found[1..], [expected, expected]);
    }

    #[test]
    fn other_columns_heads_and_text_between_end_a_table() {
        let edges = [100.0, 200.0];
        let other = table(&NEXT, &[140.0, 240.0]);
        let fewer = table(&["Coal\t5", "Total\t9"], &[100.0]);
        let headed = table(&["Sum\tA\tB", "Coal\t5\t6"], &edges);
        for next in [other, fewer, headed] {
            let expected = texts(vec![next.clone()]);
            assert_eq!(texts(vec![table(&FIRST, &edges), next])[1..], expected);
        }
        let mut after = table(&FIRST, &edges);
        after.push(TextRow { text: "Below the table".into(), cells: 1, ..TextRow::default() });
        assert_eq!(texts(vec![after, table(&NEXT, &edges)])[1], "Coal\t5\t6|Total\t9\t12");
    }
}
