"""One answer over HTTP, within limits: http and https only, so many bytes, so many seconds."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from importlib.metadata import version
from urllib.parse import quote, urlsplit, urlunsplit

from unstale.errors import InputError, sentence

#: an answer may have so many bytes, and take so many seconds
LIMIT, SECONDS = 64 << 20, 60.0


def is_address(place: str) -> bool:
    """Whether a place is an address on the web rather than a file.

    >>> is_address("https://example.org/feed.xml"), is_address("feed.xml")
    (True, False)
    """
    return place.lower().startswith(("http://", "https://"))


def one_line(text: str) -> str:
    """The first line of what a server says, fit for a terminal: without control characters, not for ever.

    >>> one_line("no such title\\nsee \\x1b[31mbelow")
    'no such title'
    """
    return "".join(c for c in text.strip().partition("\n")[0] if c.isprintable())[:200]


def load(address: str, *, limit: int = LIMIT, seconds: float = SECONDS) -> bytes:
    """The body at an http or https address; whatever goes wrong is one sentence."""
    if not is_address(address):
        raise _refused(address, "is not on the web", "give one that starts with https://")
    if any(c <= " " or c == "\x7f" for c in address):
        raise _refused(address, "contains a space or control character", "write a space as %20")
    end = time.monotonic() + seconds
    agent = f"unstale/{version('unstale')} (imports change histories; Python urllib)"
    try:
        request = urllib.request.Request(_ascii(address), headers={"User-Agent": agent})
        with _opener().open(request, timeout=seconds) as answer:
            body = bytearray()
            # read1 returns what has arrived: a server that drips bytes cannot hold us beyond the deadline
            while part := answer.read1(1 << 16):
                body += part
                if len(body) > limit:
                    raise _refused(address, f"answers more than {limit:,} bytes", "save it in parts and give the files")
                if time.monotonic() > end:
                    raise TimeoutError
            return bytes(body)
    except urllib.error.HTTPError as error:
        with error:
            wait = error.headers.get("Retry-After")
        remedy = f"try again in {wait} s" if wait and wait.isascii() and wait.isdigit() else "check it in a browser"
        raise _refused(address, f"answers {error.code} {one_line(error.reason)}", remedy) from None
    except TimeoutError:
        raise _refused(address, f"did not answer within {seconds:g} s", "try again later") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise _refused(address, f"did not answer within {seconds:g} s", "try again later") from None
        raise _refused(address, f"cannot be reached ({error.reason})", "check it and the connection") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = one_line(str(error)) or type(error).__name__
        raise _refused(address, f"cannot be read ({why})", "check it in a browser") from None


def _opener() -> urllib.request.OpenerDirector:
    """Web only: the usual opener would also follow a redirect to ftp, and open local files."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _ascii(address: str) -> str:
    """People paste addresses as browsers show them; the wire wants them escaped, and hosts in their ASCII form."""
    parts = urlsplit(address)
    host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    safe = "%/:=&?~#+!$,;'@()*[]|"
    return urlunsplit((parts.scheme, host, quote(parts.path, safe), quote(parts.query, safe), ""))


def _refused(address: str, rule: str, remedy: str) -> InputError:
    return InputError(sentence("address", repr(address), rule, remedy))
