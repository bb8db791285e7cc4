//! What the question says of a unit's subject.

use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::rank::walk_pairs::LANES;
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
        if subject == NONE || !self.meets(links.unit_keywords.row(unit as usize)) {
            return 0.0;
        }
        let Self { keywords, lexer, own, .. } = self;
        lexer.read(links.subjects.get(subject as usize));
        own.clear();
        lexer.keywords(|word| own.extend(links.keywords.position(word).map(|at| at as u32)));
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

    /// `out[i]`: the share of partner i's subject, times `weight`.
    pub fn bonus(&mut self, links: &LinksView<'_>, partners: &[u32], weight: f64, out: &mut [f64; LANES]) {
        out.fill(0.0);
        for (out, &unit) in out.iter_mut().zip(partners) {
            *out = weight * self.share(links, unit);
        }
    }

    /// Whether a unit has any of the question's keywords: one without has none of them in its subject.
    fn meets(&self, row: &[u32]) -> bool {
        self.keywords.iter().any(|x| row.binary_search(x).is_ok())
    }
}
