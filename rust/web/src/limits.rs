//! Removes from the markup of a page what its parser takes quadratic time for: attributes of one tag beyond the
//! first ones, and options of lists, which are not part of the text, beyond the first ones of the page.

use std::borrow::Cow;

/// Attributes of one tag that are kept. The parser compares each with all earlier ones; tags of real pages have
/// fewer than 50.
const MOST_ATTRIBUTES: usize = 200;
/// Options that are kept. The parser visits all options of a list at each; 1,000 take it about 3 ms.
const MOST_OPTIONS: usize = 1_000;
/// Elements whose content is not markup.
const RAW: [&[u8]; 8] =
    [b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes"];

/// Return the markup within the limits. The time is proportional to its length.
///
/// ```
/// let tag = format!("<a {}>x</a>", (0..500).map(|n| format!(" a{n}=1")).collect::<String>());
/// assert_eq!(ketrag_web::limit_markup(&tag).matches("=1").count(), 200);
/// assert_eq!(ketrag_web::limit_markup("<a href='>'>x</a>"), "<a href='>'>x</a>");
/// ```
pub fn limit_markup(markup: &str) -> Cow<'_, str> {
    let mut scan = Scan { text: markup.as_bytes(), at: 0, options: 0, dropped: Vec::new() };
    scan.read();
    if scan.dropped.is_empty() {
        return Cow::Borrowed(markup);
    }
    let mut kept = String::with_capacity(markup.len());
    let mut from = 0;
    for &(start, end) in &scan.dropped {
        kept.push_str(&markup[from..start]);
        from = end;
    }
    kept.push_str(&markup[from..]);
    Cow::Owned(kept)
}

struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    options: usize,
    /// Ranges to remove, in order. They begin and end next to ASCII characters.
    dropped: Vec<(usize, usize)>,
}

impl Scan<'_> {
    fn read(&mut self) {
        while let Some(offset) = self.text[self.at..].iter().position(|&byte| byte == b'<') {
            let start = self.at + offset;
            let rest = &self.text[start + 1..];
            if rest.starts_with(b"!--") {
                self.at = self.end_of_comment(start + 4);
                continue;
            }
            let is_end = rest.first() == Some(&b'/');
            self.at = start + 1 + usize::from(is_end);
            if self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
                self.tag(start, is_end);
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip(&mut self, accepts: impl Fn(u8) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|&byte| !accepts(byte)).unwrap_or(rest.len());
    }

    /// Return the end of a comment whose content begins at an offset.
    fn end_of_comment(&self, from: usize) -> usize {
        let text = self.text.get(from..).unwrap_or_default();
        for short in [&b">"[..], b"->"] {
            if text.starts_with(short) {
                return from + short.len();
            }
        }
        let end = text.windows(3).position(|end| end == b"-->" || end == b"--!");
        end.map_or(self.text.len(), |end| from + end + 3)
    }

    /// Read a tag from its name on, up to its end and that of content that is not markup.
    fn tag(&mut self, start: usize, is_end: bool) {
        let from = self.at;
        self.skip(|byte| !is_blank(byte) && byte != b'/' && byte != b'>');
        let name = self.text[from..self.at].to_ascii_lowercase();
        let begins = self.dropped.len();
        let mut attributes = 0;
        loop {
            self.skip(|byte| is_blank(byte) || byte == b'/');
            if self.peek().is_none_or(|byte| byte == b'>') {
                break;
            }
            let own = self.at;
            self.attribute();
            attributes += 1;
            if attributes > MOST_ATTRIBUTES {
                self.drop(own);
            }
        }
        self.at = (self.at + 1).min(self.text.len());
        if name == b"option" || name == b"optgroup" {
            self.options += usize::from(!is_end);
            if self.options > MOST_OPTIONS {
                self.dropped.truncate(begins);
                self.drop(start);
            }
        }
        if !is_end && RAW.contains(&name.as_slice()) {
            self.skip_raw(&name);
        }
    }

    fn attribute(&mut self) {
        self.at += 1; // A name may begin with an equals sign.
        self.skip(|byte| !is_blank(byte) && !b"/>=".contains(&byte));
        let end = self.at;
        self.skip(is_blank);
        if self.peek() != Some(b'=') {
            self.at = end;
            return;
        }
        self.at += 1;
        self.skip(is_blank);
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                self.skip(|byte| byte != quote);
                self.at = (self.at + 1).min(self.text.len());
            }
            _ => self.skip(|byte| !is_blank(byte) && byte != b'>'),
        }
    }

    /// Remove the text from an offset to the present one.
    fn drop(&mut self, start: usize) {
        match self.dropped.last_mut() {
            Some(last) if last.1 == start => last.1 = self.at,
            _ => self.dropped.push((start, self.at)),
        }
    }

    fn skip_raw(&mut self, name: &[u8]) {
        while let Some(offset) = self.text[self.at..].iter().position(|&byte| byte == b'<') {
            let start = self.at + offset;
            let rest = &self.text[start + 1..];
            let is_closed = rest.first() == Some(&b'/')
                && rest.get(1..=name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name))
                && rest.get(name.len() + 1).is_none_or(|&byte| is_blank(byte) || b"/>".contains(&byte));
            if is_closed {
                self.at = start;
                return;
            }
            self.at = start + 1;
        }
        self.at = self.text.len();
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(count: usize) -> String {
        (0..count).map(|n| format!(" a{n}='>'")).collect()
    }

    #[test]
    fn attributes_beyond_the_first_are_removed() {
        let page = format!("<p{}>one</p><a{}>two</a><b c=1>é</b>", attributes(500), attributes(150));
        let limited = limit_markup(&page);
        assert_eq!(limited.matches("='>'").count(), 350);
        assert!(limited.contains(">one</p><a a0=") && limited.ends_with(">two</a><b c=1>é</b>"));
        let end = format!("x</p{}", attributes(300));
        assert_eq!(limit_markup(&end).matches("='>'").count(), 200);
    }

    #[test]
    fn options_beyond_the_first_are_removed() {
        let page = format!("<select>{}</select><p>after", "<OPTION value=é>x</option>".repeat(3_000));
        let limited = limit_markup(&page);
        assert_eq!(limited.matches("<OPTION").count(), 1_000);
        assert!(limited.ends_with("</select><p>after"));
    }

    #[test]
    fn what_is_not_markup_stays() {
        let many = attributes(300);
        for page in [
            format!("<!-- <p{many}> -->x"),
            format!("<script>if (a<b) {{ {many} }}</script>x"),
            format!("<STYLE>p <q{many}</style >x"),
            format!("<textarea><p{many}></textareas></textarea>"),
            format!("a < b{many}"),
            "<!-->x<!--->y<p".to_owned(),
            "<".to_owned(),
            "</".to_owned(),
            "<a b=".to_owned(),
            "<a b='".to_owned(),
        ] {
            assert_eq!(limit_markup(&page), page);
        }
    }
}
