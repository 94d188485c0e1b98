/*-------------------------------------------------------------------------
 *
 * joinfilter.h
 *	  Join filters that the planner adds by itself.
 *
 * joinplan.c decides, and edits the finished plan: a node that builds a
 * filter goes under the Hash of a hash join, a node that probes it goes
 * above the lowest node of the outer side that has the join's keys.
 * joinexec.c has the two nodes.  They meet in a PARAM_EXEC slot, which holds
 * the filter's state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_JOINFILTER_H
#define BF_JOINFILTER_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/*
 * Tests put old mistakes back, to see that they are found: 1, a filter is
 * kept when its rows change; 2, it is built anew then; 3, volatile functions
 * are overlooked.
 */
#ifndef BF_JOIN_FILTER_MUTANT
#define BF_JOIN_FILTER_MUTANT 0
#endif

/* How a key becomes 64 bits. */
typedef enum BfJoinHash
{
	BF_JOIN_FUNCTION,			/* by the join's own hash function */
	BF_JOIN_INT2,				/* these three agree */
	BF_JOIN_INT4,
	BF_JOIN_INT8,
	BF_JOIN_UUID
} BfJoinHash;

/* One side of one of the join's clauses. */
typedef struct BfJoinKey
{
	AttrNumber	attno;			/* of the input; 0: the i'th of custom_exprs */
	BfJoinHash	hash;
	Oid			function;
	Oid			collation;
} BfJoinKey;

/* What a node is told of a filter, in its custom_private. */
typedef struct BfJoinSpec
{
	int			param;			/* the PARAM_EXEC slot where they meet */
	int			number;			/* for people, from 1 */
	int			log2_words;		/* of a shared filter; of another, at least, if its
								 * rows are too many to be counted first */
	bool		shared;			/* all participants of a Parallel Hash build one */
	int			min_drop;		/* percent of its rows that a probe must drop to
								 * be worth it; 0: it never pauses */
	int			nkeys;
	BfJoinKey	keys[FLEXIBLE_ARRAY_MEMBER];
} BfJoinSpec;

#define BF_JOIN_MIN_LOG2_WORDS	7	/* 1 kB */
#define BF_JOIN_MIN_LOG2_SHARED	13	/* 64 kB: it cannot grow */
#define BF_JOIN_MAX_LOG2_WORDS	26	/* 512 MB */

/* Bits a key to begin with, before rounding up to a power of two. */
#define BF_JOIN_BITS_PER_KEY	16.0

extern bool bf_join_filter;
extern bool bf_join_filter_force;

extern void bf_init_joinplan(void);
extern void bf_init_joinexec(void);

extern int	bf_join_log2_words(double keys);
extern BfJoinSpec *bf_make_join_spec(int nkeys);
extern List *bf_write_join_spec(const BfJoinSpec *spec);
extern BfJoinSpec *bf_read_join_spec(const List *list);

extern const CustomScanMethods bf_join_build_methods;
extern const CustomScanMethods bf_join_probe_methods;

#endif							/* BF_JOINFILTER_H */
