//! Pieces of text in scripts without spaces between words. A piece is a single Han or kana character; in
//! Thai, Lao, Khmer and Myanmar it is a consonant with its vowels and marks. Pairs of adjacent pieces replace
//! words. Vowels are separate characters in these four scripts, so a pair of characters is often less than a
//! syllable and matches too much.

/// Return whether two adjacent characters belong to one piece.
#[inline]
pub(crate) fn is_inside(before: char, c: char) -> bool {
    is_attached(c) || matches!(before as u32, 0x0E40..=0x0E44 | 0x0EC0..=0x0EC4)
}

/// Vowels and marks that follow their consonant, in Thai, Lao, Myanmar and Khmer.
#[inline]
pub(crate) fn is_attached(c: char) -> bool {
    matches!(c as u32,
        0x0E30..=0x0E3A | 0x0E45 | 0x0E47..=0x0E4E // Thai
        | 0x0EB0..=0x0EBC | 0x0EC8..=0x0ECE // Lao
        | 0x102B..=0x103E | 0x1056..=0x1059 | 0x105E..=0x1060 | 0x1062..=0x1064 | 0x1067..=0x106D
        | 0x1071..=0x1074 | 0x1082..=0x108D | 0x108F | 0x109A..=0x109D // Myanmar
        | 0x17B4..=0x17D3 | 0x17DD) // Khmer
}

/// Return the length in bytes of the piece with which a text begins.
pub(crate) fn first_piece(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1).zip(text.chars());
    chars.find(|&((_, c), before)| !is_inside(before, c)).map_or(text.len(), |((at, _), _)| at)
}

/// Call `see` with each pair of adjacent pieces and the index of the pair's first character. A single piece
/// is passed alone. `chars` are the characters of a run in scripts without spaces, with their indices.
pub(crate) fn each_pair(chars: impl Iterator<Item = (usize, char)>, mut see: impl FnMut(&str, usize)) {
    let mut pair = String::with_capacity(24);
    // Bytes of the first piece, and where both begin.
    let (mut size, mut first, mut second) = (0, 0, 0);
    let (mut pieces, mut last) = (0, None);
    for (at, c) in chars {
        if !last.is_some_and(|before| is_inside(before, c)) {
            if pieces > 1 {
                see(&pair, first);
                pair.drain(..size);
            }
            (size, first, second) = (pair.len(), second, at);
            pieces += 1;
        }
        pair.push(c);
        last = Some(c);
    }
    match pieces {
        0 => {}
        1 => see(&pair, second),
        _ => see(&pair, first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(run: &str) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        each_pair(run.char_indices(), |pair, at| found.push((pair.to_owned(), at)));
        found
    }

    fn texts(run: &str) -> Vec<String> {
        pairs(run).into_iter().map(|(pair, _)| pair).collect()
    }

    #[test]
    fn a_piece_is_what_a_reader_sees() {
        assert_eq!(texts("東京都"), ["東京", "京都"]);
        assert_eq!(texts("ประเทศไทย"), ["ประ", "ระเท", "เทศ", "ศไท", "ไทย"]);
        assert_eq!(texts("ภาษา"), ["ภาษา"]);
        assert_eq!(texts("ที่นี่"), ["ที่นี่"]);
        assert_eq!(texts("ປະເທດລາວ"), ["ປະເທ", "ເທດ", "ດລາ", "ລາວ"]);
        assert_eq!(texts("มา"), ["มา"]);
        assert_eq!(texts(""), [""; 0]);
        assert_eq!(pairs("京ก็ดี"), [("京ก็".into(), 0), ("ก็ดี".into(), 3)]);
    }

    proptest! {
        #[test]
        fn pairs_overlap_and_lose_nothing(run in "[กขเแาิ็่ำ東かកាំ្ကာ်]{0,12}") {
            let found = pairs(&run);
            let mut end = 0;
            for (k, (pair, at)) in found.iter().enumerate() {
                prop_assert!(run[*at..].starts_with(pair.as_str()));
                prop_assert!(k == 0 || (*at > found[k - 1].1 && *at < end));
                end = at + pair.len();
            }
            prop_assert_eq!(end, run.len());
        }
    }
}
