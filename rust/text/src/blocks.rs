//! The blocks of a document: headings, paragraphs, lists, tables, code and quotes, as spans of its text.
//!
//! A document reader marks spans that are Markdown or code, because the text alone does not show it.
//! Everything else is plain text. Its blocks are found by blank lines, indents, list marks and tabs
//! ([`super::plain_blocks`]). The blocks of Markdown are found by its grammar, in this module.

use crate::block::{lines_end, push, DEEPEST};
pub use crate::block::{Block, Kind, Mark, Span, NONE};
use crate::pieces::char_floor;
use crate::plain_blocks::add_plain;
use crate::progress::Progress;
use crate::sentences::{trimmed, Splitter};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Maximum number of characters of a lead-in that are repeated.
const LEAD: usize = 300;
/// Number of bytes before the end of a paragraph that are searched for its last sentence.
const NEAR: usize = 2_000;
/// Words with which captions begin.
const TABLES: [&str; 5] = ["Table", "Tab.", "Tabelle", "Tableau", "Tabla"];
const FIGURES: [&str; 7] = ["Figure", "Fig.", "Abbildung", "Abb.", "Bild", "Figura", "Image"];

/// Return the blocks of `text[from..]`, given marks in ascending order. Marks that overlap an earlier one, and those of
/// lines, are ignored.
pub fn find_blocks(text: &str, from: usize, marks: &[(Span, Mark)], progress: &Progress) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = from;
    for &((start, end), mark) in marks {
        let start = start.max(at);
        if start >= end || matches!(mark, Mark::Lines { .. }) {
            continue;
        }
        add_plain(text, (at, start), &mut blocks);
        match mark {
            Mark::Markdown => add_markdown(text, (start, end), &mut blocks),
            Mark::Code { heads } => add_code(text, (start, end), heads as usize, &mut blocks),
            Mark::Lines { .. } => {}
        }
        at = end;
    }
    add_plain(text, (at, text.len()), &mut blocks);
    complete(text, from, &mut blocks);
    add_leads(text, &mut blocks, progress);
    blocks
}

fn add_code(text: &str, span: Span, heads: usize, blocks: &mut Vec<Block>) {
    let before = blocks.len();
    push(blocks, text, Kind::Code, span, NONE);
    if let Some(block) = blocks.get_mut(before) {
        block.head = (block.span.0, lines_end(text, block.span, heads));
    }
}

/// Return the start of the line of an offset if only blanks are between, not before `from`; else the offset.
fn line_start(text: &str, from: usize, at: usize) -> usize {
    let start = from + text[from..at].trim_end_matches([' ', '\t']).len();
    if start == 0 || text[..start].ends_with('\n') {
        start
    } else {
        at
    }
}

/// Set `next`, assign every non-blank stretch to the innermost block after it, and extend containers over
/// their contents.
fn complete(text: &str, from: usize, blocks: &mut Vec<Block>) {
    for index in (0..blocks.len()).rev() {
        let next = blocks[index].next.max(index as u32 + 1);
        blocks[index].next = next;
        let parent = blocks[index].parent as usize;
        if let Some(parent) = blocks.get_mut(parent) {
            parent.next = parent.next.max(next);
        }
    }
    let mut at = from;
    for (index, block) in blocks.iter_mut().enumerate() {
        if block.is_leaf(index) {
            let end = block.span.1.max(at);
            let mut span = trimmed(text, at, end).unwrap_or((end, end));
            if block.kind == Kind::Table {
                // The first cells of its first row may be empty.
                span.0 = at + text[at..span.0].trim_end_matches('\t').len();
            } else if block.kind == Kind::Code && block.parent == NONE && span.0 < span.1 {
                // The first line keeps its indentation, as all others do.
                span.0 = line_start(text, at, span.0);
            }
            block.span = span;
            at = end;
        } else {
            block.span = (usize::MAX, 0);
        }
    }
    for index in (0..blocks.len()).rev() {
        let (span, parent) = (blocks[index].span, blocks[index].parent);
        if let Some(outer) = blocks.get_mut(parent as usize) {
            outer.span = (outer.span.0.min(span.0), outer.span.1.max(span.1));
        }
    }
    let index = blocks.len() as u32;
    push(blocks, text, Kind::Paragraph, (at, text.len()), NONE);
    if let Some(last) = blocks.get_mut(index as usize) {
        last.next = index + 1;
    }
}

/// Find the text that introduces each list and table.
fn add_leads(text: &str, blocks: &mut [Block], progress: &Progress) {
    // The last block so far inside each block and at the top level.
    let mut last = vec![NONE; blocks.len()];
    let mut top = NONE;
    for index in 0..blocks.len() {
        let Block { kind, parent, .. } = blocks[index];
        let slot = last.get_mut(parent as usize).unwrap_or(&mut top);
        let last_index = std::mem::replace(slot, index as u32) as usize;
        let before = blocks.get(last_index).copied();
        let Some(before) = before.filter(|before| before.kind == Kind::Paragraph) else { continue };
        if kind == Kind::Paragraph {
            let [image, words] = [before.span, blocks[index].span].map(|(a, b)| &text[a..b]);
            if is_image(image) && is_caption(words, &FIGURES) {
                blocks[last_index].kind = Kind::Figure;
            }
        }
        if !matches!(kind, Kind::List | Kind::Table | Kind::Code) {
            continue;
        }
        let is_inner = blocks.get(parent as usize).is_some_and(|outer| outer.kind == Kind::Item);
        let words = &text[before.span.0..before.span.1];
        if is_inner && kind == Kind::List {
            let end = char_floor(text, before.span.1.min(before.span.0 + LEAD));
            blocks[index].lead = (before.span.0, end);
        } else if introduces(words, kind) {
            blocks[index].lead = last_sentence(text, before.span, progress);
        }
    }
}

/// Return whether a paragraph introduces the block that follows it.
fn introduces(words: &str, kind: Kind) -> bool {
    let bare = words.trim_end_matches(['*', '_', '`', ' ']);
    if bare.ends_with([':', '：']) {
        return true;
    }
    kind == Kind::Table && is_caption(words, &TABLES)
}

/// Return whether a paragraph is a caption that begins with one of some words.
fn is_caption(words: &str, begins: &[&str]) -> bool {
    let bare = words.trim_start_matches(['*', '_', ' ']);
    words.len() <= LEAD && begins.iter().any(|word| bare.starts_with(word))
}

/// Return whether a paragraph of Markdown is nothing but an image.
fn is_image(words: &str) -> bool {
    words.starts_with("![") && words.ends_with(')') && words.matches("](").count() == 1
}

fn last_sentence(text: &str, span: Span, progress: &Progress) -> Span {
    let from = char_floor(text, span.1.saturating_sub(NEAR)).max(span.0);
    let mut found = Vec::new();
    // Only a cancelled build returns an error here, and it stops at its next check.
    let _ = Splitter::Standard.split(&text[from..span.1], progress, &mut found);
    let (start, end) = found.last().copied().unwrap_or((0, span.1 - from));
    let start = start.max(char_floor(&text[from..], end.saturating_sub(LEAD)));
    (from + start, from + end)
}

// Blocks of Markdown: CommonMark with the tables and footnotes of GitHub.

/// Longer spans are read as plain text, because the parser's tree takes several times the memory of the text.
const LARGEST: usize = 64 << 20;

/// Append the blocks of a stretch of Markdown.
fn add_markdown(text: &str, span: Span, blocks: &mut Vec<Block>) {
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
    /// The containers that are open.
    open: Vec<u32>,
    /// Number of open containers that are nested too deeply.
    deeper: usize,
    /// Number of open tags inside a block that is not divided.
    inside: usize,
    /// Text of an item outside any paragraph.
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
        let span = crate::sentences::trimmed(self.text, span.0, span.1).unwrap_or((span.0, span.0));
        self.blocks.push(Block::new(kind, span, parent));
    }

    fn end(&mut self) {
        self.end_text();
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let Some(index) = self.open.pop().map(|index| index as usize) else { return };
        // An item that contains only text is not divided further.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown<'a>(text: &'a str, marks: &[(Span, Mark)]) -> Vec<(&'static str, &'a str)> {
        let blocks = find_blocks(text, 0, marks, &Progress::none());
        blocks.iter().map(|block| (block.kind.name(), &text[block.span.0..block.span.1])).collect()
    }

    #[test]
    fn plain_text_has_paragraphs_and_lists() {
        let text = "One line\nand another.\n\nDo this:\n- first\n  goes on\n- second\n\n1. Not of the list above\n\nEnd.";
        let found = shown(text, &[]);
        let kinds: Vec<&str> = found.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, ["paragraph", "paragraph", "list", "item", "item", "item", "paragraph"]);
        assert_eq!(found[3].1, "- first\n  goes on");
        let blocks = find_blocks(text, 0, &[], &Progress::none());
        assert_eq!(&text[blocks[2].lead.0..blocks[2].lead.1], "Do this:");
    }

    #[test]
    fn markdown_has_all_kinds() {
        let text = "# Title\n\nSteps:\n\n1. One\n   * inner\n2. Two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```\n\n> said\n";
        let found = shown(text, &[((0, text.len()), Mark::Markdown)]);
        let kinds: Vec<&str> = found.iter().map(|(kind, _)| *kind).collect();
        let wanted =
            ["heading", "paragraph", "list", "item", "paragraph", "list", "item", "item", "table", "code"];
        assert_eq!(kinds, [&wanted[..], &["quote", "paragraph"]].concat());
        let blocks = find_blocks(text, 0, &[((0, text.len()), Mark::Markdown)], &Progress::none());
        let of = |span: Span| &text[span.0..span.1];
        assert_eq!((of(blocks[2].lead), of(blocks[5].lead)), ("Steps:", "1. One"));
        assert_eq!((of(blocks[8].head), of(blocks[9].head)), ("| a | b |\n|---|---|", "```py"));
        assert_eq!(of(blocks[7].span), "2. Two");
        assert_eq!(of(blocks[11].span), "> said");
    }

    #[test]
    fn an_image_with_a_caption_is_a_figure() {
        let text = "![A ship](fram.png)\n\n*Figure 1: The Fram.*\n\n![Alone](a.png)\n\nText.";
        let found = shown(text, &[((0, text.len()), Mark::Markdown)]);
        let kinds: Vec<&str> = found.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, ["figure", "paragraph", "paragraph", "paragraph"]);
    }

    #[test]
    fn marks_of_readers() {
        let text = "Before\n\nA\tB\n1\t2\n\nx = 1\n\ny = 2\n\n- after";
        let found = shown(text, &[((17, 29), Mark::Code { heads: 1 })]);
        assert_eq!(found[1..3], [("table", "A\tB\n1\t2"), ("code", "x = 1\n\ny = 2")]);
        let blocks = find_blocks(text, 0, &[((17, 29), Mark::Code { heads: 1 })], &Progress::none());
        assert_eq!(blocks[2].head, (17, 22));
    }

    #[test]
    fn deep_and_long_ones_take_linear_time() {
        let deep: String = (0..1_000).map(|n| format!("{}- item\n", "  ".repeat(n))).collect();
        let long = format!("| a |\n|---|\n| {} |", "x ".repeat(1 << 20));
        for text in [deep, long, "> ".repeat(5_000), "- ".repeat(5_000), "*a _b [c".repeat(10_000)] {
            let blocks = find_blocks(&text, 0, &[((0, text.len()), Mark::Markdown)], &Progress::none());
            assert!(!blocks.is_empty());
        }
    }

    proptest! {
        #[test]
        fn the_innermost_cover_the_text(
            parts in prop::collection::vec("(# |- |  - |1\\. |2\\) |> |```\n|\\| a \\| b \\|\n\\|---\\|---\\|\n|[a-z]{1,5}|é|\\[\\^1\\]: |<b>|:| |\n|\n\n|\t){0,4}", 0..30),
            is_markdown in any::<bool>(),
        ) {
            let text = parts.concat();
            let marks = [((0, text.len()), Mark::Markdown)];
            let blocks = find_blocks(&text, 0, if is_markdown { &marks } else { &[] }, &Progress::none());
            let mut at = 0;
            for (index, block) in blocks.iter().enumerate() {
                let (a, b) = block.span;
                prop_assert!(a <= b && block.next as usize > index && block.next as usize <= blocks.len());
                if let Some(outer) = blocks.get(block.parent as usize) {
                    prop_assert!(outer.span.0 <= a && b <= outer.span.1 && (block.parent as usize) < index);
                }
                for (a, b) in [block.lead, block.head] {
                    prop_assert!(text.get(a..b).is_some());
                }
                if block.is_leaf(index) {
                    prop_assert_eq!(text[at..a].trim(), "");
                    at = b;
                }
            }
            prop_assert_eq!(text[at..].trim(), "");
        }
    }
}
