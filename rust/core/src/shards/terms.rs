//! The words of a query, and how many units of a shard have them.

use crate::error::Result;
use crate::generation::Parts;
use crate::rank::links_view::LinksView;
use crate::rank::links_weights::Whole;
use crate::text::languages::Language;
use crate::text::lexical::Lexer;
use crate::text::names::MAX_PHRASE;
use crate::text::strings::Strings;

/// Keywords, names and subjects: each list ascending and distinct.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    pub keywords: Vec<String>,
    pub names: Vec<String>,
    pub subjects: Vec<String>,
}

/// Terms with a number for each: how many units have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frequencies {
    pub keywords: Vec<(String, u64)>,
    pub names: Vec<(String, u64)>,
    pub subjects: Vec<(String, u64)>,
}

impl Terms {
    /// Return every keyword, name and subject that a query may contain, in an index of these languages.
    pub fn of_question(question: &str, languages: &[Language]) -> Self {
        let mut lexer = Lexer::default();
        lexer.read(question);
        let mut keywords = Vec::new();
        lexer.query_keywords(languages, |word| keywords.push(word.to_owned()));
        let mut phrases = Vec::new();
        for first in 0..lexer.words.len() {
            let mut phrase = String::new();
            for k in first..lexer.words.len().min(first + MAX_PHRASE) {
                if k > first {
                    phrase.push(' ');
                }
                phrase.push_str(lexer.lower(k));
                phrases.push(phrase.clone());
            }
        }
        for list in [&mut keywords, &mut phrases] {
            list.sort_unstable();
            list.dedup();
        }
        Self { keywords, names: phrases.clone(), subjects: phrases }
    }

    pub fn is_empty(&self) -> bool {
        self.keywords.is_empty() && self.names.is_empty() && self.subjects.is_empty()
    }

    /// Return the number of units of an index that have each term.
    pub fn counted(&self, links: &LinksView<'_>) -> [Vec<u64>; 3] {
        let count = |terms: &[String], known: Strings<'_>, units: &dyn Fn(usize) -> usize| {
            terms.iter().map(|term| known.position(term).map_or(0, |at| units(at) as u64)).collect()
        };
        // Units that mention a subject of another shard usually have it as a name.
        let subject = |term: &String| {
            let own = links.subjects.position(term).map(|at| links.subject_units.len_of(at));
            let name = || links.names.position(term).map(|at| links.name_units.len_of(at));
            own.or_else(name).unwrap_or(0) as u64
        };
        [
            count(&self.keywords, links.keywords, &|at| links.keyword_units.len_of(at)),
            count(&self.names, links.names, &|at| links.name_units.len_of(at)),
            self.subjects.iter().map(subject).collect(),
        ]
    }

    /// Return the terms with the sums of the counts of several shards.
    pub fn with_counts(self, counts: &[[Vec<u64>; 3]]) -> Frequencies {
        let summed = |terms: Vec<String>, kind: usize| {
            let sum = |at: usize| counts.iter().map(|one| one[kind].get(at).copied().unwrap_or(0)).sum();
            terms.into_iter().enumerate().map(|(at, term)| (term, sum(at))).collect()
        };
        Frequencies {
            keywords: summed(self.keywords, 0),
            names: summed(self.names, 1),
            subjects: summed(self.subjects, 2),
        }
    }
}

impl Frequencies {
    /// Add terms that this does not have.
    pub fn extend(&mut self, other: Self) {
        for (own, more) in [
            (&mut self.keywords, other.keywords),
            (&mut self.names, other.names),
            (&mut self.subjects, other.subjects),
        ] {
            own.extend(more);
            own.sort_unstable();
            own.dedup_by(|a, b| a.0 == b.0);
        }
    }
}

/// Return the statistics of one shard.
pub fn totals(parts: &Parts<'_>) -> Result<Whole> {
    let Some(links) = parts.links()? else { return Ok(Whole::default()) };
    let documents = parts.unit_documents()?;
    let mut whole = Whole {
        units: links.units(),
        documents: documents.last().map_or(0, |&last| last as usize + 1),
        length: links.unit_length.iter().map(|&length| u64::from(length)).sum(),
        ..Whole::default()
    };
    if let Some(languages) = parts.unit_languages()? {
        for &number in languages.all() {
            *whole.languages.entry(number).or_default() += 1;
        }
    }
    Ok(whole)
}

/// Return the statistics of several shards together.
pub fn summed(all: &[Whole]) -> Whole {
    let mut sum = Whole::default();
    let is_mixed = all.iter().any(|one| !one.languages.is_empty());
    for one in all {
        sum.units += one.units;
        sum.documents += one.documents;
        sum.length += one.length;
        for (&number, &count) in &one.languages {
            *sum.languages.entry(number).or_default() += count;
        }
        if is_mixed && one.languages.is_empty() && one.units > 0 {
            *sum.languages.entry(Language::ENGLISH.number()).or_default() += one.units as u64;
        }
    }
    sum
}

/// Return the languages in which a query over these statistics is analysed; empty if all are English.
pub fn languages_of(whole: &Whole) -> Result<Vec<Language>> {
    whole.languages.keys().map(|&number| Language::numbered(number)).collect()
}
