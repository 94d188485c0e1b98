#!/usr/bin/python3
"""ALTER EXTENSION ... UPDATE: from every version that there is a script for,
to every one that is reached from it, the objects are those of a fresh
installation, and what uses them survives: tables, views, materialized views,
indexes, functions, triggers.

So that the harness itself is tested before there is a second version, a copy of
the extension's directory gets one: 1.0.test, which has one more function and
another comment and cost of an old one, and a broken upgrade to it, which the
comparison must find out.

The server's own directories are not written to: it runs from a copy of its
binary, next to links, as installations can be moved.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from harness import Checks, query

checks = Checks()

NEW = """
CREATE FUNCTION bloom_double(filter bloomfilter) RETURNS float8
AS 'SELECT 2 * @extschema@.bloom_cardinality(filter)'
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bloom_double(bloomfilter) IS 'twice what is in it';
"""
CHANGED = """
COMMENT ON FUNCTION bloom_clear(bloomfilter) IS 'as good as new';
ALTER FUNCTION bloom_clear(bloomfilter) COST 7;
"""

# All that a catalog says of the extension's objects, by names instead of OIDs
OBJECTS = """
    WITH ours AS (
        SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
        WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
            AND e.extname = 'bloomfilter')
    SELECT pg_describe_object(classid, objid, 0) AS object,
        coalesce(obj_description(objid, classid::regclass::text), '-') || ' ' || coalesce(
            (SELECT to_jsonb(p) - '{oid,proowner,prosupport,probin,prorettype,proargtypes,proallargtypes}'::text[]
                || jsonb_build_object('args', pg_get_function_arguments(p.oid),
                    'result', pg_get_function_result(p.oid), 'support', prosupport::text)
             FROM pg_proc p WHERE classid = 'pg_proc'::regclass AND p.oid = objid),
            (SELECT jsonb_build_object('com', oprcom::regoperator, 'neg', oprnegate::regoperator,
                    'code', oprcode, 'rest', oprrest, 'join', oprjoin, 'hash', oprcanhash, 'merge', oprcanmerge)
             FROM pg_operator p WHERE classid = 'pg_operator'::regclass AND p.oid = objid),
            (SELECT jsonb_build_object('len', typlen, 'storage', typstorage, 'align', typalign,
                    'in', typinput, 'out', typoutput, 'send', typsend, 'receive', typreceive)
             FROM pg_type p WHERE classid = 'pg_type'::regclass AND p.oid = objid),
            (SELECT jsonb_build_object('context', castcontext, 'method', castmethod, 'func', castfunc::regprocedure)
             FROM pg_cast p WHERE classid = 'pg_cast'::regclass AND p.oid = objid),
            (SELECT jsonb_build_object('default', opcdefault, 'type', opcintype::regtype, 'key', opckeytype::regtype)
             FROM pg_opclass p WHERE classid = 'pg_opclass'::regclass AND p.oid = objid),
            (SELECT jsonb_build_object('ops', (SELECT jsonb_agg(amopopr::regoperator || ' ' || amopstrategy ORDER BY 1)
                        FROM pg_amop WHERE amopfamily = p.oid),
                    'procs', (SELECT jsonb_agg(amproc::regprocedure || ' ' || amprocnum ORDER BY 1)
                        FROM pg_amproc WHERE amprocfamily = p.oid))
             FROM pg_opfamily p WHERE classid = 'pg_opfamily'::regclass AND p.oid = objid),
            (SELECT jsonb_build_object('type', amtype, 'handler', amhandler)
             FROM pg_am p WHERE classid = 'pg_am'::regclass AND p.oid = objid),
            '{}')::text
        || coalesce((SELECT ' ' || jsonb_build_object('trans', aggtransfn, 'final', aggfinalfn, 'combine', aggcombinefn,
                        'serial', aggserialfn, 'deserial', aggdeserialfn, 'type', aggtranstype::regtype)::text
                     FROM pg_aggregate WHERE classid = 'pg_proc'::regclass AND aggfnoid = objid), '')
    FROM ours ORDER BY 1"""

USE = """
    CREATE TABLE keys AS SELECT i, 'SP-' || i AS code FROM generate_series(1, 1000) i;
    CREATE TABLE filters (name text, filter bloomfilter);
    INSERT INTO filters SELECT 'codes', bloom_agg(code, 2000) FROM keys;
    CREATE VIEW v AS SELECT bloom_agg(code) AS filter, bloom_agg(code, 5000, 0.001) AS sized FROM keys;
    CREATE MATERIALIZED VIEW m AS SELECT i % 10 AS part, bloom_agg(code, bloomfilter(200, layout => 'cuckoo')) AS filter
        FROM keys GROUP BY 1;
    CREATE MATERIALIZED VIEW u AS SELECT bloom_union_agg(filter) AS filter FROM filters;
    CREATE INDEX ON m (bloom_cardinality(filter));
    CREATE INDEX ON filters USING hash (filter);
    CREATE FUNCTION known(code text) RETURNS boolean STABLE
        RETURN (SELECT filter @> code FROM filters WHERE name = 'codes');
    CREATE TRIGGER t AFTER INSERT ON keys REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
        EXECUTE FUNCTION bloom_maintain('filters', 'codes', 'code');
    CREATE TABLE checked (f bloomfilter CHECK (bloom_cardinality(f) < 1e6) DEFAULT bloomfilter(10));
"""
ANSWERS = """
    INSERT INTO keys VALUES (0, 'one more');
    INSERT INTO checked DEFAULT VALUES;
    SELECT (SELECT md5(filter::bytea || sized::bytea) FROM v), (SELECT md5(string_agg(filter::text, '' ORDER BY part)) FROM m),
        (SELECT md5(filter::text) FROM u), known('SP-7'), known('one more'), known('nothing'),
        (SELECT count(*) FROM m WHERE bloom_cardinality(filter) > 0);
    REFRESH MATERIALIZED VIEW m; REFRESH MATERIALIZED VIEW u;
    SELECT (SELECT md5(string_agg(filter::text, '' ORDER BY part)) FROM m), (SELECT md5(filter::text) FROM u);
    DELETE FROM keys WHERE i = 0;
    UPDATE filters SET filter = (SELECT bloom_agg(code, filter) FROM keys);
    REFRESH MATERIALIZED VIEW m; REFRESH MATERIALIZED VIEW u; DELETE FROM checked;
"""


def command(*args, **options):
    done = subprocess.run(args, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{args[0]}: {done.stdout}{done.stderr}")
    return done.stdout


class Copy:
    """The server under test, started from a copy of its binary in a directory
    of its own, with an extension directory that can be written to."""

    def __init__(self, where):
        # of the server that runs: the pg_config in the path may be another's
        bindir = os.path.dirname(os.path.realpath(shutil.which("postgres")))
        sharedir, pkglibdir = (
            query(f"SELECT setting FROM pg_config WHERE name = '{name}'").value
            for name in ("SHAREDIR", "PKGLIBDIR"))
        self.where = where
        self.bindir = where + bindir
        self.extensions = where + sharedir + "/extension"
        for name in (self.bindir, where + pkglibdir, where + sharedir):
            os.makedirs(os.path.dirname(name), exist_ok=True)
        os.symlink(pkglibdir, where + pkglibdir)
        shutil.copytree(bindir, self.bindir, symlinks=True)
        os.mkdir(where + sharedir)
        for name in os.listdir(sharedir):
            if name != "extension":
                os.symlink(f"{sharedir}/{name}", f"{where}{sharedir}/{name}")
        os.mkdir(self.extensions)
        for name in glob.glob(f"{sharedir}/extension/*"):
            if re.match(r"(bloomfilter|plpgsql)", os.path.basename(name)):
                shutil.copy(name, self.extensions)
        self.data = where + "/data"
        command(f"{bindir}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-N",
                "--no-locale", "-E", "UTF8")

    def start(self):
        command(f"{self.bindir}/pg_ctl", "-D", self.data, "-l", self.where + "/log", "-w", "start",
                "-o", f"-c listen_addresses='' -c unix_socket_directories='{self.where}' -c fsync=off")

    def stop(self):
        command(f"{self.bindir}/pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")

    def write(self, name, text):
        with open(f"{self.extensions}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(f"{self.extensions}/{name}", encoding="utf-8") as file:
            return file.read()


def objects(database):
    os.environ["PGDATABASE"] = database
    return {row[0]: "|".join(row[1:]) for row in query(OBJECTS).rows}


def fresh(version):
    """A database with the objects of a fresh installation."""
    os.environ["PGDATABASE"] = "postgres"
    name = "fresh_" + re.sub(r"\W", "_", version)
    query(f"DROP DATABASE IF EXISTS {name}")
    query(f"CREATE DATABASE {name}")
    os.environ["PGDATABASE"] = name
    query(f"CREATE EXTENSION bloomfilter VERSION '{version}'")
    return name


def differences(a, b):
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))


def one_update(source, target):
    database = fresh(source)
    query(USE)
    before = query(ANSWERS).rows
    query(f"ALTER EXTENSION bloomfilter UPDATE TO '{target}'")
    checks.equal(query("SELECT extversion FROM pg_extension WHERE extname = 'bloomfilter'").value,
                 target, f"{source} to {target}")
    checks.equal(query(ANSWERS).rows, before, f"{source} to {target}: all that uses it answers as before")
    updated = objects(database)
    wanted = objects(fresh(target))
    checks.check(len(wanted) > 50, f"{target}: {len(wanted)} objects")
    checks.equal(differences(updated, wanted), [],
                 f"{source} to {target}: objects that differ from a fresh installation's")

    # it survives dump and restore after an update, too
    os.environ["PGDATABASE"] = "postgres"
    query("DROP DATABASE IF EXISTS restored")
    query("CREATE DATABASE restored")
    dump = command("pg_dump", database)
    command("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "restored", input=dump)
    os.environ["PGDATABASE"] = "restored"
    checks.equal(query(ANSWERS).rows, before, f"{source} to {target}: and so it does restored from a dump")


def every_update():
    paths = query("""SELECT source, target FROM pg_extension_update_paths('bloomfilter')
                     WHERE path IS NOT NULL ORDER BY 1, 2""").rows
    checks.check(["1.0", "1.0.test"] in paths, f"updates: {paths}")
    for source, target in paths:
        if not target.endswith(("broken",)) and not source.endswith(("test", "broken")):
            checks.part(one_update, source, target)


def broken_update():
    """The comparison sees a function that is missing and a comment that is
    another."""
    database = fresh("1.0")
    query("ALTER EXTENSION bloomfilter UPDATE TO '1.0.broken'")
    updated = objects(database)
    wanted = objects(fresh("1.0.test"))
    checks.equal(differences(updated, wanted),
                 ["function bloom_clear(bloomfilter)", "function bloom_double(bloomfilter)"],
                 "a broken update is found out")


def default_version():
    """What CREATE EXTENSION installs is reached from every older version."""
    default = query("""SELECT default_version FROM pg_available_extensions
                       WHERE name = 'bloomfilter'""").value
    lost = query(f"""SELECT source FROM pg_extension_update_paths('bloomfilter')
                     WHERE target = '{default}' AND path IS NULL
                         AND source !~ 'test|broken'""").rows
    checks.equal(lost, [], f"versions that {default} is not reached from")


def main():
    # the path of a socket must be short
    with tempfile.TemporaryDirectory(prefix="bf", dir="/var/tmp") as where:
        copy = Copy(where)
        base = copy.read("bloomfilter--1.0.sql")
        copy.write("bloomfilter--1.0.test.sql", base + NEW + CHANGED)
        copy.write("bloomfilter--1.0--1.0.test.sql", NEW + CHANGED)
        copy.write("bloomfilter--1.0--1.0.broken.sql", CHANGED.replace("good", "bad"))
        os.environ.update(PGHOST=where, PGPORT="5432", PGUSER="postgres", PGDATABASE="postgres")
        copy.start()
        try:
            checks.part(every_update)
            checks.part(broken_update)
            os.environ["PGDATABASE"] = "postgres"
            checks.part(default_version)
        finally:
            copy.stop()
    checks.close()


if __name__ == "__main__":
    main()
