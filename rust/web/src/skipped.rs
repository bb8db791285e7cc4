//! Which elements of a page are boilerplate: navigation, comments, links to share a page, and the like.

use super::measure::{sizes_of, Size};
use super::tree::{Element, Kind, Tree};

/// Parts of names of boilerplate that may have more text than the content.
const LARGE_BOILERPLATE: &[&str] = &[
    "comments", "commentlist", "comment-list", "disqus", "respond", "related", "recommend", "sidebar",
    "footer", "popular",
];

/// Words of classes and ids that name boilerplate.
const BOILERPLATE: &[&str] = &[
    "nav", "navbar", "navbox", "navigation", "subnav", "menu", "submenu", "breadcrumb", "breadcrumbs",
    "footer", "sidebar", "cookie", "cookies", "consent", "gdpr", "newsletter", "subscribe", "subscription",
    "signup", "share", "shares", "sharing", "sharebar", "sharedaddy", "social", "sociable", "addthis",
    "related", "recommended", "recommendations", "recommend", "popular", "trending", "outbrain", "taboola",
    "comments", "comment", "commentlist", "disqus", "respond", "reply", "promo", "promoted", "promotion",
    "advert", "advertisement", "ads", "ad", "adsense", "sponsor", "sponsored", "banner", "widget", "widgets",
    "toolbar", "pagination", "pager", "paging", "tags", "tagcloud", "taglist", "byline", "timestamp",
    "modal", "popup", "lightbox", "overlay", "login", "paywall", "rating", "ratings", "author", "meta",
    "metadata", "postmeta", "revhistory", "copyright", "disclaimer", "embed", "tooltip", "skip", "noprint",
    "hidden", "masthead", "topbar", "docnav", "navheader", "navfooter", "legalnotice", "syndication",
    "viral", "mostread", "readmore", "morelinks", "alsolike", "credits", "credit", "bio", "biography",
    "attachment",
];

/// Mark elements that never show text, such as scripts, and the line numbers of listings.
pub fn without_text(tree: &Tree) -> Vec<bool> {
    let contents = contents_of(tree);
    let forms = filled_forms(tree);
    let mut form = 0; // the next filled form that ends after the node
    let is_skipped = |at: usize, own: &Element| {
        while forms.get(form).is_some_and(|range| range.end <= at) {
            form += 1;
        }
        if is_field(own) && forms.get(form).is_some_and(|range| range.contains(&at)) {
            own.hidden
                || (own.name == "input" && !own.has_value() && !own.is_box())
                || (own.name == "option" && !own.chosen)
        } else if own.name == "svg" {
            !contents[at].has_labels
        } else {
            is_without_text(own) || (contents[at].is_numbers() && may_be_line_numbers(own))
        }
    };
    let mut is_skipped = is_skipped;
    (0..tree.nodes.len()).map(|at| tree.element(at).is_some_and(|own| is_skipped(at, own))).collect()
}

fn is_field(element: &Element) -> bool {
    matches!(element.name, "input" | "textarea" | "select" | "option")
}

/// Return the nodes of the forms in which somebody has entered a text or checked a box, in order.
fn filled_forms(tree: &Tree) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tree.nodes.len() {
        let end = tree.nodes[at].end as usize;
        if !tree.element(at).is_some_and(|own| own.name == "form" && own.role != "search") {
            at += 1;
            continue;
        }
        let is_filled = (at + 1..end).any(|inner| match &tree.nodes[inner].kind {
            Kind::Element(own) => own.has_value() || (own.is_box() && own.chosen),
            Kind::Text(text) => {
                let parent = tree.element(tree.nodes[inner].parent as usize);
                parent.is_some_and(|own| own.name == "textarea") && !text.trim().is_empty()
            }
        });
        if is_filled {
            found.push(at..end);
        }
        at = end.max(at + 1);
    }
    found
}

/// What is in the subtree of a node.
#[derive(Clone, Copy, Default)]
struct Contents {
    has_digits: bool,
    has_others: bool,
    /// Texts of a picture (SVG).
    has_labels: bool,
}

impl Contents {
    fn is_numbers(self) -> bool {
        self.has_digits && !self.has_others
    }
}

fn contents_of(tree: &Tree) -> Vec<Contents> {
    let mut found = vec![Contents::default(); tree.nodes.len()];
    for at in (1..tree.nodes.len()).rev() {
        match &tree.nodes[at].kind {
            Kind::Text(text) => {
                found[at].has_digits = text.bytes().any(|b| b.is_ascii_digit());
                let is_number = |b: u8| b.is_ascii_digit() || b.is_ascii_whitespace() || b".:|".contains(&b);
                found[at].has_others = !text.bytes().all(is_number);
            }
            Kind::Element(own) => {
                found[at].has_labels |= matches!(own.name, "text" | "foreignObject" | "foreignobject");
            }
        }
        let own = found[at];
        let parent = &mut found[tree.nodes[at].parent as usize];
        parent.has_digits |= own.has_digits;
        parent.has_others |= own.has_others;
        parent.has_labels |= own.has_labels;
    }
    found
}

/// Classes of the line numbers of a listing.
const LINE_NUMBERS: [&str; 22] = [
    "ln", "lnt", "lineno", "linenos", "lineno-container", "linenumber", "linenumbers", "line-number",
    "line-numbers", "line-numbers-rows", "line_number", "linenodiv", "linenr", "lnum", "gutter", "blob-num",
    "hljs-ln-numbers", "hljs-ln-n", "code-line-number", "react-line-number", "react-code-line-number", "no",
];

fn may_be_line_numbers(element: &Element) -> bool {
    let mut classes = element.class.split_ascii_whitespace();
    matches!(element.name, "span" | "td" | "th" | "div" | "pre" | "a" | "code" | "b" | "i")
        && (element.unselectable
            || classes.any(|own| LINE_NUMBERS.iter().any(|name| own.eq_ignore_ascii_case(name))))
}

/// Mark elements that show no text, and those that their style hides from the reader of a mail.
pub fn unseen(tree: &Tree) -> Vec<bool> {
    let mut skipped = without_text(tree);
    for (at, own) in skipped.iter_mut().enumerate() {
        *own |= tree.element(at).is_some_and(|own| own.hidden && !own.class.contains("mathml"));
    }
    skipped
}

fn is_without_text(element: &Element) -> bool {
    matches!(
        element.name,
        "script"
            | "style"
            | "template"
            | "iframe"
            | "noembed"
            | "noframes"
            | "noscript"
            | "xmp"
            | "object"
            | "video"
            | "audio"
            | "canvas"
            | "select"
            | "button"
            | "textarea"
            | "datalist"
            | "input"
            | "map"
            | "applet"
            | "annotation"
            | "annotation-xml"
            | "title" // of a picture (SVG)
            | "desc"
            | "metadata"
            | "defs"
    ) || element.class == "katex-html" // the same formula as in the MathML before it
}

/// Mark boilerplate, also by the names of elements if `by_name` is set, and return the sizes of all elements before.
pub fn mark_boilerplate(tree: &Tree, by_name: bool) -> (Vec<bool>, Vec<Size>) {
    let mut skipped = without_text(tree);
    let forms: Vec<usize> = filled_forms(tree).into_iter().map(|range| range.start).collect();
    let sizes = sizes_of(tree, &skipped);
    let total = sizes[0].plain();
    let mut at = 0;
    let mut caption = 0; // where the last caption of a figure ends
    let mut code = 0; // where the last element with code ends: a highlighter marks its comments by a class
    while at < tree.nodes.len() {
        let node = &tree.nodes[at];
        if !skipped[at] {
            if let Some(element) = tree.element(at) {
                if element.name == "a" && is_permalink(tree, at) {
                    skipped[at] = true;
                }
                if matches!(element.name, "pre" | "code") {
                    code = code.max(node.end as usize);
                }
                if element.name == "figcaption" {
                    caption = caption.max(node.end as usize);
                }
                let share_of = |own: u32, all: u32| f64::from(own) / f64::from(all.max(1));
                let share = share_of(sizes[at].plain(), total).min(share_of(sizes[at].all, sizes[0].all));
                let by_name = by_name && at >= caption && (at >= code || element.name != "span");
                let is_filled = element.name == "form" && forms.binary_search(&at).is_ok();
                skipped[at] |= !is_filled && share <= allowed_share(tree, at, element, by_name);
            }
        }
        at = if skipped[at] { node.end as usize } else { at + 1 };
    }
    (skipped, sizes)
}

/// Return whether a link is only a sign for the address of its heading.
fn is_permalink(tree: &Tree, at: usize) -> bool {
    tree.nodes[at].end as usize == at + 2
        && matches!(tree.nodes[at + 1].kind, Kind::Text("¶" | "#" | "§" | "\u{f0c1}" | "🔗"))
}

/// Return up to which share of the page's text an element is skipped; negative: not at all.
fn allowed_share(tree: &Tree, at: usize, element: &Element, by_name: bool) -> f64 {
    if element.hidden && !element.class.contains("mathml") {
        return 0.5;
    }
    match element.role {
        "navigation" | "contentinfo" => return 1.0,
        "banner" | "complementary" | "search" | "menu" | "menubar" | "dialog" | "alertdialog" | "alert"
        | "tablist" | "toolbar" => return 0.5,
        _ => {}
    }
    match element.name {
        "nav" | "footer" => return 1.0,
        "aside" | "dialog" => return 0.5,
        "form" => return 0.3,
        "header" if !is_inside(tree, at, &["article", "main", "section"]) => return 0.3,
        _ => {}
    }
    if matches!(element.name, "div" | "section" | "ol" | "ul" | "li" | "article")
        && (is_comments(element.class) || is_comments(element.id))
    {
        return 0.95;
    }
    if matches!(element.name, "div" | "section" | "ol" | "ul" | "dl" | "table")
        && (is_contents(element.class) || is_contents(element.id))
    {
        return 1.0;
    }
    let is_named = by_name
        && matches!(
            element.name,
            "div"
                | "section"
                | "ul"
                | "ol"
                | "dl"
                | "p"
                | "span"
                | "table"
                | "header"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "figure"
                | "li"
                | "time"
        )
        || by_name
            && element.name == "td"
            && tree.element(element.table as usize).is_some_and(|own| own.arranges);
    if is_named
        && (names_boilerplate(element.class)
            || (!is_named_by_heading(element) && names_boilerplate(element.id)))
    {
        let is_large =
            |name: &str| LARGE_BOILERPLATE.iter().any(|part| name.to_ascii_lowercase().contains(part));
        return if is_large(element.class) || is_large(element.id) { 0.6 } else { 0.3 };
    }
    -1.0
}

/// Return whether a class or id is that of readers' comments.
fn is_comments(names: &str) -> bool {
    names.split_ascii_whitespace().any(|name| {
        ["comments", "commentlist", "comment-list", "comments-area", "disqus_thread"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
    })
}

/// Return whether a class or id is that of a table of contents.
fn is_contents(names: &str) -> bool {
    names.split_ascii_whitespace().any(|name| name.eq_ignore_ascii_case("toc"))
}

/// Return whether an element's id was probably made from its heading.
fn is_named_by_heading(element: &Element) -> bool {
    matches!(element.name, "section" | "h2" | "h3" | "h4" | "h5" | "a" | "span" | "dl" | "p")
        || is_section(element)
}

/// Return whether an element has the class of a section in DocBook or Texinfo.
pub fn is_section(element: &Element) -> bool {
    element.class.split_ascii_whitespace().any(|own| {
        let own = own.trim_start_matches("sub");
        own.starts_with("sect") || own.starts_with("refsect") || matches!(own, "chapter" | "appendix")
    })
}

fn is_inside(tree: &Tree, at: usize, names: &[&str]) -> bool {
    let mut at = at;
    for _ in 0..64 {
        at = tree.nodes[at].parent as usize;
        let Some(element) = tree.element(at) else { return false };
        if names.contains(&element.name) {
            return true;
        }
        if at == 0 {
            return false;
        }
    }
    false
}

/// Return whether a class or id has a word that names boilerplate.
fn names_boilerplate(names: &str) -> bool {
    names.split_ascii_whitespace().any(|name| {
        let mut words = words_of(name);
        words.any(|(word, whole)| {
            (whole || word.len() > 4) && BOILERPLATE.iter().any(|own| word.eq_ignore_ascii_case(own))
        })
    })
}

/// Split `post-meta`, `post_meta` and `postMeta` into words.
fn words_of(name: &str) -> impl Iterator<Item = (&str, bool)> {
    let bytes = name.as_bytes();
    let mut begin = 0;
    std::iter::from_fn(move || {
        while begin < bytes.len() && !bytes[begin].is_ascii_alphanumeric() {
            begin += 1;
        }
        if begin >= bytes.len() {
            return None;
        }
        let mut end = begin + 1;
        while end < bytes.len()
            && bytes[end].is_ascii_alphanumeric()
            && !(bytes[end].is_ascii_uppercase() && bytes[end - 1].is_ascii_lowercase())
        {
            end += 1;
        }
        let whole = (begin == 0 || !bytes[begin - 1].is_ascii_alphanumeric())
            && (end == bytes.len() || !bytes[end].is_ascii_alphanumeric());
        let word = &name[begin..end];
        begin = end;
        Some((word, whole))
    })
}
