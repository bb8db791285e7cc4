//! The two passes over texts that make the arrays of the walk.

use crate::error::Result;
use crate::graph::links::{Known, RowBuilder, Texts};
use crate::progress::Progress;
use crate::rank::links_view::NONE;
use crate::text::interner::Interner;
use crate::text::lexical::Lexer;
use crate::text::names::{name_spans, opening_subject, title_key};
use crate::text::strings::StringsBuf;
use std::ops::Range;

/// A sentence carries at most so many distinct keywords of its unit's title: a title of a million
/// words must not be repeated for each of a million sentences.
const TITLE_KEYWORDS: usize = 64;

/// A range of units in numbers of its own.
#[derive(Default)]
pub(crate) struct Part {
    pub keywords: Interner,
    pub names: Interner,
    pub subjects: Interner,
    pub unit_keywords: RowBuilder,
    pub tf: Vec<u32>,
    pub unit_names: RowBuilder,
    pub subject: Vec<u32>,
}

/// A merged vocabulary: numbers as merged, their places in the sorted order, and the sorted strings.
pub(crate) struct Vocabulary {
    pub interner: Interner,
    pub place: Vec<u32>,
    pub sorted: StringsBuf,
}

impl Vocabulary {
    fn get(&self, text: &str) -> Option<u32> {
        self.interner.get(text).map(|number| self.place[number as usize])
    }
}

/// Keywords with counts, names and subject of each unit. Names are those of the text, and the title
/// as one more.
pub(crate) fn first_pass(input: &Texts<'_>, units: Range<usize>, progress: &Progress) -> Result<Part> {
    let mut part = Part::default();
    let (mut lexer, mut other) = (Lexer::default(), Lexer::default());
    let mut row: Vec<u32> = Vec::new();
    for unit in units {
        progress.check()?;
        let (title, text) = (input.titles.get(unit), input.texts.get(unit));
        lexer.read(title);
        let first_word = lexer.words.len();
        lexer.append("\n");
        lexer.append(text);
        row.clear();
        lexer.keywords(|word| row.push(part.keywords.add(word)));
        row.sort_unstable();
        for same in row.chunk_by(|a, b| a == b) {
            part.unit_keywords.values.push(same[0]);
            part.tf.push(same.len() as u32);
        }
        part.unit_keywords.close();

        row.clear();
        name_spans(&lexer, first_word, |name| row.push(part.names.add(name)));
        let key = title_key(title, &mut other);
        if !key.is_empty() {
            row.push(part.names.add(&key));
        }
        part.unit_names.push_set(&mut row);

        let subject = if title.is_empty() { opening_subject(text, &mut other) } else { key };
        part.subject.push(if subject.is_empty() { NONE } else { part.subjects.add(&subject) });
    }
    Ok(part)
}

/// Rows of the second pass: two for each unit, two for each sentence.
#[derive(Default)]
pub(crate) struct Rows {
    pub mentions: RowBuilder,
    pub subjects: RowBuilder,
    pub keywords: RowBuilder,
    pub names: RowBuilder,
}

/// Mentions of each unit; of each sentence the keywords (with those of title and subject) and names
/// (with the subject). What no unit as a whole has is left out.
pub(crate) fn second_pass(
    input: &Texts<'_>,
    units: Range<usize>,
    known: &Known<'_>,
    subjects: &StringsBuf,
    subject_of: impl Fn(usize) -> u32,
    progress: &Progress,
) -> Result<Rows> {
    let mut rows = Rows::default();
    let mut lexer = Lexer::default();
    let (mut row, mut of_title): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let subjects = subjects.view();
    for unit in units {
        progress.check()?;
        let about = subject_of(unit);
        lexer.read(input.titles.get(unit));
        of_title.clear();
        lexer.keywords(|word| of_title.extend(known.keywords.get(word)));
        lexer.append("\n");
        lexer.append(input.texts.get(unit));
        row.clear();
        known.tree.mentions(&lexer, |id| row.push(id));
        let mut both = row.clone();
        both.extend((about != NONE).then_some(about));
        rows.mentions.push_set(&mut row);
        rows.subjects.push_set(&mut both);

        let mut subject_name = None;
        if about != NONE {
            let subject = subjects.get(about as usize);
            lexer.read(subject);
            lexer.keywords(|word| of_title.extend(known.keywords.get(word)));
            subject_name = known.names.get(subject);
        }
        let mut seen = 0;
        of_title.truncate(1 << 16);
        while seen < of_title.len() && seen < TITLE_KEYWORDS {
            let x = of_title[seen];
            if of_title[..seen].contains(&x) {
                of_title.remove(seen);
            } else {
                seen += 1;
            }
        }
        of_title.truncate(seen);
        for sentence in input.first_sentence[unit]..input.first_sentence[unit + 1] {
            lexer.read(input.sentences.get(sentence as usize));
            row.clear();
            row.extend_from_slice(&of_title);
            lexer.keywords(|word| row.extend(known.keywords.get(word)));
            rows.keywords.push_set(&mut row);
            row.extend(subject_name);
            name_spans(&lexer, 0, |name| row.extend(known.names.get(name)));
            rows.names.push_set(&mut row);
        }
    }
    Ok(rows)
}
