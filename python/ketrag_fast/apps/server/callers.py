"""Who sent a request: the user that the guard has found."""

from __future__ import annotations

from typing import Any, Final

from starlette.types import Scope

from ketrag_fast.apps.server.replies import Problem
from ketrag_fast.apps.server.users import User

_USER: Final = "ketrag.user"
QUESTION: Final = "ketrag.question"
"""Key of the question in the scope of a request, for the log."""
_NOBODY: Final = User()


def set_user(scope: Scope, user: User) -> None:
    """Store the user of a request."""
    scope[_USER] = user


def user_of(scope: Scope) -> User:
    """Return the user of a request; one that may do nothing if the guard has found none."""
    found: Any = scope.get(_USER, _NOBODY)
    return found if isinstance(found, User) else _NOBODY


def forbidden(user: User, ability: str) -> Problem:
    """Return the error for a user that lacks an ability."""
    what = {"read": "query", "add": "add documents", "remove": "remove or replace documents"}[ability]
    if not user.name:
        return Problem(403, "read_only", "this service is read-only", hint="start it with --allow-write")
    hint = f'the file of --users needs "{ability}" in the list "may" of {user.name}'
    return Problem(403, "forbidden", f"{user.shown} may not {what}", hint=hint)
