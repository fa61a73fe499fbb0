"""A name has one meaning: no two classes share one, but for those that are told here with the reason."""

from __future__ import annotations

import ast
from collections import defaultdict

from support.source import MODULES, nodes

#: names of several classes, and why each of them has it
SHARED = {
    "Constant": "a penalty and a process: a family names its members by what they are, and nothing takes both",
    "Door": "who may pass, at the dashboard and at the proxy",
    "Fleet": "the columns of a plan, and what the proxy may ask of whoever has such a fleet",
    "Origin": "a server whose copies are kept, as HTTP calls it: one that a proxy asks, and one that we play",
    "World": "what changes in a simulation, and the same as a compiled kernel takes it",
}
#: names that readers stumbled over: each was given to something that another word says
UNCLEAR = {
    "Columns",
    "Desk",
    "Lookout",
    "Manners",
    "Part",
    "Rhythm",
    "Room",
    "Sight",
    "Standing",
    "Tally",
    "Terms",
    "Whole",
}


def test_no_two_classes_have_one_name() -> None:
    found = defaultdict(list)
    for path, module in MODULES.items():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    twice = {name: places for name, places in found.items() if len(places) > 1 and name not in SHARED}
    assert not twice
    assert not UNCLEAR & set(found)


def test_a_file_about_fleets_says_which() -> None:
    assert [module for path, module in MODULES.items() if path.name == "fleet.py"] == ["core/fleet.py"]
