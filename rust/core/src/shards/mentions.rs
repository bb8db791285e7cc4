//! Mentions across shards. A shard knows which of its units mention the subjects of its documents; units of other shards
//! may mention them as well.

use super::bundle::{Bundle, CHECKED};
use crate::error::Result;
use crate::progress::Progress;
use crate::text::languages::Language;
use crate::text::lexical::Lexer;
use crate::text::names::{Naming, SubjectTree};
use crate::text::strings::Strings;

/// Return (ends, ids): for each of some rows of bundles the subjects that the title and the text mention, ascending, as
/// the stage `links` finds them.
pub fn mentions(
    bundles: &[(u32, &Bundle)],
    places: &[(usize, usize)],
    subjects: Strings<'_>,
    progress: &Progress,
) -> Result<(Vec<u64>, Vec<u32>)> {
    let tree = SubjectTree::new(subjects);
    let (mut ends, mut ids) = (vec![0u64], Vec::new());
    let (mut lexer, mut row) = (Lexer::default(), Vec::new());
    for (number, &(at, unit)) in places.iter().enumerate() {
        if number % CHECKED == 0 {
            progress.check()?;
        }
        let own = bundles[at].1;
        lexer.clear();
        lexer.append_words(own.titles.get(own.documents[unit] as usize));
        let first = lexer.words.len();
        lexer.append_words("\n");
        lexer.append_words(own.texts.get(unit));
        let from = if first < lexer.words.len() { first } else { 0 };
        let language = own.languages.get(unit).map_or(Ok(Language::ENGLISH), |&n| Language::numbered(n))?;
        tree.mentions(&lexer, Naming::of(&lexer, from, language), |id| row.push(id));
        row.sort_unstable();
        row.dedup();
        ids.append(&mut row);
        ends.push(ids.len() as u64);
    }
    Ok((ends, ids))
}
