//! First stage of a build: cut documents into chunks, units and sentences, and measure them.

use super::blocks::{Mark, Span};
use super::bpe::{Counter, Encoding};
use super::copies::Keys;
use super::cut::{cut_document, Cut};
use super::detection::Choice;
use super::lexical::Lexer;
use super::sentences::Splitter;
use super::strings::{Strings, StringsBuf};
use super::text_size::tokens_for_hundred;
use super::windows::windows_with;
use crate::error::{Error, Result};
use crate::parallel::map_ranges_with;
use crate::progress::Progress;

/// How documents are cut. The default is that of `ketrag index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CorpusSettings {
    pub cut: Cut,
    /// tau: each chunk is cut into windows of `ceil(size / 2^tau)` tokens; at 0 each chunk is a unit.
    pub splits: u32,
    pub encoding: Encoding,
    pub splitter: Splitter,
    /// Scale chunks that end at sentences so that they hold as much text as chunks of an English text. For
    /// English, token counts are unchanged.
    pub language: Choice,
}

/// Flat arrays in document order. Spans are (start, end) in the text of the document.
///
/// A *unit* is ranked and printed: a chunk or a piece of one. The units of a chunk are contiguous, and so are
/// its sentences; every chunk of a titled document begins with a title sentence, whose text is the title.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Corpus {
    pub documents: usize,
    pub chunk_doc: Vec<u32>,
    /// Bytes.
    pub chunk_span: Vec<[u32; 2]>,
    /// Tokens of the chunk's text, without the title.
    pub chunk_tokens: Vec<u32>,
    pub unit_chunk: Vec<u32>,
    /// Bytes.
    pub unit_span: Vec<[u32; 2]>,
    /// Code points.
    pub unit_chars: Vec<[u32; 2]>,
    /// Tokens of the title, a newline, and the unit's text with its context; without a title, of text and context.
    pub unit_tokens: Vec<u32>,
    /// Context of a block that the unit continues, printed before its text.
    pub unit_before: StringsBuf,
    /// Printed after the text of a unit, to close a construct that its text or context opens.
    pub unit_after: StringsBuf,
    /// The first and the last line of the source; (0, 0) if unknown.
    pub unit_lines: Vec<[u32; 2]>,
    /// Keys by which copies are recognised: facts and sketch (`copies.rs`).
    pub unit_keys: Vec<[u64; 2]>,
    pub sent_chunk: Vec<u32>,
    /// The unit that holds the first character; the first unit of the chunk for a title.
    pub sent_unit: Vec<u32>,
    /// Bytes; (0, 0) for a title.
    pub sent_span: Vec<[u32; 2]>,
    /// 1 for a title, else 0.
    pub sent_title: Vec<u8>,
}

impl Corpus {
    pub fn chunks(&self) -> usize {
        self.chunk_doc.len()
    }

    pub fn units(&self) -> usize {
        self.unit_chunk.len()
    }

    pub fn sentences(&self) -> usize {
        self.sent_chunk.len()
    }

    /// The document of a unit.
    pub fn unit_doc(&self, unit: usize) -> usize {
        self.chunk_doc[self.unit_chunk[unit] as usize] as usize
    }

    /// Whether the units are the chunks.
    pub fn one_level(&self) -> bool {
        self.unit_span == self.chunk_span
    }

    fn append(&mut self, other: Self) -> Result<()> {
        let (chunks, units) = (self.chunks(), self.units());
        let most = [chunks + other.chunks(), units + other.units(), self.sentences() + other.sentences()];
        if most.iter().any(|&n| n > u32::MAX as usize) {
            return Err(Error::input("more than 4,294,967,295 chunks, units or sentences"));
        }
        self.chunk_doc.extend(other.chunk_doc);
        self.chunk_span.extend(other.chunk_span);
        self.chunk_tokens.extend(other.chunk_tokens);
        self.unit_chunk.extend(other.unit_chunk.iter().map(|c| c + chunks as u32));
        self.unit_span.extend(other.unit_span);
        self.unit_chars.extend(other.unit_chars);
        self.unit_tokens.extend(other.unit_tokens);
        other.unit_before.view().iter().for_each(|text| self.unit_before.push(text));
        other.unit_after.view().iter().for_each(|text| self.unit_after.push(text));
        self.unit_lines.extend(other.unit_lines);
        self.unit_keys.extend(other.unit_keys);
        self.sent_chunk.extend(other.sent_chunk.iter().map(|c| c + chunks as u32));
        self.sent_unit.extend(other.sent_unit.iter().map(|u| u + units as u32));
        self.sent_span.extend(other.sent_span);
        self.sent_title.extend(other.sent_title);
        Ok(())
    }
}

/// Information from document readers about spans of the texts. Rows are text, start, end (code points),
/// number of the mark, and its value, in the order of texts and starts.
pub type Marks<'a> = &'a [[u32; 5]];

/// Cut every document. `titles` is as long as `texts`; an empty string means no title. A document with an
/// empty or blank text yields no chunk. Progress is counted in documents.
pub fn build_corpus(
    titles: Strings<'_>,
    texts: Strings<'_>,
    marks: Marks<'_>,
    settings: &CorpusSettings,
    threads: usize,
    progress: &Progress,
) -> Result<Corpus> {
    check_documents(titles, texts)?;
    settings.cut.check()?;
    if marks.windows(2).any(|two| two[0][..2] > two[1][..2]) {
        return Err(Error::input("marks must be in the order of texts and starts"));
    }
    progress.expect(texts.len() as u64);
    let parts = map_ranges_with(
        texts.len(),
        32,
        threads,
        progress,
        || (Counter::new(settings.encoding), Lexer::default(), Keys::default()),
        |(counter, lexer, keys), range| {
            let mut part = Corpus::default();
            for doc in range {
                progress.check()?;
                let text = texts.get(doc);
                let share = tokens_for_hundred(text, settings.language, counter, lexer);
                let settings = CorpusSettings { cut: settings.cut.scaled(share), ..*settings };
                let first = marks.partition_point(|mark| (mark[0] as usize) < doc);
                let end = marks.partition_point(|mark| (mark[0] as usize) <= doc);
                let marks = marks_of(text, &marks[first..end])?;
                let document = Document { number: doc, title: titles.get(doc), text, marks: &marks };
                add_document(&mut part, &document, &settings, (counter, keys), progress)?;
            }
            Ok(part)
        },
    )?;
    let mut corpus = Corpus { documents: texts.len(), ..Corpus::default() };
    for part in parts {
        corpus.append(part)?;
    }
    Ok(corpus)
}

pub(crate) fn check_documents(titles: Strings<'_>, texts: Strings<'_>) -> Result<()> {
    if titles.len() != texts.len() {
        return Err(Error::input(format!("{} titles for {} texts", titles.len(), texts.len())));
    }
    if texts.len() > u32::MAX as usize {
        return Err(Error::input("more than 4,294,967,295 documents"));
    }
    match texts.iter().position(|text| text.len() > u32::MAX as usize) {
        Some(doc) => Err(Error::input(format!("document {doc} is larger than 4 GiB"))),
        None => Ok(()),
    }
}

/// Return the start of the text after a first line that only repeats the title (such as `# Title`), because
/// the title precedes every unit anyway. Returns 0 if there is no such line or nothing follows it.
fn body_start(title: &str, text: &str) -> usize {
    let start = text.len() - text.trim_start().len();
    let line = text[start..].lines().next().unwrap_or("");
    let end = start + line.len();
    let repeats = !title.is_empty() && line.trim_start_matches('#').trim() == title.trim();
    if repeats && !text[end..].trim_start().is_empty() {
        text.len() - text[end..].trim_start().len()
    } else {
        0
    }
}

/// Return the marks of a text with spans in bytes.
fn marks_of(text: &str, rows: Marks<'_>) -> Result<Vec<(Span, Mark)>> {
    let (mut starts, mut ends) = (CodePoints::new(text), CodePoints::new(text));
    let each = rows.iter().map(|&[_, start, end, kind, value]| {
        let mark = Mark::numbered(kind, value).ok_or_else(|| Error::input(format!("unknown mark {kind}")))?;
        match (starts.byte_of(start), ends.byte_of(end).unwrap_or(text.len())) {
            (Some(start), end) if start <= end => Ok(((start, end), mark)),
            _ => Err(Error::input(format!("a mark spans {start}..{end}, which is outside its text"))),
        }
    });
    each.collect()
}

struct Document<'a> {
    number: usize,
    title: &'a str,
    text: &'a str,
    marks: &'a [(Span, Mark)],
}

fn add_document(
    out: &mut Corpus,
    document: &Document<'_>,
    settings: &CorpusSettings,
    (counter, keys): (&mut Counter, &mut Keys),
    progress: &Progress,
) -> Result<()> {
    let Document { number, title, text, marks } = *document;
    let body = body_start(title, text);
    let pieces = cut_document(text, body, marks, settings.cut, settings.splitter, counter, progress)?;
    let mut lines = Lines::new(text, marks);
    let head = if pieces.is_empty() { 0 } else { counter.title(title) };
    let mut chars = CodePoints::new(text);
    for piece in pieces {
        let chunk = out.chunks() as u32;
        let first_unit = out.units();
        out.chunk_doc.push(number as u32);
        out.chunk_span.push(pair(piece.span));
        out.chunk_tokens.push(size(piece.tokens)?);
        let (before, after) = match settings.splits {
            0 => (piece.before.as_str(), piece.after.as_str()),
            _ => ("", ""),
        };
        let mut add_unit = |span: (usize, usize), plain: usize, counter: &mut Counter| -> Result<()> {
            let own = &text[span.0..span.1];
            // A context ends with a line break, so the counts add up like those of a title.
            let adds_up = |part: &str| !part.starts_with('/') && !part.starts_with(char::is_whitespace);
            let tokens = match (before, after) {
                ("", "") => counter.titled(head, title, own, plain),
                (_, "") if adds_up(before) && adds_up(own) => head + counter.count(before) + plain,
                _ => counter
                    .count(&[title, if title.is_empty() { "" } else { "\n" }, before, own, after].concat()),
            };
            out.unit_before.push(before);
            out.unit_after.push(after);
            out.unit_lines.push(lines.of(span));
            let key = keys.of([before, own]);
            out.unit_keys.push([key.facts, key.sketch]);
            out.unit_chunk.push(chunk);
            out.unit_span.push(pair(span));
            out.unit_chars.push([chars.at(span.0), chars.at(span.1)]);
            out.unit_tokens.push(size(tokens)?);
            Ok(())
        };
        if settings.splits == 0 {
            add_unit(piece.span, piece.tokens, counter)?;
        } else {
            let whole = settings.cut.size();
            let width = if settings.splits < 63 { whole.div_ceil(1 << settings.splits) } else { 1 };
            let part = &text[piece.span.0..piece.span.1];
            for (a, b) in windows_with(counter, part, width, 0, progress)? {
                let plain = counter.count(&part[a..b]);
                add_unit((a + piece.span.0, b + piece.span.0), plain, counter)?;
            }
        }
        if !title.is_empty() {
            push_sentence(out, chunk, first_unit, (0, 0), 1);
        }
        let mut unit = first_unit;
        for span in piece.sentences {
            while unit + 1 < out.units() && out.unit_span[unit + 1][0] as usize <= span.0 {
                unit += 1;
            }
            push_sentence(out, chunk, unit, span, 0);
        }
    }
    Ok(())
}

fn push_sentence(out: &mut Corpus, chunk: u32, unit: usize, span: (usize, usize), title: u8) {
    out.sent_chunk.push(chunk);
    out.sent_unit.push(unit as u32);
    out.sent_span.push(pair(span));
    out.sent_title.push(title);
}

fn pair(span: (usize, usize)) -> [u32; 2] {
    // Documents are shorter than 4 GiB: `check_documents`.
    [span.0 as u32, span.1 as u32]
}

fn size(tokens: usize) -> Result<u32> {
    u32::try_from(tokens).map_err(|_| Error::input("a chunk has more than 4,294,967,295 tokens"))
}

/// Counts the code points before a byte, for queries in almost ascending order, because chunks may overlap.
struct CodePoints<'a> {
    text: &'a str,
    ascii: bool,
    byte: usize,
    chars: usize,
}

impl<'a> CodePoints<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, ascii: text.is_ascii(), byte: 0, chars: 0 }
    }

    fn at(&mut self, byte: usize) -> u32 {
        if self.ascii {
            return byte as u32;
        }
        if byte >= self.byte {
            self.chars += self.text[self.byte..byte].chars().count();
        } else {
            self.chars -= self.text[byte..self.byte].chars().count();
        }
        self.byte = byte;
        self.chars as u32
    }

    /// Return the byte after the first `chars` code points, for ascending queries; `None` beyond the text.
    fn byte_of(&mut self, chars: u32) -> Option<usize> {
        let wanted = chars as usize;
        if self.ascii {
            return (wanted <= self.text.len()).then_some(wanted);
        }
        if wanted < self.chars {
            (self.byte, self.chars) = (0, 0);
        }
        let more = wanted - self.chars;
        let rest = &self.text[self.byte..];
        let found = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(more)?;
        (self.byte, self.chars) = (self.byte + found, wanted);
        Some(self.byte)
    }
}

/// Counts the source lines before a byte, for queries in almost ascending order.
struct Lines<'a> {
    text: &'a str,
    /// Copied lines with the number of the first one, in the order of their starts.
    copies: Vec<(Span, u32)>,
    byte: usize,
    count: usize,
    /// The start of the last mark, and the number of line breaks before it. Going back for each span would
    /// take quadratic time.
    base: (usize, usize),
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, marks: &[(Span, Mark)]) -> Self {
        let copies = marks.iter().filter_map(|&(span, mark)| match mark {
            Mark::Lines { first } => Some((span, first)),
            _ => None,
        });
        Self { text, copies: copies.collect(), byte: 0, count: 0, base: (0, 0) }
    }

    /// Return the first and the last line of a span, or (0, 0) if its start is not inside the last copy that
    /// begins before it.
    fn of(&mut self, span: Span) -> [u32; 2] {
        let after = self.copies.partition_point(|&((start, _), _)| start <= span.0);
        let around = after.checked_sub(1).map(|at| self.copies[at]).filter(|&((_, end), _)| span.0 < end);
        let Some(((start, end), first)) = around else { return [0, 0] };
        if start != self.base.0 {
            self.base = (start, self.at(start));
        }
        let base = self.base.1;
        let (first_line, last_line) = (self.at(span.0), self.at(span.1.min(end)));
        [first_line, last_line].map(|line| first.saturating_add((line - base) as u32))
    }

    fn at(&mut self, byte: usize) -> usize {
        let breaks = |part: &str| part.bytes().filter(|&b| b == b'\n').count();
        if byte >= self.byte {
            self.count += breaks(&self.text[self.byte..byte]);
        } else {
            self.count -= breaks(&self.text[byte..self.byte]);
        }
        self.byte = byte;
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::super::strings::StringsBuf;
    use super::*;
    use proptest::prelude::*;

    fn build(titles: &[String], texts: &[String], settings: &CorpusSettings, threads: usize) -> Corpus {
        let (titles, texts): (StringsBuf, StringsBuf) = (titles.iter().collect(), texts.iter().collect());
        build_corpus(titles.view(), texts.view(), &[], settings, threads, &Progress::none()).unwrap()
    }

    #[test]
    fn a_first_line_that_repeats_the_title_is_not_cut() {
        for (title, text, start) in [
            ("A Name", "# A Name\n\nIt is.", 10),
            ("A Name", "\n A Name \r\nIt is.", 11),
            ("A Name", "# A Name\n", 0),
            ("A Name", "# A Name of another\nIt is.", 0),
            ("", "#\nIt is.", 0),
            ("é", "## é\nü", 6),
        ] {
            assert_eq!(body_start(title, text), start, "{text:?}");
        }
    }

    #[test]
    fn titles_and_empty_documents() {
        let titles = ["Paris", "", "Empty", ""].map(String::from);
        let texts = ["It is a city in Éire. It is not there at all.", "No title has this one.", " \n", ""]
            .map(String::from);
        let corpus = build(&titles, &texts, &CorpusSettings::default(), 1);
        assert_eq!((corpus.chunk_doc.as_slice(), corpus.documents), ([0, 1].as_slice(), 4));
        assert_eq!(corpus.sent_title, [1, 0, 0, 0]);
        assert_eq!(corpus.sent_span[0], [0, 0]);
        assert_eq!(corpus.sent_unit, [0, 0, 0, 1]);
        assert_eq!((corpus.unit_span[0], corpus.unit_chars[0]), ([0, 46], [0, 45]));
        let count = |t: &str| Encoding::Cl100k.count(t) as u32;
        assert_eq!(corpus.unit_tokens, [count(&format!("Paris\n{}", texts[0])), count(&texts[1])]);
        assert_eq!(corpus.chunk_tokens[0], count(&texts[0]));
        assert!(corpus.one_level());
        assert_eq!(build(&[], &[], &CorpusSettings::default(), 2), Corpus::default());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_settings_on_any_threads(
            docs in prop::collection::vec(("[A-Z]?[a-z.)/]{0,4}", "([A-Z][a-z]{0,9}|[a-z ]{3,9}|\\. |\n\n|é|中文。|👩‍👧|/){0,60}"), 0..70),
            size in 1usize..40, overlap in 0usize..9, splits in 0u32..5, windows in any::<bool>(), o200k in any::<bool>(),
        ) {
            let (titles, texts): (Vec<String>, Vec<String>) = docs.into_iter().unzip();
            let cut = if windows { Cut::Windows { tokens: size, overlap: overlap.min(size - 1) } } else { Cut::Sentences { max_tokens: size } };
            let encoding = if o200k { Encoding::O200k } else { Encoding::Cl100k };
            let language = if splits % 2 == 0 { Choice::Detect } else { Choice::default() };
            let settings = CorpusSettings { cut, splits, encoding, splitter: Splitter::Standard, language };
            let corpus = build(&titles, &texts, &settings, 1);
            for threads in [2, 5] {
                prop_assert_eq!(&build(&titles, &texts, &settings, threads), &corpus);
            }
            for u in 0..corpus.units() {
                let doc = corpus.unit_doc(u);
                let ([a, b], [c, d]) = (corpus.unit_span[u], corpus.unit_chars[u]);
                let chunk = corpus.chunk_span[corpus.unit_chunk[u] as usize];
                prop_assert!(chunk[0] <= a && a < b && b <= chunk[1]);
                let text = &texts[doc][a as usize..b as usize];
                let by_chars: String = texts[doc].chars().skip(c as usize).take((d - c) as usize).collect();
                prop_assert_eq!(&by_chars, text);
                let text = [corpus.unit_before.view().get(u), text, corpus.unit_after.view().get(u)].concat();
                let row = if titles[doc].is_empty() { text } else { format!("{}\n{text}", titles[doc]) };
                prop_assert_eq!(corpus.unit_tokens[u] as usize, encoding.count(&row));
            }
            for s in 0..corpus.sentences() {
                let unit = corpus.sent_unit[s] as usize;
                prop_assert_eq!(corpus.unit_chunk[unit], corpus.sent_chunk[s]);
                if corpus.sent_title[s] == 0 {
                    let [a, b] = corpus.unit_span[unit];
                    prop_assert!(a <= corpus.sent_span[s][0] && corpus.sent_span[s][0] < b);
                }
            }
        }
    }
}
