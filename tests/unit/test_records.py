"""Records are dataclasses: each declaration behaves as the standard decorator makes it behave."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from ketrag_fast import records
from ketrag_fast.types import Document, Hit
from ketrag_fast.types.locations import Locator

OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "kw_only": True},
    {"eq": False},
    {"frozen": True, "slots": True, "eq": False},
]


def declared(by: Any, options: dict[str, bool]) -> SimpleNamespace:
    """Declare the same classes with either decorator."""

    @by.dataclass(**options)
    class Base:
        kinds: ClassVar[int] = 3
        name: str
        size: int = 2
        more: list[int] = by.field(default_factory=list, repr=False)

        @property
        def twice(self) -> int:
            return 2 * self.size

    @by.dataclass(**options)
    class Derived(Base):
        size: int = 5
        about: str = by.field(default="x", compare=False, metadata={"help": "text"})
        late: int = by.field(default=7, init=False)
        extra: str = by.field(default="e", kw_only=True, hash=False)

        def __repr__(self) -> str:
            return f"<{self.name}>"

    @by.dataclass(**options)
    class Checked:
        value: int

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError(f"value is {self.value}")

    @by.dataclass(**options)
    class Empty:
        pass

    class Plain(Base):
        pass

    return SimpleNamespace(**{one.__name__: one for one in (Base, Derived, Checked, Empty, Plain)})


def outcome(act: Callable[[], Any]) -> Any:
    """Return what an act returns, or the type and text of its error."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001 - the errors are compared
        return type(error).__name__, str(error)


def of_class(cls: Any) -> Iterator[Any]:
    """Yield what can be observed of a class."""
    given = {"name": "n"}
    yield outcome(lambda: repr(cls(**given)).replace(cls.__qualname__, cls.__name__))
    yield outcome(lambda: cls(**given, size=4).twice)
    yield outcome(lambda: cls(**given) == cls(**given))
    yield outcome(lambda: cls(**given) == cls(name="m"))
    yield outcome(lambda: cls(**given).more is cls(**given).more)
    yield outcome(lambda: hash(cls("n", more=())) == hash(cls("n", more=())))
    yield cls.__hash__ is None
    yield outcome(lambda: setattr(cls(**given), "size", 9))
    # With slots, the standard decorator raises a TypeError that names no attribute, also for subclasses.
    yield "__match_args__" not in vars(cls) or isinstance(
        outcome(lambda: setattr(cls(**given), "unknown", 9)), tuple
    )
    yield outcome(lambda: delattr(cls(**given), "size"))
    yield outcome(lambda: dataclasses.asdict(cls(**given)))
    yield outcome(lambda: dataclasses.replace(cls(**given), size=8).size)
    yield outcome(
        lambda: [
            (f.name, f.type, f.default, dict(f.metadata)) for f in dataclasses.fields(cls) if f.name != "more"
        ]
    )
    yield str(inspect.signature(cls))
    yield cls.__match_args__
    yield hasattr(cls(**given), "__dict__")
    yield getattr(cls, "size", None) == 2


def behaviour(kinds: SimpleNamespace) -> Iterator[Any]:
    """Yield what can be observed of the classes."""
    for cls in (kinds.Base, kinds.Derived, kinds.Plain):
        yield from of_class(cls)
    yield all(kinds.Base(name=str(n), size=n).size == n for n in range(1_200))
    yield all(kinds.Derived(name="n").late == 7 for _ in range(1_200))
    yield outcome(lambda: kinds.Checked(value=-1))
    yield all(kinds.Checked(value=n).value == n for n in range(1_200))
    yield outcome(lambda: kinds.Base())
    yield outcome(lambda: kinds.Base("n", 1, [], 2))
    yield outcome(lambda: kinds.Base("n", 1))
    yield outcome(lambda: kinds.Base(name="n", unknown=1))
    yield outcome(lambda: kinds.Derived(name="n", late=1))
    yield outcome(lambda: kinds.Derived(name="n").late)
    yield outcome(lambda: kinds.Base(name="n") == kinds.Derived(name="n", size=2))
    yield outcome(lambda: kinds.Checked(value=-1))
    yield outcome(lambda: kinds.Checked(value=1) == kinds.Checked(value=1))
    yield outcome(lambda: kinds.Empty() == kinds.Empty())
    copied = outcome(lambda: copy.deepcopy(kinds.Derived(name="n", more=[1])))
    yield outcome(lambda: (copied.name, copied.more, copied.about))
    yield dataclasses.is_dataclass(kinds.Base), dataclasses.is_dataclass(kinds.Plain(name="n"))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_record_behaves_as_a_standard_dataclass(options: dict[str, bool]) -> None:
    ours = list(behaviour(declared(records, options)))
    theirs = list(behaviour(declared(dataclasses, options)))
    for number, (own, standard) in enumerate(zip(ours, theirs, strict=True)):
        text = str(own).replace("declared.<locals>.", "")
        assert text == str(standard).replace("declared.<locals>.", ""), number


def test_functions_of_records_equal_the_standard_ones() -> None:
    locator = Locator("page", 0, 5, 3)
    assert records.replace(locator, value=4) == dataclasses.replace(locator, value=4)
    assert records.asdict(locator) == dataclasses.asdict(locator)
    assert [one.name for one in records.fields(Hit)] == [one.name for one in dataclasses.fields(Hit)]
    assert records.is_dataclass(locator)
    assert not records.is_dataclass(3)
    kinds = declared(records, {"frozen": True})
    with pytest.raises(ValueError, match="init=False"):
        records.replace(kinds.Derived("n"), late=3)
    with pytest.raises(TypeError):
        records.fields(int)
    assert pickle.loads(pickle.dumps(locator)) == locator


def test_the_standard_decorator_extends_a_record_and_the_reverse() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Note(Document):
        stars: int = 0

    note = Note("a", "text", stars=3)
    assert (note.id, note.text, note.stars) == ("a", "text", 3)
    assert dataclasses.replace(note, stars=4).stars == records.replace(note, stars=4).stars == 4

    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int
        y: int = 1

    @records.dataclass(frozen=True)
    class Place(Point):
        name: str = ""

    place = Place(1, name="p")
    assert repr(place).endswith("Place(x=1, y=1, name='p')")
    assert [one.name for one in records.fields(Place)] == ["x", "y", "name"]
    with suppress(AttributeError):
        place.x = 3  # type: ignore[misc]
    assert place.x == 1


def test_a_field_is_accepted_by_the_standard_decorator() -> None:
    """A system of another package declares its settings so."""
    code = """
import ketrag_fast.base.config.fields as ours
from dataclasses import dataclass, fields
@dataclass(frozen=True, kw_only=True)
class Mine:
    share: float = ours.setting(0.5, "share", low=0, high=1)
print(Mine().share, ours.declared_settings(Mine)[0].high)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.5", "1"]


def test_records_import_neither_inspect_nor_typing() -> None:
    slow = {"inspect", "dataclasses", "typing"}
    code = f"import sys; sys.path[:] = {sys.path!r}; import ketrag_fast.records"
    code += f"; print({slow} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"
