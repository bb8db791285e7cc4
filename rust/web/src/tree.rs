//! The elements and texts of serialised HTML, in the order of the page.

/// A text or an element. The nodes of an element's subtree follow it, up to `end`.
pub struct Node<'a> {
    pub kind: Kind<'a>,
    pub parent: u32,
    pub end: u32,
}

pub enum Kind<'a> {
    Text(&'a str),
    Element(Box<Element<'a>>),
}

/// An element and those of its attributes that are used; entities in them are not replaced.
#[derive(Default)]
pub struct Element<'a> {
    pub name: &'a str,
    pub class: &'a str,
    pub id: &'a str,
    pub role: &'a str,
    /// Of an `input`: its type.
    pub itemprop: &'a str,
    /// Of an `input`: its value; of an `img`: its description.
    pub href: &'a str,
    pub columns: u32,
    pub rows: u32,
    pub hidden: bool,
    /// The style keeps it out of what readers select and copy, as line numbers.
    pub unselectable: bool,
    /// The table that a cell belongs to.
    pub table: u32,
    /// A table that contains tables, lists, headings or verbatim text: it arranges the page.
    pub arranges: bool,
    /// A box that is checked, or an option that is selected.
    pub chosen: bool,
}

impl Element<'_> {
    /// Return whether this is a field with a text that its reader sees.
    pub fn has_value(&self) -> bool {
        let is_text = matches!(
            self.itemprop.to_ascii_lowercase().as_str(),
            "" | "text"
                | "number"
                | "email"
                | "tel"
                | "url"
                | "date"
                | "time"
                | "month"
                | "week"
                | "datetime-local"
        );
        self.name == "input" && is_text && !self.hidden && !self.href.trim().is_empty()
    }

    /// Return the description of a picture if it has enough words to tell what is on it; "logo" has not.
    pub fn description(&self) -> Option<&str> {
        let is_telling =
            self.name == "img" && !self.hidden && self.href.chars().filter(|c| *c == ' ').count() >= MIN_GAPS;
        let end = self.href.char_indices().nth(LONGEST_DESCRIPTION).map_or(self.href.len(), |(at, _)| at);
        is_telling.then_some(&self.href[..end])
    }

    /// Return whether this is a check box or a radio button.
    pub fn is_box(&self) -> bool {
        let kind = self.itemprop;
        self.name == "input"
            && !self.hidden
            && (kind.eq_ignore_ascii_case("checkbox") || kind.eq_ignore_ascii_case("radio"))
    }
}

/// Blanks in the description of a picture that is written: those of three words. Shorter ones are mostly names of icons
/// and logos. Other numbers were not compared.
const MIN_GAPS: usize = 2;
/// Characters of a longer description that are written, as of pictures in Office files.
const LONGEST_DESCRIPTION: usize = 2_000;

pub struct Tree<'a> {
    pub nodes: Vec<Node<'a>>,
}

/// Elements whose content is serialised as it is.
const RAW: [&str; 8] = ["script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext", "template"];
/// Of a cell; 0 in the markup stands for all that follow.
const MOST_ROWS: u32 = 65_534;
const EMPTY: [&str; 18] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
];

impl<'a> Tree<'a> {
    /// Cut serialised HTML into nodes. The first node is an element without a name that contains the others.
    pub fn new(markup: &'a str) -> Self {
        let mut builder = Builder {
            nodes: Vec::with_capacity(markup.len() / 24 + 8),
            open: Vec::new(),
            tables: Vec::new(),
        };
        builder.open(Element::default());
        let mut at = 0;
        while let Some(found) = markup[at..].find('<') {
            builder.text(&markup[at..at + found]);
            at += found;
            at = builder.tag(markup, at);
        }
        builder.text(&markup[at..]);
        while builder.close_last() {}
        Tree { nodes: builder.nodes }
    }

    pub fn element(&self, at: usize) -> Option<&Element<'a>> {
        match &self.nodes[at].kind {
            Kind::Element(element) => Some(element),
            Kind::Text(_) => None,
        }
    }
}

struct Builder<'a> {
    nodes: Vec<Node<'a>>,
    open: Vec<u32>,
    tables: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn text(&mut self, text: &'a str) {
        if !text.is_empty() {
            let end = self.nodes.len() as u32 + 1;
            self.nodes.push(Node { kind: Kind::Text(text), parent: self.parent(), end });
        }
    }

    fn parent(&self) -> u32 {
        self.open.last().copied().unwrap_or(0)
    }

    fn element(&mut self, at: u32) -> Option<&mut Element<'a>> {
        match &mut self.nodes[at as usize].kind {
            Kind::Element(element) => Some(element),
            Kind::Text(_) => None,
        }
    }

    fn open(&mut self, mut element: Element<'a>) {
        let at = self.nodes.len() as u32;
        element.table = self.tables.last().copied().unwrap_or(0);
        let arranged = matches!(
            element.name,
            "table" | "pre" | "ul" | "ol" | "dl" | "blockquote" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6"
        );
        if arranged && element.table > 0 {
            if let Some(table) = self.element(element.table) {
                table.arranges = true;
            }
        }
        let is_table = element.name == "table";
        let is_empty = EMPTY.contains(&element.name);
        let parent = self.parent();
        self.nodes.push(Node { kind: Kind::Element(Box::new(element)), parent, end: at + 1 });
        if !is_empty {
            self.open.push(at);
            if is_table {
                self.tables.push(at);
            }
        }
    }

    fn close_last(&mut self) -> bool {
        let Some(at) = self.open.pop() else { return false };
        self.nodes[at as usize].end = self.nodes.len() as u32;
        if self.tables.last() == Some(&at) {
            self.tables.pop();
        }
        true
    }

    fn close(&mut self, name: &str) {
        // What a parser serialises is balanced; anything else is looked for among the innermost elements only.
        let near = self.open.iter().rev().take(64).position(|&at| match &self.nodes[at as usize].kind {
            Kind::Element(element) => element.name == name,
            Kind::Text(_) => false,
        });
        if let Some(count) = near {
            (0..=count).for_each(|_| {
                self.close_last();
            });
        }
    }

    /// Read the tag at `at`, where `<` is, and return the offset after it.
    fn tag(&mut self, markup: &'a str, at: usize) -> usize {
        let rest = &markup[at..];
        let bytes = rest.as_bytes();
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.find("-->").map_or(markup.len(), |end| at + 4 + end + 3);
        }
        match bytes.get(1) {
            Some(b'!' | b'?') => return rest.find('>').map_or(markup.len(), |end| at + end + 1),
            Some(b'/') => {
                let end = rest.find('>').unwrap_or(rest.len());
                self.close(rest[2..end].trim());
                return at + (end + 1).min(rest.len());
            }
            Some(first) if first.is_ascii_alphabetic() => {}
            _ => {
                self.text(&rest[..1]);
                return at + 1;
            }
        }
        let name_end =
            bytes.iter().position(|b| b.is_ascii_whitespace() || *b == b'>').unwrap_or(bytes.len());
        let mut element = Element {
            name: rest[1..name_end].trim_end_matches('/'),
            columns: 1,
            rows: 1,
            ..Element::default()
        };
        let end = at + attributes(rest, name_end, &mut element);
        let name = element.name;
        self.open(element);
        if RAW.contains(&name) {
            let content = &markup[end..];
            let found = closing(content, name).unwrap_or(content.len());
            return end + found;
        }
        end
    }
}

/// Return where `</name` begins.
fn closing(content: &str, name: &str) -> Option<usize> {
    let mut at = 0;
    let mut depth = 0;
    while let Some(found) = content[at..].find('<') {
        at += found;
        let rest = &content[at + 1..];
        if rest.strip_prefix('/').is_some_and(|own| own.starts_with(name)) {
            if depth == 0 {
                return Some(at);
            }
            depth -= 1;
        } else if name == "template" && rest.starts_with("template") {
            depth += 1;
        }
        at += 1;
    }
    None
}

/// Read attributes from `at` on, and return the offset after the tag.
fn attributes<'a>(tag: &'a str, mut at: usize, element: &mut Element<'a>) -> usize {
    let bytes = tag.as_bytes();
    loop {
        while bytes.get(at).is_some_and(|b| b.is_ascii_whitespace() || *b == b'/') {
            at += 1;
        }
        match bytes.get(at) {
            None => return tag.len(),
            Some(b'>') => return at + 1,
            Some(_) => {}
        }
        let begin = at;
        while bytes.get(at).is_some_and(|b| !b.is_ascii_whitespace() && *b != b'>' && *b != b'=') {
            at += 1;
        }
        if at == begin {
            at += 1; // a lone `=`
            continue;
        }
        let name = &tag[begin..at];
        let mut value = "";
        if bytes.get(at) == Some(&b'=') {
            at += 1;
            if bytes.get(at) == Some(&b'"') {
                let end = tag[at + 1..].find('"').map_or(tag.len(), |end| at + 1 + end);
                value = &tag[at + 1..end];
                at = (end + 1).min(tag.len());
            }
        }
        match name {
            "value" if element.name == "input" => element.href = value,
            "type" if element.name == "input" => element.itemprop = value,
            "alt" if element.name == "img" => element.href = value,
            "checked" | "selected" => element.chosen = true,
            _ => set(element, name, value),
        }
    }
}

fn set<'a>(element: &mut Element<'a>, name: &str, value: &'a str) {
    match name {
        "class" => element.class = value,
        "id" => element.id = value,
        "role" => element.role = value,
        "epub:type" if value.contains("noteref") => element.role = "doc-noteref",
        "itemprop" => element.itemprop = value,
        "href" => element.href = value,
        "hidden" => element.hidden = true,
        "aria-hidden" => element.hidden |= value == "true",
        "colspan" => element.columns = value.parse().unwrap_or(1).clamp(1, 50),
        "rowspan" => {
            let rows = value.parse().unwrap_or(1).min(MOST_ROWS);
            element.rows = if rows == 0 { MOST_ROWS } else { rows };
        }
        "style" if value.len() < 1000 => {
            let plain: String =
                value.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
            // A zero in front of a unit: `font-size:0px`, not `font-size:0.9em`.
            let is_zero = |name: &str| {
                plain.split(';').filter_map(|own| own.strip_prefix(name)).any(|own| {
                    own.trim_end_matches(|c: char| c.is_alphabetic() || c == '%' || c == '!').parse()
                        == Ok(0.0)
                })
            };
            element.hidden |= plain.contains("display:none")
                || plain.contains("visibility:hidden")
                || plain.contains("mso-hide:all")
                || is_zero("font-size:")
                || is_zero("opacity:")
                || (is_zero("max-height:") && plain.contains("overflow:hidden"));
            element.unselectable |= plain.contains("user-select:none");
        }
        _ => {}
    }
}

/// Replace the entities that serialisation writes.
pub fn unescaped(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&nbsp;", '\u{a0}'), ("&quot;", '"')];
        let (length, character) = known
            .iter()
            .find(|(name, _)| rest.starts_with(name))
            .map_or((1, '&'), |&(name, c)| (name.len(), c));
        plain.push(character);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain.into()
}
