//! Blocks of Markdown, by CommonMark and the tables and footnotes of GitHub.

use super::block::{lines_end, push, Block, Kind, Span, DEEPEST, NONE};
use super::plain_blocks::add_plain;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Longer stretches are read as plain text: the parser's tree takes several times the memory of the text.
const LARGEST: usize = 64 << 20;

/// Append the blocks of a stretch of Markdown.
pub(crate) fn add_markdown(text: &str, span: Span, blocks: &mut Vec<Block>) {
    let part = &text[span.0..span.1];
    if part.len() > LARGEST {
        return add_plain(text, span, blocks);
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    let mut reader = Reader { text, blocks, open: Vec::new(), deeper: 0, inside: 0, tight: None };
    for (event, range) in Parser::new_ext(part, options).into_offset_iter() {
        reader.add(event, (span.0 + range.start, span.0 + range.end));
    }
}

struct Reader<'a> {
    text: &'a str,
    blocks: &'a mut Vec<Block>,
    /// The blocks that hold others and are open.
    open: Vec<u32>,
    /// Open ones below the deepest.
    deeper: usize,
    /// Open tags inside a block that is not divided.
    inside: usize,
    /// Text of an item that is not in a paragraph.
    tight: Option<Span>,
}

impl Reader<'_> {
    fn add(&mut self, event: Event<'_>, span: Span) {
        match event {
            Event::Start(_) if self.inside > 0 => self.inside += 1,
            Event::End(_) if self.inside > 0 => self.inside -= 1,
            Event::Start(tag) => self.start(&tag, span),
            Event::End(
                TagEnd::List(_) | TagEnd::Item | TagEnd::BlockQuote(_) | TagEnd::FootnoteDefinition,
            ) => {
                self.end();
            }
            Event::End(_) | Event::Rule => {}
            _ if self.inside > 0 => {}
            _ => self.add_text(span),
        }
    }

    fn start(&mut self, tag: &Tag<'_>, span: Span) {
        let kind = match tag {
            Tag::Heading { .. } => Kind::Heading,
            Tag::Paragraph | Tag::HtmlBlock | Tag::MetadataBlock(_) => Kind::Paragraph,
            Tag::CodeBlock(_) => Kind::Code,
            Tag::Table(_) => Kind::Table,
            Tag::List(_) => return self.begin(Kind::List, span),
            Tag::Item => return self.begin(Kind::Item, span),
            Tag::BlockQuote(_) | Tag::FootnoteDefinition(_) => return self.begin(Kind::Quote, span),
            _ => {
                self.inside = 1;
                return self.add_text(span);
            }
        };
        self.end_text();
        self.inside = 1;
        let index = self.blocks.len();
        push(self.blocks, self.text, kind, span, self.parent());
        let Some(block) = self.blocks.get_mut(index) else { return };
        let lines = match tag {
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => 1,
            Tag::Table(_) => 2,
            _ => return,
        };
        block.head = (block.span.0, lines_end(self.text, block.span, lines));
    }

    fn begin(&mut self, kind: Kind, span: Span) {
        self.end_text();
        if self.open.len() >= DEEPEST {
            self.deeper += 1;
            return;
        }
        let parent = self.parent();
        self.open.push(self.blocks.len() as u32);
        let span = super::sentences::trimmed(self.text, span.0, span.1).unwrap_or((span.0, span.0));
        self.blocks.push(Block::new(kind, span, parent));
    }

    fn end(&mut self) {
        self.end_text();
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let Some(index) = self.open.pop().map(|index| index as usize) else { return };
        // An item with nothing but a text is not divided further.
        if let [block, inner] = &self.blocks[index..] {
            if (block.kind, inner.kind) == (Kind::Item, Kind::Paragraph) {
                self.blocks.pop();
            }
        }
    }

    fn add_text(&mut self, span: Span) {
        let (start, end) = self.tight.unwrap_or(span);
        self.tight = Some((start.min(span.0), end.max(span.1)));
    }

    fn end_text(&mut self) {
        if let Some(span) = self.tight.take() {
            push(self.blocks, self.text, Kind::Paragraph, span, self.parent());
        }
    }

    fn parent(&self) -> u32 {
        self.open.last().copied().unwrap_or(NONE)
    }
}
