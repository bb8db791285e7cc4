use super::*;
use crate::text::strings::StringsBuf;
use proptest::prelude::*;

/// Return the keywords of a unit and of each sentence, as strings.
fn read(title: &str, text: &str, sentences: &[&str], language: Language) -> (Vec<String>, Vec<Vec<String>>) {
    let subjects: StringsBuf = ["beta"].into_iter().collect();
    let tree = SubjectTree::new(subjects.view());
    let (mut words, mut keywords) = (KnownWords::default(), Interner::default());
    let mut lexer = Lexer::default();
    lexer.read(title);
    let first_word = lexer.words.len();
    lexer.append("\n");
    let start = lexer.append(text);
    let mut row = Vec::new();
    // A unit before it, so that offsets do not begin at 0.
    words.read_unit(&lexer, (first_word, start), language, &tree, &mut keywords, &mut row);
    row.clear();
    words.read_unit(&lexer, (first_word, start), language, &tree, &mut keywords, &mut row);
    let in_tree: Vec<bool> = (0..lexer.words.len()).map(|k| lexer.lower(k) == "beta").collect();
    assert_eq!(words.in_tree.iter().map(|&word| word != NONE).collect::<Vec<_>>(), in_tree);
    let mut unit = words.unit(1);
    let rows: Vec<Vec<u32>> = sentences
        .iter()
        .map(|sentence| {
            let mut row = Vec::new();
            lexer.read(sentence);
            unit.read_sentence(&lexer, language, &mut keywords, &mut row);
            row
        })
        .collect();
    let strings = |row: &[u32]| -> Vec<String> {
        let mut row: Vec<String> =
            row.iter().map(|&k| keywords.strings().get(k as usize).to_owned()).collect();
        row.sort();
        row
    };
    (strings(&row), rows.iter().map(|row| strings(row)).collect())
}

fn plainly(text: &str, language: Language) -> Vec<String> {
    let (mut lexer, mut found) = (Lexer::default(), Vec::new());
    lexer.read(text);
    lexer.keywords_where(language, |_| true, |word| found.push(word.to_owned()));
    found.sort();
    found
}

proptest! {
    #[test]
    fn known_words_are_those_that_are_looked_up(
        title in "(Beta |é|cities ){0,2}",
        pieces in prop::collection::vec("([A-Za-z]{0,5}|beta|Cities|the| |\\. |é|日本|и\u{306}|\u{301}|города ){0,9}", 0..6),
        skip in prop::collection::vec(any::<bool>(), 6), language in prop::sample::select(vec!["en", "none", "de", "ru"]),
    ) {
        let language = Language::by_name(language).unwrap();
        let text = pieces.concat();
        // Pieces may cut words, and some are left out, as sentences are not: the result is right in any case.
        let mut sentences: Vec<&str> = pieces.iter().map(|one| one.trim()).collect();
        sentences.retain(|one| !skip[one.len() % 6]);
        sentences.push("beta is elsewhere");
        let (unit, rows) = read(&title, &text, &sentences, language);
        prop_assert_eq!(unit, plainly(&format!("{title}\n{text}"), language));
        for (row, sentence) in rows.iter().zip(&sentences) {
            prop_assert_eq!(row, &plainly(sentence, language));
        }
    }
}
