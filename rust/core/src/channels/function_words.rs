//! Queries of function words only, which channels of words answer by searching the texts.

use super::query::Query;
use crate::error::Result;
use crate::progress::Progress;
use crate::rank::function_words;
use crate::sparse::Scored;

/// Return the best units for a query of function words only, which the word index lacks; `None` for another query.
pub(super) fn by_function_words(
    query: &Query<'_, '_>,
    wanted: usize,
    progress: &Progress,
) -> Result<Option<Vec<Scored>>> {
    let (parts, question) = (query.parts, query.question.text);
    let languages = parts.links()?.map_or(&[][..], |links| links.languages());
    if !function_words::are_all(question, languages) {
        return Ok(None);
    }
    let text = |unit| Ok(parts.place(unit)?.map_or(["", ""], |place| [place.title, place.text]));
    function_words::rank(parts.len(), text, question, wanted, query.mask, progress).map(Some)
}
