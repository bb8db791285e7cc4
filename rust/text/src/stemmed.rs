//! Tokens of the keyword graph in languages other than English: folded, stemmed, and without function words.

use crate::folding::{fold_into, is_unspaced};
use crate::languages::Language;
use crate::stopwords::StopWords;

/// Marks that attach a function word to the next word: "l'école".
const ELISIONS: [char; 2] = ['\'', '’'];

/// Buffers for stems.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stemmed {
    folded: String,
    stem: String,
    seen: Vec<String>,
}

impl Stemmed {
    /// Call `see` with the keywords of a token (NFKC, in lower case) of a text in a language. Pairs of characters in
    /// scripts without spaces stay as they are.
    pub fn of_text(&mut self, language: Language, token: &str, mut see: impl FnMut(&str)) {
        if token.chars().any(is_unspaced) {
            return see(token);
        }
        for part in token.split(ELISIONS) {
            self.folded.clear();
            fold_into(part, &mut self.folded);
            if !self.folded.chars().any(char::is_alphanumeric) || language.drops(&self.folded) {
                continue;
            }
            let Some(stemmer) = language.stems(&self.folded) else {
                see(&self.folded);
                continue;
            };
            self.stem.clear();
            let spelled = if stemmer.needs_marks() { part } else { &self.folded };
            stemmer.stem_into(spelled, &mut self.stem);
            if stemmer.is_marked() {
                self.stem.push('@');
                self.stem.push_str(stemmer.code());
            }
            see(&self.stem);
        }
    }

    /// Call `see` with the keywords of a query's token in each of the languages of an index, each once. Function words
    /// of the language in which the query is written are dropped from all of them.
    pub fn of_query(
        &mut self,
        own: Language,
        languages: &[Language],
        token: &str,
        mut see: impl FnMut(&str),
    ) {
        self.folded.clear();
        fold_into(token, &mut self.folded);
        let dropped = match own {
            Language::ENGLISH => StopWords::English.contains(token),
            _ => languages.contains(&own) && own.drops(&self.folded),
        };
        if dropped {
            return;
        }
        let mut seen = std::mem::take(&mut self.seen);
        seen.clear();
        for &language in languages {
            let mut add = |word: &str| {
                if !seen.iter().any(|one| one == word) {
                    seen.push(word.to_owned());
                }
            };
            match language {
                Language::ENGLISH if StopWords::English.contains(token) => {}
                Language::ENGLISH | Language::NONE => add(token),
                _ => self.of_text(language, token, add),
            }
        }
        seen.iter().for_each(|word| see(word));
        self.seen = seen;
    }
}
