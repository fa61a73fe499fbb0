"""A certificate that nobody has signed, for servers on loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import pytest


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for 127.0.0.1, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    order = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    order += ["-keyout", key, "-out", cert, "-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, *order], check=True, capture_output=True)
    return cert, key


def server_side(certificate: tuple[str, str], *protocols: str) -> ssl.SSLContext:
    """What a server needs; `protocols` are those it offers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context
