//! Built-in texts for checking that bf16 and int8 keep the direction of a model's vectors.

use super::kernel::Form;
use super::tokens::Tokens;
use crate::error::Result;
use crate::text::strings::StringsBuf;

/// Return the lowest cosine between the two vectors of a text at which a format is used instead of f32: int8 has the
/// larger error in texts of one or two tokens.
pub fn least_cosine(form: Form) -> f64 {
    if form == Form::Int8 {
        0.998
    } else {
        0.999
    }
}

/// Return the lowest cosine between rows of `d` values. Two zero vectors agree.
pub fn lowest_cosine(a: &[f32], b: &[f32], d: usize) -> f64 {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum::<f64>();
    let rows = a.chunks_exact(d).zip(b.chunks_exact(d));
    rows.map(|(x, y)| {
        let lengths = (dot(x, x) * dot(y, y)).sqrt();
        if lengths > 0.0 {
            dot(x, y) / lengths
        } else {
            f64::from(u8::from(dot(x, x) == dot(y, y)))
        }
    })
    .fold(1.0, f64::min)
}

/// The texts.
pub fn texts() -> StringsBuf {
    TEXTS.into_iter().collect()
}

/// The tokens of the texts' first windows.
pub fn sample(tokens: &Tokens) -> Result<Vec<Vec<u32>>> {
    let (texts, lead) = (texts(), tokens.lead("")?);
    let mut found = Vec::new();
    for text in texts.view().iter() {
        let windows = tokens.windows(text, &lead)?;
        found.extend(windows.lengths.first().map(|&length| windows.ids[..length].to_vec()));
    }
    Ok(found)
}

const TEXTS: [&str; 32] = [
    "Who wrote the first grammar of this language?",
    "The bridge was opened in 1932 and carries both trains and cars across the harbour.",
    "She studied medicine before she turned to painting.",
    "In which country lies the source of the longest river of the continent?",
    "No.",
    "A list: apples, pears, 3.5 kg of plums; and (perhaps) a melon?!",
    "The committee, which had met for the third time that week, could not agree on whether the report, \
     long promised and often delayed, should be printed before the vote or after it.",
    "def area(radius):\n    return 3.14159 * radius ** 2",
    "Temperature: -40 °C = -40 °F; speed of light ≈ 299,792,458 m/s.",
    "x",
    "Der Zug nach München fährt um acht Uhr von Gleis sieben ab.",
    "Die Donaudampfschifffahrtsgesellschaft beförderte im Jahre 1880 über drei Millionen Fahrgäste.",
    "Le petit village se trouve au pied des montagnes, à l'écart de la route nationale.",
    "Où est née la reine qui a fait construire ce château ?",
    "El río nace en la sierra y desemboca en el océano después de seiscientos kilómetros.",
    "¿Quién dirigió la película que ganó el premio en 1987?",
    "La biblioteca conserva più di duemila manoscritti del quindicesimo secolo.",
    "O navio partiu de Lisboa com duzentos marinheiros e regressou com sessenta.",
    "De molen werd in 1742 gebouwd en maalt nog altijd graan.",
    "Katedra została zniszczona podczas wojny i odbudowana w latach pięćdziesiątych.",
    "Озеро замерзает в ноябре и освобождается ото льда только в мае.",
    "Хто написав цю пісню і коли її вперше виконали?",
    "Το νησί έχει περίπου τρεις χιλιάδες κατοίκους και ένα μικρό λιμάνι.",
    "Müze, eski tren istasyonunun binasında 1998 yılında açıldı.",
    "המוזיאון נפתח בשנת אלף תשע מאות שישים וחמש.",
    "تقع المدينة على ضفة النهر ويسكنها مليون نسمة.",
    "यह मंदिर बारहवीं शताब्दी में बनाया गया था।",
    "ประเทศนี้มีเกาะมากกว่าหนึ่งพันเกาะ",
    "这座桥建于一九五七年，全长一千六百多米。",
    "この小説は二十か国語に翻訳されている。",
    "그 영화는 부산에서 촬영되었다.",
    "Mixed: naïve café, Ελλάδα, 東京, 🚲🌧️, e=mc², zażółć gęślą jaźń.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_cosine_is_found() {
        assert_eq!(lowest_cosine(&[1.0, 0.0, 3.0, 4.0], &[2.0, 0.0, 4.0, 3.0], 2), 24.0 / 25.0);
        assert_eq!(lowest_cosine(&[0.0, 0.0], &[0.0, 0.0], 2), 1.0);
        assert_eq!(lowest_cosine(&[0.0, 0.0], &[1.0, 0.0], 2), 0.0);
    }

    #[test]
    fn there_are_texts_in_many_scripts() {
        let texts = texts();
        assert_eq!(texts.view().len(), 32);
        let scripts = ['a', 'я', 'λ', 'א', 'ع', 'ह', 'ป', '这', 'の', '그'];
        let all: String = texts.view().iter().collect();
        assert!(scripts.iter().all(|&c| all.contains(c)), "a script is missing");
    }
}
