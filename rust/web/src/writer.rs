//! The text of a page: a line for each block and table row, a blank line around paragraphs, tabs between cells.

use crate::formula::formula;
use crate::measure::sizes_of;
use crate::tree::{unescaped, Element, Kind, Tree};
use ketrag_text::raised::{lowered, raised};
use std::collections::HashSet;

/// A cell with more characters, blanks aside, is a part of the page's layout.
const LONG_CELL: u32 = 300;

/// Return whether a character belongs to Chinese or Japanese text: a line break of the source between two of them is not
/// a blank (CSS Text 3, 4.1.3).
fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{2fdf}' | '\u{3001}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff01}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

const BLANKS: [char; 6] = [' ', '\n', '\t', '\r', '\x0c', '\u{a0}'];

/// A heading: offset in characters, level, and text.
pub type Heading = (usize, u8, String);

/// The text of a page with its headings and its length in characters.
#[derive(Debug, Default, PartialEq)]
pub struct Text {
    pub text: String,
    pub headings: Vec<Heading>,
    /// Start and end of each listing, in characters.
    pub code: Vec<(usize, usize)>,
    pub characters: usize,
}

/// Return the text of the element `root` without the skipped nodes.
pub fn text_of(tree: &Tree, root: usize, skipped: &[bool]) -> Text {
    let arranging = arranging_tables(tree, skipped);
    let mut writer = Writer::default();
    let mut spans = Spans::default();
    let mut open: Vec<usize> = Vec::new();
    let end = tree.nodes[root].end as usize;
    let mut at = root;
    let (mut verbatim, mut cells) = (0, 0);
    let mut described = HashSet::new();
    loop {
        while let Some(&last) = open.last() {
            if at < tree.nodes[last].end as usize {
                break;
            }
            open.pop();
            let Some(element) = tree.element(last) else { continue };
            match element.name {
                "pre" => verbatim -= 1,
                "td" | "th" if !arranging[element.table as usize] => cells -= 1,
                _ => {}
            }
            let is_cell = !arranging[element.table as usize];
            if is_cell && cells == 0 {
                match element.name {
                    "td" | "th" => spans.end_cell(&writer.out, element.rows, element.columns),
                    "tr" => {
                        while let Some(text) = spans.covered_at_end(writer.out.len()) {
                            writer.repeat_cell(&text);
                        }
                    }
                    _ => {}
                }
            }
            if is_script(tree, last, element) && verbatim == 0 {
                writer.end_script(element.name != "sub", is_link(tree, last));
            }
            writer.leave(element.name, cells > 0, if is_cell { element.columns } else { 0 });
        }
        if at >= end {
            break;
        }
        if skipped[at] {
            at = tree.nodes[at].end as usize;
            continue;
        }
        match &tree.nodes[at].kind {
            Kind::Text(text) if verbatim > 0 => writer.verbatim(&unescaped(text)),
            Kind::Text(text) => writer.flowing(&unescaped(text)),
            Kind::Element(element) => {
                if cells == 0 && !arranging[element.table as usize] {
                    match element.name {
                        "thead" | "tbody" | "tfoot" => spans.begin_rows(),
                        "tr" => spans.begin_row(),
                        "td" | "th" => {
                            while let Some(text) = spans.covered(writer.out.len()) {
                                writer.repeat_cell(&text);
                            }
                            spans.begin_cell(writer.out.len());
                        }
                        _ => {}
                    }
                }
                if element.name == "table" && cells == 0 {
                    spans.begin_rows();
                }
                if element.name == "math" {
                    writer.formula(&formula(tree, at, skipped));
                    at = tree.nodes[at].end as usize;
                    continue;
                }
                if let Some(text) = element.description().map(unescaped) {
                    if cells == 0 && !is_repeated(tree, at, &text) && described.insert(text.to_string()) {
                        writer.flowing(&format!(" [Picture: {}] ", text.trim()));
                    }
                }
                if element.has_value() {
                    writer.value(&unescaped(element.href));
                } else if element.is_box() {
                    writer.flowing(if element.chosen { " [x] " } else { " [ ] " });
                }
                writer.enter(element.name, cells > 0);
                if matches!(element.name, "textarea" | "select") {
                    writer.value("");
                }
                if is_script(tree, at, element) && verbatim == 0 {
                    writer.begin_script();
                }
                match element.name {
                    "pre" => verbatim += 1,
                    "td" | "th" if !arranging[element.table as usize] => cells += 1,
                    _ => {}
                }
                open.push(at);
            }
        }
        at += 1;
    }
    writer.finish()
}

/// Elements around a picture among which its figure is looked for, and nodes of a figure that are read: they bound the
/// work for each picture. Other numbers were not compared.
const AROUND: usize = 4;
const CAPTION: usize = 100;

/// Return whether the caption of a picture's figure has all words of its description.
fn is_repeated(tree: &Tree, at: usize, description: &str) -> bool {
    let parents =
        std::iter::successors(Some(at), |&own| Some(tree.nodes[own].parent as usize)).skip(1).take(AROUND);
    let is_figure = |&own: &usize| tree.element(own).is_some_and(|one| one.name == "figure");
    let Some(figure) = parents.take_while(|&own| own > 0).find(is_figure) else { return false };
    let words = |text: &str| -> HashSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let nodes = figure..(tree.nodes[figure].end as usize).min(figure + CAPTION);
    let mut caption = HashSet::new();
    for own in nodes {
        if let Kind::Text(text) = &tree.nodes[own].kind {
            caption.extend(words(&unescaped(text)));
        }
    }
    words(description).is_subset(&caption)
}

/// Names in classes and addresses of links to notes.
const NOTES: [&str; 7] = ["note", "fn", "ref", "reference", "cite", "citation", "bib"];
/// Nodes of a superscript among which a link is looked for.
const NEAR: usize = 8;

/// Return whether an element is raised or lowered: also the mark of a note that only its style raises, as in books.
fn is_script(tree: &Tree, at: usize, element: &Element) -> bool {
    let is_raised = |at: usize| tree.element(at).is_some_and(|own| matches!(own.name, "sup" | "sub"));
    match element.name {
        "sup" | "sub" => true,
        "a" if element.role == "doc-noteref" => {
            let end = (tree.nodes[at].end as usize).min(at + NEAR);
            let parent = tree.nodes[at].parent as usize;
            !(at..end).any(is_raised) && !is_raised(parent) && !is_raised(tree.nodes[parent].parent as usize)
        }
        _ => false,
    }
}

/// Return whether a superscript is a link within the page, or in one, or has the class of a note.
fn is_link(tree: &Tree, at: usize) -> bool {
    let is_note = |at: usize| {
        tree.element(at).is_some_and(|own| {
            (own.name == "a" && own.href.contains('#'))
                || [own.class, own.role].iter().any(|name| {
                    name.split([' ', '-', '_']).any(|word| {
                        let word = word.to_ascii_lowercase();
                        NOTES.iter().any(|note| word.strip_suffix('s').unwrap_or(&word).ends_with(note))
                    })
                })
        })
    };
    let end = (tree.nodes[at].end as usize).min(at + NEAR);
    (at..end).any(is_note) || is_note(tree.nodes[at].parent as usize)
}

/// Return for each node whether it is a table that arranges the page: its cells are then blocks.
fn arranging_tables(tree: &Tree, skipped: &[bool]) -> Vec<bool> {
    let sizes = sizes_of(tree, skipped);
    let mut found = vec![false; tree.nodes.len()];
    for at in 0..tree.nodes.len() {
        let Some(element) = tree.element(at) else { continue };
        if element.name == "table" {
            found[at] |= element.arranges;
        } else if matches!(element.name, "td" | "th") && sizes[at].all > LONG_CELL {
            found[element.table as usize] = true;
        }
    }
    found[0] = true; // cells outside of a table
    found
}

fn level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "header"
            | "hgroup"
            | "hr"
            | "legend"
            | "li"
            | "main"
            | "menu"
            | "nav"
            | "ol"
            | "section"
            | "summary"
            | "svg"
            | "table"
            | "text"
            | "tbody"
            | "tfoot"
            | "thead"
            | "tr"
            | "ul"
    )
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Gap {
    #[default]
    None,
    Blank,
    /// After a cell of a table that arranges the page: it ends with the line.
    Tab,
    Cells(u32),
}

/// Collects lines and paragraphs.
#[derive(Default)]
struct Writer {
    out: String,
    headings: Vec<(usize, u8, String)>, // offsets in bytes until the end
    code: Vec<(usize, usize)>,          // likewise
    /// Start of the listing that is open, after its first line.
    listing: Option<usize>,
    heading: Option<usize>,
    breaks: u8,
    gap: Gap,
    line: usize,
    is_verbatim: bool,
    indent: String,      // blanks of verbatim text that were not written yet
    scripts: Vec<usize>, // where the open superscripts and subscripts begin
}

impl Writer {
    fn enter(&mut self, name: &str, in_cell: bool) {
        if name == "tr" || name == "table" {
            self.gap = Gap::None;
        }
        if in_cell && name != "tr" && name != "td" && name != "th" {
            if name == "p" || name == "br" || is_block(name) {
                self.blank();
            }
        } else if level(name).is_some() {
            self.breaks = 2;
            self.heading = Some(self.settle());
        } else if name == "p" || name == "pre" {
            self.breaks = 2;
        } else if name == "br" || is_block(name) {
            self.breaks = self.breaks.max(1);
        }
    }

    fn leave(&mut self, name: &str, in_cell: bool, columns: u32) {
        if name == "tr" || name == "table" {
            self.gap = Gap::None;
        }
        if let Some(level) = level(name) {
            if let Some(begin) = self.heading.take() {
                let text = self.out.get(begin..).unwrap_or_default().trim();
                if !text.is_empty() {
                    self.headings.push((begin, level, text.to_owned()));
                }
            }
            self.breaks = 2;
        } else if name == "td" || name == "th" {
            if columns == 0 {
                self.gap = Gap::Tab;
                return;
            }
            let before = if let Gap::Cells(count) = self.gap { count } else { 0 };
            self.gap = Gap::Cells(before.saturating_add(columns));
        } else if in_cell {
            if name == "p" || is_block(name) {
                self.blank();
            }
        } else if name == "p" || name == "pre" {
            self.breaks = 2;
            self.indent.clear();
            if let Some(begin) = self.listing.take_if(|_| name == "pre") {
                self.code.push((begin, self.out.len()));
            }
        } else if is_block(name) {
            self.breaks = self.breaks.max(1);
        }
    }

    /// Write the value of a field after its label.
    fn value(&mut self, text: &str) {
        let is_label =
            self.breaks == 0 && self.out.len() > self.line && !matches!(self.gap, Gap::Tab | Gap::Cells(_));
        if is_label && self.out.ends_with(char::is_alphanumeric) {
            self.out.push(':');
        }
        self.blank();
        self.flowing(text);
        self.blank();
    }

    fn begin_script(&mut self) {
        self.scripts.push(self.out.len());
    }

    /// Write the sign of a superscript or subscript before it.
    fn end_script(&mut self, is_raised: bool, is_link: bool) {
        let Some(begin) = self.scripts.pop().filter(|&begin| begin < self.out.len()) else { return };
        let text = self.out.split_off(begin);
        let line = self.out.rfind(['\n', '\t']).map_or(0, |at| at + 1);
        let from = (line..=begin).rev().take(60).filter(|&at| self.out.is_char_boundary(at)).last();
        let own = text.trim_start();
        let before = if own.len() < text.len() { "" } else { &self.out[from.unwrap_or(begin)..] };
        let written = if is_raised { raised(before, own, is_link) } else { lowered(before, own) };
        self.out.push_str(&text[..text.len() - own.len()]);
        self.out.push_str(&written);
    }

    fn formula(&mut self, text: &str) {
        if !text.is_empty() {
            self.flowing(text);
        }
    }

    /// Write a cell whose text is that of a cell above.
    fn repeat_cell(&mut self, text: &str) {
        self.flowing(text);
        self.leave("td", false, 1);
    }

    fn blank(&mut self) {
        if self.gap == Gap::None {
            self.gap = Gap::Blank;
        }
    }

    /// Write a listing.
    fn verbatim(&mut self, text: &str) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.breaks = (self.breaks + 1).min(2);
                self.indent.clear();
            }
            let plain = line.trim_end();
            if !plain.is_empty() {
                let begin = self.settle();
                self.is_verbatim = true;
                self.listing.get_or_insert(begin);
                self.out.push_str(&self.indent);
                self.indent.clear();
                self.out.push_str(plain);
            }
            self.indent.push_str(&line[plain.len()..]);
        }
    }

    fn flowing(&mut self, text: &str) {
        let mut is_wrapped = false;
        for (number, word) in text.split(BLANKS).enumerate() {
            if number > 0 {
                self.blank();
                let before = word.as_ptr().addr() - text.as_ptr().addr() - 1;
                is_wrapped |= text.as_bytes().get(before) == Some(&b'\n');
            }
            if word.is_empty() {
                continue;
            }
            let is_within_line = self.out.ends_with(is_wide) && word.starts_with(is_wide);
            if std::mem::take(&mut is_wrapped) && is_within_line && self.gap == Gap::Blank {
                self.gap = Gap::None;
            }
            let gap =
                if self.breaks > 0 && !matches!(self.gap, Gap::Cells(_)) { Gap::None } else { self.gap };
            self.settle();
            match gap {
                Gap::None => {}
                Gap::Blank if self.out.len() == self.line => {}
                Gap::Tab if self.out.len() == self.line => {}
                Gap::Blank => self.out.push(' '),
                Gap::Tab => self.out.push('\t'),
                Gap::Cells(count) => (0..count).for_each(|_| self.out.push('\t')),
            }
            self.gap = Gap::None;
            self.out.push_str(word);
        }
    }

    /// Write pending line breaks and return the offset of the next text.
    fn settle(&mut self) -> usize {
        if self.breaks > 0 && !self.out.is_empty() {
            self.end_line();
            (0..self.breaks).for_each(|_| self.out.push('\n'));
            self.line = self.out.len();
            self.gap = Gap::None;
            self.is_verbatim = false;
        }
        self.breaks = 0;
        self.out.len()
    }

    fn end_line(&mut self) {
        let kept = self.out.trim_end_matches([' ', '\t']).len();
        self.out.truncate(kept.max(self.line));
        self.drop_empty_cells();
    }

    /// Remove empty cells before the only cell with text: the icon of a note, for example.
    fn drop_empty_cells(&mut self) {
        let line = self.out.get(self.line..).unwrap_or_default();
        let rest = line.trim_start_matches('\t');
        if rest.len() < line.len() && !rest.contains('\t') && !self.is_verbatim {
            self.out.replace_range(self.line..self.out.len() - rest.len(), "");
        }
    }

    fn finish(mut self) -> Text {
        self.drop_empty_cells();
        self.out.truncate(self.out.trim_end().len());
        while self.headings.len() > 1
            && self.headings.last().is_some_and(|own| self.out[own.0.min(self.out.len())..].trim() == own.2)
        {
            let own = self.headings.pop().unwrap();
            self.out.truncate(own.0);
            self.out.truncate(self.out.trim_end().len());
        }
        let mut offsets = Characters { text: &self.out, bytes: 0, characters: 0 };
        let headings = self.headings.into_iter().filter(|own| own.0 < self.out.len());
        let headings = headings.map(|(begin, level, text)| (offsets.at(begin), level, text)).collect();
        let characters = offsets.at(self.out.len());
        let mut offsets = Characters { text: &self.out, bytes: 0, characters: 0 };
        // A page that is one listing is a text that was not marked up.
        let is_code = |&(begin, end): &(usize, usize)| begin < end && 2 * (end - begin) <= self.out.len();
        let code = self.code.iter().map(|&(begin, end)| (begin, end.min(self.out.len()))).filter(is_code);
        let code = code.map(|(begin, end)| (offsets.at(begin), offsets.at(end))).collect();
        Text { headings, code, characters, text: self.out }
    }
}

/// Counts characters before ascending offsets.
struct Characters<'a> {
    text: &'a str,
    bytes: usize,
    characters: usize,
}

impl Characters<'_> {
    fn at(&mut self, bytes: usize) -> usize {
        self.characters += self.text[self.bytes..bytes].chars().count();
        self.bytes = bytes;
        self.characters
    }
}

// Cells that reach over several rows of a table: their text is repeated in each row.

/// A cell with more bytes is not repeated.
const LONGEST: usize = 200;
/// Columns after these are not followed.
const MOST_COLUMNS: usize = 50;
/// Bytes that may be repeated on a page, in addition to twice its own text.
const FREE: usize = 10_000;

/// The cells of the rows above that reach into the present row of a table.
#[derive(Default)]
struct Spans {
    columns: Vec<Span>,
    column: usize,
    begin: usize,
    repeated: usize,
}

#[derive(Clone, Default)]
struct Span {
    rows: u32,
    text: String,
}

impl Spans {
    /// Begin a table or a group of its rows.
    pub fn begin_rows(&mut self) {
        self.columns.clear();
    }

    pub fn begin_row(&mut self) {
        self.column = 0;
    }

    /// Return the text of the next cell of the row if a cell above reaches into it. `written`: bytes of the page so far.
    pub fn covered(&mut self, written: usize) -> Option<String> {
        let span = self.columns.get_mut(self.column).filter(|span| span.rows > 0)?;
        span.rows -= 1;
        self.column += 1;
        let size = self.repeated + span.text.len();
        if size > FREE + 2 * written.saturating_sub(self.repeated) {
            return Some(String::new());
        }
        self.repeated = size;
        Some(if span.rows == 0 { std::mem::take(&mut span.text) } else { span.text.clone() })
    }

    /// Return the text of the next cell after the last one of the row, if a cell above reaches into it or a later one.
    pub fn covered_at_end(&mut self, written: usize) -> Option<String> {
        if !self.columns.iter().skip(self.column).any(|span| span.rows > 0) {
            return None;
        }
        self.covered(written).or_else(|| {
            self.column += 1;
            Some(String::new())
        })
    }

    /// Begin a cell. `written`: bytes of the page so far.
    pub fn begin_cell(&mut self, written: usize) {
        self.begin = written;
    }

    /// End a cell over some rows and columns. `page`: what is written of the page.
    pub fn end_cell(&mut self, page: &str, rows: u32, columns: u32) {
        let end = self.column + columns as usize;
        if rows > 1 && self.columns.len() < end.min(MOST_COLUMNS) {
            self.columns.resize_with(end.min(MOST_COLUMNS), Span::default);
        }
        let last = page.rsplit(['\t', '\n']).next().unwrap_or_default();
        let text = if page.len() > self.begin && last.len() <= LONGEST { last } else { "" };
        for (number, span) in self.columns.iter_mut().take(end).skip(self.column).enumerate() {
            let own = if rows > 1 && number == 0 { text } else { "" };
            *span = Span { rows: rows - 1, text: own.to_owned() };
        }
        self.column = end;
    }
}
