//! How much text each element has, and how much of it is in links.

use super::tree::{Kind, Tree};

/// Characters other than blanks in an element's subtree.
#[derive(Clone, Copy, Default)]
pub struct Size {
    pub all: u32,
    pub linked: u32,
    /// In paragraphs and the like that are not mostly links: what counts as content.
    pub content: u32,
}

impl Size {
    /// Return the characters outside of links.
    pub fn plain(self) -> u32 {
        self.all - self.linked
    }

    fn add(&mut self, other: Size) {
        self.all += other.all;
        self.linked += other.linked;
        self.content += other.content;
    }
}

/// A shorter text is a label rather than content.
const LABEL: u32 = 30;

/// Return the sizes of all nodes; those of skipped subtrees are 0.
pub fn sizes_of(tree: &Tree, skipped: &[bool]) -> Vec<Size> {
    let mut sizes = vec![Size::default(); tree.nodes.len()];
    let mut gone = 0;
    for (at, node) in tree.nodes.iter().enumerate() {
        if at < gone {
            continue;
        }
        if skipped[at] {
            gone = node.end as usize;
        } else if let Kind::Text(text) = node.kind {
            sizes[at].all = text.chars().filter(|c| !c.is_whitespace()).count() as u32;
        }
    }
    for at in (1..tree.nodes.len()).rev() {
        let mut own = sizes[at];
        if let Kind::Element(element) = &tree.nodes[at].kind {
            match element.name {
                "a" | "button" => (own.linked, own.content) = (own.all, 0),
                "pre" if own.all >= LABEL => own.content = own.all - own.linked,
                "p" | "dd" | "li" | "td" | "blockquote" | "div" | "section"
                    if own.content == 0 && own.all >= LABEL && own.linked * 2 < own.all =>
                {
                    own.content = own.all - own.linked;
                }
                _ => {}
            }
            sizes[at] = own;
        }
        sizes[tree.nodes[at].parent as usize].add(own);
    }
    sizes
}
