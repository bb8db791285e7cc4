//! Definitions and imports in a passage of code, by the words and signs around a name.

use super::is_part;

/// Words before the name of a definition.
const BEFORE: &[&str] = &[
    "alias", "class", "const", "data", "def", "define", "defmacro", "defmodule", "defp", "defprotocol",
    "enum", "extension", "fn", "fun", "func", "function", "impl", "interface", "let", "macro_rules!",
    "module", "namespace", "newtype", "object", "package", "protocol", "record", "static", "struct", "sub",
    "trait", "type", "typedef", "union", "val", "var",
];
/// First words of lines that call a function and do not define it.
const CONTROL: &[&str] = &[
    "assert", "await", "case", "catch", "do", "elif", "else", "except", "for", "if", "match", "new", "not",
    "raise", "return", "switch", "throw", "until", "unless", "while", "yield",
];
/// First words of lines that import or export what other files define.
const IMPORTS: &[&str] =
    &["import", "from", "use", "using", "package", "alias", "require", "open", "include", "#include"];
/// Marks of comments at the start of a line.
const COMMENTS: [&str; 4] = ["//", "*", "/*", "--"];

/// Return whether a passage of code defines a name: after a word such as `class` or `def`, or as the function of a line
/// such as `int name(...)` without a semicolon, or `name(...) {`.
pub fn defines(text: &str, name: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    text.match_indices(name).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + name.len()..]);
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        is_whole && (follows_keyword(before) || is_function(before, after))
    })
}

/// Return the text without what qualifies the name at its end: `Sinatra::`, `self.`, `(r *Reader) `.
fn unqualified(before: &str) -> &str {
    let text = before.trim_end_matches(|c| is_part(c) || matches!(c, ':' | '.'));
    let is_chain = before[text.len()..].ends_with([':', '.']);
    let text = if is_chain { text } else { before };
    let spaced = text.trim_end_matches([' ', '\t']);
    match spaced.strip_suffix(')').and_then(|inner| inner.rsplit_once('(')) {
        Some((outer, _)) if outer.trim_end().ends_with("func") => outer, // the receiver of a method in Go
        _ => text,
    }
}

fn follows_keyword(before: &str) -> bool {
    let text = unqualified(before);
    let trimmed = text.trim_end_matches([' ', '\t', '*', '&']);
    let word = trimmed.rsplit(|c: char| !is_part(c) && c != '!').next().unwrap_or("");
    let ahead = &trimmed[..trimmed.len() - word.len()];
    trimmed.len() < text.len() && BEFORE.contains(&word) && !ahead.ends_with('.')
}

/// Return whether a line is the head of a function without a keyword, given the text before and after its name.
fn is_function(before: &str, after: &str) -> bool {
    if !after.starts_with('(') {
        return false;
    }
    let head = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    let (tail, below) = after.split_once('\n').unwrap_or((after, ""));
    let tail = tail.trim_end();
    let is_plain = |c: char| is_part(c) || c.is_whitespace() || "*&:<>~[],.@?".contains(c);
    let is_call = head.split_whitespace().next().is_some_and(|word| CONTROL.contains(&word));
    if is_call || !head.chars().all(is_plain) {
        return false;
    }
    let is_outer = head.starts_with(|c: char| c == '_' || c.is_alphabetic());
    tail.ends_with('{') || (head.is_empty() && below.starts_with('{')) || (is_outer && !tail.ends_with(';'))
}

/// Return whether more than half of a passage's lines of code import or export what other files define.
pub fn is_imports(text: &str) -> bool {
    let (mut imports, mut lines) = (0, 0);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if COMMENTS.iter().any(|mark| line.starts_with(mark)) {
            continue;
        }
        lines += 1;
        let first = line.split(|c: char| c.is_whitespace() || c == '(' || c == '<').next().unwrap_or("");
        let is_passed_on = || {
            let rest = line.strip_prefix("export").or_else(|| line.strip_prefix("pub use"));
            rest.is_some_and(|rest| rest.trim_start().starts_with(['*', '{']))
        };
        imports += u32::from(IMPORTS.contains(&first) || line.starts_with("pub use ") || is_passed_on());
    }
    2 * imports > lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_follow_keywords_or_are_heads_of_functions() {
        for (text, name) in [
            ("class Context:", "Context"),
            ("    def render(self):", "render"),
            ("export const ZodObject = 1", "ZodObject"),
            ("pub struct Reader<'a> {", "Reader"),
            ("func (r *Reader) Read(p []byte) {", "Read"),
            ("def self.run!", "run"),
            ("defmodule Plug.Conn do", "Conn"),
            ("#define UV_MAX 3", "UV_MAX"),
            ("int uv_run(uv_loop_t* loop) {", "uv_run"),
            ("static int\nuv__open(const char* path)\n{", "uv__open"),
            ("  public void read(int x) {", "read"),
            ("local function start()", "start"),
            ("template <class T> class Set {", "Set"),
        ] {
            assert!(defines(text, name), "{text}");
        }
        for (text, name) in [
            ("x = Context()", "Context"),
            ("  uv_run(loop);", "uv_run"),
            ("int uv_run(uv_loop_t* loop);", "uv_run"),
            ("if read(x) {", "read"),
            ("return read(x)", "read"),
            ("class Contexts:", "Context"),
            ("myclass Context", "Context"),
            ("self.class Context", "Context"),
            ("import Context", "Context"),
            ("", "x"),
            ("class x", ""),
        ] {
            assert!(!defines(text, name), "{text}");
        }
    }

    #[test]
    fn imports_are_lines_that_bring_in_other_files() {
        for text in [
            "import a\nfrom b import c\n\nx = 1",
            "export * from './a'\nexport { b } from './b'",
            "// c\n#include <a.h>",
            "use a::b;\npub use c;\nmod d;",
        ] {
            assert!(is_imports(text), "{text}");
        }
        for text in [
            "", "// import a", "import a\nx = 1\ny = 2", "export function f() {}", "important()",
            "a\nimport b",
        ] {
            assert!(!is_imports(text), "{text}");
        }
    }
}
