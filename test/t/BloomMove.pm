# What the tests that move filters share: filters of every layout and hash, of
# several kinds, and what they answer.
package BloomMove;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
our @EXPORT_OK = qw(set_up fingerprint answers);

# Filters in a table, a view and a materialized view that use the aggregates, a
# table whose filters are compressed, a trigger that keeps one up to date, and a
# live filter.
sub set_up
{
	my ($node, $db) = @_;

	$node->safe_psql($db, <<'EOS');
SET client_min_messages = error;
CREATE EXTENSION bloomfilter;
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE keys AS SELECT i, 'SP-' || i AS code FROM generate_series(1, 3000) i;
CREATE TABLE filters (name text PRIMARY KEY, filter bloomfilter NOT NULL);
INSERT INTO filters
SELECT layout || ' ' || hash || ' ' || expansion,
	(SELECT bloom_agg(code, bloomfilter(CASE WHEN expansion > 0 THEN 100 ELSE 4000 END, 0.005,
		layout, hash, CASE WHEN hash = 'blake2b' THEN 'secret'::bytea END, expansion)) FROM keys)
FROM unnest('{blocked,standard,counting,cuckoo}'::text[]) layout,
	unnest('{xxh3,blake2b}'::text[]) hash, unnest('{0,2}'::int[]) expansion
WHERE NOT (layout = 'counting' AND expansion > 0);
INSERT INTO filters VALUES
	('unsized', bloomfilter()), ('empty', bloomfilter(1000)),
	('saturated', (SELECT bloom_agg(i, 1) FROM keys)),
	('integers', (SELECT bloom_agg(i) FROM keys)),
	('enum', bloom_add(bloomfilter(10), 'sad'::mood)),
	('pairs', (SELECT bloom_agg(ROW(i, code), 3000) FROM keys)),
	('hashed', bloom_add(bloomfilter(10), '{"a": 1}'::jsonb)),
	('live', (SELECT bloom_agg(code, 20000) FROM keys));
CREATE TABLE packed (name text PRIMARY KEY, filter bloomfilter);
ALTER TABLE packed ALTER filter SET STORAGE EXTENDED;
INSERT INTO packed SELECT name, bloom_add(bloom_clear(filter), 'SP-1'::text) FROM filters
	WHERE name LIKE 'standard%0' OR name LIKE 'blocked%0';
CREATE VIEW by_last AS SELECT right(code, 1) AS last, bloom_agg(code, 1000, 0.001) AS filter
	FROM keys GROUP BY 1;
CREATE MATERIALIZED VIEW by_first AS SELECT substr(code, 4, 1) AS first,
	bloom_agg(code, bloomfilter(2000, layout => 'cuckoo')) AS filter FROM keys GROUP BY 1;
CREATE MATERIALIZED VIEW everything AS SELECT bloom_union_agg(filter) AS filter,
	bloom_intersect_agg(filter) AS common FROM filters WHERE name LIKE 'blocked xxh3 0';
CREATE TRIGGER keys_maintain AFTER INSERT ON keys REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('filters', 'live', 'code');
CREATE INDEX ON filters USING hash (filter);
CREATE INDEX keys_live ON keys USING bloomfilter (code);
EOS
	return;
}

# Each filter's bytes: those of a view are built when it is read.
sub fingerprint
{
	my ($node, $db) = @_;

	return $node->safe_psql($db, <<'EOS');
SELECT 'filters', name, md5(filter::bytea) FROM filters UNION ALL
SELECT 'packed', name, md5(filter::bytea) FROM packed UNION ALL
SELECT 'by_last', last, md5(filter::bytea) FROM by_last UNION ALL
SELECT 'by_first', first, md5(filter::bytea) FROM by_first UNION ALL
SELECT 'everything', '', md5(filter::bytea || common::bytea) FROM everything
ORDER BY 1, 2
EOS
}

# Each text filter's answers to 6,000 probes, half of them of its elements, and
# those of the other kinds.
sub answers
{
	my ($node, $db) = @_;

	return $node->safe_psql($db, <<'EOS');
SELECT name, (bloom_info(filter)).element, count(*) FILTER (WHERE yes AND i <= 3000),
	md5(string_agg(yes::int::text, '' ORDER BY i))
FROM (SELECT name, filter, i, filter @> ('SP-' || i) AS yes
	FROM filters, generate_series(1, 6000) i
	WHERE name ~ '^(blocked|standard|counting|cuckoo|live|empty|unsized)' OFFSET 0) s
GROUP BY 1, 2 UNION ALL
SELECT 'integers', '', count(*), '' FROM generate_series(1, 6000) i
WHERE (SELECT filter FROM filters WHERE name = 'integers') @> i UNION ALL
SELECT 'enum', '', (filter @> 'sad'::mood)::int + 2 * (filter @> 'ok'::mood)::int, ''
FROM filters WHERE name = 'enum' UNION ALL
SELECT 'hashed', '', (filter @> '{"a": 1}'::jsonb)::int, '' FROM filters WHERE name = 'hashed' UNION ALL
SELECT 'index', bloom_index_check('keys_live', true)::text, count(*), '' FROM generate_series(1, 3000) i
WHERE bloom_index_contains('keys_live', 'SP-' || i) UNION ALL
SELECT 'pairs', '', count(*), '' FROM keys WHERE (SELECT filter FROM filters WHERE name = 'pairs') @> ROW(i, code)
ORDER BY 1
EOS
}

1;
