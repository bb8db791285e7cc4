"""HTML that DocBook's stylesheets write: sub-headings, title, front matter, and where a passage is cited."""

from __future__ import annotations

from ketrag_fast.readers.html import close_empty_elements
from ketrag_fast.types.locations import location_of
from tests.support.parts import part
from tests.support.reading import read_one

part("resiliparse", "documents")

BODY = "The sledges were drawn by dogs over the ice, and the men walked next to them for many days. " * 4
PAGE = f"""<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Chapter 2. On the ice</title>
<meta name="generator" content="DocBook XSL Stylesheets Vsnapshot"/></head><body>
<div class="navheader"><table><tr><th colspan="3">Chapter 2. On the ice</th></tr>
<tr><td><a accesskey="p" href="a.html">Prev</a></td>
<td><a accesskey="n" href="c.html">Next</a></td>
</tr></table><hr/></div>
<div class="chapter">
<div class="titlepage"><div><div>
<h1 class="title"><a id="ice"/>Chapter 2. On the ice</h1></div>
<div class="author"><h3 class="author"><span>Aeneas Mackintosh</span></h3></div>
<div class="legalnotice"><p>This text may be copied.</p></div></div></div>
<div class="toc"><dl><dt><a href="#dogs">2.1. Dogs</a></dt></dl></div>
<p>{BODY}</p>
<div class="section"><div class="titlepage"><div><div>
<h2 class="title" style="clear: both"><a id="dogs"/>2.1. Dogs</h2></div></div></div><p>{BODY}</p>
<div class="section"><div class="titlepage"><div><div>
<h3 class="title"><a id="food"/>2.1.1. Food</h3></div></div></div><p>{BODY}</p></div></div></div>
<div class="navfooter"><hr/><a accesskey="p" href="a.html">Prev</a> Home</div></body></html>"""


def test_sub_headings_are_found_behind_empty_anchors() -> None:
    found = read_one("a.html", PAGE.encode())
    headings = [one.value for one in found.locators if one.kind == "heading"]
    assert headings == [["2.1. Dogs"], ["2.1. Dogs", "2.1.1. Food"]]
    assert found.title == "Chapter 2. On the ice"


def test_navigation_and_front_matter_are_left_out() -> None:
    found = read_one("a.html", PAGE.encode())
    for left_out in ("Prev", "Next", "Home", "Mackintosh", "may be copied"):
        assert left_out not in found.text
    assert found.text.count("Chapter 2. On the ice") == 1
    assert found.text.count(BODY.strip()) == 3


def test_a_passage_above_the_first_heading_is_not_cited_under_it() -> None:
    found = read_one("a.html", PAGE.encode())
    first = next(one.start for one in found.locators if one.kind == "heading")
    assert "heading" not in location_of(found.locators, 0, first + 40)
    assert location_of(found.locators, first - 4, first + 40)["heading"] == ["2.1. Dogs"]
    assert location_of(found.locators, first, first + 40)["heading"] == ["2.1. Dogs"]


def test_the_heading_of_a_later_section_is_not_the_title() -> None:
    page = f"<html><body><p>{BODY}</p><h2>Dogs</h2><p>{BODY}</p><h2>Men</h2><p>{BODY}</p></body></html>"
    found = read_one("a.html", page.encode())
    assert found.title != "Dogs"
    assert [one.value for one in found.locators if one.kind == "heading"] == [["Dogs"], ["Men"]]


def test_the_heading_before_the_text_is_added_to_the_title() -> None:
    """Its words, often the name of the site, are found in every section of the page."""

    def title_of(title: str) -> str:
        banner = '<h1 id="header"><a href="/">Exim Internet Mailer</a></h1>'
        content = f'<div id="content"><h2>Quotas</h2><p>{BODY * 4}</p></div>'
        page = f"<html><head><title>{title}</title></head><body>{banner}{content}</body></html>"
        found = read_one("a.html", page.encode())
        assert "Internet Mailer" not in found.text
        return found.title

    assert title_of("26. Transports") == "26. Transports - Exim Internet Mailer"
    assert title_of("Transports of the Exim mailer") == "Transports of the Exim mailer"
    assert title_of("") == "Quotas - Exim Internet Mailer"


def test_only_pages_written_as_xml_get_ends_of_empty_elements() -> None:
    assert close_empty_elements("<html><p>1 <a/> 2") == "<html><p>1 <a/> 2"
    xml = '<?xml version="1.0"?><html><a id="x"/><br/><script src="y"/><img alt="/"/>'
    assert close_empty_elements(xml) == xml.replace('<a id="x"/>', '<a id="x"></a>')
