//! Finds phrases in texts: words that follow each other, compared as the index compares them (without accents and case,
//! by their stems). In scripts without spaces between words, characters follow each other.

use crate::clusters::is_attached;
use crate::folding::is_unspaced;
use crate::languages::Language;
use crate::lexical::Lexer;

/// The words of a phrase, analysed once.
#[derive(Debug, Clone)]
pub struct Phrase {
    words: Vec<Sought>,
    /// Whether the last word may have any ending.
    is_prefix: bool,
}

#[derive(Debug, Clone)]
struct Sought {
    /// Without accents, in lower case.
    lower: String,
    keywords: Vec<String>,
}

/// A word of a text, or a piece of one in scripts without spaces: its number, and its range in the word in lower case.
type Piece = (usize, usize, usize);

impl Phrase {
    /// Read a phrase for texts in these languages (none: English). It has no words if the text has none.
    pub fn new(text: &str, is_prefix: bool, languages: &[Language]) -> Self {
        let mut lexer = Lexer::default();
        lexer.read(text);
        let languages = if languages.is_empty() { &[Language::ENGLISH] } else { languages };
        let words = pieces(&lexer).into_iter().map(|(k, start, end)| {
            let mut keywords: Vec<String> = Vec::new();
            if (start, end) == (0, lexer.lower(k).len()) {
                for &language in languages {
                    lexer.keywords_where(
                        language,
                        |at| at == k,
                        |word, _| {
                            if !keywords.iter().any(|one| one == word) {
                                keywords.push(word.to_owned());
                            }
                        },
                    );
                }
            }
            Sought { lower: lexer.lower(k)[start..end].to_owned(), keywords }
        });
        Self { words: words.collect(), is_prefix }
    }

    /// Return the number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Return the last word, without accents and in lower case, if it may have any ending.
    pub fn prefix(&self) -> Option<&str> {
        self.words.last().filter(|_| self.is_prefix).map(|word| word.lower.as_str())
    }

    /// Return whether a text in a language has the phrase. `lexer` holds buffers.
    pub fn is_in(&self, text: &str, language: Language, lexer: &mut Lexer) -> bool {
        lexer.read(text);
        self.is_in_words(language, lexer)
    }

    /// Return whether the phrase is among the words that a lexer has read.
    pub fn is_in_words(&self, language: Language, lexer: &Lexer) -> bool {
        let found = pieces(lexer);
        let last = self.words.len().saturating_sub(1);
        let matches = |at: usize, piece: &Piece| {
            let (k, start, end) = *piece;
            let word = &lexer.lower(k)[start..end];
            let sought = &self.words[at];
            if self.is_prefix && at == last {
                return word.starts_with(&sought.lower) && is_indexed(lexer, k, language);
            }
            word == sought.lower || has_keyword(lexer, k, language, &sought.keywords)
        };
        !self.is_empty()
            && found
                .windows(self.words.len())
                .any(|some| some.iter().enumerate().all(|(at, one)| matches(at, one)))
    }
}

/// Return whether a word has keywords: function words have none.
fn is_indexed(lexer: &Lexer, k: usize, language: Language) -> bool {
    let mut has = false;
    lexer.keywords_where(language, |at| at == k, |_, _| has = true);
    has
}

/// Return whether word `k` has any of the keywords.
fn has_keyword(lexer: &Lexer, k: usize, language: Language, keywords: &[String]) -> bool {
    let mut has = false;
    // Words with one keyword in common begin with the same letter; analysing a word is much slower.
    let first = lexer.lower(k).chars().next();
    if keywords.iter().any(|keyword| keyword.chars().next() == first) {
        lexer.keywords_where(language, |at| at == k, |word, _| has |= keywords.iter().any(|one| one == word));
    }
    has
}

/// Return the words of a text; words in scripts without spaces are divided into characters with their marks.
fn pieces(lexer: &Lexer) -> Vec<Piece> {
    let mut found = Vec::with_capacity(lexer.words.len());
    for k in 0..lexer.words.len() {
        let word = lexer.lower(k);
        if word.is_ascii() || !word.chars().any(is_unspaced) {
            found.push((k, 0, word.len()));
            continue;
        }
        let mut start = 0;
        let mut joins = false;
        for (at, c) in word.char_indices() {
            let joined = is_attached(c) || joins && !is_unspaced(c);
            if at > 0 && !joined {
                found.push((k, start, at));
                start = at;
            }
            joins = !is_unspaced(c);
        }
        found.push((k, start, word.len()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(phrase: &str, is_prefix: bool, text: &str) -> bool {
        Phrase::new(phrase, is_prefix, &[]).is_in(text, Language::ENGLISH, &mut Lexer::default())
    }

    #[test]
    fn words_that_follow_each_other() {
        assert!(has("red kettle", false, "The Red Kettles are sold."));
        assert!(has("Café Noir", false, "a cafe-noir"));
        assert!(has("to be or not to be", false, "To be, or not to be: that is the question."));
        assert!(!has("red kettle", false, "The kettle is red."));
        assert!(!has("red kettle", false, "A red old kettle"));
        assert!(!has("", false, "a"));
    }

    #[test]
    fn prefixes() {
        assert!(has("gask", true, "two Gaskets"));
        assert!(has("red kett", true, "red kettles"));
        assert!(has("runnin", true, "they were running"));
        assert!(!has("gasketing", true, "two gaskets"));
    }

    #[test]
    fn scripts_without_spaces() {
        assert!(has("码头", false, "我们在码头见面"));
        assert!(has("码", false, "我们在码头见面"));
        assert!(!has("头码", false, "我们在码头见面"));
        assert!(has("iPhone手机", false, "新的 iPhone手机 上市"));
    }

    #[test]
    fn stems_of_the_language() {
        let german = Language::by_name("de").unwrap();
        let phrase = Phrase::new("alte Häuser", false, &[Language::ENGLISH, german]);
        assert!(phrase.is_in("Die alten Hauses und das alte Haus", german, &mut Lexer::default()));
    }
}
