//! Many strings in one buffer: the representation of text lists on disk and across the Python boundary.

use crate::error::{Error, Result};
use crate::items::Items;

/// String `i` is `blob[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    blob: Blob<'a>,
    offsets: Items<'a, u64>,
}

#[derive(Debug, Clone, Copy)]
enum Blob<'a> {
    /// Valid UTF-8, checked once, by `new`.
    Checked(&'a str),
    /// From a file: each string is verified, unpacked and decoded when it is read.
    Stored(Items<'a, u8>),
}

/// A [`Strings`] that owns its buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringsBuf {
    pub blob: Vec<u8>,
    pub offsets: Vec<u64>,
}

impl<'a> Strings<'a> {
    pub fn new(blob: &'a [u8], offsets: &'a [u64]) -> Result<Self> {
        let blob = std::str::from_utf8(blob)
            .map_err(|e| Error::input(format!("the text is not UTF-8 at byte {}", e.valid_up_to())))?;
        let ends = offsets.first().zip(offsets.last());
        if ends != Some((&0, &(blob.len() as u64))) {
            return Err(Error::input("offsets must start at 0 and end at the length of the text"));
        }
        for w in offsets.windows(2) {
            if w[1] < w[0] || w[1] > blob.len() as u64 || !blob.is_char_boundary(w[1] as usize) {
                return Err(Error::input(format!("offset {} falls or cuts a character", w[1])));
            }
        }
        Ok(Self { blob: Blob::Checked(blob), offsets: offsets.into() })
    }

    /// For stored strings that were checked before they were written: offsets and text are verified string by string
    /// by their guards. Only checks that cost nothing are repeated.
    pub fn stored(blob: Items<'a, u8>, offsets: Items<'a, u64>) -> Result<Self> {
        if offsets.first().zip(offsets.last()) != Some((&0, &(blob.len() as u64))) {
            return Err(Error::input("offsets must start at 0 and end at the length of the text"));
        }
        Ok(Self { blob: Blob::Stored(blob), offsets })
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Return where each string starts, and where the last one ends.
    pub fn offsets(&self) -> Items<'a, u64> {
        self.offsets
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn get(&self, i: usize) -> &'a str {
        match self.blob {
            Blob::Checked(blob) => {
                let [start, end] = self.offsets.pair(i);
                &blob[start as usize..end as usize]
            }
            Blob::Stored(..) => std::str::from_utf8(self.bytes(i))
                .unwrap_or_else(|_| Error::damaged(format!("string {i} of the index is not UTF-8")).raise()),
        }
    }

    /// Return the raw bytes of string `i`, for comparisons that need no characters.
    #[inline]
    pub fn bytes(&self, i: usize) -> &'a [u8] {
        let [start, end] = self.offsets.pair(i);
        let range = start as usize..end as usize;
        match self.blob {
            Blob::Checked(blob) => &blob.as_bytes()[range],
            Blob::Stored(blob) => blob.get(range),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a str> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Return the index of `wanted` among strings that are sorted by bytes.
    pub fn position(&self, wanted: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.bytes(middle).cmp(wanted.as_bytes()) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

impl Default for StringsBuf {
    fn default() -> Self {
        Self { blob: Vec::new(), offsets: vec![0] }
    }
}

impl StringsBuf {
    pub fn push(&mut self, text: &str) {
        self.blob.extend_from_slice(text.as_bytes());
        self.offsets.push(self.blob.len() as u64);
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return string `i`. To read all of them, `view` checks the text once.
    pub fn get(&self, i: usize) -> &str {
        let bytes = &self.blob[self.offsets[i] as usize..self.offsets[i + 1] as usize];
        // Only whole strings are pushed.
        std::str::from_utf8(bytes).expect("pushed strings are whole")
    }

    pub fn view(&self) -> Strings<'_> {
        // Only whole strings are pushed, so `new` accepts what `push` has built.
        Strings::new(&self.blob, &self.offsets).expect("pushed strings are whole")
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringsBuf {
    fn from_iter<I: IntoIterator<Item = S>>(items: I) -> Self {
        let mut buf = Self::default();
        for item in items {
            buf.push(item.as_ref());
        }
        buf
    }
}

/// Return the strings with these ids, in this order.
pub fn take(strings: Strings<'_>, ids: &[u32]) -> Result<StringsBuf> {
    let mut out = StringsBuf::default();
    for (place, &id) in ids.iter().enumerate() {
        if id as usize >= strings.len() {
            return Err(Error::input(format!("id {id} at {place}: there are {} strings", strings.len())));
        }
        out.push(strings.get(id as usize));
    }
    Ok(out)
}

/// Like [`StringsBuf::take`] for the concatenation of two lists.
pub fn joined(first: Strings<'_>, second: Strings<'_>, ids: &[u32]) -> Result<StringsBuf> {
    let mut out = StringsBuf::default();
    for &id in ids {
        let id = id as usize;
        let (strings, id) = if id < first.len() { (first, id) } else { (second, id - first.len()) };
        if id >= strings.len() {
            return Err(Error::input(format!("string {id} of {} is wanted", strings.len())));
        }
        out.push(strings.get(id));
    }
    Ok(out)
}

/// Return substrings: `spans[2 i]..spans[2 i + 1]` (bytes) of string `owners[i]`.
pub fn slices(strings: Strings<'_>, owners: &[u32], spans: &[u32]) -> Result<StringsBuf> {
    if spans.len() != 2 * owners.len() {
        return Err(Error::input("spans must hold a start and an end for each owner"));
    }
    let mut out = StringsBuf::default();
    for (place, (&owner, span)) in owners.iter().zip(spans.chunks_exact(2)).enumerate() {
        let whole = ((owner as usize) < strings.len()).then(|| strings.get(owner as usize));
        let piece = whole.and_then(|text| text.get(span[0] as usize..span[1] as usize));
        out.push(piece.ok_or_else(|| {
            Error::input(format!(
                "span {place} ({}..{}) of string {owner} is not a substring of it",
                span[0], span[1]
            ))
        })?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_and_broken_ones_are_refused() {
        let buf: StringsBuf = ["", "a", "é", "z"].into_iter().collect();
        let view = buf.view();
        assert_eq!(view.iter().collect::<Vec<_>>(), ["", "a", "é", "z"]);
        assert_eq!((view.position("é"), view.position("b")), (Some(2), None));
        assert!(Strings::new(&[0xff], &[0, 1]).is_err());
        assert!(Strings::new("é".as_bytes(), &[0, 1, 2]).is_err());
        assert!(Strings::new(b"ab", &[0, 9, 2]).is_err());
        assert!(Strings::new(b"ab", &[]).is_err());
    }

    #[test]
    fn strings_are_taken_and_sliced() {
        let buf: StringsBuf = ["aé", "", "xyz"].into_iter().collect();
        let list = |b: &StringsBuf| b.view().iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(list(&take(buf.view(), &[2, 0, 2]).unwrap()), ["xyz", "aé", "xyz"]);
        assert!(take(buf.view(), &[3]).is_err());
        assert_eq!(list(&slices(buf.view(), &[0, 2, 1], &[1, 3, 0, 2, 0, 0]).unwrap()), ["é", "xy", ""]);
        for (owners, spans) in
            [(vec![0], vec![2, 3]), (vec![9], vec![0, 0]), (vec![2], vec![2, 1]), (vec![2], vec![0])]
        {
            assert!(slices(buf.view(), &owners, &spans).is_err());
        }
    }
}
