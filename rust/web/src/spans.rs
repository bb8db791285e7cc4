//! Cells that reach over several rows of a table: their text is repeated in each row.

/// A cell with more bytes is not repeated.
const LONGEST: usize = 200;
/// Columns after these are not followed.
const MOST_COLUMNS: usize = 50;
/// Bytes that may be repeated on a page, in addition to twice its own text.
const FREE: usize = 10_000;

/// The cells of the rows above that reach into the present row of a table.
#[derive(Default)]
pub struct Spans {
    columns: Vec<Span>,
    column: usize,
    begin: usize,
    repeated: usize,
}

#[derive(Clone, Default)]
struct Span {
    rows: u32,
    text: String,
}

impl Spans {
    /// Begin a table or a group of its rows.
    pub fn begin_rows(&mut self) {
        self.columns.clear();
    }

    pub fn begin_row(&mut self) {
        self.column = 0;
    }

    /// Return the text of the next cell of the row if a cell above reaches into it. `written`: bytes of the page so far.
    pub fn covered(&mut self, written: usize) -> Option<String> {
        let span = self.columns.get_mut(self.column).filter(|span| span.rows > 0)?;
        span.rows -= 1;
        self.column += 1;
        let size = self.repeated + span.text.len();
        if size > FREE + 2 * written.saturating_sub(self.repeated) {
            return Some(String::new());
        }
        self.repeated = size;
        Some(if span.rows == 0 { std::mem::take(&mut span.text) } else { span.text.clone() })
    }

    /// Return the text of the next cell after the last one of the row, if a cell above reaches into it or a later one.
    pub fn covered_at_end(&mut self, written: usize) -> Option<String> {
        if !self.columns.iter().skip(self.column).any(|span| span.rows > 0) {
            return None;
        }
        self.covered(written).or_else(|| {
            self.column += 1;
            Some(String::new())
        })
    }

    /// Begin a cell. `written`: bytes of the page so far.
    pub fn begin_cell(&mut self, written: usize) {
        self.begin = written;
    }

    /// End a cell over some rows and columns. `page`: what is written of the page.
    pub fn end_cell(&mut self, page: &str, rows: u32, columns: u32) {
        let end = self.column + columns as usize;
        if rows > 1 && self.columns.len() < end.min(MOST_COLUMNS) {
            self.columns.resize_with(end.min(MOST_COLUMNS), Span::default);
        }
        let last = page.rsplit(['\t', '\n']).next().unwrap_or_default();
        let text = if page.len() > self.begin && last.len() <= LONGEST { last } else { "" };
        for (number, span) in self.columns.iter_mut().take(end).skip(self.column).enumerate() {
            let own = if rows > 1 && number == 0 { text } else { "" };
            *span = Span { rows: rows - 1, text: own.to_owned() };
        }
        self.column = end;
    }
}
