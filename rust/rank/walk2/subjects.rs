//! What the question says of a unit's subject.

use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::text::lexical::Lexer;

/// The question's subjects and keywords, to compare subjects with.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    known: Vec<u32>,
    /// Ids, ascending.
    keywords: Vec<u32>,
    lexer: Lexer,
    own: Vec<u32>,
}

impl Subjects {
    pub fn read(&mut self, question: &Question) {
        self.known.clone_from(&question.subjects);
        self.keywords.clone_from(&question.keywords);
    }

    /// 1 if the question names the unit's subject.
    pub fn named(&self, links: &LinksView<'_>, unit: u32) -> f64 {
        f64::from(u8::from(self.known.binary_search(&links.unit_subject[unit as usize]).is_ok()))
    }

    /// Share of the subject's keywords, by idf, that the question has.
    pub fn share(&mut self, links: &LinksView<'_>, unit: u32) -> f64 {
        let subject = links.unit_subject[unit as usize];
        let row = links.unit_keywords.row(unit as usize);
        if subject == NONE || !self.meets(row) {
            return 0.0;
        }
        let Self { keywords, lexer, own, .. } = self;
        lexer.read(links.subjects.get(subject as usize));
        own.clear();
        lexer.keywords(|word| own.extend(keyword_id(links, row, word)));
        own.sort_unstable();
        own.dedup();
        let idf = |x: &u32| links.keyword_idf[*x as usize];
        let (mut named, mut all) = (0.0, 0.0);
        for x in &*own {
            all += idf(x);
            named += if keywords.binary_search(x).is_ok() { idf(x) } else { 0.0 };
        }
        if all > 0.0 {
            named / all
        } else {
            0.0
        }
    }

    /// Whether a unit has any of the question's keywords: one without has none of them in its subject.
    fn meets(&self, row: &[u32]) -> bool {
        self.keywords.iter().any(|x| row.binary_search(x).is_ok())
    }
}

/// The id of a keyword, which mostly is one of the unit's own: their ids ascend as the words do.
fn keyword_id(links: &LinksView<'_>, row: &[u32], word: &str) -> Option<u32> {
    let own = row.binary_search_by(|&x| links.keywords.get(x as usize).as_bytes().cmp(word.as_bytes()));
    own.map_or_else(|_| links.keywords.position(word).map(|at| at as u32), |at| Some(row[at]))
}
