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
    /// Strings from a file, each verified, unpacked and decoded when it is read.
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

    /// For stored strings that were checked before they were written. Their guards verify offsets and text
    /// string by string. Only checks that cost nothing are repeated.
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
            return Err(Error::input(format!(
                "string {id} was requested, but there are {} strings",
                strings.len()
            )));
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

// A sample of strings that depends only on the strings. Adding or removing one string changes at most one of
// the sample.

/// Return the positions of the `count` strings of smallest BLAKE3 hash, ascending; of equal strings the first.
///
/// ```
/// use ketrag_text::strings::smallest_hashes;
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

// Texts as the pieces that were cut from them, and the gaps between the pieces: each byte is stored once.

/// Return, for each text, the parts that no span covers. `spans` holds the start and the end (bytes) of each
/// piece, and `owners` its text.
pub fn gaps(texts: Strings<'_>, owners: &[u32], spans: &[u32]) -> Result<StringsBuf> {
    let order = Order::new(texts.len(), owners, spans)?;
    let mut out = StringsBuf::default();
    let mut gap = String::new();
    for (text, pieces) in order.texts() {
        let text = texts.get(text);
        gap.clear();
        let mut at = 0;
        for &piece in pieces {
            let (start, end) = order.span(piece);
            if start > at {
                gap.push_str(text.get(at..start).ok_or_else(|| invalid(piece))?);
            }
            at = at.max(end);
        }
        gap.push_str(text.get(at..).ok_or_else(|| Error::input("a span ends after its text"))?);
        out.push(&gap);
    }
    Ok(out)
}

/// Rebuild the texts from `gaps`, as returned by [`gaps`], and the pieces.
pub fn restore(pieces: Strings<'_>, owners: &[u32], spans: &[u32], gaps: Strings<'_>) -> Result<StringsBuf> {
    let order = Order::new(gaps.len(), owners, spans)?;
    if pieces.len() != owners.len() {
        return Err(Error::input("pieces and their owners must have the same length"));
    }
    let mut out = StringsBuf::default();
    let mut text = String::new();
    for (number, own) in order.texts() {
        let gap = gaps.get(number);
        text.clear();
        let mut taken = 0;
        for &piece in own {
            let (start, end) = order.span(piece);
            if let Some(missing) = start.checked_sub(text.len()) {
                text.push_str(gap.get(taken..taken + missing).ok_or_else(|| invalid(piece))?);
                taken += missing;
            }
            if end > text.len() {
                text.push_str(pieces.get(piece).get(text.len() - start..).ok_or_else(|| invalid(piece))?);
            }
        }
        text.push_str(gap.get(taken..).ok_or_else(|| Error::input(format!("gap {number} is too short")))?);
        out.push(&text);
    }
    Ok(out)
}

fn invalid(piece: usize) -> Error {
    Error::input(format!("the span of piece {piece} does not fit its text"))
}

/// The pieces of each text in the order of their starts.
struct Order<'a> {
    pieces: Vec<usize>,
    ends: Vec<usize>,
    spans: &'a [u32],
}

impl<'a> Order<'a> {
    fn new(texts: usize, owners: &[u32], spans: &'a [u32]) -> Result<Self> {
        if spans.len() != 2 * owners.len() {
            return Err(Error::input("spans must hold a start and an end for each owner"));
        }
        if owners.iter().any(|&owner| owner as usize >= texts) {
            return Err(Error::input(format!("the owner of a span is not one of {texts} texts")));
        }
        let mut pieces: Vec<usize> = (0..owners.len()).collect();
        pieces.sort_by_key(|&piece| (owners[piece], spans[2 * piece]));
        let mut ends = vec![0; texts];
        owners.iter().for_each(|&owner| ends[owner as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        Ok(Self { pieces, ends, spans })
    }

    fn texts(&self) -> impl Iterator<Item = (usize, &[usize])> {
        let start = |text: usize| text.checked_sub(1).map_or(0, |before| self.ends[before]);
        (0..self.ends.len()).map(move |text| (text, &self.pieces[start(text)..self.ends[text]]))
    }

    fn span(&self, piece: usize) -> (usize, usize) {
        (self.spans[2 * piece] as usize, self.spans[2 * piece + 1] as usize)
    }
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

    use crate::strings::slices;

    fn round_trip(texts: &[&str], owners: &[u32], spans: &[u32]) -> Vec<String> {
        let texts: StringsBuf = texts.iter().collect();
        let pieces = slices(texts.view(), owners, spans).unwrap();
        let between = gaps(texts.view(), owners, spans).unwrap();
        assert_eq!(restore(pieces.view(), owners, spans, between.view()).unwrap(), texts);
        between.view().iter().map(str::to_owned).collect()
    }

    #[test]
    fn texts_come_back_from_pieces_and_gaps() {
        assert_eq!(round_trip(&["One. Two. "], &[0, 0], &[0, 4, 5, 9]), ["  "]);
        assert_eq!(round_trip(&["", "é b", "no piece"], &[1], &[2, 3]), ["", "éb", "no piece"]);
        // Overlapping pieces, one inside another, and pieces out of order.
        let spans = [4, 9, 0, 6, 1, 3, 12, 12];
        assert_eq!(round_trip(&["abcdefghijklmnop"], &[0, 0, 0, 0], &spans), ["jklmnop"]);
        assert_eq!(round_trip(&["ab", "cd"], &[1, 0], &[0, 1, 1, 2]), ["a", "d"]);
        assert!(round_trip(&[], &[], &[]).is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let text: StringsBuf = ["aéb"].into_iter().collect();
        let none: StringsBuf = [""].into_iter().collect();
        for (owners, spans) in
            [(vec![0], vec![2, 4]), (vec![0], vec![0, 9]), (vec![1], vec![0, 0]), (vec![0], vec![0])]
        {
            assert!(gaps(text.view(), &owners, &spans).is_err());
        }
        // Pieces shorter than their spans, and gaps that are too short.
        assert!(restore(text.view(), &[0], &[1, 9], none.view()).is_err());
        assert!(restore(StringsBuf::default().view(), &[0], &[0, 0], none.view()).is_err());
    }
}
