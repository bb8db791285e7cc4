//! The words of the walk: accent-folded runs of letters and digits. Their keywords exclude stop words and are
//! stemmed.

use crate::clusters::{each_pair, is_attached};
use crate::detection::{detect, evidence};
use crate::folding::{fold_into, folded_size, is_unspaced, WordSet};
use crate::identifiers::{each_part, has_inner_capital, is_marked, is_numbered, link, Link, MAX_PARTS};
use crate::languages::Language;
use crate::marks::bare_into;
use std::ops::Range;
use std::sync::OnceLock;
use unicode_normalization::UnicodeNormalization;

/// Words that are never keywords, and never the first word of a name or subject.
const STOP_WORDS: &str = "a an and are as at be been being but by can could did do does doing done \
for from had has have having he her here hers him himself his how i if in into is it its itself just \
may me might more most must my no nor not now of off on once only or other our out over own same \
shall she should so some such than that the their theirs them themselves then there these they this \
those through to too under until up upon very was we were what when where which while who whom whose \
why will with would you your also s t d ll re ve m";

/// Words that open sentences. A single capitalised one is not a name.
const OPENERS: &str = "a according after all although among an another are as at because before \
between born both by currently despite did does during each early first following for from he how \
however in is it its later located many name number on once one originally other second several she \
since that the there these they this though three today two under upon was we what when where which \
while who why with within without you";

pub fn stop_words() -> &'static WordSet {
    static SET: OnceLock<WordSet> = OnceLock::new();
    SET.get_or_init(|| WordSet::new(STOP_WORDS))
}

pub fn openers() -> &'static WordSet {
    static SET: OnceLock<WordSet> = OnceLock::new();
    SET.get_or_init(|| WordSet::new(OPENERS))
}

/// Position of a word in the folded text and in the lower-cased words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub start: usize,
    pub end: usize,
    lower: (usize, usize),
}

/// The role of a query keyword: a word, or the whole or a part of the code identifier with this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Word,
    Whole(usize),
    Part(usize),
}

/// Number of characters that are read first to detect the language. They are enough for most English texts.
const GLANCE: usize = 240;

/// Splits texts into words; its buffers are reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Lexer {
    /// The text without accents (NFKD without combining marks), case as written.
    pub folded: String,
    /// The text as written, for stems that depend on marks. Empty if the text is ASCII.
    source: String,
    lower: String,
    pub words: Vec<Word>,
    /// The words of each code identifier that has parts: ascending ranges without common words.
    identifiers: Vec<Range<usize>>,
}

impl Lexer {
    pub fn read(&mut self, text: &str) {
        self.clear();
        self.append(text);
    }

    pub fn clear(&mut self) {
        self.folded.clear();
        self.source.clear();
        self.lower.clear();
        self.words.clear();
        self.identifiers.clear();
    }

    /// Append the words of `text`. No word extends across the border to the previous text. Returns the offset
    /// in `folded` at which the new text begins.
    pub fn append(&mut self, text: &str) -> usize {
        let (start, first_word) = (self.folded.len(), self.words.len());
        if !text.is_ascii() || !self.source.is_empty() {
            if self.source.is_empty() {
                self.source.push_str(&self.folded);
            }
            self.source.push_str(text);
        }
        fold_into(text, &mut self.folded);
        if self.folded.is_ascii() && self.lower.len() == start {
            self.ascii_words(start);
        } else {
            self.any_words(start);
        }
        self.find_identifiers(first_word);
        start
    }

    /// Find the code identifiers among the words from `first` on.
    fn find_identifiers(&mut self, first: usize) {
        let mut at = first;
        while at < self.words.len() {
            let mut end = self.chain_end(at, |link| link != Link::Hyphen);
            if self.link_before(end) == Some(Link::Hyphen) {
                let long = self.chain_end(at, |_| true);
                let is_code = is_marked(&self.folded, self.words[at].start..self.words[long - 1].end);
                if is_code || is_numbered(self.raw(at), self.raw(long - 1)) {
                    end = long;
                }
            }
            let has_letters = |k: usize| self.raw(k).chars().any(char::is_alphabetic);
            let is_chain = end > at + 1 && (at..end).any(has_letters);
            if is_chain || (at..end).any(|k| has_inner_capital(self.raw(k))) {
                self.identifiers.push(at..end);
            }
            at = end;
        }
    }

    /// Return the end of the run of words, from `first` on, that such links connect, at most [`MAX_PARTS`].
    fn chain_end(&self, first: usize, connects: impl Fn(Link) -> bool) -> usize {
        let mut end = first + 1;
        while end < first + MAX_PARTS && self.link_before(end).is_some_and(&connects) {
            end += 1;
        }
        end
    }

    /// Return how word `k` is connected with the one before it.
    fn link_before(&self, k: usize) -> Option<Link> {
        let (before, word) = (self.words[k - 1], self.words.get(k)?);
        // Few words are so close to each other.
        match word.start - before.end <= 2 {
            true => link(self.raw(k - 1), self.gap(k), self.raw(k)),
            false => None,
        }
    }

    /// Return the words that a code identifier adds to its own words, in lower case, and whether they are
    /// parts. These are runs with underscores, the identifier as a whole without its connectors, and the
    /// parts of words in camel case. Each is returned once, and only if it is not a word of the identifier.
    /// Single characters are omitted.
    fn added_words(&self, words: Range<usize>) -> Vec<(String, bool)> {
        let mut added: Vec<(String, bool)> = Vec::new();
        let mut add = |word: String, is_part: bool| {
            let is_own = words.clone().any(|k| self.lower(k) == word);
            let is_new = || added.iter().all(|(one, _)| *one != word);
            if !is_own && word.chars().nth(1).is_some() && is_new() {
                added.push((word, is_part));
            }
        };
        let mut first = words.start;
        for end in words.start + 1..=words.end {
            if end == words.end || self.link_before(end) != Some(Link::Underscore) {
                add((first..end).map(|k| self.lower(k)).collect(), false);
                first = end;
            }
        }
        add(words.clone().map(|k| self.lower(k)).collect(), false);
        for k in words.clone() {
            each_part(self.raw(k), |part| add(part.to_lowercase(), true));
        }
        added
    }

    /// ASCII text: lower-casing preserves offsets, so words need not be copied one by one.
    fn ascii_words(&mut self, start: usize) {
        self.lower.push_str(&self.folded[start..]);
        self.lower[start..].make_ascii_lowercase();
        let bytes = self.folded.as_bytes();
        let mut at = start;
        while at < bytes.len() {
            if !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let first = at;
            while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
                at += 1;
            }
            self.words.push(Word { start: first, end: at, lower: (first, at) });
        }
    }

    fn any_words(&mut self, start: usize) {
        let Self { folded, lower, words, .. } = self;
        let mut open: Option<usize> = None;
        let ends = folded[start..].char_indices().map(|(i, c)| (start + i, c));
        for (at, c) in ends.chain([(folded.len(), ' ')]) {
            // Some vowel signs are not letters. Without this rule, words would end inside syllables.
            match (c.is_alphanumeric() || is_attached(c), open) {
                (true, None) => open = Some(at),
                (false, Some(first)) => {
                    let begin = lower.len();
                    let word = &folded[first..at];
                    if word.is_ascii() {
                        lower.push_str(word);
                        lower[begin..].make_ascii_lowercase();
                    } else {
                        lower.push_str(&word.to_lowercase());
                    }
                    words.push(Word { start: first, end: at, lower: (begin, lower.len()) });
                    open = None;
                }
                _ => {}
            }
        }
    }

    /// Return word `k` in lower case.
    pub fn lower(&self, k: usize) -> &str {
        let (start, end) = self.words[k].lower;
        &self.lower[start..end]
    }

    /// Iterate over the words from `from` in lower case.
    pub fn lowers(&self, from: usize) -> impl Iterator<Item = &str> {
        (from..self.words.len()).map(|k| self.lower(k))
    }

    /// Return word `k` as written, without accents.
    pub fn raw(&self, k: usize) -> &str {
        &self.folded[self.words[k].start..self.words[k].end]
    }

    /// Return the text between word `k` and the word before it.
    pub fn gap(&self, k: usize) -> &str {
        &self.folded[if k == 0 { 0 } else { self.words[k - 1].end }..self.words[k].start]
    }

    /// Call `each` with the keywords of an English text, with repetitions: first those of its words, in text
    /// order, then those added by code identifiers. Words in other scripts are stemmed by their script.
    pub fn keywords(&self, each: impl FnMut(&str)) {
        self.keywords_in(Language::ENGLISH, each);
    }

    /// Return the language of a text from its first characters. The result is that of [`detect`] on their words.
    pub fn detect_start(&mut self, text: &str, characters: usize) -> Language {
        let cut = |most: usize| &text[..text.char_indices().nth(most).map_or(text.len(), |(at, _)| at)];
        self.read(cut(GLANCE.min(characters)));
        // The last word may be cut.
        let whole = self.words.len().saturating_sub(1);
        if let Some(language) = evidence(self.lowers(0).take(whole), true) {
            return language;
        }
        self.read(cut(characters));
        detect(self.lowers(0))
    }

    /// Like [`Lexer::keywords`], for a text in any language. A stem of another language in Latin script ends with "@" and
    /// its code: "haus@de".
    pub fn keywords_in(&self, language: Language, mut each: impl FnMut(&str)) {
        self.keywords_where(language, |_| true, &mut each);
        self.keywords_of_names(language, each);
    }

    /// Call `each` with the keywords that code identifiers add to those of their words.
    pub fn keywords_of_names(&self, language: Language, mut each: impl FnMut(&str)) {
        let mut buffer = String::new();
        for words in &self.identifiers {
            for (word, _) in self.added_words(words.clone()) {
                analyse(&word, language, || None, &mut buffer, &mut each);
            }
        }
    }

    /// Call `each` with the keywords of the words with the given numbers, without those added by code
    /// identifiers.
    pub fn keywords_where(
        &self,
        language: Language,
        some: impl Fn(usize) -> bool,
        mut each: impl FnMut(&str),
    ) {
        let (mut buffer, mut written) = (String::new(), Written::new(&self.source));
        for k in (0..self.words.len()).filter(|&k| some(k)) {
            self.keyword(k, language, &mut written, &mut buffer, &mut each);
            if language.keeps_marks() && self.bare_keyword(k, language, &mut buffer) {
                each(&buffer);
            }
        }
    }

    /// Replace the keyword of a word in `buffer` by that of the word without marks, so that queries typed
    /// without marks find it. Returns whether the keyword changed.
    fn bare_keyword(&self, k: usize, language: Language, buffer: &mut String) -> bool {
        if language.stems(self.lower(k)) != Some(language) {
            return false;
        }
        let whole = std::mem::take(buffer);
        bare_into(self.lower(k), buffer);
        buffer.push('@');
        buffer.push_str(language.code());
        *buffer != whole
    }

    /// Call `each` with the keywords of a query, with each word analysed in every language of an index (an
    /// empty list means English). Function words of the query's language are dropped in all of them.
    pub fn query_keywords(&self, languages: &[Language], mut each: impl FnMut(&str)) {
        self.query_roles(languages, |word, _| each(word));
    }

    /// Like [`Lexer::query_keywords`], together with the role of each keyword.
    pub fn query_roles(&self, languages: &[Language], mut each: impl FnMut(&str, Role)) {
        let added = || {
            let names = self.identifiers.iter().enumerate();
            names.flat_map(|(number, words)| {
                let role = move |is_part| if is_part { Role::Part(number) } else { Role::Whole(number) };
                self.added_words(words.clone()).into_iter().map(move |(word, is_part)| (word, role(is_part)))
            })
        };
        let mut buffer = String::new();
        if languages.is_empty() {
            let mut written = Written::new(&self.source);
            for k in 0..self.words.len() {
                let role = self.role(k);
                self.keyword(k, Language::ENGLISH, &mut written, &mut buffer, &mut |word| each(word, role));
            }
            for (word, role) in added() {
                analyse(&word, Language::ENGLISH, || None, &mut buffer, &mut |word| each(word, role));
            }
            return;
        }
        let own = detect(self.lowers(0));
        let dropped = |word: &str| match own {
            Language::ENGLISH => stop_words().has(word),
            _ => languages.contains(&own) && own.drops(word),
        };
        let mut seen: Vec<String> = Vec::new();
        let mut written: Vec<Written<'_>> = languages.iter().map(|_| Written::new(&self.source)).collect();
        let mut spelling = languages.iter().any(|one| one.keeps_marks()).then(|| Written::new(&self.source));
        for k in 0..self.words.len() {
            // "Cần" is not "can".
            let spelled = spelling.as_mut().filter(|_| !self.source.is_empty());
            let marked = spelled.and_then(|written| written.word(self.words[k]));
            if dropped(self.lower(k)) && marked.is_none_or(|word| word.is_ascii()) {
                continue;
            }
            for (&language, written) in languages.iter().zip(&mut written) {
                self.keyword(k, language, written, &mut buffer, &mut |word| add_new(&mut seen, word));
            }
            seen.drain(..).for_each(|word| each(&word, self.role(k)));
        }
        for (word, role) in added().filter(|(word, _)| !dropped(word)) {
            for &language in languages {
                analyse(&word, language, || None, &mut buffer, &mut |word| add_new(&mut seen, word));
            }
            seen.drain(..).for_each(|word| each(&word, role));
        }
    }

    /// Return the role of word `k`.
    fn role(&self, k: usize) -> Role {
        let number = self.identifiers.partition_point(|words| words.end <= k);
        match self.identifiers.get(number).filter(|words| words.contains(&k)) {
            None => Role::Word,
            Some(_) if has_inner_capital(self.raw(k)) => Role::Whole(number),
            Some(_) => Role::Part(number),
        }
    }

    /// Call `each` with the keywords of one word. `written` must not be past the word.
    fn keyword(
        &self,
        k: usize,
        language: Language,
        written: &mut Written<'_>,
        buffer: &mut String,
        each: &mut impl FnMut(&str),
    ) {
        let spelled = || if self.source.is_empty() { None } else { written.word(self.words[k]) };
        analyse(self.lower(k), language, spelled, buffer, each);
    }
}

fn add_new(seen: &mut Vec<String>, word: &str) {
    if !seen.iter().any(|one| one == word) {
        seen.push(word.to_owned());
    }
}

/// Call `each` with the keywords of a word in lower case. Some stems depend on its spelling with marks.
fn analyse(
    word: &str,
    language: Language,
    spelled: impl FnOnce() -> Option<String>,
    buffer: &mut String,
    each: &mut impl FnMut(&str),
) {
    let plain = language.is_plain();
    if !plain && language.drops(word) {
        return;
    }
    let stems = if plain && word.is_ascii() { None } else { language.stems(word) };
    if let Some(stemmer) = stems {
        buffer.clear();
        let spelled = if stemmer.needs_marks() { spelled() } else { None };
        stemmer.stem_into(spelled.as_deref().unwrap_or(word), buffer);
        if stemmer.is_marked() {
            buffer.push('@');
            buffer.push_str(stemmer.code());
        }
        each(buffer);
    } else if !word.is_ascii() && word.chars().any(is_unspaced) {
        unspaced(word, each);
    } else if !word.is_ascii() || !stop_words().has(word) {
        each(without_plural(word, buffer));
    }
}

/// Return the keyword of an ASCII word in lower case, in a text in a plain language; `None` for a stop word.
pub fn plain_keyword<'a>(word: &'a str, buffer: &'a mut String) -> Option<&'a str> {
    (!stop_words().has(word)).then(|| without_plural(word, buffer))
}

/// Finds words in the original text by their offsets in the folded text, from left to right.
struct Written<'a> {
    source: &'a str,
    at: usize,
    folded: usize,
}

impl<'a> Written<'a> {
    fn new(source: &'a str) -> Self {
        Self { source, at: 0, folded: 0 }
    }

    /// Advance to the last character whose folded form does not begin after byte `to` of the folded text.
    fn advance(&mut self, to: usize) {
        while let Some(c) = self.source[self.at..].chars().next() {
            let size = folded_size(c);
            if self.folded + size > to {
                break;
            }
            self.at += c.len_utf8();
            self.folded += size;
        }
    }

    /// Return a word as written, in lower case; `None` if its borders are inside a character, such as "⑴".
    fn word(&mut self, word: Word) -> Option<String> {
        self.advance(word.start);
        let (first, start) = (self.at, self.folded);
        self.advance(word.end);
        (start == word.start && self.folded == word.end)
            .then(|| self.source[first..self.at].nfkc().collect::<String>().to_lowercase())
    }
}

/// Remove a plural s: "cities" -> "city", "rings" -> "ring"; not after s, u or i, nor in words of at most
/// three letters.
fn without_plural<'a>(word: &'a str, buffer: &'a mut String) -> &'a str {
    let long = |n: usize| if word.is_ascii() { word.len() > n } else { word.chars().count() > n };
    if !word.ends_with('s') || !long(3) || ["ss", "us", "is"].iter().any(|e| word.ends_with(e)) {
        return word;
    }
    match word.strip_suffix("ies") {
        Some(root) if long(4) => {
            buffer.clear();
            buffer.push_str(root);
            buffer.push('y');
            buffer
        }
        _ => &word[..word.len() - 1],
    }
}

/// Split text in scripts without spaces between words into overlapping pairs of pieces (see `clusters`). A
/// single piece is a keyword alone, and so are other runs within the same word.
fn unspaced(word: &str, each: &mut impl FnMut(&str)) {
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        let kind = is_unspaced(c);
        let end = rest.find(|c| is_unspaced(c) != kind).unwrap_or(rest.len());
        let run = &rest[..end];
        if kind {
            each_pair(run.char_indices(), |pair, _| each(pair));
        } else if !stop_words().has(run) {
            each(run);
        }
        rest = &rest[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folding::BREVE;
    use proptest::prelude::*;
    use unicode_normalization::char::canonical_combining_class;

    fn keywords(text: &str) -> Vec<String> {
        let mut lexer = Lexer::default();
        lexer.read(text);
        let mut found = Vec::new();
        lexer.keywords(|w| found.push(w.to_owned()));
        found
    }

    #[test]
    fn plurals_stop_words_and_accents() {
        assert_eq!(
            keywords("The cities of Zürich's rings, bus, glass, this is gas; ties ÉCOLES"),
            ["city", "zurich", "ring", "bus", "glass", "gas", "tie", "ecole"]
        );
        assert_eq!(keywords(""), Vec::<String>::new());
        assert_eq!(keywords("… — _"), Vec::<String>::new());
    }

    #[test]
    fn names_in_code_are_found_by_their_parts_and_as_a_whole() {
        for (text, expected) in [
            ("HttpRetryPolicies", &["httpretrypolicy", "http", "retry", "policy"][..]),
            ("an HTTPServer", &["httpserver", "http", "server"]),
            ("parse_json2", &["parse", "json2", "parsejson2"]),
            ("__init__ sha256 MAX_3", &["init", "sha256", "max", "3", "max3"]),
            (
                "net.http_retry.RetryPolicy",
                &["net", "http", "retry", "retrypolicy", "httpretry", "nethttpretryretrypolicy", "policy"],
            ),
            ("`retry-policy` --max-tries", &["retry", "policy", "max", "try", "retrypolicy", "maxtry"]),
            (
                "well-known U.S. e.g. 3.14, PhD McDonald",
                &["well", "known", "u", "e", "g", "3", "14", "phd", "mcdonald"],
            ),
            ("xAxis", &["xaxis", "axis"]),
        ] {
            assert_eq!(keywords(text), expected, "{text}");
            assert_eq!(query(text, &["en"]), expected, "{text}");
        }
        assert_eq!(
            query("RetryPolicy", &["en", "de"]),
            ["retrypolicy", "retrypolicy@de", "retry", "retry@de", "policy", "policy@de"]
        );
    }

    #[test]
    fn keywords_of_names_in_queries_have_roles() {
        let mut lexer = Lexer::default();
        lexer.read("Why net.RetryPolicy, a_b?");
        let mut found = Vec::new();
        lexer.query_roles(&[], |word, role| found.push((word.to_owned(), role)));
        let expected = [
            ("net", Role::Part(0)),
            ("retrypolicy", Role::Whole(0)),
            ("b", Role::Part(1)),
            ("netretrypolicy", Role::Whole(0)),
            ("retry", Role::Part(0)),
            ("policy", Role::Part(0)),
            ("ab", Role::Whole(1)),
        ];
        assert_eq!(found, expected.map(|(word, role)| (word.to_owned(), role)));
    }

    #[test]
    fn names_of_a_million_words_take_linear_time() {
        for text in
            ["ab_".repeat(300_000), "ab.cd-".repeat(200_000), "AbcD".repeat(200_000), "`a-b-".repeat(200_000)]
        {
            assert!(keywords(&text).len() < text.len());
        }
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(keywords("日本語 x"), ["日本", "本語", "x"]);
        assert_eq!(keywords("2023年"), ["2023", "年"]);
        assert_eq!(keywords("ภาษาไทย x"), ["ภาษา", "ษาไท", "ไทย", "x"]);
        // A vowel sign that is not a letter, and a mark of tone.
        assert_eq!(keywords("เป็นที่ 2 ปี"), ["เป็น", "นที่", "2", "ปี"]);
    }

    #[test]
    fn vietnamese_words_keep_their_marks_and_are_found_without() {
        let of = |text: &str| {
            let mut lexer = Lexer::default();
            lexer.read(text);
            let mut found = Vec::new();
            lexer.keywords_in(Language::by_name("vi").unwrap(), |w| found.push(w.to_owned()));
            found
        };
        assert_eq!(of("Đà ma"), ["đa\u{300}@vi", "da@vi", "ma@vi"]);
        assert_eq!(of("hoà"), of("ho\u{300}a"));
        assert_eq!(query("cần can", &["vi"]), ["cân\u{300}@vi"]);
        assert_eq!(query("da", &["vi"]), ["da@vi"]);
        assert_eq!(query("Đà", &["en", "vi"]), ["đa", "đa\u{300}@vi"]);
    }

    #[test]
    fn words_are_stemmed_by_their_script() {
        assert_eq!(keywords("Новый город, новые города; России"), ["нов", "город", "нов", "город", "росс"]);
        // A decomposed short i is the same letter.
        assert_eq!(keywords("новыи\u{306} й"), ["нов", "й"]);
        // Tamil is stemmed with its marks; then they are dropped.
        assert_eq!(keywords("x புத்தகங்கள் புத்தகம் y"), ["x", "புததகம", "புததகம", "y"]);
        assert_eq!(keywords("x⑴ é"), ["x", "1", "e"]);
    }

    fn query(text: &str, codes: &[&str]) -> Vec<String> {
        let languages: Vec<Language> = codes.iter().map(|code| Language::by_name(code).unwrap()).collect();
        let mut lexer = Lexer::default();
        lexer.read(text);
        let mut found = Vec::new();
        lexer.query_keywords(&languages, |w| found.push(w.to_owned()));
        found
    }

    #[test]
    fn a_query_is_read_in_every_language_of_the_index() {
        assert_eq!(query("The rings", &[]), ["ring"]);
        assert_eq!(query("Häusern rings", &["de"]), ["haus@de", "ring@de"]);
        assert_eq!(query("Häusern rings", &["en", "de"]), ["hausern", "haus@de", "ring", "ring@de"]);
        // The function words of a German query are not looked up as English words.
        assert_eq!(
            query("Was war die Aufgabe der Häuser?", &["en", "de"]),
            ["aufgabe", "aufgab@de", "hauser", "haus@de"]
        );
        assert_eq!(query("города 7 rings", &["none"]), ["города", "7", "ring"]);
    }

    #[test]
    fn accents_count_for_stems_and_vanish_afterwards() {
        let mut lexer = Lexer::default();
        lexer.read("Les élèves étudiés e\u{301}tudie\u{301}s");
        let mut found = Vec::new();
        lexer.keywords_in(Language::by_name("fr").unwrap(), |w| found.push(w.to_owned()));
        assert_eq!(found, ["elev@fr", "etudi@fr", "etudi@fr"]);
    }

    proptest! {
        #[test]
        fn words_are_found_as_written(text in "([a-zé]|[\u{b80}-\u{bff}]|[ .⑴½ﬁ\u{301}]|и\u{306}?){0,30}") {
            let mut lexer = Lexer::default();
            lexer.read("é ");
            lexer.append(&text);
            let mut written = Written::new(&lexer.source);
            for k in 0..lexer.words.len() {
                if let Some(word) = written.word(lexer.words[k]) {
                    let mut folded = String::new();
                    fold_into(&word, &mut folded);
                    prop_assert_eq!(folded.as_str(), lexer.lower(k));
                }
            }
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,40}", more in "\\PC{0,20}") {
            let mut lexer = Lexer::default();
            lexer.read(&text);
            let parts = text.chars().flat_map(|c| c.nfkd());
            let marks = parts.filter(|&c| canonical_combining_class(c) == 0 || c == BREVE || is_attached(c));
            let breves = marks.collect::<String>().replace("и\u{306}", "й").replace("И\u{306}", "Й");
            let folded = breves.replace(BREVE, "");
            prop_assert_eq!(&lexer.folded, &folded);
            let one: Vec<String> = (0..lexer.words.len()).map(|k| lexer.lower(k).to_owned()).collect();
            lexer.append(&more);
            let both: Vec<String> = (0..lexer.words.len()).map(|k| lexer.lower(k).to_owned()).collect();
            prop_assert_eq!(&both[..one.len()], &one[..]);
            for (k, word) in both.iter().enumerate() {
                prop_assert_eq!(word, &lexer.raw(k).to_lowercase());
                let _ = lexer.gap(k);
            }
            keywords(&text);
        }
    }
}
