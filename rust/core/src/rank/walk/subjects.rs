//! Comparison of the query with a unit's subject.

use crate::rank::links_view::{LinksView, NONE};
use crate::rank::question::Question;
use crate::text::lexical::Lexer;

/// The query's subjects and keywords, for comparison with subjects.
#[derive(Debug)]
pub(super) struct Subjects {
    known: Vec<u32>,
    /// Ids, ascending.
    keywords: Vec<u32>,
    /// Prefixes of words that yield the query's keywords in singular or plural, and the first bytes of these
    /// prefixes.
    roots: Vec<Vec<u8>>,
    begins: [bool; 128],
    lexer: Lexer,
    own: Vec<u32>,
}

impl Default for Subjects {
    fn default() -> Self {
        let (known, keywords, roots, own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { known, keywords, roots, begins: [false; 128], lexer: Lexer::default(), own }
    }
}

impl Subjects {
    pub fn read(&mut self, links: &LinksView<'_>, question: &Question) {
        self.known.clone_from(&question.subjects);
        self.keywords.clone_from(&question.keywords);
        self.begins.fill(false);
        self.roots.clear();
        for &x in &self.keywords {
            let word = links.keywords.get(x as usize).as_bytes();
            // "cities" yields the keyword "city".
            let root = word.strip_suffix(b"y").filter(|root| !root.is_empty()).unwrap_or(word);
            if let Some(begins) = self.begins.get_mut(usize::from(root[0])) {
                *begins = true;
                self.roots.push(root.to_vec());
            }
        }
    }

    /// Return 1 if the query names the unit's subject.
    pub fn named(&self, links: &LinksView<'_>, unit: u32) -> f64 {
        f64::from(u8::from(self.known.binary_search(&links.unit_subject[unit as usize]).is_ok()))
    }

    /// Return the share of the subject's keywords, weighted by idf, that the query contains.
    pub fn share(&mut self, links: &LinksView<'_>, unit: u32) -> f64 {
        let subject = links.unit_subject[unit as usize];
        let row = links.unit_keywords.row(unit as usize);
        if subject == NONE {
            return 0.0;
        }
        // Most subjects are rejected by their bytes, before they are decoded.
        let bytes = links.subjects.bytes(subject as usize);
        if (links.languages().is_empty() && self.has_none(bytes)) || !self.meets(row) {
            return 0.0;
        }
        let text = links.subjects.get(subject as usize);
        let Self { keywords, lexer, own, .. } = self;
        lexer.read(text);
        own.clear();
        match links.languages() {
            [] => lexer.keywords(|word| own.extend(keyword_id(links, row, word))),
            // A unit contains the words of its subject, analysed in the unit's language.
            several => lexer.query_keywords(several, |word| own.extend(own_keyword(links, row, word))),
        }
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

    /// Return whether no word of a subject begins with one of the query's keywords. Words that are not plain
    /// lower case are left to the lexer.
    fn has_none(&self, subject: &[u8]) -> bool {
        if subject.iter().any(|b| !b.is_ascii() || b.is_ascii_uppercase()) {
            return false;
        }
        let mut inside = false;
        for (at, &b) in subject.iter().enumerate() {
            let first = !inside;
            inside = b.is_ascii_alphanumeric();
            if first
                && self.begins[usize::from(b)]
                && self.roots.iter().any(|root| subject[at..].starts_with(root))
            {
                return false;
            }
        }
        true
    }

    /// Return whether a unit has any keyword of the query. If not, its subject has none either.
    fn meets(&self, row: &[u32]) -> bool {
        self.keywords.iter().any(|x| row.binary_search(x).is_ok())
    }
}

/// Return the id of a keyword. In most cases the unit has it.
fn keyword_id(links: &LinksView<'_>, row: &[u32], word: &str) -> Option<u32> {
    own_keyword(links, row, word).or_else(|| links.keywords.position(word).map(|at| at as u32))
}

/// Return the id of a keyword of a unit. The ids of a unit's keywords ascend with the keywords.
fn own_keyword(links: &LinksView<'_>, row: &[u32], word: &str) -> Option<u32> {
    let own = row.binary_search_by(|&x| links.keywords.bytes(x as usize).cmp(word.as_bytes()));
    own.ok().map(|at| row[at])
}
