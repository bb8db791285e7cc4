"""`ketrag users`: tokens of the users of a service."""

from __future__ import annotations

from ketrag_fast.apps.cli import output
from ketrag_fast.apps.cli.command import Command, argument, option
from ketrag_fast.apps.terminal import inline

_FILE = "file with the users, one JSON object a line (`ketrag serve --users FILE`)"


class Add(Command):
    """Add a user and print its token, which is stored nowhere: the file has its SHA-256."""

    examples = (
        "ketrag users add anna --users users.jsonl --allow team=red",
        "ketrag users add robot --users users.jsonl --may read,add",
    )
    name: str = argument("NAME", "name of the user, for the log")
    users: str = option("FILE", _FILE, required=True)
    allow: str | None = option("COND", "documents that the user may see (default: all)")
    may: str = option("LIST", "what the user may do: read,add,remove (default read)", default="read")

    def run(self) -> int:
        """Print the token."""
        from ketrag_fast.apps.server.users import add_user

        token = add_user(self.users, self.name, self.allow, [one for one in self.may.split(",") if one])
        if self.json:
            output.write_json({"schema": "ketrag/user/1", "name": self.name, "token": token})
            return 0
        if not self.quiet:
            output.say(f"added {inline(self.name)}; send this token as Authorization: Bearer TOKEN")
        output.write_styled(token)
        return 0


class Revoke(Command):
    """Remove a user. A service that runs refuses its token within seconds."""

    examples = ("ketrag users revoke anna --users users.jsonl",)
    name: str = argument("NAME", "name of the user")
    users: str = option("FILE", _FILE, required=True)

    def run(self) -> int:
        """Remove the line of the user."""
        from ketrag_fast.apps.server.users import revoke_user

        revoke_user(self.users, self.name)
        if not self.quiet:
            output.say(f"revoked {inline(self.name)}")
        return 0


class List(Command):
    """List the users of a file, with what they may see and do."""

    examples = ("ketrag users list --users users.jsonl", "ketrag users list --users users.jsonl --json")
    users: str = option("FILE", _FILE, required=True)

    def run(self) -> int:
        """Print a line for each user."""
        from ketrag_fast.apps.server.users import ABILITIES, read_users

        users = read_users(self.users)
        rows = [(user.name, [one for one in ABILITIES if one in user.may], user.allow) for user in users]
        if self.json:
            data = [{"name": name, "may": may, "allow": allow or None} for name, may, allow in rows]
            output.write_json({"schema": "ketrag/users/1", "users": data})
            return 0
        for name, may, allow in rows:
            output.write(inline(f"{name}  {','.join(may)}  {allow or 'all documents'}"))
        return 0


class Users(Command):
    """Tokens of the users of `ketrag serve --users FILE`."""

    examples = (
        "ketrag users add anna --users users.jsonl --allow team=red",
        "ketrag users add robot --users users.jsonl --may read,add",
        "ketrag users revoke anna --users users.jsonl",
    )
    actions = {  # noqa: RUF012 - a table of classes
        "add": ("add a user and print its token", Add),
        "revoke": ("remove a user", Revoke),
        "list": ("list users", List),
    }
