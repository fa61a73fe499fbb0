"""Why an exchange over HTTP failed, in words: they name the host and never a header, a path or a query."""

from __future__ import annotations

import pycurl

from unstale.adapters.addresses import WebAddress
from unstale.adapters.landing import no_room
from unstale.adapters.transfer import NO_BODY, NO_CODING, NO_HTTP, WHOLE, Transfer
from unstale.ports import Request

# libcurl codes that pycurl has no name for
_WEIRD_REPLY, _HTTP2_STREAM, _TOO_LARGE = 8, 92, 100
_REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "its name could not be resolved",
    pycurl.E_COULDNT_CONNECT: "it could not be connected to",
    pycurl.E_UNSUPPORTED_PROTOCOL: NO_HTTP,
    _WEIRD_REPLY: NO_HTTP,
    pycurl.E_PARTIAL_FILE: NO_BODY,
    pycurl.E_GOT_NOTHING: "it closed the connection without an answer",
    pycurl.E_SEND_ERROR: "the connection was cut",
    pycurl.E_RECV_ERROR: "the connection was cut",
    pycurl.E_BAD_CONTENT_ENCODING: NO_CODING,
    _TOO_LARGE: "its headers are too large",
    pycurl.E_PEER_FAILED_VERIFICATION: "its certificate is not trusted",
    pycurl.E_SSL_CONNECT_ERROR: "no secure connection could be agreed on",
    pycurl.E_HTTP2: "it broke the rules of HTTP/2",
    _HTTP2_STREAM: "it broke the rules of HTTP/2",
}


def worded(code: int, here: WebAddress, transfer: Transfer, request: Request) -> str:
    """Why an exchange did not end well, by libcurl's number; empty if its answer counts all the same."""
    if transfer.fault:
        return f"{here.host}: {transfer.fault}"
    if code == pycurl.E_WRITE_ERROR and transfer.status not in WHOLE | {0}:
        return ""  # We stopped a long explanation of a refusal; it is still that refusal.
    if transfer.refused and code == pycurl.E_COULDNT_CONNECT:
        return refusal(here.host, transfer.refused)
    if code == pycurl.E_OPERATION_TIMEDOUT and transfer.body.waits:
        return no_room(here.host, request)
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return f"{here.host}: no whole answer within {request.seconds:g} s"
    if code == pycurl.E_RECV_ERROR and transfer.too_many_headers():
        return f"{here.host}: {_REASONS[_TOO_LARGE]}"
    return f"{here.host}: {_REASONS.get(code, f'the exchange broke off (libcurl error {code})')}"


def refusal(host: str, dialled: str) -> str:
    """Why an address was not dialled."""
    return f"{host}: its address {dialled} is not public, add it to allow_networks in the settings if it may be polled"
