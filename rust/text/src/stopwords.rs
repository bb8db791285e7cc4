//! Stop-word lists by language, with constant-time lookup.

use crate::error::Result;
use crate::folding::fold_into;
use crate::languages::Language;
use std::sync::LazyLock;

/// The function words of English, compiled for this project: articles, pronouns, prepositions,
/// conjunctions, auxiliaries, their negations and contractions, and the commonest adverbs of
/// degree, place and time. Sorted, lower case, apostrophes typed.
#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "a", "about", "above", "across", "after", "again", "against", "all", "along", "already", "also", "although",
    "always", "am", "among", "an", "and", "another", "any", "anybody", "anyone", "anything", "are", "aren't",
    "around", "as", "at", "away", "be", "became", "because", "become", "been", "before", "behind", "being", "below",
    "beside", "besides", "between", "beyond", "both", "but", "by", "can", "can't", "cannot", "could", "couldn't",
    "did", "didn't", "do", "does", "doesn't", "doing", "don't", "done", "down", "during", "each", "either", "else",
    "etc", "even", "ever", "every", "everybody", "everyone", "everything", "except", "few", "for", "from", "further",
    "had", "hadn't", "has", "hasn't", "have", "haven't", "having", "he", "he'd", "he'll", "he's", "hence", "her",
    "here", "here's", "hers", "herself", "him", "himself", "his", "how", "how's", "however", "i", "i'd", "i'll",
    "i'm", "i've", "if", "in", "into", "is", "isn't", "it", "it'd", "it'll", "it's", "its", "itself", "just",
    "least", "less", "let", "let's", "many", "may", "me", "might", "mine", "more", "moreover", "most", "much",
    "must", "mustn't", "my", "myself", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "now",
    "of", "off", "often", "on", "once", "only", "onto", "or", "other", "others", "otherwise", "ought", "our", "ours",
    "ourselves", "out", "over", "own", "per", "perhaps", "quite", "rather", "re", "s", "same", "shall", "she",
    "she'd", "she'll", "she's", "should", "shouldn't", "since", "so", "some", "somebody", "someone", "something",
    "soon", "still", "such", "t", "than", "that", "that'd", "that's", "the", "their", "theirs", "them", "themselves",
    "then", "there", "there's", "therefore", "these", "they", "they'd", "they'll", "they're", "they've", "this",
    "those", "though", "through", "thus", "till", "to", "together", "too", "toward", "towards", "under", "unless",
    "until", "up", "upon", "us", "very", "via", "was", "wasn't", "we", "we'd", "we'll", "we're", "we've", "were",
    "weren't", "what", "what's", "whatever", "when", "when's", "where", "where's", "whereas", "whether", "which",
    "while", "who", "who'd", "who's", "whoever", "whom", "whose", "why", "why's", "will", "with", "within",
    "without", "won't", "would", "wouldn't", "yet", "you", "you'd", "you'll", "you're", "you've", "your", "yours",
    "yourself", "yourselves",
];

/// The longest English stop word, in bytes.
const LONGEST: usize = 16;
const SLOTS: usize = 1 << 11;

/// A list of stop words, by language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StopWords {
    #[default]
    English,
    None,
    /// The list of the language that a text is in, see [`crate::words`]; of a single word, that of English.
    Detect,
    /// The function words of another language.
    Of(Language),
}

/// Open addressing on (first, last, length): most words need one probe.
static TABLE: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut table = vec![u16::MAX; SLOTS];
    for (i, word) in ENGLISH.iter().enumerate() {
        let mut slot = slot_of(word.as_bytes());
        while table[slot] != u16::MAX {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = i as u16;
    }
    table
});

fn slot_of(word: &[u8]) -> usize {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for &b in word {
        hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash >> 20) as usize % SLOTS
}

impl StopWords {
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "english" | "en" => Ok(Self::English),
            "auto" => Ok(Self::Detect),
            "none" => Ok(Self::None),
            _ => Language::by_name(name).map(Self::Of),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::None => "none",
            Self::Detect => "auto",
            Self::Of(language) => language.name(),
        }
    }

    pub fn list(self) -> &'static [&'static str] {
        match self {
            Self::English | Self::Detect => ENGLISH,
            Self::None => &[],
            Self::Of(language) => language.function_words(),
        }
    }

    /// Return the lower-case hexadecimal BLAKE3 of the words, each followed by a newline, for manifests.
    pub fn hash(self) -> String {
        let mut hasher = blake3::Hasher::new();
        for word in self.list() {
            hasher.update(word.as_bytes());
            hasher.update(b"\n");
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Return whether a lower-case word is on the list. A typographic apostrophe counts as a typed one.
    ///
    /// ```
    /// use ketrag_text::stopwords::StopWords;
    ///
    /// assert!(StopWords::English.contains("the") && !StopWords::English.contains("ship"));
    /// ```
    pub fn contains(self, word: &str) -> bool {
        if let Self::Of(language) = self {
            let mut folded = String::new();
            fold_into(word, &mut folded);
            return language.drops(&folded);
        }
        if self == Self::None || word.len() > LONGEST {
            return false;
        }
        if !word.is_ascii() {
            return word.contains('’') && self.contains(&word.replace('’', "'"));
        }
        let mut slot = slot_of(word.as_bytes());
        loop {
            match TABLE[slot] {
                u16::MAX => return false,
                i if ENGLISH[i as usize] == word => return true,
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_found() {
        assert!(ENGLISH.windows(2).all(|w| w[0] < w[1]));
        assert!(ENGLISH.iter().all(|w| w.len() <= LONGEST && w.is_ascii() && StopWords::English.contains(w)));
        for word in ["don’t", "the"] {
            assert!(StopWords::English.contains(word) && !StopWords::None.contains(word));
        }
        for word in ["", "thex", "paris", "été", "The"] {
            assert!(!StopWords::English.contains(word), "{word}");
        }
        let german = StopWords::by_name("german").unwrap();
        assert!(german.contains("für") && !german.contains("the") && german.list().contains(&"für"));
        assert_eq!(StopWords::English.hash().len(), 64);
        assert_ne!(StopWords::English.hash(), StopWords::None.hash());
        assert!(StopWords::by_name("klingon").is_err());
    }
}
