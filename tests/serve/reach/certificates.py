"""Self-signed certificates, made by openssl."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

_CONFIG = """
[ca]
default_ca = own
[own]
database = {folder}/index
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
x509_extensions = extensions
[any]
commonName = supplied
[extensions]
subjectAltName = DNS:localhost,IP:127.0.0.1
[req]
distinguished_name = name
[name]
"""


class Certificate(NamedTuple):
    """A certificate for localhost and 127.0.0.1, and its key, as files."""

    certificate: str
    key: str

    @property
    def options(self) -> tuple[str, ...]:
        return "--tls-cert", self.certificate, "--tls-key", self.key


def make_certificate(folder: Path, days: int = 30) -> Certificate:
    """Make a certificate that ends in so many days; negative: it has expired."""
    folder.mkdir()
    made = Certificate(str(folder / "certificate.pem"), str(folder / "key.pem"))
    config = folder / "config"
    config.write_text(_CONFIG.format(folder=folder))
    (folder / "index").touch()
    (folder / "serial").write_text("01")
    request, now = str(folder / "request"), datetime.now(UTC)
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", made.key)
    openssl("req", "-new", "-key", made.key, "-subj", "/CN=localhost", "-out", request, "-config", str(config))
    dates = [f"{now + timedelta(days=at):%Y%m%d%H%M%SZ}" for at in (-365, days)]
    signing = ["-batch", "-notext", "-selfsign", "-keyfile", made.key, "-in", request, "-out", made.certificate]
    openssl("ca", "-config", str(config), *signing, "-startdate", dates[0], "-enddate", dates[1])
    Path(made.key).chmod(0o600)
    return made


def openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
