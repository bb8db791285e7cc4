//! Names and subjects for the walk: capitalised spans, the subject of a text, and its mentions of other
//! subjects. In text without capitals, names are the words between function words.

use crate::folding::{fold_into, is_unspaced, WordSet};
use crate::interner::Interner;
use crate::languages::Language;
use crate::lexical::{openers, stop_words, Lexer};
use crate::strings::Strings;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

/// Maximum length of a phrase that is searched for, in words.
pub const MAX_PHRASE: usize = 8;
/// Maximum length of a name in words. A text in capitals contains many names, not one.
pub const MAX_NAME: usize = 256;
/// Characters in which the subject of an untitled text is searched for.
const OPENING: usize = 200;
const SUBJECT_CAPITALS: f64 = 0.6;
/// Small words inside a name ("Lord of the Rings"). "the" is allowed only after one of the others.
const CONNECTORS: &str = "of de la le du des von van der den di da del della y al el bin ibn the";
const SUBJECT_SMALL: &str = "de la le du des von van der den di da del della y e al el bin ibn";

fn connectors() -> &'static WordSet {
    static SET: OnceLock<WordSet> = OnceLock::new();
    SET.get_or_init(|| WordSet::new(CONNECTORS))
}

fn subject_small() -> &'static WordSet {
    static SET: OnceLock<WordSet> = OnceLock::new();
    SET.get_or_init(|| WordSet::new(SUBJECT_SMALL))
}

fn is_capital(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

fn is_number(word: &str) -> bool {
    word.chars().all(char::is_numeric)
}

/// A text with at least this many lower-case words and no capital is assumed to write names without capitals,
/// too.
const WITHOUT_CAPITALS: usize = 8;

/// How the names of a text are recognised: by capitals, or, in text without capitals, as the words between
/// function words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    language: Language,
    /// The text contains only lower-case letters.
    lower: bool,
    /// The script of the language has no capitals.
    caseless: bool,
}

impl Naming {
    /// Names begin with capitals.
    pub const CAPITALS: Self = Self { language: Language::ENGLISH, lower: false, caseless: false };

    /// Return how names are recognised in a text in a language. Its words begin at `from`, after those of its
    /// title. A chunk may lack capitals by chance, but a title in lower case shows that the whole text lacks
    /// them.
    pub fn of(text: &Lexer, from: usize, language: Language) -> Self {
        let caseless = language.is_caseless();
        let is_lower = |word: &str| word.chars().next().is_some_and(char::is_lowercase);
        // Most titles and texts begin with a capital, so this ends at once.
        let capitals = text.folded.chars().any(char::is_uppercase);
        let lower = !capitals
            && (from..text.words.len())
                .filter(|&k| is_lower(text.raw(k)))
                .nth(WITHOUT_CAPITALS - 1)
                .is_some();
        Self { language, lower, caseless }
    }

    /// Return whether the letters of word `k` allow it to be part of a name.
    fn has(self, text: &Lexer, k: usize) -> bool {
        let raw = text.raw(k);
        is_capital(raw) || ((self.lower || self.caseless) && self.has_plain(raw, text.lower(k)))
    }

    fn has_plain(self, raw: &str, lower: &str) -> bool {
        let kind = raw.chars().next().is_some_and(|c| {
            if c.is_lowercase() {
                self.lower
            } else {
                self.caseless && c.is_alphabetic() && !is_unspaced(c)
            }
        });
        let drops = |language: Language| language != Language::ENGLISH && language.drops(lower);
        kind && !(stop_words().has(lower) || openers().has(lower) || drops(self.language))
    }

    /// Return the maximum length of a name in words. In text without capitals only function words end a name,
    /// and longer names are never searched for.
    fn most(self) -> usize {
        if self.lower || self.caseless {
            MAX_PHRASE
        } else {
            MAX_NAME
        }
    }
}

/// Return whether this text may separate two words of a name.
fn joins(gap: &str) -> bool {
    matches!(gap, " " | "-" | " - " | ". " | "." | "'" | " & ")
}

/// Return the next word of the name that ends at word `last` so far: a capitalised word or number after a
/// joining gap (after a full stop and a space only if the word has at most three letters: "J. Smith", "St.
/// Louis"), or a capitalised word after one to three connectors.
fn next_in_name(text: &Lexer, last: usize, naming: Naming) -> Option<usize> {
    let (mut k, count) = (last + 1, text.words.len());
    if k >= count || !joins(text.gap(k)) {
        return None;
    }
    if text.gap(k) == ". " && text.raw(last).chars().count() > 3 {
        return None;
    }
    if naming.has(text, k) || is_number(text.raw(k)) {
        return Some(k);
    }
    while k < count && k - last <= 3 && connectors().has(text.raw(k)) && text.gap(k) == " " {
        k += 1;
    }
    let over = k > last + 1 && text.raw(last + 1) != "the" && k < count;
    (over && naming.has(text, k) && text.gap(k) == " ").then_some(k)
}

/// Return whether a word at byte `start` opens a sentence, judged by the (at most five) characters before it:
/// a mark that ends a sentence, then closing marks, white space, opening marks.
fn opens_sentence(folded: &str, start: usize) -> bool {
    let mut before: Vec<char> = folded[..start].chars().rev().take(5).collect();
    before.reverse();
    (0..before.len()).any(|k| {
        let ends = matches!(before[k], '.' | '!' | '?' | ':' | '\n');
        let mut rest = before[k + 1..].iter().copied().peekable();
        while rest.next_if(|c| matches!(c, '"' | '”' | '’' | ')' | ']')).is_some() {}
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        while rest.next_if(|c| matches!(c, '"' | '“' | '(' | '[')).is_some() {}
        ends && rest.next().is_none()
    })
}

/// Words of the layout of a text: alone or with a small number they are not names.
const LAYOUT: &str =
    "table tables list lists note notes figure figures fig chapter section page appendix step example \
contents day week";
/// Parts of dates: alone they are not names.
const CALENDAR: &str =
    "january february march april may june july august september october november december monday \
tuesday wednesday thursday friday saturday sunday";
/// Minimum number of digits of a number that is a name or a subject by itself, such as a year.
const MIN_DIGITS: usize = 4;

/// Return whether a single word is too common to be a name: a small number or a letter.
pub fn is_small(word: &str) -> bool {
    let length = word.chars().count();
    (is_number(word) && length < MIN_DIGITS) || (length < 2 && !word.chars().any(is_unspaced))
}

/// Return whether words `from..to` are only a word of the layout, with small numbers, or a part of a date.
fn is_no_name(text: &Lexer, from: usize, to: usize) -> bool {
    static SETS: OnceLock<[WordSet; 2]> = OnceLock::new();
    let [layout, calendar] = SETS.get_or_init(|| [LAYOUT, CALENDAR].map(WordSet::new));
    let first = text.lower(from);
    let has_small_numbers = || (from + 1..to).all(|k| is_number(text.raw(k)) && is_small(text.raw(k)));
    (calendar.has(first) && from + 1 == to) || (layout.has(first) && has_small_numbers())
}

/// Return whether word `k`, a number, is a part of a date or of another number, as in 2024-03-05.
fn is_within_number(text: &Lexer, k: usize) -> bool {
    let joins = |k: usize| matches!(text.gap(k), "-" | "/" | "." | ":" | ",");
    (k > 0 && joins(k) && is_number(text.raw(k - 1)))
        || (k + 1 < text.words.len() && joins(k + 1) && is_number(text.raw(k + 1)))
}

/// Call `each` with the names among the words from `from`, in lower case, with repetitions. A name begins
/// with a capitalised word, or with a year (four digits) directly before one; any other year is a name by
/// itself. Leading stop words are removed. Single letters are not names, nor is a single word left of a span
/// that opens a sentence if that word often opens sentences. In text without capitals, each word that is not a function
/// word counts as capitalised.
pub fn name_spans(text: &Lexer, from: usize, naming: Naming, mut each: impl FnMut(&str)) {
    let count = text.words.len();
    let (mut name, mut k) = (String::new(), from);
    while k < count {
        let (first, start) = (k, text.words[k].start);
        let raw = text.raw(k);
        let year = raw.len() >= 4 && raw.chars().count() == 4 && is_number(raw);
        if !year && !naming.has(text, k) {
            k += 1;
            continue;
        }
        let leads = k + 1 < count && naming.has(text, k + 1) && text.gap(k + 1) == " ";
        if year && !leads {
            if !is_within_number(text, k) {
                each(raw);
            }
        } else {
            let mut last = k;
            while let Some(next) = next_in_name(text, last, naming) {
                if next - first >= naming.most() {
                    break;
                }
                last = next;
            }
            k = last;
            let begin = (first..=last).find(|&w| !stop_words().has(text.lower(w)));
            if let Some(begin) = begin {
                name.clear();
                join(text, begin, last + 1, &mut name);
                let alone = begin == last;
                let letter = text.lower(begin).chars().nth(1).is_none();
                let common = || {
                    openers().has(text.lower(first)) && (first == from || opens_sentence(&text.folded, start))
                };
                if !is_no_name(text, begin, last + 1) && (!alone || !(letter || common())) {
                    each(&name);
                }
            }
        }
        k += 1;
    }
}

/// Return whether word `k` begins the name of a note in a wiki link: `[[fram]]`, or `[[ships/fram|her]]`.
fn opens_link(text: &Lexer, k: usize) -> bool {
    // A folder's name may have several words, a path few of them.
    let mut before = (k.saturating_sub(MAX_PHRASE)..=k).rev();
    text.gap(k).ends_with("[[")
        || (text.gap(k) == "/"
            && before
                .find(|&at| !matches!(text.gap(at), "/" | " " | "-" | "_"))
                .is_some_and(|at| text.gap(at).ends_with("[[")))
}

/// Append words `from..to` in lower case, with single spaces.
fn join(text: &Lexer, from: usize, to: usize, out: &mut String) {
    for k in from..to {
        if k > from {
            out.push(' ');
        }
        out.push_str(text.lower(k));
    }
}

/// Return the title in lower-case words without a closing "(...)" and without a leading article.
pub fn title_key(title: &str, lexer: &mut Lexer) -> String {
    let mut folded = String::new();
    fold_into(title, &mut folded);
    let trimmed = folded.trim_end();
    let mut kept = folded.as_str();
    if let Some(inside) = trimmed.strip_suffix(')') {
        let after = inside.rfind(')').map_or(0, |at| at + 1);
        if let Some(open) = inside[after..].find('(') {
            kept = &folded[..after + open];
        }
    }
    lexer.read(kept);
    let is_article = |k: &usize| matches!(lexer.lower(*k), "the" | "a" | "an");
    let begin = (0..lexer.words.len()).find(|k| !is_article(k)).unwrap_or(lexer.words.len());
    let mut key = String::new();
    join(lexer, begin, lexer.words.len(), &mut key);
    key
}

/// Return whether `rest` begins with something that ends the subject of an untitled text.
fn ends_subject(rest: &[char]) -> bool {
    const VERBS: [&str; 7] = [" is ", " was ", " are ", " were ", " has ", " had ", " refers "];
    let bracket = rest.iter().find(|c| !c.is_whitespace()) == Some(&'(');
    let mark = rest.first().is_some_and(|c| matches!(c, ',' | '.' | ';' | ':'));
    bracket || mark || VERBS.iter().any(|v| v.chars().eq(rest.iter().copied().take(v.len())))
}

/// Return the subject of an untitled text, or "". It is the text before the first bracket, comma, full stop,
/// (semi)colon or " is / was / are / were / has / had / refers ", without a leading article, if it begins
/// with a capital or digit, has at most [`MAX_PHRASE`] words, and enough of its words other than small ones
/// are capitalised or numbers.
pub fn opening_subject(text: &str, lexer: &mut Lexer) -> String {
    // 200 folded characters come from the first 200 characters and the marks between them.
    let mut folded = String::new();
    let cut = text.char_indices().nth(4 * OPENING).map_or(text.len(), |(at, _)| at);
    fold_into(&text[..cut], &mut folded);
    let chars: Vec<char> = folded.chars().take(OPENING).collect();
    let begin = chars.iter().position(|c| !c.is_whitespace()).unwrap_or(chars.len());
    let article = ["The ", "A ", "An "]
        .iter()
        .find(|a| a.chars().eq(chars[begin..].iter().copied().take(a.len())))
        .map_or(0, |a| a.len());
    let opening = |from: usize| {
        (from + 2..=(from + 120).min(chars.len()))
            .take_while(|&end| !chars[from..end].contains(&'\n'))
            .find(|&end| ends_subject(&chars[end..]))
            .map(|end| &chars[from..end])
    };
    let Some(found) = opening(begin + article).or_else(|| opening(begin)) else {
        return String::new();
    };
    lexer.read(&found.iter().collect::<String>());
    let count = lexer.words.len();
    let starts = |word: &str| is_capital(word) || word.chars().next().is_some_and(char::is_numeric);
    let small = |w: &str| stop_words().has(w) || subject_small().has(w);
    let large: Vec<usize> = (0..count).filter(|&k| !small(lexer.lower(k))).collect();
    let capitals = large.iter().filter(|&&k| is_capital(lexer.raw(k)) || is_number(lexer.raw(k))).count();
    let enough = capitals as f64 >= SUBJECT_CAPITALS * large.len() as f64;
    let first: String = found.iter().take(1).collect();
    if large.is_empty() || count > MAX_PHRASE || !starts(&first) || !enough {
        return String::new();
    }
    let begin = (0..count).find(|&k| !stop_words().has(lexer.lower(k))).unwrap_or(count);
    if begin + 1 == count && openers().has(lexer.lower(begin)) {
        return String::new();
    }
    let mut key = String::new();
    join(lexer, begin, count, &mut key);
    key
}

/// Hashes pairs of numbers that callers cannot choose, which is much faster than the hash of the standard
/// library.
#[derive(Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// Subjects as a trie of words, for finding the longest subject that begins at a word.
#[derive(Debug, Default)]
pub struct SubjectTree {
    words: Interner,
    /// Edges from the root: word -> node, or `u32::MAX`. Most words need only this lookup.
    first: Vec<u32>,
    /// Edges from all other nodes: (node, word) -> node; node 0 is the root.
    edges: HashMap<(u32, u32), u32, BuildHasherDefault<Mixer>>,
    /// Subject that ends at each node, or `u32::MAX`.
    ends: Vec<u32>,
}

impl SubjectTree {
    /// Build the trie. Subjects of more than [`MAX_PHRASE`] words are never found.
    pub fn new(subjects: Strings<'_>) -> Self {
        let mut tree = Self { ends: vec![u32::MAX], ..Self::default() };
        for (id, subject) in subjects.iter().enumerate() {
            if subject.is_empty() || subject.split(' ').nth(MAX_PHRASE).is_some() {
                continue;
            }
            let mut node = 0;
            for word in subject.split(' ') {
                let word = tree.words.add(word);
                tree.first.resize(tree.words.len(), u32::MAX);
                let fresh = tree.ends.len() as u32;
                let next = match node {
                    0 => &mut tree.first[word as usize],
                    _ => tree.edges.entry((node, word)).or_insert(u32::MAX),
                };
                if *next == u32::MAX {
                    *next = fresh;
                    tree.ends.push(u32::MAX);
                }
                node = *next;
            }
            tree.ends[node as usize] = id as u32;
        }
        tree
    }

    /// Call `each` with the subjects in the text, with repetitions, from left to right: at each word the
    /// longest phrase that is a subject. A single word must be capitalised (see [`Naming`]), a number or in a wiki link
    /// (`[[fram]]`), and neither a stop word nor a sentence opener.
    pub fn mentions(&self, text: &Lexer, naming: Naming, each: impl FnMut(u32)) {
        self.mentions_of(text, naming, |k| self.word(text.lower(k)), each);
    }

    /// Return the number of a word in lower case, if a subject has it.
    pub fn word(&self, word: &str) -> Option<u32> {
        self.words.get(word)
    }

    /// Like [`SubjectTree::mentions`], with the number of each word of the text.
    pub fn mentions_of(
        &self,
        text: &Lexer,
        naming: Naming,
        number: impl Fn(usize) -> Option<u32>,
        mut each: impl FnMut(u32),
    ) {
        let mut k = 0;
        while k < text.words.len() {
            let (mut node, mut longest, mut length) = (0, None, 0);
            while let Some(step) = (k + length < text.words.len())
                .then(|| number(k + length))
                .flatten()
                .and_then(|word| self.step(node, word))
            {
                node = step;
                length += 1;
                let id = self.ends[node as usize];
                if id != u32::MAX && (length > 1 || Self::stands_alone(text, k, naming)) {
                    longest = Some((id, length));
                }
            }
            k += longest.map_or(1, |(id, length)| {
                each(id);
                length
            });
        }
    }

    /// Prefetch the lookups of `mentions` for some words.
    pub fn ask_for<'a>(&self, words: Range<usize>, word: impl Fn(usize) -> &'a str) {
        self.words.ask_for(words, |k| word(k).as_bytes());
    }

    fn step(&self, node: u32, word: u32) -> Option<u32> {
        if node == 0 {
            return Some(self.first[word as usize]).filter(|&next| next != u32::MAX);
        }
        self.edges.get(&(node, word)).copied()
    }

    fn stands_alone(text: &Lexer, k: usize, naming: Naming) -> bool {
        let (raw, lower) = (text.raw(k), text.lower(k));
        let starts =
            naming.has(text, k) || raw.chars().next().is_some_and(char::is_numeric) || opens_link(text, k);
        starts && !stop_words().has(lower) && !openers().has(lower) && !is_small(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Instant;

    fn names(text: &str) -> Vec<String> {
        let mut lexer = Lexer::default();
        lexer.read(text);
        let mut found = Vec::new();
        let naming = Naming::of(&lexer, 0, Language::ENGLISH);
        name_spans(&lexer, 0, naming, |n| found.push(n.to_owned()));
        found
    }

    fn mentioned(text: &str) -> Vec<&'static str> {
        let subjects = ["fram", "colin archer", "maud"];
        let found: crate::strings::StringsBuf = subjects.into_iter().collect();
        let mut lexer = Lexer::default();
        lexer.read(text);
        let mut ids = Vec::new();
        let naming = Naming::of(&lexer, 0, Language::ENGLISH);
        SubjectTree::new(found.view()).mentions(&lexer, naming, |id| ids.push(subjects[id as usize]));
        ids
    }

    #[test]
    fn notes_in_wiki_links_are_mentioned() {
        assert_eq!(
            mentioned("The ship [[fram]] and [[colin archer]], [[maud|her sister]]."),
            ["fram", "colin archer", "maud"]
        );
        assert_eq!(
            mentioned("A link ![[my ships/old-ones/fram#Hull]] and a fram, a /fram and x/fram."),
            ["fram"]
        );
    }

    #[test]
    fn a_million_capitals_take_linear_time() {
        let begin = Instant::now();
        for text in ["A ".repeat(1_000_000), "A".repeat(1_000_000), "Of The De ".repeat(300_000)] {
            names(&text);
            opening_subject(&text, &mut Lexer::default());
            title_key(&text, &mut Lexer::default());
        }
        // Quadratic time would take hours. An emulator of another processor may take minutes.
        assert!(begin.elapsed().as_secs() < 600);
        assert!(names(&"A ".repeat(1000)).iter().all(|n| n.split(' ').count() <= MAX_NAME));
    }

    proptest! {
        #[test]
        fn any_text_has_names_and_subjects(text in "(\\PC|[A-Z]|[ .\\-'&(\n]){0,60}") {
            let found: crate::strings::StringsBuf = names(&text).into_iter().collect();
            let mut lexer = Lexer::default();
            let _ = (title_key(&text, &mut lexer), opening_subject(&text, &mut lexer));
            lexer.read(&text);
            SubjectTree::new(found.view()).mentions(&lexer, Naming::CAPITALS, |id| assert!((id as usize) < found.view().len()));
        }
    }
}
