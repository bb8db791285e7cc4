//! The two tokenisations of KET-RAG's reference implementation, for parity tests and the `published`
//! profiles.

use super::classes::is_letter;
use super::punkt::Parameters;
use super::treebank;
use std::collections::{HashMap, HashSet};

/// Python's `string.punctuation`.
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// Maximum number of words of a text that co-occurrence counts; the most frequent are kept.
const MOST: usize = 2000;

/// NLTK's `word_tokenize`: sentences, then the words of each.
pub fn word_tokenize(parameters: &Parameters, text: &str) -> Vec<String> {
    parameters.sentences(text).into_iter().flat_map(|s| treebank::tokenize(&text[s])).collect()
}

/// Profile `published-cooccurrence`: return the distinct words of a text in lower case, alphabetic and not
/// stop words; the 2,000 most frequent, ties by first occurrence, in that order.
pub fn cooccurrence_words(parameters: &Parameters, stop_words: &HashSet<&str>, text: &str) -> Vec<String> {
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    for (place, word) in word_tokenize(parameters, &text.to_lowercase()).into_iter().enumerate() {
        if word.chars().all(is_letter) && !stop_words.contains(word.as_str()) {
            counts.entry(word).or_insert((0, place)).0 += 1;
        }
    }
    let mut words: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    words.sort_unstable_by_key(|(_, (count, place))| (std::cmp::Reverse(*count), *place));
    words.truncate(MOST);
    words.into_iter().map(|(word, _)| word).collect()
}

/// A sentence as the reference implementation embeds it, with the keywords that occur in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Its tokens, joined by spaces.
    pub text: String,
    /// One entry for each occurrence, in order.
    pub keywords: Vec<String>,
}

/// Profile `published-keywords`: case is kept, the stop words are compared with case (so `The` is a
/// keyword), and a token is punctuation if it is a *substring* of [`PUNCTUATION`] (so `''` is a keyword).
pub fn keyword_sentences(parameters: &Parameters, stop_words: &HashSet<&str>, text: &str) -> Vec<Sentence> {
    let sentence = |span| {
        let mut tokens = word_tokenize(parameters, &text[span]);
        let text = tokens.join(" ");
        tokens.retain(|w| !stop_words.contains(w.as_str()) && !PUNCTUATION.contains(w.as_str()));
        Sentence { text, keywords: tokens }
    };
    // The reference implementation cuts sentences of more than 8,000 tokens; no embedding model reads that
    // many.
    parameters.sentences(text).into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_profiles() {
        let stop = HashSet::from(["the", "of"]);
        let none = Parameters::default();
        let words = cooccurrence_words(&none, &stop, "The sea, the SEA of Rome's U2. Ann sea-side.");
        assert_eq!(words, ["sea", "rome", "ann"]);
        let sentences = keyword_sentences(&none, &stop, "The \"sea\" of Rome. Yes, Rome!");
        assert_eq!(sentences[0].text, "The `` sea '' of Rome .");
        assert_eq!(sentences[0].keywords, ["The", "``", "sea", "''", "Rome"]);
        assert_eq!(sentences[1].keywords, ["Yes", "Rome"]);
    }
}
