"""Walking through XML in pieces without building a tree. Document types are refused: that is where bombs are hidden."""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

from unstale.errors import InputError, sentence

#: (local names from the root, text directly before the end tag); False ends the walk
End = Callable[[list[str], str], bool]
DEEPEST = 50
#: characters of one text that are kept
_LONGEST = 8_192
_PIECE = 2**16


class _EndedError(Exception):
    """The reader has enough."""


def walk(data: bytes, end: End, what: str) -> None:
    """Call `end` for every element as it ends; broken XML is an InputError that calls the listing `what`."""
    path: list[str] = []
    text: list[str] = []
    kept = 0

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal kept
        if len(path) >= DEEPEST:
            raise _broken(what, f"it is nested more than {DEEPEST} deep")
        path.append(name.rpartition(":")[2])
        text.clear()
        kept = 0

    def stop(_: str) -> None:
        nonlocal kept
        if not end(path, "".join(text).strip()):
            raise _EndedError
        path.pop()
        text.clear()
        kept = 0

    def characters(piece: str) -> None:
        nonlocal kept
        if kept < _LONGEST:
            text.append(piece)
            kept += len(piece)

    def doctype(name: str, *_: object) -> None:
        if name.lower() == "html":
            raise _broken(what, "it is a page of HTML, so say how it is read with --listing")
        raise _broken(what, "it declares a document type, which may hide anything")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, stop
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    try:
        for at in range(0, len(data), _PIECE):
            parser.Parse(data[at : at + _PIECE], False)
        parser.Parse(b"", True)
    except _EndedError:
        return
    except expat.ExpatError as error:
        raise _broken(what, f"its XML is broken ({error})") from None
    except (LookupError, UnicodeError) as error:
        raise _broken(what, f"its text cannot be decoded ({error})") from None


def _broken(what: str, why: str) -> InputError:
    return InputError(sentence(what, "as given", "cannot be read", why))
