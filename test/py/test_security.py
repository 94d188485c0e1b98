#!/usr/bin/python3
"""What a DBA asks of a trusted extension: it is installed by a user without
privileges, under a search_path full of traps, and calls none of them; nothing
but a filter's value gives its key away; and keys that an adversary found under
a public hash are nothing special to a keyed filter."""
import base64
import math
import os
import subprocess

import harness
from harness import PSQL, SLOW, Checks, SqlError, query

DATABASE = "bloom_security"
OWNER = "bloom_owner"
KEY = b"\x01Top-Secret!key\xfe"
COLLIDING = 100000

checks = Checks()


def as_role(role, sql, path="hostile, public", **options):
    """A script as another role, under another search_path."""
    kept = os.environ["PGOPTIONS"]
    os.environ["PGOPTIONS"] = f"{kept} -c search_path={path.replace(' ', '')}" + \
        "".join(f" -c {name}={value}" for name, value in options.items())
    try:
        return query(f"SET ROLE {role};" + sql)
    finally:
        os.environ["PGOPTIONS"] = kept


# ---------------------------------------------------------------------------
# Traps: objects that the script or the functions might take for their own
# ---------------------------------------------------------------------------
def traps(schema):
    """Made by the adversary, in a schema that comes first: types, casts,
    functions and operators of common names, each of which raises an error
    (or, where types are concerned, would make one)."""
    sql = [f"CREATE TYPE {schema}.{name} AS (trap integer);"
           for name in ("float8", "float4", "anycompatible", "bigint")]
    sql += [f"CREATE DOMAIN {schema}.text AS pg_catalog.text CHECK (false);",
            f"CREATE DOMAIN {schema}.bytea AS pg_catalog.bytea CHECK (false);",
            f"CREATE DOMAIN {schema}.\"boolean\" AS pg_catalog.bool CHECK (false);",
            f"CREATE DOMAIN {schema}.\"integer\" AS pg_catalog.int4 CHECK (false);"]

    def function(name, arguments, result):
        return (f"CREATE FUNCTION {schema}.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql"
                f" AS $$ BEGIN RAISE EXCEPTION 'trap {name}'; END $$;")

    for name, result in (("array_agg", "pg_catalog.text"), ("count", "pg_catalog.int8"),
                         ("unnest", "pg_catalog.text"), ("eqsel", "pg_catalog.float8"),
                         ("scalarltsel", "pg_catalog.float8")):
        sql.append(function(name, "pg_catalog.text", result))
        sql.append(function(name, "VARIADIC pg_catalog.text[]", result))
    for types in (("text", "text"), ("int4", "int4"), ("float8", "float8"), ("float8", "int4"),
                  ("bytea", "bytea"), ("oid", "oid"), ("name", "text"), ("bool", "bool")):
        left, right = (f"pg_catalog.{t}" for t in types)
        tag = f"{types[0]}_{types[1]}"
        sql.append(function(f"trap_{tag}", f"{left}, {right}", "pg_catalog.bool"))
        for operator in ("=", "<>", "<", ">", "<=", ">=", "@>", "<@", "|", "&"):
            sql.append(f"CREATE OPERATOR {schema}.{operator} (LEFTARG = {left},"
                       f" RIGHTARG = {right}, FUNCTION = {schema}.trap_{tag});")
    return "\n".join(sql)


def traps_for_filters(schema, where):
    """Once the type is there: better matches for every function and operator
    of the extension that takes filters, elements or numbers."""
    sql = []
    names = [name for (name,) in query("""
        SELECT DISTINCT proname FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid
            AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
        JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'bloomfilter'
        WHERE proname LIKE 'bloom%' ORDER BY 1""").rows]
    for name in names:
        for arguments in (f"{where}.bloomfilter, pg_catalog.text", f"{where}.bloomfilter",
                          f"pg_catalog.text, {where}.bloomfilter", f"{where}.bloomfilter, pg_catalog.int4",
                          f"{where}.bloomfilter, {where}.bloomfilter",
                          f"{where}.bloomfilter, pg_catalog.text[]",
                          "pg_catalog.text, pg_catalog.float8", "pg_catalog.int4"):
            sql.append(f"CREATE FUNCTION {schema}.{name}({arguments}) RETURNS {where}.bloomfilter"
                       f" LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trap {name}'; END $$;")
    for right in (f"{where}.bloomfilter", "pg_catalog.text", "pg_catalog.int4"):
        tag = right.rsplit(".", maxsplit=1)[-1]
        sql.append(f"CREATE FUNCTION {schema}.trap_filter_{tag}({where}.bloomfilter, {right})"
                   " RETURNS pg_catalog.bool LANGUAGE plpgsql AS"
                   " $$ BEGIN RAISE EXCEPTION 'trap operator'; END $$;")
        for operator in ("=", "|", "&", "@>", "<>"):
            sql.append(f"CREATE OPERATOR {schema}.{operator} (LEFTARG = {where}.bloomfilter,"
                       f" RIGHTARG = {right}, FUNCTION = {schema}.trap_filter_{tag});")
    return len(names), "\n".join(sql)


# everything that an object of the extension refers to, and where that is
FOREIGN = """
    WITH ours AS (
        SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
        WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
            AND e.extname = 'bloomfilter')
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid),
           pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
    FROM ours JOIN pg_depend d USING (classid, objid)
    WHERE (d.refclassid, d.refobjid) NOT IN (SELECT * FROM ours)
        AND d.refclassid NOT IN ('pg_extension'::regclass, 'pg_namespace'::regclass)
        AND d.refobjid >= 16384"""

USE = """
    CREATE TABLE {t} (name pg_catalog.text PRIMARY KEY, filter {e}.bloomfilter);
    CREATE TABLE {t}_keys (code pg_catalog.text, n pg_catalog.int4);
    INSERT INTO {t} VALUES ('codes', {e}.bloomfilter(1000)),
        ('pairs', {e}.bloomfilter(1000, layout => 'counting')),
        ('grows', {e}.bloomfilter(4, expansion => 2)),
        ('other', {e}.bloomfilter(1000));
    CREATE TRIGGER a AFTER INSERT ON {t}_keys REFERENCING NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION {e}.bloom_maintain('{t}', 'codes', 'code');
    CREATE TRIGGER b AFTER INSERT ON {t}_keys REFERENCING NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION {e}.bloom_maintain('{t}', 'pairs', 'code', 'n');
    CREATE TRIGGER c AFTER INSERT ON {t}_keys REFERENCING NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION {e}.bloom_maintain('{t}', 'grows', 'n');
    INSERT INTO {t}_keys SELECT i::pg_catalog.text, i FROM pg_catalog.generate_series(1, 100) i;
"""


def install_as_owner():
    """In a schema of the owner's, with traps in public and in a schema that
    is first in the path, then the other way round: into public itself."""
    for target in ("bloom", "public"):
        query(f"""
            DROP SCHEMA IF EXISTS hostile CASCADE; DROP SCHEMA public CASCADE;
            CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC;
            CREATE SCHEMA hostile; GRANT ALL ON SCHEMA hostile TO PUBLIC;
            CREATE SCHEMA IF NOT EXISTS bloom AUTHORIZATION {OWNER};
            SET ROLE bloom_adversary;
            {traps('hostile')} {traps('public')}""")
        as_role(OWNER, f"CREATE EXTENSION bloomfilter SCHEMA {target}")
        checks.check(True, f"a user without privileges installs it into {target}")
        # it belongs to the superuser, as a trusted extension's objects do
        checks.equal(query(FOREIGN).rows, [], f"{target}: what it refers to is its own or the server's")
        count, more = traps_for_filters("hostile", target)
        query(f"GRANT USAGE ON SCHEMA {target} TO PUBLIC; SET ROLE bloom_adversary; {more}")
        as_role(OWNER, USE.format(t=f"{target}.used", e=target), path="hostile,pg_catalog",
                client_min_messages="error")
        result = as_role(OWNER, f"""
            SELECT string_agg(name || ' ' || round({target}.bloom_cardinality(filter)::numeric, -1),
                              ', ' ORDER BY name) FROM {target}.used""",
                         path="pg_catalog").value
        checks.equal(result, "codes 100, grows 100, other 0, pairs 100",
                     f"{target}: triggers under a path with {count} names of traps")
        found = as_role(OWNER, f"""
            SELECT pg_catalog.count(*) FROM {target}.used_keys, {target}.used u
            WHERE u.name OPERATOR(pg_catalog.=) 'codes'::pg_catalog.text
                AND u.filter OPERATOR({target}.@>) code""", path="hostile,pg_catalog").value
        checks.equal(found, "100", f"{target}: a qualified probe under that path")
        query(f"DROP TABLE {target}.used, {target}.used_keys;")
        query("DROP SCHEMA hostile CASCADE;")
        as_role(OWNER, "DROP EXTENSION bloomfilter", path="pg_catalog")


def clashes():
    """What an adversary makes in the target schema beforehand makes the script
    fail: it never takes such an object for its own."""
    for made in ("CREATE TYPE public.bloomfilter AS (a integer)",
                 "CREATE FUNCTION public.bloomfilter_in(cstring) RETURNS text"
                 " LANGUAGE internal AS 'textin'",
                 "CREATE FUNCTION public.bloom_agg_trans(internal, anyelement) RETURNS internal"
                 " LANGUAGE internal AS 'int4in'"):
        query("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public;"
              " GRANT ALL ON SCHEMA public TO PUBLIC;")
        try:
            query(f"SET ROLE bloom_adversary; {made}")
        except SqlError:
            # pseudo-types and internal functions are for superusers
            query(made)
        try:
            as_role(OWNER, "CREATE EXTENSION bloomfilter SCHEMA public", path="public")
            checks.check(False, f"{made[:40]}: the script goes on")
        except SqlError as error:
            checks.check(error.sqlstate in ("42710", "42723", "42P07", "55000", "42809"),
                         f"{made[:40]}...: {error.sqlstate}")
    query("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC;")


def no_leakproof():
    """Nothing may run before a security barrier's own conditions."""
    checks.equal(query("""
        SELECT count(*) FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid
            AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
        JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'bloomfilter'
        WHERE p.proleakproof OR p.prosecdef""").value, "0",
                 "no function is leakproof, or runs as its owner")


# ---------------------------------------------------------------------------
# The key
# ---------------------------------------------------------------------------
def traces(key):
    """The key as text: plain, hex, octal escapes, and base64 at each of the
    three places at which it can start."""
    found = [key[1:-1].decode(), key.hex(), key[1:-1].hex()]
    for lead in range(3):
        coded = base64.b64encode(bytes(lead) + key).decode()
        skip = (lead * 8 + 5) // 6
        found.append(coded[skip:skip + len(key) * 8 // 6 - 1])
    return [trace.lower() for trace in found]


def leaks(text):
    return [trace for trace in traces(KEY) if trace in text.lower()]


def said(sql):
    """All that a session says: rows, notices, errors, with every detail."""
    done = subprocess.run(PSQL + ["-v", "ON_ERROR_STOP=0", "-f", "-"], input=sql.encode(),
                          capture_output=True, check=False)
    return done.stdout.decode() + done.stderr.decode()


def keys_stay_secret():
    query(f"""
        DROP TABLE IF EXISTS keyed;
        CREATE TABLE keyed AS SELECT n, bloom_agg(i, bloomfilter(10, layout => layout,
            hash => 'blake2b', key => decode('{KEY.hex()}', 'hex'))) AS f
        FROM (VALUES (1, 'blocked'), (2, 'standard'), (3, 'counting'), (4, 'cuckoo')) l(n, layout),
            generate_series(1, 5) i GROUP BY n, layout;
        ANALYZE keyed;
        GRANT SELECT (n) ON keyed TO bloom_adversary;
        CREATE FUNCTION f(wanted int) RETURNS bloomfilter STABLE LANGUAGE sql
            AS 'SELECT f FROM keyed WHERE n = wanted'""")
    text = query("SELECT f FROM keyed WHERE n = 1").value
    checks.check(leaks(text), "the value itself has the key, and it is found there")

    plain = "SELECT bloomfilter(10, layout => 'blocked', hash => 'blake2b') AS f"
    other = "bloomfilter(10, hash => 'blake2b', key => 'another key')"
    talk = said(f"""
        SET client_min_messages = debug5; SET log_error_verbosity = verbose;
        SELECT bloom_info(f), bloom_cardinality(f), bloom_etag(f), bloom_expected_fpr(f),
            bloomfilter_hash(f), bloomfilter_hash_extended(f, 1) FROM keyed;
        SELECT f(1) | f(2); SELECT f(1) & bloomfilter(10);
        SELECT f(1) | {other}; SELECT f(1) & ({plain});
        SELECT bloom_compatible(f(1), f(2)); SELECT f(1) @> 'a'::text;
        SELECT bloom_add(f(1), 'a'::text); SELECT bloom_remove(f(1), 1);
        SELECT bloom_add(f(1), '{{}}'::jsonb); SELECT f(1) @> '{{}}'::json;
        SELECT bloom_info(bloom_add_all(f(1), ARRAY(SELECT generate_series(1, 10000))));
        SELECT bloom_info(bloom_add_all(f(4), ARRAY(SELECT generate_series(1, 10000))));
        SELECT bloom_info(bloom_agg(i, f(1))) FROM generate_series(1, 10000) i;
        SELECT bloom_info(bloom_agg(i, f(n))) FROM keyed, generate_series(1, 10) i;
        SELECT bloom_info(bloom_union_agg(f)) FROM keyed;
        SELECT set_byte(f(1)::bytea, 70, 255)::bloomfilter; SELECT substr(f(1)::bytea, 2)::bloomfilter;
        SELECT ('x' || f(1)::text)::bloomfilter; SELECT (substr(f(1)::text, 5))::bloomfilter;
        SELECT substr(f(1)::text, 1, 100)::bloomfilter;
        SELECT bloom_hash(1, 'blake2b', decode('{KEY.hex()}', 'hex'));
        SELECT bloomfilter(10, key => decode('{KEY.hex()}', 'hex')) IS NULL;
        SELECT bloomfilter(10, hash => 'blake2b', key => decode('{KEY.hex() * 3}', 'hex')) IS NULL;
        EXPLAIN (VERBOSE, ANALYZE) SELECT n FROM keyed WHERE f @> n;
        EXPLAIN (VERBOSE) SELECT n FROM keyed WHERE (SELECT f FROM keyed WHERE n = 1) @> n;
        PREPARE p(bloomfilter) AS SELECT n FROM keyed WHERE $1 @> n;
        SET plan_cache_mode = force_generic_plan;
        EXPLAIN (VERBOSE) EXECUTE p(NULL);
    """)
    # the statements themselves, which have the key, are not what is looked at
    lines = [line for line in talk.splitlines() if "decode('" not in line
             and "STATEMENT" not in line and not line.startswith("LINE ")]
    errors = sum("ERROR:" in line for line in lines)
    checks.check(errors >= 12, f"{errors} errors and their details were looked at")
    checks.check(any("WARNING" in line for line in lines), "so was a warning of overfill")
    found = [line for line in lines if leaks(line)]
    for line in found[:5]:
        print("       ", line[:300])
    checks.check(not found, f"none of {len(lines)} lines has the key")
    checks.equal(query("""SET ROLE bloom_adversary;
                          SELECT count(*) FROM pg_stats WHERE tablename = 'keyed'
                              AND attname = 'f'""").value, "0",
                 "statistics of the column are for those who may read the column")
    query("DROP FUNCTION f; DROP TABLE keyed")


# ---------------------------------------------------------------------------
# Chosen keys
# ---------------------------------------------------------------------------
def chosen_keys():
    """An adversary who knows all of an unkeyed filter finds keys that it does
    not hold and yet lets pass; a filter with a key that he does not know lets
    no more of these pass than of any."""
    for layout in ("blocked", "standard") if SLOW else ("blocked",):
        query(f"""
            DROP TABLE IF EXISTS public_filter, secret_filter, chosen;
            CREATE TABLE public_filter AS SELECT bloom_agg('real-' || i,
                bloomfilter(10000, 0.01, '{layout}', hash => 'blake2b')) AS f
                FROM generate_series(1, 10000) i;
            CREATE TABLE secret_filter AS SELECT bloom_agg('real-' || i,
                bloomfilter(10000, 0.01, '{layout}', hash => 'blake2b',
                            key => 'nobody knows this')) AS f
                FROM generate_series(1, 10000) i;
            CREATE TABLE chosen AS
                SELECT k FROM (SELECT 'guess-' || i AS k FROM generate_series(1, 30000000) i) g
                WHERE (SELECT f FROM public_filter) @> k LIMIT {COLLIDING}""")
        found, both, passed, rate = query("""
            SELECT count(*), count(*) FILTER (WHERE (SELECT f FROM public_filter) @> k),
                count(*) FILTER (WHERE (SELECT f FROM secret_filter) @> k),
                bloom_expected_fpr((SELECT f FROM secret_filter)) FROM chosen""").rows[0]
        checks.equal((found, both), (str(COLLIDING), str(COLLIDING)),
                     f"{layout}: chosen keys, and those that pass the public hash")
        q = max(0.01, float(rate))
        limit = COLLIDING * q + 3 * math.sqrt(COLLIDING * q * (1 - q))
        checks.check(int(passed) <= limit,
                     f"{layout}: {passed} of {found} pass the keyed filter, at most {limit:.0f}")
    query("DROP TABLE public_filter, secret_filter, chosen")


def main():
    maintenance = os.environ.get("PGDATABASE", "postgres")
    query(f"""DROP DATABASE IF EXISTS {DATABASE}; DROP ROLE IF EXISTS {OWNER};
              DROP ROLE IF EXISTS bloom_adversary;""")
    query(f"CREATE ROLE {OWNER}; CREATE ROLE bloom_adversary;")
    query(f"CREATE DATABASE {DATABASE}")
    query(f"GRANT CREATE ON DATABASE {DATABASE} TO {OWNER}")
    os.environ["PGDATABASE"] = DATABASE
    os.environ["PGOPTIONS"] = harness.PGOPTIONS + " -c client_min_messages=warning"
    try:
        checks.part(install_as_owner)
        checks.part(clashes)
        query("CREATE EXTENSION IF NOT EXISTS bloomfilter SCHEMA public")
        checks.part(no_leakproof)
        checks.part(keys_stay_secret)
        checks.part(chosen_keys)
    finally:
        os.environ["PGDATABASE"] = maintenance
        query(f"DROP DATABASE IF EXISTS {DATABASE}")
        query(f"DROP ROLE {OWNER}; DROP ROLE bloom_adversary")
    checks.close()


if __name__ == "__main__":
    main()
