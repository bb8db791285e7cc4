//! What the blocks of a document are; [`super::blocks`] finds them.

use super::sentences::trimmed;

/// Byte offsets of a stretch of the text.
pub type Span = (usize, usize);

/// No block: the parent of blocks at the top level.
pub const NONE: u32 = u32::MAX;
/// Containers are not nested more deeply; what they hold belongs to the innermost one that is left.
pub(crate) const DEEPEST: usize = 24;
/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Heading,
    Paragraph,
    List,
    Item,
    /// One line for each row.
    Table,
    Code,
    Quote,
    /// An image alone, whose caption follows.
    Figure,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Heading => "heading",
            Self::Paragraph => "paragraph",
            Self::List => "list",
            Self::Item => "item",
            Self::Table => "table",
            Self::Code => "code",
            Self::Quote => "quote",
            Self::Figure => "figure",
        }
    }
}

/// A block of a text. Blocks are listed before those inside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Without blanks at its ends. The spans of the innermost blocks cover everything but blanks.
    pub span: Span,
    pub kind: Kind,
    pub parent: u32,
    /// Index after the last block inside it.
    pub next: u32,
    /// What introduces a list or a table: the sentence before it, or the text of the item that holds it; may be empty.
    pub lead: Span,
    /// The header rows of a table, which may be those of the table before it; the opening fence of code; may be empty.
    pub head: Span,
}

impl Block {
    pub(crate) fn new(kind: Kind, span: Span, parent: u32) -> Self {
        Self { span, kind, parent, next: 0, lead: (0, 0), head: (0, 0) }
    }

    /// Return whether no other blocks are inside it; `index` is its own.
    pub fn is_leaf(&self, index: usize) -> bool {
        self.next as usize == index + 1
    }
}

/// What a reader says about a stretch of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Markdown,
    /// Code whose first lines say so, such as a directive.
    Code {
        heads: u32,
    },
    /// The stretch is a copy of lines of the source; the first has this number.
    Lines {
        first: u32,
    },
}

impl Mark {
    /// Return the mark that has this number and value.
    pub fn numbered(kind: u32, value: u32) -> Option<Self> {
        match kind {
            0 => Some(Self::Markdown),
            1 => Some(Self::Code { heads: value }),
            2 => Some(Self::Lines { first: value }),
            _ => None,
        }
    }
}

/// Append a block if its span is not blank.
pub(crate) fn push(blocks: &mut Vec<Block>, text: &str, kind: Kind, span: Span, parent: u32) {
    if let Some(span) = trimmed(text, span.0, span.1) {
        blocks.push(Block::new(kind, span, parent));
    }
}

/// Return the end of the first lines of a span.
pub(crate) fn lines_end(text: &str, span: Span, lines: usize) -> usize {
    let part = &text[span.0..span.1];
    let end = match lines {
        0 => 0,
        _ => part.match_indices('\n').nth(lines - 1).map_or(part.len(), |(at, _)| at),
    };
    span.0 + part[..end].trim_end().len()
}
