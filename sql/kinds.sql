-- Element kinds: golden digests, what counts as the same value, what may meet
-- what.  element.sql has the simple kinds, kindtypes.sql every type.
SET client_min_messages = warning;
CREATE EXTENSION citext SCHEMA public;
RESET client_min_messages;
CREATE TYPE kinds_mood AS ENUM ('sad', 'ok', 'häppy');
CREATE TYPE kinds_pair AS (a int, b text);
CREATE TYPE "Kinds odd,(enum:" AS ENUM ('a');
CREATE TYPE kinds_nested AS (p kinds_pair, l kinds_pair[], m kinds_mood);
CREATE DOMAIN kinds_ints AS int[];
CREATE DOMAIN kinds_feeling AS kinds_mood;
CREATE DOMAIN kinds_key AS kinds_pair;
CREATE DOMAIN kinds_email AS citext;
CREATE DOMAIN kinds_code AS varchar(10);
CREATE DOMAIN kinds_deep AS kinds_ints;

CREATE FUNCTION pg_temp.digests(value anyelement) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', encode(bloom_hash(value), 'hex'), encode(bloom_hash(value, 'blake2b'), 'hex'))
$$;
CREATE FUNCTION pg_temp.state(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	EXECUTE 'SELECT ' || query INTO answer;
	RETURN coalesce(answer, 'NULL');
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;

-- golden digests, made from docs/format.md with other libraries
SELECT pg_temp.digests(time with time zone '12:00:00+02');	-- int64 microseconds, int64 seconds west
SELECT pg_temp.digests(time with time zone '23:59:59.999999-08:30');
SELECT pg_temp.digests(macaddr '08:00:2b:01:02:ff');
SELECT pg_temp.digests(macaddr8 '08:00:2b:01:02:03:04:ff');
SELECT pg_temp.digests(inet '192.168.1.5/24');				-- 4, 24, address
SELECT pg_temp.digests(inet '10.0.0.1');
SELECT pg_temp.digests(cidr '10.0.0.0/8');
SELECT pg_temp.digests(inet '2001:db8::1/64');				-- 6, 64, address
SELECT pg_temp.digests(0::numeric);							-- decimal digits
SELECT pg_temp.digests(5.00);
SELECT pg_temp.digests(-0.001);
SELECT pg_temp.digests(1200.50);
SELECT pg_temp.digests(1e30);
SELECT pg_temp.digests(123456789012345678901234567890.987654321);
SELECT pg_temp.digests(1e-200::numeric);
SELECT pg_temp.digests('NaN'::numeric);
SELECT pg_temp.digests('Infinity'::numeric);
SELECT pg_temp.digests('-Infinity'::numeric);
SELECT pg_temp.digests('sad'::kinds_mood);					-- the label
SELECT pg_temp.digests('häppy'::kinds_mood);
SELECT pg_temp.digests('{1,2}'::int[]);						-- 1 dimension, length 2, from 1; parts
SELECT pg_temp.digests('{1,NULL}'::int[]);
SELECT pg_temp.digests('{}'::int[]);
SELECT pg_temp.digests('{{1,2},{3,4}}'::int8[]);
SELECT pg_temp.digests('[0:1]={1,2}'::int[]);
SELECT pg_temp.digests('{ab,c,""}'::text[]);
SELECT pg_temp.digests('{1.50,NaN}'::numeric[]);
SELECT pg_temp.digests('{sad}'::kinds_mood[]);
SELECT pg_temp.digests(ROW(1, 'a'));						-- parts
SELECT pg_temp.digests(ROW(NULL, 2));
SELECT pg_temp.digests(ROW(7::int8, 'x'::char(5), true, 1.50, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid));
SELECT pg_temp.digests(ROW());
SELECT pg_temp.digests(ROW(1, ROW('{1,2}'::int[], NULL)));
SELECT pg_temp.digests(ROW(ROW(1, 'a'), ARRAY[ROW(2, 'b')]::kinds_pair[], 'ok')::kinds_nested);
SELECT pg_temp.digests('a'::"char");						-- text
SELECT pg_temp.digests('\351'::"char") = pg_temp.digests('\351'::text) AS octal, pg_temp.digests(''::"char") = pg_temp.digests(''::text) AS nothing;
SELECT pg_temp.digests('int8'::regtype) = pg_temp.digests(20) AS regtype, pg_temp.digests('pg_class'::regclass) = pg_temp.digests(1259) AS regclass;
SELECT bloom_hash(ROW(1, 'a'), 'blake2b', 'secret'), bloom_hash(5.0, 'blake2b', 'secret'), bloom_hash('{1,2}'::int[], 'blake2b', 'secret');

-- what PostgreSQL calls equal has one digest, and is found whichever of the
-- two was added
CREATE FUNCTION pg_temp.agree(exprs text[], OUT pairs bigint, OUT equal bigint, OUT different bigint, OUT digests bigint, OUT found bigint, OUT kind text) LANGUAGE sql AS $$
	SELECT count(*), count(*) FILTER (WHERE eq = 'true'), count(*) FILTER (WHERE eq = 'false'),
		(SELECT count(DISTINCT pg_temp.state(format('concat(bloom_hash(%s), bloom_hash(%1$s, %L))', e, 'blake2b'))) FROM unnest(exprs) e),
		count(*) FILTER (WHERE pg_temp.state(format('bloom_add(bloomfilter(10), %s) @> %s AND %2$s <@ bloom_agg(x) FROM (SELECT %1$s AS x OFFSET 0) s', a, b)) = 'true'),
		string_agg(DISTINCT pg_temp.state(format('(bloom_info(bloom_add(bloomfilter(10), %s))).element', a)), ' AND ')
	FROM unnest(exprs) a, unnest(exprs) b, pg_temp.state(format('(%s) = (%s)', a, b)) eq
$$;
SELECT what, agree.* FROM (VALUES
	(1, 'integers', '{5::int2,5::int4,5::int8,5::oid}'::text[]),
	(2, 'negative integers', '{-5::int2,-5::int4,-5::int8}'),
	(3, 'oids', '{20,20::int2,20::oid,"regtype ''int8''"}'),
	(4, 'text', '{''abc''::text,''abc''::varchar,''abc''::varchar(5),''abc''::name,''abc''::char(3),''abc''::char(9),''abc''::kinds_code,''abc''}'),
	(5, 'one character', '{''a''::text,''a''::\"char\",''a''::char(2),''a''::name}'),
	(6, 'no character', '{''''::text,''''::\"char\",'' ''::char(2),''''::name}'),
	(7, 'floats', '{1.5::float4,1.5::float8}'),
	(8, 'zeros', '{0::float4,0::float8,''-0''::float4,''-0''::float8}'),
	(9, 'NaN', '{''NaN''::float4,''NaN''::float8,-''NaN''::float8,''inf''::float8-''inf''::float8}'),
	(10, 'infinity', '{''inf''::float4,''inf''::float8}'),
	(11, 'numeric', '{5::numeric,5.0,5.00,5.000000000000000000000,500e-2}'),
	(12, 'large numeric', '{1e3,1000.0,"1000::numeric(10,2)",1000::numeric}'),
	(13, 'very large numeric', '{1e100,10::numeric^100,1e99*10.000}'),
	(14, 'small numeric', '{0.001,1e-3,0.00100}'),
	(15, 'numeric zero', '{0.0,0::numeric,-0.000,0e10}'),
	(16, 'numeric NaN', '{''NaN''::numeric,''inf''::numeric-''inf''::numeric}'),
	(17, 'inet', '{inet ''10.0.0.1'',inet ''10.0.0.1/32'',cidr ''10.0.0.1''}'),
	(18, 'network', '{inet ''10.0.0.0/8'',cidr ''10/8'',cidr ''10.0.0.0/8''}'),
	(19, 'inet6', '{inet ''::1'',inet ''0:0:0:0:0:0:0:1/128'',cidr ''::1''}'),
	(20, 'macaddr', '{macaddr ''08:00:2b:01:02:03'',macaddr ''08002b-010203''}'),
	(21, 'timetz', '{timetz ''12:00+02'',timetz ''12:00:00.000+02:00''}'),
	(22, 'timestamptz', '{timestamptz ''2026-01-01 00:00Z'',timestamptz ''2026-01-01 05:30+05:30'',timestamptz ''2025-12-31 16:00-08''}'),
	(23, 'uuid', '{uuid ''A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'',"uuid ''{a0eebc999c0b4ef8bb6d6bb9bd380a11}''"}'),
	(24, 'enum', '{''ok''::kinds_mood,''ok''::kinds_feeling}'),
	(25, 'arrays of integers', '{"''{1,2}''::int2[]","''{1,2}''::int4[]","''{1,2}''::int8[]","''{1,2}''::oid[]","''{1,2}''::kinds_ints","''{1,2}''::kinds_deep","ARRAY[1,2]"}'),
	(26, 'arrays of text', '{"''{ab,NULL}''::text[]","''{ab,NULL}''::varchar(2)[]","''{ab,NULL}''::char(5)[]","''{ab,NULL}''::name[]","''{ab,NULL}''::kinds_code[]"}'),
	(27, 'arrays of numbers', '{"''{{1.0},{2}}''::numeric[]","''{{1},{2.00}}''::numeric[]"}'),
	(28, 'arrays of floats', '{"''{0,1.5}''::float4[]","''{-0,1.5}''::float8[]"}'),
	(29, 'empty arrays', '{"''{}''::int[]",ARRAY[]::int8[],"array_remove(ARRAY[1::int2], 1::int2)"}'),
	(30, 'records', '{"ROW(1,''a'')","ROW(1::int8,''a''::text)","ROW(1::int2,''a''::char(3))","(1,''a'')::kinds_pair","(1,''a'')::kinds_key","(1::oid,''a''::kinds_code)"}'),
	(31, 'records in records', '{"ROW(1,ROW(2,3.0))","ROW(1::int8,ROW(2::int2,3.00))"}'),
	(32, 'records in arrays', '{"ARRAY[(1,''a''),(2,NULL)]::kinds_pair[]","ARRAY[(1,''a''),(2,NULL)]::kinds_key[]"}'),
	(33, 'arrays in records', '{"ROW(''{1,2}''::int[],1)","ROW(''{1,2}''::int8[],1::int8)","ROW(''{1,2}''::kinds_deep,1)"}'),
	(34, 'jsonb', '{"jsonb ''{\"a\":1,\"b\":[2]}''","jsonb ''{\"b\": [2.0], \"a\": 1.00}''"}'),
	(35, 'interval', '{interval ''1 day'',interval ''24:00'',interval ''1440 min''}'),
	(36, 'months', '{interval ''1 mon'',interval ''30 days'',interval ''720:00''}'),
	(37, 'ranges', '{"int4range ''[1,3)''","int4range ''[1,2]''","int4range ''(0,2]''"}'),
	(38, 'ranges of numeric', '{"numrange ''[1,2]''","numrange ''[1.00,2.0]''"}'),
	(39, 'multiranges', '{"int4multirange ''{[1,3),[3,5)}''","int4multirange ''{[1,4]}''"}'),
	(40, 'citext', '{citext ''Abc'',citext ''ABC'',''aBC''::kinds_email}'),
	(41, 'arrays of citext', '{"''{Abc}''::citext[]","''{ABC}''::kinds_email[]"}'),
	(42, 'records of citext', '{"ROW(1,citext ''A'')","ROW(1,''a''::kinds_email)"}'),
	(43, 'bloomfilter', '{bloomfilter(10),"bloomfilter(10, 0.01)"}'),
	(44, 'pg_lsn', '{pg_lsn ''0/10'',pg_lsn ''0/00000010''}'),
	(45, 'xid8', '{xid8 ''7'',xid8 ''07''}')) v(n, what, exprs), pg_temp.agree(exprs)
ORDER BY n;
-- PostgreSQL compares -1 with an oid as unsigned numbers; the kinds do not
SELECT -1 = 4294967295::oid AS equal, bloom_hash(-1) = bloom_hash(4294967295::oid) AS same;

-- values that differ in structure only
CREATE FUNCTION pg_temp.differ(exprs text[], OUT "values" bigint, OUT digests bigint, OUT found bigint, OUT errors bigint) LANGUAGE sql AS $$
	SELECT count(DISTINCT a), count(DISTINCT pg_temp.state(format('concat(bloom_hash(%s), bloom_hash(%1$s, %L))', a, 'blake2b'))),
		count(*) FILTER (WHERE state = 'true'), count(*) FILTER (WHERE state NOT IN ('true', 'false'))
	FROM unnest(exprs) a, unnest(exprs) b, pg_temp.state(format('bloom_add(bloomfilter(10), %s) @> %s', a, b)) state
$$;
SELECT what, differ.* FROM (VALUES
	(1, 'NULL in a record', '{"ROW(NULL::int,2)","ROW(2,NULL::int)","ROW(2,2)","ROW(NULL::int,NULL::int)","ROW(0,2)"}'::text[]),
	(2, 'untyped NULL in a record', '{"ROW(NULL,2)","ROW(2,NULL)","ROW(NULL,NULL)"}'),
	(3, 'NULL in an array', '{"ARRAY[1,NULL]",ARRAY[1],"ARRAY[NULL,1]","ARRAY[NULL,NULL]::int[]","ARRAY[1,0]","''{}''::int[]"}'),
	(4, 'where a string ends', '{"ROW(''ab'',''c'')","ROW(''a'',''bc'')","ROW(''abc'','''')","ROW('''',''abc'')"}'),
	(5, 'where an element ends', '{"ARRAY[''ab'',''c'']","ARRAY[''a'',''bc'']",ARRAY[''abc''],"ARRAY[''abc'','''']"}'),
	(6, 'dimensions', '{"''{{1,2}}''::int[]","''{1,2}''::int[]","''{{1},{2}}''::int[]","''{{{1,2}}}''::int[]"}'),
	(7, 'lower bounds', '{"''{1,2}''::int[]","''[0:1]={1,2}''::int[]","''[2:3]={1,2}''::int[]","''[1:1][0:1]={{1,2}}''::int[]","''{{1,2}}''::int[]"}'),
	(8, 'nesting', '{"ROW(ROW(1,2),3)","ROW(1,ROW(2,3))","ROW(1,2,3)","ROW(ROW(1,2,3))"}'),
	(9, 'arrays in records', '{"ROW(''{1}''::int[],''{2,3}''::int[])","ROW(''{1,2}''::int[],''{3}''::int[])","ROW(''{}''::int[],''{1,2,3}''::int[])","ROW(NULL::int[],''{1,2,3}''::int[])"}'),
	(10, 'records in arrays', '{"ARRAY[(1,''a'')]::kinds_pair[]","ARRAY[(1,''a''),NULL]::kinds_pair[]","ARRAY[(1,NULL)]::kinds_pair[]","ARRAY[NULL]::kinds_pair[]"}'),
	(11, 'netmasks', '{inet ''10.0.0.0/8'',inet ''10.0.0.0/9'',inet ''10.0.0.0'',inet ''::10.0.0.0''}'),
	(12, 'zones', '{timetz ''12:00+02'',timetz ''10:00+00'',timetz ''12:00+00''}'),
	(13, 'numeric', '{1.0,10.0,0.1,-1.0,0.01,100.0,''NaN''::numeric,''inf''::numeric,''-inf''::numeric}'),
	(14, 'blanks', '{''a ''::text,''a''::text,'' a''::text,''a  ''::varchar}'),
	(15, 'labels', '{''sad''::kinds_mood,''ok''::kinds_mood}')) v(n, what, exprs), pg_temp.differ(exprs)
ORDER BY n;

-- what a filter says that it holds
SELECT value, pg_temp.state(format('(bloom_info(bloom_add(bloomfilter(10), %s))).element', value)) AS element, pg_temp.state(format('(bloom_info(bloom_agg(ARRAY[%s]))).element', value)) AS array
FROM unnest('{12.5,inet ''::1'',timetz ''12:00+02'',macaddr ''08:00:2b:01:02:03'',macaddr8 ''08:00:2b:01:02:03:04:05'',''ok''::kinds_mood,''ok''::kinds_feeling,"''a''::\"Kinds odd,(enum:\"",
	"(1,''a'')::kinds_pair","ROW(ROW(1,''a''),''{}'',''ok'')::kinds_nested",citext ''a'',interval ''1 day'',"int4range ''[1,2)''","''{}''::jsonb","ROW(1,jsonb ''1'')",bloomfilter(10)}'::text[]) WITH ORDINALITY v(value, n)
ORDER BY n;
-- (what ARRAY makes of these changed within a release)
SELECT (bloom_info(bloom_add(bloomfilter(10), '1 2'::int2vector))).element;

-- composite keys: (tenant, code), whichever way they are written
CREATE TABLE kinds_keys (dropped int, tenant int, gone text, code text);
INSERT INTO kinds_keys SELECT x, x % 10, 'x', 'code-' || x FROM generate_series(1, 100) x;
INSERT INTO kinds_keys VALUES (0, NULL, 'x', 'no tenant'), (0, 3, 'x', NULL);
ALTER TABLE kinds_keys DROP dropped, DROP gone;
INSERT INTO kinds_keys VALUES (77, 'late');
CREATE TEMP TABLE kinds_filters AS
SELECT 'row' AS made, bloom_agg(ROW(tenant, code)) AS f FROM kinds_keys
UNION ALL SELECT 'parentheses', bloom_agg((tenant, code)) FROM kinds_keys
UNION ALL SELECT 'composite', bloom_agg((tenant, code)::kinds_pair) FROM kinds_keys
UNION ALL SELECT 'domain', bloom_agg((tenant, code)::kinds_key) FROM kinds_keys
UNION ALL SELECT 'table', bloom_agg(k) FROM kinds_keys k
UNION ALL SELECT 'columns', bloom_agg(k) FROM (SELECT tenant::int8, code::varchar FROM kinds_keys) k
UNION ALL SELECT 'sized', bloom_agg((tenant, code), 103) FROM kinds_keys
UNION ALL SELECT 'added', bloom_add_all(bloomfilter(103), array_agg(k)) FROM kinds_keys k
UNION ALL SELECT 'anonymous', bloom_add_all(bloomfilter(103), array_agg(ROW(tenant, code))) FROM kinds_keys k;
SELECT made, f = (SELECT f FROM kinds_filters WHERE made = 'row') AS same, (bloom_info(f)).element FROM kinds_filters ORDER BY made;
SELECT bool_and(f @> k) AS "table", bool_and(f @> ROW(tenant, code)) AS "row", bool_and(f @> (tenant, code)) AS parentheses, bool_and(f @> (tenant, code)::kinds_pair) AS composite,
	bool_and((tenant::int2, code::varchar)::record <@ f) AS "<@", bool_and(bloom_contains(f, (tenant, code)::kinds_key)) AS domain,
	count(*) FILTER (WHERE f @> ROW(tenant, code || 'x')) AS absent
FROM kinds_keys k, (SELECT f FROM kinds_filters WHERE made = 'row') s;
SELECT f @> ROW(1, 'code-1') AS literal, f @> ROW(1, 'code-2') AS absent, ROW(1, 'code-1') <@ f AS "<@", f @> (NULL, 'no tenant') AS "null", f @> (3, NULL) AS "null",
	f @> (4, NULL) AS absent, f @> ROW(NULL, NULL) AS nulls, f @> NULL::kinds_pair AS "no row", bloom_contains(f, ROW(77, 'late')) AS contains
FROM kinds_filters WHERE made = 'row';
SELECT bloom_contains_any(f, ARRAY[ROW(1, 'x'), ROW(1, 'code-1')]) AS "any", bloom_contains_all(f, ARRAY[ROW(1, 'x'), ROW(1, 'code-1')]) AS "all",
	bloom_contains_each(f, ARRAY[ROW(1, 'x'), ROW(1, 'code-1'), NULL, ROW(NULL, 'no tenant'), ROW(3, NULL)]) AS each,
	bloom_contains_each(f, ARRAY[ROW(1, 'x'), ROW(1, 'code-1'), NULL]::kinds_pair[]) AS named,
	bloom_contains_each(f, (SELECT array_agg(k ORDER BY code) FROM kinds_keys k WHERE tenant = 3 AND code > 'code-7')) AS "table",
	bloom_contains_any(f, '{"(1,code-1)"}'::kinds_key[]) AS domain
FROM kinds_filters WHERE made = 'row';
-- a NULL alone cannot say what it is, in a nested row neither
SELECT f @> ROW(1, ROW(2, 'a')) AS found, f @> ROW(1, ROW(NULL, 'b')) AS "null", f @> ROW(1, NULL) AS "no row", f @> ROW(NULL, ROW(NULL, 'a')) AS absent
FROM (SELECT bloom_agg(ROW(a, b)) AS f FROM (VALUES (1, ROW(2, 'a'::text)), (1, ROW(NULL::int, 'b'::text)), (1, NULL)) v(a, b)) s;
SELECT bloom_add(bloom_add(bloomfilter(10), ROW(1, 'a')), ROW(NULL, 'b')) @> ROW(NULL, 'b') AS "null", (bloom_info(bloom_add_all(bloomfilter(10), ARRAY[ROW(1, 2), ROW(NULL, 3), NULL]))).element;
SELECT count(*) AS nested, bool_and(f @> ROW(x, ROW(x, ROW(x, 'x')))) AS found
FROM generate_series(1, 1000) x, (SELECT bloom_agg(ROW(x, ROW(x, ROW(x, 'x')))) AS f FROM generate_series(1, 1000) x) s;
-- PL/pgSQL's variables
DO $$
DECLARE
	r record;
	k kinds_keys;
	d kinds_key := (1, 'code-1');
	l kinds_pair[] := '{"(1,code-1)","(1,x)"}';
	f bloomfilter := (SELECT bloom_agg(t, 1000) FROM kinds_keys t);
BEGIN
	FOR r IN SELECT * FROM kinds_keys LOOP
		ASSERT f @> r;
	END LOOP;
	FOR k IN SELECT * FROM kinds_keys LOOP
		ASSERT f @> k;
		k.code := k.code || 'x';
		f := bloom_add(f, k);
		ASSERT f @> k;
	END LOOP;
	ASSERT f @> d AND bloom_contains_any(f, l) AND bloom_contains_each(f, l) = '{t,f}';
	r := ROW(1, 'code-1'::text);
	ASSERT f @> r;
	l[1].b := 'y';
	ASSERT NOT f @> l[1];
END $$;

-- kinds that do not fit, and what to do about it
CREATE TEMP TABLE kinds_held AS SELECT * FROM (VALUES
	(1, 'integer', bloom_add(bloomfilter(10), 1)),
	(2, 'text', bloom_add(bloomfilter(10), 'a')),
	(3, 'numeric', bloom_add(bloomfilter(10), 1.5)),
	(4, 'inet', bloom_add(bloomfilter(10), inet '::1')),
	(5, 'enum', bloom_add(bloomfilter(10), 'ok'::kinds_mood)),
	(6, 'odd enum', bloom_add(bloomfilter(10), 'a'::"Kinds odd,(enum:")),
	(7, 'array', bloom_add(bloomfilter(10), ARRAY[1])),
	(8, 'array of enums', bloom_add(bloomfilter(10), ARRAY['ok'::kinds_mood])),
	(9, 'array of records', bloom_add(bloomfilter(10), ARRAY[(1, 'a')]::kinds_pair[])),
	(10, 'record', bloom_add(bloomfilter(10), ROW(1, 'a'))),
	(11, 'record of enum', bloom_add(bloomfilter(10), ROW(1, 'ok'::kinds_mood))),
	(12, 'jsonb', bloom_add(bloomfilter(10), jsonb '1')),
	(13, 'citext', bloom_add(bloomfilter(10), citext 'a')),
	(14, 'range', bloom_add(bloomfilter(10), int4range '[1,2)'))) v(n, kind, f);
CREATE FUNCTION pg_temp.error_of(query text, f bloomfilter) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer boolean;
	message text;
	hint text;
BEGIN
	EXECUTE 'SELECT $1 @> ' || query INTO answer USING f;
	RETURN CASE WHEN answer THEN 'found' ELSE 'not found' END;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	RETURN format('%s: %s' || E'\n    %s', SQLSTATE, message, hint);
END $$;
\t on
\a
SELECT format('%s @> %s: %s', kind, value, pg_temp.error_of(value, f))
FROM kinds_held, unnest('{''a'',1,ARRAY[1],"ARRAY[''ok''::kinds_mood]","ROW(1,1)","(1,''a'')::kinds_pair"}'::text[]) WITH ORDINALITY v(value, m)
WHERE value <> '1' OR kind IN ('text', 'numeric', 'record', 'jsonb')
ORDER BY n, m;
\a
\t off
-- every function refuses
SELECT call, pg_temp.state(replace(call, 'F', quote_literal(f) || '::bloomfilter')) AS state
FROM kinds_held, unnest('{F @> ROW(1),ROW(1) <@ F,"bloom_contains(F, ROW(1))","bloom_add(F, ROW(1))","bloom_contains_any(F, ARRAY[ROW(1)])","bloom_contains_all(F, ARRAY[ROW(1)])",
	"bloom_contains_each(F, ARRAY[ROW(1)])","bloom_add_all(F, ARRAY[ROW(1)])","bloom_agg(ROW(1), F)","F | bloom_add(bloomfilter(10), ROW(1))","bloom_contains_each(F, ARRAY[ROW(1, ''a''), ROW(1)])"}'::text[]) WITH ORDINALITY v(call, m)
WHERE kind = 'record' ORDER BY m;
SELECT f | bloom_add(bloomfilter(10), ROW(1, 2)) FROM kinds_held WHERE kind = 'record';
SELECT bloom_union_agg(f) FROM kinds_held WHERE kind IN ('array', 'array of enums');
-- within one aggregate, too
SELECT bloom_agg(r) FROM (VALUES (ROW(1, 'a')), (ROW(1, 2))) v(r);
SELECT bloom_agg(r, 10) FROM (VALUES (ROW(1, 'a')), (ROW(1, 2))) v(r);
SELECT bloom_agg(r, 10) FROM (VALUES (ROW(1, 'a')), (ROW(1, 'a', 2))) v(r);
SELECT bloom_add_all(bloomfilter(10), ARRAY[ROW(1, 'a'), ROW(1, 2)]);
SELECT (bloom_info(bloom_agg(r))).element, bloom_agg(r) @> ROW(NULL, NULL) AS "null" FROM (VALUES (NULL), (ROW(1, 2)), (ROW(NULL, NULL)), (NULL)) v(r);
-- but each group may have its own
SELECT g, (bloom_info(bloom_agg(CASE g WHEN 0 THEN ROW(1, 2) WHEN 1 THEN ROW(1, 'a') WHEN 2 THEN ROW('x', ROW(1)) END))).element AS self,
	(bloom_info(bloom_agg(CASE g WHEN 0 THEN ROW(1, 2) WHEN 1 THEN ROW(1, 'a') WHEN 2 THEN ROW('x', ROW(1)) END, 10))).element AS sized
FROM (SELECT x % 4 AS g FROM generate_series(1, 20) x) s GROUP BY g ORDER BY g;

-- enums go by their labels
CREATE TABLE kinds_enums AS SELECT bloom_agg(m) AS f, bloom_agg(ROW(1, m)) AS r, bloom_agg(ARRAY[m]) AS a FROM (VALUES ('sad'::kinds_mood), ('häppy')) v(m);
ALTER TYPE kinds_mood ADD VALUE 'great' BEFORE 'sad';
SELECT f @> 'sad'::kinds_mood AS sad, f @> 'ok'::kinds_mood AS ok, f @> 'great'::kinds_mood AS great, f @> 'häppy'::kinds_feeling AS domain FROM kinds_enums;
SELECT bloom_add(f, 'great'::kinds_mood) @> 'great'::kinds_mood AS added FROM kinds_enums;
-- documented: what is renamed is another label
ALTER TYPE kinds_mood RENAME VALUE 'sad' TO 'unhappy';
SELECT f @> 'unhappy'::kinds_mood AS renamed FROM kinds_enums;
ALTER TYPE kinds_mood RENAME VALUE 'unhappy' TO 'sad';
-- another name or schema is another kind
ALTER TYPE kinds_mood RENAME TO "kinds Mood";
SELECT f @> 'sad'::"kinds Mood" FROM kinds_enums;
SELECT r @> ROW(1, 'sad'::"kinds Mood") FROM kinds_enums;
SELECT a @> ARRAY['sad'::"kinds Mood"] FROM kinds_enums;
SELECT (bloom_info(bloom_add(bloomfilter(10), 'sad'::"kinds Mood"))).element;
ALTER TYPE "kinds Mood" RENAME TO kinds_mood;
CREATE SCHEMA kinds_schema;
ALTER TYPE kinds_mood SET SCHEMA kinds_schema;
SELECT f @> 'sad'::kinds_schema.kinds_mood FROM kinds_enums;
ALTER TYPE kinds_schema.kinds_mood SET SCHEMA public;
DROP SCHEMA kinds_schema;
SELECT f @> 'sad'::kinds_mood AS back FROM kinds_enums;
CREATE TYPE kinds_other AS ENUM ('sad');
SELECT f @> 'sad'::kinds_other FROM kinds_enums;
SELECT f @> 'sad' FROM kinds_enums;
-- the search path does not matter
SET search_path = pg_catalog;
SELECT f OPERATOR(public.@>) 'sad'::public.kinds_mood AS found, (public.bloom_info(f)).element FROM public.kinds_enums;
RESET search_path;

-- hashed by their own function: not portable, and no key helps
SELECT value, (pg_temp.state(format('(bloom_info(bloom_agg(x))).element FROM (SELECT %s AS x) s', value))) AS element,
	pg_temp.state(format('bloom_agg(x, bloomfilter(hash => ''blake2b'', key => ''k'')) FROM (SELECT %s AS x) s', value)) AS agg,
	pg_temp.state(format('bloom_agg(x, bloomfilter(10, hash => ''blake2b'', key => ''k'')) FROM (SELECT %s AS x) s', value)) AS sized,
	pg_temp.state(format('bloom_add(bloomfilter(10, hash => ''blake2b'', key => ''k''), %s)', value)) AS add,
	pg_temp.state(format('bloom_add_all(bloomfilter(10, hash => ''blake2b'', key => ''k''), ARRAY[%s])', value)) AS all,
	pg_temp.state(format('bloom_hash(%s, ''blake2b'', ''k'')', value)) AS hash,
	pg_temp.state(format('bloom_add(bloomfilter(10, hash => ''blake2b''), %s) @> %1$s', value)) AS unkeyed
FROM unnest('{jsonb ''1'',interval ''1 day'',"int4range ''[1,2)''","nummultirange ''{[1,2)}''",citext ''a'',''a''::kinds_email,xid8 ''1'',pg_lsn ''0/1'',bloomfilter(10),tid ''(0\,1)'',
	ARRAY[jsonb ''1''],"ROW(1,jsonb ''1'')","ROW(1,ROW(2,interval ''1 day''))",ARRAY[citext ''a'']}'::text[]) WITH ORDINALITY v(value, n)
ORDER BY n;
SELECT bloom_hash(jsonb '1', 'blake2b', 'k');
SELECT bloom_agg(ROW(1, x), bloomfilter(hash => 'blake2b', key => 'k')) FROM (VALUES (jsonb '1')) v(x);
-- what is portable takes one
SELECT bool_and(pg_temp.state(format('bloom_add(bloomfilter(10, hash => ''blake2b'', key => ''k''), %s) @> %1$s', value)) = 'true') AS keyed
FROM unnest('{1.5,inet ''::1'',timetz ''12:00+02'',''ok''::kinds_mood,"(1,''a'')::kinds_pair","ROW(1,ROW(2,''a''))",ARRAY[1]}'::text[]) value;
SELECT bloom_add(bloomfilter(10), jsonb '{"a": 1}') @> jsonb '{"a": 1.0}' AS found, bloom_add(bloomfilter(10), jsonb '{"a": 1}') @> jsonb '{"a": 2}' AS absent;

-- citext: an untyped or text value that meets such a filter is one
CREATE TABLE kinds_people (email citext, name text, short varchar(20), mail kinds_email);
INSERT INTO kinds_people SELECT 'User' || x || '@Example.org', 'uSER' || x || '@example.ORG', 'USER' || x || '@example.org', 'user' || x || '@EXAMPLE.org' FROM generate_series(1, 50) x;
CREATE TABLE kinds_emails AS SELECT bloom_agg(email) AS f, bloom_agg(name) AS t FROM kinds_people;
SELECT (bloom_info(f)).element, bool_and(f @> email) AS citext, bool_and(f @> mail) AS domain, bool_and(f @> name) AS text, bool_and(f @> short) AS "varchar", bool_and(email <@ f) AS "<@", bool_and(name <@ f) AS "<@",
	bool_and(f @> 'useR7@example.org') AS literal, bool_and(f @> citext 'useR7@example.org') AS "constant", bool_or(f @> 'nobody@example.org') AS absent, bool_and(f @> ('USER7' || '@example.org')) AS expression
FROM kinds_emails, kinds_people GROUP BY 1;
SELECT bool_and(bloom_contains_any(f, ARRAY[email])) AS "any", bool_and(bloom_contains_all(f, ARRAY[name])) AS "all", bool_and(bloom_contains_each(f, ARRAY[short]) = '{t}') AS each,
	bool_and(bloom_contains_any(f, '{user7@example.org}'::citext[])) AS literal
FROM kinds_emails, kinds_people;
-- constants, too, are citext
SELECT (bloom_info(bloom_add(bloomfilter(10), citext 'A'))).element, bloom_add(bloomfilter(10), citext 'A') @> citext 'a' AS found, bloom_hash(citext 'A') = bloom_hash(citext 'a') AS hash,
	bloom_hash(citext 'A') = bloom_hash('A') AS text, bloom_hash(email) = bloom_hash(mail) AS columns
FROM kinds_people LIMIT 1;
SELECT bloom_add(f, 'New@example.org') @> citext 'new@EXAMPLE.org' AS literal, bloom_add(f, name) @> email AS text, bloom_add_all(f, ARRAY[name || 'x']) @> (email || 'X') AS "all" FROM kinds_emails, kinds_people LIMIT 1;
PREPARE kinds_text(text) AS SELECT f @> $1 AS text FROM kinds_emails;
PREPARE kinds_untyped AS SELECT f @> $1 AS untyped FROM kinds_emails;
PREPARE kinds_citext(citext) AS SELECT f @> $1 AS citext FROM kinds_emails;
PREPARE kinds_varchar(varchar) AS SELECT f @> $1 AS "varchar" FROM kinds_emails;
EXECUTE kinds_text('USER1@example.org'); EXECUTE kinds_untyped('USER1@example.org'); EXECUTE kinds_citext('USER1@example.org'); EXECUTE kinds_varchar('USER1@example.org');
SET plan_cache_mode = force_generic_plan;
EXECUTE kinds_text('USER1@example.org'); EXECUTE kinds_untyped('USER1@example.org'); EXECUTE kinds_citext('USER1@example.org'); EXECUTE kinds_varchar('USER1@example.org');
RESET plan_cache_mode;
-- to a filter of text, citext is another kind: its equality is another
SELECT t @> email FROM kinds_emails, kinds_people LIMIT 1;
SELECT t @> email::text AS "by its letters", t @> name AS text FROM kinds_emails, kinds_people LIMIT 1;
SELECT f @> ARRAY['a'] FROM (SELECT bloom_agg(ARRAY[email]) AS f FROM kinds_people) s;
SELECT f @> ROW(1, 'a') FROM (SELECT bloom_agg(ROW(1, email)) AS f FROM kinds_people) s;
SELECT f @> name::char(20) FROM kinds_emails, kinds_people LIMIT 1;
SELECT bool_and(f @> ARRAY[mail]) AS array, bool_and(g @> ROW(1, upper(email)::citext)) AS record
FROM (SELECT bloom_agg(ARRAY[email]) AS f, bloom_agg(ROW(1, email)) AS g FROM kinds_people) s, kinds_people;

-- a call site sees filters of one kind after those of another
CREATE TEMP TABLE kinds_mixed AS SELECT * FROM (VALUES
	(1, bloom_add(bloomfilter(10), 'Aa'), 'text'), (2, bloom_add(bloomfilter(10), citext 'Aa'), 'citext'), (3, bloomfilter(10), 'empty'), (4, bloom_add(bloomfilter(10), 'Bb'), 'text'),
	(5, bloom_add(bloomfilter(20), citext 'aA'), 'citext'), (6, bloomfilter(), 'unsized'), (7, bloom_add(bloomfilter(10, layout => 'standard'), 'Aa'), 'text')) v(n, f, kind);
SELECT n, kind, f @> v AS "@>", v <@ f AS "<@", f @> v::varchar AS "varchar", bloom_contains_any(f, ARRAY[v]) AS "any", f @> 'AA' AS literal
FROM kinds_mixed, (SELECT 'AA'::text AS v OFFSET 0) s ORDER BY n;
SELECT n, kind, (bloom_info(bloom_add(f, v))).element AS add, (bloom_info(bloom_add_all(f, ARRAY[v]))).element AS all
FROM (SELECT * FROM kinds_mixed WHERE kind <> 'unsized' ORDER BY n OFFSET 0) m, (SELECT 'AA'::text AS v OFFSET 0) s;
SELECT n, kind, (bloom_info(bloom_agg(v, f))).element AS agg
FROM (SELECT * FROM kinds_mixed ORDER BY n OFFSET 0) m, (SELECT 'AA'::text AS v OFFSET 0) s GROUP BY n, kind ORDER BY n;
SELECT g, (bloom_info(a)).element, a @> 'aa' AS aa FROM (SELECT n % 2 AS g, bloom_agg(v, f) AS a FROM (SELECT * FROM kinds_mixed WHERE n <= 3 AND n <> 2 ORDER BY n OFFSET 0) m, (SELECT 'AA'::text AS v OFFSET 0) s GROUP BY 1) s ORDER BY g;
-- records
CREATE TEMP TABLE kinds_rows AS SELECT * FROM (VALUES
	(1, bloom_add(bloomfilter(10), ROW(1, 'a'))), (2, bloom_add(bloomfilter(10), ROW(1, 2))), (3, bloomfilter(10)), (4, bloom_add(bloomfilter(10), ROW(1, ROW('x', NULL::int)))),
	(5, bloom_add(bloomfilter(10), ROW(1, 'a')))) v(n, f);
SELECT n, f @> r AS "@>", r <@ f AS "<@", bloom_contains_each(f, ARRAY[r, NULL, r]) AS each, bloom_add(f, r) @> r AS added
FROM (SELECT n, f, CASE n WHEN 1 THEN ROW(1, 'a') WHEN 2 THEN ROW(1, 2) WHEN 3 THEN ROW(true) WHEN 4 THEN ROW(1, ROW('x', NULL)) ELSE ROW(1, NULL) END AS r FROM kinds_rows ORDER BY n OFFSET 0) s;
-- arrays that say themselves what they are made of
CREATE TEMP TABLE kinds_stats AS SELECT x % 2 AS a_int, 'abc' || x % 2 AS b_text, (x % 2)::numeric AS c_numeric, x % 2 = 0 AS d_bool, (x % 2)::int8 AS e_int8 FROM generate_series(1, 100) x;
ANALYZE kinds_stats;
CREATE FUNCTION pg_temp.kinds_stats(attname name) RETURNS SETOF pg_stats LANGUAGE sql AS $$ SELECT * FROM pg_stats s WHERE tablename = 'kinds_stats' AND s.attname = $1 $$;
SELECT s.attname, bloom_contains_each(bloomfilter(10), most_common_vals) AS each, (bloom_info(bloom_add_all(bloomfilter(10), most_common_vals))).element
FROM (SELECT s.* FROM unnest('{a_int,b_text,c_numeric,d_bool,e_int8,b_text,a_int}'::name[]) WITH ORDINALITY a(attname, n), pg_temp.kinds_stats(attname) s ORDER BY n OFFSET 0) s;

-- a composite type that is altered, and plans that outlive it
CREATE TYPE kinds_changing AS (a int, b text);
CREATE FUNCTION kinds_probe(f bloomfilter, v kinds_changing) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN f @> v;
EXCEPTION WHEN datatype_mismatch THEN
	RETURN SQLERRM;
END $$;
CREATE FUNCTION kinds_probe_array(f bloomfilter, v kinds_changing[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN f @> v;
EXCEPTION WHEN datatype_mismatch THEN
	RETURN SQLERRM;
END $$;
CREATE TEMP TABLE kinds_change AS SELECT bloom_add(bloomfilter(10), (1, 'a')::kinds_changing) AS f, bloom_add(bloomfilter(10), ARRAY[(1, 'a')::kinds_changing]) AS a;
PREPARE kinds_probe(text) AS SELECT f @> $1::kinds_changing AS found FROM kinds_change;
SET plan_cache_mode = force_generic_plan;
SELECT kinds_probe(f, '(1,a)'), kinds_probe_array(a, '{"(1,a)"}') FROM kinds_change;
EXECUTE kinds_probe('(1,a)');
ALTER TYPE kinds_changing ADD ATTRIBUTE c int;
SELECT kinds_probe(f, '(1,a,)'), kinds_probe_array(a, '{"(1,a,)"}') FROM kinds_change;
EXECUTE kinds_probe('(1,a,)');
ALTER TYPE kinds_changing DROP ATTRIBUTE c;
SELECT kinds_probe(f, '(1,a)'), kinds_probe_array(a, '{"(1,a)"}') FROM kinds_change;
EXECUTE kinds_probe('(1,a)');
ALTER TYPE kinds_changing DROP ATTRIBUTE b, ADD ATTRIBUTE b text;
SELECT kinds_probe(f, '(1,a)'), kinds_probe(f, '(1,)') FROM kinds_change;
EXECUTE kinds_probe('(1,a)');
-- in one transaction, where a PL/pgSQL expression keeps its state
BEGIN;
SELECT kinds_probe(f, '(1,a)'), kinds_probe_array(a, '{"(1,a)"}') FROM kinds_change;
ALTER TYPE kinds_changing ADD ATTRIBUTE c int;
SELECT kinds_probe(f, '(1,a,)'), kinds_probe_array(a, '{"(1,a,)"}') FROM kinds_change;
ALTER TYPE kinds_changing DROP ATTRIBUTE c;
SELECT kinds_probe(f, '(1,a)'), kinds_probe_array(a, '{"(1,a)"}') FROM kinds_change;
ALTER TYPE kinds_changing ALTER ATTRIBUTE a TYPE numeric;
SELECT kinds_probe(f, '(1,a)'), kinds_probe_array(a, '{"(1,a)"}') FROM kinds_change;
ROLLBACK;
SELECT kinds_probe(f, '(1,a)'), kinds_probe_array(a, '{"(1,a)"}') FROM kinds_change;
RESET plan_cache_mode;

-- what cannot be an element: no hash function, or no end of columns
SELECT bloom_hash('(0,0)'::point);
SELECT bloom_agg(ARRAY['(0,0)'::point]);
SELECT bloom_agg(ROW(1, ROW(2, '(1,2)'::point)));
SELECT bloom_add(bloomfilter(10), '1'::json);
SELECT bloomfilter(10) @> ARRAY['1'::json];
SELECT bloom_contains_any(bloomfilter(10), ARRAY['1'::json]);
SELECT bloom_add_all(bloomfilter(10), ARRAY['(0,0)'::point]);
CREATE TYPE kinds_boxes AS (a int, b box);
SELECT bloom_agg(NULL::kinds_boxes);
SELECT bloomfilter(10) @> ROW(1, NULL)::kinds_boxes;
SELECT bloom_agg(ARRAY[ROW(1, 2)]);
SELECT bloom_hash(ROW(1, ARRAY[ROW(1, 2)]));
CREATE FUNCTION pg_temp.wide(columns int) RETURNS text LANGUAGE sql RETURN 'ROW(' || (SELECT string_agg('1', ',') FROM generate_series(1, columns)) || ')';
SELECT columns, pg_temp.state(format('octet_length((bloom_info(bloom_add(bloomfilter(10), %s))).element)', pg_temp.wide(columns))) AS add,
	pg_temp.state(format('bloom_agg(x) @> x FROM (SELECT %s) s(x) GROUP BY x', pg_temp.wide(columns))) AS agg, pg_temp.state(format('bloomfilter(10) @> %s', pg_temp.wide(columns))) AS probe
FROM unnest('{1,63,64,65,1000}'::int[]) columns;
SELECT pg_temp.wide(65) AS wide \gset
SELECT bloom_add(bloomfilter(10), :wide);
-- long names, in characters of many bytes
CREATE TYPE "ééééééééééééééééééééééééééééééé" AS ENUM ('ä');
SELECT bloom_add(bloomfilter(10), x) @> x AS enum, bloom_agg(ARRAY[x]) @> ARRAY[x] AS array, bloom_agg(ROW(x, x, x, x, x, x)) @> ROW(x, x, x, x, x, x) AS record, (bloom_info(bloom_agg(ARRAY[x]))).element
FROM (VALUES ('ä'::"ééééééééééééééééééééééééééééééé")) v(x) GROUP BY x;

DROP TABLE kinds_keys, kinds_enums, kinds_people, kinds_emails;
DROP FUNCTION kinds_probe, kinds_probe_array;
DROP TYPE kinds_changing, kinds_boxes, kinds_other, "ééééééééééééééééééééééééééééééé", "Kinds odd,(enum:", kinds_nested;
DROP DOMAIN kinds_deep, kinds_ints, kinds_feeling, kinds_key, kinds_email, kinds_code;
DROP TYPE kinds_mood, kinds_pair;
DROP EXTENSION citext;
