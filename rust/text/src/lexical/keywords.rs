//! The keywords of a text's words: without stop words, stemmed, and with the names in code and their parts.

use super::abbreviations::other_forms;
use super::numbers::is_digits;
use super::{Kind, Lexer, Word};
use crate::attached::each_without_attached;
use crate::clusters::{each_pair, first_piece};
use crate::detection::detect;
use crate::folding::{folded_size, is_unspaced, WordSet};
use crate::identifiers::has_inner_capital;
use crate::languages::Language;
use std::ops::Range;
use std::sync::OnceLock;
use unicode_normalization::UnicodeNormalization;

/// Words that are never keywords, and never the first word of a name or subject.
const STOP_WORDS: &str = "a about an and are as at be been being but by can could did do does doing done \
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

/// The role of a query keyword. The number is that of the query's word, or of its compound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Word(usize),
    /// Another form of a word: without the marks of its letters, without a particle, or written short.
    Variant(usize),
    /// The whole or a part of a compound: an identifier, a path, a number with its unit.
    Whole(usize),
    Part(usize),
    /// The words of a compound of prose, written as one: "email" for "e-mail".
    Joined(usize),
    /// The digits of a word with the character or syllable after them: "5月" for "5月の".
    Counted(usize),
    /// This word and the next one as one, letters and digits: "rfc2616" for "RFC 2616".
    Glued(usize),
}

impl Lexer {
    /// Call `each` with the keywords of an English text, with repetitions: first those of its words, in text
    /// order, then those added by compounds. Words in other scripts are stemmed by their script.
    pub fn keywords(&self, each: impl FnMut(&str)) {
        self.keywords_in(Language::ENGLISH, each);
    }

    /// Like [`Lexer::keywords`], for a text in any language. A stem of another language in Latin script ends with "@" and
    /// its code: "haus@de".
    pub fn keywords_in(&self, language: Language, mut each: impl FnMut(&str)) {
        self.keywords_where(language, |_| true, |word, _| each(word));
        self.keywords_of_names(language, each);
    }

    /// Call `each` with the keywords that compounds add to those of their words.
    pub fn keywords_of_names(&self, language: Language, mut each: impl FnMut(&str)) {
        let mut buffer = String::new();
        for compound in &self.compounds {
            for (word, _) in self.added_words(compound) {
                analyse(&word, language, || None, &mut buffer, &mut |word, _| each(word));
            }
            let first = compound.words.start;
            if compound.is_word && is_dropped(self.lower(first), language) && self.is_named_function(first) {
                analyse_kept(self.lower(first), language, || None, &mut buffer, &mut |word, _| each(word));
            }
        }
    }

    /// Call `each` with the keywords of the words with the given numbers, without those added by
    /// compounds, and with whether each is a variant of the keyword before it. A place in the text has one keyword
    /// and may have variants, which do not make the text longer.
    pub fn keywords_where(
        &self,
        language: Language,
        some: impl Fn(usize) -> bool,
        mut each: impl FnMut(&str, bool),
    ) {
        let (mut buffer, mut written) = (String::new(), Written::new(&self.source));
        for k in (0..self.words.len()).filter(|&k| some(k)) {
            self.keyword(k, language, &mut written, &mut buffer, &mut each);
        }
    }

    /// Return whether there are words and all of them are function words of English or one of these languages. With a symbol,
    /// such a word means something else: "c" is one in French, "C++" is not.
    pub fn are_function_words(&self, languages: &[Language]) -> bool {
        let is_function = |word: &str| stop_words().has(word) || languages.iter().any(|one| one.drops(word));
        let has_symbol = || self.compounds.iter().any(|one| self.has_symbol(one.words.clone()));
        !self.words.is_empty() && self.lowers(0).all(is_function) && !has_symbol()
    }

    /// Call `each` with the keywords of a query, with each word analysed in every language of an index (an
    /// empty list means English). Function words of the query's language are dropped in all of them.
    pub fn query_keywords(&self, languages: &[Language], mut each: impl FnMut(&str)) {
        self.query_roles(languages, |word, _| each(word));
    }

    /// Like [`Lexer::query_keywords`], together with the role of each keyword.
    pub fn query_roles(&self, languages: &[Language], mut each: impl FnMut(&str, Role)) {
        let added = || {
            let compounds = self.compounds.iter().enumerate();
            let added = compounds.flat_map(|(number, compound)| {
                let role = move |is_part| match compound.kind {
                    Kind::Prose => Role::Joined(number),
                    Kind::Code if is_part => Role::Part(number),
                    Kind::Code => Role::Whole(number),
                };
                self.added_words(compound).into_iter().map(move |(word, is_part)| (word, role(is_part)))
            });
            added.chain(self.glued())
        };
        let mut buffer = String::new();
        if languages.is_empty() {
            let mut written = Written::new(&self.source);
            for k in (0..self.words.len()).filter(|&k| !self.is_elided(k)) {
                let mut add = |word: &str, is_variant| each(word, self.role(k, word, is_variant));
                match is_dropped(self.lower(k), Language::ENGLISH) && self.is_named_function(k) {
                    true => analyse_kept(self.lower(k), Language::ENGLISH, || None, &mut buffer, &mut add),
                    false => self.keyword(k, Language::ENGLISH, &mut written, &mut buffer, &mut add),
                }
            }
            for (word, role) in added() {
                analyse(&word, Language::ENGLISH, || None, &mut buffer, &mut |word, _| each(word, role));
            }
            return self.abbreviations(&[Language::ENGLISH], each);
        }
        let own = detect(self.lowers(0));
        let dropped = |word: &str| match own {
            Language::ENGLISH => stop_words().has(word),
            _ => languages.contains(&own) && own.drops(word),
        };
        let mut seen: Vec<(String, bool)> = Vec::new();
        let mut written: Vec<Written<'_>> = languages.iter().map(|_| Written::new(&self.source)).collect();
        let mut spelling = languages.iter().any(|one| one.keeps_marks()).then(|| Written::new(&self.source));
        for k in (0..self.words.len()).filter(|&k| !self.is_elided(k)) {
            // "Cần" is not "can".
            let spelled = spelling.as_mut().filter(|_| !self.source.is_empty());
            let marked = spelled.and_then(|written| written.word(self.words[k]));
            if dropped(self.lower(k)) && marked.is_none_or(|word| word.is_ascii()) {
                if self.is_named_function(k) {
                    for &language in languages {
                        let mut add = |word: &str, is_variant| add_new(&mut seen, word, is_variant);
                        analyse_kept(self.lower(k), language, || None, &mut buffer, &mut add);
                    }
                    seen.drain(..)
                        .for_each(|(word, is_variant)| each(&word, self.role(k, &word, is_variant)));
                }
                continue;
            }
            for (&language, written) in languages.iter().zip(&mut written) {
                self.keyword(k, language, written, &mut buffer, &mut |word, is_variant| {
                    // Who types the marks of Vietnamese means them.
                    if !(is_variant && language.keeps_marks()) {
                        add_new(&mut seen, word, is_variant);
                    }
                });
            }
            seen.drain(..).for_each(|(word, is_variant)| each(&word, self.role(k, &word, is_variant)));
        }
        for (word, role) in added().filter(|(word, _)| !dropped(word)) {
            for &language in languages {
                analyse(&word, language, || None, &mut buffer, &mut |word, _| {
                    add_new(&mut seen, word, false)
                });
            }
            seen.drain(..).for_each(|(word, _)| each(&word, role));
        }
        if languages.contains(&Language::ENGLISH) {
            self.abbreviations(languages, each);
        }
    }

    /// Return the pairs of letters and digits that a blank separates, as one word in lower case.
    fn glued(&self) -> impl Iterator<Item = (String, Role)> + '_ {
        let is_name = |k: usize| self.raw(k).chars().all(|c| c.is_alphabetic() && !is_unspaced(c));
        let is_number = |k: usize| is_digits(self.raw(k));
        (1..self.words.len())
            .filter(move |&k| {
                let is_pair = is_name(k - 1) && is_number(k) || is_number(k - 1) && is_name(k);
                is_pair && self.gap(k) == " "
            })
            .map(|k| (format!("{}{}", self.lower(k - 1), self.lower(k)), Role::Glued(k - 1)))
    }

    /// Call `each` with the keywords of the other forms of words that English also writes short, or in full.
    fn abbreviations(&self, languages: &[Language], mut each: impl FnMut(&str, Role)) {
        let mut buffer = String::new();
        for (k, word) in self.lowers(0).enumerate() {
            for (other, &language) in
                other_forms(word, self.words.len()).flat_map(|one| languages.iter().map(move |l| (one, l)))
            {
                let mut add = |word: &str, _| each(word, Role::Variant(k));
                analyse(other, language, || None, &mut buffer, &mut add);
            }
        }
    }

    /// Return the role of a keyword of word `k`.
    fn role(&self, k: usize, keyword: &str, is_variant: bool) -> Role {
        let is_counted =
            is_variant && keyword.starts_with(|c: char| c.is_ascii_digit()) && keyword.contains(is_unspaced);
        let number = self.compounds.partition_point(|compound| compound.words.end <= k);
        match self.compounds.get(number).filter(|compound| compound.words.contains(&k)) {
            _ if is_counted => Role::Counted(k),
            _ if is_variant => Role::Variant(k),
            None => Role::Word(k),
            Some(compound) if compound.kind == Kind::Prose => Role::Word(k),
            Some(compound) if compound.is_word || has_inner_capital(self.raw(k)) => Role::Whole(number),
            Some(_) => Role::Part(number),
        }
    }

    /// Return the numbers of the words of a compound.
    pub fn compound_words(&self, number: usize) -> Range<usize> {
        self.compounds.get(number).map_or(0..0, |compound| compound.words.clone())
    }

    /// Call `each` with the keywords of one word, and with whether each is a variant. `written` must not be past the word.
    fn keyword(
        &self,
        k: usize,
        language: Language,
        written: &mut Written<'_>,
        buffer: &mut String,
        each: &mut impl FnMut(&str, bool),
    ) {
        let spelled = || if self.source.is_empty() { None } else { written.word(self.words[k]) };
        analyse(self.lower(k), language, spelled, buffer, each);
    }
}

fn add_new(seen: &mut Vec<(String, bool)>, word: &str, is_variant: bool) {
    if !seen.iter().any(|(one, _)| one == word) {
        seen.push((word.to_owned(), is_variant));
    }
}

/// Call `each` with the keywords of a word in lower case, and with whether each is a variant. Some stems depend on its
/// spelling with marks.
fn analyse(
    word: &str,
    language: Language,
    spelled: impl FnOnce() -> Option<String>,
    buffer: &mut String,
    each: &mut impl FnMut(&str, bool),
) {
    if !is_dropped(word, language) {
        analyse_kept(word, language, spelled, buffer, each);
    }
}

/// Return whether a word in lower case is a function word of a text in a language.
fn is_dropped(word: &str, language: Language) -> bool {
    if !language.is_plain() && language.drops(word) {
        return true;
    }
    // A word in the language's script is stemmed; its function words are those of the language.
    let is_foreign = language.is_plain() || language.stems(word).is_none();
    word.is_ascii() && is_foreign && stop_words().has(word)
}

/// Like [`analyse`], for function words, too.
fn analyse_kept(
    word: &str,
    language: Language,
    spelled: impl FnOnce() -> Option<String>,
    buffer: &mut String,
    each: &mut impl FnMut(&str, bool),
) {
    let plain = language.is_plain();
    let stems = if plain && word.is_ascii() { None } else { language.stems(word) };
    if let Some(stemmer) = stems {
        let spelled = if stemmer.needs_marks() { spelled() } else { None };
        marked_stem(stemmer, spelled.as_deref().unwrap_or(word), buffer);
        each(buffer, false);
        // A word is also found by what people type without its marks.
        if spelled.is_some_and(|spelled| !spelled.is_ascii()) && stemmer.is_marked() {
            let exact = std::mem::take(buffer);
            marked_stem(stemmer, word, buffer);
            if *buffer != exact {
                each(buffer, true);
            }
        }
    } else if !word.is_ascii() && word.chars().any(is_unspaced) {
        unspaced(word, each);
    } else {
        each(without_plural(word, buffer), false);
        each_without_attached(word, |root| each(root, true));
    }
}

/// Replace `buffer` by the stem of a word in lower case, with the code of the language if its stems carry it.
fn marked_stem(stemmer: Language, word: &str, buffer: &mut String) {
    buffer.clear();
    stemmer.stem_into(word, buffer);
    if stemmer.is_marked() {
        buffer.push('@');
        buffer.push_str(stemmer.code());
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
/// single piece is a keyword alone, and so are other runs within the same word. A number and the piece after it are a
/// variant of the number, because a piece such as "月" in "5月の予定" is not a keyword alone.
fn unspaced(word: &str, each: &mut impl FnMut(&str, bool)) {
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        let (kind, start) = (is_unspaced(c), word.len() - rest.len());
        let end = rest.find(|c| is_unspaced(c) != kind).unwrap_or(rest.len());
        let run = &rest[..end];
        if kind {
            each_pair(run.char_indices(), |pair, _| each(pair, false));
        } else if !stop_words().has(run) {
            each(run, false);
        }
        rest = &rest[end..];
        if !kind && is_digits(run) && !rest.is_empty() {
            let next = &rest[..rest.find(|c| !is_unspaced(c)).unwrap_or(rest.len())];
            each(&word[start..start + end + first_piece(next)], true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folding::fold_into;
    use proptest::prelude::*;

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
            (
                "`retry-policy` --max-tries",
                &["retry", "policy", "max", "try", "retrypolicy", "maxtry", "--maxtry"],
            ),
            (
                "well-known U.S. e.g. 3.14, PhD McDonald",
                &["well", "known", "u", "e", "g", "3", "14", "phd", "mcdonald", "wellknown", "us", "3.14"],
            ),
            ("C++ C# .NET a+b", &["c", "c", "net", "b", "c++", "c#", ".net"]),
            ("R&D, AT&T", &["r", "rd", "att"]),
            ("jonas@example.org", &["jona", "example", "org", "exampleorg", "jonasexampleorg"]),
            ("src/main/app.py and/or", &["src", "main", "app", "py", "apppy", "srcmainapppy"]),
            (
                "--force $HOME @anna #garden",
                &["force", "home", "anna", "garden", "--force", "$home", "@anna", "#garden"],
            ),
            ("O'Brien O’Hara", &["o", "brien", "o", "hara", "obrien", "ohara"]),
            ("512GB, 5µm", &["512gb", "5μm", "512", "gb", "5um", "5", "μm"]),
            ("1920 × 1080, 2x4", &["1920", "1080", "2x4", "1920x1080"]),
            ("00:1A:2B:3C:4D:5E", &["00", "1a", "2b", "3c", "4d", "5e", "001a2b3c4d5e"]),
            ("½, 24/7, 1/2/2024", &["1", "2", "24", "7", "1", "2", "2024", "1/2", "24/7"]),
            ("10^6 .75 0,75 1,2,3", &["10", "6", "75", "0", "75", "1", "2", "3", "106", "0.75", "0.75"]),
            ("45% 12.5 % #12", &["45", "12", "5", "12", "45%", "12.5%", "12.5", "#12"]),
            ("21 °C", &["21", "c", "21c"]),
            ("P & L, the U.S.A., Ph.D.", &["p", "l", "u", "ph", "pl", "usa", "phd"]),
            ("Qur'an Xi’an dog's צה\"ל", &["qur", "xi", "dog", "צה", "ל", "quran", "xian", "צהל"]),
            ("1,250,000 v1.2", &["1", "250", "000", "v1", "2", "1250000", "v1.2", "1.2"]),
            (
                "DE89 3704 0044 0532 0130 00",
                &["de89", "3704", "0044", "0532", "0130", "00", "de89370400440532013000"],
            ),
            ("978-3-16-148410-0", &["978", "3", "16", "148410", "0", "9783161484100"]),
            ("(555) 867-5309, 1999-2001", &["555", "867", "5309", "1999", "2001", "5558675309", "8675309"]),
            ("555.123.4567", &["555", "123", "4567", "5551234567"]),
            ("+49 30 1234567", &["49", "30", "1234567", "49301234567", "0301234567", "301234567"]),
            ("2049-3630", &["2049", "3630", "20493630"]),
            ("1050-124X", &["1050", "124x", "1050124x"]),
            ("1,23,456; 1,23,45,7", &["1", "23", "456", "1", "23", "45", "7", "123456"]),
            ("3½", &["3", "1", "2", "1/2"]),
            ("inter-\nesting well-\nKnown", &["inter", "esting", "well", "known", "interesting"]),
            ("7’800’000", &["7", "800", "000", "7800000"]),
            ("10:30pm", &["10", "30pm", "30", "pm"]),
            ("٣٤٥ พ.ศ. ๒๕๖๗", &["345", "พ", "ศ", "2567"]),
            ("9f2c4e7ab1", &["9f2c4e7ab1", "9f2c4e7", "9f2c4e7a", "9f2c4e7ab"]),
            ("the WHO of it in May", &["who", "may"]),
            ("xAxis", &["xaxis", "axis"]),
        ] {
            assert_eq!(keywords(text), expected, "{text}");
            assert_eq!(query(text, &["en"]), expected, "{text}");
        }
        assert_eq!(keywords("512 GB 10 pm"), ["512", "gb", "10", "pm", "512gb"]);
        assert_eq!(keywords("10 x 15"), ["10", "x", "15", "10x15"]);
        assert_eq!(query("RFC 2616", &["en"]), ["rfc", "2616", "rfc2616"]);
        assert_eq!(query("l'eau L'Oréal", &["en"]), ["eau", "l", "oreal", "loreal"]);
        assert_eq!(keywords("l'eau"), ["l", "eau"]);
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
        assert_eq!(keywords("2023年"), ["2023", "2023年", "年"]);
        assert_eq!(
            keywords("5月の予定 第3回 2ปีที่"),
            ["5", "5月", "月の", "の予", "予定", "第", "3", "3回", "回", "2", "2ปี", "ปีที่"]
        );
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
        assert_eq!(query("Đà", &["en", "vi"]), ["da", "đa\u{300}@vi"]);
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
        assert_eq!(query("города 7 rings", &["none"]), ["города", "7", "ring", "города7", "7ring"]);
    }

    #[test]
    fn accents_count_for_stems_and_vanish_afterwards() {
        let mut lexer = Lexer::default();
        lexer.read("Les élèves étudiés e\u{301}tudie\u{301}s");
        let mut found = Vec::new();
        lexer.keywords_in(Language::by_name("fr").unwrap(), |w| found.push(w.to_owned()));
        // The last keyword of each word is what finds it when it is typed without accents.
        assert_eq!(found, ["elev@fr", "etudi@fr", "etud@fr", "etudi@fr", "etud@fr"]);
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
    }
}
