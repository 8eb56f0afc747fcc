"""TLS of a server: the two PEM files, checked before anything listens, and what is doubtful about them."""

import os
import ssl
import time
from typing import NamedTuple

from daypack.errors import BadInput
from daypack.plain_files import open_fd, open_plain

_SOON_DAYS = 14  # a certificate that expires within so many days is reported
_DAY_SECONDS = 86_400
_EXPIRED, _NOT_YET_VALID = 10, 9  # of OpenSSL: X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID
_ROUNDS = 10  # a handshake takes three


class Warned(NamedTuple):
    """Something that does not prevent serving, but should be changed."""

    place: str
    problem: str
    hint: str


class Tls(NamedTuple):
    """A context that accepts TLS 1.2 and 1.3, and the warnings about its files."""

    context: ssl.SSLContext
    warnings: tuple[Warned, ...] = ()


def open_tls(certificate: str, key: str) -> Tls:
    """Return the context of two PEM files; raise BadInput if they cannot be used together."""
    for path, what, begins in ((certificate, "certificate", "CERTIFICATE-----"), (key, "private key", "KEY-----")):
        _check_pem(path, what, begins)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    asked: list[str] = []

    def ask_password() -> str:  # without it OpenSSL asks at the terminal
        asked.append(key)
        return ""

    try:
        context.load_cert_chain(certificate, key, ask_password)
    except ssl.SSLError as error:
        raise _unusable(certificate, key, error, is_encrypted=bool(asked)) from error
    return Tls(context, (*_warn_of_time(context, certificate), *_warn_of_readers(key)))


def _check_pem(path: str, what: str, begins: str) -> None:
    try:
        with open_plain(path) as file:
            text = file.read()
    except OSError as error:
        hint = f"name the file of the {what} in PEM form, which the user of the server can read"
        raise BadInput(_lower(error), operation="read TLS files", place=path, hint=hint) from error
    if b"-----BEGIN " not in text or begins.encode() not in text:
        hint = f"it must have a line like -----BEGIN {begins}; from DER: openssl x509 (or pkey) -inform der"
        raise BadInput(f"this is no {what} in PEM form", operation="read TLS files", place=path, hint=hint)


def _unusable(certificate: str, key: str, error: ssl.SSLError, *, is_encrypted: bool) -> BadInput:
    operation = "read TLS files"
    if is_encrypted:
        hint = "the server cannot ask for a password: write it without one with `openssl pkey -in FILE -out NEW`"
        return BadInput("the private key is encrypted", operation=operation, place=key, hint=hint)
    if error.reason == "KEY_VALUES_MISMATCH":
        hint = f"the first certificate of {certificate} must be the one that was made with this key"
        return BadInput("the key does not match the certificate", operation=operation, place=key, hint=hint)
    reason = (error.reason or "it cannot be read").lower().replace("_", " ")
    hint = "`openssl x509 -in CERTIFICATE -noout -text` and `openssl pkey -in KEY -check -noout` say more"
    return BadInput(f"the files cannot be used: {reason}", operation=operation, place=certificate, hint=hint)


def _warn_of_time(context: ssl.SSLContext, certificate: str) -> list[Warned]:
    renew = "renew the certificate and start the server again"
    try:
        not_after = _try_handshake(context, certificate)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == _EXPIRED:
            return [Warned(certificate, "the certificate has expired: clients will refuse it", renew)]
        if error.verify_code == _NOT_YET_VALID:
            hint = "check the clock of this machine"
            return [Warned(certificate, "the certificate is not valid yet: clients will refuse it", hint)]
        return [Warned(certificate, f"clients may refuse the certificate: {error.verify_message}", renew)]
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return [Warned(certificate, f"clients may refuse the certificate: {reason}", renew)]
    days = int((ssl.cert_time_to_seconds(not_after) - time.time()) // _DAY_SECONDS) if not_after else _SOON_DAYS
    return [Warned(certificate, f"the certificate expires in {days} days", renew)] if days < _SOON_DAYS else []


def _try_handshake(context: ssl.SSLContext, certificate: str) -> str:
    """Shake hands with ourselves, in memory, as a client that trusts this certificate; return when it expires."""
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.check_hostname = False
    client_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # its issuer need not be known here
    client_context.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server) * _ROUNDS:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return str((client.getpeercert() or {}).get("notAfter", ""))


def _warn_of_readers(key: str) -> list[Warned]:
    descriptor = open_fd(key)
    try:
        mode = os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)
    if not mode & 0o007:  # a group is often how a server may read it
        return []
    return [Warned(key, "other users of this machine can read the private key", f"chmod o-rwx {key}")]


def _lower(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
