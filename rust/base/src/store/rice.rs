//! Integers in few bits: differences or plain values, in blocks of 128, each with its own Rice parameter.
//!
//! Ids of rows ascend within a row and start again with the next one. Such a restart is marked and stored as
//! a plain value, so that lists of any length share blocks. Pairs (starts and ends) have one stream of blocks
//! for each column, because their differences have different sizes. A constant block needs three bytes.

/// Values of one block.
const BLOCK: usize = 128;
/// Zeros after which a value is stored in 64 bits.
const ESCAPE: u32 = 24;
/// Largest Rice parameter: a code word fits into one read of 57 bits.
const MOST_BITS: u32 = 32;
/// Parameter of a block whose values are all equal.
const CONSTANT: u8 = 0xff;
/// Number of restarts from which they are stored as a bitmap.
const BITMAP: usize = 16;
/// Bytes after the last block, so that every read of eight bytes stays inside.
const PAD: usize = 8;

/// What is stored for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    /// Differences of values that never fall.
    Rising,
    /// Differences of ascending values; a value that is not greater than the one before is a restart.
    Rows,
}

impl Form {
    fn parse(number: u8) -> Option<Self> {
        [Self::Plain, Self::Rising, Self::Rows].into_iter().find(|&form| form as u8 == number)
    }
}

/// Append the values in the shortest of the forms. `columns` is 1, or 2 for pairs.
pub fn encode(values: &[u64], columns: usize, out: &mut Vec<u8>) {
    let rising = values.windows(2).all(|w| w[0] <= w[1]);
    let forms: &[Form] = match rising {
        true => &[Form::Rising],
        false => &[Form::Plain, Form::Rows],
    };
    let mut best: Option<Vec<u8>> = None;
    for &form in forms {
        let made = encode_as(values, form, columns);
        if best.as_ref().is_none_or(|best| made.len() < best.len()) {
            best = Some(made);
        }
    }
    out.extend(best.unwrap_or_default());
}

fn encode_as(values: &[u64], form: Form, columns: usize) -> Vec<u8> {
    let mut out = vec![form as u8, columns as u8];
    let mut gaps = Vec::with_capacity(values.len());
    let mut restarts = vec![false; values.len()];
    let mut before = 0u64;
    for (at, &value) in values.iter().enumerate() {
        gaps.push(match form {
            Form::Plain => value,
            Form::Rising => value - before,
            Form::Rows if at > 0 && value > before => value - before - 1,
            Form::Rows => {
                restarts[at] = true;
                value
            }
        });
        before = value;
    }
    for column in 0..columns {
        let own: Vec<usize> = (column..values.len()).step_by(columns).collect();
        for block in own.chunks(BLOCK) {
            if form == Form::Rows {
                let marks: Vec<u8> =
                    (0..block.len() as u8).filter(|&i| restarts[block[i as usize]]).collect();
                put_marks(&marks, &mut out);
            }
            let block: Vec<u64> = block.iter().map(|&at| gaps[at]).collect();
            put_block(&block, &mut out);
        }
    }
    out.resize(out.len() + PAD, 0);
    out
}

fn put_marks(marks: &[u8], out: &mut Vec<u8>) {
    if marks.len() < BITMAP {
        out.push(marks.len() as u8);
        out.extend_from_slice(marks);
        return;
    }
    out.push(CONSTANT);
    let bits = marks.iter().fold(0u128, |bits, &mark| bits | 1 << mark);
    out.extend(bits.to_le_bytes());
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_block(block: &[u64], out: &mut Vec<u8>) {
    let (least, most) = block.iter().fold((u64::MAX, 0), |(a, b), &x| (a.min(x), b.max(x)));
    if least == most {
        out.push(CONSTANT);
        put_varint(least, out);
        return;
    }
    let sum: u128 = block.iter().map(|&x| u128::from(x - least)).sum();
    let guess = (sum / block.len() as u128).checked_ilog2().unwrap_or(0).min(MOST_BITS);
    let size = |k: u32| -> u64 {
        let bits = |x: u64| match (x - least) >> k {
            q if q < u64::from(ESCAPE) => q + 1 + u64::from(k),
            _ => u64::from(ESCAPE) + 64,
        };
        block.iter().map(|&x| bits(x)).sum()
    };
    let k = (guess.saturating_sub(2)..=(guess + 1).min(MOST_BITS)).min_by_key(|&k| size(k)).unwrap_or(guess);
    out.push(k as u8);
    put_varint(least, out);
    let mut bits = Bits { out, word: 0, used: 0 };
    for &value in block {
        let rest = value - least;
        let quotient = rest >> k;
        if quotient < u64::from(ESCAPE) {
            bits.put(1 << quotient, quotient as u32 + 1);
            bits.put(rest & ((1 << k) - 1), k);
        } else {
            bits.put(0, ESCAPE);
            bits.put(rest & 0xffff_ffff, 32);
            bits.put(rest >> 32, 32);
        }
    }
    bits.finish();
}

/// Writes bits, the lowest first.
struct Bits<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    used: u32,
}

impl Bits<'_> {
    /// Append at most 32 bits.
    fn put(&mut self, value: u64, count: u32) {
        self.word |= value << self.used;
        self.used += count;
        while self.used >= 8 {
            self.out.push(self.word as u8);
            self.word >>= 8;
            self.used -= 8;
        }
    }

    fn finish(self) {
        if self.used > 0 {
            self.out.push(self.word as u8);
        }
    }
}

/// Decode exactly `out.len()` values; `None` if the bytes are not what [`encode`] writes.
pub fn decode(bytes: &[u8], out: &mut [u64]) -> Option<()> {
    let (&[form, columns], _) = bytes.split_first_chunk::<2>()?;
    let (form, columns) = (Form::parse(form)?, usize::from(columns));
    if !(1..=2).contains(&columns) {
        return None;
    }
    let mut at = 2;
    let mut restarts = vec![0u128; out.len().div_ceil(BLOCK) + columns];
    let mut block = [0u64; BLOCK];
    let mut number = 0;
    for column in 0..columns {
        let count = (out.len() + columns - 1 - column) / columns;
        for first in (0..count).step_by(BLOCK) {
            let block = &mut block[..(count - first).min(BLOCK)];
            if form == Form::Rows {
                *restarts.get_mut(number)? = get_marks(bytes, &mut at)?;
                number += 1;
            }
            get_block(bytes, &mut at, block)?;
            for (&gap, to) in block.iter().zip(out[column..].iter_mut().step_by(columns).skip(first)) {
                *to = gap;
            }
        }
    }
    if bytes.len() != at + PAD {
        return None;
    }
    match form {
        Form::Plain => {}
        Form::Rising => {
            let mut sum = 0u64;
            for value in out.iter_mut() {
                sum = sum.wrapping_add(*value);
                *value = sum;
            }
        }
        Form::Rows => restore(out, columns, &restarts),
    }
    Some(())
}

/// Turn differences with restarts into values.
fn restore(out: &mut [u64], columns: usize, restarts: &[u128]) {
    let mut before = 0u64;
    if columns == 1 {
        for (block, &marks) in out.chunks_mut(BLOCK).zip(restarts) {
            let mut marks = marks;
            for value in block {
                let next = before.wrapping_add(*value).wrapping_add(1);
                *value = if marks & 1 == 1 { *value } else { next };
                marks >>= 1;
                before = *value;
            }
        }
        return;
    }
    let first = out.len().div_ceil(columns).div_ceil(BLOCK);
    for (at, value) in out.iter_mut().enumerate() {
        let (column, place) = (at % columns, at / columns);
        let restart = restarts[column * first + place / BLOCK] >> (place % BLOCK) & 1 == 1;
        if !restart {
            *value = before.wrapping_add(*value).wrapping_add(1);
        }
        before = *value;
    }
}

fn get_byte(bytes: &[u8], at: &mut usize) -> Option<u8> {
    let byte = *bytes.get(*at)?;
    *at += 1;
    Some(byte)
}

fn get_marks(bytes: &[u8], at: &mut usize) -> Option<u128> {
    let count = get_byte(bytes, at)?;
    if count == CONSTANT {
        let bits = bytes.get(*at..*at + 16)?;
        *at += 16;
        return bits.try_into().ok().map(u128::from_le_bytes);
    }
    let marks = bytes.get(*at..*at + usize::from(count))?;
    *at += usize::from(count);
    marks.iter().try_fold(0u128, |bits, &mark| Some(bits | 1u128.checked_shl(u32::from(mark))?))
}

fn get_varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = get_byte(bytes, at)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[inline]
fn get_block(bytes: &[u8], at: &mut usize, block: &mut [u64]) -> Option<()> {
    let k = get_byte(bytes, at)?;
    let least = get_varint(bytes, at)?;
    if k == CONSTANT {
        block.fill(least);
        return Some(());
    }
    let k = u32::from(k);
    if k > MOST_BITS {
        return None;
    }
    let bytes = bytes.get(*at..)?;
    // At least 57 bits from this position.
    let peek = |bit: usize| -> Option<u64> {
        let eight = bytes.get(bit / 8..bit / 8 + 8)?;
        Some(u64::from_le_bytes(eight.try_into().ok()?) >> (bit % 8))
    };
    let mut bit = 0;
    for value in block.iter_mut() {
        let word = peek(bit)?;
        let zeros = word.trailing_zeros();
        if zeros < ESCAPE {
            let rest = (word >> (zeros + 1)) & ((1 << k) - 1);
            *value = least.wrapping_add(u64::from(zeros) << k | rest);
            bit += (zeros + 1 + k) as usize;
        } else {
            let (low, high) = (peek(bit + ESCAPE as usize)?, peek(bit + ESCAPE as usize + 32)?);
            *value = least.wrapping_add((low & 0xffff_ffff) | high << 32);
            bit += ESCAPE as usize + 64;
        }
    }
    *at += bit.div_ceil(8);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(values: &[u64], columns: usize) -> usize {
        let mut bytes = Vec::new();
        encode(values, columns, &mut bytes);
        let mut back = vec![7; values.len()];
        assert_eq!(decode(&bytes, &mut back), Some(()));
        assert_eq!(back, values);
        bytes.len()
    }

    #[test]
    fn regular_values_need_few_bytes() {
        let rows: Vec<u64> = (0..4096u64).map(|i| (i % 40) * 5000 + i * i % 4999).collect();
        assert!(round_trip(&rows, 1) < 4096 * 14 / 8);
        let ends: Vec<u64> = (0..4096).map(|i| i * 43 + i % 3).collect();
        assert!(round_trip(&ends, 1) < 4096 * 3 / 8);
        let spans: Vec<u64> = (0..2048u64).flat_map(|i| [0, 300 + i % 64]).collect();
        assert!(round_trip(&spans, 2) < 2048);
        let counts: Vec<u64> = (0..4096).map(|i| 1 + u64::from(i % 9 == 0)).collect();
        assert!(round_trip(&counts, 1) < 4096 / 5);
        assert!(round_trip(&vec![5; 16384], 1) < 400);
        for odd in [&[][..], &[0], &[u64::MAX], &[u64::MAX, 0, u64::MAX], &[3, 3, 3]] {
            round_trip(odd, 1);
            round_trip(odd, 2);
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(
            values in prop::collection::vec(prop_oneof![0u64..4, 0u64..1000, any::<u64>()], 0..600),
            columns in 1usize..3,
            sorted: bool,
        ) {
            let mut values = values;
            if sorted {
                values.sort_unstable();
            }
            round_trip(&values, columns);
        }

        #[test]
        fn damaged_bytes_never_panic_and_short_ones_are_refused(
            values in prop::collection::vec(0u64..100_000, 0..400),
            at: prop::sample::Index,
            with: u8,
            keep: prop::sample::Index,
        ) {
            let mut bytes = Vec::new();
            encode(&values, 1, &mut bytes);
            let mut out = vec![0; values.len()];
            prop_assert_eq!(decode(&bytes[..keep.index(bytes.len())], &mut out), None);
            let place = at.index(bytes.len());
            bytes[place] = with;
            let _ = decode(&bytes, &mut out);
        }
    }
}
