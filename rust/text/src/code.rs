//! Source code as a search sees it: which files are code, tests or declarations, the words of their names, and the
//! definitions and imports in a passage. Nothing is parsed, so every language with usual keywords works.

mod definitions;

pub use definitions::{defines, is_imports};

use crate::identifiers::{each_part, has_inner_capital};
use crate::lexical::stop_words;
use snowball_stemmers_rs::{Algorithm, Stemmer};
use std::sync::OnceLock;

/// Suffixes of source code. Prose, data and settings are not code: their names say less about them.
const SUFFIXES: &[&str] = &[
    "adb", "ads", "asm", "bash", "c", "cc", "cjs", "clj", "cljs", "cpp", "cs", "cts", "cu", "cxx", "d",
    "dart", "el", "elm", "erl", "ex", "exs", "f90", "fs", "fsx", "go", "gradle", "groovy", "h", "hh", "hpp",
    "hs", "hxx", "inl", "java", "jl", "js", "jsx", "kt", "kts", "lisp", "lua", "m", "mjs", "ml", "mli", "mm",
    "mts", "nim", "pas", "php", "pl", "pm", "proto", "ps1", "py", "pyi", "pyx", "r", "rb", "rkt", "rs", "s",
    "scala", "scm", "sh", "sol", "sql", "svelte", "swift", "tcl", "ts", "tsx", "v", "vala", "vb", "vhd",
    "vim", "vue", "zig", "zsh",
];
/// Folders of tests, examples and the like.
const ASIDE: &[&str] = &[
    "__tests__", "bench", "benches", "benchmark", "benchmarks", "demo", "demos", "example", "examples",
    "fixture", "fixtures", "sample", "samples", "spec", "specs", "test", "testdata", "testing", "tests",
];
/// Ends of names of files with tests, without the suffix. They begin with a mark or a capital.
const TEST_ENDS: &[&str] = &[
    "_test", "_tests", "-test", ".test", "_spec", "-spec", ".spec", "Test", "Tests", "TestCase", "Spec",
    "Suite",
];
/// Names of files that say nothing about what is in them.
const GENERIC: &[&str] = &["init", "index", "lib", "main", "mod"];
/// Suffixes of pages of documentation.
const PAGES: &[&str] =
    &["adoc", "asciidoc", "markdown", "md", "mdx", "org", "pod", "rdoc", "rst", "tex", "textile", "txt"];
/// Words in names of pages that record changes and licences. People seldom look for them.
const RECORDS: &[&str] = &[
    "authors", "changelog", "changes", "codeowners", "contributors", "copying", "history", "licence",
    "licenses", "license", "news", "notice", "releases", "third", "unlicense",
];
/// Suffixes of sources in languages with headers, and of headers.
const WITH_HEADERS: &[&str] = &["c", "cc", "cpp", "cxx", "m", "mm"];
const HEADERS: &[&str] = &["h", "hh", "hpp", "hxx"];
/// Words of a query about what a user does, not about what code does.
const HELP_WORDS: &[&str] =
    &["can", "i", "install", "may", "must", "my", "should", "steps", "supported", "we", "why", "you", "your"];
/// Words of a query that is about tests or examples.
const TEST_WORDS: &[&str] = &[
    "benchmark", "benchmarks", "conftest", "example", "examples", "fixture", "fixtures", "spec", "specs",
    "test", "testing", "tests",
];
/// Minimum size in bytes of a stem that counts as the beginning of a longer one: "config" of "configur".
const BEGINNING: usize = 4;

/// Return whether a path is that of a file with source code.
pub fn is_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(stem, suffix)| {
        !stem.is_empty() && SUFFIXES.binary_search(&&*suffix.to_ascii_lowercase()).is_ok()
    })
}

/// Marks that a text needs to count as code: a short sentence with one bracketed word does not.
const FEWEST_MARKS: usize = 4;

/// Return whether a text is source code rather than prose, by its share of brackets, operators and
/// underscores within identifiers among its bytes that are not blanks.
///
/// At 4 %, 93 % of the functions of CoSQA are code, and 63 to 98 % of the passages of ten repositories in
/// eight languages; of passages of articles, chats and abstracts at most 3.5 % (tables with brackets). Chats
/// about programs have 19 %.
pub fn looks_like_code(text: &str) -> bool {
    let (mut marks, mut all, mut before) = (0usize, 0usize, b' ');
    for &byte in text.as_bytes() {
        let is_mark = match byte {
            b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'=' | b';' | b'<' | b'>' => true,
            b'_' => before.is_ascii_alphanumeric(),
            _ => false,
        };
        marks += usize::from(is_mark);
        all += usize::from(!byte.is_ascii_whitespace());
        before = byte;
    }
    marks >= FEWEST_MARKS && 25 * marks > all
}

/// Return whether a file of code has tests, examples or declarations: what one reads after the code itself.
pub fn is_aside(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = stem_of(name);
    folders.split('/').any(|folder| ASIDE.contains(&&*folder.to_ascii_lowercase()))
        || name.starts_with("test_")
        || name.starts_with("conftest.")
        || name.ends_with(".pyi")
        || stem.ends_with(".d")
        || TEST_ENDS.iter().any(|end| stem.len() > end.len() && stem.ends_with(end))
}

/// Return whether a path is that of a page of documentation.
pub fn is_page(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(stem, suffix)| {
        !stem.is_empty() && PAGES.binary_search(&&*suffix.to_ascii_lowercase()).is_ok()
    })
}

/// Return whether a page is a list of changes, a licence or the like.
pub fn is_record(path: &str) -> bool {
    let name = stem_of(path.rsplit('/').next().unwrap_or(path));
    plain_words(&name.to_lowercase()).first().is_some_and(|word| RECORDS.contains(&&**word))
}

/// Return the name without suffix of a file that a header may declare.
pub fn is_source_of_headers(path: &str) -> Option<&str> {
    with_suffix(path, WITH_HEADERS)
}

/// Return the name without suffix of a header.
pub fn declared_by(path: &str) -> Option<&str> {
    with_suffix(path, HEADERS)
}

fn with_suffix<'a>(path: &'a str, suffixes: &[&str]) -> Option<&'a str> {
    let (stem, suffix) = path.rsplit('/').next()?.rsplit_once('.')?;
    suffixes.contains(&suffix).then_some(stem)
}

/// Return what is above the folder of a version, and its number: `("api/", 2)` of `api/v2/user.go`.
pub fn version_of(path: &str) -> Option<(&str, u32)> {
    let mut start = 0;
    for folder in path.split_inclusive('/').filter(|part| part.ends_with('/')) {
        let number = folder.strip_prefix('v').and_then(|rest| rest.strip_suffix('/')?.parse().ok());
        if let Some(number) = number {
            return Some((&path[..start], number));
        }
        start += folder.len();
    }
    None
}

fn stem_of(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Return the stems of the words of a file's name without its suffix; none for names such as `__init__` and `index`.
pub fn name_words(path: &str) -> Vec<String> {
    let name = stem_of(path.rsplit('/').next().unwrap_or(path));
    let words = plain_words(name);
    match words.iter().all(|word| GENERIC.contains(&&**word)) {
        true => Vec::new(),
        false => words.iter().map(|word| stem(word)).collect(),
    }
}

/// Return whether a file has the name of a symbol, in any case: `json_reader.py` that of `JsonReader`.
pub fn is_named(path: &str, symbol: &str) -> bool {
    let words = plain_words(stem_of(path.rsplit('/').next().unwrap_or(path)));
    !words.is_empty() && words == plain_words(symbol)
}

/// Return the stems of the words of a file's folders.
pub fn folder_words(path: &str) -> Vec<String> {
    path.rsplit_once('/').map_or_else(Vec::new, |(folders, _)| stems(folders))
}

/// Return the stems of the words of a text, in order, without function words. Words of code are split into their parts.
pub fn stems(text: &str) -> Vec<String> {
    let is_used = |word: &&String| word.len() > 1 && !stop_words().has(word);
    plain_words(text).iter().filter(is_used).map(|word| stem(word)).collect()
}

/// Return the stems of neighbouring words written as one: "urlencod" of "URL-encoded".
pub fn adjoined(text: &str) -> Vec<String> {
    let words = plain_words(text);
    words.iter().zip(words.iter().skip(1)).map(|(one, next)| stem(&format!("{one}{next}"))).collect()
}

/// Return whether a query is about what a user does.
pub fn asks_for_help(query: &str) -> bool {
    // Whole words between spaces: not the "I" of "I/O".
    query.split_whitespace().any(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        HELP_WORDS.contains(&&*word)
    })
}

/// Return whether a query is about tests or examples.
pub fn asks_for_tests(query: &str) -> bool {
    plain_words(query).iter().any(|word| TEST_WORDS.contains(&&**word))
}

/// Return whether two stems are equal, one is the beginning of the other ("auth" of "authent"), or one is who or what
/// does the other ("logger" of "log").
pub fn is_same(a: &str, b: &str) -> bool {
    a == b
        || (a.len().min(b.len()) >= BEGINNING && (a.starts_with(b) || b.starts_with(a)))
        || activity(a) == activity(b)
}

/// Return a stem without the end of who or what does it: "log" of "logger".
fn activity(stem: &str) -> &str {
    let Some(root) = stem.strip_suffix("er").or_else(|| stem.strip_suffix("or")) else { return stem };
    let bytes = root.as_bytes();
    match bytes {
        [.., a, b] if a == b && bytes.len() > 3 && !matches!(b, b'l' | b's') => &root[..root.len() - 1],
        [_, _, _, ..] => root,
        _ => stem,
    }
}

/// Return the last names of the identifiers in a query: those in camel or snake case or after `::`, `->`, `#` or a dot.
/// A query of a single word is an identifier.
pub fn asked_symbols(query: &str) -> Vec<&str> {
    let chains: Vec<(&str, &str)> = chains(query).collect();
    let alone = chains.len() == 1;
    let is_one = |&&(chain, name): &&(&str, &str)| {
        let is_camel = has_inner_capital(name) && name.contains(char::is_lowercase);
        let is_linked = name.len() > 1 && (name.trim_matches('_').contains('_') || chain.len() > name.len());
        alone || is_camel || is_linked
    };
    chains.iter().filter(is_one).map(|&(_, name)| name).collect()
}

/// Iterate over the identifiers of a text with those that qualify them, and their last names.
fn chains(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_linked = |c: char| is_part(c) || matches!(c, ':' | '.' | '#' | '-' | '>');
    text.split(move |c| !is_linked(c)).filter_map(|run| {
        let run = run.trim_matches(|c| !is_part(c));
        let name = run.rsplit(|c| !is_part(c)).next()?;
        // "well-known", "1.5" and "a:b" do not count as identifiers.
        let links = run[..run.len() - name.len()].split(is_part).filter(|link| !link.is_empty());
        let is_chain = { links }.all(|link| matches!(link, "::" | "." | "->" | "#"));
        let begins = |name: &str| name.starts_with(|c: char| c == '_' || c.is_alphabetic());
        (begins(name) && begins(run)).then_some((if is_chain { run } else { name }, name))
    })
}

/// Return whether a character is part of an identifier.
fn is_part(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Return the words of a text in lower case; those in camel case as their parts.
fn plain_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let before = words.len();
        each_part(run, |part| words.push(part.to_lowercase()));
        if words.len() == before {
            words.push(run.to_lowercase());
        }
    }
    words
}

fn stem(word: &str) -> String {
    static STEMMER: OnceLock<Stemmer> = OnceLock::new();
    STEMMER.get_or_init(|| Stemmer::create(Algorithm::English)).stem(word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_apart_from_prose() {
        for text in ["def add(a, b):\n    return f(a) + b", "if (x) { y = z[0]; }"] {
            assert!(looks_like_code(text), "{text}");
        }
        let form = format!("Signed by the receiving party: {}", "_".repeat(60));
        for text in [
            "The Fram (built by Archer) sailed from Oslo to the islands of New Siberia in 1893.",
            &form,
            "",
            " \n",
            "Ja, vi elsker dette landet",
        ] {
            assert!(!looks_like_code(text), "{text}");
        }
    }

    #[test]
    fn files_of_code_are_told_apart_by_their_paths() {
        assert!(SUFFIXES.is_sorted());
        for path in ["a.py", "src/x/Y.KT", "lib/a.d.ts", "b/__init__.py", "a#x.rs"] {
            assert!(is_code(path), "{path}");
        }
        for path in ["README.md", "a/b.txt", "py", ".py", "a.py/notes.md", "doc-17", ""] {
            assert!(!is_code(path), "{path}");
        }
        for path in [
            "tests/a.py", "src/test/java/A.java", "a/test_b.py", "b_test.go", "x/FooSpec.scala",
            "FooTest.java", "a.test.ts", "types/index.d.ts", "m.pyi", "examples/a.rs", "a/__tests__/b.js",
            "conftest.py", "Spec/a.rb",
        ] {
            assert!(is_aside(path), "{path}");
        }
        for path in ["src/testing.py", "latest.py", "contest.go", "a/spectrum.rs", "Test.java", "attest_b.py"]
        {
            assert!(!is_aside(path), "{path}");
        }
    }

    #[test]
    fn pages_records_headers_and_versions_are_told_by_their_paths() {
        assert!(PAGES.is_sorted());
        for path in ["README.md", "docs/a.RST", "notes.txt"] {
            assert!(is_page(path), "{path}");
        }
        for path in ["a.py", "md", ".md", "a.md/b", "page.html", ""] {
            assert!(!is_page(path), "{path}");
        }
        for path in ["CHANGELOG.md", "docs/changes.rst", "LICENSE-MIT.txt", "THIRD-PARTY.md"] {
            assert!(is_record(path), "{path}");
        }
        assert!(!is_record("docs/changing.md") && !is_record("a/_.md"));
        assert_eq!(declared_by("src/idna.h"), Some("idna"));
        assert_eq!(is_source_of_headers("lib/idna.c"), Some("idna"));
        assert!(declared_by("idna.c").is_none() && is_source_of_headers("idna").is_none());
        assert_eq!(version_of("api/v2/user.go"), Some(("api/", 2)));
        assert_eq!(version_of("v10/a/v1/b.ts"), Some(("", 10)));
        for path in ["api/view/a.go", "v2.go", "a/v/b.go", "a/v99999999999/b.go"] {
            assert!(version_of(path).is_none(), "{path}");
        }
    }

    #[test]
    fn stems_of_who_does_it_and_neighbouring_words() {
        for (a, b) in [("logger", "log"), ("editor", "edit"), ("mapper", "map"), ("time", "timer")] {
            assert!(is_same(a, b), "{a} {b}");
        }
        assert!(!is_same("per", "p") && !is_same("cat", "car") && is_same("caller", "call"));
        assert_eq!(adjoined("URL-encoded forms"), ["urlencod", "encodedform"]);
        assert!(adjoined("one").is_empty());
    }

    #[test]
    fn queries_about_what_a_user_does_name_the_user() {
        for query in ["how do I install it", "what may a folder decide", "Why use a client?"] {
            assert!(asks_for_help(query), "{query}");
        }
        for query in ["how routes are matched", "blocking I/O", "scanner", ""] {
            assert!(!asks_for_help(query), "{query}");
        }
    }

    #[test]
    fn words_of_names_are_stems_of_their_parts() {
        assert_eq!(name_words("a/b/JsonReaders.java"), ["json", "reader"]);
        assert_eq!(name_words("src/shell_completion.py"), ["shell", "complet"]);
        assert_eq!(name_words("http2.go"), ["http2"]);
        for path in ["a/__init__.py", "index.ts", "src/mod.rs", "lib.rs", "main.c"] {
            assert!(name_words(path).is_empty(), "{path}");
        }
        assert_eq!(folder_words("src/coreTypes/a.py"), ["src", "core", "type"]);
        assert!(folder_words("a.py").is_empty());
        assert!(is_named("a/json_reader.py", "JsonReader") && is_named("x/Conn.ex", "conn"));
        assert!(!is_named("a/JsonReaders.java", "JsonReader") && !is_named("a/_.py", "_"));
        assert_eq!(
            stems("How are the JsonReaders of a parse_tree built?"),
            ["json", "reader", "pars", "tree", "built"]
        );
        assert!(
            is_same("config", "configur")
                && is_same("a", "a")
                && !is_same("pars", "part")
                && !is_same("js", "json")
        );
    }

    #[test]
    fn symbols_are_names_in_the_forms_of_code() {
        assert_eq!(asked_symbols("Context"), ["Context"]);
        assert_eq!(asked_symbols("where is render_template used"), ["render_template"]);
        assert_eq!(
            asked_symbols("Sinatra::Base routing and JsonReader, z.record"),
            ["Base", "JsonReader", "record"]
        );
        assert_eq!(asked_symbols("a well-known JSON object (v1.5): e.g. Zod"), [""; 0]);
        assert_eq!(asked_symbols("uv_run()"), ["uv_run"]);
        assert!(
            asked_symbols("").is_empty()
                && asked_symbols("12").is_empty()
                && asked_symbols("how it works").is_empty()
        );
    }

    #[test]
    fn queries_about_tests_name_them() {
        for query in
            ["tests for the parser", "unit test of retry", "testing client", "test_parser", "usage examples"]
        {
            assert!(asks_for_tests(query), "{query}");
        }
        assert!(!asks_for_tests("the latest contest") && !asks_for_tests(""));
    }
}
