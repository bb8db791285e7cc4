//! Fills passages with whole blocks.
//!
//! A block that fits is never cut. A block that does not fit is cut where its kind allows: text between
//! sentences, a table between rows, code between definitions, then at blank lines, then between lines, and a
//! list between items. Anything else is cut into windows of tokens. A heading, the header of a table and a
//! figure stay with the block that follows. A passage of less than a quarter of the maximum size is merged
//! with a neighbour if the result is at most 1.25 times the maximum, unless the sentences of a text can be
//! redistributed over the last two passages.

use super::blocks::{find_blocks, Block, Kind, Mark, Span, NONE};
use super::bpe::{Counter, Tally};
use super::context::Contexts;
use super::context::{at_blank_lines, at_definitions, code_lines, Enclosing, Line};
use super::piece::{cut_sentence, Piece};
use super::sentences::{trimmed, Splitter};
use crate::error::Result;
use crate::progress::Progress;
use std::ops::Range;

/// A unit that is not cut further: a block, or a part of a block that does not fit.
struct Atom {
    span: Span,
    block: u32,
    /// Whether it stays with the block that follows.
    leads: bool,
    definitions: Vec<Span>,
}

/// Cut a text that is not blank.
pub(crate) fn cut_blocks(
    text: &str,
    from: usize,
    marks: &[(Span, Mark)],
    most: usize,
    splitter: Splitter,
    counter: &mut Counter,
    progress: &Progress,
) -> Result<Vec<Piece>> {
    let blocks = find_blocks(text, from, marks, progress);
    progress.check()?;
    let tally = Tally::new(counter, text, progress)?;
    let contexts = Contexts::new(text, &blocks, most / 2);
    let mut cutter = Cutter {
        text,
        blocks: &blocks,
        most,
        tally,
        counter,
        splitter,
        progress,
        contexts,
        atoms: Vec::new(),
        sentences: Vec::new(),
    };
    let mut at = 0;
    while let Some(block) = blocks.get(at) {
        cutter.add(at, most)?;
        at = block.next as usize;
    }
    let mut firsts = cutter.fill()?;
    cutter.balance(&mut firsts);
    cutter.join_short(&mut firsts);
    Ok(cutter.pieces(&firsts))
}

struct Cutter<'a, 'c> {
    text: &'a str,
    blocks: &'a [Block],
    most: usize,
    tally: Tally<'a>,
    counter: &'c mut Counter,
    splitter: Splitter,
    progress: &'c Progress,
    contexts: Contexts<'a>,
    atoms: Vec<Atom>,
    sentences: Vec<Span>,
}

impl Cutter<'_, '_> {
    fn count(&mut self, start: usize, end: usize) -> usize {
        self.tally.count(self.counter, start, end)
    }

    fn fits(&mut self, span: Span, room: usize) -> bool {
        // Each token has at least one byte, so most stretches need no count.
        span.1 - span.0 <= room || self.count(span.0, span.1) <= room
    }

    fn push(&mut self, span: Span, block: usize, leads: bool) {
        self.atoms.push(Atom { span, block: block as u32, leads, definitions: Vec::new() });
    }

    /// Add a block that begins a passage of `room` tokens or follows other blocks.
    fn add(&mut self, index: usize, room: usize) -> Result<()> {
        let block = self.blocks[index];
        if block.span.0 == block.span.1 {
            return Ok(());
        }
        if self.fits(block.span, room) {
            self.push(block.span, index, matches!(block.kind, Kind::Heading | Kind::Figure));
            return self.add_sentences(index);
        }
        let context = self.contexts.room(index as u32, self.counter);
        let room = self.most.saturating_sub(context).max(1);
        if !block.is_leaf(index) {
            let mut inner = index + 1;
            while inner < block.next as usize {
                self.add(inner, room)?;
                inner = self.blocks[inner].next as usize;
            }
            return Ok(());
        }
        match block.kind {
            Kind::Table => self.cut_table(index, room),
            Kind::Code => self.cut_code(index, room),
            _ => {
                let first = self.sentences.len();
                self.add_sentences(index)?;
                let whole = self.sentences.split_off(first);
                for span in whole {
                    self.add_stretch(span, index, room, false)?;
                }
                Ok(())
            }
        }
    }

    /// Add the sentences of a block to the list.
    fn add_sentences(&mut self, index: usize) -> Result<()> {
        for at in index..self.blocks[index].next as usize {
            let block = self.blocks[at];
            let (start, end) = block.span;
            if !block.is_leaf(at) || start == end {
                continue;
            }
            if block.kind == Kind::Table {
                let rows = rows_of(self.text, &block);
                self.sentences.extend(rows);
                continue;
            }
            let first = self.sentences.len();
            self.splitter.split(&self.text[start..end], self.progress, &mut self.sentences)?;
            for sentence in &mut self.sentences[first..] {
                *sentence = (sentence.0 + start, sentence.1 + start);
            }
        }
        Ok(())
    }

    /// Add a span as one atom and one sentence, or as several if it does not fit.
    fn add_stretch(&mut self, span: Span, index: usize, room: usize, leads: bool) -> Result<()> {
        let first = self.sentences.len();
        if self.fits(span, room) {
            self.push(span, index, leads);
            self.sentences.push(span);
            return Ok(());
        }
        cut_sentence(self.text, span, room, self.counter, self.progress, &mut self.sentences)?;
        for at in first..self.sentences.len() {
            let span = self.sentences[at];
            self.push(span, index, false);
        }
        Ok(())
    }

    fn cut_table(&mut self, index: usize, room: usize) -> Result<()> {
        let block = self.blocks[index];
        for (number, row) in rows_of(self.text, &block).enumerate() {
            if number % 1024 == 0 {
                self.progress.check()?;
            }
            let is_header = row.0 < block.head.1;
            let room = if is_header { self.most } else { room };
            self.add_stretch(row, index, room, is_header)?;
        }
        Ok(())
    }

    fn cut_code(&mut self, index: usize, room: usize) -> Result<()> {
        let lines = code_lines(self.text, self.blocks[index].span);
        let is_fenced = self.blocks[index].head.0 < self.blocks[index].head.1;
        let mut code = CodeParts { lines: &lines, enclosing: Enclosing::default(), read: 0, is_fenced };
        for definition in at_definitions(&lines, 0..lines.len()) {
            self.progress.check()?;
            if self.fits(code.span(&definition), room) {
                self.add_code(&mut code, definition, index, room)?;
                continue;
            }
            for part in at_blank_lines(&lines, definition) {
                if self.fits(code.span(&part), room) {
                    self.add_code(&mut code, part, index, room)?;
                    continue;
                }
                for line in part {
                    self.add_code(&mut code, line..line + 1, index, room)?;
                }
            }
        }
        Ok(())
    }

    fn add_code(
        &mut self,
        code: &mut CodeParts<'_>,
        lines: Range<usize>,
        index: usize,
        room: usize,
    ) -> Result<()> {
        let span = code.span(&lines);
        let first = self.atoms.len();
        if lines.len() == 1 {
            // The fence that opens the code stays with its first line.
            self.add_stretch(span, index, room, code.is_fenced && lines.start == 0)?;
        } else {
            self.push(span, index, false);
            let before = self.sentences.len();
            self.splitter.split(&self.text[span.0..span.1], self.progress, &mut self.sentences)?;
            for sentence in &mut self.sentences[before..] {
                *sentence = (sentence.0 + span.0, sentence.1 + span.0);
            }
        }
        let around = code.definitions(self.text, lines.start);
        for atom in &mut self.atoms[first..] {
            atom.definitions.clone_from(&around);
        }
        Ok(())
    }

    /// Return the index of the first atom of each passage.
    fn fill(&mut self) -> Result<Vec<usize>> {
        let mut firsts: Vec<usize> = Vec::new();
        let (mut first, mut context) = (0, 0);
        let mut at = 0;
        while at < self.atoms.len() {
            if at % 256 == 0 {
                self.progress.check()?;
            }
            let (start, end) = (self.atoms[first].span.0, self.atoms[at].span.1);
            let is_open = !firsts.is_empty();
            if is_open
                && (context + (end - start) <= self.most || context + self.count(start, end) <= self.most)
            {
                at += 1;
                continue;
            }
            // A heading or lead-in moves together with the block that follows, if both fit. It is never a
            // passage alone if both nearly fit.
            let mut begins = at;
            while is_open && begins > first && self.atoms[begins - 1].leads {
                begins -= 1;
            }
            let (from, limit) = (self.atoms[begins].span.0, self.most + self.most / 4);
            let fits = begins == at || self.count(from, end) <= limit;
            if is_open && begins == first && begins < at && fits {
                at += 1;
                continue;
            }
            first = if fits { begins } else { at };
            firsts.push(first);
            context = self.context(first).1;
            at += 1;
        }
        Ok(firsts)
    }

    /// Return the context of a passage that begins with an atom, and its tokens.
    fn context(&mut self, first: usize) -> (String, usize) {
        let atom = &self.atoms[first];
        let Block { span, parent, lead, head, .. } = self.blocks[atom.block as usize];
        let is_plain = parent == NONE
            && lead.0 == lead.1
            && atom.span.0 == span.0
            && (head.0 == head.1 || head.0 >= span.0);
        if is_plain {
            return (String::new(), 0);
        }
        let before = self.contexts.before(atom.block, atom.span.0, &atom.definitions, self.counter);
        let tokens = if before.is_empty() { 0 } else { self.counter.count(&before) };
        (before, tokens)
    }

    /// Return the span of the atoms `first..end`.
    fn span(&self, first: usize, end: usize) -> Span {
        (self.atoms[first].span.0, self.atoms[end - 1].span.1)
    }

    /// Merge passages of less than a quarter of the maximum size with a neighbour, if the result is at most
    /// 1.25 times the maximum.
    fn join_short(&mut self, firsts: &mut Vec<usize>) {
        let ends: Vec<usize> = firsts.iter().skip(1).copied().chain([self.atoms.len()]).collect();
        let (quarter, limit) = (self.most / 4, self.most + self.most / 4);
        let mut joined: Vec<usize> = Vec::new();
        let mut before = 0;
        for (&first, &end) in firsts.iter().zip(&ends) {
            let span = self.span(first, end);
            let size = self.count(span.0, span.1);
            let Some(&last) = joined.last() else {
                joined.push(first);
                before = size;
                continue;
            };
            let both = if size.min(before) < quarter {
                let context = self.context(last).1;
                context + self.count(self.atoms[last].span.0, span.1)
            } else {
                usize::MAX
            };
            if both <= limit {
                before = both;
            } else {
                joined.push(first);
                before = size;
            }
        }
        *firsts = joined;
    }

    /// Redistribute the last two passages if the last is a small remainder of a text.
    fn balance(&mut self, firsts: &mut [usize]) {
        let [.., before, last] = firsts else { return };
        let end = self.atoms.len();
        if self.atoms[*last].block != self.atoms[*last - 1].block || !self.context(*last).0.is_empty() {
            return;
        }
        let (most, stop) = (self.most, self.atoms[end - 1].span.1);
        let mut size = self.count(self.atoms[*last].span.0, stop);
        if size >= most / 2 {
            return;
        }
        let block = self.atoms[*last].block;
        while *last > *before + 1 && self.atoms[*last - 1].block == block {
            let longer = self.count(self.atoms[*last - 1].span.0, stop);
            let left = self.count(self.atoms[*before].span.0, self.atoms[*last - 1].span.1);
            // The larger of the two must become smaller.
            if longer > most || longer >= left.max(size) {
                break;
            }
            *last -= 1;
            size = longer;
        }
    }

    fn pieces(mut self, firsts: &[usize]) -> Vec<Piece> {
        let sentences = std::mem::take(&mut self.sentences);
        let mut sentences = sentences.into_iter().peekable();
        let ends = firsts.iter().skip(1).copied().chain([self.atoms.len()]);
        let mut pieces = Vec::with_capacity(firsts.len());
        for (&first, end) in firsts.iter().zip(ends) {
            let span = self.span(first, end);
            let mut own = Vec::new();
            while let Some(sentence) = sentences.next_if(|sentence| sentence.0 < span.1) {
                own.push(sentence);
            }
            let tokens = self.count(span.0, span.1);
            let before = self.context(first).0;
            let after = self.contexts.after(self.atoms[end - 1].block, span.1);
            pieces.push(Piece { span, tokens, sentences: own, before, after });
        }
        pieces
    }
}

/// The lines of the code that is being cut, which are read in order.
struct CodeParts<'a> {
    lines: &'a [Line],
    enclosing: Enclosing,
    /// Lines read so far.
    read: usize,
    is_fenced: bool,
}

impl CodeParts<'_> {
    fn span(&self, lines: &Range<usize>) -> Span {
        (self.lines[lines.start].span.0, self.lines[lines.end - 1].span.1)
    }

    /// Return the definitions around a line.
    fn definitions(&mut self, text: &str, line: usize) -> Vec<Span> {
        let mut around = Vec::new();
        while self.read <= line {
            // The opening fence is not a definition.
            if self.read > 0 || !self.is_fenced {
                around = self.enclosing.read(text, &self.lines[self.read]);
            }
            self.read += 1;
        }
        around
    }
}

/// Return the header of a table, if it has one, and each of its rows.
fn rows_of<'a>(text: &'a str, block: &Block) -> impl Iterator<Item = Span> + 'a {
    let (start, end) = block.span;
    let head = block.head.1.max(start);
    let mut at = head;
    let rows = text[head..end].split_inclusive('\n').filter_map(move |line| {
        let from = at;
        at += line.len();
        trimmed_row(text, from, at)
    });
    trimmed_row(text, start, head).into_iter().chain(rows)
}

/// Return a row without blanks at its ends, but with the leading tabs of empty cells.
fn trimmed_row(text: &str, start: usize, end: usize) -> Option<Span> {
    let (from, end) = trimmed(text, start, end)?;
    Some((start + text[start..from].trim_end_matches('\t').len(), end))
}

#[cfg(test)]
#[path = "passages_tests.rs"]
mod tests;
