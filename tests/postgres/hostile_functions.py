"""Functions and operators of an account that may create in public, which fit our calls better than those of PostgreSQL.

Of two functions of a name, the server calls the one whose parameters fit the arguments better, wherever in the search
path it is: `nextval(text)` for nextval('jobs_id'), `cardinality(text[])` for the one that takes every array. So each
function that the sources name is here for each type that an argument may have. What they do is what an attacker would
do: take the rights of the account of the address, and use them.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import psycopg

import daypack

_TYPES = ("text", "bytea", "bigint", "integer", "smallint", "uuid", "name", "boolean")
_ANY_TYPE = ("anyelement", "anycompatible", "anynonarray", "anycompatiblenonarray", '"any"')
_ANY_ARRAY = ("anyarray", "anycompatiblearray")
_BETTER = {  # types of arguments that PostgreSQL would convert for its own function
    "text": ("text", "name"),
    "name": ("name", "text"),
    "oid": ("oid", "text"),
    "regclass": ("text",),
    "bigint": ("bigint", "integer"),
    "integer": ("integer", "smallint"),
    "double precision": ("double precision", "numeric", "integer"),
}
_FUNCTIONS = """
SELECT proname, proargtypes::regtype[]::text[], prorettype::regtype::text FROM pg_proc
WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a') AND proname = ANY(%s)
    AND pronargs BETWEEN 1 AND 4
    AND NOT '{internal,cstring,trigger}'::regtype[] && (proargtypes::regtype[] || prorettype::regtype)
"""
_TRAP = """
CREATE FUNCTION public.spring(call text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_catalog.set_config('role', 'none', true);
    INSERT INTO public.sprung VALUES (call);
    ALTER ROLE {role} SUPERUSER;
END $$
"""
_FUNCTION = "CREATE FUNCTION public.{name}({given}) RETURNS {result} LANGUAGE plpgsql AS {body}"
_BODY = "$$ BEGIN PERFORM public.spring('{name}'); RETURN NULL; END $$"
_OPERATOR = "CREATE OPERATOR public.{name} (FUNCTION = public.{function}, LEFTARG = {left}, RIGHTARG = {right})"


def set_traps(url: str, role: str) -> int:
    """Create an account of that name, and in a database the functions of it; return how many there are."""
    with psycopg.connect(url, autocommit=True) as connection:
        traps = {**_functions(connection), **_operators()}
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"GRANT CREATE ON SCHEMA public TO {role}".encode())
    with psycopg.connect(url.replace("postgres@", f"{role}@")) as connection:
        connection.execute("SET check_function_bodies = off")
        connection.execute("CREATE TABLE public.sprung(call text)")
        connection.execute(_TRAP.format(role=role).encode())
        connection.execute(";".join(traps.values()).encode())
    return len(traps)


def read_traps(url: str, role: str) -> tuple[list[str], bool]:
    """Return which functions were called, and whether the account has become a superuser."""
    with psycopg.connect(url) as connection:
        calls = [call for (call,) in connection.execute("SELECT call FROM public.sprung").fetchall()]
        row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    return calls, bool(row and row[0])


def _functions(connection: "psycopg.Connection[tuple[str, list[str], str]]") -> dict[str, str]:
    """Return statements that create functions, by signature."""
    made = {"make_interval(secs double precision)": _function("make_interval", "secs double precision", "interval")}
    for name, types, result in connection.execute(_FUNCTIONS, (_called(),)).fetchall():
        lists = [types, [*types, types[-1]], [*types, *types[-1:] * 2]] if types[-1] == '"any"' else [types]
        is_polymorphic = any(kind in (*_ANY_TYPE, *_ANY_ARRAY) for kind in types)
        for types_given, element in product(lists, _TYPES if is_polymorphic else ("text",)):
            for chosen in product(*(_choices(kind, element) for kind in types_given)):
                given = ", ".join(chosen)
                made[f"{name}({given})"] = _function(name, given, _choices(result, element)[0])
    return made


def _called() -> list[str]:
    """Return the names before parentheses in the sources."""
    paths = [path for path in Path(daypack.__file__).parent.rglob("*") if path.suffix in (".py", ".sql")]
    return sorted({name for path in paths for name in re.findall(r"\b([a-z_0-9]+)\(", path.read_text("utf-8"))})


def _choices(kind: str, element: str) -> tuple[str, ...]:
    if kind in _ANY_TYPE:
        return (element,)
    if kind in _ANY_ARRAY:
        return (f"{element}[]",)
    return _BETTER.get(kind, (kind,))


def _function(name: str, given: str, result: str) -> str:
    return _FUNCTION.format(name=name, given=given, result=result, body=_BODY.format(name=name))


def _operators() -> dict[str, str]:
    return {f"{name} {left} {right}": made for name, left, right, made in _each_operator()}


def _each_operator() -> Iterator[tuple[str, str, str, str]]:
    for kind in _TYPES:
        several = f"{kind}[]"
        for left, right in ((several, kind), (kind, several), (several, several)):
            function = _function("joined", f"{left}, {right}", several)
            operator = _OPERATOR.format(name="||", function="joined", left=left, right=right)
            yield "||", left, right, f"{function};{operator}"
    for left, right in product(_TYPES, _TYPES):
        function = _function("equal", f"{left}, {right}", "boolean")
        operator = _OPERATOR.format(name="=", function="equal", left=left, right=right)
        yield "=", left, right, f"{function};{operator}"
