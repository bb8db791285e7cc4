//! Whole pages: what is kept, what is left out, and how tables and verbatim text are printed.

use ketrag_web::{read, Text};

fn text(body: &str) -> String {
    read(&format!("<body>{body}</body>"), false).text.text
}

fn paragraphs(count: usize) -> String {
    (0..count).map(|at| format!("<p>The men of sledge {at} went over the ice for many days.</p>")).collect()
}

#[test]
fn navigation_comments_and_hidden_elements_are_left_out() {
    let page = format!(
        "<nav>Home</nav><div class=\"post-meta\">By Ann</div>{}<div style=\"display: none\">Secret</div>\
         <ol class=\"commentlist\"><li>First!</li></ol><aside>Buy this</aside><footer>Imprint</footer>",
        paragraphs(5)
    );
    let found = text(&page);
    for left_out in ["Home", "Ann", "Secret", "First", "Buy", "Imprint"] {
        assert!(!found.contains(left_out), "{left_out} in {found}");
    }
    assert!(found.contains("sledge 4"));
    let whole = read(&page, true).text.text;
    assert!(whole.contains("Home") && whole.contains("Imprint"));
}

#[test]
fn an_element_with_most_of_the_text_is_kept_whatever_its_name() {
    let page = format!("<div class=\"promo\">{}</div>", paragraphs(6));
    assert!(text(&page).contains("sledge 5"));
}

#[test]
fn a_section_may_have_the_id_of_its_heading() {
    let section = format!("<section id=\"edit-menu\"><h2>Edit menu</h2>{}</section>", paragraphs(1));
    let found = text(&format!("<main>{}{section}{}</main>", paragraphs(4), paragraphs(2)));
    assert!(found.contains("Edit menu"));
}

#[test]
fn a_section_of_a_manual_may_have_the_id_of_its_heading() {
    let section = format!("<div class=\"subsection\" id=\"Widgets\"><h3>Widgets</h3>{}</div>", paragraphs(1));
    let found = text(&format!("{}{section}{}", paragraphs(4), paragraphs(2)));
    assert!(found.contains("Widgets"));
}

#[test]
fn a_large_section_does_not_displace_its_neighbours() {
    let section =
        |name: &str, count| format!("<div class=\"sect2\"><h3>{name}</h3>{}</div>", paragraphs(count));
    let page =
        format!("<div class=\"sect1\"><h2>Sledges</h2>{}{}</div>", section("Long", 40), section("Short", 1));
    let found = text(&page);
    assert!(found.starts_with("Sledges") && found.contains("Short"), "{found}");
}

#[test]
fn a_paragraph_next_to_a_large_table_is_kept() {
    let row = "<tr><td>The men of a sledge</td><td>went over the ice for many days and nights.</td></tr>";
    let table = format!("<div><table>{}</table></div>", row.repeat(30));
    let found = text(&format!("<div><p>The table lists all of the men by their sledge.</p>{table}</div>"));
    assert!(found.starts_with("The table lists"), "{found}");
}

#[test]
fn comments_in_highlighted_code_are_text() {
    let code = "<pre><span class=\"kw\">go</span> <span class=\"comment\"># over the ice</span></pre>";
    let found = text(&format!("{}{code}", paragraphs(6)));
    assert!(found.ends_with("go # over the ice"), "{found}");
}

#[test]
fn a_short_page_is_read_without_its_navigation() {
    let bar = "<div class=\"navheader\"><a href=\"a\">Previous chapter</a> <a href=\"b\">Next chapter</a> Ships</div>";
    assert_eq!(text(&format!("{bar}<h1>Sledges</h1><p>None.</p>{bar}")), "Sledges\n\nNone.");
}

#[test]
fn a_table_of_contents_is_left_out_but_its_links_are_kept() {
    let entries: String =
        (0..30).map(|at| format!("<dt><a href=\"p{at}\">Go</a> over ice {at}</dt>")).collect();
    let page = format!("<h1>Reference</h1><p>All of the commands, each with its options and an example.</p><div class=\"toc\"><dl>{entries}</dl></div>");
    let found = read(&page, false);
    assert_eq!(found.text.text, "Reference\n\nAll of the commands, each with its options and an example.");
    assert_eq!(found.links.len(), 30);
}

#[test]
fn the_heading_of_a_list_of_links_is_kept_if_its_section_goes_on() {
    let page = |rest: &str| {
        let list = "<h2>List of commands</h2><ul><li><a href=\"a\">first</a></li><li><a href=\"b\">second</a></li></ul>";
        text(&format!("<h2>Use</h2>{}{list}{rest}<h2>End</h2>{}", paragraphs(4), paragraphs(4)))
    };
    assert!(page(&paragraphs(2)).contains("List of commands\n\nThe men"));
    assert!(!page("").contains("List of commands"));
}

#[test]
fn a_list_whose_items_say_something_about_their_links_is_kept() {
    let items: String =
        (0..9).map(|at| format!("<li><a href=\"c{at}\">CHECK rule {at}</a> is the same.</li>")).collect();
    let found = text(&format!("{}<ul>{items}</ul>{}", paragraphs(4), paragraphs(4)));
    assert!(found.contains("CHECK rule 8 is the same."), "{found}");
}

#[test]
fn a_heading_before_the_text_is_returned_apart() {
    let page = |head: &str| format!("{head}<div id=\"content\"><h2>Sledges</h2>{}</div>", paragraphs(6));
    let found = read(&page("<h1 id=\"header\"><a href=\"/\">The <b>Polar</b> Library</a></h1>"), false);
    assert_eq!(found.banner, "The Polar Library");
    assert!(!found.text.text.contains("Library"));
    assert_eq!(read(&page("<nav><h1>Menu</h1></nav>"), false).banner, "");
    assert_eq!(read(&page(&format!("<h1>{}</h1>", "long ".repeat(40))), false).banner, "");
}

#[test]
fn an_article_in_several_pieces_is_kept_whole() {
    let piece = |at: usize| format!("<div class=\"article__body\"><p>Piece {at}.</p>{}</div>", paragraphs(4));
    let page =
        format!("<div><div>{}{}{}</div></div><div>{}</div>", piece(1), piece(2), piece(3), "<p>Other</p>");
    let found = text(&page);
    assert!((1..=3).all(|at| found.contains(&format!("Piece {at}."))), "{found}");
}

#[test]
fn lists_of_links_are_left_out_with_their_heading_but_not_from_an_index() {
    let menu =
        "<h3>More</h3><ul><li><a href=\"a\">Home page</a></li><li><a href=\"b\">Other page</a></li></ul>";
    let found = text(&format!("{}{menu}<p>The end of this text.</p>", paragraphs(6)));
    assert!(!found.contains("Home page") && !found.contains("More"), "{found}");
    let index: String =
        (0..60).map(|at| format!("<li><a href=\"p{at}\">Chapter {at} of it</a></li>")).collect();
    assert!(text(&format!("<h1>Contents</h1><ul>{index}</ul>")).contains("Chapter 59"));
}

#[test]
fn rows_of_tables_are_lines() {
    let rows = "<tr><th></th><th>May</th><th>June</th></tr>\
                <tr><td><p>Dogs</p></td><td><p>9</p><p>(all)</p></td><td></td></tr>\
                <tr><td colspan=\"2\">Men</td><td>28</td></tr>";
    let found = text(&format!("{}<table><tbody>{rows}</tbody></table>", paragraphs(3)));
    assert!(found.ends_with("\n\tMay\tJune\nDogs\t9 (all)\nMen\t\t28"), "{found:?}");
}

#[test]
fn a_cell_over_several_rows_is_repeated_in_each() {
    let rows = "<thead><tr><th>Port</th><th>Fish</th><th>Year</th></tr></thead><tbody>\
                <tr><td rowspan=\"3\">Bergen</td><td>cod</td><td rowspan=\"2\">1901</td></tr>\
                <tr><td>ling</td></tr>\
                <tr><td colspan=\"2\">none</td></tr>\
                <tr><td rowspan=\"0\" colspan=\"2\">all</td><td>1902</td></tr><tr><td>1903</td></tr></tbody>\
                <tbody><tr><td>Oslo</td><td>eel</td></tr></tbody>";
    let found = text(&format!("{}<table>{rows}</table>", paragraphs(3)));
    let wanted = "\nPort\tFish\tYear\nBergen\tcod\t1901\nBergen\tling\t1901\nBergen\tnone\n\
                  all\t\t1902\nall\t\t1903\nOslo\teel";
    assert!(found.ends_with(wanted), "{found:?}");
}

#[test]
fn long_cells_and_many_rows_are_not_repeated_without_end() {
    let long = "word ".repeat(50);
    let rows = format!("<tr><td rowspan=\"9\">{long}</td><td>a</td></tr><tr><td>b</td></tr>");
    let found = text(&format!("{}<table>{rows}</table>", paragraphs(3)));
    assert_eq!(found.matches("word word").count(), 25, "{found:?}");
    let cells = "<td rowspan=\"60000\">a text of some length that is repeated</td>".repeat(40);
    let page = format!("<table><tr>{cells}</tr>{}</table>", "<tr><td>x</td></tr>".repeat(20_000));
    assert!(text(&page).len() < 8 * page.len(), "{}", text(&page).len());
}

#[test]
fn an_empty_cell_before_the_only_text_of_a_row_leaves_no_tab() {
    let note =
        "<table><tr><td><img src=\"note.png\"></td><th>Note</th></tr><tr><td>Take care.</td></tr></table>";
    let found = text(&format!("{}{note}<p>End.</p>", paragraphs(3)));
    assert!(found.ends_with("\nNote\nTake care.\n\nEnd."), "{found:?}");
}

#[test]
fn a_table_that_arranges_the_page_is_paragraphs() {
    let found = text(&format!("<table><tr><td>{}</td><td>aside</td></tr></table>", paragraphs(8)));
    assert!(found.contains("days.\n\nThe men"), "{found:?}");
}

#[test]
fn verbatim_text_keeps_its_indents_across_elements() {
    let code = "<pre><b>if</b> x:\n    <i>return</i> 1 &lt; 2  \n\n\n<i>  </i>done</pre>";
    let found = text(&format!("{}{code}<p>After.</p>", paragraphs(3)));
    assert!(found.ends_with("\n\nif x:\n    return 1 < 2\n\n  done\n\nAfter."), "{found:?}");
}

#[test]
fn headings_have_offsets_in_characters() {
    let page = format!("<p>Größe.</p><h2>Über <b>Eis</b><a href=\"#x\">¶</a></h2>{}", paragraphs(6));
    let Text { text, headings, characters, .. } = read(&page, false).text;
    let (begin, level, name) = &headings[0];
    assert_eq!((*begin, *level, name.as_str()), (8, 2, "Über Eis"));
    assert!(text.chars().skip(*begin).collect::<String>().starts_with("Über Eis\n"));
    assert_eq!(characters, text.chars().count());
}

#[test]
fn links_leave_out_navigation_fragments_and_other_schemes() {
    let page = "<nav><a href=\"n\">n</a></nav><div class=\"x sidebar\"><a href=\"s\">s</a></div>\
                <a href=\"b.html#c\">b</a><a href=\"b.html\">b</a><a href=\"#d\">d</a><a href=\"mailto:x\">m</a>\
                <a href=\"//host/?a=1&amp;b=2\">h</a>";
    assert_eq!(read(page, false).links, ["b.html", "//host/?a=1&b=2"]);
}

#[test]
fn any_markup_is_read() {
    let broken = [
        "", "<", "</", "<a", "<a href=\"", "<a =\"x\">y", "<!--", "<pre>", "</p>x", "<script>", "a&b&amp",
        "<é>é",
    ];
    for markup in broken {
        read(markup, false);
        read(markup, true);
    }
    for deep in ["<div>x", "<ul><li>x", "<table><tr><td>x", "<a>x", "<template>x"] {
        read(&deep.repeat(20_000), false);
    }
}

#[test]
fn captions_are_text_and_line_numbers_are_not() {
    let figure = "<figure><img src=a><figcaption class=\"caption\">Puffins in June</figcaption></figure>";
    let listing = "<pre><code><span class=\"ln\">1</span>make install\n<span class=\"ln\">2</span>make test</code></pre>";
    let table = "<table class=\"highlighttable\"><tr><td class=\"linenos\"><div><pre>1\n2</pre></div></td>\
         <td class=\"code\"><pre>x = 1\ny = 2</pre></td></tr></table>";
    let drawing = "<figure><svg><text>Engine room</text></svg></figure><svg><path d=\"x\"></path></svg>";
    let found = text(&format!("<main>{}{figure}{listing}{table}{drawing}</main>", paragraphs(6)));
    assert!(found.contains("Puffins in June") && found.contains("Engine room"), "{found}");
    assert!(found.contains("\n\nmake install\nmake test\n\nx = 1\ny = 2"), "{found}");
}

#[test]
fn superscripts_and_formulas() {
    let body = "<p>The fee rose<sup>1</sup> to 10<sup>6</sup>. Since 2019<sup><a href=\"#n\">12</a></sup> H<sub>2</sub>O \
        and <math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac><mo>=</mo><msqrt><mi>x</mi>\
        </msqrt><annotation>frac</annotation></math> hold.</p>";
    let found = text(&format!("<main>{}{body}</main>", paragraphs(6)));
    assert!(found.contains("The fee rose[1] to 10^6. Since 2019[12] H2O and (a+b)/2 = √x hold."), "{found}");
}

#[test]
fn marks_of_notes_in_books_are_apart_from_the_word() {
    let body = "<p>The ice melted<a epub:type=\"noteref\" href=\"#n\">3</a> early, in 2019<sup><a role=\"doc-noteref\" \
        href=\"#n\">12</a></sup>, and 2020<a epub:type=\"noteref\" href=\"#m\"><sup>4</sup></a>. Ten<a href=\"#x\">7</a>.</p>";
    let found = text(&format!("<main>{}{body}</main>", paragraphs(6)));
    assert!(found.contains("The ice melted[3] early, in 2019[12], and 2020[4]. Ten7."), "{found}");
}

#[test]
fn hidden_text_of_a_mail_is_left_out() {
    let body = "<body><div style=\"display:none;font-size:1px\">Preheader</div><p style=\"font-size:0.9em\">Hello</p></body>";
    assert_eq!(read(body, true).text.text, "Hello");
    assert_eq!(read("<body><p style=\"opacity:0\">Only this</p></body>", true).text.text, "Only this");
}

#[test]
fn filled_forms_are_labels_and_values() {
    let form = "<form><p><label for=\"n\">Boat name</label><input id=\"n\" value=\"Sula\"> <label>Length: <input \
        type=\"number\" value=\"9.4\"></label></p><p>Harbour <select><option>Bergen</option><option selected=\"\">Narvik\
        </option></select></p><p><textarea>Needs shore power</textarea></p><p><label><input type=\"checkbox\" checked=\"\"> \
        Member</label> <label><input type=\"radio\"> Guest</label></p><input type=\"hidden\" value=\"token\"><input \
        type=\"password\" value=\"secret\"><input type=\"submit\" value=\"Send\"></form>";
    let found = text(&format!("<main>{}{form}</main>", paragraphs(6)));
    let fields =
        "Boat name: Sula Length: 9.4\n\nHarbour: Narvik\n\nNeeds shore power\n\n[x] Member [ ] Guest";
    assert!(found.ends_with(fields), "{found}");
    let empty = "<form>Search the site <input type=\"text\" value=\"\"><select><option selected=\"\">All</option></select></form>";
    let found = text(&format!("<main>{}{empty}</main>", paragraphs(6)));
    assert!(!found.contains("Search the site") && !found.contains("All"), "{found}");
}
