-- The table of codes, the filter of it, and what keeps the two together.
-- Settings: demo.codes, demo.key (hexadecimal)

CREATE EXTENSION IF NOT EXISTS bloomfilter;

CREATE TABLE codes (code text NOT NULL, created timestamptz NOT NULL DEFAULT now());

-- 'GG-' and ten digits; the multiplier makes them all different, and load.py
-- knows without a query which of them there are
INSERT INTO codes (code)
SELECT 'GG-' || lpad((i * 7654321987 % 10000000000)::text, 10, '0')
FROM generate_series(1, current_setting('demo.codes')::bigint) i;

ALTER TABLE codes ADD PRIMARY KEY (code);
VACUUM ANALYZE codes;

-- BLAKE2b with a key: who asks for codes is not to find those that the filter
-- lets pass.  Yours is secret and random, and so is the column that holds it.
CREATE TABLE filters (name text PRIMARY KEY, filter bloomfilter NOT NULL);

INSERT INTO filters
SELECT 'codes', bloom_agg(code, bloomfilter(current_setting('demo.codes')::float8, 0.01,
											hash => 'blake2b',
											key => decode(current_setting('demo.key'), 'hex')))
FROM codes;

-- The filter has a code when the transaction commits that inserts it (where
-- codes change, give UPDATE two triggers like these) ...
CREATE TRIGGER codes_filter AFTER INSERT ON codes
	REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
	EXECUTE FUNCTION bloom_maintain('filters', 'codes', 'code');

-- ... and just after, those who listen hear of it
CREATE FUNCTION announce_codes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT count(*) FROM new_rows) <= 100 THEN
		PERFORM pg_notify('codes', 'add ' || code) FROM new_rows;
	ELSE
		PERFORM pg_notify('codes', 'reload');
	END IF;
	RETURN NULL;
END
$$;

CREATE TRIGGER codes_notify AFTER INSERT ON codes
	REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
	EXECUTE FUNCTION announce_codes();
