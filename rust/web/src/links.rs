//! The links of a page to other pages, without those of its navigation.
//!
//! They are read from all of the page, because lists that are mostly links are left out of its text.

use super::tree::{unescaped, Tree};
use std::collections::HashSet;

const MOST_LINKS: usize = 1_000;
const MOST_PAGES: usize = 2_000;
const LONGEST: usize = 2_000;
/// Classes, ids and roles of elements that hold the navigation of a site.
const NAVIGATION: [&str; 22] = [
    "navigation",
    "banner",
    "contentinfo",
    "search",
    "complementary",
    "menu",
    "menubar",
    "nav",
    "navbar",
    "navheader",
    "navfooter",
    "sidebar",
    "sphinxsidebar",
    "mobile-nav",
    "mainmenu",
    "breadcrumb",
    "breadcrumbs",
    "header",
    "footer",
    "related",
    "pagination",
    "prev-next",
];

/// Return the targets of links in order and without repetitions. A target in the same site is returned without its
/// fragment. Links within the page are left out.
pub fn links_of(tree: &Tree) -> Vec<String> {
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
