"""Work shared by threads: for columns so long that a look at them takes longer than starting some."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def by_threads(work: Callable[[int], T], count: int, threads: int) -> list[T]:
    """work(0), …, work(count − 1), in order, by so many threads.

    The calling thread takes its share, and the others end with the call: a pool would have to be kept between
    calls to be as quick, and a kept pool does not survive a fork.
    """
    if threads == 1 or count < 2:
        return [work(i) for i in range(count)]
    done: dict[int, T] = {}
    errors: list[BaseException] = []
    todo = iter(range(count))

    def share() -> None:
        try:
            for i in todo:
                done[i] = work(i)
        except BaseException as error:
            errors.append(error)

    helpers = [Thread(target=share) for _ in range(min(threads, count) - 1)]
    for helper in helpers:
        helper.start()
    share()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]
    return [done[i] for i in range(count)]
