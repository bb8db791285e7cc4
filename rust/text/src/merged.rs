//! Merge two sorted lists of strings.

use super::strings::{Strings, StringsBuf};
use crate::error::{Error, Result};
use std::cmp::Ordering;

/// Marks a string that was removed from both lists.
pub const GONE: u32 = u32::MAX;

/// All distinct strings, sorted, and the position in that list of each string of the first and of the second
/// list.
#[derive(Debug, PartialEq, Eq)]
pub struct Merged {
    pub strings: StringsBuf,
    pub first: Vec<u32>,
    pub second: Vec<u32>,
}

/// Merge the strings of `first` that are `used` with all of `second`. Both are sorted by bytes.
pub fn merge(first: Strings<'_>, used: &[u8], second: Strings<'_>) -> Result<Merged> {
    if used.len() != first.len() {
        return Err(Error::input(format!("{} marks for {} strings", used.len(), first.len())));
    }
    let mut out = Merged {
        strings: StringsBuf::default(),
        first: vec![GONE; first.len()],
        second: vec![GONE; second.len()],
    };
    let (mut a, mut b) = (0, 0);
    loop {
        while a < used.len() && used[a] == 0 {
            a += 1;
        }
        let order = match (a < first.len(), b < second.len()) {
            (false, false) => break,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => first.bytes(a).cmp(second.bytes(b)),
        };
        let number = out.strings.len() as u32;
        let text = if order == Ordering::Greater { second.bytes(b) } else { first.bytes(a) };
        let last = out.strings.offsets.len().checked_sub(2).map(|at| out.strings.offsets[at] as usize);
        if last.is_some_and(|start| &out.strings.blob[start..] >= text) {
            return Err(Error::input("the strings do not ascend"));
        }
        out.strings.blob.extend_from_slice(text);
        out.strings.offsets.push(out.strings.blob.len() as u64);
        if order != Ordering::Greater {
            out.first[a] = number;
            a += 1;
        }
        if order != Ordering::Less {
            out.second[b] = number;
            b += 1;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_once_and_in_order() {
        let list = |words: &[&str]| words.iter().collect::<StringsBuf>();
        let (first, second) = (list(&["a", "c", "d", "f"]), list(&["b", "c", "g"]));
        let found = merge(first.view(), &[1, 1, 0, 1], second.view()).unwrap();
        assert_eq!(found.strings, list(&["a", "b", "c", "f", "g"]));
        assert_eq!((found.first, found.second), (vec![0, 2, GONE, 3], vec![1, 2, 4]));
        let none = list(&[]);
        assert_eq!(merge(none.view(), &[], none.view()).unwrap().strings, none);
        assert!(merge(first.view(), &[1], none.view()).is_err());
        assert!(merge(list(&["b", "a"]).view(), &[1, 1], none.view()).is_err());
    }
}
