//! Positions where code may be cut: between definitions, then at blank lines, then between lines.

use super::blocks::Span;
use std::ops::Range;

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
