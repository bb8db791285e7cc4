//! Keys by which equal and nearly equal passages are recognised.
//!
//! A key has two parts. `facts` is a hash of the words that distinguish similar passages, in order: those
//! with a digit, an upper-case letter or a mathematical sign. `sketch` is a SimHash (Charikar 2002) of the
//! runs of three words. Two passages are copies if their facts are equal and their sketches differ in at most
//! three bits (Manku, Jain, Das Sarma 2007). Two reports that differ in one number are therefore never
//! copies. Passages that differ only in punctuation and spaces are copies, and so are long passages that
//! differ in one or two plain words. With 150 words the limit is one different word. A short passage has too
//! few words for a sketch, so all of its words are facts.

use super::scripts::Script;
use blake2b_simd::Params;

/// Minimum number of words for a sketch. Shorter passages are copies only if all words are equal.
const LEAST_WORDS: usize = 24;
/// Maximum number of bits in which the sketches of copies differ.
const MOST_BITS: u32 = 3;
/// Characters that remain part of a word at its start and at its end: signs, currencies and units.
const IN_FRONT: &str = "+-−~<>=$€£¥";
const AT_END: &str = "+%‰°$€£¥";
/// Characters that make a word a fact.
const SIGNS: &str = "<>=!+*/%&^~|@$€£¥";

/// The values by which passages are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    pub facts: u64,
    pub sketch: u64,
}

impl Key {
    /// Return whether passages with these keys are equal or nearly equal.
    pub fn is_copy(self, other: Self) -> bool {
        self.facts == other.facts && (self.sketch ^ other.sketch).count_ones() <= MOST_BITS
    }
}

/// Computes keys. Its buffers are reused from passage to passage.
#[derive(Debug, Default)]
pub struct Keys {
    words: Vec<u64>,
    all: Vec<u8>,
    facts: Vec<u8>,
    planes: Vec<u64>,
}

impl Keys {
    /// Return the key of a passage that is printed as these parts, one after another.
    pub fn of(&mut self, parts: [&str; 2]) -> Key {
        self.words.clear();
        self.all.clear();
        self.facts.clear();
        self.all.push(1);
        self.facts.push(0);
        for word in parts.into_iter().flat_map(str::split_whitespace) {
            self.add(word);
        }
        let is_short = self.words.len() < LEAST_WORDS;
        let facts = hash(if is_short { &self.all } else { &self.facts });
        Key { facts, sketch: if is_short { 0 } else { self.sketch() } }
    }

    fn add(&mut self, word: &str) {
        let ends = |c: char| !c.is_alphanumeric() && !AT_END.contains(c);
        let begins = |c: char| !c.is_alphanumeric() && !IN_FRONT.contains(c);
        let trimmed = word.trim_end_matches(ends).trim_start_matches(begins);
        let has_letters = trimmed.chars().any(char::is_alphanumeric);
        let word = match has_letters {
            true => trimmed,
            false if word.contains(|c| SIGNS.contains(c)) => word,
            false => return,
        };
        let line = |out: &mut Vec<u8>| {
            out.extend_from_slice(word.as_bytes());
            out.push(b'\n');
        };
        if self.words.len() < LEAST_WORDS {
            line(&mut self.all);
        }
        if word.contains(|c: char| c.is_numeric() || c.is_uppercase() || SIGNS.contains(c)) {
            line(&mut self.facts);
        }
        if word.is_ascii() {
            self.words.push(word.bytes().fold(FIRST, |hash, byte| step(hash, byte.to_ascii_lowercase())));
            return;
        }
        let mut run = FIRST;
        for c in word.chars() {
            let mut buffer = [0; 4];
            let one = |hash| {
                c.to_lowercase().fold(hash, |hash, c| c.encode_utf8(&mut buffer).bytes().fold(hash, step))
            };
            if !Script::of(c).is_unspaced() {
                run = { one }(run);
                continue;
            }
            if run != FIRST {
                self.words.push(run);
                run = FIRST;
            }
            self.words.push({ one }(FIRST));
        }
        if run != FIRST {
            self.words.push(run);
        }
    }

    /// Count in binary, for all 64 bits at once: plane `k` has bit `k` of each count.
    fn sketch(&mut self) -> u64 {
        self.planes.clear();
        for run in self.words.windows(3) {
            let mut carry = mixed(run[0] ^ run[1].rotate_left(21) ^ run[2].rotate_left(42));
            for plane in &mut self.planes {
                (*plane, carry) = (*plane ^ carry, *plane & carry);
            }
            if carry != 0 {
                self.planes.push(carry);
            }
        }
        let runs = self.words.len() as u64 - 2;
        (0..64).fold(0, |sketch, bit| {
            let counts = self.planes.iter().zip(0u32..);
            let count: u64 = counts.map(|(plane, k)| (plane >> bit & 1) << k).sum();
            sketch | u64::from(2 * count > runs) << bit
        })
    }
}

/// FNV-1a, for words.
const FIRST: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// The finaliser of SplitMix64, which spreads all bits.
fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = Params::new().hash_length(8).hash(bytes);
    digest.as_bytes().iter().fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Keys::default().of(["", text])
    }

    /// Words without a fact, all different.
    fn long(words: usize) -> String {
        let name = |mut k: usize| {
            let mut out = String::new();
            for _ in 0..4 {
                out.push(char::from(b'a' + (k % 26) as u8));
                k = k / 26 + 7 * k;
            }
            out
        };
        (0..words).map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn short_passages_are_copies_only_if_all_words_are_equal() {
        let first = key("Refunds are paid within 14 days of the return.");
        assert!(first.is_copy(key("  Refunds are\npaid within 14 days of the return")));
        assert!(!first.is_copy(key("Refunds are paid within 7 days of the return.")));
        assert!(!first.is_copy(key("Refunds were paid within 14 days of the return.")));
        assert!(!key("a == b").is_copy(key("a != b")));
        assert!(!key("it is -5 degrees").is_copy(key("it is 5 degrees")));
    }

    #[test]
    fn nearly_equal_passages_are_copies_unless_facts_differ() {
        let text = long(1500);
        let with = |more: &str| key(&format!("{text} {more} {text}"));
        assert!(with("paid in 14 days").is_copy(with("paid, in 14 days,")));
        assert!(with("we paid in 14 days").is_copy(with("they paid in 14 days")));
        assert!(!with("paid in 14 days").is_copy(with("paid in 15 days")));
        assert!(!with("paid by Anna").is_copy(with("paid by Berta")));
        assert!(!with("from 3 to 7").is_copy(with("from 7 to 3")));
        assert!(!key(&long(200)).is_copy(key(&long(250))));
    }

    #[test]
    fn context_belongs_to_the_passage_and_scripts_without_spaces_have_words() {
        let mut keys = Keys::default();
        assert!(keys.of(["| name |\n", "| 41 |"]).is_copy(key("| name |\n| 41 |")));
        assert!(!keys.of(["| name |\n", "| 41 |"]).is_copy(key("| size |\n| 41 |")));
        let text = "退款将在退货后十四天内支付请保留收据以便我们核对您的订单并尽快处理".repeat(3);
        assert!(key(&text).sketch != 0);
        assert_eq!(key(""), key(" \n"));
    }
}
