//! The context of a query as JSON, written to one buffer without Python objects. The bytes equal those of
//! `Context.to_json`.

use ketrag_base::error::{Error, Result};
use ketrag_core::assemble::Reply;
use ketrag_core::channels::Printed;
use ketrag_core::generation::{Parts, Place};
use ketrag_core::search::render;
use ketrag_serve::json::{real, string, whole};
use std::borrow::Cow;
use std::sync::Arc;

/// The fields that all contexts of a plan have in common.
pub struct Frame {
    pub mode: String,
    /// "chunk" or "subchunk".
    pub kind: String,
    pub generation: u64,
    pub budget: u64,
    /// Warnings of the channels.
    pub cautions: Vec<String>,
    /// Number of units that pass the filter; `None` without a filter.
    pub fitting: Option<u64>,
}

/// A printed unit, or the first of several: its number, and its printed span in the document.
pub type Row = (u32, u32, u32);
/// Returns the fields `page`, `location` and `metadata` of rows, without braces.
pub type Describe<'a> = &'a dyn Fn(&[Row]) -> Option<Vec<Arc<[u8]>>>;

/// Warning that no passage is relevant enough. The text is the same as in `ketrag_fast.query.retrieval`.
const NOTHING_FITS: &str = "no passage is relevant enough: the documents may not answer this query";

/// The fields of a row if no document has metadata or locations.
const NOTHING: &[u8] = br#""page":null,"location":{},"metadata":{}"#;

/// Duration of a query in milliseconds.
pub struct Timings {
    pub embed: f64,
    pub search: f64,
}

/// The position and the text of a printed row. The unit may be truncated or merged with neighbours.
pub fn printed_place<'a>(parts: &Parts<'a>, row: &render::Row) -> Result<(Place<'a>, Cow<'a, str>)> {
    let place_of =
        |unit: u32| parts.place(unit)?.ok_or_else(|| Error::input(format!("unit {unit} does not exist")));
    let place = place_of(row.first)?;
    if row.count > 1 {
        let end = place_of(row.first + (row.count - 1))?.end;
        let chunk = place_of(row.unit)?.chunk;
        let text = parts.units()?.joined(row.first, row.count);
        return Ok((Place { chunk, end, ..place }, Cow::Owned(text)));
    }
    let text = place.text.get(..row.end - row.start).unwrap_or("");
    let end = match text.len() == place.text.len() {
        true => place.end,
        false => place.start.saturating_add(text.chars().count() as u32),
    };
    Ok((Place { end, ..place }, Cow::Borrowed(text)))
}

impl Frame {
    /// Append the context. `None` if a row is not a unit, or could not be described.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        parts: &Parts<'_>,
        question: &str,
        reply: &Reply,
        timings: &Timings,
        describe: Option<Describe<'_>>,
    ) -> Result<Option<()>> {
        let [printed] = reply.contexts.as_slice() else { return Ok(None) };
        if printed.nodes.iter().any(|&node| node != u32::MAX) {
            return Ok(None);
        }
        let context = &printed.context;
        out.reserve(3 * context.text.len() + 400 * context.rows.len() + 1000);
        out.extend_from_slice(br#"{"schema":"ketrag/context/1","query_id":null,"question":"#);
        string(out, question);
        field(out, "mode");
        string(out, &self.mode);
        field(out, "budget");
        whole(out, self.budget);
        field(out, "tokens");
        whole(out, context.tokens);
        field(out, "reason");
        optional(out, self.reason(reply, printed));
        field(out, "nothing_fits");
        out.extend_from_slice(if printed.nothing_fits { &b"true"[..] } else { b"false" });
        field(out, "context");
        let start = out.len();
        string(out, &context.text);
        let text = start..out.len();
        field(out, "passages");
        if self.passages(out, parts, printed, describe)?.is_none() {
            return Ok(None);
        }
        field(out, "sections");
        list(out, printed.sections.iter(), |out, section| {
            out.extend_from_slice(br#"{"name":"#);
            string(out, section.name);
            field(out, "tokens");
            whole(out, section.tokens);
            field(out, "text");
            match printed.sections.len() {
                1 => out.extend_from_within(text.clone()),
                _ => string(out, context.text.get(section.start..section.end).unwrap_or("")),
            }
            out.push(b'}');
        });
        out.extend_from_slice(br#","timings_ms":{"embed":"#);
        real(out, timings.embed);
        field(out, "search");
        real(out, timings.search);
        out.extend_from_slice(b"}");
        field(out, "generation");
        whole(out, self.generation);
        field(out, "warnings");
        let mut warnings = self.warnings(reply);
        if printed.nothing_fits {
            warnings.push(NOTHING_FITS.to_owned());
        }
        list(out, warnings.iter(), |out, warning| string(out, warning));
        field(out, "fitting");
        match self.fitting {
            Some(fitting) => whole(out, fitting),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
        Ok(Some(()))
    }

    /// Return the warnings of a reply.
    pub fn warnings(&self, reply: &Reply) -> Vec<String> {
        let empty = |name: &String| format!("the {name} is empty: the texts got its share of the budget");
        reply.empty_channels.iter().map(empty).chain(self.cautions.iter().cloned()).collect()
    }

    /// Return the reason why the context has no passages.
    fn reason(&self, reply: &Reply, printed: &Printed) -> Option<&'static str> {
        if self.fitting == Some(0) {
            return Some("nothing_fits_filter");
        }
        if !printed.context.text.is_empty() {
            return None;
        }
        match reply.reason {
            None | Some("no_match") if self.budget == 0 => Some("budget_too_small"),
            reason => reason.or(Some("budget_too_small")),
        }
    }

    fn passages(
        &self,
        out: &mut Vec<u8>,
        parts: &Parts<'_>,
        printed: &Printed,
        describe: Option<Describe<'_>>,
    ) -> Result<Option<()>> {
        let rows = &printed.context.rows;
        let places = rows.iter().map(|row| printed_place(parts, row));
        let places = places.collect::<Result<Vec<_>>>()?;
        let described = match describe {
            None => Vec::new(),
            Some(describe) => {
                let spans: Vec<Row> = rows
                    .iter()
                    .zip(&places)
                    .map(|(row, (place, _))| (row.first, place.start, place.end))
                    .collect();
                match describe(&spans) {
                    Some(described) => described,
                    None => return Ok(None),
                }
            }
        };
        let mut copies = Vec::with_capacity(rows.len());
        for row in rows {
            copies.push(copies_of(parts, printed, row)?);
        }
        list(out, rows.iter().zip(&places).enumerate(), |out, (n, (row, (place, text)))| {
            out.extend_from_slice(br#"{"rank":"#);
            whole(out, n as u64 + 1);
            out.extend_from_slice(br#","unit":{"kind":"#);
            string(out, &self.kind);
            field(out, "id");
            whole(out, row.unit.into());
            out.push(b'}');
            field(out, "chunk");
            whole(out, place.chunk.into());
            field(out, "document");
            string(out, place.document);
            field(out, "title");
            string(out, place.title);
            out.push(b',');
            out.extend_from_slice(described.get(n).map_or(NOTHING, |fields| &fields[..]));
            field(out, "start");
            whole(out, place.start.into());
            field(out, "end");
            whole(out, place.end.into());
            field(out, "score");
            real(out, printed.scores.get(n).copied().unwrap_or(f64::NAN));
            field(out, "relevance");
            real(out, printed.relevance.get(n).copied().unwrap_or(f64::NAN));
            field(out, "tokens");
            whole(out, row.tokens);
            field(out, "channel");
            string(out, channel_of(printed, row.start));
            field(out, "text");
            string(out, text);
            if !place.before.is_empty() {
                field(out, "context");
                string(out, place.before);
            }
            if row.count > 1 {
                field(out, "units");
                list(out, row.first..row.first + row.count, |out, unit| whole(out, unit.into()));
            }
            if !copies[n].is_empty() {
                field(out, "also_in");
                list(out, copies[n].iter(), |out, (unit, place)| {
                    out.extend_from_slice(br#"{"unit":"#);
                    whole(out, (*unit).into());
                    field(out, "document");
                    string(out, place.document);
                    field(out, "title");
                    string(out, place.title);
                    field(out, "start");
                    whole(out, place.start.into());
                    field(out, "end");
                    whole(out, place.end.into());
                    out.push(b'}');
                });
            }
            out.extend_from_slice(br#","why":[]}"#);
        });
        Ok(Some(()))
    }
}

/// Return the copies of a row's units that are not printed, with their positions.
pub fn copies_of<'a>(
    parts: &Parts<'a>,
    printed: &Printed,
    row: &render::Row,
) -> Result<Vec<(u32, Place<'a>)>> {
    let own = printed.copies.iter().filter(|(unit, _)| *unit >= row.first && unit - row.first < row.count);
    let places = own.map(|&(_, copy)| Ok(parts.place(copy)?.map(|place| (copy, place))));
    places.filter_map(Result::transpose).collect()
}

/// Return the channel of the last section that begins before a row.
fn channel_of(printed: &Printed, start: usize) -> &str {
    let sections = &printed.sections;
    let own = sections.iter().rev().find(|section| sections.len() == 1 || section.start <= start);
    own.map_or("", |section| &section.channel)
}

fn field(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

fn list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (n, item) in items.enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}
