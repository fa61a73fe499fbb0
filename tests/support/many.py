"""Many sources at once, and how long a browser takes to show some of them."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import numpy as np

from unstale.adapters.sqlite_schema import connect
from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.learner import HALF_LIVES
from unstale.core.learning.outlook import WIDTH
from unstale.ports import Listing, Price

#: the median of a few requests that cost nothing, in milliseconds
NOTHING = """(async () => {
  const took = [];
  for (let i = 0; i < 9; i++) {
    const begun = performance.now();
    await (await fetch('/healthz')).text();
    took.push(performance.now() - begun);
  }
  return took.sort((a, b) => a - b)[4];
})()"""

#: milliseconds from an act to the table that answers it
TIMED = """(async () => {
  const button = (name) => [...document.querySelectorAll('main button')].find((one) => one.textContent === name);
  const heads = button;
  const set = (id, value, event) => {
    const into = document.querySelector(id);
    into.value = value;
    into.dispatchEvent(new Event(event));
  };
  const type = (text) => set('#text', text, 'input');
  const choose = (state) => set('#state', state, 'change');
  const body = document.querySelector('tbody');
  const before = body.dataset.asked;
  const begun = performance.now();
  ACT;
  while (body.dataset.asked === before) await new Promise((done) => setTimeout(done, 1));
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
})()"""


def many(path: str, count: int) -> None:
    """So many sources with beliefs and tags, as if each had been polled."""
    now, rng = time.time(), np.random.default_rng(1)
    store = SqliteStore(path)
    for begin in range(0, count, 50_000):
        store.add(
            [
                Listing(
                    f"https://host{i % 997}.example/section/{i % 31}/item-{i}.html",
                    weight=1.0 + i % 7,
                    host=f"host{i % 997}.example",
                    options={"tags": [f"t{i % 50}"], "title": f"Item {i}"} if i % 2 else {},
                )
                for i in range(begin, min(begin + 50_000, count))
            ],
            now,
        )
    store.record([], price=Price(now, 1.0, 1.0, 0.5, 0.4))
    store.close()
    each = len(HALF_LIVES)
    shape, exposure, ago = rng.gamma(2.0, 2.0, count), 10 ** rng.uniform(2, 6, count), 10 ** rng.uniform(1, 5, count)
    rows = (
        (
            struct.pack(f"={WIDTH}d", *([shape[i]] * each + [exposure[i]] * each + [0.0] * (WIDTH - 2 * each))),
            now - ago[i],
            now - 3 * ago[i],
            now + ago[i],
            int(i % 50 == 0),
            i + 1,
        )
        for i in range(count)
    )
    db = connect(Path(path))
    with db:
        db.executemany(
            "UPDATE beliefs SET belief = ?, last = ?, found = ?, due = ?, failures = ? WHERE source = ?", rows
        )
    db.close()
