//! Web pages: from the serialised body of a parsed page to its main text, headings and links.
//!
//! A parser of HTML has already repaired the page, so [`tree`] only cuts the markup into elements and texts. [`skipped`]
//! marks what is not content (scripts, hidden elements, navigation, comments), [`main_text`] chooses the element with the
//! content, and [`writer`] prints it. Each step takes time in proportion to the page, however deep it is nested.

mod formula;
mod limits;
mod main_text;
mod measure;
mod skipped;
mod tree;
mod writer;

use crate::tree::{unescaped, Tree};
pub use limits::limit_markup;
use std::collections::HashSet;
pub use writer::{Heading, Text};

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

/// Return the main text of a serialised body, or all of its text but hidden elements if `whole` is set.
///
/// ```
/// let page = ketrag_web::read("<body><nav>Home</nav><p>One <a href=\"b.html\">two</a></p></body>", false);
/// assert_eq!(page.text.text, "One two");
/// assert_eq!(page.links, ["b.html"]);
/// ```
pub fn read(markup: &str, whole: bool) -> Page {
    let tree = Tree::new(markup);
    let links = links_of(&tree);
    if whole {
        let seen = writer::text_of(&tree, 0, &skipped::unseen(&tree));
        let text = if seen.characters > 0 { seen } else { everything(&tree) };
        return Page { text, links, ..Page::default() };
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

// The links of a page to other pages, without those of its navigation.
//
// They are read from all of the page, because lists that are mostly links are left out of its text.

const MOST_LINKS: usize = 1_000;
const MOST_PAGES: usize = 2_000;
const LONGEST: usize = 2_000;
/// Classes, ids and roles of elements that hold the navigation of a site.
const NAVIGATION: [&str; 22] = [
    "navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "nav", "navbar",
    "navheader", "navfooter", "sidebar", "sphinxsidebar", "mobile-nav", "mainmenu", "breadcrumb",
    "breadcrumbs", "header", "footer", "related", "pagination", "prev-next",
];

/// Return the targets of links in order and without repetitions. A target in the same site is returned without its
/// fragment. Links within the page are left out.
fn links_of(tree: &Tree) -> Vec<String> {
    let mut links: Vec<String> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    let mut pages = 0;
    let mut at = 0;
    while at < tree.nodes.len() {
        let next = at + 1;
        let Some(element) = tree.element(at) else {
            at = next;
            continue;
        };
        at = match element.name {
            "a" => {
                let target: String = unescaped(element.href).trim().chars().take(LONGEST).collect();
                let (target, in_site) = match scheme(&target) {
                    None => (target.split('#').next().unwrap_or_default().to_owned(), true),
                    Some(scheme) if ["http", "https", "ftp"].contains(&scheme.to_lowercase().as_str()) => {
                        (target, false)
                    }
                    Some(_) => (String::new(), false),
                };
                let room = if in_site { pages < MOST_PAGES } else { links.len() - pages < MOST_LINKS };
                if room && !target.is_empty() && known.insert(target.clone()) {
                    links.push(target);
                    pages += usize::from(in_site);
                }
                next
            }
            "nav" | "header" | "footer" | "aside" => tree.nodes[at].end as usize,
            "div" | "table" | "ul" | "section"
                if is_navigation(&[element.class, element.id, element.role]) =>
            {
                tree.nodes[at].end as usize
            }
            _ => next,
        };
    }
    links
}

/// Return the scheme of an address, `http` if it begins with `//`, or nothing if it is in the same site.
fn scheme(target: &str) -> Option<&str> {
    if target.starts_with("//") {
        return Some("http");
    }
    let name = &target[..target.find(':')?];
    let mut letters = name.bytes();
    let valid = letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && name.len() <= 21
        && letters.all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b));
    valid.then_some(name)
}

fn is_navigation(names: &[&str]) -> bool {
    names
        .iter()
        .flat_map(|own| own.split_ascii_whitespace())
        .any(|word| NAVIGATION.iter().any(|name| word.eq_ignore_ascii_case(name)))
}
