//! A sample of strings that depends on the strings alone: one more or less changes it by at most one.

use super::strings::Strings;

/// Return the positions of the `count` strings of smallest BLAKE3 hash, ascending; of equal strings the first.
///
/// ```
/// use ketrag_text::sampled::smallest_hashes;
/// use ketrag_text::strings::StringsBuf;
///
/// let all: StringsBuf = ["a", "b", "c"].into_iter().collect();
/// let fewer: StringsBuf = ["a", "c"].into_iter().collect();
/// assert_eq!(smallest_hashes(all.view(), 3), [0, 1, 2]);
/// assert_eq!(smallest_hashes(fewer.view(), 1).len(), 1);
/// ```
pub fn smallest_hashes(strings: Strings<'_>, count: usize) -> Vec<u32> {
    let mut hashes: Vec<([u8; 32], u32)> =
        (0..strings.len()).map(|i| (*blake3::hash(strings.bytes(i)).as_bytes(), i as u32)).collect();
    if count < hashes.len() {
        hashes.select_nth_unstable(count);
        hashes.truncate(count);
    }
    let mut chosen: Vec<u32> = hashes.into_iter().map(|(_, i)| i).collect();
    chosen.sort_unstable();
    chosen
}
