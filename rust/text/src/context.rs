//! The context that a passage repeats from a block that it continues: the lead-in of a list, the caption and
//! header rows of a table, the fence of code and the definitions around it.

use super::blocks::{Block, Kind, Span};
use super::bpe::Counter;
use super::pieces::char_floor;
use super::windows::truncate_with;

/// Maximum number of characters of a cell or of another line that are repeated.
const CELL: usize = 200;
/// Number of enclosing blocks whose context is repeated: the outermost, and this many inner ones.
const INNER: usize = 3;

/// Creates the contexts of passages. The header of each table is cut only once.
pub(crate) struct Contexts<'a> {
    text: &'a str,
    blocks: &'a [Block],
    /// Maximum number of tokens.
    most: usize,
    header: Option<(u32, String)>,
}

impl<'a> Contexts<'a> {
    pub(crate) fn new(text: &'a str, blocks: &'a [Block], most: usize) -> Self {
        Self { text, blocks, most, header: None }
    }

    /// Return the lines to print before a passage that begins at `at`, inside `block` or at its start. For
    /// code, `definitions` are those that enclose its first line.
    pub(crate) fn before(
        &mut self,
        block: u32,
        at: usize,
        definitions: &[Span],
        counter: &mut Counter,
    ) -> String {
        let mut out = String::new();
        for index in self.around(block) {
            let Block { span, kind, lead, head, .. } = self.blocks[index as usize];
            if lead.0 < lead.1 && lead.1 <= at {
                out.push_str(&self.text[lead.0..lead.1]);
                out.push('\n');
            }
            match kind {
                Kind::Table if head.0 < head.1 && head.1 <= at => out.push_str(self.header(index, counter)),
                Kind::Code if at > span.0 => {
                    let fence = (head.0 < head.1).then_some(head);
                    for line in fence.iter().chain(definitions) {
                        push_cut(&mut out, &self.text[line.0..line.1]);
                        out.push('\n');
                    }
                }
                _ => {}
            }
        }
        self.fitting(out, counter)
    }

    /// Return the line to print after a passage that ends at `end` inside `block`.
    pub(crate) fn after(&self, block: u32, end: usize) -> String {
        let Block { span, kind, head, .. } = self.blocks[block as usize];
        if kind != Kind::Code || head.0 == head.1 || end >= span.1 {
            return String::new();
        }
        let fence = &self.text[head.0..head.1];
        let marks = fence.trim_start_matches(|c| c != '`' && c != '~');
        match marks.chars().next() {
            Some(mark) => format!("\n{}", &marks[..marks.len() - marks.trim_start_matches(mark).len()]),
            None => String::new(), // a directive ends with the indent
        }
    }

    /// Return the maximum number of context tokens of a passage that begins inside `block`.
    pub(crate) fn room(&mut self, block: u32, counter: &mut Counter) -> usize {
        let before = self.before(block, usize::MAX, &[], counter);
        if before.is_empty() {
            return 0;
        }
        counter.count(&before)
    }

    /// Return the block and its enclosing blocks, the outermost first.
    fn around(&self, block: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut at = block;
        while let Some(block) = self.blocks.get(at as usize) {
            found.push(at);
            at = block.parent;
        }
        if found.len() > INNER + 1 {
            found.drain(INNER..found.len() - 1);
        }
        found.reverse();
        found
    }

    fn header(&mut self, table: u32, counter: &mut Counter) -> &str {
        if self.header.as_ref().is_none_or(|(known, _)| *known != table) {
            let head = self.blocks[table as usize].head;
            let mut out = String::new();
            for line in self.text[head.0..head.1].split('\n') {
                push_cells(&mut out, line.trim_end());
                out.push('\n');
            }
            self.header = Some((table, self.fitting(out, counter)));
        }
        self.header.as_ref().map_or("", |(_, header)| header)
    }

    /// Cut a context that is too long.
    fn fitting(&self, mut context: String, counter: &mut Counter) -> String {
        // A token has at least one byte.
        if context.len() > self.most {
            let end = truncate_with(counter, &context, self.most);
            if end < context.len() {
                context.truncate(end);
                if !context.is_empty() && !context.ends_with('\n') {
                    context.push('\n');
                }
            }
        }
        context
    }
}

/// Append a row with the beginnings of its cells.
fn push_cells(out: &mut String, line: &str) {
    let mark = if line.contains('\t') { '\t' } else { '|' };
    if line.len() <= CELL {
        out.push_str(line);
        return;
    }
    for (number, cell) in line.split(mark).enumerate() {
        if number > 0 {
            out.push(mark);
        }
        push_cut(out, cell);
    }
}

/// Append a line, or its beginning if it is long.
fn push_cut(out: &mut String, line: &str) {
    let end = char_floor(line, CELL);
    out.push_str(&line[..end]);
    if end < line.len() {
        out.push('…');
    }
}
