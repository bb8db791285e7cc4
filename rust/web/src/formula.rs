//! Formulas of MathML as one line of text.

use crate::tree::{unescaped, Kind, Tree};
use ketrag_text::formulas::{part, spaced};

/// Elements inside each other after which a formula is read as a row of its texts.
const DEEPEST: usize = 200;

/// Return the text of a formula, without its annotations.
pub fn formula(tree: &Tree, root: usize, skipped: &[bool]) -> String {
    let end = tree.nodes[root].end as usize;
    let mut open: Vec<(usize, Vec<String>)> = vec![(root, Vec::new())];
    let mut at = root + 1;
    while at < end {
        close(tree, &mut open, at);
        match &tree.nodes[at].kind {
            _ if skipped[at] => at = tree.nodes[at].end as usize,
            Kind::Text(text) => {
                let text = unescaped(text);
                // Blanks between elements do not count; those inside `mtext` do.
                let is_text = open
                    .last()
                    .is_some_and(|&(at, _)| tree.element(at).is_some_and(|own| own.name == "mtext"));
                let own = if is_text {
                    text.split_whitespace().fold(String::new(), |all, word| all + " " + word) + " "
                } else {
                    text.trim().to_owned()
                };
                if let Some((_, parts)) = open.last_mut().filter(|_| !own.trim().is_empty()) {
                    parts.push(own);
                }
                at += 1;
            }
            Kind::Element(_) => {
                if open.len() < DEEPEST {
                    open.push((at, Vec::new()));
                }
                at += 1;
            }
        }
    }
    close(tree, &mut open, end);
    let parts = open.pop().map_or_else(Vec::new, |(_, parts)| parts);
    spaced(&parts.concat())
}

/// End the elements that end before the node `at`, except the formula itself.
fn close(tree: &Tree, open: &mut Vec<(usize, Vec<String>)>, at: usize) {
    while open.len() > 1 && open.last().is_some_and(|&(own, _)| at >= tree.nodes[own].end as usize) {
        let Some((own, parts)) = open.pop() else { return };
        let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let name = tree.element(own).map_or("", |own| own.name);
        let text = match name {
            "mfrac" => part("fraction", &texts),
            "msqrt" => part("square root", &texts),
            "mroot" => part("root", &texts),
            "msup" => part("power", &texts),
            "msub" => part("index", &texts),
            "munder" => part("index", &texts),
            "mover" => texts.first().map_or_else(String::new, |own| (*own).to_owned()),
            "msubsup" | "munderover" => part("index and power", &texts),
            "mfenced" => format!("({})", texts.join(", ")),
            "mtr" | "mlabeledtr" => texts.join(", "),
            "mtable" => texts.join("; "),
            _ => texts.concat(),
        };
        // An empty element is a part too: the base of a power before which nothing is written.
        if let Some((_, outer)) = open.last_mut() {
            outer.push(text);
        }
    }
}
