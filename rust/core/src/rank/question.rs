//! The keywords, names and subjects of a query that exist in the index.

use crate::rank::links_view::LinksView;
use crate::rank::stem_forms::same_stem;
use crate::text::languages::Language;
use crate::text::lexical::{stop_words, Lexer, Role};
use crate::text::names::MAX_PHRASE;
use crate::text::strings::Strings;
use std::collections::{BTreeSet, HashMap};

/// Total weight of the parts of a code identifier if the index contains the whole identifier. Passages with
/// the whole identifier rank before passages with only its parts.
const PARTS: f64 = 0.1;

/// Weight of the variants of a word if the index contains the word itself. Passages with the word as typed rank before
/// passages with a less exact form of it. 0.1 and 0.5 give the same recall@5 and nDCG@10 on all ten sets that were
/// compared for [`JOINED`], where few words have variants. Of 262 words in texts of five words in four languages, those with the
/// word as typed have a mean reciprocal rank of 88.7 % with 0.1 and 0.25, and 88.0 % with 0.5.
const VARIANTS: f64 = 0.25;
/// Weight of "email" for a query with "e-mail": passages with either form are found, and those with the form as typed rank
/// first. Of ten development sets, 0.1 changes none by more than 0.1 points of recall@5 or nDCG@10, 0.4 loses 0.5 points of
/// recall@5 on hotpotqa-train100 (`bm25`), 1 loses 1.0 on 2wiki-101, and 0 loses 0.4 on CACM and 0.2 on CoSQA and LiHua-World,
/// without a model; the choice is the same without any one of these sets.
const JOINED: f64 = 0.2;

/// Weight of the words of "RFC 2616" if the index has "rfc2616": a short text with "RFC" alone ranks after one with
/// "RFC2616". On the 15 sets that were compared for [`LETTERS`], 0.1 and 0.25 change nothing, and 1 loses 0.2 points of recall@5 on
/// CoSQA.
const GLUED: f64 = 0.5;

/// Weight of "e" and "mail" for a query with "e-mail", and of the letters of "U.S.A.", if the index has "email" or "usa", which a
/// text with either form has: with three keywords, one word would count more than the rest of a short query. The value is that of
/// [`PARTS`]; with 1, "e-mail bounced" puts a text about another e-mail before "His email bounced". On 15 sets (at most 400 questions of
/// MuSiQue dev and train, 2Wiki, HotpotQA, CACM, XQuAD in six languages, LoCoMo, LiHua-World, CoSQA and BEAM; `bm25` and `walk`), 0 and
/// 0.3 change nothing, and 1 gains 0.5 points of recall@5 on HotpotQA, which is one question.
const LETTERS: f64 = 0.1;

/// Maximum number of words of a query whose other forms are searched in texts of unknown language. On the sets of [`LETTERS`], only
/// CoSQA and XQuAD in German depend on it: 0, 3 and 30 lose 0.2 points of recall@5 on CoSQA (`bm25`; 30 also 0.4 by `walk`), 8 loses
/// 0.1 of nDCG@10, and 30 gains 0.1 to 0.2 of nDCG@10 in German.
const SHORT: usize = 5;

/// Ids of a query's keywords, names and subjects, ascending and distinct.
#[derive(Debug, Clone, Default)]
pub struct Question {
    pub keywords: Vec<u32>,
    pub names: Vec<u32>,
    pub subjects: Vec<u32>,
    /// The weight of each keyword; empty if all are 1.
    shares: Vec<f64>,
    /// Number of query words that the index does not contain.
    unknown: usize,
    lexer: Lexer,
}

impl Question {
    /// Read a query. Names and subjects are all known phrases of 1 to 8 words, ignoring case.
    pub fn read(&mut self, links: &LinksView<'_>, text: &str) {
        self.keywords.clear();
        self.names.clear();
        self.subjects.clear();
        self.lexer.read(text);
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        self.lexer.query_roles(links.languages(), |word, role| match links.keywords.position(word) {
            Some(at) => found.push((at as u32, role)),
            None if matches!(role, Role::Word(_)) => missing.push((word.to_owned(), role)),
            None => {}
        });
        self.add_forms(links, &mut found);
        let has_other = |k: usize| {
            found.iter().any(|&(_, role)| match role {
                Role::Variant(of) | Role::Counted(of) => of == k,
                Role::Joined(number) => self.lexer.compound_words(number).contains(&k),
                Role::Glued(first) => first == k || first + 1 == k,
                _ => false,
            })
        };
        // A short query in another language than English may not show its language.
        let is_function = |k: usize| links.languages().iter().any(|one| one.drops(self.lexer.lower(k)));
        missing.retain(|&(_, role)| !matches!(role, Role::Word(k) if has_other(k) || is_function(k)));
        let mut missing: Vec<String> = missing.into_iter().map(|(word, _)| word).collect();
        missing.sort_unstable();
        missing.dedup();
        self.unknown = match links.languages().len() {
            0 | 1 => missing.len(),
            // A word has one form in each language. The index may contain any of these forms.
            several => ((missing.len() + found.len()) / several).saturating_sub(found.len()),
        };
        self.weigh(found);
        let words: Vec<&str> = self.lexer.lowers(0).collect();
        self.names = phrases_in(&words, links.names);
        self.subjects = phrases_in(&words, links.subjects);
    }

    /// Return the number of distinct words that the index does not contain.
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    /// Return the weight of each keyword, or `None` if all are 1.
    pub fn shares(&self) -> Option<&[f64]> {
        (!self.shares.is_empty()).then_some(&self.shares)
    }

    /// Return the weight of the keyword at position `at`.
    pub fn share(&self, at: usize) -> f64 {
        self.shares.get(at).copied().unwrap_or(1.0)
    }

    /// Add the forms of a short query's words that share a stem with them in a language of the index, in texts whose
    /// language is unknown. They are variants, so that the words as typed rank first. Longer questions have words enough.
    fn add_forms(&self, links: &LinksView<'_>, found: &mut Vec<(u32, Role)>) {
        if !reads_forms(&self.lexer, links.languages()) {
            return;
        }
        let stemming: Vec<Language> =
            links.languages().iter().copied().filter(|language| language.marks_latin()).collect();
        for (k, word) in self.lexer.lowers(0).enumerate() {
            let is_function = stop_words().has(word) || stemming.iter().any(|one| one.drops(word));
            if !is_function {
                let forms = same_stem(links.keywords, word, &stemming);
                found.extend(forms.into_iter().map(|(key, _)| (key, Role::Variant(k))));
            }
        }
    }

    /// Return whether the index has each word of a compound of prose, and these mean something alone: not the letters of
    /// "U.S.A." and "e-book".
    fn has_its_words(&self, number: usize, known_words: &[bool]) -> bool {
        let is_function = |k: usize| stop_words().has(self.lexer.lower(k));
        let is_known = |k: usize| known_words.get(k) == Some(&true) || is_function(k);
        self.lexer.compound_words(number).all(|k| !is_letter(&self.lexer, k) && is_known(k))
    }

    /// Set the keywords and their weights from those found. A keyword that was found several times gets its
    /// greatest weight.
    fn weigh(&mut self, mut found: Vec<(u32, Role)>) {
        found.sort_unstable_by_key(|&(id, _)| id);
        let names = found.iter().map(|&(_, role)| match role {
            Role::Word(_) | Role::Variant(_) | Role::Joined(_) | Role::Counted(_) | Role::Glued(_) => 0,
            Role::Whole(name) | Role::Part(name) => name + 1,
        });
        // For each identifier: whether the index contains it as a whole, and its number of parts.
        let mut of_names = vec![(false, 0usize); names.max().unwrap_or(0)];
        let words = found.iter().map(|&(_, role)| if let Role::Word(k) = role { k + 1 } else { 0 });
        let mut known_words = vec![false; words.max().unwrap_or(0)];
        for &(_, role) in &found {
            match role {
                Role::Word(k) => known_words[k] = true,
                Role::Variant(_) | Role::Joined(_) | Role::Counted(_) | Role::Glued(_) => {}
                Role::Whole(name) => of_names[name].0 = true,
                Role::Part(name) => of_names[name].1 += 1,
            }
        }
        let glued: BTreeSet<usize> = found
            .iter()
            .filter_map(
                |&(_, role)| if let Role::Glued(first) = role { Some([first, first + 1]) } else { None },
            )
            .flatten()
            .collect();
        let is_glued = |role: Role| match role {
            Role::Word(k) => glued.contains(&k),
            // A name in capitals, as in "the RFC 2616".
            Role::Whole(name) => {
                let words = self.lexer.compound_words(name);
                words.len() == 1 && glued.contains(&words.start)
            }
            _ => false,
        };
        // The letters of "U.S.A." and the words of "e-mail", if the index has "usa" and "email".
        let mut of_letters = vec![false; self.lexer.words.len()];
        for &(_, role) in &found {
            if let Role::Joined(number) = role {
                let words = self.lexer.compound_words(number);
                if words.clone().any(|k| is_letter(&self.lexer, k)) {
                    of_letters[words].fill(true);
                }
            }
        }
        let share = |role: Role| match role {
            _ if is_glued(role) => GLUED,
            Role::Word(k) if of_letters[k] => LETTERS,
            Role::Part(name) if of_names[name].0 => PARTS / of_names[name].1 as f64,
            Role::Variant(k) if known_words.get(k) == Some(&true) => VARIANTS,
            Role::Joined(number) if self.has_its_words(number, &known_words) => JOINED,
            _ => 1.0,
        };
        let (keywords, shares): (Vec<u32>, Vec<f64>) = found
            .chunk_by(|a, b| a.0 == b.0)
            .map(|same| (same[0].0, same.iter().map(|&(_, role)| share(role)).fold(0.0, f64::max)))
            .unzip();
        (self.keywords, self.shares) = (keywords, shares);
        if self.shares.iter().all(|&share| share == 1.0) {
            self.shares.clear();
        }
    }
}

/// Return whether other forms of a query's words are searched in an index of these languages.
pub fn reads_forms(question: &Lexer, languages: &[Language]) -> bool {
    question.words.len() <= SHORT && languages.iter().any(|language| language.marks_latin())
}

fn is_letter(text: &Lexer, k: usize) -> bool {
    text.lower(k).chars().nth(1).is_none()
}

/// Return the strings that occur in a text as phrases of 1 to 8 words, ignoring case: ids, ascending and distinct.
pub fn phrases_of(text: &Lexer, strings: Strings<'_>) -> Vec<u32> {
    let words: Vec<&str> = text.lowers(0).collect();
    phrases_in(&words, strings)
}

/// Return the ids of strings that occur among words in lower case, ascending and distinct.
pub fn phrases_in(words: &[&str], strings: Strings<'_>) -> Vec<u32> {
    phrases_from(words, strings, |word| first_not_below(strings, 0, word.as_bytes()))
}

/// Like [`phrases_in`], for several texts that have most words in common: `places` keeps where the strings that begin with
/// each word are.
pub fn phrases_in_all<'w>(
    words: &[&'w str],
    strings: Strings<'_>,
    places: &mut HashMap<&'w str, usize>,
) -> Vec<u32> {
    let find =
        |word: &'w str| *places.entry(word).or_insert_with(|| first_not_below(strings, 0, word.as_bytes()));
    phrases_from(words, strings, find)
}

fn phrases_from<'w>(
    words: &[&'w str],
    strings: Strings<'_>,
    mut place: impl FnMut(&'w str) -> usize,
) -> Vec<u32> {
    let (mut found, mut phrase) = (Vec::new(), String::new());
    for (first, word) in words.iter().enumerate() {
        known_phrases(&words[first..], strings, place(word), &mut phrase, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Find known phrases that begin with the first word, before which there are `low` strings. The strings are sorted, so if
/// no string begins with a phrase, no string begins with a longer one.
fn known_phrases(
    words: &[&str],
    strings: Strings<'_>,
    mut low: usize,
    phrase: &mut String,
    found: &mut Vec<u32>,
) {
    phrase.clear();
    for (k, word) in words.iter().take(MAX_PHRASE).enumerate() {
        if k > 0 {
            phrase.push(' ');
        }
        phrase.push_str(word);
        if k > 0 {
            low = first_not_below(strings, low, phrase.as_bytes());
        }
        if low == strings.len() || !strings.bytes(low).starts_with(phrase.as_bytes()) {
            return;
        }
        if strings.bytes(low).len() == phrase.len() {
            found.push(low as u32);
        }
    }
}

/// Return the first string from `low` on that is not less than `phrase`. A longer phrase is usually just
/// after its prefix, so the search gallops: its steps grow from one.
fn first_not_below(strings: Strings<'_>, mut low: usize, phrase: &[u8]) -> usize {
    let below = |at: usize| strings.bytes(at) < phrase;
    let (mut step, mut high) = (if low == 0 { strings.len() } else { 1 }, strings.len());
    while step < high - low {
        if !below(low + step) {
            high = low + step;
            break;
        }
        low += step + 1;
        step *= 2;
    }
    while low < high {
        let middle = (low + high) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
