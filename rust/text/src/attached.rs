//! Words without what some scripts attach to them: Korean particles, and the Hebrew article, conjunction and
//! prepositions.

use crate::scripts::Script;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

/// Korean particles and forms of the copula that leave a noun of any length.
const PARTICLES: &str = "에서는 에서도 으로는 으로도 에게서 한테서 까지는 부터는 이라는 이라고 입니다 에서 에게 한테 으로 까지 \
부터 처럼 보다 마다 조차 마저 밖에 이나 이란 이며 이고 에는 에도 에만 와는 과는 라는 라고 하고 께서 은 는 을 를 의 에";
/// Particles that many nouns of two syllables end in, the plural, and titles of people: at least two syllables must remain.
const SHORT: &str = "들에게 들이 들은 들을 들의 들도 들과 들로 들 이 가 로 와 과 도 만 나 께 랑 씨가 씨는 씨를 씨의 씨와 씨 님이 님은 \
님을 님의 님";
/// Particles that a noun of one syllable has if that syllable ends in a consonant: "책이", but not "나이" and "포도".
const AFTER_CONSONANT: &str = "이 과 도 만";
/// Letters that Hebrew attaches to the beginning of a word: and, the, in, to, from, that, like.
const PREFIXES: &str = "והבלמשכ";
/// Minimum number of letters that remain of a Hebrew word. Shorter rests are mostly other words.
const MIN_LETTERS: usize = 3;

/// Call `each` with a word (folded) without attached particles or prefixes.
pub(crate) fn each_without_attached(word: &str, mut each: impl FnMut(&str)) {
    match word.chars().next().map(Script::of) {
        Some(Script::Hangul) => without_particle(word).into_iter().for_each(each),
        Some(Script::Hebrew) => {
            let mut rest = word.chars();
            for _ in 0..2 {
                let is_prefix = rest.next().is_some_and(|c| PREFIXES.contains(c));
                if !is_prefix || rest.as_str().chars().count() < MIN_LETTERS {
                    break;
                }
                each(rest.as_str());
            }
        }
        Some(_) if !word.is_ascii() => {
            // "API를", "3월에": what begins in another script is found alone, too.
            let is_hangul = |c: char| Script::of(c) == Script::Hangul;
            let head = word.trim_end_matches(is_hangul);
            if head.len() < word.len() && !head.contains(is_hangul) {
                without_particle(word).filter(|root| root.len() > head.len()).into_iter().for_each(&mut each);
                each(head);
            }
        }
        _ => {}
    }
}

/// Return a Korean word without its longest particle. Folding decomposes Hangul, so particles are decomposed, too.
fn without_particle(word: &str) -> Option<&str> {
    static DECOMPOSED: LazyLock<Vec<(String, usize, bool)>> = LazyLock::new(|| {
        let rows = [(PARTICLES, 1, false), (SHORT, 2, false), (AFTER_CONSONANT, 1, true)];
        let particles = rows
            .iter()
            .flat_map(|&(list, least, closed)| list.split(' ').map(move |one| (one, least, closed)));
        particles.map(|(one, least, closed)| (one.nfkd().collect(), least, closed)).collect()
    });
    let is_closed = |root: &str| root.ends_with(|c: char| ('\u{11a8}'..='\u{11ff}').contains(&c));
    let syllables = |root: &str| root.chars().filter(|c| ('\u{1100}'..='\u{115f}').contains(c)).count();
    let roots = DECOMPOSED.iter().filter_map(|(particle, least, closed)| {
        let root = word.strip_suffix(particle.as_str())?;
        (syllables(root) >= *least && (!closed || is_closed(root))).then_some(root)
    });
    roots.min_by_key(|root| root.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folding::fold_into;

    #[test]
    fn attached_words_are_removed() {
        for (word, expected) in [
            ("서버는", &["서버"][..]),
            ("서버에서도", &["서버"]),
            ("물을", &["물"]),
            ("나이", &[]),
            ("포도", &[]),
            ("책이", &["책"]),
            ("김철수씨가", &["김철수"]),
            ("사람들이", &["사람"]),
            ("API를", &["API"]),
            ("3월에는", &["3월", "3"]),
            ("는", &[]),
            ("הספרייה", &["ספרייה"]),
            ("והבית", &["הבית", "בית"]),
            ("שלום", &["לום"]),
            ("של", &[]),
            ("word", &[]),
        ] {
            let (mut folded, mut found) = (String::new(), Vec::new());
            fold_into(word, &mut folded);
            each_without_attached(&folded, |root| found.push(root.nfc().collect::<String>()));
            assert_eq!(found, expected, "{word}");
        }
    }
}
