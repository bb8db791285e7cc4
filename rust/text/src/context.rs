//! The context that a passage repeats from a block that it continues: the lead-in of a list, the caption and
//! header rows of a table, the fence of code and the definitions around it.

use super::blocks::{Block, Kind, Span};
use super::bpe::Counter;
use super::pieces::char_floor;
use super::windows::truncate_with;
use std::ops::Range;

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
        // A fence is as long as its line, and each passage of its code looks at it.
        let fence = &self.text[head.0..char_floor(self.text, head.1.min(head.0 + 2 * CELL))];
        let marks = fence.trim_start_matches(|c| c != '`' && c != '~');
        let Some(mark) = marks.chars().next() else {
            return String::new(); // a directive ends with the indent
        };
        let length = marks.len() - marks.trim_start_matches(mark).len();
        // A repeated opening fence of this length is cut, so nothing would close it.
        if length > CELL {
            return String::new();
        }
        format!("\n{}", &marks[..length])
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

/// Maximum number of enclosing definitions that are repeated.
const SHOWN: usize = 3;

/// A line that is not blank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    /// From its indent on, without trailing blanks.
    pub span: Span,
    /// Offset of the first character that is not blank.
    pub text: usize,
    after_blank: bool,
    is_outer: bool,
}

/// Return the lines of a stretch of code that are not blank.
pub(crate) fn code_lines(text: &str, span: Span) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let (mut at, mut after_blank) = (span.0, true);
    for part in text[span.0..span.1].split_inclusive('\n') {
        let (start, bare) = (at, part.trim());
        at += part.len();
        if bare.is_empty() {
            after_blank = true;
            continue;
        }
        let first = start + (part.len() - part.trim_start().len());
        lines.push(Line { span: (start, first + bare.len()), text: first, after_blank, is_outer: false });
        after_blank = false;
    }
    let least = lines.iter().skip(1).map(indent).min().unwrap_or(0);
    for line in &mut lines {
        line.is_outer = indent(line) <= least && !is_closing(&text[line.text..line.span.1]);
    }
    lines
}

fn indent(line: &Line) -> usize {
    line.text - line.span.0
}

/// Return whether a line only closes something that another line opened.
fn is_closing(line: &str) -> bool {
    line.starts_with(['}', ')', ']', '`', '~']) || line.starts_with("end")
}

/// Return whether a line cannot begin a definition.
fn is_aside(line: &str) -> bool {
    is_closing(line)
        || line.starts_with(['#', '*', '@', '"', '\''])
        || line.starts_with("//")
        || line.starts_with("/*")
}

/// Split lines where definitions begin: at unindented lines after a blank line.
pub(crate) fn at_definitions(lines: &[Line], range: Range<usize>) -> Vec<Range<usize>> {
    split(lines, range, |line| line.after_blank && line.is_outer)
}

/// Split lines at blank lines.
pub(crate) fn at_blank_lines(lines: &[Line], range: Range<usize>) -> Vec<Range<usize>> {
    split(lines, range, |line| line.after_blank)
}

fn split(lines: &[Line], range: Range<usize>, begins: impl Fn(&Line) -> bool) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for at in range {
        match parts.last_mut() {
            Some(part) if !begins(&lines[at]) => part.end = at + 1,
            _ => parts.push(at..at + 1),
        }
    }
    parts
}

/// Finds the enclosing definitions of lines that are given in order.
#[derive(Debug, Default)]
pub(crate) struct Enclosing {
    open: Vec<Line>,
}

impl Enclosing {
    /// Read a line and return its innermost enclosing definitions, the outermost first.
    pub(crate) fn read(&mut self, text: &str, line: &Line) -> Vec<Span> {
        while self.open.last().is_some_and(|outer| indent(outer) >= indent(line)) {
            self.open.pop();
        }
        let first = self.open.len().saturating_sub(SHOWN);
        let around = self.open[first..].iter().map(|outer| outer.span).collect();
        if !is_aside(&text[line.text..line.span.1]) {
            self.open.push(*line);
        }
        around
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "import a\n\nclass B:\n    # note\n    def c(self):\n        x = 1\n\n        return x\n\n\ndef d():\n    pass";

    #[test]
    fn definitions_and_blank_lines() {
        let lines = code_lines(CODE, (0, CODE.len()));
        let starts = |parts: Vec<Range<usize>>| {
            parts
                .into_iter()
                .map(|part| &CODE[lines[part.start].text..lines[part.start].span.1])
                .collect::<Vec<_>>()
        };
        assert_eq!(starts(at_definitions(&lines, 0..lines.len())), ["import a", "class B:", "def d():"]);
        assert_eq!(starts(at_blank_lines(&lines, 1..6)), ["class B:", "return x"]);
    }

    #[test]
    fn definitions_around_a_line() {
        let mut enclosing = Enclosing::default();
        let around: Vec<Vec<Span>> =
            code_lines(CODE, (0, CODE.len())).iter().map(|line| enclosing.read(CODE, line)).collect();
        let shown: Vec<&str> = around[5].iter().map(|&(a, b)| &CODE[a..b]).collect();
        assert_eq!(shown, ["class B:", "    def c(self):"]);
        assert!(around[6].is_empty());
    }
}
