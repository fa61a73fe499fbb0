"""Walking through XML without building a tree. Document types are refused: that is where files hide their bombs."""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

from unstale.errors import InputError
from unstale.lists.rows import ListReader

#: (path of local names from the root, attributes, line)
Begin = Callable[[list[str], dict[str, str], int], None]
#: (path of local names from the root, text directly before the end tag, line)
End = Callable[[list[str], str, int], None]


def walk(data: bytes, rows: ListReader, *, begin: Begin | None = None, end: End | None = None) -> None:
    """Call `begin` and `end` for every element; where the XML breaks is a problem, and the last thing read."""
    path: list[str] = []
    text: list[str] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        path.append(name.rpartition(":")[2])
        text.clear()
        if begin:
            begin(path, attributes, parser.CurrentLineNumber)

    def stop(_: str) -> None:
        if end:
            end(path, "".join(text).strip(), parser.CurrentLineNumber)
        path.pop()
        text.clear()

    def doctype(*_: object) -> None:
        raise InputError("it declares a document type, which may hide anything: remove that")

    parser.StartElementHandler, parser.EndElementHandler = start, stop
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text.append, doctype
    try:
        parser.Parse(data, True)
    except InputError as error:
        rows.refuse(parser.CurrentLineNumber, str(error))
    except expat.ExpatError as error:
        rows.refuse(error.lineno, f"the XML is broken here ({expat.ErrorString(error.code)}): correct it")
    except (LookupError, ValueError) as error:
        rows.refuse(parser.CurrentLineNumber, f"its text cannot be decoded ({error}): save it as UTF-8")
