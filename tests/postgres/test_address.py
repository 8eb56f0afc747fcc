"""Addresses of databases: what is refused, and what is shown of them."""

import pytest

from daypack.errors import BadConfig
from daypack.history.home import find_home
from daypack.postgres.address import check_address, name_of_database, shown
from daypack.postgres.database import Database

AMBIGUOUS = (
    "postgresql://u:S3C%RETx@h/db",
    "postgresql://u:S3CRET%@h/db",
    "postgresql://u:S3CRET%00@h/db",
    "postgresql://u@h/db?password=S3CRET%x",
    "postgresql://u@h/db?password=S3CRET@x",
    "postgresql://u:12/S3CRETx@h/db",
    "postgresql://u:a,S3CRETx/y@h",
    "postgresql://u:1#S3CRET@h/db",
    "postgresql://u:1?S3CRET@h/db",
    "postgresql://u:1@S3CRET@h/db",
    "postgresql://u%3AS3CRET@h/db",
    "postgresql://u%3aS3CRET@h/db",
    "postgresql://u:S3CRET",
    "postgresql://u:S3CRET/db",
    "postgresql://u:p@h/db#S3CRET",
    "postgresql://u@[S3CRET/db",
)


@pytest.mark.parametrize("address", AMBIGUOUS)
def test_an_address_that_can_be_read_in_two_ways_is_refused_without_its_password(address: str) -> None:
    for refused in (lambda: check_address(address, "--store-url"), lambda: Database(address)):
        with pytest.raises(BadConfig, match=r"the address cannot be read .*percent-encode") as error:
            refused()
        assert "S3C" not in str(error.value)
        assert error.value.__cause__ is None
    assert shown(address) == "postgresql://…"


@pytest.mark.parametrize(
    ("address", "visible"),
    [
        ("postgresql://ada:s3cret@db.example:5432/m?sslmode=require", "postgresql://ada@db.example:5432/m"),
        ("postgresql://ada@/m?host=/run&password=x", "postgresql://ada@/m?host=/run"),
        (
            "postgresql://ada@/m?password=x&port=5433&host=%2Frun%2Fpg-1",
            "postgresql://ada@/m?port=5433&host=%2Frun%2Fpg-1",
        ),
        ("postgresql://ada@/m?host=/run;password=x&port=1", "postgresql://ada@/m?port=1"),
        ("postgresql://ada@/m?host=/run%26password=x", "postgresql://ada@/m"),
        ("postgresql://ada@/m?sslpassword=x&user=eve&dbname=n", "postgresql://ada@/m?dbname=n"),
        ("postgres://a%40b:p%2Fq:r@h1:1,h2:2,[::1]:3/m", "postgres://a%40b@h1:1,h2:2,[::1]:3/m"),
        ("postgresql://%2Frun%2Fpg/m", "postgresql://%2Frun%2Fpg/m"),
        ("postgresql:///m", "postgresql:///m"),
        ("postgresql://", "postgresql://"),
        ("postgresql://h/m&password=s3cret", "postgresql://…"),
    ],
)
def test_what_is_shown_of_an_address_has_no_password(address: str, visible: str) -> None:
    assert check_address(address, "") == address
    assert shown(address) == visible


def test_databases_of_servers_on_different_sockets_have_caches_of_their_own(home: str) -> None:
    addresses = [f"postgresql://ada:{word}@/m?host=/run/{server}" for server in "ab" for word in ("s3cret", "other")]
    stores = [find_home(home, store=address).database for address in addresses]
    first, again, other, _ = (store.cache_name for store in stores if store)
    assert first == again != other


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://ada:s3cret@db.example:5432/m?sslmode=require", "postgresql://ada@db.example:5432/m"),
        ("postgresql://ada@/m?port=1&password=x&host=/run", "postgresql://ada@/m?host=/run&port=1"),
        ("postgresql://?dbname=m&connect_timeout=3&hostaddr=::1", "postgresql://?dbname=m&hostaddr=::1"),
        ("postgresql://h/m&password=s3cret", "postgresql://…"),
    ],
)
def test_databases_are_told_apart_by_whatever_names_them_in_an_address(address: str, name: str) -> None:
    assert name_of_database(address) == name
