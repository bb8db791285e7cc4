//! Ratio of a text's token count to that of an English text with the same content.
//!
//! Encodings are optimised for English, and a word in Arabic, Hindi or Russian takes several tokens. Chunks
//! with the same amount of text therefore need more tokens in these languages.

use crate::bpe::Counter;
use crate::detection::Choice;
use crate::languages::{Language, Script};
use crate::lexical::Lexer;

/// Number of characters of a text that are counted.
const READ: usize = 2_000;
/// Number of characters of an English text per 100 tokens of cl100k.
const ENGLISH: usize = 480;
/// The largest ratio in percent. It limits chunks of incompressible text.
const MOST: usize = 1_000;

/// Return the number of tokens of a text per 100 tokens of an English text with the same content, at least
/// 100. Returns 100 for English text, or if `language` is none.
pub fn tokens_for_hundred(text: &str, language: Choice, counter: &mut Counter, lexer: &mut Lexer) -> usize {
    let plain = |language| language == Language::ENGLISH || language == Language::NONE;
    if matches!(language, Choice::Always(language) if plain(language)) {
        return 100;
    }
    let found = match language {
        Choice::Detect => lexer.detect_start(text, READ),
        Choice::Always(language) => language,
    };
    if plain(found) {
        return 100;
    }
    let start = &text[..text.char_indices().nth(READ).map_or(text.len(), |(at, _)| at)];
    let letters: usize = start.chars().map(weight).sum();
    if letters == 0 {
        return 100;
    }
    (counter.count(start) * ENGLISH / letters).clamp(100, MOST)
}

/// Return the number of characters that an English text with the same content needs.
fn weight(c: char) -> usize {
    if c.is_ascii() {
        return 1;
    }
    match Script::of(c) {
        Script::Han => 4,
        Script::Kana | Script::Hangul => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpe::Encoding;

    const TEXTS: [(&str, &str); 5] = [
        ("en", "The city was founded in 1158 by Henry the Lion and it is not as large as the older ones of the country."),
        ("de", "Die Stadt wurde 1158 von Heinrich dem Löwen gegründet und ist nicht so groß wie die älteren des Landes."),
        ("ru", "Город был основан в 1158 году Генрихом Львом, и он не такой большой, как более старые города страны."),
        ("hi", "शहर की स्थापना 1158 में हेनरी ने की थी और यह देश के पुराने शहरों जितना बड़ा नहीं है।"),
        ("zh", "这座城市由狮子亨利于1158年建立,它没有这个国家那些更古老的城市那么大。"),
    ];

    fn share(text: &str, language: Choice) -> usize {
        tokens_for_hundred(text, language, &mut Counter::new(Encoding::Cl100k), &mut Lexer::default())
    }

    #[test]
    fn chunks_of_other_languages_have_more_tokens() {
        let shares = TEXTS.map(|(_, text)| share(text, Choice::Detect));
        assert_eq!(shares[0], 100);
        assert!(shares[1] > 110 && shares[2] > 150 && shares[3] > 300 && shares[4] > 110, "{shares:?}");
        for (code, text) in TEXTS {
            for plain in [Language::ENGLISH, Language::NONE] {
                assert_eq!(share(text, Choice::Always(plain)), 100);
            }
            // With this many tokens for each English token, the texts are of similar size.
            let tokens = Encoding::Cl100k.count(text) * 100 / share(text, Choice::Detect);
            assert!((12..45).contains(&tokens), "{code}: {tokens}");
        }
    }

    #[test]
    fn any_text_has_a_share() {
        assert_eq!(share("", Choice::Detect), 100);
        assert_eq!(
            share(&"中".repeat(10_000), Choice::Detect).clamp(100, MOST),
            share(&"中".repeat(READ), Choice::Detect)
        );
        assert!(share(&"𒀀".repeat(3_000), Choice::Always(Language::by_name("ar").unwrap())) <= MOST);
    }
}
