//! Web pages: from the serialised body of a parsed page to its main text, headings and links.
//!
//! A parser of HTML has already repaired the page, so [`tree`] only cuts the markup into elements and texts. [`skipped`]
//! marks what is not content (scripts, hidden elements, navigation, comments), [`main_text`] chooses the element with the
//! content, and [`writer`] prints it. Each step takes time in proportion to the page, however deep it is nested.

pub mod links;
mod main_text;
mod measure;
mod skipped;
mod spans;
mod tree;
mod writer;

pub use writer::{Heading, Text};

use tree::Tree;

/// If the main text has fewer characters, the whole page is read too.
const LEAST: usize = 250;
/// Everything outside of boilerplate is returned if the main text has less than this share of its characters.
const SHARE: f64 = 0.3;
/// A text with a smaller share of the page's characters is not returned.
const TINY: f64 = 0.1;

/// What is read from a page.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    pub text: Text,
    /// Targets of links.
    pub links: Vec<String>,
    /// The first-level heading before the text and outside of it, often the name of the site. It may be empty.
    pub banner: String,
}

/// Return the main text of a serialised body, or all of its text if `whole` is set.
///
/// ```
/// let page = ketrag_web::read("<body><nav>Home</nav><p>One <a href=\"b.html\">two</a></p></body>", false);
/// assert_eq!(page.text.text, "One two");
/// assert_eq!(page.links, ["b.html"]);
/// ```
pub fn read(markup: &str, whole: bool) -> Page {
    let tree = Tree::new(markup);
    let links = links::links_of(&tree);
    if whole {
        return Page { text: everything(&tree), links, ..Page::default() };
    }
    let (root, skipped) = main_text::main_element(&tree);
    let text = writer::text_of(&tree, root, &skipped);
    if text.characters < LEAST {
        if let Some(text) = more_text(&tree, text.characters as f64) {
            return Page { text, links, ..Page::default() };
        }
    }
    let banner = main_text::banner(&tree, root);
    Page { text, links, banner }
}

fn everything(tree: &Tree) -> Text {
    writer::text_of(tree, 0, &skipped::without_text(tree))
}

/// Return the text of a page outside of boilerplate, or all of its text, if the main text is a small part of it.
fn more_text(tree: &Tree, main: f64) -> Option<Text> {
    let (boilerplate, _) = skipped::mark_boilerplate(tree, true);
    let rest = writer::text_of(tree, 0, &boilerplate);
    let all = everything(tree);
    let least = TINY * all.characters as f64;
    if main >= SHARE * rest.characters as f64 && main >= least {
        return None;
    }
    Some(if rest.characters as f64 >= least { rest } else { all })
}
