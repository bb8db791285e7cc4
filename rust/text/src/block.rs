//! Types for the blocks of a document. [`super::blocks`] finds the blocks.

use super::sentences::trimmed;

/// Byte offsets of a span of the text.
pub type Span = (usize, usize);

/// Marks the absence of a block: the parent of blocks at the top level.
pub const NONE: u32 = u32::MAX;
/// Maximum nesting of containers. The content of deeper ones belongs to the innermost container that is
/// allowed.
pub(crate) const DEEPEST: usize = 24;
/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Heading,
    Paragraph,
    List,
    Item,
    /// A table with one line per row.
    Table,
    Code,
    Quote,
    /// An image alone, followed by its caption.
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
    /// Without blanks at the ends. The spans of the innermost blocks cover all text except blanks.
    pub span: Span,
    pub kind: Kind,
    pub parent: u32,
    /// Index after the last block inside it.
    pub next: u32,
    /// The text that introduces a list or a table: the preceding sentence, or the text of the item that
    /// contains it. May be empty.
    pub lead: Span,
    /// The header rows of a table, which may be those of the preceding table, or the opening fence of code.
    /// May be empty.
    pub head: Span,
}

impl Block {
    pub(crate) fn new(kind: Kind, span: Span, parent: u32) -> Self {
        Self { span, kind, parent, next: 0, lead: (0, 0), head: (0, 0) }
    }

    /// Return whether the block contains no other blocks. `index` is its own index.
    pub fn is_leaf(&self, index: usize) -> bool {
        self.next as usize == index + 1
    }
}

/// Information from a document reader about a span of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Markdown,
    /// Code that its first lines introduce, such as a directive.
    Code {
        heads: u32,
    },
    /// The span is a copy of source lines; the value is the number of the first line.
    Lines {
        first: u32,
    },
}

impl Mark {
    /// Return the mark with this number and value.
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
