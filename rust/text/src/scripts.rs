//! Writing systems, and which one a word is written in.

/// Writing systems that decide the language or the stemmer of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    Latin,
    Arabic,
    Armenian,
    Bengali,
    Cyrillic,
    Devanagari,
    Ethiopic,
    Georgian,
    Greek,
    Gujarati,
    Gurmukhi,
    Han,
    Hangul,
    Hebrew,
    Kana,
    Kannada,
    Khmer,
    Lao,
    Malayalam,
    Myanmar,
    Sinhala,
    Tamil,
    Telugu,
    Thai,
    Other,
}

impl Script {
    pub(crate) fn of(c: char) -> Self {
        match u32::from(c) {
            0..=0x024F | 0x1E00..=0x1EFF => Self::Latin,
            0x0370..=0x03FF | 0x1F00..=0x1FFF => Self::Greek,
            0x0400..=0x052F | 0x1C80..=0x1C8F | 0x2DE0..=0x2DFF | 0xA640..=0xA69F => Self::Cyrillic,
            0x0531..=0x058F | 0xFB13..=0xFB17 => Self::Armenian,
            0x0590..=0x05FF => Self::Hebrew,
            0x0600..=0x06FF | 0x0750..=0x077F | 0x0870..=0x08FF | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC => {
                Self::Arabic
            }
            0x0900..=0x097F | 0xA8E0..=0xA8FF => Self::Devanagari,
            0x0980..=0x09FF => Self::Bengali,
            0x0A00..=0x0A7F => Self::Gurmukhi,
            0x0A80..=0x0AFF => Self::Gujarati,
            0x0B80..=0x0BFF => Self::Tamil,
            0x0C00..=0x0C7F => Self::Telugu,
            0x0C80..=0x0CFF => Self::Kannada,
            0x0D00..=0x0D7F => Self::Malayalam,
            0x0D80..=0x0DFF => Self::Sinhala,
            0x0E00..=0x0E7F => Self::Thai,
            0x0E80..=0x0EFF => Self::Lao,
            0x1000..=0x109F | 0xA9E0..=0xA9FF | 0xAA60..=0xAA7F => Self::Myanmar,
            0x10A0..=0x10FF | 0x1C90..=0x1CBF | 0x2D00..=0x2D2F => Self::Georgian,
            0x1200..=0x139F | 0x2D80..=0x2DDF | 0xAB01..=0xAB2E => Self::Ethiopic,
            0x1780..=0x17FF | 0x19E0..=0x19FF => Self::Khmer,
            0x1100..=0x11FF | 0xAC00..=0xD7FF => Self::Hangul,
            0x3041..=0x30FF | 0x31F0..=0x31FF => Self::Kana,
            0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF => Self::Han,
            _ => Self::Other,
        }
    }

    /// Return the script of a word's letters, or `None` if it mixes scripts or has no letter.
    pub fn of_word(word: &str) -> Option<Self> {
        if word.is_ascii() {
            return word.bytes().any(|b| b.is_ascii_alphabetic()).then_some(Self::Latin);
        }
        let mut letters = word.chars().filter(|c| !c.is_numeric());
        let script = Self::of(letters.next()?);
        letters.all(|c| Self::of(c) == script).then_some(script)
    }

    /// Return whether the script has no spaces between words.
    pub(crate) fn is_unspaced(self) -> bool {
        matches!(self, Self::Han | Self::Kana | Self::Khmer | Self::Lao | Self::Myanmar | Self::Thai)
    }
}
