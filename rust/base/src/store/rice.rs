//! Compact encoding of integers: differences or plain values, in blocks of 128, each with a separate Rice
//! parameter.
//!
//! Ids of rows ascend within a row and start again with the next one. Such a restart is marked and stored as
//! a plain value, so that lists of any length share blocks. Pairs (starts and ends) have one stream of blocks
//! for each column, because their differences have different sizes. A constant block needs three bytes.

/// Values of one block.
const BLOCK: usize = 128;
/// Number of zeros after which a value is stored in 64 bits.
const ESCAPE: u32 = 24;
/// Largest Rice parameter: a code word fits into one read of 57 bits.
const MOST_BITS: u32 = 32;
/// Parameter of a block whose values are all equal.
const CONSTANT: u8 = 0xff;
/// Number of restarts from which they are stored as a bitmap.
const BITMAP: usize = 16;
/// Bytes that must follow what [`encode`] writes, so that every read of eight bytes stays inside.
pub const PAD: usize = 8;

/// The quantity that is stored for a value.
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

/// Decode exactly `count` values from the first `length` bytes, which are followed by at least [`PAD`] other
/// bytes. The values are passed to `each` in order, several at a time. Returns `None` if the bytes were not
/// written by [`encode`], or if `each` returns it.
pub fn decode(
    bytes: &[u8],
    length: usize,
    count: usize,
    mut each: impl FnMut(&[u64]) -> Option<()>,
) -> Option<()> {
    let (&[form, columns], _) = bytes.split_first_chunk::<2>()?;
    let (form, columns) = (Form::parse(form)?, usize::from(columns));
    let mut at = 2;
    match columns {
        1 => {
            let (mut block, mut before) = ([0u64; BLOCK], 0);
            for first in (0..count).step_by(BLOCK) {
                let block = &mut block[..(count - first).min(BLOCK)];
                let marks = if form == Form::Rows { get_marks(bytes, &mut at)? } else { 0 };
                get_block(bytes, &mut at, block)?;
                restore(form, block, marks, &mut before);
                each(block)?;
            }
        }
        2 => each(&get_pairs(bytes, &mut at, form, count)?)?,
        _ => return None,
    }
    (at == length).then_some(())
}

/// Decode pairs, whose columns follow each other.
fn get_pairs(bytes: &[u8], at: &mut usize, form: Form, count: usize) -> Option<Vec<u64>> {
    let mut out = vec![0; count];
    let mut restarts: [Vec<u128>; 2] = [Vec::new(), Vec::new()];
    let mut block = [0u64; BLOCK];
    for (column, restarts) in restarts.iter_mut().enumerate() {
        let own = (count + 1 - column) / 2;
        for first in (0..own).step_by(BLOCK) {
            let block = &mut block[..(own - first).min(BLOCK)];
            restarts.push(if form == Form::Rows { get_marks(bytes, at)? } else { 0 });
            get_block(bytes, at, block)?;
            for (&gap, pair) in block.iter().zip(out[2 * first..].chunks_mut(2)) {
                pair[column] = gap;
            }
        }
    }
    if form != Form::Rows {
        restore(form, &mut out, 0, &mut 0);
        return Some(out);
    }
    let mut before = 0u64;
    for (at, value) in out.iter_mut().enumerate() {
        let place = at / 2;
        if restarts[at % 2][place / BLOCK] >> (place % BLOCK) & 1 == 0 {
            *value = before.wrapping_add(*value).wrapping_add(1);
        }
        before = *value;
    }
    Some(out)
}

/// Turn the differences of a block into values, given the value before it.
fn restore(form: Form, block: &mut [u64], mut marks: u128, before: &mut u64) {
    let mut last = *before;
    match form {
        Form::Plain => return,
        Form::Rising => {
            for value in block {
                last = last.wrapping_add(*value);
                *value = last;
            }
        }
        Form::Rows if marks == 0 => {
            for value in block {
                last = last.wrapping_add(*value).wrapping_add(1);
                *value = last;
            }
        }
        Form::Rows => {
            for value in block {
                let next = last.wrapping_add(*value).wrapping_add(1);
                last = if marks & 1 == 1 { *value } else { next };
                *value = last;
                marks >>= 1;
            }
        }
    }
    *before = last;
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
        let eight = bytes.get(bit / 8..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*eight) >> (bit % 8))
    };
    let mask = (1u64 << k) - 1;
    // Bits read from position `bit` on, and their number. One read serves several values.
    let (mut bit, mut word, mut held) = (0, 0u64, 0);
    for value in block.iter_mut() {
        let mut zeros = word.trailing_zeros();
        if zeros + 1 + k > held {
            word = peek(bit)?;
            held = 64 - (bit % 8) as u32;
            zeros = word.trailing_zeros();
        }
        if zeros < ESCAPE {
            let rest = (word >> (zeros + 1)) & mask;
            *value = least.wrapping_add(u64::from(zeros) << k | rest);
            let used = zeros + 1 + k;
            word >>= used;
            held -= used;
            bit += used as usize;
        } else {
            let (low, high) = (peek(bit + ESCAPE as usize)?, peek(bit + ESCAPE as usize + 32)?);
            *value = least.wrapping_add((low & 0xffff_ffff) | high << 32);
            bit += ESCAPE as usize + 64;
            held = 0;
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
        assert_eq!(decoded(&bytes, values.len()).as_deref(), Some(values));
        bytes.len()
    }

    fn decoded(bytes: &[u8], count: usize) -> Option<Vec<u64>> {
        let mut found = Vec::new();
        let padded = [bytes, &[0xa5; PAD]].concat();
        decode(&padded, bytes.len(), count, |some| {
            found.extend_from_slice(some);
            Some(())
        })?;
        Some(found)
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

    #[test]
    fn codes_of_any_length_follow_each_other() {
        // Long, short and 64-bit codes, so that a read ends within each kind.
        for most in [1u32, 5, 20, 31, 33, 63] {
            let values: Vec<u64> = (0..1000u64)
                .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32) >> (64 - most))
                .collect();
            round_trip(&values, 1);
            round_trip(&values, 2);
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
            prop_assert_eq!(decoded(&bytes[..keep.index(bytes.len())], values.len()), None);
            let place = at.index(bytes.len());
            bytes[place] = with;
            let _ = decoded(&bytes, values.len());
        }
    }
}
