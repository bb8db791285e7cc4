//! Choose the element that has the content of a page.

use super::measure::{sizes_of, Size};
use super::skipped::{is_section, mark_boilerplate, without_text};
use super::tree::{Element, Tree};
use super::writer::text_of;

/// Return the element with the content, and the nodes that are skipped.
pub fn main_element(tree: &Tree) -> (usize, Vec<bool>) {
    let (mut skipped, before) = mark_boilerplate(tree, true);
    let mut sizes = sizes_of(tree, &skipped);
    if sizes[0].content * 2 < before[0].content {
        let (other, _) = mark_boilerplate(tree, false);
        let others = sizes_of(tree, &other);
        if sizes[0].content * 2 < others[0].content {
            (skipped, sizes) = (other, others);
        }
    }
    if sizes[0].content * 10 < sizes[0].all {
        sizes.iter_mut().for_each(|own| own.content = own.all);
    }
    let root = chosen(tree, &skipped, &sizes);
    skip_links(tree, root, &sizes, &mut skipped);
    (root, skipped)
}

/// Return the most specific element that has enough of the content.
fn chosen(tree: &Tree, skipped: &[bool], sizes: &[Size]) -> usize {
    let total = f64::from(sizes[0].content.max(1));
    let mut best = (0, 0);
    let mut at = 1;
    while at < tree.nodes.len() {
        if skipped[at] {
            at = tree.nodes[at].end as usize;
            continue;
        }
        if let Some(element) = tree.element(at) {
            if let Some((rank, share)) = rank_of(element) {
                if f64::from(sizes[at].content) >= share * total
                    && (rank, sizes[at].content) > (best.0, sizes[best.1].content)
                {
                    best = (rank, at);
                }
            }
        }
        at += 1;
    }
    if best.1 == 0 {
        return densest(tree, skipped, sizes);
    }
    around_its_class(tree, skipped, sizes, best.1)
}

/// Return an element, or if the content is spread over several of its class, the one around them.
fn around_its_class(tree: &Tree, skipped: &[bool], sizes: &[Size], best: usize) -> usize {
    let Some(class) = tree.element(best).map(|own| own.class).filter(|own| !own.is_empty()) else {
        return best;
    };
    let (mut together, mut at) = (0, 1);
    while at < tree.nodes.len() {
        let alike = tree.element(at).is_some_and(|own| own.class == class);
        if alike && !skipped[at] {
            together += sizes[at].content;
        }
        at = if alike || skipped[at] { tree.nodes[at].end as usize } else { at + 1 };
    }
    let mut root = best;
    if f64::from(together) > 1.1 * f64::from(sizes[best].content) {
        while root > 0 && sizes[root].content < together {
            root = tree.nodes[root].parent as usize;
        }
    }
    root
}

/// Descend while one child has nearly all of the content, except into a section of a text.
fn densest(tree: &Tree, skipped: &[bool], sizes: &[Size]) -> usize {
    let mut root = 0;
    while let Some(child) = densest_child(tree, skipped, sizes, root) {
        root = child;
    }
    root
}

fn densest_child(tree: &Tree, skipped: &[bool], sizes: &[Size], root: usize) -> Option<usize> {
    let mut found = None;
    let mut at = root + 1;
    while at < tree.nodes[root].end as usize {
        let content = f64::from(sizes[at].content);
        if let (Some(element), false) = (tree.element(at), skipped[at]) {
            let is_block = matches!(
                element.name,
                "body" | "div" | "section" | "article" | "main" | "table" | "tbody" | "tr" | "td"
            );
            if is_block
                && content > 0.0
                && content >= 0.9 * f64::from(sizes[root].content)
                && !is_section(element)
            {
                found = Some(at);
            } else if element.name == "p" && content > 0.0 {
                return None; // a paragraph next to it
            }
        }
        at = tree.nodes[at].end as usize;
    }
    found
}

/// Return how much the name of an element says that it has the content, and the share of the content that it must have.
fn rank_of(element: &Element) -> Option<(u32, f64)> {
    if !matches!(element.name, "div" | "article" | "main" | "section" | "td" | "span") {
        return None;
    }
    if element.itemprop == "articleBody" {
        return Some((6, 0.4));
    }
    let names = [element.class, element.id].map(|own| own.to_ascii_lowercase().replace(['-', '_'], ""));
    let any = |parts: &[&str]| names.iter().any(|own| parts.iter().any(|part| own.contains(part)));
    if any(&[
        "articlebody", "articletext", "articlecontent", "entrycontent", "postcontent", "postbody",
        "posttext", "storybody", "storycontent", "storytext", "bodytext", "fieldbody", "newscontent",
        "newstext", "blogcontent", "singlecontent",
    ]) {
        return Some((5, 0.4));
    }
    if element.name == "article" {
        return Some((4, 0.5));
    }
    if any(&["maincontent", "contentmain", "contentbody", "pagecontent", "fulltext"]) {
        return Some((3, 0.5));
    }
    if element.name == "main" || element.role == "main" {
        return Some((2, 0.5));
    }
    if names.iter().any(|own| own == "content" || own == "main") {
        return Some((1, 0.5));
    }
    None
}

/// Return the first-level heading before the main text and outside of it, if it is short.
pub fn banner(tree: &Tree, root: usize) -> String {
    const LONGEST: usize = 80;
    let mut at = 0;
    while at < root {
        let end = tree.nodes[at].end as usize;
        match tree.element(at).map(|own| own.name) {
            Some("h1") => {
                let heading = text_of(tree, at, &without_text(tree));
                return if heading.characters <= LONGEST { heading.text } else { String::new() };
            }
            Some("nav" | "aside" | "footer") => at = end,
            _ => at += 1,
        }
    }
    String::new()
}

/// Return whether an element or one around it has the name of an article.
fn is_article(tree: &Tree, root: usize) -> bool {
    let mut at = root;
    loop {
        if tree.element(at).and_then(rank_of).is_some_and(|(rank, _)| rank >= 4) {
            return true;
        }
        if at == 0 {
            return false;
        }
        at = tree.nodes[at].parent as usize;
    }
}

/// A bulleted list is a menu if more than this share of its text is in links.
const LIST_MENU: f64 = 0.7;
/// A block without content is a menu if more than this share of its text is in links.
const MENU: f64 = 0.5;

/// Skip what consists mostly of links, with its heading.
///
/// A second-level heading is kept if other text of its section follows, which would be cited under the heading before.
fn skip_links(tree: &Tree, root: usize, sizes: &[Size], skipped: &mut [bool]) {
    let is_article = is_article(tree, root);
    let is_heading =
        |at: usize| tree.element(at).is_some_and(|own| matches!(own.name, "h2" | "h3" | "h4" | "h5" | "h6"));
    // For each element: its last child with text, and the last heading that was skipped.
    let (mut before, mut dropped) = (vec![0; tree.nodes.len()], vec![0; tree.nodes.len()]);
    let mut at = root;
    while at < tree.nodes[root].end as usize {
        let parent = tree.nodes[at].parent as usize;
        if let (Some(element), false) = (tree.element(at), skipped[at]) {
            skipped[at] = is_menu(element, sizes[at], is_article);
            if skipped[at] && is_heading(before[parent]) {
                dropped[parent] = before[parent];
                skipped[before[parent]] = true;
            }
        }
        if !skipped[at] && sizes[at].all > 0 {
            let heading = dropped[parent];
            if !is_article && !is_heading(at) && tree.element(heading).is_some_and(|own| own.name == "h2") {
                skipped[heading] = false;
            }
            dropped[parent] = 0;
        }
        if sizes[at].all > 0 && (skipped[at] || tree.element(at).is_some()) {
            before[parent] = at;
        } else if sizes[at].all > 0 {
            before[parent] = 0;
        }
        at = if skipped[at] { tree.nodes[at].end as usize } else { at + 1 };
    }
}

/// Return whether an element consists mostly of links.
fn is_menu(element: &Element, size: Size, is_article: bool) -> bool {
    let linked = f64::from(size.linked) / f64::from(size.all.max(1));
    match element.name {
        "ul" => linked > LIST_MENU,
        "div" | "section" => linked > MENU && size.content == 0,
        "ol" | "table" | "dl" => linked > MENU && size.content == 0 && is_article,
        "p" | "li" | "h3" | "h4" => linked > 0.8 && size.content == 0 && size.all < 200 && is_article,
        _ => false,
    }
}
