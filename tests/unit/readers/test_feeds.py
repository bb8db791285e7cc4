"""Feeds, exported notes and outlines: an entry is a document."""

from __future__ import annotations

import base64

from tests.support.reading import read_all, read_one

RSS = b"""<?xml version="1.0"?>
<rss xmlns:content="c"><channel><title>Harbour news</title>
<item><title>Ferry &amp;amp; quay</title><link>https://e.org/1</link><category>ferry</category>
<pubDate>Tue, 05 Mar 2024 14:30:00 +0100</pubDate><description>short</description>
<content:encoded><![CDATA[<p>The ferry leaves at <b>06:40</b>.</p>]]></content:encoded></item>
<item><title>Two</title><description>plain &lt;b&gt;bold&lt;/b&gt;</description></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><title>At</title><entry><title>E1</title>
<link href="https://e.org/e1"/><author><name>Ann</name></author><updated>2024-03-05T10:00:00Z</updated>
<content type="xhtml"><div><p>Mixed <i>markup</i> here.</p></div></content></entry></feed>"""
NOTE = (
    '<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export3.dtd"><en-export><note>'
    "<title>Boat</title><content><![CDATA[<en-note><div>Epoxy</div><div>and rope</div></en-note>]]></content>"
    "<created>20240305T143000Z</created><tag>hull</tag><resource><data>{data}</data>"
    "<mime>text/plain</mime><resource-attributes><file-name>anchor.txt</file-name></resource-attributes>"
    "</resource></note></en-export>"
)


def test_rss() -> None:
    documents, failures = read_all("a.rss", RSS)
    assert failures == []
    assert [one.id for one in documents] == ["a.rss#1", "a.rss#2"]
    assert (documents[0].title, documents[0].text) == ("Ferry & quay", "The ferry leaves at 06:40.")
    assert documents[0].metadata == {
        "url": "https://e.org/1",
        "date": "2024-03-05T14:30:00+01:00",
        "tags": ["ferry"],
        "feed": "Harbour news",
    }
    assert documents[1].text == "plain bold"


def test_atom_under_any_name() -> None:
    for name in ("a.atom", "a.xml"):
        entry = read_one(name, ATOM)
        assert (entry.title, entry.text) == ("E1", "Mixed markup here.")
        assert entry.metadata["author"] == "Ann" and entry.metadata["url"] == "https://e.org/e1"


def test_notes_and_their_attachments() -> None:
    data = NOTE.replace("{data}", base64.b64encode(b"The anchor weighs 12 kg.").decode())
    documents, failures = read_all("a.enex", data.encode())
    assert failures == []
    assert [(one.id, one.text) for one in documents] == [
        ("a.enex#1", "Epoxy\nand rope"),
        ("a.enex/1/anchor.txt", "The anchor weighs 12 kg."),
    ]
    assert documents[0].metadata["attachments"] == ["anchor.txt"]
    assert documents[0].metadata["tags"] == ["hull"] and documents[0].metadata["date"] == "2024-03-05"


def test_an_outline() -> None:
    data = b'<opml><head><title>Plan</title></head><body><outline text="Spring"><outline text="Paint" _note="two coats"/></outline></body></opml>'  # noqa: E501
    found = read_one("a.opml", data)
    assert (found.title, found.text) == ("Plan", "Spring\nPaint\ntwo coats")


def test_feeds_without_entries_are_failures() -> None:
    assert read_all("a.rss", b"<rss><channel/></rss>")[1] == ["a.rss: the feed has no entries"]
    assert read_all("a.opml", b"<opml/>")[1] == ["a.opml: the outline has no entries"]
