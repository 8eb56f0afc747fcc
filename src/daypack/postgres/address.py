"""Addresses of databases: postgresql://USER@HOST/NAME. What is shown of one never contains its password.

An address that can be read in two ways is refused: the part that one reader takes for a host may be the password that
its author meant.
"""

import re
from urllib.parse import unquote

from daypack.errors import BadConfig

SCHEMES = ("postgresql", "postgres")
UNREADABLE = "the address cannot be read"
ENCODE = (
    "write postgresql://USER@HOST/DATABASE; percent-encode special characters of a password, such as %40 for @,"
    " %2F for / and %25 for %"
)
_FORM = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?(?P<hosts>[^@/?#]*)(?P<name>/[^@?#]*)?"
    r"(?:\?(?P<parameters>[^@#]*))?"
)
_HOST = re.compile(r"(?:\[[^\[\]]*\]|[^:\[\]]*)(?::[0-9]*)?")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_COLON = re.compile("%3a", re.IGNORECASE)
_HIDDEN = "postgresql://…"
# The parameters that say which database it is, and what is shown of their values: anything else may be a password at a
# wrong place.
_SHOWN = {
    **dict.fromkeys(("host", "dbname", "service"), re.compile(r"[\w.,:/~+-]*")),
    **dict.fromkeys(("hostaddr", "port"), re.compile(r"[0-9a-f.,:]*")),
}


def is_address(text: str) -> bool:
    """Return True for the address of a PostgreSQL database."""
    return text.partition("://")[0] in SCHEMES and "://" in text


def check_address(text: str, place: str) -> str:
    """Return an address that can be used, or raise BadConfig; `place` says where it is from."""
    if not is_address(text):
        hint = "write postgresql://USER@HOST/DATABASE"
        scheme, mark, _ = text.partition("://")  # of what is no address, any part may be a password
        problem = f"'{scheme[:20]}://…' is not the address of a database" if mark else "not the address of a database"
        raise BadConfig(problem, operation="open store", place=place, hint=hint)
    if _read(text) is None:
        raise BadConfig(UNREADABLE, operation="open store", place=place, hint=ENCODE)
    return text


def shown(text: str) -> str:
    """Return an address without its password and without the parameters that do not say which database it is."""
    parts = _read(text)
    name = parts["name"] or "" if parts else ""
    if parts is None or "=" in name or "&" in name:  # parameters without their question mark
        return _HIDDEN
    user = "" if parts["user"] is None else f"{parts['user']}@"
    where = "&".join(filter(_says_where, (parts["parameters"] or "").split("&")))
    return f"{parts['scheme']}://{user}{parts['hosts']}{name}{where and '?'}{where}"


def _says_where(parameter: str) -> bool:
    key, _, value = parameter.partition("=")
    return key in _SHOWN and _SHOWN[key].fullmatch(unquote(value)) is not None


def name_of_database(text: str) -> str:
    """Return the part of an address that says which database it is, and its user: for comparisons, not for people."""
    parts = _read(text)
    if parts is None or shown(text) == _HIDDEN:
        return _HIDDEN
    user = "" if parts["user"] is None else f"{parts['user']}@"
    given = (parts["parameters"] or "").split("&")
    naming = "&".join(sorted(each for each in given if each.partition("=")[0] in _SHOWN))
    return f"{parts['scheme']}://{user}{parts['hosts']}{parts['name'] or ''}{'?' if naming else ''}{naming}"


def _read(text: str) -> re.Match[str] | None:
    """Return the parts of an address that can be read in one way only."""
    parts = _FORM.fullmatch(text)
    if parts is None or _BAD_ESCAPE.search(text) or _COLON.search(parts["user"] or ""):
        return None
    return parts if all(map(_HOST.fullmatch, parts["hosts"].split(","))) else None
