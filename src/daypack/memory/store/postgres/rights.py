"""Compares the rights in a database with those its schema gives: who sees whose rows, and what the roles may do.

The expected rights are read from the files of the schema: `SELECT protect(…)`, GRANT, CREATE POLICY.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from daypack.memory.store.examination import StoreProblem
from daypack.postgres.migrations import APP, OWNER, ROLES, SCHEMA, list_migrations
from daypack.postgres.transaction import Transaction

_PROTECT = re.compile(r"SELECT protect\('(\w+)', '([A-Z, ]+)'(?:, (\d+))?\)")
_GRANT = re.compile(r"GRANT ([A-Z, ]+) ON (?!SEQUENCE|FUNCTION|SCHEMA)([\w, ]+) TO ([\w, ]+);")
_POLICY = re.compile(r"CREATE POLICY (\w+) ON (\w+)")
_FORCED = re.compile(r"ALTER TABLE (\w+) FORCE ROW LEVEL SECURITY")
_PARTITIONS = 8  # the default of `protect`
_UNPROTECTED = ("small_vectors",)  # a partition: its parent is protected
_OWN_ROWS = "(tenant = current_setting('daypack.tenant'::text))"
_GRANTED = (
    "SELECT relname, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END, privilege_type"
    " FROM pg_class, aclexplode(relacl) WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')"
)
_SECURED = (
    "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
    " WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')"
)
_CHILDREN = (
    "SELECT p.relname, c.relname FROM pg_inherits"
    " JOIN pg_class p ON p.oid = inhparent JOIN pg_class c ON c.oid = inhrelid"
    " WHERE p.relnamespace = %s::regnamespace"
)
_POLICIES = "SELECT tablename, policyname, qual, with_check FROM pg_policies WHERE schemaname = %s"
_CREATORS = (
    "SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END"
    " FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner)))"
    " WHERE nspname = %s AND privilege_type = 'CREATE' AND grantee <> %s::regrole ORDER BY 1"
)
# Those of extensions belong to the role that created the extension.
_FOREIGN = """
SELECT 'FUNCTION', oid::regprocedure::text, proowner::regrole::text FROM pg_proc p
WHERE pronamespace = %s::regnamespace AND proowner <> %s::regrole
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
UNION ALL
SELECT 'OPERATOR', oid::regoperator::text, oprowner::regrole::text FROM pg_operator o
WHERE oprnamespace = %s::regnamespace AND oprowner <> %s::regrole
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_operator'::regclass AND objid = o.oid AND deptype = 'e')
ORDER BY 1, 2
"""
_MIGHTY = (
    "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = ANY(%s)"
    " AND (rolsuper OR rolbypassrls OR rolcreaterole AND rolname = %s) ORDER BY rolname"
)
# A superuser is a member of every role.
_MEMBERSHIPS = (
    "SELECT quote_ident(r.rolname) FROM pg_roles a, pg_roles r WHERE a.rolname = %s AND NOT a.rolsuper"
    " AND r.oid <> a.oid AND (r.rolname = ANY(%s) OR r.rolsuper OR r.rolbypassrls)"
    " AND pg_has_role(a.oid, r.oid, 'MEMBER') ORDER BY r.rolname"
)


class _Expected(NamedTuple):
    rights: dict[str, set[str]]  # of the app, by table
    partitions: dict[str, int]
    secured: set[str]
    own: set[str]  # tables whose rows belong to a tenant
    policies: set[tuple[str, str]]


def _expected() -> _Expected:
    found = _Expected(defaultdict(set), {}, set(), set(), set())
    for migration in list_migrations():
        text = re.sub(r"--[^\n]*|\$\$.*?\$\$", "", migration.text, flags=re.DOTALL)
        for name, rights, partitions in _PROTECT.findall(text):
            found.partitions[name] = int(partitions or _PARTITIONS)
            if name not in _UNPROTECTED:
                found.rights[name] |= set(rights.split(", "))
                found.own.add(name)
                found.policies.update(((name, "own"), (name, "every")))
        for rights, names, roles in _GRANT.findall(text):
            if APP in roles.split(", "):
                for name in names.split(", "):
                    found.rights[name] |= set(rights.split(", "))
        found.policies.update((name, policy) for policy, name in _POLICY.findall(text))
        found.secured.update(_FORCED.findall(text))
    found.secured.update(found.own)
    return found


def examine_rights(transaction: Transaction) -> Iterator[StoreProblem]:
    """Yield what differs from the schema."""
    expected = _expected()
    secured = dict(transaction.rows(_SECURED, (SCHEMA,)))
    for name in sorted(expected.secured):
        if not secured.get(name):
            problem = "row-level security is not forced" if name in secured else "it does not exist"
            yield StoreProblem(f"table {name}", problem)
    yield from _examine_grants(transaction, expected)
    yield from _examine_policies(transaction, expected)
    children = set(transaction.rows(_CHILDREN, (SCHEMA,)))
    for name, partitions in sorted(expected.partitions.items()):
        missing = [number for number in range(partitions) if (name, f"{name}_{number}") not in children]
        if missing:
            yield StoreProblem(f"table {name}", f"partition {', '.join(map(str, missing))} does not exist")
    yield from _examine_schema(transaction)
    yield from examine_roles(transaction)


def examine_roles(transaction: Transaction) -> Iterator[StoreProblem]:
    """Yield which roles have rights that no role of the schema may have, each with the statement that takes them."""
    for role, is_unbound in transaction.rows(_MIGHTY, (list(ROLES), APP)):
        problem = "it is not subject to row-level security" if is_unbound else "it may create roles"
        remedy = f"as an administrator: ALTER ROLE {role} NOSUPERUSER NOBYPASSRLS NOCREATEROLE;"
        yield StoreProblem(f"role {role}", problem, remedy=remedy)
    for (other,) in transaction.rows(_MEMBERSHIPS, (APP, list(ROLES))):
        remedy = f"as an administrator: REVOKE {other} FROM {APP}; or from the role through which it is a member"
        yield StoreProblem(f"role {APP}", f"it is a member of {other}, and has its rights", remedy=remedy)


def _examine_schema(transaction: Transaction) -> Iterator[StoreProblem]:
    """Yield who may have statements call functions of theirs instead of those of PostgreSQL, and which there are."""
    for (role,) in transaction.rows(_CREATORS, (SCHEMA, OWNER)):
        revoked = f"REVOKE CREATE ON SCHEMA {SCHEMA} FROM {role};"
        remedy = f"as an administrator: ALTER SCHEMA {SCHEMA} OWNER TO {OWNER}; {revoked}"
        yield StoreProblem(f"schema {SCHEMA}", f"{role} may create objects in it", remedy=remedy)
    for kind, name, role in transaction.rows(_FOREIGN, (SCHEMA, OWNER) * 2):
        full_name = f"{SCHEMA}.{name.removeprefix(f'{SCHEMA}.')}"
        problem = f"it belongs to {role}, and statements may call it instead of PostgreSQL's own"
        remedy = f"as an administrator: DROP {kind} {full_name};"
        yield StoreProblem(f"{kind.lower()} {full_name}", problem, remedy=remedy)


def _examine_grants(transaction: Transaction, expected: _Expected) -> Iterator[StoreProblem]:
    granted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, role, right in transaction.rows(_GRANTED, (SCHEMA,)):
        granted[name, role].add(right)
    for name in sorted({*expected.rights, *(table for table, role in granted if role == APP)}):
        rights, wanted = granted.get((name, APP), set[str]()), expected.rights.get(name, set[str]())
        if rights - wanted:
            yield StoreProblem(f"table {name}", f"{APP} has more rights than it should: {_listed(rights - wanted)}")
        if wanted - rights:
            yield StoreProblem(f"table {name}", f"{APP} lacks rights: {_listed(wanted - rights)}")
    for name, role in sorted(granted):
        if role == "PUBLIC" and name != "migrations":
            yield StoreProblem(f"table {name}", f"everybody has rights: {_listed(granted[name, role])}")


def _examine_policies(transaction: Transaction, expected: _Expected) -> Iterator[StoreProblem]:
    policies = {(name, policy): (qual, check) for name, policy, qual, check in transaction.rows(_POLICIES, (SCHEMA,))}
    for name, policy in sorted(expected.policies - policies.keys()):
        yield StoreProblem(f"table {name}", f"the policy {policy} does not exist")
    for name, policy in sorted(policies.keys() - expected.policies):
        yield StoreProblem(f"table {name}", f"the policy {policy} is none of the schema")
    for name in sorted(expected.own):
        if policies.get((name, "own"), (_OWN_ROWS, _OWN_ROWS)) != (_OWN_ROWS, _OWN_ROWS):
            yield StoreProblem(f"table {name}", "the policy own does not compare the tenant")


def _listed(rights: set[str]) -> str:
    return ", ".join(sorted(rights))
