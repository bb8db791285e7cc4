"""Sources that only an index names: nothing is read from them before they are named or confirmed."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from ketrag_fast import Document, Index, Settings
from ketrag_fast.apps.cli.main import main
from ketrag_fast.index.named_sources import named_sources, trust_sources
from ketrag_fast.storage import confirmations, source_trust
from ketrag_fast.storage.layout import Layout

SECRET = "the password of the vault is swordfish"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home folder with a private folder, and the state folder of that user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of the user"))
    private = tmp_path / "home" / "private"
    private.mkdir(parents=True)
    (private / "ship.md").write_text("# Ship\n\nThe Fram sailed into the ice.\n")
    return tmp_path / "home"


@pytest.fixture
def foreign(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index that somebody else packed, whose source is a folder that the user has too."""
    with monkeypatch.context() as other:
        other.setenv("XDG_STATE_HOME", str(tmp_path / "state of somebody else"))
        Index.build(home / "private", tmp_path / "theirs" / ".ketrag").close()
    with tarfile.open(tmp_path / "their.tar", "w") as tar:
        tar.add(tmp_path / "theirs", "project")
    with tarfile.open(tmp_path / "their.tar") as tar:
        tar.extractall(home, filter="data")
    (home / "private" / "key.md").write_text(f"# Vault\n\n{SECRET}\n")
    return home / "project" / ".ketrag"


def has_secret(path: Path) -> bool:
    with Index.open(path, settings=Settings(refresh="never")) as index:
        return bool(index.grep("swordfish"))


def test_an_unpacked_index_answers_and_reports_why_it_is_not_refreshed(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(foreign.parent)
    for words in (
        ["search", "ice"],
        ["search", "ice", "--fresh"],
        ["grep", "ice"],
        ["retrieve", "ice"],
        ["ask", "Where did the Fram sail?"],
    ):
        assert main(words) == 0
        out, err = capfd.readouterr()
        assert "ice" in out and SECRET not in out
        assert "was not made in this folder of this machine" in err
        assert "ketrag trust -i .ketrag --sources" in err
    assert main(["index"]) == 3, "sources that could not be read are failures"
    assert "its sources are not read" in capfd.readouterr().err
    assert main(["index", "--replace", str(foreign.parent)]) in (0, 1)
    assert not has_secret(foreign)


def test_python_does_not_read_them_either(foreign: Path) -> None:
    with Index.open(foreign) as index:
        found = index.freshen("always")
        assert found.changes == 0 and not found.updated
        assert found.reason is not None and "its sources are not read" in found.reason
        index.update(add=Document("new", "a new document", "new"))
    with Index.build((), foreign) as index:
        assert index.report is not None
        assert [failure.code for failure in index.report.failures] == ["source"]
        assert index.inspect.document_count == 2, "documents of sources that are not read stay"
    with Index.open(foreign) as index:
        assert index.preview(reread=True).added == 0
    assert not has_secret(foreign)


def test_a_folder_below_an_unconfirmed_source_is_read_alone(foreign: Path, home: Path) -> None:
    """The user names a folder below the one that the index names: only the former is read."""
    own = home / "private" / "notes"
    own.mkdir()
    (own / "mine.md").write_text("# Mine\n\nA harbour of my own.\n")
    for add in (True, False):
        with Index.open(foreign) as index:
            if add:
                index.update(add=own)
            else:
                Index.build([own], foreign).close()
    with Index.open(foreign) as index:
        assert index.grep("harbour of my own")
    assert not has_secret(foreign)
    assert {one.spec: one.trusted for one in named_sources(foreign)} == {
        str(home / "private"): False,
        str(own): True,
    }


def test_confirmed_sources_are_read_until_that_is_withdrawn(
    foreign: Path, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["trust", "-i", str(foreign)]) == 0
    assert f"source: {home / 'private'} (not confirmed: it is not read)" in capfd.readouterr().out
    assert main(["trust", "-i", str(foreign), "--sources"]) == 0
    assert f"source: {home / 'private'} (confirmed)" in capfd.readouterr().out
    assert main(["search", "swordfish", "-i", str(foreign), "--fresh"]) == 0
    out, err = capfd.readouterr()
    assert "swordfish" in out and "not read" not in err
    assert main(["trust", "-i", str(foreign), "--sources", "--forget"]) == 0
    (home / "private" / "other.md").write_text("# Other\n\nanother secret, halibut\n")
    assert main(["search", "halibut", "-i", str(foreign), "--fresh", "--json"]) in (0, 1)
    out, err = capfd.readouterr()
    (notice,) = json.loads(out.splitlines()[-1])["notices"]
    assert "another secret" not in out and "not read" in notice and not err


@pytest.mark.parametrize("how", ["moved", "copied", "other machine", "other user", "other identity"])
def test_what_is_moved_or_copied_is_not_refreshed(
    how: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "index"
    Index.build(home / "private", path).close()
    (home / "private" / "key.md").write_text(f"# Vault\n\n{SECRET}\n")
    if how == "moved":
        path = path.rename(home / "elsewhere")
    elif how == "copied":
        path = Path(shutil.copytree(path, home / "copy"))
    elif how == "other machine":
        monkeypatch.setattr(source_trust, "_machine", lambda: "another")
    elif how == "other user":
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another user"))
    else:
        confirmations.draw_identity(Layout(path))
    with Index.open(path) as index:
        assert "its sources are not read" in (index.freshen("always").line or "")
    assert not has_secret(path)


def test_an_archive_unpacked_over_an_index_adds_no_source(home: Path, tmp_path: Path) -> None:
    """The identity of the index is that of the user's, and its tables name another source."""
    public = tmp_path / "public"
    public.mkdir()
    (public / "a.md").write_text("# A\n\nplain words\n")
    Index.build(public, home / "index").close()
    assert Index.open(home / "index").freshen("always").reason is None
    Index.build(home / "private", tmp_path / "theirs").close()
    (home / "private" / "key.md").write_text(f"# Vault\n\n{SECRET}\n")
    for path in (tmp_path / "theirs").iterdir():
        if path.name != "index.id":
            own = home / "index" / path.name
            if path.is_dir():
                shutil.rmtree(own, ignore_errors=True)
                shutil.copytree(path, own)
            else:
                shutil.copyfile(path, own)
    with Index.open(home / "index") as index:
        assert "its sources are not read" in (index.freshen("always").line or "")
    Index.build((), home / "index").close()
    assert not has_secret(home / "index")


def test_a_merge_takes_the_confirmed_sources_of_its_parts(home: Path, foreign: Path, tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    (public / "a.md").write_text("# A\n\nplain words\n")
    Index.build(public, home / "mine").close()
    Index.merge([home / "mine", foreign], home / "both").close()
    assert {one.spec: one.trusted for one in named_sources(home / "both")} == {
        str(public): True,
        str(home / "private"): False,
    }
    Index.build((), home / "both").close()
    assert not has_secret(home / "both")


def test_an_unbundled_index_names_sources_that_are_not_read(home: Path, tmp_path: Path) -> None:
    Index.build(home / "private", home / "index").close()
    assert main(["bundle", "-i", str(home / "index"), str(tmp_path / "file")]) == 0
    assert main(["import", "bundle", str(tmp_path / "file"), "-i", str(home / "mine")]) == 0
    (home / "private" / "key.md").write_text(f"# Vault\n\n{SECRET}\n")
    assert main(["index", "-i", str(home / "mine")]) == 3
    assert not has_secret(home / "mine")
    trust_sources(home / "mine")
    assert main(["index", "-i", str(home / "mine")]) == 0
    assert has_secret(home / "mine")


def test_a_state_folder_that_cannot_be_written_is_a_warning(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    with Index.build(home / "private", home / "index") as index:
        assert index.report is not None
        assert "later builds read them only if they are named again" in index.report.warnings[0]


@pytest.mark.parametrize(
    "words", [["search", "ice"], ["retrieve", "ice"], ["ask", "Where did the Fram sail?"]]
)
def test_json_has_the_notice_as_a_field(
    words: list[str], foreign: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-i", str(foreign), "--json"]) == 0
    out, err = capfd.readouterr()
    (notice,) = json.loads(out)["notices"]
    assert "its sources are not read" in notice and not err
    assert main([*words, "-i", str(foreign), "--json", "-q"]) == 0
    assert "notices" not in json.loads(capfd.readouterr().out)


def test_an_error_and_grep_have_the_notice_in_json_on_stderr(
    foreign: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["grep", "(", "--index", str(foreign), "--json"]) != 0
    out, err = capfd.readouterr()
    error = json.loads(err)
    assert error["schema"] == "ketrag/error/1" and len(error["notices"]) == 1 and not out
    assert main(["grep", "ice", "--index", str(foreign), "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(err)["schema"] == "ketrag/notices/1" and "notices" not in json.loads(
        out.splitlines()[0]
    )
