"""`ketrag collections` and `ketrag describe`: named indexes, and descriptions of folders."""

from __future__ import annotations

from dataclasses import dataclass

from ketrag_fast.apps.cli import options, output
from ketrag_fast.apps.cli.command import Command, argument, switch
from ketrag_fast.apps.cli.terminal import display_path, inline
from ketrag_fast.errors import ConfigError
from ketrag_fast.types.wording import counted


@dataclass(frozen=True, kw_only=True)
class Collections(Command):
    """List the indexes in the user's data folder: name, size, age and sources. `ketrag index SOURCE... --name
    NAME` makes one, -c NAME uses it from any folder."""

    examples = ("ketrag collections", "ketrag collections --json")

    def run(self) -> int:
        """Print the collections."""
        from ketrag_fast.index.collections import age_text, collections, collections_folder

        found = collections()
        if self.json:
            rows = [one.to_json() for one in found]
            output.write_json(
                {"schema": "ketrag/collections/1", "folder": str(collections_folder()), "collections": rows}
            )
            return 0
        lines = []
        wide = max((len(one.name) for one in found), default=0)
        for one in found:
            count = "unreadable" if one.documents is None else counted(one.documents, "document")
            about = f"{count:>16}  {output.size_text(one.size):>9}  {age_text(one.built):<14}"
            sources = ", ".join(inline(display_path(source)) for source in one.sources)
            lines.append(f"{one.name:<{wide}}  {about}  {sources}".rstrip())
            if one.description:
                lines.append(f"{'':<{wide}}  {inline(one.description)}")
        if lines:
            output.write("\n".join(lines))
        elif not self.quiet:
            output.say("no collections: `ketrag index SOURCE... --name NAME` makes one")
        return 0


@dataclass(frozen=True, kw_only=True)
class Describe(Command):
    """Describe a folder of the sources, or the whole index, in a sentence. Results show it, and assistants
    choose by it. Without arguments, print the descriptions."""

    examples = (
        'ketrag describe notes/work "client projects, by year"',
        'ketrag describe "all my notes" -c notes',
        "ketrag describe notes/work --remove",
    )
    words: tuple[str, ...] = argument(
        "[FOLDER] TEXT", "folder (default: the whole index), and what is in it", nargs="*"
    )
    remove: bool = switch("remove the description")

    def run(self) -> int:
        """Change a description, and print all of them."""
        words = self.words
        if len(words) > (1 if self.remove else 2):
            raise ConfigError(
                "a description is one text",
                hint='put it in quotes: ketrag describe notes/work "client projects"',
            )
        path = options.one_path(self)
        from ketrag_fast.index.descriptions import describe, descriptions_of

        if self.remove:
            describe(path, None, words[0] if words else None)
        elif words:
            describe(path, words[-1], words[0] if len(words) == 2 else None)
        found = descriptions_of(path)
        if self.json:
            output.write_json({"schema": "ketrag/descriptions/1", "index": str(path), "descriptions": found})
        elif found and not self.quiet:
            rows = sorted(found.items())
            output.write(
                "\n".join(
                    f"{inline(display_path(name)) if name else '(all)'}  {inline(text)}"
                    for name, text in rows
                )
            )
        return 0
