-- bloom_add in PL/pgSQL changes the variable's filter in place, and never
-- anybody else's value.
CREATE FUNCTION pg_temp.has(f bloomfilter) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(x::text, ' ' ORDER BY x) FROM generate_series(1, 9) x WHERE f @> x
$$;

-- the same bytes as an aggregate's, in all layouts (small filters, and cuckoo, are copied)
DO $$
DECLARE
	layout text;
	f bloomfilter;
	g bloomfilter;
	n float8;
BEGIN
	FOREACH layout IN ARRAY ARRAY['blocked', 'standard', 'counting', 'cuckoo'] LOOP
		FOREACH n IN ARRAY ARRAY[100, 20000]::float8[] LOOP
			f := bloomfilter(n, 0.0001, layout => layout);
			FOR i IN 1..n LOOP
				f := bloom_add(f, i);
			END LOOP;
			SELECT bloom_agg(i::int, bloomfilter(n, 0.0001, layout => layout)) INTO g FROM generate_series(1, n::int) i;
			RAISE NOTICE '% %: % elements, as the aggregate: %', layout, n, round(bloom_cardinality(f) / n), f = g;
		END LOOP;
	END LOOP;
END $$;

-- other variables, array elements, records, columns, exceptions
DO $$
DECLARE
	f bloomfilter := bloomfilter(10000);
	g bloomfilter;
	h bloomfilter;
	a bloomfilter[];
	r record;
BEGIN
	f := bloom_add(f, 1);
	g := f;
	f := bloom_add(f, 2);
	h := f;
	a := ARRAY[f, g];
	SELECT f AS f, g AS g INTO r;
	BEGIN
		f := bloom_add(f, 3);
		g := bloom_add(g, 4);
		RAISE EXCEPTION 'undone';
	EXCEPTION WHEN raise_exception THEN
		NULL;					-- variables keep their values
	END;
	f := bloom_add(bloom_add(f, 5), 6);
	a[1] := bloom_add(a[1], 7);
	r.f := bloom_add(r.f, 8);
	h := bloom_add(h, NULL);
	RAISE NOTICE 'f %; g %; h %; a % and %; r % and %', pg_temp.has(f), pg_temp.has(g), pg_temp.has(h), pg_temp.has(a[1]), pg_temp.has(a[2]), pg_temp.has(r.f), pg_temp.has(r.g);
END $$;

-- arguments
CREATE FUNCTION pg_temp.add_two(f bloomfilter, x int, INOUT g bloomfilter) LANGUAGE plpgsql AS $$
BEGIN
	f := bloom_add(f, x);
	g := bloom_add(g, x);
	f := bloom_add(f, x + 1);
	g := bloom_add(g, x + 1);
	RAISE NOTICE 'inside: f %; g %', pg_temp.has(f), pg_temp.has(g);
END $$;
DO $$
DECLARE
	f bloomfilter := bloom_add(bloomfilter(10000), 1);
	g bloomfilter;
BEGIN
	f := bloom_add(f, 2);
	g := pg_temp.add_two(f, 5, f);
	RAISE NOTICE 'outside: f %; g %', pg_temp.has(f), pg_temp.has(g);
	-- an old value that is kept while the new one moves on, far
	g := f;
	FOR i IN 100..3000 LOOP
		f := bloom_add(f, i);
	END LOOP;
	RAISE NOTICE 'g still %, f has all: %', pg_temp.has(g), (SELECT bool_and(f @> i) FROM generate_series(100, 3000) i);
END $$;

-- a handle that is kept while others move on: a cursor's row, a function's argument
CREATE FUNCTION pg_temp.kept(f bloomfilter) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	g bloomfilter := f;
BEGIN
	FOR i IN 3..5 LOOP
		g := bloom_add(g, i);
		RETURN NEXT pg_temp.has(f) || ' | ' || pg_temp.has(g);
	END LOOP;
END $$;
SELECT pg_temp.kept(bloom_add(bloom_add(bloomfilter(10000), 1), 2));
SELECT pg_temp.has(a), pg_temp.has(bloom_add(a, 3)), pg_temp.has(a) FROM (SELECT bloom_add(bloomfilter(10000), 1) AS a OFFSET 0) s;

-- tables, procedures that commit, and rollback
CREATE TABLE loop_t (id int, f bloomfilter);
INSERT INTO loop_t VALUES (1, bloomfilter(10000)), (2, bloom_add(bloomfilter(10000), 9));
UPDATE loop_t SET f = bloom_add(f, id);
DO $$
DECLARE
	f bloomfilter;
BEGIN
	SELECT t.f INTO f FROM loop_t t WHERE id = 1;
	FOR i IN 2..4 LOOP
		f := bloom_add(f, i);
		IF i = 3 THEN
			ROLLBACK;
		ELSE
			UPDATE loop_t SET id = id WHERE false;
			COMMIT;
		END IF;
	END LOOP;
	RAISE NOTICE 'f %', pg_temp.has(f);
END $$;
SELECT id, pg_temp.has(f), pg_column_size(f) > 10000 AS large FROM loop_t ORDER BY id;

-- what a probe in the loop sees, and errors
DO $$
DECLARE
	f bloomfilter := bloomfilter(10000);
	seen int := 0;
BEGIN
	FOR i IN 1..4000 LOOP
		IF f @> (i % 1000) THEN
			seen := seen + 1;
		ELSE
			f := bloom_add(f, i % 1000);
		END IF;
	END LOOP;
	RAISE NOTICE 'seen % of 3000', seen;
	BEGIN
		f := bloom_add(f, 'text');
	EXCEPTION WHEN datatype_mismatch THEN
		RAISE NOTICE '%', SQLERRM;
	END;
	RAISE NOTICE '% %', f @> 5, (bloom_info(f)).element;
END $$;
-- one warning, and nothing left behind
DO $$
DECLARE
	f bloomfilter := bloomfilter(1000);
BEGIN
	FOR i IN 1..5000 LOOP
		f := bloom_add(f, i);
	END LOOP;
END $$;
SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'bloomfilter%';
-- large results of aggregates are handed on in the same way
SELECT bloom_cardinality(f) = bloom_cardinality(f::text::bloomfilter) AS same, f @> 5 AS yes, f @> -5 AS no
FROM (SELECT bloom_agg(i, 2000000) AS f FROM generate_series(1, 1000) i) s;
SELECT g, s.f = u.f AS same FROM (SELECT i % 2 AS g, bloom_agg(i, 2000000) AS f FROM generate_series(1, 10) i GROUP BY 1) s
JOIN (SELECT i % 2 AS g, bloom_union_agg(bloom_add(bloomfilter(2000000), i)) AS f FROM generate_series(1, 10) i GROUP BY 1) u USING (g) ORDER BY 1;
DROP TABLE loop_t;
