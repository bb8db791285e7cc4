//! The language of a text, from its first words.
//!
//! Function words identify a language: a German text is full of "der", "und" and "nicht". A language that is
//! the only one in its script is recognised by the script. Everything else is classified as English, whose
//! analysis is the simplest.

use crate::error::Result;
use crate::folding::is_unspaced;
use crate::languages::{profile, Language, Script, LONGEST};

/// Number of words of a text that detection reads.
pub const READ: usize = 120;
/// Number of words after which a text that is clearly English is not read further.
const EARLY: u32 = 24;
/// Minimum share of function words, in percent, for a language other than English.
const SHARE: u32 = 12;
/// The same minimum for a text of at least `LONG` words in which at most 1 word in `RARE` is an English
/// function word. Hardly any English text is like that. Turkish and Polish have endings instead of function
/// words.
const LEAST_SHARE: u32 = 6;
const LONG: u32 = 30;
const RARE: u32 = 25;

/// Return the minimum number of non-English function words for a text of `words` words to be classified as
/// another language.
fn least_hits(words: u32) -> u32 {
    match words {
        ..12 => 2,
        12..30 => 3,
        _ => 4,
    }
}

/// Return the language of a text from its words, folded and in lower case. At most [`READ`] words are read.
///
/// ```
/// use ketrag_text::detection::detect;
///
/// let text = "die stadt wurde im jahr 1158 von heinrich dem lowen gegrundet und ist nicht gross";
/// assert_eq!(detect(text.split(' ')).code(), "de");
/// ```
pub fn detect<'a>(text: impl Iterator<Item = &'a str>) -> Language {
    evidence(text, false).unwrap_or_default()
}

/// Return the language of a text. With `glance`, return it only if the text is clearly English.
pub(crate) fn evidence<'a>(text: impl Iterator<Item = &'a str>, glance: bool) -> Option<Language> {
    let profile = profile();
    let (mut scores, mut hits) = ([0u32; 64], [0u32; 64]);
    let mut seen: Vec<u32> = Vec::with_capacity(READ);
    let mut scripts = [0u32; Script::Other as usize + 1];
    let (mut words, mut repeated) = (0u32, 0u32);
    for word in text.take(READ) {
        let Some(script) = word.chars().find(|c| !c.is_numeric()).map(Script::of) else { continue };
        if script.is_unspaced() {
            // A run without spaces contains many words.
            for c in word.chars().take(READ).filter(|&c| is_unspaced(c)) {
                scripts[Script::of(c) as usize] += 1;
            }
            continue;
        }
        words += 1;
        scripts[script as usize] += 2;
        let Some(id) = (word.len() <= LONGEST).then(|| profile.words.get(word)).flatten() else { continue };
        // "Los Angeles" ten times is not Spanish.
        if seen.contains(&id) {
            repeated += 1;
            continue;
        }
        seen.push(id);
        let mut owners = profile.owners[id as usize];
        // A word of few languages is stronger evidence.
        let weight = 20 + 60 / owners.count_ones();
        while owners != 0 {
            let at = owners.trailing_zeros() as usize;
            scores[at] += weight;
            hits[at] += 1;
            owners &= owners - 1;
        }
        if words == EARLY && hits[0] >= 5 && scores[1..].iter().all(|&other| other <= scores[0]) {
            return Some(Language::ENGLISH);
        }
    }
    if glance {
        return None;
    }
    // Japanese mixes kana with Han characters.
    if scripts[Script::Kana as usize] * 8 > scripts[Script::Han as usize] {
        scripts[Script::Kana as usize] += scripts[Script::Han as usize];
        scripts[Script::Han as usize] = 0;
    }
    let main = (0..scripts.len()).rev().max_by_key(|&at| scripts[at]).unwrap_or(0);
    let default = Language::scripts().find(|&(_, script)| script as usize == main);
    let Some((_, script)) = default.filter(|_| main != Script::Other as usize) else {
        return Some(Language::ENGLISH);
    };
    let default = script.language();
    let rivals = Language::scripts().filter(|&(_, own)| own == script);
    let best = rivals.rev().map(|(rival, _)| rival).max_by_key(|rival| scores[rival.at()]).unwrap_or(default);
    // Function words that only one of the two languages has. They detect a Spanish title in an English
    // sentence, or the reverse.
    let only = |one: usize, other: usize| {
        let alone = |&&id: &&u32| profile.owners[id as usize] & (1 << one | 1 << other) == 1 << one;
        seen.iter().filter(alone).count() as u32
    };
    let (foreign, exclusive) = (only(0, best.at()), only(best.at(), 0));
    let counted = words - repeated;
    let share = if counted >= LONG && RARE * foreign <= counted { LEAST_SHARE } else { SHARE };
    let enough = exclusive + u32::from(foreign == 0) > 2 * foreign + 2
        && exclusive >= least_hits(counted)
        && 100 * hits[best.at()] >= share * counted;
    Some(if enough && 2 * scores[best.at()] > 3 * scores[default.at()] { best } else { default })
}

/// How the languages of texts are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Detect,
    Always(Language),
}

impl Default for Choice {
    fn default() -> Self {
        Self::Always(Language::ENGLISH)
    }
}

impl Choice {
    /// `auto`, or a language by code or name.
    pub fn by_name(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Detect),
            _ => Language::by_name(name).map(Self::Always),
        }
    }

    /// Return the language of a text from its words, folded and in lower case.
    pub fn language<'a>(self, text: impl Iterator<Item = &'a str>) -> Language {
        match self {
            Self::Detect => detect(text),
            Self::Always(language) => language,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn language(text: &str) -> &'static str {
        let mut lexer = crate::lexical::Lexer::default();
        lexer.read(text);
        detect(lexer.lowers(0)).code()
    }

    #[test]
    fn languages_are_detected() {
        for (code, text) in [
            ("en", "The city was founded in 1158 by Henry the Lion and is not large."),
            ("en", "Franz Ritter von Hauer, or Franz von Hauer, was an Austrian geologist."),
            ("en", "Los Muchachos de mi barrio is a 1970 Argentine film."),
            ("en", "Qeshlaq -e Tak Quyi may refer to:"),
            ("en", "One More Time may refer to:"),
            ("en", "Name (Lifespan) Took office Left office Kim Jong - il (1941 - 2011) 5 September 2009 Workers' Party of Korea"),
            ("de", "In seinem Artikel \"A Machine to End War\", der 1937 veröffentlicht wurde, sagte Tesla beispielsweise: „Es gibt \
                    keinen Konflikt zwischen dem Ideal der Religion und dem der Wissenschaft.\""),
            ("en", "7 8 9"),
            ("en", ""),
            ("de", "Die Stadt wurde 1158 gegründet und ist nicht groß."),
            ("fr", "La ville a été fondée en 1158 par le duc et elle est dans une vallée."),
            ("es", "La ciudad fue fundada en 1158 por el duque y está en un valle que no es muy grande."),
            ("it", "La città fu fondata nel 1158 dal duca e si trova in una valle che non è grande."),
            ("pt", "A cidade foi fundada em 1158 pelo duque e está em um vale que não é muito grande."),
            ("nl", "De stad werd in 1158 door de hertog gesticht en ligt in een dal dat niet groot is."),
            ("sv", "Staden grundades 1158 av hertigen och ligger i en dal som inte är stor."),
            ("tr", "Bu kent 1158 yılında kuruldu ve çok büyük bir vadi değil ama daha sonra da gelişti."),
            ("tr", "Panthers savunması sadece 308 sayı bıraktı, aynı zamanda 24 topu kapma ile ligin başını çekti ve dört \
                    seçme ile övünç duydu. Takımın bir oyuncusu olan Short, 11 sack ile birlikte üç top düşürdü."),
            ("vi", "Thành phố được thành lập vào năm 1158 bởi công tước và không phải là một thành phố lớn của đất nước."),
            ("tr", "Daha sonra, New England'ın 2 puanlık dönüşüm girişimini saat üzerinde 17 saniye kala bir pası keserek, \
                    AFC Şampiyonluk Oyununda savunan şampiyon Patriots'u 20–18 yendi. Sezon boyunca sorunlarına rağmen, iki \
                    rövanş maçı kazandı ve takım kupayı aldı."),
            ("pl", "Miasto zostało założone w 1158 przez księcia i nie jest duże, ale jest w dolinie."),
            ("ru", "Город основан в 1158 году."),
            ("uk", "Місто засноване в 1158 році і є не дуже великим, але його було відновлено."),
            ("ar", "تأسست المدينة عام 1158."),
            ("fa", "این شهر در سال 1158 ساخته شد و برای آن است که از آن یاد می شود."),
            ("hi", "शहर की स्थापना 1158 में हुई थी।"),
            ("el", "Η πόλη ιδρύθηκε το 1158."),
            ("zh", "这座城市建于1158年。"),
            ("ja", "この都市は1158年に建設された。"),
            ("ko", "이 도시는 1158년에 세워졌다."),
            ("th", "เมืองนี้ก่อตั้งขึ้นในปี 1158"),
            ("km", "ទីក្រុងនេះត្រូវបានបង្កើតឡើងក្នុងឆ្នាំ 1158"),
            ("lo", "ເມືອງນີ້ສ້າງຂຶ້ນໃນປີ 1158"),
            ("my", "ဤမြို့ကို ၁၁၅၈ ခုနှစ်တွင် တည်ထောင်ခဲ့သည်။"),
            ("bn", "শহরটি 1158 সালে প্রতিষ্ঠিত হয়েছিল।"),
            ("ka", "ქალაქი 1158 წელს დაარსდა."),
            ("am", "ከተማዋ በ1158 ተመሠረተች።"),
        ] {
            assert_eq!(language(text), code, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_language(text in "\\PC{0,60}") {
            language(&text);
        }

        #[test]
        fn a_glance_does_not_change_the_language(
            text in "((the|of|is|and|was|city|die|der|und|ist|nicht|Stadt|дом|é) ){0,90}",
            characters in 1usize..600,
        ) {
            let cut: String = text.chars().take(characters).collect();
            let found = crate::lexical::Lexer::default().detect_start(&text, characters);
            prop_assert_eq!(found.code(), language(&cut));
        }
    }
}
