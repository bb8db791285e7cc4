//! Merging of an entity's or relation's descriptions by a fixed rule, without an LLM.

use super::gather::Line;
use super::input::by_owner;
use crate::error::{Error, Result};
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use crate::text::bpe::{Counter, Encoding};
use crate::text::strings::StringsBuf;
use crate::tokens::Count;

/// Return for each of `owners` its distinct lines, those found in most chunks first, then by bytes, one per
/// line up to `limit` tokens. A first line that exceeds the limit is cut.
pub fn join(
    lines: &[Line<'_>],
    owners: usize,
    limit: (usize, Encoding),
    threads: usize,
    progress: &Progress,
) -> Result<StringsBuf> {
    if lines.len() > u32::MAX as usize {
        return Err(Error::input("more than 4,294,967,295 lines of descriptions in one fold"));
    }
    let places = lines.iter().enumerate().map(|(i, line)| (line.owner, i as u32));
    let own = by_owner(places, owners, lines.len());
    let parts = map_ranges_with(
        owners,
        256,
        threads,
        progress,
        || Counter::new(limit.1),
        |counter, range| {
            let mut out = StringsBuf::default();
            let mut text = String::new();
            for owner in range {
                let mut said: Vec<(&str, u32)> = own
                    .view()
                    .row(owner)
                    .iter()
                    .map(|&i| (lines[i as usize].text, lines[i as usize].row))
                    .collect();
                join_one(&mut said, limit, counter, &mut text);
                out.push(&text);
            }
            Ok(out)
        },
    )?;
    let mut all = StringsBuf::default();
    for part in parts {
        let base = all.blob.len() as u64;
        all.blob.extend_from_slice(&part.blob);
        all.offsets.extend(part.offsets[1..].iter().map(|end| base + end));
    }
    Ok(all)
}

fn join_one(
    said: &mut Vec<(&str, u32)>,
    (limit, encoding): (usize, Encoding),
    counter: &mut Counter,
    out: &mut String,
) {
    out.clear();
    said.sort_unstable();
    said.dedup();
    let mut lines: Vec<(usize, &str)> =
        said.chunk_by(|a, b| a.0 == b.0).map(|same| (same.len(), same[0].0)).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.0)); // stable: equal counts keep byte order
                                                         // A text has at most as many tokens as bytes, so
                                                         // most lists need no counting.
    let fits = lines.iter().map(|line| line.1.len() + 1).sum::<usize>() <= limit;
    let mut used = 0;
    for (place, &(_, line)) in lines.iter().enumerate() {
        if !fits {
            used += counter.count(line) + 1;
            if used > limit {
                if place == 0 {
                    out.push_str(&line[..Count::cut(&encoding, line, limit)]);
                }
                break;
            }
        }
        if place > 0 {
            out.push('\n');
        }
        out.push_str(line);
    }
}
