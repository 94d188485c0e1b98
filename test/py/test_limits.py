#!/usr/bin/python3
"""The limits: filters of 512 MiB, statements that are cancelled, memory that
runs out.

Long operations are first run to their end, then stopped by statement_timeout
at several points of that time: each must stop within a second.  What ends by
itself within a second is not stopped.

With BLOOM_SLOW=1 filters are as large as can be (4 GB of memory and 20 GB on
disk are needed); otherwise they have 2 MiB, and memory is what is taken away.
"""
import os
import resource
import subprocess
import threading
import time

from harness import PSQL, SLOW, Checks, SqlError, copy_across, query, schema

MIB = 2 ** 20
LIMIT_BYTES = 512 * MIB
SIZE = LIMIT_BYTES if SLOW else 2 * MIB
KEYS = 1000000 if SLOW else 10000
LAYOUTS = ("blocked", "standard", "counting", "cuckoo")
SECOND = 1.0

checks = Checks()


class Session:
    """A psql that stays, and what is known of its server process."""

    def __init__(self):
        self.psql = subprocess.Popen(
            PSQL + ["-v", "ON_ERROR_STOP=0", "-f", "-"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.pid = int(self.run("SELECT pg_backend_pid()")[0])

    def run(self, sql):
        self.psql.stdin.write(sql.replace("\n", " ") + ";\n\\echo :done:\n")
        lines = []
        for line in self.psql.stdout:
            if line.strip() == ":done:":
                return lines
            lines.append(line.rstrip("\n"))
        raise ConnectionError("\n".join(lines))

    def allow(self, more):
        """The process may take so many bytes more than it has."""
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as statm:
            now = int(statm.read().split()[0]) * resource.getpagesize()
        resource.prlimit(self.pid, resource.RLIMIT_AS,
                         (now + more if more else resource.RLIM_INFINITY,
                          resource.RLIM_INFINITY))

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()


# ---------------------------------------------------------------------------
# As large as can be
# ---------------------------------------------------------------------------
def capacity_of(layout):
    return int(query(f"SELECT bloom_capacity({SIZE + 64}, 0.01, '{layout}')").value)


def at_the_limit(layout):
    """Stored, dumped and restored, united; one element more is an error."""
    n = capacity_of(layout)
    keys = f"generate_series(1, {KEYS}) i"
    others = f"generate_series({KEYS + 1}, {2 * KEYS}) i"
    template = f"bloomfilter({n}, layout => '{layout}')"
    query(f"""INSERT INTO largest
              SELECT '{layout}', bloom_agg(i, {template}) AS f FROM {keys};
              CREATE TABLE restored (layout text, f bloomfilter);""")
    here = f"FROM largest WHERE layout = '{layout}'"
    nbytes, digest = query(f"SELECT (bloom_info(f)).bytes, md5(f::bytea) {here}").rows[0]
    checks.check(SIZE - 64 <= int(nbytes) <= SIZE + 64,
                 f"{layout}: a filter for {n} elements takes {nbytes} bytes")
    for form in ("text", "binary"):
        copy_across(f"COPY (SELECT * {here}) TO STDOUT (FORMAT {form})",
                    f"COPY restored FROM STDIN (FORMAT {form})")
        checks.equal(query("SELECT md5(f::bytea) FROM restored").value, digest,
                     f"{layout}, {nbytes} bytes: copied out and in, {form}")
        query("TRUNCATE restored")

    missing = query(f"""
        WITH u AS MATERIALIZED (
            SELECT f | (SELECT bloom_agg(i, f) FROM {others}) AS f {here})
        SELECT (SELECT count(*) FROM {keys} WHERE NOT (SELECT f FROM u) @> i),
               (SELECT count(*) FROM {others} WHERE NOT (SELECT f FROM u) @> i)""").rows[0]
    checks.equal(missing, ["0", "0"], f"{layout}, {nbytes} bytes: the union of two refuses")
    query("DROP TABLE restored")


def one_more(layout):
    n = int(query(f"SELECT bloom_capacity({LIMIT_BYTES + 64}, 0.01, '{layout}')").value)
    for what in (f"bloomfilter({n + 1}, layout => '{layout}')",
                 f"(SELECT bloom_agg(i, bloomfilter({n + 1}, layout => '{layout}'))"
                 " FROM generate_series(1, 10) i)"):
        try:
            query(f"SELECT {what}")
            checks.check(False, f"{layout}: one element more than {n} is an error")
        except SqlError as error:
            checks.check(
                error.sqlstate == "54000" and
                "needs 513 MiB, more than the limit of 512 MiB" in error.text and
                f"{n} elements fit" in error.text,
                f"{layout}: one element more: {error.text.splitlines()[0]}")


# ---------------------------------------------------------------------------
# Statements that are stopped
# ---------------------------------------------------------------------------
def operations():
    """Name, layouts that have it, SQL; {f} is a stored filter as large as can
    be, {n} its capacity."""
    every = LAYOUTS
    array = f"ARRAY(SELECT generate_series(1, {KEYS * 5}))"
    several = "(SELECT * FROM largest, generate_series(1, 4) WHERE layout = '{layout}') s"
    return [
        ("f | f", every, "SELECT bloom_cardinality({f} | {f})"),
        ("f & f", every, "SELECT bloom_cardinality({f} & {f})"),
        ("f = f", every, "SELECT {f} = {f}"),
        ("f < f", ("blocked",), "SELECT {f} < {f}"),
        ("hash", ("blocked",), "SELECT bloomfilter_hash({f})"),
        ("f::bytea", ("blocked",), "SELECT length({f}::bytea)"),
        ("bytea::bloomfilter", every, "SELECT bloom_cardinality({f}::bytea::bloomfilter)"),
        ("text output", ("blocked",), "SELECT octet_length({f}::text)"),
        ("text input", every, "SELECT bloom_cardinality(({f}::text)::bloomfilter)"),
        ("COPY out, text", ("blocked",),
         "COPY (SELECT f FROM largest WHERE layout = '{layout}') TO '/dev/null'"),
        ("COPY out, binary", ("blocked",),
         "COPY (SELECT f FROM largest WHERE layout = '{layout}') TO '/dev/null' (FORMAT binary)"),
        ("COPY in, text", every, "COPY copied FROM '{file}.text'"),
        ("COPY in, binary", every, "COPY copied FROM '{file}.binary' (FORMAT binary)"),
        ("INSERT", ("blocked",), "INSERT INTO copied SELECT {f}"),
        ("bloom_add", every, "SELECT bloom_cardinality(bloom_add({f}, -1))"),
        ("bloom_remove", ("counting", "cuckoo"), "SELECT bloom_cardinality(bloom_remove({f}, 1))"),
        ("bloom_add_all", every, "SELECT bloom_cardinality(bloom_add_all({f}, " + array + "))"),
        ("bloom_contains_each", every,
         "SELECT cardinality(bloom_contains_each({f}, " + array + "))"),
        ("bloom_contains_all", ("blocked",), "SELECT bloom_contains_all({f}, " + array + ")"),
        ("bloom_contains_any", ("blocked",),
         f"SELECT bloom_contains_any({{f}}, ARRAY(SELECT -generate_series(1, {KEYS * 5})))"),
        ("bloom_to_standard", ("counting",), "SELECT bloom_cardinality(bloom_to_standard({f}))"),
        ("bloom_clear", ("blocked",), "SELECT bloom_clear({f})"),
        ("bloom_agg, sized", ("blocked",),
         f"SELECT bloom_cardinality(bloom_agg(i, {{n}}::float8)) FROM generate_series(1, {KEYS * 10}) i"),
        ("bloom_agg, template", every,
         "SELECT bloom_cardinality(bloom_agg(i, bloomfilter({n}, layout => '{layout}')))"
         f" FROM generate_series(1, {KEYS * 10}) i"),
        ("bloom_agg, self-sizing", ("blocked",),
         f"SELECT bloom_cardinality(bloom_agg(i)) FROM generate_series(1, {KEYS * 20}) i"),
        ("bloom_agg, growing", ("blocked", "standard", "cuckoo"),
         "SELECT bloom_cardinality(bloom_agg(i, bloomfilter(1000, layout => '{layout}',"
         f" expansion => 2))) FROM generate_series(1, {KEYS * 5}) i"),
        ("bloom_union_agg", every, "SELECT bloom_cardinality(bloom_union_agg(f)) FROM " + several),
        ("bloom_intersect_agg", every,
         "SELECT bloom_cardinality(bloom_intersect_agg(f)) FROM " + several),
        ("f @> i", every,
         f"SELECT count(*) FROM generate_series(1, {KEYS * 3}) i WHERE {{f}} @> i"),
        ("loop of bloom_add", ("blocked",),
         "DO $$ DECLARE g bloomfilter := {f}; BEGIN FOR i IN 1.." + str(KEYS * 3) +
         " LOOP g := bloom_add(g, -i); END LOOP; END $$"),
        ("bloom_maintain", ("blocked", "cuckoo"),
         f"INSERT INTO watched_{{layout}} SELECT generate_series(-{KEYS * 2}, 0)"),
        ("GROUP BY f", ("blocked",), "SELECT count(*) FROM (SELECT f FROM " + several +
         " GROUP BY f) s"),
        ("ORDER BY f", ("blocked",), "SELECT count(*) FROM (SELECT f FROM " + several +
         " ORDER BY f OFFSET 0) s"),
        ("ANALYZE", ("blocked",), "ANALYZE largest"),
    ]


class Timer:
    """A session whose statements are timed."""

    def __init__(self):
        self.session = Session()
        self.session.run("SET client_min_messages = error; SET work_mem = '1GB'")

    def cpu(self):
        """Seconds that the server's process has computed."""
        with open(f"/proc/{self.session.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def run(self, sql, timeout):
        """How long a statement took, and, if it was stopped, how late it was:
        by the clock, or by what it computed, where others keep the machine
        busy."""
        at_timeout = []
        alarm = threading.Timer(timeout, lambda: at_timeout.append(self.cpu()))
        if timeout:
            alarm.start()
        start = time.monotonic()
        said = "\n".join(self.session.run(
            f"SET statement_timeout = {int(timeout * 1000)}; BEGIN; {sql}; ROLLBACK"))
        took = time.monotonic() - start
        alarm.cancel()
        stopped = "ERROR:  57014" in said
        self.session.run("ROLLBACK")
        if "ERROR" in said and not stopped:
            raise RuntimeError(said[:500])
        late = 0
        if stopped:
            late = took - timeout
            if at_timeout:
                late = min(late, self.cpu() - at_timeout[0])
        return took, late


def stopped_in_time():
    directory = query("SHOW data_directory").value
    query("CREATE TABLE copied (f bloomfilter)")
    for layout in LAYOUTS:
        for form in ("text", "binary"):
            query(f"COPY (SELECT f FROM largest WHERE layout = '{layout}')"
                  f" TO '{directory}/limits_{layout}.{form}' (FORMAT {form})")
    for layout in ("blocked", "cuckoo"):
        query(f"""CREATE TABLE watched_{layout} (i integer);
                  CREATE TABLE kept_{layout} AS SELECT layout AS name, f AS filter
                      FROM largest WHERE layout = '{layout}';
                  CREATE TRIGGER t AFTER INSERT ON watched_{layout}
                      REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
                      EXECUTE FUNCTION bloom_maintain('kept_{layout}', '{layout}', 'i')""")
    overall = 0
    timer = Timer()
    # Tuples are copied by the server, and it cannot be stopped meanwhile: a
    # second, and what this machine takes to fill that much memory twice.
    allowed = SECOND + 2 * min(
        timer.run(f"SELECT octet_length(repeat(repeat('x', {MIB}), {SIZE // MIB}))", 0)[0] for _ in range(3))
    print(f"        at most {allowed:.2f} s late")
    try:
        for name, layouts, sql in operations():
            for layout in layouts:
                statement = sql.format(
                    f=f"(SELECT f FROM largest WHERE layout = '{layout}')",
                    layout=layout, n=capacity_of(layout), file=f"{directory}/limits_{layout}")
                total, _ = timer.run(statement, 0)
                worst = 0
                # while it reads, most often, and while it computes
                for share in (0.3, 0.75) if total > SECOND else ():
                    worst = max(worst, timer.run(statement, total * share)[1])
                overall = max(overall, worst)
                checks.check(worst <= allowed, f"{layout}: {name}: {total:.2f} s" +
                             (f", stops {worst:.2f} s late at most" if total > SECOND else ""))
    finally:
        timer.session.close()
        for layout in LAYOUTS:
            for form in ("text", "binary"):
                os.unlink(f"{directory}/limits_{layout}.{form}")
    print(f"        the latest stop: {overall:.2f} s")


# ---------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------
def out_of_memory():
    """Each operation at many limits between nothing and what it needs: an
    error (or the answer), and the session goes on."""
    started = query("SELECT pg_postmaster_start_time()").value
    session = Session()
    # libraries need memory, too, and the server cannot do without them
    session.run("LOAD 'bloomfilter'; DO $$ BEGIN END $$; CREATE TEMP TABLE copied (f bloomfilter);"
                " SET client_min_messages = error; SET jit = off;"
                " SET work_mem = '1GB'; SET max_parallel_workers_per_gather = 0")
    errors, answers = 0, 0
    for name, layouts, sql in operations():
        if name.startswith(("COPY in", "bloom_maintain", "ANALYZE")):
            continue
        for layout in layouts:
            statement = sql.format(
                f=f"(SELECT f FROM largest WHERE layout = '{layout}')",
                layout=layout, n=capacity_of(layout), file="")
            refused, strange = 0, []
            for part in (0.01, 0.3, 0.7, 1.1, 1.7, 2.4):
                session.allow(int(SIZE * part) + 65536)
                said = "\n".join(session.run(statement))
                session.allow(0)
                if "ERROR:  53200" in said or "ERROR:  53000" in said:
                    refused += 1
                elif "ERROR" in said or "FATAL" in said or "PANIC" in said:
                    strange.append(said[:200])
                else:
                    answers += 1
            errors += refused
            checks.check(not strange, f"{layout}: {name}: out of memory {refused} times" +
                         "".join(f": {line}" for line in strange[:2]))
            checks.check(session.run("SELECT 1") == ["1"], f"{layout}: {name}: the session goes on")
    session.close()
    checks.check(errors > 100 and answers > 0, f"{errors} errors, {answers} answers")
    checks.equal(query("SELECT pg_postmaster_start_time()").value, started,
                 "the server never stopped")


def main():
    with schema("test_limits"):
        query("CREATE TABLE largest (layout text, f bloomfilter)")
        for layout in LAYOUTS:
            checks.part(at_the_limit, layout)
            checks.part(one_more, layout)
        if SLOW:
            checks.part(stopped_in_time)
        else:
            checks.part(out_of_memory)
    checks.close()


if __name__ == "__main__":
    main()
