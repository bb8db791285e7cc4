//! A cache of the words of a few units, so that each word is looked up only once: neither repeated
//! occurrences nor the sentences, which have the same words as their unit, are looked up again.

use crate::rank::links_view::NONE;
use crate::text::interner::Interner;
use crate::text::languages::Language;
use crate::text::lexical::{plain_keyword, Lexer};
use crate::text::names::SubjectTree;
use std::ops::Range;

/// Marks a word that has several keywords, or whose keyword depends on more than its letters.
const OPEN: u32 = NONE - 1;

/// One word: its bytes in the folded text of its unit, and its keyword, [`NONE`] or [`OPEN`].
#[derive(Debug, Clone, Copy)]
struct Known {
    start: u32,
    end: u32,
    keyword: u32,
}

/// The words of some units.
#[derive(Default)]
pub(crate) struct KnownWords {
    /// Words in lower case, with the keyword of each and its number in the tree of subjects.
    forms: Interner,
    of_form: Vec<(u32, u32)>,
    /// The word forms of the last unit, and which of its words had a new form.
    forms_of: Vec<u32>,
    new: Vec<usize>,
    words: Vec<Known>,
    folded: String,
    /// The ends of each unit's words and folded text.
    ends: Vec<(usize, usize)>,
    /// The number in the tree of subjects of each word of the last unit and its title, or `NONE`.
    pub in_tree: Vec<u32>,
    buffer: String,
}

impl KnownWords {
    /// Read the words of the next unit: title, then text, which begins at word `first_word` and byte `start`.
    /// Append their keywords to `row`, without those added by splitting code identifiers. Return how many of them are
    /// variants.
    pub fn read_unit(
        &mut self,
        lexer: &Lexer,
        (first_word, start): (usize, usize),
        language: Language,
        tree: &SubjectTree,
        keywords: &mut Interner,
        row: &mut Vec<u32>,
    ) -> u32 {
        let (count, mut variants) = (lexer.words.len(), 0);
        self.in_tree.clear();
        if !language.is_plain() {
            tree.ask_for(0..count, |k| lexer.lower(k));
            self.in_tree.extend((0..count).map(|k| tree.word(lexer.lower(k)).unwrap_or(NONE)));
            keywords.ask_for(0..count, |k| lexer.lower(k).as_bytes());
            lexer.keywords_where(
                language,
                |_| true,
                |word, is_variant| {
                    variants += u32::from(is_variant);
                    row.push(keywords.add(word));
                },
            );
            self.ends.push((self.words.len(), self.folded.len()));
            return variants;
        }
        self.forms.ask_for(0..count, |k| lexer.lower(k).as_bytes());
        self.forms_of.clear();
        self.new.clear();
        for k in 0..count {
            let form = self.forms.add(lexer.lower(k));
            if form as usize == self.of_form.len() + self.new.len() {
                self.new.push(k);
            }
            self.forms_of.push(form);
        }
        self.look_up(lexer, tree, keywords);
        let mut some_open = false;
        for (k, word) in lexer.words.iter().enumerate() {
            let (keyword, in_tree) = self.of_form[self.forms_of[k] as usize];
            self.in_tree.push(in_tree);
            match keyword {
                OPEN => some_open = true,
                NONE => {}
                _ => row.push(keyword),
            }
            if k >= first_word {
                let at = |byte: usize| (byte - start) as u32;
                self.words.push(Known { start: at(word.start), end: at(word.end), keyword });
            }
        }
        if some_open {
            let open = |k: usize| !lexer.lower(k).is_ascii();
            lexer.keywords_where(language, open, |word, is_variant| {
                variants += u32::from(is_variant);
                row.push(keywords.add(word));
            });
        }
        self.folded.push_str(&lexer.folded[start..]);
        self.ends.push((self.words.len(), self.folded.len()));
        variants
    }

    /// Find the keywords of new words in a plain language, and the numbers of these words in the tree of
    /// subjects.
    fn look_up(&mut self, lexer: &Lexer, tree: &SubjectTree, keywords: &mut Interner) {
        // Look up in separate passes, because both tables exceed the caches.
        tree.ask_for(0..self.new.len(), |at| lexer.lower(self.new[at]));
        keywords.ask_for(0..self.new.len(), |at| lexer.lower(self.new[at]).as_bytes());
        for &k in &self.new {
            let word = lexer.lower(k);
            let keyword = match word.is_ascii() {
                true => plain_keyword(word, &mut self.buffer).map_or(NONE, |one| keywords.add(one)),
                false => OPEN,
            };
            self.of_form.push((keyword, tree.word(word).unwrap_or(NONE)));
        }
    }

    /// Return the words and the folded text of unit `at`, for its sentences in text order.
    pub fn unit(&self, at: usize) -> UnitWords<'_> {
        let before = if at == 0 { (0, 0) } else { self.ends[at - 1] };
        let end = self.ends[at];
        UnitWords {
            words: &self.words[before.0..end.0],
            folded: &self.folded[before.1..end.1],
            next: 0,
            byte: 0,
        }
    }
}

/// The words of a unit, starting with its next sentence.
pub(crate) struct UnitWords<'a> {
    words: &'a [Known],
    folded: &'a str,
    next: usize,
    byte: usize,
}

impl UnitWords<'_> {
    /// Append the keywords of a sentence, whose words are in `sentence`, without those added by splitting
    /// code identifiers.
    pub fn read_sentence(
        &mut self,
        sentence: &Lexer,
        language: Language,
        keywords: &mut Interner,
        row: &mut Vec<u32>,
    ) {
        let Some(range) = self.find(sentence) else {
            keywords.ask_for(0..sentence.words.len(), |k| sentence.lower(k).as_bytes());
            return sentence.keywords_where(language, |_| true, |word, _| row.push(keywords.add(word)));
        };
        let known = &self.words[range];
        row.extend(known.iter().map(|word| word.keyword).filter(|&keyword| keyword < OPEN));
        if known.iter().any(|word| word.keyword == OPEN) {
            let open = |k: usize| known[k].keyword == OPEN;
            sentence.keywords_where(language, open, |word, _| row.push(keywords.add(word)));
        }
    }

    /// Return the unit's words that make up a sentence; `None` if the sentence is not in the unit's text or
    /// cuts a word.
    fn find(&mut self, sentence: &Lexer) -> Option<Range<usize>> {
        let rest = self.folded.get(self.byte..)?;
        let start = self.byte + (rest.len() - rest.trim_start().len());
        if !self.folded[start..].starts_with(&sentence.folded) {
            return None;
        }
        let mut first = self.next;
        while self.words.get(first).is_some_and(|word| (word.start as usize) < start) {
            first += 1;
        }
        let own = self.words.get(first..first + sentence.words.len())?;
        let is_same = own.iter().zip(&sentence.words).all(|(word, other)| {
            word.start as usize == start + other.start && word.end as usize == start + other.end
        });
        (self.next, self.byte) = (first + sentence.words.len(), start + sentence.folded.len());
        is_same.then_some(first..self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::strings::StringsBuf;
    use proptest::prelude::*;

    /// Return the keywords of a unit and of each sentence, as strings.
    fn read(
        title: &str,
        text: &str,
        sentences: &[&str],
        language: Language,
    ) -> (Vec<String>, Vec<Vec<String>>) {
        let subjects: StringsBuf = ["beta"].into_iter().collect();
        let tree = SubjectTree::new(subjects.view());
        let (mut words, mut keywords) = (KnownWords::default(), Interner::default());
        let mut lexer = Lexer::default();
        lexer.read(title);
        let first_word = lexer.words.len();
        lexer.append("\n");
        let start = lexer.append(text);
        let mut row = Vec::new();
        // Add a unit before it, so that offsets do not begin at 0.
        words.read_unit(&lexer, (first_word, start), language, &tree, &mut keywords, &mut row);
        row.clear();
        words.read_unit(&lexer, (first_word, start), language, &tree, &mut keywords, &mut row);
        let in_tree: Vec<bool> = (0..lexer.words.len()).map(|k| lexer.lower(k) == "beta").collect();
        assert_eq!(words.in_tree.iter().map(|&word| word != NONE).collect::<Vec<_>>(), in_tree);
        let mut unit = words.unit(1);
        let rows: Vec<Vec<u32>> = sentences
            .iter()
            .map(|sentence| {
                let mut row = Vec::new();
                lexer.read(sentence);
                unit.read_sentence(&lexer, language, &mut keywords, &mut row);
                row
            })
            .collect();
        let strings = |row: &[u32]| -> Vec<String> {
            let mut row: Vec<String> =
                row.iter().map(|&k| keywords.strings().get(k as usize).to_owned()).collect();
            row.sort();
            row
        };
        (strings(&row), rows.iter().map(|row| strings(row)).collect())
    }

    fn plainly(text: &str, language: Language) -> Vec<String> {
        let (mut lexer, mut found) = (Lexer::default(), Vec::new());
        lexer.read(text);
        lexer.keywords_where(language, |_| true, |word, _| found.push(word.to_owned()));
        found.sort();
        found
    }

    proptest! {
        #[test]
        fn known_words_are_those_that_are_looked_up(
            title in "(Beta |é|cities ){0,2}",
            pieces in prop::collection::vec("([A-Za-z]{0,5}|beta|Cities|the| |\\. |é|日本|и\u{306}|\u{301}|города ){0,9}", 0..6),
            skip in prop::collection::vec(any::<bool>(), 6), language in prop::sample::select(vec!["en", "none", "de", "ru"]),
        ) {
            let language = Language::by_name(language).unwrap();
            let text = pieces.concat();
            // Pieces may cut words, and some are left out because sentences do not cover the whole text. The
            // result is right in any case.
            let mut sentences: Vec<&str> = pieces.iter().map(|one| one.trim()).collect();
            sentences.retain(|one| !skip[one.len() % 6]);
            sentences.push("beta is elsewhere");
            let (unit, rows) = read(&title, &text, &sentences, language);
            prop_assert_eq!(unit, plainly(&format!("{title}\n{text}"), language));
            for (row, sentence) in rows.iter().zip(&sentences) {
                prop_assert_eq!(row, &plainly(sentence, language));
            }
        }
    }
}
