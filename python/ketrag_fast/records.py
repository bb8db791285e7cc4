"""The decorator of `dataclasses` at a fraction of its time, because it compiles no methods.

The standard one compiles several methods for each class, and imports `inspect`. A query loads 80 such classes
and makes few instances of each, which took a third of its time. A class of many instances gets the standard
methods. Other packages see standard dataclasses: `dataclasses.fields`, `replace`, `asdict` and subclasses
with the standard decorator work as usual. Type checkers are shown the standard functions.
"""

from __future__ import annotations

import sys
from operator import attrgetter

# Type checkers treat this name as true; the import of `typing` takes as long as twenty classes.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field as Field
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import is_dataclass as is_dataclass
    from dataclasses import replace as replace
    from typing import Any

_FIELDS = "__record_fields__"
"""Attribute of a class with its fields by name, those of its bases included."""
_MANY = 1_000
"""Instances after which a class gets the `__init__` of the standard decorator, which takes a third of it.

A thousand instances take 2 ms more without it, its import and compilation 10 ms. A query makes at most 200.
"""
_set = object.__setattr__


class _Missing:
    """Stands for no default, and in an `__init__` for an argument whose default is made by a function."""

    def __repr__(self) -> str:
        return "<factory>"


_MISSING = _Missing()

if not TYPE_CHECKING:

    class Field:
        """A field, as `dataclasses.Field`."""

        __slots__ = (
            *("compare", "default", "default_factory", "hash", "init", "kw_only", "metadata", "name"),
            *("repr", "type"),
        )

        def __init__(self, *, default, default_factory, init, repr, hash, compare, metadata, kw_only):  # noqa: A002 - as in dataclasses
            self.default, self.default_factory = default, default_factory
            self.init, self.repr, self.hash, self.compare = init, repr, hash, compare
            self.metadata, self.kw_only = metadata, kw_only
            self.name = self.type = None

    def field(
        *,
        default=_MISSING,
        default_factory=_MISSING,
        init=True,
        repr=True,  # noqa: A002
        hash=None,  # noqa: A002
        compare=True,
        metadata=None,
        kw_only=None,
    ):
        """Declare a field, as `dataclasses.field`."""
        return Field(
            default=default,
            default_factory=default_factory,
            init=init,
            repr=repr,
            hash=hash,
            compare=compare,
            metadata=metadata or {},
            kw_only=kw_only,
        )

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """Make a class a dataclass, as `dataclasses.dataclass`."""
        if cls is None:
            return lambda cls: _make(cls, frozen, slots, eq, kw_only)
        return _make(cls, frozen, slots, eq, kw_only)

    def replace(record, /, **changes):
        """Return a copy of a record with other values, as `dataclasses.replace`."""
        cls = record.__class__
        for one in _fields_of(cls).values():
            if not one.init and one.name in changes:
                raise ValueError(f"field {one.name} is declared with init=False, it cannot be specified")
            if one.init and one.name not in changes:
                changes[one.name] = getattr(record, one.name)
        return cls(**changes)

    def fields(record):
        """Return the fields of a record or its class, as `dataclasses.fields`."""
        return tuple(_fields_of(record if isinstance(record, type) else type(record)).values())

    def is_dataclass(value):
        """Return whether a value is a dataclass or an instance of one, as `dataclasses.is_dataclass`."""
        cls = value if isinstance(value, type) else type(value)
        return hasattr(cls, _FIELDS) or hasattr(cls, "__dataclass_fields__")

    def asdict(record):
        """Return the values of a record by name, those of records in it included, as `dataclasses.asdict`."""
        return {one.name: _plain(getattr(record, one.name)) for one in fields(record)}


def shared_field(default: Any, metadata: dict[str, Any]) -> Any:
    """Declare a field that the standard decorator accepts, too, if it is used at all."""
    standard = sys.modules.get("dataclasses")
    declare = field if standard is None else standard.field
    return declare(default=default, metadata=metadata)


def _fields_of(cls: type) -> dict[str, Any]:
    """Return the fields of a class by name; of a standard dataclass too."""
    for base in cls.__mro__:
        if _FIELDS in base.__dict__:
            return base.__dict__[_FIELDS]  # type: ignore[no-any-return]
        if "__dataclass_fields__" in base.__dict__:
            from dataclasses import fields as standard

            return {one.name: _own(one) for one in standard(base)}
    raise TypeError(f"{cls.__name__} is not a dataclass")


def _plain(value: Any) -> Any:
    """Return a value with all records in it as dictionaries, and with copies of what can change."""
    if value is None or isinstance(value, (str, int, float, bytes)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {_plain(name): _plain(item) for name, item in value.items()}
    from copy import deepcopy

    return deepcopy(value)


def _own(one: Any) -> Any:
    """Return a field of the standard library as one of ours."""
    if type(one) is Field:
        return one
    missing = sys.modules["dataclasses"].MISSING
    default, factory, kw_only = (
        _MISSING if value is missing else value for value in (one.default, one.default_factory, one.kw_only)
    )
    kw_only = None if kw_only is _MISSING else kw_only
    own = Field(
        default=default,
        default_factory=factory,  # type: ignore[arg-type]
        init=one.init,
        repr=one.repr,
        hash=one.hash,
        compare=one.compare,
        metadata=one.metadata,
        kw_only=kw_only,  # type: ignore[arg-type]
    )
    own.name, own.type = one.name, one.type
    return own


def _declared(cls: type, kw_only: bool) -> dict[str, Any]:
    """Return the fields that the body of a class declares."""
    found = {}
    for name, kind in cls.__annotations__.items():
        if isinstance(kind, str) and kind.startswith(("ClassVar", "typing.ClassVar")):
            continue
        given = cls.__dict__.get(name, _MISSING)
        is_standard = type(given).__module__ == "dataclasses" and type(given).__name__ == "Field"
        if type(given) is Field or is_standard:
            given.name, given.type = name, kind
        else:
            given = field(default=given)
            given.name, given.type = name, kind
        own = found[name] = _own(given)
        own.kw_only = kw_only if own.kw_only is None else own.kw_only
    return found


def _make(cls: type, frozen: bool, slots: bool, eq: bool, kw_only: bool) -> type:
    every: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if _FIELDS in base.__dict__ or "__dataclass_fields__" in base.__dict__:
            every |= _fields_of(base)
    own = _declared(cls, kw_only)
    every |= own
    if slots:
        cls = _with_slots(cls, own, frozen)
    else:
        for name, one in own.items():
            if one.default is not _MISSING:
                setattr(cls, name, one.default)
            elif name in cls.__dict__:
                delattr(cls, name)
    attributes = dict(cls.__dict__)
    setattr(cls, _FIELDS, every)
    cls.__dataclass_fields__ = _StandardFields(cls, every)  # type: ignore[attr-defined]
    cls.__dataclass_params__ = _Parameters(frozen, eq, slots, kw_only)  # type: ignore[attr-defined]
    cls.__match_args__ = tuple(one.name for one in every.values() if one.init and not one.kw_only)  # type: ignore[attr-defined, misc]
    if "__init__" not in attributes:
        cls.__init__ = _init_of(cls, every, frozen)  # type: ignore[misc]
        cls.__signature__ = _Signature(cls)  # type: ignore[attr-defined]
    if "__repr__" not in attributes:
        cls.__repr__ = _repr  # type: ignore[method-assign, assignment]
    if "__replace__" not in attributes:
        cls.__replace__ = replace  # type: ignore[attr-defined]
    if eq:
        _add_comparison(cls, attributes, every, frozen)
    if frozen:
        _freeze(cls, attributes, every)
    return cls


def _with_slots(cls: type, own: dict[str, Any], frozen: bool) -> type:
    """Return the class again, with a slot for each field that it declares."""
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    body = {name: value for name, value in cls.__dict__.items() if name not in own}
    body.pop("__dict__", None)
    body.pop("__weakref__", None)
    body["__slots__"] = tuple(name for name in own if name not in inherited)
    if frozen:
        body.setdefault("__getstate__", _get_state)
        body.setdefault("__setstate__", _set_state)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _init_of(cls: type, every: dict[str, Any], frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that compiles nothing, until it has been called `_MANY` times."""
    accepted = {one.name for one in every.values() if one.init}
    ordered = [one.name for one in every.values() if one.init and not one.kw_only]
    defaults = [(one.name, one.default) for one in every.values() if one.default is not _MISSING]
    factories = [
        (one.name, one.default_factory) for one in every.values() if one.default_factory is not _MISSING
    ]
    required = accepted - {name for name, _ in (*defaults, *factories)}
    has_slots = any("__slots__" in base.__dict__ for base in cls.__mro__[:-1])
    is_checked = hasattr(cls, "__post_init__")
    # The standard decorator leaves the default of a field that no caller sets to the class, which has slots.
    is_compiled = all(one.init or one.default is _MISSING for one in every.values())
    calls = 0

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        nonlocal calls
        calls += 1
        is_many = calls >= _MANY and is_compiled
        values = dict(zip(ordered, args, strict=False))
        is_wrong = (
            len(args) > len(ordered) or not kwargs.keys() <= accepted or not values.keys().isdisjoint(kwargs)
        )
        values |= kwargs
        if is_wrong or is_many or not required <= values.keys():
            standard = _standard_init(cls, every, frozen)
            if is_many:
                cls.__init__ = standard  # type: ignore[misc]
            standard(self, *args, **kwargs)
            return
        for name, default in defaults:
            if name not in values:
                values[name] = default
        for name, make in factories:
            if name not in values:
                values[name] = make()
        if has_slots:
            for name, value in values.items():
                _set(self, name, value)
        else:
            self.__dict__.update(values)
        if is_checked:
            self.__post_init__()

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__


def _standard(cls: type, every: dict[str, Any], frozen: bool = False) -> Any:
    """Return a standard dataclass with the fields of a class."""
    from dataclasses import field as declare
    from dataclasses import make_dataclass

    declared = []
    for one in every.values():
        given = {
            name: getattr(one, name) for name in ("init", "repr", "hash", "compare", "metadata", "kw_only")
        }
        given |= {} if one.default is _MISSING else {"default": one.default}
        given |= {} if one.default_factory is _MISSING else {"default_factory": one.default_factory}
        declared.append((one.name, one.type, declare(**given)))
    check = getattr(cls, "__post_init__", None)
    body = {} if check is None else {"__post_init__": check}
    return make_dataclass(cls.__name__, declared, frozen=frozen, namespace=body)


def _standard_init(cls: type, every: dict[str, Any], frozen: bool) -> Callable[..., None]:
    """Return the compiled `__init__` of the standard decorator, which also words errors of arguments."""
    compiled: Callable[..., None] = _standard(cls, every, frozen).__init__
    compiled.__qualname__ = f"{cls.__qualname__}.__init__"
    compiled.__module__ = cls.__module__
    return compiled


def _add_comparison(cls: type, attributes: dict[str, Any], every: dict[str, Any], frozen: bool) -> None:
    """Add `__eq__`, and the `__hash__` that belongs to it."""
    compared = _values_of([one.name for one in every.values() if one.compare])
    hashed = _values_of(
        [one.name for one in every.values() if (one.compare if one.hash is None else one.hash)]
    )

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(hashed(self))

    if "__eq__" not in attributes:
        cls.__eq__ = __eq__  # type: ignore[method-assign, assignment]
    has_hash = attributes.get("__hash__") is not None
    if not has_hash:
        cls.__hash__ = __hash__ if frozen else None  # type: ignore[method-assign, assignment]


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    get = attrgetter(names[0])
    return lambda record: (get(record),)


def _freeze(cls: type, attributes: dict[str, Any], every: dict[str, Any]) -> None:
    """Forbid to assign to fields, and to anything of an instance of the class itself."""

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in every:
            raise _frozen(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)  # type: ignore[arg-type]

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in every:
            raise _frozen(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)  # type: ignore[arg-type]

    for own in (__setattr__, __delattr__):
        if own.__name__ in attributes:
            raise TypeError(f"Cannot overwrite attribute {own.__name__} in class {cls.__name__}")
        setattr(cls, own.__name__, own)


def _frozen(message: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(message)


def _repr(self: Any) -> str:
    values = [
        f"{one.name}={getattr(self, one.name)!r}" for one in _fields_of(type(self)).values() if one.repr
    ]
    return f"{type(self).__qualname__}({', '.join(values)})"


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in _fields_of(type(self))]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(_fields_of(type(self)), state, strict=True):
        _set(self, name, value)


class _Parameters:
    """The parameters that `dataclasses.dataclass` reads from the base classes of a class."""

    def __init__(self, frozen: bool, eq: bool, slots: bool, kw_only: bool) -> None:
        self.frozen, self.eq, self.slots, self.kw_only = frozen, eq, slots, kw_only
        self.init = self.repr = self.match_args = True
        self.order = self.unsafe_hash = self.weakref_slot = False


class _StandardFields:
    """The attribute `__dataclass_fields__`, which functions of `dataclasses` read."""

    def __init__(self, cls: type, every: dict[str, Any]) -> None:
        self._cls, self._every = cls, every

    def __get__(self, record: object, owner: type) -> dict[str, Any]:
        made: dict[str, Any] = _standard(self._cls, self._every).__dataclass_fields__
        self._cls.__dataclass_fields__ = made  # type: ignore[attr-defined]
        return made


class _Signature:
    """The attribute `__signature__` of a class, which `inspect.signature` reads."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, record: object, owner: type) -> Any:
        init = next(base for base in owner.__mro__ if "__init__" in base.__dict__)
        if record is not None or init is not self._cls:
            raise AttributeError("__signature__")
        from inspect import signature

        compiled = _standard_init(self._cls, _fields_of(self._cls), frozen=False)
        found = signature(compiled)
        return found.replace(parameters=list(found.parameters.values())[1:])
