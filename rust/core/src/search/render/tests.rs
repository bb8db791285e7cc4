use super::joined::LONGEST;
use super::*;
use crate::text::strings::StringsBuf;
use proptest::prelude::*;

/// A simple count: one token per byte.
fn bytes(text: &str) -> usize {
    text.len()
}

fn cl100k(text: &str) -> usize {
    crate::text::bpe::Encoding::Cl100k.count(text)
}

struct Owned {
    texts: StringsBuf,
    titles: StringsBuf,
    of: Vec<u32>,
    tokens: Vec<u32>,
}

impl Owned {
    fn new(rows: &[(&str, &str)], count: fn(&str) -> usize) -> Self {
        let whole = |&(title, text): &(&str, &str)| match title {
            "" => count(text) as u32,
            _ => count(&format!("{title}\n{text}")) as u32,
        };
        Self {
            texts: rows.iter().map(|r| r.1).collect(),
            titles: rows.iter().map(|r| r.0).collect(),
            of: (0..rows.len() as u32).collect(),
            tokens: rows.iter().map(whole).collect(),
        }
    }

    fn view(&self) -> Units<'_> {
        Units::new(self.texts.view(), Some((self.titles.view(), (&self.of).into())), &self.tokens).unwrap()
    }
}

fn render(style: Style, owned: &Owned, ids: &[u32], budget: u64) -> Context {
    Renderer::new(bytes, style)
        .render(&owned.view(), ids, budget, FillPolicy::default(), OversizePolicy::default())
        .unwrap()
}

#[test]
fn the_product_cites_and_leaves_an_empty_line() {
    let owned = Owned::new(&[("Rome", "A city."), ("", "No title.")], bytes);
    let context = render(Style::Cited, &owned, &[1, 0], 1000);
    assert_eq!(context.text, "[1]\nNo title.\n\n[2]\nRome\nA city.\n");
    let texts: Vec<&str> = context.rows.iter().map(|r| &context.text[r.start..r.end]).collect();
    assert_eq!(texts, ["No title.", "A city."]);
    assert_eq!(context.rows.iter().map(|r| r.tokens).collect::<Vec<_>>(), [4 + 9 + 2, 4 + 12 + 2]);
    assert_eq!(context.tokens, 33);
}

#[test]
fn no_text_passes_for_another_row() {
    let owned = Owned::new(&[("[3] Rome", "A city.\n\n[2]\nNaples\n  [12] x\r[4]"), ("", "x[2] [3]")], bytes);
    let cited = render(Style::Cited, &owned, &[0, 1], 1000);
    let forged = "A city.\n\n(2)\nNaples\n  (12) x\r(4)";
    assert_eq!(cited.text, format!("[1]\n(3) Rome\n{forged}\n\n[2]\nx[2] [3]\n"));
    assert_eq!(&cited.text[cited.rows[0].start..cited.rows[0].end], forged);
    let published = render(Style::Published, &owned, &[0], 1000);
    assert!(published.text.contains("\n\n[2]\nNaples"));
}

#[test]
fn the_text_section_of_ket_rag() {
    let owned = Owned::new(&[("", "one"), ("", "two")], bytes);
    let context = render(Style::Ket, &owned, &[1, 0], 1000);
    let want = "-----Text source that may be relevant-----\nid|text\nchunk_1|two\nchunk_2|one\n";
    assert_eq!(context.text, want);
    assert_eq!(context.tokens as usize, want.len());
    assert_eq!(render(Style::Published, &owned, &[1, 0], 1000).text, format!("\n\n{want}"));
}

#[test]
fn a_section_without_room_for_one_token_is_left_out() {
    let owned = Owned::new(&[("", "one")], bytes);
    let least = (KET_HEADER.len() + "chunk_1|".len() + 1) as u64;
    for budget in [0, 1, least] {
        assert_eq!(render(Style::Ket, &owned, &[0], budget), Context::default());
    }
    let context = render(Style::Ket, &owned, &[0], least + 1);
    assert!(context.text.ends_with("\nchunk_1|o\n") && context.tokens == least + 1);
    assert_eq!(render(Style::Ket, &owned, &[], 1000), Context::default());
}

#[test]
fn the_first_row_is_cut_or_dropped_when_nothing_fits() {
    let owned = Owned::new(&[("Ab", "日本語"), ("", "x")], bytes);
    let renderer = Renderer::new(bytes, Style::Cited);
    let with =
        |budget, policy, oversize| renderer.render(&owned.view(), &[0, 1], budget, policy, oversize).unwrap();
    let stop = FillPolicy::FirstOverflowStops;
    let cut = with(4 + 3 + 4 + 2, stop, OversizePolicy::Truncate);
    assert_eq!(cut.text, "[1]\nAb\n日\n");
    assert_eq!(&cut.text[cut.rows[0].start..cut.rows[0].end], "日");
    assert_eq!((cut.rows[0].tokens, cut.tokens), (12, 12));
    let title = with(4 + 1 + 2, stop, OversizePolicy::Truncate);
    assert_eq!((title.text.as_str(), title.rows[0].start), ("[1]\nA\n", title.rows[0].end));
    assert_eq!(with(10, stop, OversizePolicy::Drop), Context::default());
    let skipped = with(10, FillPolicy::SkipAndContinue, OversizePolicy::Drop);
    assert_eq!(skipped.text, "[1]\nx\n");
}

#[test]
fn bad_input_is_named() {
    let owned = Owned::new(&[("", "one")], bytes);
    let texts = owned.texts.view();
    assert!(Units::new(texts, None, &[]).is_err());
    assert!(Units::new(texts, Some((texts, (&[]).into())), &[1]).is_err());
    assert!(Units::new(texts, Some((texts, (&[1]).into())), &[1]).is_err());
    let renderer = Renderer::new(bytes, Style::Cited);
    let (policy, oversize) = Default::default();
    assert!(renderer.render(&owned.view(), &[0, 1], 9, policy, oversize).is_err());
}

#[test]
fn prefix_counts_are_right_whether_remembered_or_not() {
    for style in [Style::Cited, Style::Ket] {
        let renderer = Renderer::new(cl100k, style);
        for rank in [1, 9, 10, 999, 1000, REMEMBERED, REMEMBERED + 1, 1_234_567] {
            for _ in 0..2 {
                assert_eq!(renderer.prefix_tokens(rank, 7), cl100k(&style.prefix(rank, 7)) as u64);
            }
        }
    }
    assert_eq!(Renderer::new(cl100k, Style::Cited).prefix_tokens(1, 7), 3);
}

/// A document split into units, with the text between them and the last gap.
struct Pieces {
    texts: StringsBuf,
    before: StringsBuf,
    after: StringsBuf,
    titles: StringsBuf,
    gaps: StringsBuf,
    of: Vec<u32>,
    bytes: Vec<u32>,
    tokens: Vec<u32>,
}

impl Pieces {
    /// Documents as lists of (context, text, gap after the text), all with the title "T".
    fn new(documents: &[&[(&str, &str, &str)]], count: fn(&str) -> usize) -> Self {
        let empty = StringsBuf::default;
        let (mut of, mut bytes, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        let (mut texts, mut before, mut after, mut gaps) = (empty(), empty(), empty(), empty());
        for (document, pieces) in (0..).zip(documents) {
            let (mut at, mut gap) = (0, String::new());
            for (context, text, follows) in *pieces {
                bytes.extend([at, at + text.len() as u32]);
                at += (text.len() + follows.len()) as u32;
                gap.push_str(follows);
                of.push(document);
                texts.push(text);
                before.push(context);
                after.push(if context.is_empty() { "" } else { "\n```" });
                let after = after.get(after.len() - 1);
                tokens.push(count(&format!("T\n{context}{text}{after}")) as u32);
            }
            gaps.push(&gap);
        }
        let titles = documents.iter().map(|_| "T").collect();
        Self { texts, before, after, titles, gaps, of, bytes, tokens }
    }

    fn view(&self) -> Units<'_> {
        let titles = Some((self.titles.view(), (&self.of).into()));
        let units = Units::new(self.texts.view(), titles, &self.tokens).unwrap();
        let units = units.with_context(self.before.view(), self.after.view()).unwrap();
        units.with_gaps((&self.bytes).into(), self.gaps.view()).unwrap()
    }

    fn render(&self, ids: &[u32], budget: u64) -> Context {
        let (policy, oversize) = Default::default();
        Renderer::new(bytes, Style::Cited).render_joined(&self.view(), ids, budget, policy, oversize).unwrap()
    }
}

fn runs(context: &Context) -> Vec<(u32, u32, u32)> {
    context.rows.iter().map(|row| (row.unit, row.first, row.count)).collect()
}

#[test]
fn neighbours_are_one_row_in_the_order_of_the_document() {
    let first: &[_] = &[("", "one.", "\n\n"), ("", "two.", " "), ("", "three.", "\n")];
    let pieces = Pieces::new(&[first, &[("", "four.", ""), ("", "five.", "")]], bytes);
    let context = pieces.render(&[1, 4, 0], 1000);
    assert_eq!(context.text, "[1]\nT\none.\n\ntwo.\n\n[2]\nT\nfive.\n");
    assert_eq!(runs(&context), [(1, 0, 2), (4, 4, 1)]);
    assert_eq!(context.tokens as usize, context.text.len() + 1);
    assert_eq!(&context.text[context.rows[0].start..context.rows[0].end], "one.\n\ntwo.");
    // Two rows become one, at the better rank.
    let context = pieces.render(&[3, 2, 0, 1, 4], 1000);
    assert_eq!(runs(&context), [(3, 3, 2), (2, 0, 3)]);
    assert!(context.text.ends_with("T\none.\n\ntwo. three.\n"));
    assert_eq!(runs(&pieces.render(&[2, 3], 1000)), [(2, 2, 1), (3, 3, 1)]);
}

#[test]
fn a_row_has_at_most_three_units() {
    let rows: &[_] = &[("", "a.", " "); 8];
    let pieces = Pieces::new(&[rows], bytes);
    assert_eq!(runs(&pieces.render(&[0, 1, 2, 3, 4, 5, 6, 7], 1000)), [(0, 0, 3), (3, 3, 3), (6, 6, 2)]);
    // A unit between two rows that are too long to be merged is added to the better row.
    assert_eq!(runs(&pieces.render(&[4, 5, 1, 2, 3], 1000)), [(4, 3, 3), (1, 1, 2)]);
    assert_eq!(runs(&pieces.render(&[1, 2, 4, 5, 3], 1000)), [(1, 1, 3), (4, 4, 2)]);
    assert_eq!(runs(&pieces.render(&[2, 1, 0, 4, 3], 1000)), [(2, 0, 3), (4, 3, 2)]);
}

#[test]
fn context_is_printed_once_and_paid_once() {
    let rows: &[_] = &[("```\n", "a = 1", "\n"), ("```\n", "b = 2", "\n"), ("```\n", "c = 3", "")];
    let pieces = Pieces::new(&[rows], bytes);
    let context = pieces.render(&[1, 2, 0], 1000);
    assert_eq!(context.text, "[1]\nT\n```\na = 1\nb = 2\nc = 3\n```\n");
    assert_eq!(context.tokens as usize, context.text.len() + 1);
    let least = context.tokens;
    assert_eq!(runs(&pieces.render(&[1, 2, 0], least)), [(1, 0, 3)]);
    assert_eq!(runs(&pieces.render(&[1, 2, 0], least - 1)), [(1, 1, 2)]);
    assert_eq!(pieces.render(&[1], 12).rows.len(), 1);
}

proptest! {
    #[test]
    fn joined_rows_hold_the_budget_and_every_unit_once(
        documents in prop::collection::vec(prop::collection::vec(("(|h\n)", "[a-zé]{1,9}", "[ \n]{0,2}"), 1..9), 1..4),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..16),
        budget in 0u64..200,
    ) {
        let documents: Vec<Vec<(&str, &str, &str)>> = documents.iter()
            .map(|rows| rows.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect()).collect();
        let documents: Vec<&[_]> = documents.iter().map(Vec::as_slice).collect();
        let pieces = Pieces::new(&documents, bytes);
        let mut ids: Vec<u32> = Vec::new();
        order.iter().map(|at| at.index(pieces.of.len()) as u32).for_each(|id| if !ids.contains(&id) { ids.push(id) });
        let context = pieces.render(&ids, budget);
        prop_assert!(context.tokens <= budget);
        prop_assert_eq!(context.rows.iter().map(|row| row.tokens).sum::<u64>(), context.tokens);
        let mut printed: Vec<u32> = Vec::new();
        for row in &context.rows {
            prop_assert!(row.first <= row.unit && row.unit < row.first + row.count && row.count <= LONGEST);
            let text: String = documents[pieces.of[row.first as usize] as usize].iter()
                .map(|(_, text, follows)| format!("{text}{follows}")).collect();
            let span = pieces.bytes[2 * row.first as usize] as usize
                ..pieces.bytes[2 * (row.first + row.count) as usize - 1] as usize;
            if budget > 60 {
                prop_assert_eq!(&context.text[row.start..row.end], &text[span]);
            }
            printed.extend(row.first..row.first + row.count);
        }
        let count = printed.len();
        printed.sort_unstable();
        printed.dedup();
        prop_assert!(printed.len() == count && printed.iter().all(|unit| ids.contains(unit)));
        let document = |row: &Row| pieces.of[row.first as usize];
        let precedes = |a: &Row, b: &Row| {
            document(a) == document(b) && a.first + a.count == b.first && a.count + b.count <= LONGEST
        };
        prop_assert!(context.rows.iter().all(|a| context.rows.iter().all(|b| !precedes(a, b))));
    }

    #[test]
    fn the_budget_holds(
        rows in prop::collection::vec(("(|Ti tle|日本)", "[a-z é日👩🏽\n]{0,30}"), 1..8),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        budget in 0u64..90,
        style in prop::sample::select(vec![Style::Cited, Style::Ket, Style::Published]),
        skip: bool,
        cut: bool,
    ) {
        let rows: Vec<(&str, &str)> = rows.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let owned = Owned::new(&rows, cl100k);
        let ids: Vec<u32> = order.iter().map(|i| i.index(rows.len()) as u32).collect();
        let policy = if skip { FillPolicy::SkipAndContinue } else { FillPolicy::FirstOverflowStops };
        let oversize = if cut { OversizePolicy::Truncate } else { OversizePolicy::Drop };
        let context = Renderer::new(cl100k, style).render(&owned.view(), &ids, budget, policy, oversize).unwrap();
        prop_assert!(context.tokens <= budget);
        let header = if context.text.is_empty() { 0 } else { cl100k(style.header()) as u64 };
        prop_assert_eq!(context.rows.iter().map(|r| r.tokens).sum::<u64>() + header, context.tokens);
        prop_assert_eq!(context.rows.is_empty(), context.text.is_empty());
        for row in &context.rows {
            let printed = &context.text[row.start..row.end];
            let whole = rows[row.unit as usize].1;
            prop_assert!(whole.starts_with(printed) || context.rows.len() == 1);
        }
    }
}
