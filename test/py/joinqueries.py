"""Random schemas, and random queries that join their tables.

Every query has one right answer: what a query leaves open (the order of rows,
which of several equal values stands for a group) is either not asked for or
brought into one form, so that two runs of it can be compared.

A statement is a tree of strings, lists, and Opt nodes.  An Opt may be left out:
that is how a failing query is made small.
"""
import dataclasses
import itertools


class Opt:
    """A part of a statement that may be left out, or replaced by `other`"""

    def __init__(self, *parts, other=""):
        self.parts = list(parts)
        self.other = other


def render(tree, gone=frozenset()):
    """The statement's text, without the parts whose id() is in `gone`"""
    if isinstance(tree, str):
        return tree
    if isinstance(tree, Opt):
        return tree.other if id(tree) in gone else render(tree.parts, gone)
    return "".join(render(part, gone) for part in tree)


def options(tree):
    """All Opt nodes, outer ones first"""
    if isinstance(tree, Opt):
        yield tree
        tree = tree.parts
    if isinstance(tree, list):
        for part in tree:
            yield from options(part)


def joined(separator, parts):
    """Parts with a separator between them"""
    tree = []
    for part in parts:
        tree += [separator, part] if tree else [part]
    return tree


def conjunction(parts):
    """Conditions, each of which may be left out"""
    return joined(" AND ", [Opt(part, other="true") for part in parts]) or ["true"]


# ---------------------------------------------------------------------------
# Types
# ---------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Family:
    """Types that are joined with each other.

    value     the SQL of value number {v}, in row {i}, as {type}
    literal   the text of value number {v} as an untyped literal
    canonical an expression that is the same for all values that are equal
    keys      expressions that are equal for equal values, and of the same family
    few       so few values that a join on them alone has too many rows
    cast      what the literal needs where its type would not be found
    """
    name: str
    types: tuple
    value: str
    literal: str
    canonical: str = "{c}"
    keys: tuple = ()
    few: bool = False
    common: str = ""
    cast: str = ""

    @property
    def union(self):
        """The type, with its collation, that all of them convert to"""
        return self.common or self.types[0]


INT = Family("int", ("int4", "int8", "int2", "whole"), "({v})::{type}", "{v}", "{c}::int8",
             ("{c} + 1", "-{c}", "abs({c})", "{c} % 50"), common="int8")

FAMILIES = [
    INT,
    Family("text", ("text", "varchar(30)", "name", 'text COLLATE "C"'),
           "(CASE {i} % 2 WHEN 0 THEN 'k' ELSE 'K' END || {v})::{type}", "k{v}",
           '{c}::text COLLATE "C"', ("{c} || 'x'", "lower({c})"), common='text COLLATE "C"'),
    Family("bpchar", ("char(8)", "char(20)"), "('k' || {v})::{type}", "k{v}", "{c}::text"),
    Family("numeric", ("numeric", "numeric(12,3)"), "round(({v})::numeric, {i} % 4)", "{v}.00",
           "trim_scale({c})", ("{c} + 1", "{c} * 2")),
    Family("float", ("float8", "float4"),
           "(CASE {v} WHEN 0 THEN CASE {i} % 2 WHEN 0 THEN '-0' ELSE '0' END"
           " WHEN 1 THEN 'NaN' ELSE (({v}) / 2.0)::text END)::{type}", "{v}.5",
           "{c}::float8 + 0", ("{c} + 1",)),
    Family("uuid", ("uuid",), "lpad(to_hex({v}), 32, '0')::uuid",
           "00000000-0000-0000-0000-{v:012x}", "{c}::text"),
    Family("timestamptz", ("timestamptz",),
           "'2020-01-01 00:00+00'::timestamptz + ({v}) * interval '1 minute'",
           "2020-01-01 00:{v:02}+00", keys=("{c} + interval '1 day'",)),
    Family("timestamp", ("timestamp",), "'2020-01-01'::timestamp + ({v}) * interval '1 minute'",
           "2020-01-01 00:{v:02}"),
    Family("date", ("date",), "'2020-01-01'::date + ({v})", "2020-01-{v:02}", keys=("{c} + 1",)),
    Family("interval", ("interval",),
           "CASE {i} % 2 WHEN 0 THEN make_interval(days => ({v})::int)"
           " ELSE make_interval(months => (({v}) / 30)::int, days => (({v}) % 30)::int) END",
           "{v} days", "extract(epoch FROM {c})"),
    Family("bool", ("bool",), "(({v}) % 2 = 0)", "true", few=True),
    Family("enum", ("mood",), "('e' || ({v}) % 7)::mood", "e3", few=True),
    Family("int[]", ("int[]",), "ARRAY[({v})::int, NULL, ({v})::int % 3]", "{{{v},NULL,1}}"),
    Family("text[]", ("text[]",), "ARRAY['k' || ({v}), '']", "{{k{v}}}"),
    Family("composite", ("pair",), "ROW({v}, 'k' || ({v}))::pair", "({v},k{v})", "{c}::text",
           cast="::pair"),
    Family("jsonb", ("jsonb",), "to_jsonb('k' || ({v}))", '"k{v}"'),
    Family("bytea", ("bytea",), "('k' || ({v}))::bytea", "k{v}"),
    Family("inet", ("inet",), "'10.0.0.0'::inet + ({v})", "10.0.0.{v}"),
    Family("range", ("int4range",), "int4range(({v})::int, ({v})::int + 3)", "[{v},100)"),
]

# only where the server has ICU, or citext
CASELESS = Family("caseless", ("text COLLATE caseless", "varchar(30) COLLATE caseless"),
                  "(CASE {i} % 2 WHEN 0 THEN 'k' ELSE 'K' END || {v})::{type}", "K{v}",
                  'lower({c}::text COLLATE "C")', ("{c} || 'x'",))
CITEXT = Family("citext", ("citext",), "(CASE {i} % 2 WHEN 0 THEN 'k' ELSE 'K' END || {v})::citext",
                "K{v}", 'lower({c}::text COLLATE "C")')


@dataclasses.dataclass(frozen=True)
class Col:
    """An expression that a query can use, and its family"""
    expr: str
    family: Family

    @property
    def canonical(self):
        return self.family.canonical.format(c=self.expr)


# ---------------------------------------------------------------------------
# Schemas
# ---------------------------------------------------------------------------

COMMON = """
CREATE FUNCTION rnd(i int, salt int) RETURNS int IMMUTABLE PARALLEL SAFE
    RETURN (hashint8extended(i, salt) & 1048575)::int;
CREATE SEQUENCE ticks;
CREATE FUNCTION tick(v anyelement) RETURNS anyelement LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('ticks');
    RETURN v;
END $$;
CREATE DOMAIN whole AS int4;
CREATE TYPE mood AS ENUM ('e0', 'e1', 'e2', 'e3', 'e4', 'e5', 'e6');
CREATE TYPE pair AS (v int, t text);
"""


class Table:
    """One table: id (unique), n (int), and columns of the schema's families"""

    def __init__(self, rng, name, families, rows):
        self.name = name
        self.rows = rows
        self.partitioned_by = None
        self.columns = [("id", INT, "int4"), ("n", INT, "int4")]
        for letter, family in zip("abc", families):
            for i in range(rng.choice((1, 1, 2))):
                self.columns.append((f"{letter}{i}", family, rng.choice(family.types)))

    def values(self, rng):
        """The SQL of each column in row i"""
        for name, family, type_ in self.columns:
            if name == "id":
                yield "i"
                continue
            salt = rng.randrange(1 << 20)
            spread = rng.choice((6, 20, 20, 40, 60, 200))
            number = f"rnd(i, {salt}) % {spread}"
            if name == "n":
                number = f"rnd(i, {salt}) % 40"
            elif rng.random() < 0.3:                # skewed
                number = f"CASE WHEN rnd(i, {salt + 1}) % 3 < 2 THEN {rng.randrange(spread)}" \
                         f" ELSE {number} END"
            elif rng.random() < 0.3:                # overlaps the others in part
                number = f"{number} + {rng.randrange(spread)}"
            value = family.value.format(v=f"({number})", i="i", type=type_)
            if rng.random() < 0.5:
                value = f"CASE WHEN rnd(i, {salt + 2}) % {rng.choice((3, 10, 10))} > 0 THEN {value} END"
            yield value

    def create(self, rng):
        """The statements that make it and fill it"""
        columns = [f"{name} {type_}" for name, _, type_ in self.columns]
        turned = ["junk int"] + columns[::-1]
        insert = f"INSERT INTO {self.name} ({', '.join(c[0] for c in self.columns)})" \
                 f" SELECT {', '.join(self.values(rng))} FROM generate_series(1, {self.rows}) i"
        kind = rng.choice(("plain",) * 8 + ("partitioned",) * 4 + ("inherited", "temporary"))
        if kind == "partitioned":
            how = rng.choice(("HASH", "RANGE", "LIST"))
            self.partitioned_by = how
            bounds = {
                "HASH": [f"FOR VALUES WITH (MODULUS 3, REMAINDER {i})" for i in range(3)],
                "RANGE": ["FOR VALUES FROM (MINVALUE) TO (10)", "FOR VALUES FROM (10) TO (25)",
                          "DEFAULT"],
                "LIST": ["FOR VALUES IN (" + ", ".join(map(str, range(i, 40, 3))) + ")"
                         for i in range(2)] + ["DEFAULT"],
            }[how]
            yield f"CREATE TABLE {self.name} ({', '.join(columns)}) PARTITION BY {how} (n)"
            for i, bound in enumerate(bounds):
                part = f"{self.name}_{i}"
                # one partition with its columns elsewhere
                yield f"CREATE TABLE {part} ({', '.join(turned if i == 1 else columns)})"
                if i == 1:
                    yield f"ALTER TABLE {part} DROP COLUMN junk"
                yield f"ALTER TABLE {self.name} ATTACH PARTITION {part} {bound}"
            yield insert
        elif kind == "inherited":
            yield f"CREATE TABLE {self.name} ({', '.join(columns)})"
            yield f"CREATE TABLE {self.name}_0 ({', '.join(turned)})"
            yield f"ALTER TABLE {self.name}_0 INHERIT {self.name}"
            yield f"{insert} WHERE i % 2 = 0"
            yield insert.replace(self.name, f"{self.name}_0", 1) + " WHERE i % 2 = 1"
        else:
            what = {"plain": "TABLE", "temporary": "TEMPORARY TABLE"}[kind]
            history = rng.choice(("plain",) * 4 + ("dropped", "added"))
            if history == "dropped":
                yield f"CREATE {what} {self.name} ({', '.join([*columns[:2], 'junk text', *columns[2:]])})"
                yield f"ALTER TABLE {self.name} DROP COLUMN junk"
                yield insert
            elif history == "added" and self.rows <= 100:
                # rows that lack the last column: it is not stored, and the same in all of them
                _, family, type_ = self.columns[-1]
                default = family.value.format(v=f"({rng.randrange(40)})", i="1", type=type_)
                yield f"CREATE {what} {self.name} ({', '.join(columns)})"
                yield f"{insert} WHERE i % 3 > 0"
                yield f"ALTER TABLE {self.name} DROP COLUMN {self.columns[-1][0]}"
                yield f"ALTER TABLE {self.name} ADD COLUMN {columns[-1]} DEFAULT ({default})"
                yield f"{insert} WHERE i % 3 = 0"
            else:
                yield f"CREATE {what} {self.name} ({', '.join(columns)})"
                yield insert
            if rng.random() < 0.3:
                yield f"ALTER TABLE {self.name} ADD PRIMARY KEY (id)"
        for name, family, _ in self.columns[1:]:
            if rng.random() < 0.15 and family.name not in ("jsonb",):
                yield f"CREATE INDEX ON {self.name} ({name})"
        if rng.random() < 0.7:
            yield f"ANALYZE {self.name}"


class Schema:
    """Tables and views whose columns can be joined with each other"""

    def __init__(self, rng, extra):
        pool = FAMILIES + extra
        self.families = [INT if rng.random() < 0.3 else rng.choice(pool) for _ in range(3)]
        self.setup = [COMMON]
        if CITEXT in extra:
            self.setup.append("CREATE EXTENSION IF NOT EXISTS citext SCHEMA public")
        if CASELESS in extra:
            self.setup.append("CREATE COLLATION caseless (provider = icu,"
                              " locale = 'und-u-ks-level2', deterministic = false)")
        sizes = [rng.choice((0, 1, 12, 40, 40, 60)), rng.choice((60, 150)), rng.choice((100, 300)),
                 rng.choice((300, 1000)), rng.choice((150, 400) * 8 + (9000,))]
        rng.shuffle(sizes)
        self.tables = []
        for i, rows in enumerate(sizes[:rng.choice((3, 4, 4, 5))]):
            families = rng.sample(self.families, 3)
            # the same letter for the same family, in every table
            families.sort(key=self.families.index)
            table = Table(rng, f"t{i}", families, rows)
            self.tables.append(table)
            self.setup += table.create(rng)
        # what the queries read: name, columns, and whether it can be written to
        self.sources = [(t.name, t) for t in self.tables]
        table = rng.choice(self.tables)
        self.setup.append(f"CREATE VIEW v0 AS SELECT * FROM {table.name} WHERE n % 3 <> 0")
        self.sources.append(("v0", table))
        table = rng.choice(self.tables)
        self.setup.append("CREATE VIEW v1 WITH (security_barrier) AS"
                          f" SELECT * FROM {table.name} WHERE n % 4 <> 0")
        self.sources.append(("v1", table))
        if rng.random() < 0.5:
            table, other = rng.choice(self.tables), rng.choice(self.tables)
            rule = rng.choice(("n % 5 <> 1", f"n IN (SELECT x.n FROM {other.name} x)",
                               f"EXISTS (SELECT FROM {other.name} x WHERE x.n = {table.name}.n)"))
            if other is table:
                rule = "n % 5 <> 1"
            self.setup.append(f"ALTER TABLE {table.name} ENABLE ROW LEVEL SECURITY;"
                              f" CREATE POLICY p ON {table.name} USING ({rule})")
        tables = ", ".join(name for name, _ in self.sources)
        self.setup.append("GRANT USAGE ON SCHEMA {schema} TO {role};"
                          f" GRANT ALL ON {tables}, ticks TO {{role}}")


# ---------------------------------------------------------------------------
# Queries
# ---------------------------------------------------------------------------

class Queries:
    """Random queries over a schema"""

    def __init__(self, rng, schema, version):
        self.rng = rng
        self.schema = schema
        self.version = version
        self.aliases = itertools.count(1)
        self.ctes = []
        self.parameter = None       # the SQL of an int that is known late
        self.outer_int = None       # that of an outer query's, where we are
        self.volatile = True

    def chance(self, p):
        return self.rng.random() < p

    def literal(self, family):
        value = family.literal.format(v=self.rng.choice((1, 1, 2, 3, 5, 9, 15, 25)))
        return f"'{value}'{family.cast}"

    # -- conditions ---------------------------------------------------------

    def restriction(self, cols):
        """A condition on one column"""
        col = self.rng.choice(cols)
        if self.parameter and col.family is INT and self.chance(0.7):
            return f"{col.expr} {self.rng.choice(('<', '=', '>', '<>'))} {self.parameter}"
        value = self.literal(col.family)
        other = self.literal(col.family)
        forms = [f"{col.expr} < {value}", f"{col.expr} <= {other}", f"{col.expr} >= {value}",
                 f"{col.expr} > {value}", f"{col.expr} IS NOT NULL"] * 2 + \
            [f"{col.expr} = {value}", f"{col.expr} IN ({value}, {other})"]
        if self.chance(0.1):
            forms = [f"{col.expr} IS NULL", f"{col.expr} <> {value}",
                     f"NOT ({col.expr} = {value} OR {col.expr} = {other})"]
        if col.family is INT and self.chance(0.3):
            forms = [f"{col.expr} % {self.rng.choice((3, 7))} = {self.rng.randrange(3)}"]
        if self.volatile and self.chance(0.03):
            return f"tick({col.expr}) IS NOT NULL"
        return self.rng.choice(forms)

    def pairs(self, left, right):
        """Pairs of columns of one family"""
        return [(a, b) for a in left for b in right if a.family is b.family]

    def equality(self, a, b):
        """a = b, perhaps of an expression over both, or over one"""
        x, y = a.expr, b.expr
        if a.family.keys and self.chance(0.15):
            # the first of them makes sense on one side alone
            key, one = self.rng.choice(a.family.keys), self.chance(0.3)
            x = (a.family.keys[0] if one else key).format(c=x)
            y = y if one else key.format(c=y)
        if a.family.name == "text" and CASELESS in self.schema.families and self.chance(0.2):
            y += " COLLATE caseless"
        if a.family is INT and self.outer_int and self.chance(0.25):
            y = f"{y} + {self.outer_int} % 3"
        if self.chance(0.3):
            x, y = y, x
        return f"{x} = {y}"

    def keys(self, left, right):
        """One to three equalities between columns of two sides, or None"""
        pairs = self.pairs(left, right)
        if not pairs:
            return None
        self.rng.shuffle(pairs)
        pairs.sort(key=lambda pair: pair[0].family.few)
        wanted = self.rng.choice((1,) * 8 + (2, 2, 3)) + pairs[0][0].family.few
        return [self.equality(a, b) for a, b in pairs[:wanted]]

    def subquery_condition(self, cols, depth):
        """EXISTS, IN and the like"""
        kind = self.rng.choice(("EXISTS", "EXISTS", "NOT EXISTS", "IN", "IN", "NOT IN", "ANY"))
        if kind in ("EXISTS", "NOT EXISTS"):
            source, inner = self.relation(depth - 1)
            keys = self.keys(cols, inner)
            if keys is None:
                return None
            extra = [self.restriction(inner)] if self.chance(0.5) else []
            if self.chance(0.1):
                extra.append(f"{self.rng.choice(inner).expr} IS NOT NULL OR"
                             f" {self.rng.choice(cols).expr} IS NOT NULL")
                extra[-1] = f"({extra[-1]})"
            return [f"{kind} (SELECT FROM ", source, " WHERE ",
                    joined(" AND ", [keys[0]] + [Opt(k, other="true") for k in keys[1:] + extra]),
                    ")"]
        wanted = self.rng.sample(cols, min(len(cols), self.rng.choice((1, 1, 2))))
        sub, _ = self.select(depth - 1, families=[c.family for c in wanted], cap=kind == "NOT IN")
        if sub is None:
            return None
        left = ", ".join(c.expr for c in wanted)
        left = f"({left})" if len(wanted) > 1 else left
        if kind == "ANY":
            return [f"{left} = ANY (", sub, ")"]
        return [f"{left} {kind} (", sub, ")"]

    # -- relations ----------------------------------------------------------

    def columns_of(self, table, alias):
        return [Col(f"{alias}.{name}", family) for name, family, _ in table.columns]

    def table(self, cap=False, most=(5, 12, 20)):
        """A table or a view; if there is a cap, a few of its rows"""
        name, table = self.rng.choice(self.schema.sources)
        alias = f"r{next(self.aliases)}"
        if cap:
            return f"(SELECT * FROM {name} WHERE id <= {self.rng.choice(most)}) {alias}", \
                self.columns_of(table, alias)
        if self.chance(0.03) and not name.startswith("v"):
            return f"{name} {alias} TABLESAMPLE BERNOULLI (60) REPEATABLE (7)", \
                self.columns_of(table, alias)
        return f"{name} {alias}", self.columns_of(table, alias)

    def relation(self, depth, outer=(), cap=False):
        """Something to join: its SQL, and its columns.  What `outer` has may be
        used: the SQL begins with LATERAL then."""
        alias = f"r{next(self.aliases)}"
        what = self.rng.random()
        if outer or (depth > 0 and what < 0.2):
            sub, cols = self.select(depth - 1, outer=outer, cap=cap)
            if sub is not None:
                return [f"{'LATERAL ' if outer else ''}(", sub, f") {alias}"], \
                    [Col(f"{alias}.{c.expr}", c.family) for c in cols]
        if self.ctes and what > 0.8:
            name, cols = self.rng.choice(self.ctes)
            return f"{name} {alias}", [Col(f"{alias}.{c.expr}", c.family) for c in cols]
        if 0.75 < what < 0.8:
            form = self.rng.choice(("generate_series(1, 30)", "generate_series(5, 400, 5)",
                                    "unnest(ARRAY[1, 2, NULL, 3, 3, 77])",
                                    "(VALUES (1), (2), (NULL), (17), (17), (30))"))
            return f"{form} {alias}(n)", [Col(f"{alias}.n", INT)]
        return self.table(cap)

    def join(self, depth, outer, cap):
        """FROM's relations: the SQL, the columns, and conditions for WHERE"""
        count = self.rng.choice((1, 2, 2, 2, 3, 3, 4) if depth > 1 else (1, 1, 2, 2, 3))
        if outer:
            count = max(count, self.rng.choice((1, 2, 2, 2)))
        lateral = depth > 0 and self.chance(0.12)
        cap = cap or lateral
        sql, cols = self.relation(depth, cap=cap)
        where = []
        # what can be on the null side of a join is not a place for LATERAL
        for i in range(1, count):
            correlated = lateral and (i == count - 1 or self.chance(0.4))
            right, new = self.relation(depth, outer=(tuple(cols) + tuple(outer)) if correlated else (),
                                       cap=cap)
            kind = self.rng.choice(("JOIN",) * 6 + (", ",) * 2 + ("LEFT JOIN",) * 4 +
                                   ("RIGHT JOIN",) * 2 + ("FULL JOIN",))
            if correlated:
                kind = self.rng.choice(("JOIN", "LEFT JOIN", ", "))
            keys = self.keys(cols, new)
            if keys is None or (correlated and self.chance(0.6)):
                keys = keys if kind == "FULL JOIN" and keys else ["true"]
                kind = "JOIN" if kind == "FULL JOIN" else kind
            if kind == ", ":
                sql = [sql, " CROSS JOIN ", right]
                where += keys
            else:
                extra = []
                if kind != "FULL JOIN" and self.chance(0.25):
                    extra = [self.restriction(new if self.chance(0.6) else cols)]
                condition = [keys[0]] + [[" AND ", Opt(k, other="true")] for k in keys[1:] + extra]
                # the new one on the left, at times: bushy trees
                if not correlated and self.chance(0.35):
                    sql = ["(", right, f" {kind} ", sql, " ON ", condition, ")"]
                else:
                    part = [f" {kind} ", right, " ON ", condition]
                    sql = ["(", sql, Opt(*part) if i > 1 else part, ")"]
            cols = cols + new
        return sql, cols, where

    # -- SELECT -------------------------------------------------------------

    def pick(self, cols, families):
        """Columns of these families, or None"""
        found = []
        for family in families:
            fit = [c for c in cols if c.family is family]
            if not fit:
                return None
            found.append(self.rng.choice(fit))
        return found

    def select(self, depth, outer=(), families=None, cap=False):
        """A query, whose output columns are c1, c2 ...: its SQL, and its columns"""
        before = self.outer_int
        numbers = [c.expr for c in outer if c.family is INT]
        self.outer_int = self.rng.choice(numbers) if numbers else before
        found = None
        for _ in range(5):
            found = found or self.try_select(depth, outer, families, cap)
        self.outer_int = before
        return found or (None, None)

    def try_select(self, depth, outer, families, cap):
        source, cols, where = self.join(depth, outer, cap)
        if families is None:
            wanted = [self.rng.choice(cols) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        else:
            wanted = self.pick(cols, families)
            if wanted is None:
                return None
        for _ in range(self.rng.choice((0, 0, 1, 1, 1, 2)) if depth > 1 else self.rng.choice((0, 0, 1))):
            where.append(self.restriction(cols))
        if depth > 0 and self.chance(0.25):
            condition = self.subquery_condition(cols, depth)
            if condition is not None:
                where.append(condition)
        bound = []          # to an outer query's columns
        if outer:
            for a, b in self.rng.sample(self.pairs(cols, outer) or [(None, None)], 1):
                if a is not None:
                    bound.append(f"{a.expr} {self.rng.choice(('=', '<=', '<>'))} {b.expr}")
            numbers = [c for c in outer if c.family is INT]
            mine = [c for c in cols if c.family is INT]
            if numbers and mine and (not bound or self.chance(0.4)):
                bound.append(f"{self.rng.choice(mine).expr} % 3 ="
                             f" {self.rng.choice(numbers).expr} % 3")
        condition = joined(" AND ", [conjunction(where)] + bound)

        form = self.rng.choice(("plain",) * 9 + ("group",) * 3 + ("distinct",) * 2 +
                               ("on", "window", "window", "sets", "set operation", "limit", "limit"))
        body = self.form(form, source, wanted, cols, condition, depth)
        names = [Col(f"c{i}", c.family) for i, c in enumerate(wanted, 1)]
        tail = []
        if form == "limit":
            tail = [" ORDER BY ", ", ".join(str(i) for i in range(1, len(wanted) + 1)),
                    f" LIMIT {self.rng.choice((1, 3, 10, 100))}",
                    f" OFFSET {self.rng.choice((0, 0, 2))}"]
        elif form != "on" and self.chance(0.6 if outer else 0.08):
            tail = [Opt(" OFFSET 0")]
        elif form != "on" and self.chance(0.05):
            tail = [Opt(" ORDER BY 1")]
        return [body, tail], names

    def form(self, form, source, wanted, cols, condition, depth):
        """SELECT … FROM … WHERE … in one of several forms"""
        outputs = [f"{c.expr} AS c{i}" for i, c in enumerate(wanted, 1)]
        if self.volatile and form in ("plain", "limit") and self.chance(0.1):
            at = self.rng.randrange(len(wanted))
            outputs[at] = f"tick({wanted[at].expr}) AS c{at + 1}"
        listed = ", ".join(outputs)
        where = [" FROM ", source, " WHERE ", condition]
        exprs = ", ".join(c.expr for c in wanted)
        if form == "group":
            # a column that is INT can be an aggregate, the others are keys
            keys, outputs = [], []
            for i, c in enumerate(wanted, 1):
                if c.family is INT and (self.chance(0.4) or c in wanted[:i - 1]):
                    what = self.rng.choice(("count(*)", "sum({})", "max({})", "count(DISTINCT {})",
                                            "min({})", "count({}) FILTER (WHERE {} > 3)"))
                    outputs.append(f"({what.format(c.expr, c.expr)})::int8 AS c{i}")
                else:
                    keys.append(c.expr)
                    outputs.append(f"{c.expr} AS c{i}")
            having = [Opt(f" HAVING count(*) {self.rng.choice(('> 1', '< 20', '<> 2'))}")] \
                if self.chance(0.2) else []
            group = f" GROUP BY {', '.join(keys)}" if keys else ""
            return [f"SELECT {', '.join(outputs)}", where, group, having]
        if form == "sets":
            sets = self.rng.choice(("GROUPING SETS (({0}), ({1}))", "ROLLUP ({0})", "CUBE ({0})",
                                    "GROUPING SETS (({0}), ())"))
            return [f"SELECT {listed}", where,
                    f" GROUP BY {sets.format(exprs, wanted[0].expr)}"
                    if len(set(wanted)) == len(wanted) else f" GROUP BY {exprs}"]
        if form == "distinct":
            return [f"SELECT DISTINCT {listed}", where]
        if form == "on":
            rest = "".join(f", {i}" for i in range(2, len(wanted) + 1))
            return [f"SELECT DISTINCT ON ({wanted[0].expr}) {listed}", where, f" ORDER BY 1{rest}"]
        if form == "window":
            by = self.rng.choice(wanted)
            everything = ", ".join(c.expr for c in wanted)
            what = self.rng.choice((f"row_number() OVER (PARTITION BY {by.expr} ORDER BY {everything})",
                                    f"count(*) OVER (PARTITION BY {by.expr})",
                                    f"rank() OVER (ORDER BY {by.expr})",
                                    f"dense_rank() OVER (PARTITION BY {by.expr} ORDER BY {exprs})"))
            numbers = [i for i, c in enumerate(wanted) if c.family is INT and c is not by]
            if numbers:
                at = self.rng.choice(numbers)
                outputs[at] = f"{what} AS c{at + 1}"
                return [f"SELECT {', '.join(outputs)}", where]
        if form == "set operation":
            other, _ = self.select(max(depth - 1, 0), families=[c.family for c in wanted], cap=True)
            if other is not None:
                how = self.rng.choice(("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "EXCEPT"))
                cast = ", ".join(f"{c.expr}::{c.family.union} AS c{i}"
                                 for i, c in enumerate(wanted, 1))
                again = ", ".join(f"c{i}::{c.family.union}" for i, c in enumerate(wanted, 1))
                return [f"SELECT * FROM (SELECT {cast}", where,
                        Opt(f" {how} SELECT {again} FROM (", other, ") s"), ") u"]
        return [f"SELECT {listed}", where]

    def recursive(self):
        """WITH RECURSIVE: a walk along equal keys, three steps long"""
        first, a = self.table(cap=True)
        other, b = self.relation(0)
        pairs = self.pairs(a, b)
        if not pairs:
            return None
        x, y = self.rng.choice(pairs)
        out = self.rng.choice([c for c in b if c.family is INT] or [None])
        if out is None:
            return None
        ints = [c for c in a if c.family is INT]
        third = []
        if self.chance(0.5):
            more, c = self.table()
            keys = self.keys(b, c)
            if keys:
                third = [Opt(" JOIN ", more, " ON ", joined(" AND ", keys), " AND ",
                             self.restriction(c))]
        union = x.family.union
        return [f"SELECT 0, {self.rng.choice(ints).expr}::int8, {x.expr}::{union} FROM ", first,
                f" UNION SELECT w.c1 + 1, {out.expr}::int8, {y.expr}::{union} FROM walk w JOIN ",
                other, f" ON w.c3 = {y.expr}", third, " WHERE w.c1 < 3"], x.family

    def query(self):
        """A whole query: its SQL, and its columns c1, c2 ..."""
        self.ctes = []
        self.outer_int = None
        head = []
        if self.chance(0.08):
            found = self.recursive()
            if found is not None:
                head.append(["walk(c1, c2, c3) AS (", found[0], ")"])
                self.ctes.append(("walk", [Col("c1", INT), Col("c2", INT), Col("c3", found[1])]))
        recursive = bool(head)
        for i in range(self.rng.choice((0, 0, 0, 0, 1, 2))):
            sub, cols = self.select(1)
            if sub is not None:
                how = self.rng.choice(("", "MATERIALIZED ", "NOT MATERIALIZED "))
                head.append([f"q{i} AS {how}(", sub, ")"])
                self.ctes.append((f"q{i}", cols))
        if self.chance(0.2):
            body, cols = self.shaped()
        else:
            body, cols = None, None
        while body is None:
            body, cols = self.select(2)
        if head:
            body = [f"WITH {'RECURSIVE ' if recursive else ''}", joined(", ", head), " ", body]
        return body, cols

    def shaped(self):
        """Shapes that random joins rarely have, and in which filters have been
        wrong: what is joined depends on a row outside it, and one of the two
        sides does not."""
        a, b = f"r{next(self.aliases)}", f"r{next(self.aliases)}"
        outer, outer_cols = self.table(cap=True, most=(4, 8))
        second, second_cols = self.table(cap=True, most=(3, 6))
        name, table = self.rng.choice(self.schema.sources)
        other_name, other = self.rng.choice(self.schema.sources)
        x, y = self.columns_of(table, a), self.columns_of(other, b)
        pairs = [p for p in self.pairs(x, y) if not p[0].family.few]
        if not pairs:
            return None, None
        k, l = self.rng.choice(pairs)
        # what the side that is probed is made of: it may keep what it has read
        probed = [f"{name} {a}"]
        shape = self.rng.randrange(5)
        if shape == 1:
            probed = [f"(SELECT {k.expr} AS k, count(*)::int8 AS n FROM {name} {a} GROUP BY 1) {a}"]
            k, x = Col(f"{a}.k", k.family), [Col(f"{a}.n", INT)]
        elif shape == 2:
            c = f"r{next(self.aliases)}"
            third_name, third = self.rng.choice(self.schema.sources)
            z = self.columns_of(third, c)
            m, n = self.rng.choice([p for p in self.pairs(z, x) if not p[0].family.few])
            how = self.rng.choice(("JOIN", "JOIN", "RIGHT JOIN", "LEFT JOIN"))
            probed = [f"({third_name} {c} {how} {name} {a} ON {m.expr} = {n.expr})"]
        elif shape == 3:
            probed = [f"(SELECT DISTINCT {k.expr} AS k FROM {name} {a}) {a}"]
            k, x = Col(f"{a}.k", k.family), [Col(f"{a}.k", k.family)]
        elif shape == 4:
            c = f"r{next(self.aliases)}"
            probed = [f"(SELECT tick({k.expr}) AS k, {a}.id, {a}.n FROM {name} {a}"
                      f"{self.rng.choice(('', ' OFFSET 0'))}) {a}"] if self.volatile else probed
            if self.volatile:
                k, x = Col(f"{a}.k", k.family), [Col(f"{a}.id", INT), Col(f"{a}.n", INT)]
        build = [f"{b}.n % 4 = {outer_cols[self.rng.choice((0, 1))].expr} % 4"]
        if self.chance(0.3):
            build = [f"{b}.id < 20 + {outer_cols[0].expr}"]
        probe = []
        if self.chance(0.5) and any(c.family is INT for c in x):
            number = self.rng.choice([c for c in x if c.family is INT])
            probe = [f"{number.expr} % 3 <> {second_cols[0].expr} % 3"]
        key = f"{k.expr} = {l.expr}"
        if k.family is INT and self.chance(0.4):
            key = f"{k.expr} = {l.expr} + {outer_cols[0].expr} % 7"
            build = []
        conditions = [key] + \
            [Opt(c, other="true") for c in build + probe + [self.restriction(y)]]
        output = self.rng.choice((f"SELECT {k.expr} AS k", "SELECT count(*) AS k"))
        family = INT if "count" in output else k.family
        inner = [f"{output} FROM ", probed, f", {other_name} {b} WHERE ",
                 joined(" AND ", conditions), Opt(" OFFSET 0")]
        keep = self.rng.choice(outer_cols)
        return [f"SELECT {keep.expr} AS c1, s.k AS c2 FROM ", outer, " CROSS JOIN ", second,
                " CROSS JOIN LATERAL (", inner, ") s"], \
            [Col("c1", keep.family), Col("c2", family)]


def settings(rng, version, parallel):
    """Random settings of the planner and the executor"""
    chosen = {
        "work_mem": rng.choice(("'64kB'", "'256kB'", "'4MB'", "'4MB'", "'64MB'")),
        "hash_mem_multiplier": rng.choice(("1", "2", "8")),
        "jit": "off",
    }
    for name, off in [("enable_nestloop", 0.75), ("enable_mergejoin", 0.85),
                      ("enable_material", 0.4), ("enable_memoize", 0.4), ("enable_sort", 0.1),
                      ("enable_hashagg", 0.2), ("enable_seqscan", 0.1), ("enable_indexscan", 0.3),
                      ("enable_indexonlyscan", 0.3), ("enable_bitmapscan", 0.3),
                      ("enable_incremental_sort", 0.3), ("enable_hashjoin", 0.02),
                      ("enable_partition_pruning", 0.2)]:
        if rng.random() < off:
            chosen[name] = "off"
    if version >= 160000 and rng.random() < 0.1:
        chosen["enable_presorted_aggregate"] = "off"
    for name in ("enable_partitionwise_join", "enable_partitionwise_aggregate"):
        if rng.random() < 0.6:
            chosen[name] = "on"
    if rng.random() < 0.5:
        chosen["join_collapse_limit"] = "1"
    if rng.random() < 0.3:
        chosen["from_collapse_limit"] = "1"
    if rng.random() < 0.05:
        chosen["geqo_threshold"] = "2"
    if rng.random() < 0.01:
        chosen.update(jit="on", jit_above_cost="0", jit_optimize_above_cost="-1",
                      jit_inline_above_cost="-1")
    chosen["max_parallel_workers_per_gather"] = "0"
    if parallel:
        chosen.update(max_parallel_workers_per_gather="2", parallel_setup_cost="0",
                      parallel_tuple_cost="0", min_parallel_table_scan_size="0",
                      min_parallel_index_scan_size="0")
        if rng.random() < 0.3:
            chosen["enable_parallel_hash"] = "off"
        if rng.random() < 0.3:
            chosen["enable_parallel_append"] = "off"
        if rng.random() < 0.2:
            chosen["parallel_leader_participation"] = "off"
        if rng.random() < 0.2:
            chosen["debug_parallel_query" if version >= 160000 else "force_parallel_mode"] = "on"
    return chosen
