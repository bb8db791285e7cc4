//! Token counts under a named encoding, without its vocabulary where the text is one of our own marks.
//!
//! Loading a vocabulary takes some 30 ms, a tenth of what a whole question may take; printing a context
//! counts nothing but marks and line ends, unless a row must be cut.

use super::fill::Count;
use crate::error::{Error, Result};

/// The encodings whose marks are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Cl100k,
    O200k,
}

impl Encoding {
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "cl100k_base" => Ok(Self::Cl100k),
            "o200k_base" => Ok(Self::O200k),
            other => Err(Error::input(format!("encoding is cl100k_base or o200k_base, not {other:?}"))),
        }
    }

    fn vocabulary(self) -> &'static bpe_openai::Tokenizer {
        match self {
            Self::Cl100k => bpe_openai::cl100k_base(),
            Self::O200k => bpe_openai::o200k_base(),
        }
    }
}

impl Count for Encoding {
    fn count(&self, text: &str) -> usize {
        known(text).unwrap_or_else(|| self.vocabulary().count(text))
    }
}

/// The count of a mark or line end, the same under both encodings: they take digits by threes.
fn known(text: &str) -> Option<usize> {
    let number = |start: &str, end: &str| {
        let digits = text.strip_prefix(start)?.strip_suffix(end)?;
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.len().div_ceil(3))
    };
    match text {
        "" => Some(0),
        "\n" | "\n\n" => Some(1),
        _ => number("[", "]\n").map(|n| n + 2).or_else(|| number("chunk_", "|").map(|n| n + 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_what_the_vocabulary_says() {
        let ranks = (1..3000).chain([99_999, 100_000, 1_234_567, 4_294_967_295u64]);
        let marks = ranks.flat_map(|rank| [format!("[{rank}]\n"), format!("chunk_{rank}|")]);
        let ends = ["", "\n", "\n\n"].map(str::to_owned);
        for mark in marks.chain(ends) {
            let count = known(&mark).unwrap();
            for encoding in [Encoding::Cl100k, Encoding::O200k] {
                assert_eq!(encoding.vocabulary().count(&mark), count, "{mark:?}");
            }
        }
        assert_eq!(known("[x]\n").or(known("[]\n")).or(known("chunk_|")), None);
        assert_eq!(Encoding::Cl100k.count("a text"), 2);
        assert!(Encoding::named("p50k_base").is_err());
    }
}
