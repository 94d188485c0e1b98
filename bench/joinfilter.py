"""What join filters gain, and that they lose nothing: bloomfilter.join_filter off
against on, in turn, in one session.

    joinfilter.py [--scale S] [--pairs N] [--only TEXT] [suite ...]    suites: gain level star tpch

gain   joins that it is made for: medians of 7 pairs, wall and CPU time
level  joins that it cannot help: 21 pairs each, CPU time; the 7th smallest of 21
       ratios is a lower bound of their median at 96%, whatever their distribution.
       "low" is the ratio of the lower quartiles: what a busy machine disturbs least
star   a star schema, and
tpch   tables and queries of the shape of TPC-H, together about 1 GB at --scale 1:
       total time, best and worst query

CPU time is that of the session's process and of its parallel workers.
Tables and data stay in the schema joinfilter_bench, and are made if they are not there.
"""
import argparse
import math
import os
import pathlib
import re
import statistics
import sys
import time

import psycopg
from psycopg import pq

TICK = os.sysconf("SC_CLK_TCK")

# ---------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------

# name -> what makes it; {n} and the like are row counts at scale 1
GAIN_TABLES = {
    "fact": """SELECT i AS id, (random() * {dim})::int AS a, (random() * {dim})::int AS b,
        (random() * {dim})::int AS c, (random() * 1000)::int AS amount,
        md5((i % 1000)::text) AS note FROM generate_series(1, {fact}) i""",
    **{f"dim_{x}": """SELECT i AS id, i % 100 AS class, 'name of the thing ' || i AS name,
        repeat('x', 120) AS description FROM generate_series(0, {dim}) i""" for x in "abc"},
}

LEVEL_TABLES = {
    "facts": """SELECT i AS id, (random() * ({keys} - 1))::int AS k, (random() * ({keys} - 1))::int AS l,
        i * {keys}::bigint / {level} AS sorted, (random() * 1000)::int AS amount,
        CASE WHEN random() < 0.9 THEN 7 ELSE (random() * ({keys} - 1))::int END AS skewed,
        'key ' || (random() * ({keys} - 1))::int AS t, (random() * ({keys} - 1))::int::numeric AS n
        FROM generate_series(1, {level}) i""",
    "keys": """SELECT i AS k, i % 100 AS class, 'key ' || i AS t, i::numeric AS n, i AS l,
        repeat('x', 40) AS description FROM generate_series(0, {keys} - 1) i""",
    "small": "SELECT i AS k, i % 10 AS class FROM generate_series(1, 1000) i",
    "few": "SELECT i AS k, i % 10 AS class FROM generate_series(1, 10000) i",
}

# joins that are worth a filter: name, work_mem, SQL, least ratio
SELECTIVE = """SELECT count(*), sum(f.amount), max(f.note), sum(f.b), sum(f.c), max(a.name), max(a.description)
        FROM fact f JOIN dim_a a ON f.a = a.id WHERE a.class < 6"""
THREE = """SELECT count(*), sum(f.amount), max(f.note), max(a.name), max(b.name), max(c.name)
        FROM fact f JOIN dim_a a ON f.a = a.id JOIN dim_b b ON f.b = b.id JOIN dim_c c ON f.c = c.id
        WHERE a.class < 10 AND b.class < 20 AND c.class < 20"""
GAIN = [
    ("selective, spills", "4MB", SELECTIVE, 3.0),
    ("star of three, spills", "4MB", THREE, 2.0),
    ("selective, in memory", "256MB", SELECTIVE, 1.4),
    ("star of three, in memory", "256MB", THREE, 1.4),
]

# many times over, in the server
LOOP = """DO $$ BEGIN FOR i IN 1 .. {} LOOP PERFORM {}; END LOOP; END $$"""
DYNAMIC = """DO $$ DECLARE n bigint; BEGIN FOR i IN 1 .. {} LOOP EXECUTE '{}' INTO n; END LOOP; END $$"""

# joins that a filter cannot help: name, settings, SQL.  The planner takes
# "x % 1000 >= 0" to be true of a third of the rows, and it is of all.
LEVEL = [
    ("all rows match", {}, "SELECT count(*) FROM facts f JOIN keys USING (k)"),
    ("all match, estimated a third", {},
     "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE class % 1000 >= 0"),
    ("all match, estimated 1 in 200", {},
     "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE class % 1000 + 0 = abs(class)"),
    ("the same, spills", {"work_mem": "1MB"},
     "SELECT count(*), max(description), max(f.t) FROM facts f JOIN keys USING (k) WHERE class % 1000 >= 0"),
    ("all match, text, wrong estimate", {},
     "SELECT count(*) FROM facts f JOIN keys USING (t) WHERE class % 1000 >= 0"),
    ("all match, numeric, wrong estimate", {},
     "SELECT count(*) FROM facts f JOIN keys USING (n) WHERE class % 1000 >= 0"),
    ("all match, two keys, wrong estimate", {},
     "SELECT count(*) FROM facts f JOIN (SELECT k, l FROM facts WHERE amount % 1000 >= 0) g USING (k, l)"),
    ("semi join, all match, wrong estimate", {},
     "SELECT count(*) FROM facts WHERE k IN (SELECT k FROM keys WHERE class % 1000 >= 0)"),
    ("anti join", {}, "SELECT count(*) FROM facts f WHERE NOT EXISTS"
     " (SELECT FROM keys WHERE keys.k = f.k AND class < 50)"),
    ("left join", {}, "SELECT count(keys.t) FROM facts f LEFT JOIN keys ON keys.k = f.k AND class < 50"),
    ("full join", {}, "SELECT count(*) FROM facts f FULL JOIN keys USING (k)"),
    ("skewed: the frequent key matches", {},
     "SELECT count(*) FROM facts f JOIN keys ON f.skewed = keys.k WHERE class = 7"),
    ("half of the rows match", {}, "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE class < 50"),
    ("four of five match", {}, "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE class < 80"),
    ("the first rows drop, the rest match", {},
     "SELECT count(*) FROM facts f JOIN keys ON f.sorted = keys.k WHERE keys.k % 1000000 >= {keys} / 20"),
    ("rows match in turns", {}, "SELECT count(*) FROM facts f JOIN keys ON f.sorted = keys.k"
     " WHERE keys.k / ({keys} / 40) % 2 = 0 OR keys.k % 4 > 0"),
    ("large build, small probe", {}, "SELECT count(*) FROM few s JOIN facts f ON f.id = s.k WHERE f.amount < 300"),
    ("star, all match, wrong estimates", {},
     "SELECT count(*) FROM facts f JOIN keys a ON f.k = a.k JOIN keys b ON f.l = b.k JOIN keys c ON f.sorted = c.k"
     " WHERE a.class % 1000 >= 0 AND b.class % 1000 >= 0 AND c.class % 1000 >= 0"),
    ("below an aggregate, all match", {},
     "SELECT count(*) FROM (SELECT k, count(*) FROM facts GROUP BY k) f JOIN keys USING (k) WHERE class % 1000 >= 0"),
    ("tiny tables, planned each time", {},
     DYNAMIC.format(1500, "SELECT count(*) FROM small a JOIN small b USING (k) WHERE b.class = 3")),
    ("tiny tables, one plan", {},
     LOOP.format(2000, "count(*) FROM small a JOIN small b USING (k) WHERE b.class = 3")),
    ("a row by its key, planned each time", {},
     DYNAMIC.format(6000, "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE f.id = 77")),
    ("merge join", {"enable_hashjoin": "off"}, "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE class % 1000 >= 0"),
    ("all match, 2 workers, wrong estimate", {"max_parallel_workers_per_gather": "2"},
     "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE class % 1000 >= 0"),
    ("the same, no Parallel Hash", {"max_parallel_workers_per_gather": "2", "enable_parallel_hash": "off"},
     "SELECT count(*) FROM facts f JOIN keys USING (k) WHERE class % 1000 >= 0"),
]

STAR_TABLES = {
    "days": """SELECT d::date AS day, extract(year FROM d)::int AS year, to_char(d, 'YYYYMM')::int AS month,
        extract(week FROM d)::int AS week FROM generate_series('1992-01-01'::timestamp, '1998-12-31', '1 day') d""",
    "buyers": """SELECT i AS id, 'Buyer ' || i AS name, (random() * 249)::int AS city, i % 25 AS nation, i % 5 AS region,
        'segment ' || i % 5 AS segment FROM generate_series(1, {buyers}) i""",
    "sellers": """SELECT i AS id, 'Seller ' || i AS name, (random() * 249)::int AS city, i % 25 AS nation,
        i % 5 AS region FROM generate_series(1, {sellers}) i""",
    "goods": """SELECT i AS id, 'Good ' || i AS name, 'MFGR#' || i % 5 AS maker, 'MFGR#' || i % 25 AS category,
        'MFGR#' || i % 1000 AS brand, 'colour ' || i % 92 AS colour FROM generate_series(1, {goods}) i""",
    "sales": """SELECT i AS id, 1 + (random() * ({buyers} - 1))::int AS buyer, 1 + (random() * ({goods} - 1))::int AS good,
        1 + (random() * ({sellers} - 1))::int AS seller, '1992-01-01'::date + (random() * 2555)::int AS day,
        (random() * 49)::int + 1 AS quantity, (random() * 10)::int AS discount, (random() * 100000)::int AS price,
        (random() * 60000)::int AS cost, 'priority ' || i % 5 AS priority FROM generate_series(1, {sales}) i""",
}

JOINED = "FROM sales s JOIN days d USING (day)"
STAR = [
    f"SELECT sum(price * discount) {JOINED} WHERE year = 1993 AND discount BETWEEN 1 AND 3 AND quantity < 25",
    f"SELECT sum(price * discount) {JOINED} WHERE month = 199401 AND discount BETWEEN 4 AND 6 AND quantity BETWEEN 26 AND 35",
    f"SELECT sum(price * discount) {JOINED} WHERE week = 6 AND year = 1994 AND discount BETWEEN 5 AND 7",
] + [
    f"SELECT sum(price), year, brand {JOINED} JOIN goods g ON good = g.id JOIN sellers v ON seller = v.id"
    f" WHERE {where} GROUP BY year, brand ORDER BY year, brand" for where in (
        "category = 'MFGR#12' AND v.region = 1",
        "brand IN ('MFGR#221', 'MFGR#222', 'MFGR#223', 'MFGR#224') AND v.region = 2",
        "brand = 'MFGR#239' AND v.region = 3")
] + [
    f"SELECT {by}, year, sum(price) AS total {JOINED} JOIN buyers b ON buyer = b.id JOIN sellers v ON seller = v.id"
    f" WHERE {where} GROUP BY {by}, year ORDER BY year, total DESC" for by, where in (
        ("b.nation, v.nation", "b.region = 2 AND v.region = 2 AND year BETWEEN 1992 AND 1997"),
        ("b.city, v.city", "b.nation = 7 AND v.nation = 7 AND year BETWEEN 1992 AND 1997"),
        ("b.city, v.city", "b.city IN (17, 18) AND v.city IN (17, 18) AND year BETWEEN 1992 AND 1997"),
        ("b.city, v.city", "b.city IN (17, 18) AND v.city IN (17, 18) AND month = 199712"))
] + [
    f"SELECT year, {by}, sum(price - cost) AS profit {JOINED} JOIN buyers b ON buyer = b.id"
    f" JOIN sellers v ON seller = v.id JOIN goods g ON good = g.id WHERE {where}"
    f" GROUP BY year, {by} ORDER BY year, {by}" for by, where in (
        ("b.nation", "b.region = 1 AND v.region = 1 AND maker IN ('MFGR#1', 'MFGR#2')"),
        ("v.nation, category", "b.region = 1 AND v.region = 1 AND year IN (1997, 1998) AND maker IN ('MFGR#1', 'MFGR#2')"),
        ("v.city, brand", "b.region = 1 AND v.nation = 6 AND year IN (1997, 1998) AND category = 'MFGR#14'"))
]

TPCH_TABLES = {
    "region": "SELECT i AS id, 'region ' || i AS name FROM generate_series(0, 4) i",
    "nation": "SELECT i AS id, 'nation ' || i AS name, i % 5 AS region FROM generate_series(0, 24) i",
    "supplier": """SELECT i AS id, 'Supplier ' || i AS name, (random() * 24)::int AS nation,
        (random() * 11000 - 1000)::numeric(9,2) AS balance, repeat('s', 60) || i % 100 AS remark
        FROM generate_series(1, {supplier}) i""",
    "customer": """SELECT i AS id, 'Customer ' || i AS name, (random() * 24)::int AS nation,
        (10 + random() * 24)::int || '-' || i AS phone, (random() * 11000 - 1000)::numeric(9,2) AS balance,
        'segment ' || (random() * 4)::int AS segment, repeat('c', 70) AS remark FROM generate_series(1, {customer}) i""",
    "part": """SELECT i AS id, 'colour ' || (random() * 91)::int || ' part ' || i AS name, 'maker ' || i % 5 AS maker,
        'brand ' || i % 25 AS brand, 'type ' || (random() * 149)::int AS type, 1 + (random() * 49)::int AS size,
        'container ' || (random() * 39)::int AS container, 900 + i % 1000 AS price FROM generate_series(1, {part}) i""",
    "partsupp": """SELECT i % {part} + 1 AS part, 1 + (i * 7 + i / {part} * ({supplier} / 4)) % {supplier} AS supplier,
        (random() * 9999)::int AS available, (random() * 1000)::numeric(9,2) AS cost, repeat('p', 100) AS remark
        FROM generate_series(0, {part} * 4 - 1) i""",
    "orders": """SELECT i AS id, 1 + (random() * ({customer} - 1))::int AS customer, 'OFP'::text AS status,
        '1992-01-01'::date + (random() * 2405)::int AS day, 'priority ' || (random() * 4)::int AS priority,
        'clerk ' || i % 1000 AS clerk, repeat('o', 45) AS remark FROM generate_series(1, {orders}) i""",
    "lineitem": """SELECT i / 4 + 1 AS orders, i % 4 AS line, x.part,
        1 + (x.part * 7 + (random() * 3)::int * ({supplier} / 4)) % {supplier} AS supplier,
        1 + (random() * 49)::int AS quantity, (900 + random() * 100000)::numeric(12,2) AS price,
        ((random() * 10)::int / 100.0)::numeric(4,2) AS discount, (random() * 8)::int / 100.0 AS tax,
        x.shipped, x.shipped - 30 + (random() * 60)::int AS committed, x.shipped + 1 + (random() * 29)::int AS received,
        'ANR'::text AS flag, 'mode ' || (random() * 6)::int AS mode, 'instruction ' || (random() * 3)::int AS instruction
        FROM generate_series(0, {orders} * 4 - 1) i, LATERAL (SELECT 1 + (random() * ({part} - 1))::int AS part,
        '1992-01-01'::date + 1 + (random() * 2525)::int AS shipped, i AS row) x""",
}
TPCH_KEYS = [("supplier", "id"), ("customer", "id"), ("part", "id"), ("partsupp", "part, supplier"),
             ("orders", "id"), ("lineitem", "orders, line"), ("nation", "id"), ("region", "id")]

REVENUE = "sum(l.price * (1 - l.discount))"
TPCH = {
    1: f"""SELECT flag, mode, sum(quantity), sum(price), {REVENUE}, avg(quantity), count(*) FROM lineitem l
        WHERE shipped <= '1998-09-02' GROUP BY flag, mode ORDER BY flag, mode""",
    2: """SELECT s.balance, s.name, n.name, p.id FROM part p JOIN partsupp ps ON ps.part = p.id
        JOIN supplier s ON s.id = ps.supplier JOIN nation n ON n.id = s.nation JOIN region r ON r.id = n.region
        WHERE p.size = 15 AND p.type LIKE '%7' AND r.name = 'region 3' AND ps.cost = (SELECT min(cost)
        FROM partsupp ps JOIN supplier s ON s.id = ps.supplier JOIN nation n ON n.id = s.nation
        JOIN region r ON r.id = n.region WHERE ps.part = p.id AND r.name = 'region 3')
        ORDER BY 1 DESC, 3, 2, 4 LIMIT 100""",
    3: f"""SELECT o.id, {REVENUE} AS revenue, o.day FROM customer c JOIN orders o ON o.customer = c.id
        JOIN lineitem l ON l.orders = o.id WHERE c.segment = 'segment 2' AND o.day < '1995-03-15'
        AND l.shipped > '1995-03-15' GROUP BY o.id, o.day ORDER BY 2 DESC, 3 LIMIT 10""",
    4: """SELECT priority, count(*) FROM orders o WHERE day >= '1993-07-01' AND day < '1993-10-01' AND EXISTS
        (SELECT FROM lineitem l WHERE l.orders = o.id AND committed < received) GROUP BY 1 ORDER BY 1""",
    5: f"""SELECT n.name, {REVENUE} AS revenue FROM customer c JOIN orders o ON o.customer = c.id
        JOIN lineitem l ON l.orders = o.id JOIN supplier s ON s.id = l.supplier AND s.nation = c.nation
        JOIN nation n ON n.id = s.nation JOIN region r ON r.id = n.region WHERE r.name = 'region 2'
        AND o.day >= '1994-01-01' AND o.day < '1995-01-01' GROUP BY 1 ORDER BY 2 DESC""",
    6: """SELECT sum(price * discount) FROM lineitem WHERE shipped >= '1994-01-01' AND shipped < '1995-01-01'
        AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24""",
    7: f"""SELECT a.name, b.name, extract(year FROM l.shipped), {REVENUE} FROM supplier s
        JOIN lineitem l ON s.id = l.supplier JOIN orders o ON o.id = l.orders JOIN customer c ON c.id = o.customer
        JOIN nation a ON a.id = s.nation JOIN nation b ON b.id = c.nation WHERE l.shipped BETWEEN '1995-01-01' AND '1996-12-31'
        AND (a.name = 'nation 6' AND b.name = 'nation 7' OR a.name = 'nation 7' AND b.name = 'nation 6')
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3""",
    8: f"""SELECT extract(year FROM o.day), {REVENUE} FILTER (WHERE m.name = 'nation 2') / {REVENUE}
        FROM part p JOIN lineitem l ON l.part = p.id JOIN supplier s ON s.id = l.supplier JOIN orders o ON o.id = l.orders
        JOIN customer c ON c.id = o.customer JOIN nation n ON n.id = c.nation JOIN region r ON r.id = n.region
        JOIN nation m ON m.id = s.nation WHERE r.name = 'region 1' AND p.type = 'type 30'
        AND o.day BETWEEN '1995-01-01' AND '1996-12-31' GROUP BY 1 ORDER BY 1""",
    9: """SELECT n.name, extract(year FROM o.day), sum(l.price * (1 - l.discount) - ps.cost * l.quantity)
        FROM part p JOIN lineitem l ON l.part = p.id JOIN supplier s ON s.id = l.supplier
        JOIN partsupp ps ON ps.part = l.part AND ps.supplier = l.supplier JOIN orders o ON o.id = l.orders
        JOIN nation n ON n.id = s.nation WHERE p.name LIKE 'colour 17 %' GROUP BY 1, 2 ORDER BY 1, 2 DESC""",
    10: f"""SELECT c.id, c.name, {REVENUE} AS revenue, c.balance, n.name FROM customer c JOIN orders o ON o.customer = c.id
        JOIN lineitem l ON l.orders = o.id JOIN nation n ON n.id = c.nation WHERE o.day >= '1993-10-01'
        AND o.day < '1994-01-01' AND l.line = 2 GROUP BY 1, 2, 4, 5 ORDER BY 3 DESC LIMIT 20""",
    11: """SELECT part, sum(cost * available) AS value FROM partsupp ps JOIN supplier s ON s.id = ps.supplier
        JOIN nation n ON n.id = s.nation WHERE n.name = 'nation 7' GROUP BY 1 HAVING sum(cost * available) >
        (SELECT sum(cost * available) * 0.0001 FROM partsupp ps JOIN supplier s ON s.id = ps.supplier
        JOIN nation n ON n.id = s.nation WHERE n.name = 'nation 7') ORDER BY 2 DESC, 1""",
    12: """SELECT mode, count(*) FILTER (WHERE priority < 'priority 2'), count(*) FROM orders o
        JOIN lineitem l ON l.orders = o.id WHERE mode IN ('mode 3', 'mode 4') AND committed < received
        AND shipped < committed AND received >= '1994-01-01' AND received < '1995-01-01' GROUP BY 1 ORDER BY 1""",
    13: """SELECT n, count(*) FROM (SELECT c.id, count(o.id) AS n FROM customer c LEFT JOIN orders o
        ON o.customer = c.id AND o.clerk NOT LIKE '%99%' GROUP BY 1) x GROUP BY 1 ORDER BY 2 DESC, 1 DESC""",
    14: f"""SELECT 100 * {REVENUE} FILTER (WHERE p.type LIKE 'type 1%') / {REVENUE} FROM lineitem l
        JOIN part p ON p.id = l.part WHERE shipped >= '1995-09-01' AND shipped < '1995-10-01'""",
    15: f"""WITH revenue AS (SELECT supplier, {REVENUE} AS total FROM lineitem l WHERE shipped >= '1996-01-01'
        AND shipped < '1996-04-01' GROUP BY 1) SELECT s.id, s.name, total FROM supplier s
        JOIN revenue r ON r.supplier = s.id WHERE total = (SELECT max(total) FROM revenue) ORDER BY 1""",
    16: """SELECT brand, type, size, count(DISTINCT supplier) FROM partsupp ps JOIN part p ON p.id = ps.part
        WHERE brand <> 'brand 4' AND type NOT LIKE 'type 5%' AND size IN (49, 14, 23, 45, 19, 3, 36, 9)
        AND supplier NOT IN (SELECT id FROM supplier WHERE remark LIKE '%77') GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3""",
    17: """SELECT sum(l.price) / 7 FROM part p JOIN lineitem l ON l.part = p.id JOIN (SELECT part, avg(quantity) * 0.2 AS few
        FROM lineitem GROUP BY 1) a ON a.part = p.id WHERE brand = 'brand 23' AND container = 'container 7'
        AND l.quantity < few""",
    18: """SELECT c.name, c.id, o.id, o.day, sum(l.quantity) FROM customer c JOIN orders o ON o.customer = c.id
        JOIN lineitem l ON l.orders = o.id WHERE o.id IN (SELECT orders FROM lineitem GROUP BY 1
        HAVING sum(quantity) > 185) GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC, 4, 3 LIMIT 100""",
    19: f"""SELECT {REVENUE} FROM lineitem l JOIN part p ON p.id = l.part WHERE mode IN ('mode 1', 'mode 2')
        AND instruction = 'instruction 1' AND (brand = 'brand 12' AND container IN ('container 1', 'container 2')
        AND quantity BETWEEN 1 AND 11 AND size BETWEEN 1 AND 5 OR brand = 'brand 23' AND container IN
        ('container 3', 'container 4') AND quantity BETWEEN 10 AND 20 AND size BETWEEN 1 AND 10)""",
    20: """SELECT s.name, s.id FROM supplier s JOIN nation n ON n.id = s.nation WHERE n.name = 'nation 3' AND s.id IN
        (SELECT supplier FROM partsupp ps WHERE part IN (SELECT id FROM part WHERE name LIKE 'colour 5%')
        AND available > (SELECT 0.5 * sum(quantity) FROM lineitem l WHERE l.part = ps.part AND l.supplier = ps.supplier
        AND shipped >= '1994-01-01' AND shipped < '1995-01-01')) ORDER BY 1""",
    21: """SELECT s.name, count(*) FROM supplier s JOIN lineitem l ON s.id = l.supplier JOIN orders o ON o.id = l.orders
        JOIN nation n ON n.id = s.nation WHERE received > committed AND o.day < '1993-01-01' AND n.name = 'nation 20'
        AND EXISTS (SELECT FROM lineitem m WHERE m.orders = l.orders AND m.supplier <> l.supplier)
        AND NOT EXISTS (SELECT FROM lineitem m WHERE m.orders = l.orders AND m.supplier <> l.supplier
        AND m.received > m.committed) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 100""",
    22: """SELECT left(phone, 2), count(*), sum(balance) FROM customer c WHERE left(phone, 2) IN ('13', '31', '23', '29', '30')
        AND balance > (SELECT avg(balance) FROM customer WHERE balance > 0) AND NOT EXISTS
        (SELECT FROM orders o WHERE o.customer = c.id AND o.day > '1995-01-01') GROUP BY 1 ORDER BY 1""",
}

ROWS = {"fact": 5_000_000, "dim": 1_000_000, "level": 2_000_000, "keys": 200_000,
        "buyers": 90_000, "sellers": 6_000, "goods": 200_000, "sales": 3_000_000,
        "supplier": 5_000, "customer": 75_000, "part": 100_000, "orders": 700_000}


# ---------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------

class Session:
    def __init__(self):
        self.conn = psycopg.connect(autocommit=True)
        self.pid = self.conn.info.backend_pid
        self.postmaster = self.stat(self.pid)[1]
        self.run("CREATE EXTENSION IF NOT EXISTS bloomfilter; LOAD 'bloomfilter';"
                 " CREATE SCHEMA IF NOT EXISTS joinfilter_bench; SET search_path = joinfilter_bench, public;"
                 " SET jit = off; SET max_parallel_workers_per_gather = 0")

    def run(self, sql):
        result = self.conn.pgconn.exec_(sql.encode())
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            sys.exit(f"{result.error_message.decode()}\n{sql}")
        return [[(result.get_value(i, j) or b"").decode() for j in range(result.nfields)]
                for i in range(result.ntuples)]

    @staticmethod
    def stat(pid):
        """state, parent, ... of a process, from its third field on"""
        return (lambda f: [f[0]] + [int(x) for x in f[1:]])(
            pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split())

    def children(self):
        found = set()
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and self.stat(entry)[1] == self.postmaster:
                    found.add(entry)
            except OSError:
                pass
        return found

    def cpu(self):
        """Seconds of this session's process, and of workers that have ended: their parent's,
        which counts its children that have gone"""
        own = int(pathlib.Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9
        ended = self.stat(self.postmaster)
        return own + (ended[13] + ended[14]) / TICK

    def measure(self, sql, on, parallel):
        """Wall and CPU seconds"""
        self.run(f"SET bloomfilter.join_filter = {'on' if on else 'off'}")
        before = self.children() if parallel else None
        began, cpu = time.perf_counter(), self.cpu()
        self.run(sql)
        wall = time.perf_counter() - began
        while parallel and self.children() - before:
            time.sleep(0.002)
        return wall, self.cpu() - cpu

    def pairs(self, sql, count, parallel):
        """(off, on) of each pair, in turn; one before them does not count"""
        found = []
        for i in range(count + 1):
            order = (False, True) if i % 2 else (True, False)
            pair = {on: self.measure(sql, on, parallel) for on in order}
            found.append((pair[False], pair[True]))
        return found[1:]

    def settings(self, chosen):
        self.run("".join(f"SET {k} = '{v}';" for k, v in chosen.items()) or "SELECT")

    def probes(self, sql):
        """How many filters the plan has"""
        if sql.startswith("DO"):
            return "-"
        self.run("SET bloomfilter.join_filter = on")
        return sum(re.search(r"Bloom Filter: \d+ on", row[0]) is not None for row in self.run(f"EXPLAIN {sql}"))

    def tables(self, tables, rows):
        for name, query in tables.items():
            if not self.run(f"SELECT 1 WHERE to_regclass('{name}') IS NOT NULL"):
                self.run(f"SELECT setseed(0.5); CREATE TABLE {name} AS {query.format(**rows)}")
                self.run(f"VACUUM ANALYZE {name}")
        for name in tables:
            self.run(f"SELECT count(*) FROM {name}")


def ratio(pairs, which):
    return sorted(off[which] / on[which] for off, on in pairs)


def gain(session, rows, pairs, only):
    session.tables(GAIN_TABLES, rows)
    print(f"{'':38}{'filters':>8}{'off ms':>8}{'on ms':>8}{'ratio':>7}  {'min-max':12}{'CPU':>6}  bar")
    for workers in (0, 2):
        for name, work_mem, sql, bar in [g for g in GAIN if only in g[0]]:
            session.settings({"work_mem": work_mem, "max_parallel_workers_per_gather": workers})
            measured = session.pairs(sql, min(pairs, 7), workers > 0)
            walls = ratio(measured, 0)
            print(f"{name + (', 2 workers' if workers else ''):38}{session.probes(sql):>8}"
                  f"{1000 * statistics.median(off[0] for off, _ in measured):8.0f}"
                  f"{1000 * statistics.median(on[0] for _, on in measured):8.0f}"
                  f"{statistics.median(walls):7.2f}  {walls[0]:.2f}-{walls[-1]:<7.2f}"
                  f"{statistics.median(ratio(measured, 1)):6.2f}  at least {bar}", flush=True)


def level(session, rows, pairs, only):
    session.tables(LEVEL_TABLES, rows)
    session.run("CREATE INDEX IF NOT EXISTS facts_id ON facts (id); CREATE INDEX IF NOT EXISTS keys_k ON keys (k);"
                " CREATE INDEX IF NOT EXISTS small_k ON small (k)")
    # the largest k such that the k'th smallest is below the median with probability 95%
    at = next(k for k in range(pairs, -1, -1)
              if sum(math.comb(pairs, i) for i in range(k)) / 2 ** pairs <= 0.05)
    print(f"{'':40}{'filters':>8}{'off ms':>8}{'on ms':>8}{'ratio':>7}{'bound':>7}{'low':>7}  bar: at least 0.95 (CPU time)")
    failed = of = 0
    for name, chosen, sql in [x for x in LEVEL if only in x[0]]:
        sql = sql.replace("{keys}", str(rows["keys"]))
        session.settings({"work_mem": "4MB", "max_parallel_workers_per_gather": 0, "enable_hashjoin": "on",
                          "enable_parallel_hash": "on"} | chosen)
        measured = session.pairs(sql, pairs, "max_parallel_workers_per_gather" in chosen)
        ratios = ratio(measured, 1)
        bound = ratios[at - 1] if at else 0
        low = math.prod(sorted(p[on][1] for p in measured)[pairs // 4] ** (-1) ** on for on in (0, 1))
        failed += bound < 0.95
        of += 1
        print(f"{name:40}{session.probes(sql):>8}"
              f"{1000 * statistics.median(off[1] for off, _ in measured):8.0f}"
              f"{1000 * statistics.median(on[1] for _, on in measured):8.0f}"
              f"{statistics.median(ratios):7.3f}{bound:7.3f}{low:7.3f}{'' if bound >= 0.95 else '  below'}", flush=True)
    print(f"{of - failed} of {of} at 0.95 or above")


def whole(session, title, queries, pairs):
    """A set of queries: each one's median of some pairs, and their sum"""
    for workers in (0, 2):
        session.settings({"work_mem": "4MB", "max_parallel_workers_per_gather": workers})
        total, ratios = [0, 0], []
        for name, sql in queries:
            measured = session.pairs(sql, min(pairs, 3), workers > 0)
            off = statistics.median(off[0] for off, _ in measured)
            on = statistics.median(on[0] for _, on in measured)
            total[0] += off
            total[1] += on
            ratios.append((off / on, name))
            print(f"{title} {name:>4}{' 2 workers' if workers else '':10}{session.probes(sql):>8} filters"
                  f"{1000 * off:8.0f}{1000 * on:8.0f}{off / on:7.2f}", flush=True)
        best, worst = max(ratios), min(ratios)
        print(f"{title}{', 2 workers' if workers else ''}: {total[0]:.1f} s, with filters {total[1]:.1f} s"
              f" ({total[0] / total[1]:.2f}); best query {best[0]:.2f} ({best[1]}), worst {worst[0]:.2f} ({worst[1]})")


def star(session, rows, pairs, only):
    session.tables(STAR_TABLES, rows)
    whole(session, "star", [(f"{i}", q) for i, q in enumerate(STAR, 1) if only in f"{i}"], pairs)


def tpch(session, rows, pairs, only):
    session.tables(TPCH_TABLES, rows)
    for table, columns in TPCH_KEYS:
        session.run(f"CREATE UNIQUE INDEX IF NOT EXISTS {table}_key ON {table} ({columns})")
    session.run("CREATE INDEX IF NOT EXISTS lineitem_part ON lineitem (part, supplier)")
    whole(session, "tpch", [(f"{i}", q) for i, q in TPCH.items() if only in f"{i}"], pairs)


SUITES = {"gain": gain, "level": level, "star": star, "tpch": tpch}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--only", default="", help="queries with this in their names")
    args = parser.parse_args()
    rows = {k: int(v * args.scale) for k, v in ROWS.items()}
    session = Session()
    for name in args.suites or SUITES:
        SUITES[name](session, rows, args.pairs, args.only)
    size = session.run("SELECT pg_size_pretty(sum(pg_total_relation_size(c.oid))) FROM pg_class c"
                       " WHERE relnamespace = 'joinfilter_bench'::regnamespace AND relkind = 'r'")
    print(f"tables and indexes: {size[0][0]}")


if __name__ == "__main__":
    main()
