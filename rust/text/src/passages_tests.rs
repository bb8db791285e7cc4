use super::*;
use crate::bpe::Encoding;
use proptest::prelude::*;

fn cut(text: &str, marks: &[(Span, Mark)], most: usize) -> Vec<Piece> {
    let mut counter = Counter::new(Encoding::Cl100k);
    cut_blocks(text, 0, marks, most, Splitter::Standard, &mut counter, &Progress::none()).unwrap()
}

fn markdown(text: &str, most: usize) -> Vec<String> {
    let pieces = cut(text, &[((0, text.len()), Mark::Markdown)], most);
    pieces.iter().map(|p| [&p.before, &text[p.span.0..p.span.1], &p.after].concat()).collect()
}

#[test]
fn a_table_repeats_its_header_and_caption() {
    let rows: String = (0..60).map(|n| format!("| item-{n} | {n} | red |\n")).collect();
    let text = format!("Table 1: the stock.\n\n| Name | Quantity | Colour |\n|---|---|---|\n{rows}");
    let shown = markdown(&text, 100);
    assert!(shown.len() > 5);
    for (n, passage) in shown.iter().enumerate() {
        let start = format!(
            "Table 1: the stock.{}| Name | Quantity | Colour |\n|---|---|---|\n| item-",
            if n == 0 { "\n\n" } else { "\n" }
        );
        assert!(passage.starts_with(&start) && passage.ends_with("red |"), "{passage}");
        assert!(Encoding::Cl100k.count(passage) <= 125);
    }
}

#[test]
fn code_keeps_its_fence_and_the_definition_around_it() {
    let body: String = (0..40).map(|n| format!("        x{n} = {n} + 1\n\n")).collect();
    let text =
        format!("```py\nclass A:\n    def f(self):\n{body}\ndef g():\n    pass\n```\n\nThe end of it.");
    let shown = markdown(&text, 100);
    assert!(shown.len() > 3);
    for passage in &shown[..shown.len() - 1] {
        assert!(
            passage.starts_with("```py\nclass A:\n    def f(self):\n        x") && passage.ends_with("\n```"),
            "{passage}"
        );
    }
}

#[test]
fn a_list_repeats_what_introduces_it() {
    let inner: String = (0..30).map(|n| format!("   - do the thing number {n} with care\n")).collect();
    let text = format!("A few words come first here. Run these steps:\n\n1. Begin\n2. Go on:\n{inner}3. End");
    let shown = markdown(&text, 80);
    assert!(shown.len() > 3);
    for passage in &shown[1..shown.len() - 1] {
        assert!(passage.starts_with("Run these steps:\n2. Go on:\n- do the thing"), "{passage}");
    }
    assert!(shown.iter().all(|passage| !passage.ends_with(['-', '.'])));
}

#[test]
fn blocks_that_fit_are_whole_and_short_ones_join() {
    let text = format!(
        "{}\n\n{}\n\nA short end.",
        "One two three four. ".repeat(20),
        "Five six seven eight. ".repeat(20)
    );
    let pieces = cut(&text, &[], 110);
    let starts: Vec<&str> = pieces.iter().map(|p| &text[p.span.0..p.span.0 + 4]).collect();
    assert_eq!(starts, ["One ", "Five"]);
    assert!(text[pieces[1].span.0..pieces[1].span.1].ends_with("end."));
}

#[test]
fn a_heading_stays_with_what_follows() {
    let text = format!(
        "{}\n\n## A heading\n\n{}",
        "One two three four. ".repeat(18),
        "Five six seven eight. ".repeat(16)
    );
    let shown = markdown(&text, 100);
    assert!(shown.len() == 2 && shown[1].starts_with("## A heading\n"), "{shown:?}");
}

#[test]
fn hostile_ones_take_linear_time_and_are_cut_by_tokens() {
    let wide = format!("{}\tb\n{}", "head ".repeat(200_000), "1\t2\n".repeat(3_000));
    let code = format!("```\n{}\n```", "x".repeat(1 << 20));
    let lines = format!("```\n{}```", "    a = 1\n".repeat(50_000));
    let table = format!("| a | b |\n|---|---|\n{}", "| 1 | 2 |\n".repeat(50_000));
    let cell = format!("| a |\n|---|\n| {} |", "word ".repeat(100_000));
    let deep: String = (0..1_000).map(|n| format!("{}- an item\n", "  ".repeat(n))).collect();
    let whole = |text: &str, mark| vec![((0, text.len()), mark)];
    let none = Vec::new();
    for (text, marks) in [
        (&wide, none),
        (&code, whole(&code, Mark::Markdown)),
        (&lines, whole(&lines, Mark::Markdown)),
        (&table, whole(&table, Mark::Markdown)),
        (&cell, whole(&cell, Mark::Markdown)),
        (&deep, whole(&deep, Mark::Markdown)),
        (&lines, whole(&lines, Mark::Code { heads: 0 })),
    ] {
        let pieces = cut(text, &marks, 200);
        assert!(pieces.len() > 9);
        for piece in &pieces {
            assert!(piece.tokens <= 250 && Encoding::Cl100k.count(&piece.before) <= 101);
        }
    }
}

proptest! {
    #[test]
    fn pieces_hold_all_text(
        parts in prop::collection::vec("(# |- |  - |1\\. |> |```\n|\\| a \\| b \\|\n\\|---\\|---\\|\n|[A-Z][a-z]{1,9} |\\. |é|:| |\n|\n\n|    |\t|a\tb\n){0,5}", 0..40),
        most in 1usize..40, kind in 0u32..3,
    ) {
        let text = parts.concat();
        prop_assume!(!text.trim().is_empty());
        let mark = [Some(Mark::Markdown), Some(Mark::Code { heads: 0 }), None][kind as usize];
        let marks: Vec<_> = mark.into_iter().map(|mark| ((0, text.len()), mark)).collect();
        let mut reached = 0;
        for piece in cut(&text, &marks, most) {
            let (a, b) = piece.span;
            prop_assert!(b > a && a >= reached);
            prop_assert_eq!(piece.tokens, Encoding::Cl100k.count(&text[a..b]));
            prop_assert_eq!(text[reached..a].trim(), "");
            prop_assert!(!piece.sentences.is_empty());
            prop_assert!(piece.sentences.iter().all(|s| a <= s.0 && s.0 < s.1 && s.1 <= b));
            prop_assert!(piece.sentences.windows(2).all(|w| w[0].1 <= w[1].0));
            prop_assert!(piece.before.is_empty() || piece.before.ends_with('\n'));
            reached = b;
        }
        prop_assert_eq!(text[reached..].trim(), "");
    }
}

#[test]
fn a_long_fence_is_not_repeated() {
    let lines = "x = 1\n".repeat(2_000);
    for (fence, repeated) in [("`".repeat(5), true), ("`".repeat(200_000), false)] {
        let text = format!("{fence}\n{lines}");
        let pieces = cut(&text, &[((0, text.len()), Mark::Markdown)], 100);
        assert!(pieces.len() > 50);
        let after: usize = pieces.iter().map(|piece| piece.after.len()).sum();
        assert_eq!(after > 0, repeated);
        assert!(pieces.iter().all(|piece| piece.before.len() + piece.after.len() < 1_000));
    }
}
