//! Prefetching for the walk. Candidates are scattered over mapped arrays, so the rows of the next candidates
//! are requested early.

use crate::rank::links_view::LinksView;
use crate::sparse::{prefetch, prefetch_item, prefetch_items, Scored};

/// Prefetch for the next candidates: first the row offsets, then the rows.
pub(crate) fn ask_ahead(links: &LinksView<'_>, pool: &[Scored], at: usize) {
    if let Some(far) = pool.get(at + 6) {
        let unit = far.id as usize;
        prefetch_item(links.unit_keywords.indptr, unit);
        prefetch_item(links.unit_names.indptr, unit);
        prefetch_item(links.unit_mentions.indptr, unit);
        prefetch_item(links.first_sentence, unit);
        prefetch_item(links.unit_subject, unit);
        prefetch(links.unit_length, unit);
    }
    if let Some(next) = pool.get(at + 4) {
        let unit = next.id as usize;
        prefetch_items(links.unit_keywords.indices, links.unit_keywords.range(unit));
        prefetch_items(links.unit_names.indices, links.unit_names.range(unit));
        prefetch_items(links.unit_mentions.indices, links.unit_mentions.range(unit));
        let sentences = links.sentences(unit);
        prefetch_items(links.sentence_keywords.stored.indptr, sentences.clone());
        prefetch_items(links.sentence_names.stored.indptr, sentences);
    }
    if let Some(next) = pool.get(at + 2) {
        let sentences = links.sentences(next.id as usize);
        for rows in [links.sentence_keywords.stored, links.sentence_names.stored] {
            let (start, end) = (rows.indptr[sentences.start], rows.indptr[sentences.end]);
            prefetch_items(rows.indices, start as usize..end as usize);
        }
    }
}
