//! Patches of the locations of documents (pages, headings, cells) after a few documents changed.
//!
//! Labels are numbered in the order of their first occurrence. The remaining labels nearly always keep their
//! order. A label that first occurred in a changed document may not, and then all locations must be
//! rewritten.

use crate::error::{Error, Result};
use crate::generation::arrays::Arrays;
use crate::graph::links_delta::Of;
use crate::items::Items;
use crate::store::patch::{each_change, Editor, Numbering, Patch, RowEditor};
use crate::text::strings::Strings;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Patches of the arrays, and the new numbers of labels.
#[derive(Default)]
pub(super) struct Locations {
    pub patches: Vec<(String, Of, Patch)>,
    pub labels: Numbering,
}

/// The locations of the added rows.
struct Come<'a> {
    ends: Vec<u64>,
    spans: &'a [u64],
    labels: &'a [u64],
    blob: Vec<u8>,
    offsets: &'a [u64],
}

impl<'a> Come<'a> {
    fn new(new: &'a New, rows: usize) -> Result<Self> {
        let list = |name: &str| new.get(name).map(Vec::as_slice).unwrap_or_default();
        let ends = match new.get("location_indptr") {
            Some(ends) => ends.clone(),
            None => vec![0; rows + 1],
        };
        let blob = list("location_labels_blob").iter().map(|&x| x as u8).collect();
        let (spans, labels) = (list("location_span"), list("location_label"));
        let offsets: &[u64] = if labels.is_empty() { &[0] } else { list("location_labels_offsets") };
        let fits = ends.len() == rows + 1
            && ends.windows(2).all(|two| two[0] <= two[1])
            && ends.last() == Some(&(labels.len() as u64))
            && spans.len() == 2 * labels.len()
            && labels.iter().all(|&label| (label as usize) + 1 < offsets.len());
        match fits {
            true => Ok(Self { ends, spans, labels, blob, offsets }),
            false => Err(Error::input("the arrays of the new documents' locations do not fit together")),
        }
    }

    fn range(&self, row: usize) -> Range<usize> {
        self.ends[row] as usize..self.ends[row + 1] as usize
    }
}

/// A label: a published one, or a label of the added rows, by number.
#[derive(Clone, Copy)]
enum Label {
    Published(u32),
    Fresh(usize),
}

/// Finds the order in which labels first occur after the change.
struct Order<'a> {
    indptr: Items<'a, u64>,
    published: &'a [u32],
    /// The published number of each label of the added rows.
    known: Vec<Option<u32>>,
    labels: Vec<Label>,
    /// The new number of each published label, and of each label of the added rows.
    of_published: Vec<u64>,
    of_new: Vec<u64>,
}

/// Marks a label that no row has used yet.
const UNSEEN: u64 = u64::MAX;

impl<'a> Order<'a> {
    fn new(indptr: Items<'a, u64>, published: &'a [u32], strings: Strings<'_>, own: Strings<'_>) -> Self {
        let numbers: HashMap<&[u8], usize> = (0..own.len()).map(|k| (own.bytes(k), k)).collect();
        let mut known = vec![None; own.len()];
        for id in 0..strings.len() {
            if let Some(&k) = numbers.get(strings.bytes(id)) {
                known[k] = Some(id as u32);
            }
        }
        let (of_published, of_new) = (vec![UNSEEN; strings.len()], vec![UNSEEN; own.len()]);
        Self { indptr, published, known, labels: Vec::new(), of_published, of_new }
    }

    /// Process published rows that remain.
    fn keep(&mut self, rows: Range<usize>) {
        let range = self.indptr[rows.start] as usize..self.indptr[rows.end] as usize;
        for &label in &self.published[range] {
            let number = &mut self.of_published[label as usize];
            if *number == UNSEEN {
                *number = self.labels.len() as u64;
                self.labels.push(Label::Published(label));
            }
        }
    }

    /// Process the labels of an added row.
    fn add(&mut self, labels: &[u64]) {
        for k in labels.iter().map(|&label| label as usize) {
            let (number, label) = match self.known[k] {
                Some(id) => (&mut self.of_published[id as usize], Label::Published(id)),
                None => (&mut self.of_new[k], Label::Fresh(k)),
            };
            if *number == UNSEEN {
                *number = self.labels.len() as u64;
                self.labels.push(label);
            }
        }
    }

    /// Return the new number of each label of the added rows.
    fn numbers(&self) -> Vec<u64> {
        let each = self.known.iter().zip(&self.of_new);
        each.map(|(known, &own)| known.map_or(own, |id| self.of_published[id as usize])).collect()
    }
}

/// Return the patches, or `None` if the arrays must be created or deleted, or if the remaining labels change
/// their order.
pub(super) fn locations_of(arrays: &Arrays, new: &New, rows: &Level) -> Result<Option<Locations>> {
    if !arrays.has("units.location_indptr") {
        let nothing = !new.contains_key("location_indptr");
        return Ok(nothing.then(Locations::default));
    }
    let come = Come::new(new, rows.before.len())?;
    let indptr = arrays.lazy::<u64>("units.location_indptr")?;
    let strings = arrays.strings("units.location_labels")?;
    let own = Strings::new(&come.blob, come.offsets)?;
    let mut order = Order::new(indptr, arrays.values::<u32>("units.location_label")?, strings, own);
    let mut next = 0;
    rows.each(|comes, at| {
        order.keep(next..at as usize);
        next = at as usize + usize::from(comes.is_none());
        if let Some(row) = comes {
            order.add(&come.labels[come.range(row)]);
        }
    });
    order.keep(next..indptr.len() - 1);
    let stay = order.labels.iter().filter_map(|label| match label {
        Label::Published(id) => Some(*id),
        Label::Fresh(_) => None,
    });
    let stay: Vec<u32> = stay.collect();
    if order.labels.is_empty() || stay.windows(2).any(|two| two[0] > two[1]) {
        return Ok(None);
    }
    let gone = (0..strings.len() as u32).filter(|id| stay.binary_search(id).is_err()).collect();
    let (mut before, mut fresh, mut passed) = (Vec::new(), Vec::new(), 0);
    for label in &order.labels {
        match *label {
            Label::Published(_) => passed += 1,
            Label::Fresh(k) => {
                before.push(stay.get(passed).copied().unwrap_or(strings.len() as u32));
                fresh.push(k);
            }
        }
    }
    let labels = Level::new(gone, before);
    let mut patches = Vec::new();
    place_arrays(indptr, rows, &come, &order.numbers(), &mut patches);
    let mut texts = RowEditor::new(strings.offsets(), 1);
    labels.each(|comes, at| {
        texts.keep(at as usize);
        match comes {
            Some(k) => {
                let text = own.bytes(fresh[k]);
                texts.insert(text.len(), [text.iter().map(|&x| u64::from(x)).collect::<Vec<u64>>()]);
            }
            None => texts.remove(),
        }
    });
    let (ends, mut bytes) = texts.finish();
    patches.push(("units.location_labels_blob".to_owned(), Of::Nothing, bytes.remove(0)));
    patches.push(("units.location_labels_offsets".to_owned(), Of::Nothing, ends));
    Ok(Some(Locations { patches, labels: labels.numbers }))
}

/// Add the patches of the rows' offsets, spans and labels.
fn place_arrays(
    indptr: Items<'_, u64>,
    rows: &Level,
    come: &Come<'_>,
    numbers: &[u64],
    out: &mut Vec<(String, Of, Patch)>,
) {
    let (mut labels, mut spans) = (RowEditor::new(indptr, 1), Editor::default());
    rows.each(|comes, at| {
        labels.keep(at as usize);
        spans.keep(2 * indptr[at as usize], 0);
        match comes {
            Some(row) => {
                let range = come.range(row);
                let own = come.labels[range.clone()].iter().map(|&label| numbers[label as usize]);
                labels.insert(range.len(), [own.collect::<Vec<u64>>()]);
                spans.insert(come.spans[2 * range.start..2 * range.end].iter().copied());
            }
            None => {
                labels.remove();
                spans.skip(2 * (indptr[at as usize + 1] - indptr[at as usize]));
            }
        }
    });
    let (ends, mut values) = labels.finish();
    out.push(("units.location_indptr".to_owned(), Of::Nothing, ends));
    out.push(("units.location_label".to_owned(), Of::Labels, values.remove(0)));
    out.push(("units.location_span".to_owned(), Of::Nothing, spans.finish(2 * indptr[indptr.len() - 1])));
}

// The input of a change of documents: new arrays, and the removed and added items of each level.

/// The arrays of the stage "units" for the added documents, as plain numbers.
pub type New = BTreeMap<String, Vec<u64>>;

/// Removed and added documents, chunks, units or sentences.
pub(super) struct Level {
    pub gone: Vec<u32>,
    pub before: Vec<u32>,
    pub numbers: Numbering,
}

impl Level {
    pub fn new(gone: Vec<u32>, before: Vec<u32>) -> Self {
        let numbers = Numbering::new(&gone, &before);
        Self { gone, before, numbers }
    }

    pub fn number(&self, k: usize) -> u64 {
        u64::from(Numbering::of_new(&self.gone, self.before[k], k))
    }

    /// Call `each` with the added items (number, published position) and the removed items (position), in
    /// order.
    pub fn each(&self, each: impl FnMut(Option<usize>, u32)) {
        each_change(&self.gone, &self.before, each);
    }
}
