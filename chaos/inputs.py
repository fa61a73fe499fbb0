"""What strangers write: numbers that are none, addresses that lead inside, bodies that grow."""

from __future__ import annotations

import ipaddress
import itertools
import os
import resource
import socket
import zlib
from collections import Counter
from functools import cache
from pathlib import Path

import brotli
import numpy as np
import zstandard

from unstale.adapters.addresses import Gate, web_address
from unstale.codings import BrokenCoding, Decoder, TooMuch
from unstale.errors import InputError
from unstale.lists.read import read_list

#: what is no number, or none that anything here can be
NUMBERS = (
    "nan",
    "NaN",
    "-inf",
    "-1",
    "1e400",
    "1_000",
    "٣",
    "１",
    "½",
    "0x10",
    "--1",
    "1e",
    "1 2",
    "None",
    "true",
    "[]",
)
NUMBERS += ("{}", "1/0", "-0.5", "+", ".", "e5", "0b1", "1,5", "∞")
FIELDS = ("weight", "cost", "min_interval", "max_interval")
#: addresses that nobody may be led to
INSIDE = ("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.9", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1")
INSIDE += ("192.88.99.1", "198.18.0.1", "240.0.0.1", "255.255.255.255")
INSIDE_6 = (
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "fec0::1",
    "ff02::1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
)
INSIDE_6 += ("3fff::1", "5f00::1", "2001:0:7f00:1::", "::ffff:0:127.0.0.1", "2001:db8::1")
#: bytes that a body may have here, and megabytes of the bombs
ROOM, BOMBS = 2**20, (10, 30, 60, 100, 200)


def numbers(first: int, count: int, folder: Path) -> Counter[str]:
    """Every field of a list with every value that is no number, as CSV, JSON lines and text: how many were taken."""
    found: Counter[str] = Counter()
    for field, value in itertools.product(FIELDS, NUMBERS):
        quoted = value.replace('"', "")
        forms = {
            "csv": f'address,{field}\nhttps://example.org/a,"{quoted}"\n',
            "jsonl": f'{{"address": "https://example.org/a", "{field}": "{quoted}"}}\n',
            "text": f"https://example.org/a {field}={quoted.replace(' ', '_')}\n",
        }
        for form, text in forms.items():
            found["rounds"] += 1
            try:
                parsed = read_list(text.encode(), format=form)
                if parsed.listings and not parsed.problems:
                    found["taken"] += 1
                    found[f"taken: {field}={value} in {form}"] += 1
            except InputError:
                pass
    found["taken"] += 0
    return found


def _spellings(rng: np.random.Generator) -> str:
    """One of the many ways in which an inner address can be written."""
    if rng.random() < 0.3:
        literal = ipaddress.IPv6Address(INSIDE_6[int(rng.integers(len(INSIDE_6)))])
        host = f"[{literal.exploded if rng.random() < 0.5 else literal}]"
    else:
        four = ipaddress.IPv4Address(INSIDE[int(rng.integers(len(INSIDE)))])
        a, b, c, d = four.packed
        ways = (
            str(four),
            str(int(four)),
            hex(int(four)),
            f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
            f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
            f"{a}.{b * 65536 + c * 256 + d}",
            f"{a}.{b}.{c * 256 + d}",
            f"[::ffff:{four}]",
            f"[::ffff:{a:02x}{b:02x}:{c:02x}{d:02x}]",
            f"[::{four}]",
            f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::]",
            f"[64:ff9b::{four}]",
            f"{four}.",
            "".join(chr(ord(digit) + 0xFEE0) if digit.isdigit() else digit for digit in str(four)),
            str(four).replace(".", "\u3002"),
            "".join(f"%{ord(digit):02x}" for digit in str(four)),
            f"example.org@{four}",
            f"{four}#@example.org",
            f"{four}\\@example.org",
        )
        host = ways[int(rng.integers(len(ways)))]
    scheme = ("http", "https", "HTTP", "hTTps")[int(rng.integers(4))]
    port = ("", ":80", ":8080", ":0")[int(rng.integers(4))]
    return f"{scheme}://{host}{port}/{int(rng.integers(1000))}"


def inside(first: int, count: int, folder: Path) -> Counter[str]:
    """Addresses that lead inside, however they are spelled: how many the gate would let be dialled."""
    found: Counter[str] = Counter()
    gate = Gate()
    for n in range(first, first + count):
        text = _spellings(np.random.default_rng([17, n]))
        found["rounds"] += 1
        found["dialled"] += 0
        try:
            host = web_address(text).host.strip("[]")
            dialled = {str(one[4][0]) for one in socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)}
        except (InputError, OSError, UnicodeError):
            found["refused before"] += 1
            continue
        for address in dialled:
            found["dialled"] += int(gate.permits(address))
    return found


@cache
def _bomb(coding: str, megabytes: int) -> bytes:
    zeros, pieces = bytes(2**20), []
    if coding in ("gzip", "deflate"):
        packer = zlib.compressobj(9, wbits=31 if coding == "gzip" else 15)
        pieces = [packer.compress(zeros) for _ in range(megabytes)] + [packer.flush()]
    elif coding == "br":
        brotlied = brotli.Compressor(quality=5)
        pieces = [brotlied.process(zeros) for _ in range(megabytes)] + [brotlied.finish()]
    else:
        packing = zstandard.ZstdCompressor().compressobj()
        pieces = [packing.compress(zeros) for _ in range(megabytes)] + [packing.flush()]
    return b"".join(pieces)


def bombs(first: int, count: int, folder: Path) -> Counter[str]:
    """Bodies that grow, in every coding, alone and within another: the most that undoing one added to memory."""
    found: Counter[str] = Counter()
    cases = list(itertools.product(("gzip", "deflate", "br", "zstd"), BOMBS, (False, True)))
    for n in range(first, first + count):
        coding, megabytes, nested = cases[n % len(cases)]
        body, codings = _bomb(coding, megabytes), [coding]
        if nested:
            packer = zlib.compressobj(9, wbits=31)
            body, codings = packer.compress(body) + packer.flush(), [coding, "gzip"]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            decoder, size = Decoder(codings), 0
            try:
                for begin in range(0, len(body), 16384):
                    size += len(decoder.feed(body[begin : begin + 16384], ROOM - size))
            except (TooMuch, BrokenCoding):
                pass
            os.write(writing, b"%d" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
            os._exit(0 if size <= ROOM else 1)
        os.close(writing)
        ended = os.waitpid(child, 0)[1]
        with os.fdopen(reading, "rb") as pipe:
            grown = int(pipe.read() or 0) / 1024
        found["rounds"] += 1
        found["not stopped"] += int(ended != 0)
        found["over 32 MB"] += int(grown > 32)
    return found
