"""As much of S3 on loopback as a reader needs: heads, ranges and lists of one bucket."""

from __future__ import annotations

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit


class ObjectStore:
    """Serves `objects` of any bucket, last modified at 1.5e9; while `silent`, it answers nobody."""

    def __init__(self) -> None:
        store = self
        self.objects: dict[str, bytes] = {}
        #: every request: its line and its headers, names in lower case
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.silent = threading.Event()
        #: what follows every object when it is read, though nothing told of it
        self.surplus = b""

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                store.asked.append((f"{self.command} {self.path}", headers))
                while store.silent.is_set():
                    store.silent.wait(0.01)
                    threading.Event().wait(0.01)
                parts = urlsplit(self.path)
                _, _, key = parts.path.lstrip("/").partition("/")
                query = parse_qs(parts.query)
                if not key:
                    self.answer(200, store.listing(query.get("prefix", [""])[0], query.get("delimiter", [""])[0]))
                elif (body := store.objects.get(unquote(key))) is None:
                    self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                elif span := headers.get("range"):
                    first, _, last = span.removeprefix("bytes=").partition("-")
                    self.answer(206, body[int(first) : int(last) + 1], body)
                else:
                    self.answer(200, body + store.surplus if self.command == "GET" else body, body)

            do_HEAD = do_GET

            def answer(self, status: int, sent: bytes, whole: bytes = b"") -> None:
                self.send_response(status)
                self.send_header("content-length", str(len(sent)))
                self.send_header("content-type", "text/csv")
                self.send_header("etag", f'"{hashlib.md5(whole, usedforsecurity=False).hexdigest()}"')
                self.send_header("last-modified", "Fri, 14 Jul 2017 02:40:00 GMT")
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(sent)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                """Who asks may hang up."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def listing(self, prefix: str, delimiter: str) -> bytes:
        """ListObjectsV2."""
        found: dict[str, str] = {}
        for key, body in sorted(self.objects.items()):
            if key.startswith(prefix):
                head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
                if cut:
                    name = prefix + head + cut
                    found[name] = f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"
                else:
                    tag = hashlib.md5(body, usedforsecurity=False).hexdigest()
                    found[key] = (
                        f"<Contents><Key>{key}</Key><Size>{len(body)}</Size><ETag>{tag}</ETag>"
                        "<LastModified>2017-07-14T02:40:00.000Z</LastModified></Contents>"
                    )
        inside = f"<IsTruncated>false</IsTruncated><KeyCount>{len(found)}</KeyCount>{''.join(found.values())}"
        return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inside}</ListBucketResult>'.encode()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
