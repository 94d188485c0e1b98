/* bloomfilter--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION bloomfilter" to load this file. \quit

-- ---------------------------------------------------------------------------
-- The type
-- ---------------------------------------------------------------------------

CREATE TYPE bloomfilter;

CREATE FUNCTION bloomfilter_in(cstring) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_in'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloomfilter_out(bloomfilter) RETURNS cstring
AS 'MODULE_PATHNAME', 'bf_sql_out'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloomfilter_recv(internal) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_recv'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloomfilter_send(bloomfilter) RETURNS bytea
AS 'MODULE_PATHNAME', 'bf_sql_send'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- Large values sit out of line, uncompressed: a probe can read one slice.
CREATE TYPE bloomfilter (
	INPUT = bloomfilter_in,
	OUTPUT = bloomfilter_out,
	RECEIVE = bloomfilter_recv,
	SEND = bloomfilter_send,
	INTERNALLENGTH = VARIABLE,
	STORAGE = external,
	ALIGNMENT = double
);

COMMENT ON TYPE bloomfilter IS 'set of elements in a few bits each: "no" is exact, "yes" means maybe';
COMMENT ON FUNCTION bloomfilter_in(cstring) IS 'I/O';
COMMENT ON FUNCTION bloomfilter_out(bloomfilter) IS 'I/O';
COMMENT ON FUNCTION bloomfilter_recv(internal) IS 'I/O';
COMMENT ON FUNCTION bloomfilter_send(bloomfilter) IS 'I/O';

CREATE FUNCTION bloomfilter_to_bytea(filter bloomfilter) RETURNS bytea
AS 'MODULE_PATHNAME', 'bf_sql_to_bytea'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloomfilter_from_bytea(bytes bytea) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_from_bytea'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloomfilter_to_bytea(bloomfilter) IS 'the filter''s bytes, for readers outside the database';
COMMENT ON FUNCTION bloomfilter_from_bytea(bytea) IS 'a filter from its bytes, validated';

CREATE CAST (bloomfilter AS bytea) WITH FUNCTION bloomfilter_to_bytea(bloomfilter);
CREATE CAST (bytea AS bloomfilter) WITH FUNCTION bloomfilter_from_bytea(bytea);

COMMENT ON CAST (bloomfilter AS bytea) IS 'the filter''s bytes, for readers outside the database';
COMMENT ON CAST (bytea AS bloomfilter) IS 'a filter from its bytes, validated';

-- ---------------------------------------------------------------------------
-- Making filters, and the arithmetic of sizes
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloomfilter(
	capacity float8 DEFAULT NULL,
	fpr float8 DEFAULT 0.01,
	layout text DEFAULT 'blocked',
	hash text DEFAULT 'xxh3',
	key bytea DEFAULT NULL,
	expansion integer DEFAULT 0,
	hashes integer DEFAULT NULL
) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_construct'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;

COMMENT ON FUNCTION bloomfilter(float8, float8, text, text, bytea, integer, integer) IS 'an empty filter, or a template for aggregates';

CREATE FUNCTION bloom_clear(filter bloomfilter) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_clear'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_clear(bloomfilter) IS 'an empty filter with the same parameters';

CREATE FUNCTION bloom_sizing(
	capacity float8,
	fpr float8 DEFAULT 0.01,
	OUT layout text,
	OUT bits bigint,
	OUT hashes integer,
	OUT bytes bigint,
	OUT bits_per_key float8,
	OUT expected_fpr float8
) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'bf_sql_sizing'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20 ROWS 4;

COMMENT ON FUNCTION bloom_sizing(float8, float8) IS 'the size of a filter for so many elements, by layout';

CREATE FUNCTION bloom_capacity(
	bytes float8,
	fpr float8 DEFAULT 0.01,
	layout text DEFAULT 'blocked'
) RETURNS bigint
AS 'MODULE_PATHNAME', 'bf_sql_capacity'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

COMMENT ON FUNCTION bloom_capacity(float8, float8, text) IS 'how many elements fit into a filter of so many bytes';

CREATE FUNCTION bloom_hash(value anycompatible, hash text DEFAULT 'xxh3', key bytea DEFAULT NULL) RETURNS bytea
AS 'MODULE_PATHNAME', 'bf_sql_hash'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION bloom_hash(anycompatible, text, bytea) IS 'the 16-byte digest from which an element''s positions follow';

-- ---------------------------------------------------------------------------
-- Probing
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloom_contsel(internal, oid, internal, integer) RETURNS float8
AS 'MODULE_PATHNAME', 'bf_sql_contsel'
LANGUAGE C STABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloom_contains_support(internal) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_contains_support'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_contsel(internal, oid, internal, integer) IS 'restriction selectivity of @> and <@';
COMMENT ON FUNCTION bloom_contains_support(internal) IS 'planner support for bloom_contains';

-- anycompatible, since an untyped literal is text to it, and citext stays citext
CREATE FUNCTION bloom_contains(filter bloomfilter, value anycompatible) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_contains'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2
SUPPORT bloom_contains_support;

CREATE FUNCTION bloom_contained(value anycompatible, filter bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_contained'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2
SUPPORT bloom_contains_support;

COMMENT ON FUNCTION bloom_contains(bloomfilter, anycompatible) IS 'false: certainly not added; true: maybe';
COMMENT ON FUNCTION bloom_contained(anycompatible, bloomfilter) IS 'implementation of <@ operator';

CREATE OPERATOR @> (
	LEFTARG = bloomfilter, RIGHTARG = anycompatible,
	FUNCTION = bloom_contains, COMMUTATOR = <@,
	RESTRICT = bloom_contsel
);

CREATE OPERATOR <@ (
	LEFTARG = anycompatible, RIGHTARG = bloomfilter,
	FUNCTION = bloom_contained, COMMUTATOR = @>,
	RESTRICT = bloom_contsel
);

COMMENT ON OPERATOR @> (bloomfilter, anycompatible) IS 'may contain';
COMMENT ON OPERATOR <@ (anycompatible, bloomfilter) IS 'may be contained in';

CREATE FUNCTION bloom_contains_any(filter bloomfilter, elements anyarray) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_contains_any'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloom_contains_all(filter bloomfilter, elements anyarray) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_contains_all'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloom_contains_each(filter bloomfilter, elements anyarray) RETURNS boolean[]
AS 'MODULE_PATHNAME', 'bf_sql_contains_each'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

COMMENT ON FUNCTION bloom_contains_any(bloomfilter, anyarray) IS 'may any of the array''s elements be contained?';
COMMENT ON FUNCTION bloom_contains_all(bloomfilter, anyarray) IS 'may all of the array''s elements be contained?';
COMMENT ON FUNCTION bloom_contains_each(bloomfilter, anyarray) IS 'an answer for each of the array''s elements';

-- ---------------------------------------------------------------------------
-- Adding and removing
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloom_add(filter bloomfilter, value anycompatible) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_add'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;

CREATE FUNCTION bloom_remove(filter bloomfilter, value anycompatible) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_remove'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;

CREATE FUNCTION bloom_add_all(filter bloomfilter, elements anyarray) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_add_all'
LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;

COMMENT ON FUNCTION bloom_add(bloomfilter, anycompatible) IS 'the filter with one more element';
COMMENT ON FUNCTION bloom_remove(bloomfilter, anycompatible) IS 'the filter without one copy of an element that was added (layouts counting and cuckoo)';
COMMENT ON FUNCTION bloom_add_all(bloomfilter, anyarray) IS 'the filter with all elements of an array';

-- ---------------------------------------------------------------------------
-- Combining and comparing
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloom_to_standard(filter bloomfilter) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_to_standard'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

COMMENT ON FUNCTION bloom_to_standard(bloomfilter) IS 'a counting filter as a plain standard filter, a quarter of the size';

CREATE FUNCTION bloom_union(a bloomfilter, b bloomfilter) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_union'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

CREATE FUNCTION bloom_intersect(a bloomfilter, b bloomfilter) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_intersect'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;

CREATE FUNCTION bloom_compatible(a bloomfilter, b bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_compatible'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_union(bloomfilter, bloomfilter) IS 'contains what either filter contains';
COMMENT ON FUNCTION bloom_intersect(bloomfilter, bloomfilter) IS 'contains what both filters contain, and perhaps a little more';
COMMENT ON FUNCTION bloom_compatible(bloomfilter, bloomfilter) IS 'can the two filters be combined?';

CREATE OPERATOR | (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloom_union, COMMUTATOR = |
);

CREATE OPERATOR & (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloom_intersect, COMMUTATOR = &
);

COMMENT ON OPERATOR | (bloomfilter, bloomfilter) IS 'union';
COMMENT ON OPERATOR & (bloomfilter, bloomfilter) IS 'intersection';

CREATE FUNCTION bloomfilter_eq(bloomfilter, bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_eq'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloomfilter_ne(bloomfilter, bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_ne'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloomfilter_lt(bloomfilter, bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_lt'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloomfilter_le(bloomfilter, bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_le'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloomfilter_gt(bloomfilter, bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_gt'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloomfilter_ge(bloomfilter, bloomfilter) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_ge'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloomfilter_cmp(bloomfilter, bloomfilter) RETURNS integer
AS 'MODULE_PATHNAME', 'bf_sql_cmp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloomfilter_hash(bloomfilter) RETURNS integer
AS 'MODULE_PATHNAME', 'bf_sql_hash_value'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloomfilter_hash_extended(bloomfilter, bigint) RETURNS bigint
AS 'MODULE_PATHNAME', 'bf_sql_hash_value_extended'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloomfilter_eq(bloomfilter, bloomfilter) IS 'implementation of = operator';
COMMENT ON FUNCTION bloomfilter_ne(bloomfilter, bloomfilter) IS 'implementation of <> operator';
COMMENT ON FUNCTION bloomfilter_lt(bloomfilter, bloomfilter) IS 'implementation of < operator';
COMMENT ON FUNCTION bloomfilter_le(bloomfilter, bloomfilter) IS 'implementation of <= operator';
COMMENT ON FUNCTION bloomfilter_gt(bloomfilter, bloomfilter) IS 'implementation of > operator';
COMMENT ON FUNCTION bloomfilter_ge(bloomfilter, bloomfilter) IS 'implementation of >= operator';
COMMENT ON FUNCTION bloomfilter_cmp(bloomfilter, bloomfilter) IS 'less-equal-greater';
COMMENT ON FUNCTION bloomfilter_hash(bloomfilter) IS 'hash';
COMMENT ON FUNCTION bloomfilter_hash_extended(bloomfilter, bigint) IS 'hash';

CREATE OPERATOR = (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloomfilter_eq, COMMUTATOR = =, NEGATOR = <>,
	RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);

CREATE OPERATOR <> (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloomfilter_ne, COMMUTATOR = <>, NEGATOR = =,
	RESTRICT = neqsel, JOIN = neqjoinsel
);

COMMENT ON OPERATOR = (bloomfilter, bloomfilter) IS 'same parameters and same bits';
COMMENT ON OPERATOR <> (bloomfilter, bloomfilter) IS 'parameters or bits differ';

-- An order of bytes: it says nothing about elements, but DISTINCT and ORDER BY
-- want one.
CREATE OPERATOR < (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloomfilter_lt, COMMUTATOR = >, NEGATOR = >=,
	RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);

CREATE OPERATOR <= (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloomfilter_le, COMMUTATOR = >=, NEGATOR = >,
	RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);

CREATE OPERATOR > (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloomfilter_gt, COMMUTATOR = <, NEGATOR = <=,
	RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);

CREATE OPERATOR >= (
	LEFTARG = bloomfilter, RIGHTARG = bloomfilter,
	FUNCTION = bloomfilter_ge, COMMUTATOR = <=, NEGATOR = <,
	RESTRICT = scalargesel, JOIN = scalargejoinsel
);

CREATE OPERATOR CLASS bloomfilter_ops DEFAULT FOR TYPE bloomfilter USING btree AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >,
	FUNCTION 1 bloomfilter_cmp(bloomfilter, bloomfilter);

CREATE OPERATOR CLASS bloomfilter_ops DEFAULT FOR TYPE bloomfilter USING hash AS
	OPERATOR 1 = ,
	FUNCTION 1 bloomfilter_hash(bloomfilter),
	FUNCTION 2 bloomfilter_hash_extended(bloomfilter, bigint);

COMMENT ON OPERATOR < (bloomfilter, bloomfilter) IS 'before in the order of bytes';
COMMENT ON OPERATOR <= (bloomfilter, bloomfilter) IS 'before or the same in the order of bytes';
COMMENT ON OPERATOR > (bloomfilter, bloomfilter) IS 'after in the order of bytes';
COMMENT ON OPERATOR >= (bloomfilter, bloomfilter) IS 'after or the same in the order of bytes';
COMMENT ON OPERATOR FAMILY bloomfilter_ops USING btree IS 'order of bytes';
COMMENT ON OPERATOR CLASS bloomfilter_ops USING btree IS 'order of bytes';
COMMENT ON OPERATOR FAMILY bloomfilter_ops USING hash IS 'equality of filters';
COMMENT ON OPERATOR CLASS bloomfilter_ops USING hash IS 'equality of filters';

-- ---------------------------------------------------------------------------
-- What a filter says about itself
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloom_info(
	filter bloomfilter,
	OUT layout text,
	OUT hash text,
	OUT keyed boolean,
	OUT element text,
	OUT capacity bigint,
	OUT target_fpr float8,
	OUT bits bigint,
	OUT hashes integer,
	OUT layers integer,
	OUT bits_set bigint,
	OUT fill float8,
	OUT cardinality float8,
	OUT expected_fpr float8,
	OUT bytes bigint
) RETURNS record
AS 'MODULE_PATHNAME', 'bf_sql_info'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;

CREATE FUNCTION bloom_cardinality(filter bloomfilter) RETURNS float8
AS 'MODULE_PATHNAME', 'bf_sql_cardinality'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloom_expected_fpr(filter bloomfilter) RETURNS float8
AS 'MODULE_PATHNAME', 'bf_sql_expected_fpr'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloom_etag(filter bloomfilter) RETURNS text
AS 'MODULE_PATHNAME', 'bf_sql_etag'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION bloom_etag(bloomfilter) IS '16 hexadecimal digits that change when the filter changes';
COMMENT ON FUNCTION bloom_info(bloomfilter) IS 'parameters, fill, estimated contents and false-positive rate';
COMMENT ON FUNCTION bloom_cardinality(bloomfilter) IS 'about how many distinct elements the filter holds';
COMMENT ON FUNCTION bloom_expected_fpr(bloomfilter) IS 'the share of absent values that @> lets pass, as the filter is filled now';

-- ---------------------------------------------------------------------------
-- Aggregates
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloom_agg_trans(internal, anyelement) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_agg_trans'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_agg_sized_trans(internal, anyelement, float8) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_agg_sized_trans'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_agg_sized_trans(internal, anyelement, float8, float8) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_agg_sized_trans'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_agg_template_trans(internal, anyelement, bloomfilter) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_agg_template_trans'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_union_agg_trans(internal, bloomfilter) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_union_agg_trans'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_intersect_agg_trans(internal, bloomfilter) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_intersect_agg_trans'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_agg_combine(internal, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_agg_combine'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_intersect_agg_combine(internal, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_intersect_agg_combine'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_agg_serial(internal) RETURNS bytea
AS 'MODULE_PATHNAME', 'bf_sql_agg_serial'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloom_agg_deserial(bytea, internal) RETURNS internal
AS 'MODULE_PATHNAME', 'bf_sql_agg_deserial'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bloom_agg_final(internal) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_agg_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_union_agg_final(internal) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_union_agg_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION bloom_intersect_agg_final(internal) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_intersect_agg_final'
LANGUAGE C IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION bloom_agg_trans(internal, anyelement) IS 'aggregate transition function';
COMMENT ON FUNCTION bloom_agg_sized_trans(internal, anyelement, float8) IS 'aggregate transition function';
COMMENT ON FUNCTION bloom_agg_sized_trans(internal, anyelement, float8, float8) IS 'aggregate transition function';
COMMENT ON FUNCTION bloom_agg_template_trans(internal, anyelement, bloomfilter) IS 'aggregate transition function';
COMMENT ON FUNCTION bloom_union_agg_trans(internal, bloomfilter) IS 'aggregate transition function';
COMMENT ON FUNCTION bloom_intersect_agg_trans(internal, bloomfilter) IS 'aggregate transition function';
COMMENT ON FUNCTION bloom_agg_combine(internal, internal) IS 'aggregate combine function';
COMMENT ON FUNCTION bloom_intersect_agg_combine(internal, internal) IS 'aggregate combine function';
COMMENT ON FUNCTION bloom_agg_serial(internal) IS 'aggregate serial function';
COMMENT ON FUNCTION bloom_agg_deserial(bytea, internal) IS 'aggregate deserial function';
COMMENT ON FUNCTION bloom_agg_final(internal) IS 'aggregate final function';
COMMENT ON FUNCTION bloom_union_agg_final(internal) IS 'aggregate final function';
COMMENT ON FUNCTION bloom_intersect_agg_final(internal) IS 'aggregate final function';

CREATE AGGREGATE bloom_agg(value anyelement) (
	SFUNC = bloom_agg_trans, STYPE = internal,
	FINALFUNC = bloom_agg_final,
	COMBINEFUNC = bloom_agg_combine,
	SERIALFUNC = bloom_agg_serial, DESERIALFUNC = bloom_agg_deserial,
	PARALLEL = SAFE
);

CREATE AGGREGATE bloom_agg(value anyelement, capacity float8) (
	SFUNC = bloom_agg_sized_trans, STYPE = internal,
	FINALFUNC = bloom_agg_final,
	COMBINEFUNC = bloom_agg_combine,
	SERIALFUNC = bloom_agg_serial, DESERIALFUNC = bloom_agg_deserial,
	PARALLEL = SAFE
);

CREATE AGGREGATE bloom_agg(value anyelement, capacity float8, fpr float8) (
	SFUNC = bloom_agg_sized_trans, STYPE = internal,
	FINALFUNC = bloom_agg_final,
	COMBINEFUNC = bloom_agg_combine,
	SERIALFUNC = bloom_agg_serial, DESERIALFUNC = bloom_agg_deserial,
	PARALLEL = SAFE
);

CREATE AGGREGATE bloom_agg(value anyelement, template bloomfilter) (
	SFUNC = bloom_agg_template_trans, STYPE = internal,
	FINALFUNC = bloom_agg_final,
	COMBINEFUNC = bloom_agg_combine,
	SERIALFUNC = bloom_agg_serial, DESERIALFUNC = bloom_agg_deserial,
	PARALLEL = SAFE
);

CREATE AGGREGATE bloom_union_agg(filter bloomfilter) (
	SFUNC = bloom_union_agg_trans, STYPE = internal,
	FINALFUNC = bloom_union_agg_final,
	COMBINEFUNC = bloom_agg_combine,
	SERIALFUNC = bloom_agg_serial, DESERIALFUNC = bloom_agg_deserial,
	PARALLEL = SAFE
);

CREATE AGGREGATE bloom_intersect_agg(filter bloomfilter) (
	SFUNC = bloom_intersect_agg_trans, STYPE = internal,
	FINALFUNC = bloom_intersect_agg_final,
	COMBINEFUNC = bloom_intersect_agg_combine,
	SERIALFUNC = bloom_agg_serial, DESERIALFUNC = bloom_agg_deserial,
	PARALLEL = SAFE
);

COMMENT ON AGGREGATE bloom_agg(anyelement) IS 'filter of the values, sized for as many distinct ones as there are, at a false-positive rate of 0.01';
COMMENT ON AGGREGATE bloom_agg(anyelement, float8) IS 'filter of the values, sized for so many, at a false-positive rate of 0.01';
COMMENT ON AGGREGATE bloom_agg(anyelement, float8, float8) IS 'filter of the values, sized for so many at a false-positive rate';
COMMENT ON AGGREGATE bloom_agg(anyelement, bloomfilter) IS 'filter of the values, with the parameters of a template';
COMMENT ON AGGREGATE bloom_union_agg(bloomfilter) IS 'union of the filters';
COMMENT ON AGGREGATE bloom_intersect_agg(bloomfilter) IS 'intersection of the filters';

-- ---------------------------------------------------------------------------
-- Keeping stored filters up to date
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloom_maintain() RETURNS trigger
AS 'MODULE_PATHNAME', 'bf_sql_maintain'
LANGUAGE C;

COMMENT ON FUNCTION bloom_maintain() IS 'trigger that adds new rows to a stored filter; arguments: table of filters, filter''s name, column(s)';

-- ---------------------------------------------------------------------------
-- The live filter: an index
-- ---------------------------------------------------------------------------

CREATE FUNCTION bloomfilter_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME', 'bf_sql_index_handler'
LANGUAGE C;

CREATE ACCESS METHOD bloomfilter TYPE INDEX HANDLER bloomfilter_handler;

-- There is nothing that an index scan could ask it.
CREATE OPERATOR CLASS bloomfilter_any_ops DEFAULT FOR TYPE anyelement USING bloomfilter AS
	STORAGE anyelement;

COMMENT ON FUNCTION bloomfilter_handler(internal) IS 'handler of the index access method bloomfilter';
COMMENT ON ACCESS METHOD bloomfilter IS 'index that is a Bloom filter of its columns: asked by bloom_index_contains';
COMMENT ON OPERATOR FAMILY bloomfilter_any_ops USING bloomfilter IS 'all types that a filter can hold';
COMMENT ON OPERATOR CLASS bloomfilter_any_ops USING bloomfilter IS 'all types that a filter can hold';

-- They read tables: STABLE.  A worker cannot read another backend's temporary
-- tables: RESTRICTED.
CREATE FUNCTION bloom_index_contains(index regclass, value anycompatible) RETURNS boolean
AS 'MODULE_PATHNAME', 'bf_sql_index_contains'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10;

CREATE FUNCTION bloom_index_contains_each(index regclass, elements anyarray) RETURNS boolean[]
AS 'MODULE_PATHNAME', 'bf_sql_index_contains_each'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 100;

CREATE FUNCTION bloom_index_partitions(index regclass, value anycompatible) RETURNS SETOF regclass
AS 'MODULE_PATHNAME', 'bf_sql_index_partitions'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 100 ROWS 1;

CREATE FUNCTION bloom_index_filter(index regclass) RETURNS bloomfilter
AS 'MODULE_PATHNAME', 'bf_sql_index_filter'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;

CREATE FUNCTION bloom_index_info(
	index regclass,
	OUT hash text,
	OUT element text,
	OUT capacity bigint,
	OUT target_fpr float8,
	OUT expansion integer,
	OUT layers integer,
	OUT bits bigint,
	OUT bits_set bigint,
	OUT fill float8,
	OUT cardinality float8,
	OUT expected_fpr float8,
	OUT stale_share float8,
	OUT bytes bigint
) RETURNS record
AS 'MODULE_PATHNAME', 'bf_sql_index_info'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED COST 10000;

CREATE FUNCTION bloom_index_check(index regclass, "rows" boolean DEFAULT false) RETURNS void
AS 'MODULE_PATHNAME', 'bf_sql_index_check'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED COST 100000;

COMMENT ON FUNCTION bloom_index_contains(regclass, anycompatible) IS 'may the table have a row with this key?  false is certain';
COMMENT ON FUNCTION bloom_index_contains_each(regclass, anyarray) IS 'an answer for each key of the array';
COMMENT ON FUNCTION bloom_index_partitions(regclass, anycompatible) IS 'the partitions that may have a row with this key';
COMMENT ON FUNCTION bloom_index_filter(regclass) IS 'the index as a filter';
COMMENT ON FUNCTION bloom_index_info(regclass) IS 'parameters, fill, estimated contents and false-positive rate of the index';
COMMENT ON FUNCTION bloom_index_check(regclass, boolean) IS 'raises an error if the index is corrupted, or lacks a row of the table';

-- ---------------------------------------------------------------------------
-- All filters of a database
-- ---------------------------------------------------------------------------

-- Each in a subtransaction of its own: UNSAFE.
CREATE FUNCTION bloom_sample_column(
	relation regclass,
	attnum smallint,
	OUT rows bigint,
	OUT bytes bigint,
	OUT sampled bigint,
	OUT fill float8,
	OUT expected_fpr float8,
	OUT overfilled bigint
) RETURNS record
AS 'MODULE_PATHNAME', 'bf_sql_sample_column'
LANGUAGE C STABLE STRICT PARALLEL UNSAFE COST 10000;

CREATE FUNCTION bloom_sample_index(
	index regclass,
	OUT rows bigint,
	OUT bytes bigint,
	OUT sampled bigint,
	OUT fill float8,
	OUT expected_fpr float8,
	OUT overfilled bigint
) RETURNS record
AS 'MODULE_PATHNAME', 'bf_sql_sample_index'
LANGUAGE C STABLE STRICT PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION bloom_sample_column(regclass, smallint) IS 'rows and bytes of a column of filters, and the state of some of them';
COMMENT ON FUNCTION bloom_sample_index(regclass) IS 'rows, bytes and state of a bloomfilter index';

-- MATERIALIZED: what is to be looked into is found first, with the query's own
-- conditions, then looked into.
CREATE VIEW bloom_filters AS
WITH RECURSIVE held(type) AS (
	SELECT 'bloomfilter'::regtype::oid
	UNION
	SELECT more.type
	FROM held h, LATERAL (
		SELECT d.oid FROM pg_type d WHERE d.typtype = 'd' AND d.typbasetype = h.type
		UNION ALL
		SELECT t.typarray FROM pg_type t WHERE t.oid = h.type AND t.typarray <> 0
	) more(type)
), filter_columns AS MATERIALIZED (
	SELECT n.nspname, c.relname, a.attname, c.oid, a.attnum
	FROM pg_attribute a
	JOIN pg_class c ON c.oid = a.attrelid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE a.atttypid IN (SELECT type FROM held)
		AND a.attnum > 0 AND NOT a.attisdropped
		AND c.relkind IN ('r', 'm', 'f')
		AND NOT pg_is_other_temp_schema(n.oid)
		AND has_schema_privilege(n.oid, 'USAGE')
		AND has_column_privilege(c.oid, a.attnum, 'SELECT')
), filter_indexes AS MATERIALIZED (
	SELECT n.nspname, c.relname, i.indexrelid, x.relname AS indexname
	FROM pg_index i
	JOIN pg_class x ON x.oid = i.indexrelid
	JOIN pg_am m ON m.oid = x.relam
	JOIN pg_class c ON c.oid = i.indrelid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE m.amname = 'bloomfilter'
		AND x.relkind = 'i'
		AND NOT pg_is_other_temp_schema(n.oid)
		AND has_schema_privilege(n.oid, 'USAGE')
		AND (has_table_privilege(c.oid, 'SELECT') OR
			 i.indexprs IS NULL AND i.indpred IS NULL AND
			 NOT EXISTS (SELECT FROM unnest(i.indkey) k WHERE NOT has_column_privilege(c.oid, k, 'SELECT')))
)
SELECT f.nspname AS schemaname, f.relname AS tablename, f.attname::text AS columnname, NULL::name AS indexname, s.*
FROM filter_columns f, bloom_sample_column(f.oid, f.attnum) s
UNION ALL
SELECT f.nspname, f.relname,
	(SELECT string_agg(pg_get_indexdef(f.indexrelid, k.attnum, true), ', ' ORDER BY k.attnum)
	 FROM pg_attribute k WHERE k.attrelid = f.indexrelid AND k.attnum > 0),
	f.indexname, s.*
FROM filter_indexes f, bloom_sample_index(f.indexrelid) s;

GRANT SELECT ON bloom_filters TO PUBLIC;

COMMENT ON VIEW bloom_filters IS 'all columns of filters, and all bloomfilter indexes, that the user may read';
COMMENT ON COLUMN bloom_filters.columnname IS 'column of filters, or arrays of them; of an index its columns';
COMMENT ON COLUMN bloom_filters.indexname IS 'NULL: stored filters';
COMMENT ON COLUMN bloom_filters.rows IS 'of the table; estimated, unless it is small';
COMMENT ON COLUMN bloom_filters.bytes IS 'of the column''s values, TOAST included; estimated, unless the table is small';
COMMENT ON COLUMN bloom_filters.sampled IS 'filters that were looked at; NULL if none could be';
COMMENT ON COLUMN bloom_filters.fill IS 'mean share of bits set in these';
COMMENT ON COLUMN bloom_filters.expected_fpr IS 'mean false-positive rate of these, as they are filled now';
COMMENT ON COLUMN bloom_filters.overfilled IS 'how many of these hold more than they were sized for';
