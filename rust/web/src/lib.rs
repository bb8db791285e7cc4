//! Web pages: from the serialised body of a parsed page to its main text, headings and links.
//!
//! A parser of HTML has already repaired the page, so [`tree`] only cuts the markup into elements and texts. [`skipped`]
//! marks what is not content (scripts, hidden elements, navigation, comments), [`main_text`] chooses the element with the
//! content, and [`writer`] prints it. Each step takes time in proportion to the page, however deep it is nested.

pub mod links;
mod main_text;
mod measure;
mod skipped;
mod tree;
mod writer;

pub use writer::{Heading, Text};

use tree::Tree;

/// If the main text has fewer characters, the whole page is read too.
const LEAST: usize = 250;
/// The whole page is returned if the main text has less than this share of its characters.
const SHARE: f64 = 0.3;

/// Return the main text of a serialised body, or all of its text if `whole` is set, and the targets of its links.
///
/// ```
/// let (text, links) = ketrag_web::read("<body><nav>Home</nav><p>One <a href=\"b.html\">two</a></p></body>", false);
/// assert_eq!(text.text, "One two");
/// assert_eq!(links, ["b.html"]);
/// ```
pub fn read(markup: &str, whole: bool) -> (Text, Vec<String>) {
    let tree = Tree::new(markup);
    let links = links::links_of(&tree);
    let everything = |tree: &Tree| writer::text_of(tree, 0, &skipped::without_text(tree));
    if whole {
        return (everything(&tree), links);
    }
    let (root, skipped) = main_text::main_element(&tree);
    let text = writer::text_of(&tree, root, &skipped);
    if text.characters < LEAST {
        let other = everything(&tree);
        if (text.characters as f64) < SHARE * other.characters as f64 {
            return (other, links);
        }
    }
    (text, links)
}
