"""One way to compile the functions of learning: with numba where it is installed and worth loading, else as they are.

Loading numba and what it has kept takes about a second and a hundred megabytes. So importing these rooms loads nothing,
and a few sources need nothing of it.

Rules of this file:
1. A scalar function never loads the compiler: alone, it runs as Python unless machine code is there already.
2. A step over columns has a twin in NumPy, which gives the same to the last bit. It is taken until the twins have cost
   as much as loading the compiler would, or who knows better has said so (`load`, `load_for_many`).
3. A loop that has no twin loads the compiler when it is first called.
4. Who must not wait for a compiler has it loaded beside (`load_beside`): twins go on, whatever they cost, until `load`.
   A thread that compiles meanwhile (`compiling_here`) runs as machine code alone.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from importlib.util import find_spec
from typing import Any, Generic, ParamSpec, TypeVar, cast

from unstale.core.compiling import kept

P = ParamSpec("P")
R = TypeVar("R")

#: seconds that loading the compiler takes, that a call of a twin takes, and each of its rows
_LOADING, _CALL, _ROW = 1.0, 4e-4, 8e-6
#: rows in one call for which the compiler is loaded even where memory is dear; those where much is learned at that
MANY, BUSY_MANY = 20_000, 3_000
#: what each row takes of a step without a search in it
LIGHT = 4e-7


class _Way:
    """How the kernels of this process run: one answer for all of them, so that one call may decide for the next."""

    numba = find_spec("numba") is not None
    loaded = False
    #: what twins may still cost before the compiler is loaded
    left = _LOADING
    #: rows in one call for which it is loaded at once
    many = math.inf
    #: asked to see to it that it is loaded, by who must not wait for that; None: it is loaded by who calls
    ask: Callable[[], object] | None = None
    #: told that machine code of one more kernel was made or read
    told: Callable[[], object] | None = None


class _Here(threading.local):
    """Whether this thread runs machine code, whatever the others do."""

    loaded = False


_here = _Here()


def load() -> bool:
    """Let every kernel run as machine code from now on; whether there is a compiler."""
    _Way.loaded = _Way.numba
    return _Way.loaded


def load_for_many(rows: int = MANY) -> None:
    """Leave steps over fewer than so many rows to NumPy for good: for a process that lives long with few sources."""
    _Way.left, _Way.many = math.inf, rows


def load_beside(ask: Callable[[], object] | None) -> None:
    """From now on `ask` for the compiler, in any thread and again and again, where it would be loaded: by `load`."""
    _Way.ask = ask


def tell_of_code(told: Callable[[], object] | None) -> None:
    """From now on `told` hears when the compiler has the code of another kernel: what that took besides can go then."""
    _Way.told = told


@contextmanager
def compiling_here() -> Iterator[None]:
    """Whatever this thread calls is compiled, or read from what was kept; others go on as they did."""
    _here.loaded = _Way.numba
    try:
        yield
    finally:
        _here.loaded = False


class Kernel(Generic[P, R]):
    """A function that becomes machine code when it is needed as such; kernels may call each other."""

    def __init__(
        self, function: Callable[P, R], plain: Callable[P, R] | None, row: float, options: dict[str, bool] | None = None
    ) -> None:
        self.py_func, self._plain, self._row, self._options = function, plain, row, options or {}
        self._made: Any = None
        self._ran = False
        # Named, documented and found as the function is.
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **named: P.kwargs) -> R:
        if not _Way.loaded and not _here.loaded:
            if self._plain is not None and (self._afforded(args) or self._put_off()):
                return self._plain(*args, **named)
            # Who has no twin must wait, but nobody else.
            if not self._put_off() and not load():
                return (self._plain or self.py_func)(*args, **named)
        if not self._ran:
            self._ran = True
            if _Way.told is not None and not named:
                self._tell(_Way.told, args)
        return cast(R, (self._made or self.machine_code)(*args, **named))

    def _tell(self, told: Callable[[], object], args: tuple[Any, ...]) -> None:
        """Have the compiler, then the code for these, and say so each time: running it may need the room."""
        from numba import typeof

        told()
        # Where numba is told to compile nothing it gives the function as it is.
        if self.machine_code is not self.py_func:
            self.machine_code.compile(tuple(map(typeof, args)))
        told()

    def _afforded(self, args: tuple[Any, ...]) -> bool:
        """Whether the plain way costs less than loading the compiler, with all that it has cost so far."""
        if self._row == 0.0:
            return True
        rows = _rows(args)
        _Way.left -= _CALL + self._row * rows
        return _Way.left > 0.0 and rows < _Way.many

    def _put_off(self) -> bool:
        """Whether somebody else sees to the compiler, and has been asked to."""
        if _Way.ask is None or not _Way.numba:
            return False
        _Way.ask()
        return True

    @property
    def machine_code(self) -> Any:
        """The function as numba has it, compiled on its first call and kept; releases the interpreter's lock."""
        if self._made is None:
            self._made = kept(self.py_func, nogil=True, **self._options)
        return self._made

    @property
    def _numba_type_(self) -> Any:
        # Asked by numba, of a name that another kernel calls.
        return self.machine_code._numba_type_


def _rows(args: tuple[Any, ...]) -> int:
    """How many rows a step goes over: the length of its first column."""
    for part in args:
        column = getattr(part, "last", part)
        if hasattr(column, "shape"):
            return len(column)
    return 0


def compiled(function: Callable[P, R], plain: Callable[P, R] | None = None) -> Callable[P, R]:
    """A scalar function, for kernels to call; by itself it is Python until something has loaded the compiler."""
    return Kernel(function, plain or function, 0.0)


def pasted(function: Callable[P, R], plain: Callable[P, R] | None = None) -> Callable[P, R]:
    """The same for small functions that are called for every poll: pasted into the machine code of whoever calls them.

    Handing on a fleet's columns, and counting who refers to each, takes as long as most of them compute. Such a
    function must make no array and return none: nobody would know when it ends.
    """
    return Kernel(function, plain or function, 0.0, {"forceinline": True, "_nrt": False})


def compiled_loop(function: Callable[P, R]) -> Callable[P, R]:
    """A loop without a twin: its first call loads the compiler."""
    return Kernel(function, None, 0.0)


def in_columns(twin: Callable[P, R], row: float = _ROW) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A step over columns that NumPy does as well, to the last bit; `row` seconds are what it takes for each row."""
    return lambda function: Kernel(function, twin, row)
