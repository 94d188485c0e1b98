-- Every type of the server that has a hash function, and its array: one value
-- is added and found; a value of another kind is refused.
CREATE TYPE kindtypes_enum AS ENUM ('a', 'b');
CREATE TYPE kindtypes_range AS RANGE (SUBTYPE = float8);
CREATE TYPE kindtypes_unhashable AS RANGE (SUBTYPE = money);

-- can the server hash it?  By itself, or as what it is stored like
CREATE FUNCTION pg_temp.hashable(type oid) RETURNS boolean LANGUAGE sql AS $$
	SELECT CASE
		WHEN typsubscript = 'array_subscript_handler'::regproc THEN pg_temp.hashable(typelem)
		WHEN typtype = 'e' THEN true
		WHEN typtype IN ('r', 'm') THEN pg_temp.hashable((SELECT rngsubtype FROM pg_range WHERE type IN (rngtypid, rngmultitypid)))
		ELSE EXISTS (SELECT FROM pg_opclass c WHERE c.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'hash') AND c.opcdefault
				AND (c.opcintype = t.oid OR EXISTS (SELECT FROM pg_cast WHERE castsource = t.oid AND casttarget = c.opcintype AND castmethod = 'b' AND castcontext = 'i'))
				AND EXISTS (SELECT FROM pg_amproc WHERE amprocfamily = c.opcfamily AND amproclefttype = c.opcintype AND amprocnum = 2))
		END
	FROM pg_type t WHERE t.oid = type
$$;
SELECT type, pg_temp.hashable(type) FROM unnest('{int4,varchar,"\"char\"",cidr,regclass,int4range,kindtypes_range,kindtypes_enum,int4multirange,_int4,_point,point,json,xml,money,kindtypes_unhashable}'::regtype[]) type;

-- the first of many literals that a type takes
CREATE FUNCTION pg_temp.sample(type regtype) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	literal text;
BEGIN
	FOREACH literal IN ARRAY ARRAY['1', 'a', 't', '2026-01-01', '12:00', '1 day', '10.0.0.0/8', '08:00:2b:01:02:03', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '(0,1)', '0/1', '1:1:', '1 2', '[1,2)',
		'[2026-01-01,2026-01-02)', '{[1,2)}', '{[2026-01-01,2026-01-02)}', '=r/' || quote_ident(current_user), 'pg_class', 'int4', 'now()', 'now', '+(int4,int4)', 'pg_catalog', 'C', 'simple', current_user::text, bloomfilter(10)::text,
		'<a/>', '(1,1),(2,2)', '[(1,1),(2,2)]', '((1,1),2)', '{1,2,3}', '{}']
	LOOP
		BEGIN
			EXECUTE format('SELECT %L::%s', literal, type);
			RETURN literal;
		EXCEPTION WHEN OTHERS THEN
		END;
	END LOOP;
	RETURN NULL;
END $$;
CREATE TEMP TABLE types AS
SELECT t.oid::regtype AS type, hashable, literal, typelem <> 0 AND typsubscript = 'array_subscript_handler'::regproc AS is_array
FROM pg_type t, pg_temp.hashable(t.oid) hashable,
	LATERAL (SELECT CASE WHEN typcategory = 'A' AND typlen = -1 AND typname LIKE '\_%' THEN format('{%s}', '"' || replace(replace(pg_temp.sample(typelem::regtype), '\', '\\'), '"', '\"') || '"')
		ELSE pg_temp.sample(t.oid::regtype) END AS literal) l
WHERE typtype IN ('b', 'e', 'r', 'm') AND typisdefined AND typnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace)
	AND NOT EXISTS (SELECT FROM pg_type e WHERE e.oid = t.typelem AND e.typtype = 'c')
	-- these have no input
	AND typname !~ '^_?pg_(ndistinct|dependencies|mcv_list|brin_\w+|node_tree|ddl_command)$';
SELECT type FROM types WHERE literal IS NULL AND hashable;
SELECT count(*) FILTER (WHERE hashable AND NOT is_array) > 50 AS types, count(*) FILTER (WHERE hashable AND is_array) > 50 AS arrays, count(*) FILTER (WHERE NOT hashable) > 10 AS unhashable FROM types;

CREATE FUNCTION pg_temp.state(query text, f bloomfilter = NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	EXECUTE 'SELECT ' || query INTO answer USING f;
	RETURN coalesce(answer, 'NULL');
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
-- built in every way, found in every way
CREATE TEMP TABLE filters AS
SELECT type, is_array, value, s.f::bloomfilter, (bloom_info(s.f::bloomfilter)).element
FROM (SELECT type, is_array, format('%L::%s', literal, type) AS value, pg_temp.state(format('bloom_add(bloomfilter(10), %L::%s)', literal, type)) AS f FROM types WHERE hashable OFFSET 0) s
WHERE s.f !~ '^[0-9A-Z]{5} ';
SELECT type, pg_temp.state(format('bloom_add(bloomfilter(10), %L::%s)', literal, type)) FROM types t WHERE hashable AND NOT EXISTS (SELECT FROM filters f WHERE f.type = t.type);
SELECT type, call, state
FROM filters, unnest('{$1 @> x,x <@ $1,"bloom_contains($1, x)","bloom_contains_any($1, ARRAY[x])","bloom_contains_all($1, ARRAY[x])","bloom_contains_each($1, ARRAY[x]) = ''{t}''","bloom_add($1, x) = $1","bloom_add_all($1, ARRAY[x]) = $1",
	bloom_agg(x) @> x,"bloom_agg(x, 10) = $1","bloom_agg(x, $1) = $1","bloom_agg(x, bloomfilter(layout => ''standard'', hash => ''blake2b'')) @> x","bloom_hash(x) = bloom_hash((ARRAY[x])[1])","bloom_hash(x, ''blake2b'') IS NOT NULL",
	"bloom_agg(ROW(1, x)) @> ROW(1, x)",bloom_agg(ARRAY[x]) @> ARRAY[x],"bloom_union_agg($1) @> x"}'::text[]) call,
	pg_temp.state(format('%s FROM (SELECT %s AS x OFFSET 0) s GROUP BY x', call, value), f) state
WHERE state <> 'true' AND NOT (is_array AND call LIKE '%ARRAY[x]%');
-- the literal alone, where it is a constant to the planner
SELECT type, state FROM filters, pg_temp.state(format('$1 @> %s', value), f) state WHERE state <> 'true';
-- of every pair, only the same kind is answered
SELECT a.type, b.type, state
FROM filters a, filters b, pg_temp.state(format('$1 @> %s', b.value), a.f) state
WHERE NOT a.is_array AND NOT b.is_array AND CASE WHEN a.element = b.element THEN state NOT IN ('true', 'false') ELSE state NOT LIKE '42804 filter holds % elements, not %' END;
SELECT a.type, b.type, state
FROM filters a, filters b, pg_temp.state(format('$1 @> %s', b.value), a.f) state
WHERE a.is_array <> b.is_array AND state NOT LIKE '42804 filter holds % elements, not %';
-- what has no hash function is refused
SELECT type, state FROM types, pg_temp.state(format('bloom_add(bloomfilter(10), %L::%s)', literal, type)) state
WHERE NOT hashable AND literal IS NOT NULL AND state NOT LIKE '42883 a filter cannot hold elements of type %';
SELECT type, pg_temp.state(format('bloom_agg(%L::%s)', literal, type)) FROM types WHERE type IN ('money'::regtype, 'point'::regtype, '_json'::regtype, 'kindtypes_unhashable'::regtype) ORDER BY type::text COLLATE "C";
-- kinds with bytes of their own are portable, all others say that they are not
SELECT string_agg(type::text, ' ' ORDER BY type::text COLLATE "C") AS portable FROM filters WHERE NOT is_array AND element NOT LIKE '%(not portable)' AND type::text IN
	('"char"', 'bigint', 'boolean', 'bytea', 'character', 'character varying', 'cidr', 'date', 'double precision', 'inet', 'int2vector', 'integer', 'kindtypes_enum', 'macaddr', 'macaddr8', 'name', 'numeric', 'oid', 'oidvector', 'real', 'regclass',
	'regcollation', 'regconfig', 'regdictionary', 'regnamespace', 'regoper', 'regoperator', 'regproc', 'regprocedure', 'regrole', 'regtype', 'smallint', 'text', 'time with time zone', 'time without time zone', 'timestamp with time zone',
	'timestamp without time zone', 'uuid');
SELECT count(*) FILTER (WHERE element NOT LIKE '%(not portable)') AS portable FROM filters WHERE type::text ~ '^(interval|jsonb|.*range|tid|xid|xid8|cid|pg_lsn|aclitem|bloomfilter)(\[\])?$';

DROP TYPE kindtypes_enum, kindtypes_range, kindtypes_unhashable;
