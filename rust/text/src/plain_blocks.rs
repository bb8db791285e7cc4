//! Blocks of plain text: paragraphs between blank lines, lists by the marks at the beginnings of lines, and tables, whose
//! cells have tabs between them.

use super::block::{push, Block, Kind, Span, DEEPEST, NONE};

/// Maximum number of digits of an item number. A year at the beginning of a line is not an item number.
const DIGITS: usize = 3;
/// Maximum size in bytes of a line without tabs that counts as a table row, such as the heading of a group of
/// rows.
const SHORT: usize = 60;

/// Minimum number of blanks by which an inner list is indented more than the outer one.
const INDENT: usize = 2;

/// Append the blocks of a stretch of plain text.
pub(crate) fn add_plain(text: &str, span: Span, blocks: &mut Vec<Block>) {
    let mut finder = Finder { text, blocks, open: None, lists: Vec::new(), has_blank: true };
    let mut start = span.0;
    while start < span.1 {
        let end = text[start..span.1].find('\n').map_or(span.1, |at| start + at + 1);
        finder.add_line(start, end);
        start = end;
    }
    finder.close();
}

/// A list that is open: its block, the item that holds it, and the indent of its first item.
#[derive(Clone, Copy)]
struct List {
    block: u32,
    item: u32,
    indent: usize,
}

/// The paragraph or item that is open.
#[derive(Clone, Copy)]
struct Open {
    span: Span,
    kind: Kind,
    parent: u32,
}

struct Finder<'a> {
    text: &'a str,
    blocks: &'a mut Vec<Block>,
    open: Option<Open>,
    /// The innermost last.
    lists: Vec<List>,
    /// Whether the last line was blank.
    has_blank: bool,
}

impl Finder<'_> {
    fn add_line(&mut self, start: usize, end: usize) {
        let line = &self.text[start..end];
        let bare = line.trim_start_matches([' ', '\t', '\r']);
        if matches!(bare, "" | "\n") {
            self.has_blank = true;
            if self.lists.is_empty() {
                self.close();
            }
            return;
        }
        let indent = line.len() - bare.len();
        if item_mark(bare).is_some_and(|mark| self.begins_item(mark)) {
            let parent = self.list_of(start, indent);
            self.open = Some(Open { span: (start, end), kind: Kind::Item, parent });
        } else {
            if self.has_blank && self.lists.last().is_some_and(|list| indent <= list.indent) {
                self.close();
                let mut item = NONE;
                while let Some(list) = self.lists.pop_if(|list| indent <= list.indent) {
                    item = list.item;
                }
                if item != NONE {
                    self.open = Some(Open { span: (start, end), kind: Kind::Paragraph, parent: item });
                }
            }
            let open = Open { span: (start, end), kind: Kind::Paragraph, parent: NONE };
            self.open.get_or_insert(open).span.1 = end;
        }
        self.has_blank = false;
    }

    /// Close the blocks that end before an item with this indent, and return the item's list.
    fn list_of(&mut self, start: usize, indent: usize) -> u32 {
        let is_inner = |list: &List| indent >= list.indent + INDENT;
        let mut item = NONE;
        match (self.lists.last(), self.open) {
            (Some(list), Some(open)) if is_inner(list) && self.lists.len() < DEEPEST / 2 => {
                item = open.parent;
                if open.kind == Kind::Item {
                    item = self.blocks.len() as u32;
                    push(self.blocks, self.text, Kind::Item, open.span, open.parent);
                }
                push(self.blocks, self.text, Kind::Paragraph, open.span, item);
                self.open = None;
            }
            _ => {
                self.close();
                while self.lists.len() > 1 && !is_inner(&self.lists[self.lists.len() - 2]) {
                    self.lists.pop();
                }
                if let Some(list) = self.lists.last() {
                    return list.block;
                }
            }
        }
        let block = self.blocks.len() as u32;
        self.blocks.push(Block::new(Kind::List, (start, start), item));
        self.lists.push(List { block, item, indent });
        block
    }

    /// Return whether a line with such a mark begins an item. In the middle of a paragraph, a number must be
    /// 1.
    fn begins_item(&self, mark: Marker) -> bool {
        !self.lists.is_empty() || self.has_blank || mark != Marker::Number
    }

    /// End the paragraph or item that is open.
    fn close(&mut self) {
        let Some(Open { span, kind, parent }) = self.open.take() else { return };
        match parent {
            NONE => self.add_paragraphs(span),
            _ => push(self.blocks, self.text, kind, span, parent),
        }
    }

    /// Add lines as paragraphs and tables.
    fn add_paragraphs(&mut self, span: Span) {
        let (text, stop) = (self.text, span.1);
        let line_end = |at: usize| text[at..stop].find('\n').map_or(stop, |length| at + length + 1);
        let has_cells = |from: usize, to: usize| text[from..to].trim().contains('\t');
        let (mut plain, mut at) = (span.0, span.0);
        while at < stop {
            let mut end = line_end(at);
            if !has_cells(at, end) {
                at = end;
                continue;
            }
            let mut rows = 1;
            while end < stop {
                let next = line_end(end);
                if has_cells(end, next) {
                    rows += 1;
                } else if next == stop || next - end > SHORT || !has_cells(next, line_end(next)) {
                    break;
                }
                end = next;
            }
            if rows > 1 {
                push(self.blocks, text, Kind::Paragraph, (plain, at), NONE);
                self.add_table((at, end));
                plain = end;
            }
            at = end;
        }
        push(self.blocks, text, Kind::Paragraph, (plain, stop), NONE);
    }

    /// Add a table. Its first row is its header if it contains no digit. Otherwise the table may continue the
    /// preceding one, with the same columns and header.
    fn add_table(&mut self, span: Span) {
        let before = self.blocks.last().copied();
        push(self.blocks, self.text, Kind::Table, span, NONE);
        let Some(block) = self.blocks.last_mut() else { return };
        let row = self.text[span.0..span.1].lines().next().unwrap_or_default();
        if !row.contains(|c: char| c.is_numeric()) {
            block.head = (span.0, span.0 + row.len());
        } else if let Some(before) = before.filter(|before| before.kind == Kind::Table) {
            let header = &self.text[before.head.0..before.head.1];
            if header.matches('\t').count() == row.matches('\t').count() {
                block.head = before.head;
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Bullet,
    First,
    Number,
}

/// Return the mark of an item at the beginning of a line without indent, if text follows it.
fn item_mark(line: &str) -> Option<Marker> {
    let mut chars = line.chars();
    let (marker, rest) = match chars.next()? {
        '-' | '*' | '+' | '•' | '‣' | '▪' | '◦' | '·' => (Marker::Bullet, chars.as_str()),
        '(' => {
            let (marker, rest) = numbered(chars.as_str())?;
            (marker, rest.strip_prefix(')')?)
        }
        _ => {
            let (marker, rest) = numbered(line)?;
            let is_letter = line.as_bytes()[0].is_ascii_alphabetic();
            // `A. Smith` is a name.
            let after = rest.strip_prefix(')').or_else(|| rest.strip_prefix('.').filter(|_| !is_letter));
            (marker, after?)
        }
    };
    // A tab elsewhere is between the cells of a table.
    let is_text = rest.starts_with(' ') || (rest.starts_with('\t') && marker == Marker::Bullet);
    (is_text && !rest.trim().is_empty() && !rest.trim().contains('\t')).then_some(marker)
}

/// Return what kind of number a line begins with, and the rest.
fn numbered(line: &str) -> Option<(Marker, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = match digits {
        0 if line.as_bytes().first()?.is_ascii_alphabetic() => line.split_at(1),
        1..=DIGITS => line.split_at(digits),
        _ => return None,
    };
    Some((if matches!(number, "1" | "a" | "A") { Marker::First } else { Marker::Number }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_items() {
        for line in ["- a", "* a", "• a", "1. a", "12) a", "(3) a", "a) b", "(b) c"] {
            assert!(item_mark(line).is_some(), "{line}");
        }
        for line in ["-a", "- ", "1984. It was", "A. Smith", "1.5 is", "(see) it", "a b", "-", "– said he"]
        {
            assert!(item_mark(line).is_none(), "{line}");
        }
    }

    #[test]
    fn lines_with_tabs_are_tables() {
        let text = "The stock:\nName\tQuantity\nCups\nred\t5\nblue\t6\nEnd.\n\ngreen\t7\nwhite\t8\n\na\tb";
        let mut blocks = Vec::new();
        add_plain(text, (0, text.len()), &mut blocks);
        let of = |span: Span| &text[span.0..span.1];
        let found: Vec<_> = blocks.iter().map(|b| (b.kind, of(b.span), of(b.head))).collect();
        assert_eq!(found[0], (Kind::Paragraph, "The stock:", ""));
        assert_eq!(found[1], (Kind::Table, "Name\tQuantity\nCups\nred\t5\nblue\t6", "Name\tQuantity"));
        assert_eq!(found[3], (Kind::Table, "green\t7\nwhite\t8", ""));
        assert_eq!(found[4].0, Kind::Paragraph);
        let mut blocks = Vec::new();
        add_plain(&text.replace("End.\n", ""), (0, text.len() - 5), &mut blocks);
        assert_eq!(blocks[2].head, blocks[1].head);
    }

    #[test]
    fn lists_in_lists() {
        let text = "- a\n  more\n  1. b\n     - c\n\n  2. d\n\n  of a\n- e\n\nEnd.";
        let mut blocks = Vec::new();
        add_plain(text, (0, text.len()), &mut blocks);
        let found: Vec<_> = blocks.iter().map(|b| (b.kind, &text[b.span.0..b.span.1], b.parent)).collect();
        let wanted = [
            (Kind::List, "", NONE),
            (Kind::Item, "- a\n  more", 0),
            (Kind::Paragraph, "- a\n  more", 1),
            (Kind::List, "", 1),
            (Kind::Item, "1. b", 3),
            (Kind::Paragraph, "1. b", 4),
            (Kind::List, "", 4),
            (Kind::Item, "- c", 6),
            (Kind::Item, "2. d", 3),
            (Kind::Paragraph, "of a", 1),
            (Kind::Item, "- e", 0),
            (Kind::Paragraph, "End.", NONE),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_number_does_not_interrupt_a_paragraph() {
        let mut blocks = Vec::new();
        let text = "It was built in the year\n12. Nobody knows why.\n1. But this is an item";
        add_plain(text, (0, text.len()), &mut blocks);
        assert_eq!(
            blocks.iter().map(|b| b.kind).collect::<Vec<_>>(),
            [Kind::Paragraph, Kind::List, Kind::Item]
        );
    }
}
