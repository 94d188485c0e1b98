/*-------------------------------------------------------------------------
 *
 * joinexec.c
 *	  The nodes that build and probe a join filter.
 *
 * Both hand on their child's slots as they are, but for a probe above a table:
 * that one copies the columns that are needed, which the scan would do of every
 * row.  The builder, under a Hash, adds the keys of every row to the filter,
 * which is complete when the child has no more.  Until then the probe lets
 * every row pass, and so it does in an EvalPlanQual recheck, where the inner
 * side is not what it was.
 *
 * A filter is built once; joinplan.c sees to it that its rows are the same
 * whenever they are read.
 *
 * Without Parallel Hash every participant builds a filter of its own.  With
 * it each reads a part of the inner side, and all of them set bits of one
 * filter in the query's dynamic shared memory.  Nobody reads an outer row
 * before all have finished: ExecParallelHashJoin has a barrier there.
 *
 *-------------------------------------------------------------------------
 */
#include "planner/joinfilter.h"

#include "access/parallel.h"
#include "access/tableam.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "port/atomics.h"
#include "utils/dsa.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/uuid.h"

#include <math.h>

#include "core/words.h"

/* Bits an element below which a filter gives up. */
#define GIVE_UP_BITS		4

/*
 * Hashes wait in a queue and are added together.  One that waits for a filter to
 * be made begins with that size, too.
 */
#define QUEUE_LENGTH		1024

/* If a queue is too short, there may be so many times as many rows to come. */
#define MORE_ROWS			8

/* It is halved as long as so many are left. */
#define FOLD_BITS			32

/* Rows of a sample, and rows that then pass without a look; these double. */
#define SAMPLE_ROWS			1024
#define FIRST_PAUSE			(16 * 1024)
#define LAST_PAUSE			(1024 * 1024)

typedef enum FilterState
{
	FILTER_INCOMPLETE,
	FILTER_READY,
	FILTER_ABANDONED			/* saturated, or no memory */
} FilterState;

/* The part of a filter that the participants of a Parallel Hash share. */
typedef struct SharedFilter
{
	pg_atomic_uint64 words;		/* dsa_pointer, 0 before the first builder */
	pg_atomic_uint64 nadded;
	pg_atomic_uint32 nbuilding; /* participants at work */
	pg_atomic_uint32 nfinished;
	pg_atomic_uint32 abandoned;
} SharedFilter;

/* A filter, as one process sees it: where builder and probes meet. */
typedef struct JoinFilter
{
	FilterState state;
	uint64	   *words;
	uint32		mask;			/* number of words, less 1 */
	uint64		nadded;			/* elements that set a bit */
	SharedFilter *shared;		/* or NULL */

	/* for EXPLAIN: the largest filter of any process */
	FilterState shown_state;
	uint64		shown_nadded;
	Size		shown_size;
} JoinFilter;

/* One column to be hashed. */
typedef struct KeyReader
{
	AttrNumber	attno;			/* of the child's slot, or 0 */
	ExprState  *expr;			/* if 0 */
	BfJoinHash	hash;
	Oid			collation;
	FmgrInfo	function;
} KeyReader;

/* ------------------------------------------------------------------------
 * What the nodes have in common
 * ------------------------------------------------------------------------
 */

/*
 * The filter's state, made by whoever is initialized first.
 */
static JoinFilter *
meet(EState *estate, int param)
{
	ParamExecData *slot = &estate->es_param_exec_vals[param];

	if (slot->value == (Datum) 0)
	{
		JoinFilter *filter = MemoryContextAllocZero(estate->es_query_cxt, sizeof(JoinFilter));

		slot->value = PointerGetDatum(filter);
		slot->isnull = false;
	}
	return (JoinFilter *) DatumGetPointer(slot->value);
}

static KeyReader *
make_readers(PlanState *ps, const BfJoinSpec *spec, List *exprs)
{
	KeyReader  *readers = palloc0(spec->nkeys * sizeof(KeyReader));

	for (int i = 0; i < spec->nkeys; i++)
	{
		const BfJoinKey *key = &spec->keys[i];

		readers[i].attno = key->attno;
		readers[i].hash = key->hash;
		readers[i].collation = key->collation;
		if (key->attno == 0)
			readers[i].expr = ExecInitExpr(list_nth(exprs, i), ps);
		if (key->hash == BF_JOIN_FUNCTION)
			fmgr_info(key->function, &readers[i].function);
	}
	return readers;
}

/*
 * The mixed hash of a row's keys.  False if one is NULL: such a row matches
 * nothing.  May leave memory behind in the current context.
 */
static pg_attribute_always_inline bool
hash_keys(KeyReader *readers, int nkeys, TupleTableSlot *slot, ExprContext *econtext,
		  uint64 *hash)
{
	uint64		h = 0;

	for (int i = 0; i < nkeys; i++)
	{
		KeyReader  *reader = &readers[i];
		bool		isnull;
		Datum		value;
		uint64		x;

		if (reader->attno > 0)
			value = slot_getattr(slot, reader->attno, &isnull);
		else
		{
			econtext->ecxt_outertuple = slot;
			value = ExecEvalExpr(reader->expr, econtext, &isnull);
		}
		if (isnull)
			return false;
		switch (reader->hash)
		{
			case BF_JOIN_INT2:
				x = (uint64) (int64) DatumGetInt16(value);
				break;
			case BF_JOIN_INT4:
				x = (uint64) (int64) DatumGetInt32(value);
				break;
			case BF_JOIN_INT8:
				x = (uint64) DatumGetInt64(value);
				break;
			case BF_JOIN_UUID:
				{
					uint64		halves[2];

					memcpy(halves, DatumGetUUIDP(value)->data, UUID_LEN);
					x = bf_mix64(halves[0]) ^ halves[1];
					break;
				}
			default:
				x = DatumGetUInt32(FunctionCall1Coll(&reader->function, reader->collation,
													 value));
				break;
		}
		/* The order of keys counts: (1, 2) is not (2, 1). */
		h = i == 0 ? x : bf_mix64(h) + x;
	}
	*hash = bf_mix64(h);
	return true;
}

/*
 * Our result is the child's, in the child's kind of slot, or columns of it.
 */
static void
adopt_child(CustomScanState *css, EState *estate, int eflags)
{
	PlanState  *ps = &css->ss.ps;
	PlanState  *child = ExecInitNode(outerPlan(ps->plan), estate, eflags);

	outerPlanState(css) = child;
	if (ps->ps_ProjInfo != NULL)
	{
		/* The server takes it that we have a virtual tuple to copy from. */
		ps->scanops = ExecGetResultSlotOps(child, NULL);
		ps->scanopsfixed = false;
		ps->scanopsset = true;
		ps->ps_ProjInfo = ExecBuildProjectionInfo(ps->plan->targetlist, ps->ps_ExprContext,
												  ps->ps_ResultTupleSlot, ps,
												  ExecGetResultType(child));
	}
	else
	{
		ps->resultops = ExecGetResultSlotOps(child, &ps->resultopsfixed);
		ps->resultopsset = true;
	}
}

static void
end_node(CustomScanState *css)
{
	ExecEndNode(outerPlanState(css));
}

static void
mark_node(CustomScanState *css)
{
	ExecMarkPos(outerPlanState(css));
}

static void
restore_node(CustomScanState *css)
{
	ExecRestrPos(outerPlanState(css));
}

static TupleTableSlot *
pass_row(CustomScanState *css)
{
	return ExecProcNode(outerPlanState(css));
}

/* "a.x, a.y": of the count keys from the first on */
static char *
deparse_keys(CustomScanState *css, List *ancestors, ExplainState *es, int first, int count)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *context = set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, ancestors);
	bool		prefix = list_length(es->rtable) > 1 || es->verbose;
	StringInfoData text;

	initStringInfo(&text);
	for (int i = first; i < first + count; i++)
		appendStringInfo(&text, "%s%s", i > first ? ", " : "",
						 deparse_expression(list_nth(plan->custom_exprs, i), context,
											prefix, false));
	return text.data;
}

/* ------------------------------------------------------------------------
 * The builder
 * ------------------------------------------------------------------------
 */
typedef struct BuildState
{
	CustomScanState css;
	BfJoinSpec *spec;
	KeyReader  *readers;
	MemoryContext row_context;	/* for hash functions that leave memory behind,
								 * or NULL */
	JoinFilter *filter;			/* NULL: only hand rows on */
	bool		started;		/* the child's rows are being read */
	bool		adding;			/* to the filter */

	/*
	 * A filter of this process is sized when its rows have been counted: until
	 * then their hashes wait.  If they are too many, it is made while they
	 * come.
	 */
	Size		limit;			/* bytes of a filter; the queue may have half */
	uint64	   *queue;			/* or NULL */
	Size		queued;
	Size		queue_size;
} BuildState;

static Size
size_of(const JoinFilter *filter)
{
	return filter->words == NULL ? 0 : ((Size) filter->mask + 1) * sizeof(uint64);
}

static void
free_queue(BuildState *node)
{
	if (node->queue != NULL)
		pfree(node->queue);
	node->queue = NULL;
	node->queued = node->queue_size = 0;
}

/*
 * Give up: from now on the probes let every row pass.
 */
static void
abandon(BuildState *node)
{
	JoinFilter *filter = node->filter;

	node->adding = false;
	filter->state = FILTER_ABANDONED;
	if (filter->shared != NULL)
		pg_atomic_write_u32(&filter->shared->abandoned, 1);
	else if (filter->words != NULL)
	{
		pfree(filter->words);
		filter->words = NULL;
	}
	free_queue(node);
}

/*
 * Memory that the query can do without.
 */
static void *
try_alloc(BuildState *node, Size size, int flags)
{
	return MemoryContextAllocExtended(node->css.ss.ps.state->es_query_cxt, size,
									  flags | MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

/*
 * The first to come makes the shared words, the others find them.
 */
static bool
attach_shared(EState *estate, JoinFilter *filter, int log2_words, bool create)
{
	dsa_area   *area = estate->es_query_dsa;
	SharedFilter *shared = filter->shared;
	dsa_pointer words = (dsa_pointer) pg_atomic_read_u64(&shared->words);

	if (area == NULL)
		return false;
	if (!DsaPointerIsValid(words))
	{
		uint64		expected = (uint64) InvalidDsaPointer;

		if (!create)
			return false;
		words = dsa_allocate_extended(area, (Size) 8 << log2_words,
									  DSA_ALLOC_HUGE | DSA_ALLOC_ZERO | DSA_ALLOC_NO_OOM);
		if (!DsaPointerIsValid(words))
			return false;
		if (!pg_atomic_compare_exchange_u64(&shared->words, &expected, (uint64) words))
		{
			dsa_free(area, words);
			words = (dsa_pointer) expected;
		}
	}
	filter->words = dsa_get_address(area, words);
	filter->mask = ((uint32) 1 << log2_words) - 1;
	return true;
}

static void
start_building(BuildState *node)
{
	JoinFilter *filter = node->filter;
	EState	   *estate = node->css.ss.ps.state;

	node->started = true;
	node->adding = false;
	if (filter == NULL || filter->state != FILTER_INCOMPLETE)
		return;

	if (filter->shared != NULL)
	{
		SharedFilter *shared = filter->shared;

		if (pg_atomic_read_u32(&shared->abandoned) != 0)
			return;
		pg_atomic_fetch_add_u32(&shared->nbuilding, 1);
		node->adding = true;
		if (!attach_shared(estate, filter, node->spec->log2_words, true))
			abandon(node);
		return;
	}

	/* A filter that was begun and not finished is begun again. */
	if (filter->words != NULL)
		pfree(filter->words);
	filter->words = NULL;
	free_queue(node);
	node->adding = true;
}

/*
 * Add what is in the queue to the words that all share; how many were not there.
 */
static uint64
add_shared(BuildState *node)
{
	JoinFilter *filter = node->filter;
	uint64		nadded = 0;

	for (Size i = 0; i < node->queued; i++)
	{
		uint64		h = node->queue[i];
		uint64		bits = bf_word_bits(h);
		pg_atomic_uint64 *word;

		bf_words_fetch_ahead(filter->words, filter->mask, node->queue, i, node->queued);
		word = (pg_atomic_uint64 *) &filter->words[bf_word_of(h, filter->mask)];
		if ((pg_atomic_read_u64(word) & bits) == bits)
			continue;
		pg_atomic_fetch_or_u64(word, bits);
		nadded++;
	}
	return nadded;
}

/*
 * Add what is in the queue.
 */
static void
flush_queue(BuildState *node)
{
	JoinFilter *filter = node->filter;
	SharedFilter *shared = filter->shared;
	uint64		nadded;

	if (shared != NULL)
		nadded = pg_atomic_add_fetch_u64(&shared->nadded, add_shared(node));
	else
		nadded = filter->nadded += bf_words_add_many(filter->words, filter->mask,
													 node->queue, node->queued);
	node->queued = 0;
	if (nadded * GIVE_UP_BITS > ((uint64) filter->mask + 1) * 64 ||
		(shared != NULL && pg_atomic_read_u32(&shared->abandoned) != 0))
		abandon(node);
}

/*
 * Make a filter of this process for so many rows, and move the queue there.
 */
static void
make_private(BuildState *node, double rows)
{
	JoinFilter *filter = node->filter;
	int			log2_words = Min(bf_join_log2_words(rows), BF_JOIN_MAX_LOG2_WORDS);

	while (log2_words > BF_JOIN_MIN_LOG2_WORDS &&
		   ((Size) sizeof(uint64) << log2_words) > node->limit)
		log2_words--;
	filter->words = try_alloc(node, (Size) sizeof(uint64) << log2_words, MCXT_ALLOC_ZERO);
	if (filter->words == NULL)
	{
		abandon(node);
		return;
	}
	filter->mask = ((uint32) 1 << log2_words) - 1;
	filter->nadded = 0;
	flush_queue(node);
	if (node->queue_size > QUEUE_LENGTH)
		free_queue(node);
}

/*
 * Make room in the queue for another hash.
 */
static void
make_room(BuildState *node)
{
	Size		size = node->queue == NULL ? QUEUE_LENGTH : node->queue_size * 2;
	uint64	   *queue = NULL;

	if (node->queue != NULL && node->filter->words != NULL)
	{
		flush_queue(node);
		return;
	}
	if (size == QUEUE_LENGTH || size * sizeof(uint64) <= node->limit / 2)
		queue = try_alloc(node, size * sizeof(uint64), 0);
	if (queue == NULL && node->queue == NULL)
		abandon(node);
	else if (queue == NULL)
		make_private(node, Max((double) node->queued * MORE_ROWS,
							   ldexp(64 / BF_JOIN_BITS_PER_KEY, node->spec->log2_words)));
	else
	{
		if (node->queue != NULL)
		{
			memcpy(queue, node->queue, node->queued * sizeof(uint64));
			pfree(node->queue);
		}
		node->queue = queue;
		node->queue_size = size;
	}
}

/*
 * The child has no more rows.
 */
static void
finish_building(BuildState *node)
{
	JoinFilter *filter = node->filter;

	node->started = false;
	if (filter == NULL)
		return;

	/* shared words are there before the first row */
	if (node->adding && filter->words != NULL)
		flush_queue(node);
	else if (node->adding)
		make_private(node, node->queued);
	free_queue(node);

	/* that may have been too much */
	if (node->adding && filter->shared != NULL)
	{
		pg_atomic_fetch_add_u32(&filter->shared->nfinished, 1);
		pg_atomic_fetch_sub_u32(&filter->shared->nbuilding, 1);
	}
	else if (node->adding)
	{
		uint32		nwords = filter->mask + 1;

		while (nwords > (1 << BF_JOIN_MIN_LOG2_WORDS) &&
			   filter->nadded * FOLD_BITS <= (uint64) nwords / 2 * 64)
		{
			nwords /= 2;
			bf_words_halve(filter->words, nwords);
		}
		filter->mask = nwords - 1;
		filter->state = FILTER_READY;
	}
	node->adding = false;
}

static TupleTableSlot *
build_exec(PlanState *ps)
{
	BuildState *node = (BuildState *) ps;
	TupleTableSlot *slot;
	uint64		h;
	bool		found;

	if (!node->started)
		start_building(node);
	slot = ExecProcNode(outerPlanState(node));
	if (TupIsNull(slot))
	{
		finish_building(node);
		return slot;
	}
	if (!node->adding)
		return slot;

	if (node->row_context != NULL)
	{
		MemoryContext old;

		MemoryContextReset(node->row_context);
		old = MemoryContextSwitchTo(node->row_context);
		found = hash_keys(node->readers, node->spec->nkeys, slot, ps->ps_ExprContext, &h);
		MemoryContextSwitchTo(old);
	}
	else
		found = hash_keys(node->readers, node->spec->nkeys, slot, NULL, &h);

	if (!found)
		return slot;
	while (node->queued == node->queue_size)
	{
		make_room(node);
		if (!node->adding)
			return slot;
	}
	node->queue[node->queued++] = h;
	return slot;
}

/* Does hashing run code that may leave memory behind? */
static MemoryContext
row_context_of(const BfJoinSpec *spec, PlanState *ps)
{
	for (int i = 0; i < spec->nkeys; i++)
	{
		if (spec->keys[i].attno == 0 || spec->keys[i].hash == BF_JOIN_FUNCTION)
			return ps->ps_ExprContext->ecxt_per_tuple_memory;
	}
	return NULL;
}

static void
build_begin(CustomScanState *css, EState *estate, int eflags)
{
	BuildState *node = (BuildState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	adopt_child(css, estate, eflags);
	css->ss.ps.ExecProcNode = build_exec;
	node->spec = bf_read_join_spec(plan->custom_private);
	if (!bf_join_filter || estate->es_epq_active != NULL)
		return;
	node->filter = meet(estate, node->spec->param);
	node->limit = get_hash_memory_limit();
	node->readers = make_readers(&css->ss.ps, node->spec, plan->custom_exprs);
	node->row_context = row_context_of(node->spec, &css->ss.ps);
}

static void
build_rescan(CustomScanState *css)
{
	BuildState *node = (BuildState *) css;

	node->started = false;
	node->adding = false;
	if (BF_JOIN_FILTER_MUTANT == 2 && node->filter != NULL && node->filter->shared == NULL)
		node->filter->state = FILTER_INCOMPLETE;
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static Size
build_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	return sizeof(SharedFilter);
}

/* Also after the workers of an earlier scan have gone. */
static void
build_initialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	BuildState *node = (BuildState *) css;
	SharedFilter *shared = coordinate;

	pg_atomic_init_u64(&shared->words, (uint64) InvalidDsaPointer);
	pg_atomic_init_u64(&shared->nadded, 0);
	pg_atomic_init_u32(&shared->nbuilding, 0);
	pg_atomic_init_u32(&shared->nfinished, 0);
	/* without us it would lack the keys that we read */
	pg_atomic_init_u32(&shared->abandoned, node->filter == NULL);
	if (node->filter != NULL)
	{
		node->filter->shared = shared;
		node->filter->words = NULL;
		node->filter->state = FILTER_INCOMPLETE;
	}
}

static void
build_reinitialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	BuildState *node = (BuildState *) css;
	SharedFilter *shared = coordinate;
	dsa_pointer words = (dsa_pointer) pg_atomic_read_u64(&shared->words);

	if (DsaPointerIsValid(words) && css->ss.ps.state->es_query_dsa != NULL)
		dsa_free(css->ss.ps.state->es_query_dsa, words);
	build_initialize_dsm(&node->css, pcxt, coordinate);
}

static void
build_initialize_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	BuildState *node = (BuildState *) css;
	SharedFilter *shared = coordinate;

	/* the setting may be off by now */
	if (node->filter != NULL)
		node->filter->shared = shared;
	else
		pg_atomic_write_u32(&shared->abandoned, 1);
}

/*
 * Shared memory is about to go.
 */
static void
build_shutdown(CustomScanState *css)
{
	BuildState *node = (BuildState *) css;
	JoinFilter *filter = node->filter;

	if (filter == NULL || filter->shared == NULL)
		return;
	if (pg_atomic_read_u32(&filter->shared->abandoned) != 0)
		filter->shown_state = FILTER_ABANDONED;
	else if (pg_atomic_read_u32(&filter->shared->nfinished) > 0)
	{
		filter->shown_state = FILTER_READY;
		filter->shown_nadded = pg_atomic_read_u64(&filter->shared->nadded);
		filter->shown_size = (Size) 8 << node->spec->log2_words;
	}
	filter->shared = NULL;
	filter->words = NULL;
	filter->state = FILTER_INCOMPLETE;
}

static void
build_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	BuildState *node = (BuildState *) css;
	char	   *keys = deparse_keys(css, ancestors, es, 0, node->spec->nkeys);
	JoinFilter *filter = node->filter;
	FilterState state = FILTER_INCOMPLETE;
	uint64		nadded = 0;
	Size		size = 0;
	const char *word;

	if (filter != NULL && filter->state != FILTER_INCOMPLETE)
	{
		state = filter->state;
		nadded = filter->nadded;
		size = size_of(filter);
	}
	else if (filter != NULL)
	{
		state = filter->shown_state;
		nadded = filter->shown_nadded;
		size = filter->shown_size;
	}
	word = filter == NULL ? "off" :
		state == FILTER_READY ? "complete" :
		state == FILTER_ABANDONED ? "given up" : "not built";

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyText("Bloom Filter", psprintf("%d of (%s)", node->spec->number, keys), es);
		if (es->analyze)
		{
			if (state == FILTER_READY)
				ExplainPropertyText("Filter State",
									psprintf("%s  Keys: " UINT64_FORMAT "  Memory: %zukB",
											 word, nadded, (size + 1023) / 1024), es);
			else
				ExplainPropertyText("Filter State", word, es);
		}
	}
	else
	{
		ExplainPropertyInteger("Bloom Filter", NULL, node->spec->number, es);
		ExplainPropertyText("Filter Keys", keys, es);
		ExplainPropertyBool("Filter Shared", node->spec->shared, es);
		if (es->analyze)
		{
			ExplainPropertyText("Filter State", word, es);
			ExplainPropertyInteger("Keys in Filter", NULL, (int64) nadded, es);
			ExplainPropertyInteger("Filter Memory", "kB", (int64) (size + 1023) / 1024, es);
		}
	}
}

static const CustomExecMethods build_exec_methods = {
	.CustomName = "BloomJoinFilter",
	.BeginCustomScan = build_begin,
	.ExecCustomScan = pass_row, /* never: see ExecProcNode */
	.EndCustomScan = end_node,
	.ReScanCustomScan = build_rescan,
	.MarkPosCustomScan = mark_node,
	.RestrPosCustomScan = restore_node,
	.EstimateDSMCustomScan = build_estimate_dsm,
	.InitializeDSMCustomScan = build_initialize_dsm,
	.ReInitializeDSMCustomScan = build_reinitialize_dsm,
	.InitializeWorkerCustomScan = build_initialize_worker,
	.ShutdownCustomScan = build_shutdown,
	.ExplainCustomScan = build_explain,
};

static Node *
build_create(CustomScan *plan)
{
	BuildState *node = (BuildState *) newNode(sizeof(BuildState), T_CustomScanState);

	node->css.methods = &build_exec_methods;
	return (Node *) node;
}

const CustomScanMethods bf_join_build_methods = {
	.CustomName = "BloomJoinFilter",
	.CreateCustomScanState = build_create,
};

/* ------------------------------------------------------------------------
 * The probe
 * ------------------------------------------------------------------------
 */

/* Counted by one process; in shared memory where there are workers. */
typedef struct ProbeCounters
{
	uint64		probed;
	uint64		dropped;
	uint64		pauses;
	uint64		nadded;			/* to the filter, by its builder */
	uint64		size;			/* of the filter, in bytes */
} ProbeCounters;

typedef struct Probe
{
	BfJoinSpec *spec;
	KeyReader  *readers;
	MemoryContext row_context;
	JoinFilter *filter;
	bool		attached;		/* the filter is complete */
	ProbeCounters *counters;
	uint32		sampled;		/* rows of this sample */
	uint32		sample_dropped;
	uint32		pause;			/* rows to let pass without a look */
	uint32		next_pause;
	double		rate;			/* dropped of the last sample, by its cost */
} Probe;

typedef struct ProbeState
{
	CustomScanState css;
	int			nprobes;
	Probe	   *probes;			/* in the order of the plan */
	Probe	  **order;			/* best first */
	bool		off;			/* only hand rows on */
	ScanState  *scan;			/* the child, if we may read its table ourselves */

	/* counters: a row for every process, a column for every probe */
	ProbeCounters *counters;
	int			nprocesses;
	bool		in_shared_memory;
} ProbeState;

/*
 * Is the filter there?  Once it is, it stays.
 */
static bool
attach(ProbeState *node, Probe *probe)
{
	JoinFilter *filter = probe->filter;

	if (filter->state == FILTER_INCOMPLETE && filter->shared != NULL)
	{
		if (pg_atomic_read_u32(&filter->shared->abandoned) != 0)
			filter->state = FILTER_ABANDONED;
		else if (pg_atomic_read_u32(&filter->shared->nfinished) > 0 &&
				 pg_atomic_read_u32(&filter->shared->nbuilding) == 0 &&
				 attach_shared(node->css.ss.ps.state, filter, probe->spec->log2_words, false))
		{
			pg_memory_barrier();
			filter->nadded = pg_atomic_read_u64(&filter->shared->nadded);
			filter->state = FILTER_READY;
		}
	}
	if (filter->state != FILTER_READY)
		return false;
	probe->attached = true;
	probe->counters->nadded = filter->nadded;
	probe->counters->size = size_of(filter);
	return true;
}

/*
 * A sample is full.  A probe that drops too little pauses, for twice as long
 * as the last time.
 */
static void
end_sample(Probe *probe)
{
	double		dropped = (double) probe->sample_dropped / probe->sampled;

	probe->rate = dropped / (probe->row_context != NULL ? 4 : 1);
	if (dropped * 100 < probe->spec->min_drop)
	{
		probe->pause = probe->next_pause;
		probe->next_pause = Min(probe->next_pause * 2, LAST_PAUSE);
		probe->counters->pauses++;
	}
	else
		probe->next_pause = FIRST_PAUSE;
	probe->sampled = probe->sample_dropped = 0;
}

/*
 * Order the probes by what they drop for their cost.
 */
static void
order_probes(ProbeState *node)
{
	for (int i = 1; i < node->nprobes; i++)
	{
		Probe	   *moving = node->order[i];
		int			j;

		for (j = i; j > 0 && node->order[j - 1]->rate < moving->rate; j--)
			node->order[j] = node->order[j - 1];
		node->order[j] = moving;
	}
}

/*
 * May the row match?
 */
static bool
passes(ProbeState *node, TupleTableSlot *slot)
{
	bool		pass = true;
	bool		sampled = false;

	for (int i = 0; pass && i < node->nprobes; i++)
	{
		Probe	   *probe = node->order[i];
		uint64		h;

		if (probe->pause > 0)
		{
			probe->pause--;
			continue;
		}
		if ((!probe->attached || BF_JOIN_FILTER_MUTANT == 2) && !attach(node, probe))
			continue;

		if (probe->row_context != NULL)
		{
			MemoryContext old;

			MemoryContextReset(probe->row_context);
			old = MemoryContextSwitchTo(probe->row_context);
			pass = hash_keys(probe->readers, probe->spec->nkeys, slot, NULL, &h);
			MemoryContextSwitchTo(old);
		}
		else
			pass = hash_keys(probe->readers, probe->spec->nkeys, slot, NULL, &h);
		pass = pass && bf_words_test(probe->filter->words, probe->filter->mask, h);

		probe->counters->probed++;
		probe->counters->dropped += !pass;
		probe->sample_dropped += !pass;
		if (++probe->sampled == SAMPLE_ROWS)
		{
			end_sample(probe);
			sampled = true;
		}
	}
	/* not before: each of them is to see the row */
	if (sampled)
		order_probes(node);
	return pass;
}

/*
 * What we return for a row of the child's.
 */
static inline TupleTableSlot *
result_of(PlanState *ps, TupleTableSlot *slot)
{
	ProjectionInfo *projection = ps->ps_ProjInfo;

	if (projection == NULL)
		return slot;
	if (TupIsNull(slot))
		return ExecClearTuple(projection->pi_state.resultslot);
	projection->pi_exprContext->ecxt_scantuple = slot;
	return ExecProject(projection);
}

/*
 * The child's next row.  Once a scan of a whole table has begun, and nothing is
 * to be done with its rows, not even to count them, this goes round ExecScan():
 * it saves what a node more costs, so that a probe that drops nothing loses
 * nothing.
 */
static inline TupleTableSlot *
next_row(const ProbeState *node, PlanState *child)
{
	const ScanState *scan = node->scan;

	if (scan == NULL || scan->ss_currentScanDesc == NULL || child->chgParam != NULL)
		return ExecProcNode(child);
	return table_scan_getnextslot(scan->ss_currentScanDesc, child->state->es_direction,
								  scan->ss_ScanTupleSlot) ?
		scan->ss_ScanTupleSlot : NULL;
}

static TupleTableSlot *
probe_exec(PlanState *ps)
{
	ProbeState *node = (ProbeState *) ps;
	PlanState  *child = outerPlanState(ps);

	for (;;)
	{
		TupleTableSlot *slot = next_row(node, child);

		if (TupIsNull(slot) || passes(node, slot))
			return result_of(ps, slot);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Nothing to probe: the same without a look at the rows. */
static TupleTableSlot *
probe_exec_off(PlanState *ps)
{
	return result_of(ps, ExecProcNode(outerPlanState(ps)));
}

/*
 * Count there.  Where shared memory comes or goes, filters do too.
 */
static void
use_counters(ProbeState *node, ProbeCounters *counters)
{
	for (int i = 0; i < node->nprobes; i++)
	{
		node->probes[i].counters = &counters[i];
		node->probes[i].attached = false;
	}
}

static void
probe_begin(CustomScanState *css, EState *estate, int eflags)
{
	ProbeState *node = (ProbeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	PlanState  *child;
	ListCell   *lc;
	int			i = 0;

	adopt_child(css, estate, eflags);
	node->nprobes = list_length(plan->custom_private);
	node->probes = palloc0(node->nprobes * sizeof(Probe));
	node->order = palloc(node->nprobes * sizeof(Probe *));
	node->off = !bf_join_filter || estate->es_epq_active != NULL;
	css->ss.ps.ExecProcNode = node->off ? probe_exec_off : probe_exec;
	child = outerPlanState(css);
	if (IsA(child, SeqScanState) && child->qual == NULL && child->ps_ProjInfo == NULL &&
		child->instrument == NULL)
		node->scan = (ScanState *) child;
	foreach(lc, plan->custom_private)
	{
		Probe	   *probe = &node->probes[i];

		node->order[i++] = probe;
		probe->spec = bf_read_join_spec(lfirst(lc));
		if (node->off)
			continue;
		probe->filter = meet(estate, probe->spec->param);
		probe->readers = make_readers(&css->ss.ps, probe->spec, NIL);
		probe->row_context = row_context_of(probe->spec, &css->ss.ps);
		probe->next_pause = FIRST_PAUSE;
	}
	node->nprocesses = 1;
	node->counters = palloc0(node->nprobes * sizeof(ProbeCounters));
	use_counters(node, node->counters);
}

static void
probe_rescan(CustomScanState *css)
{
	if (outerPlanState(css)->chgParam == NULL)
		ExecReScan(outerPlanState(css));
}

static Size
probe_estimate_dsm(CustomScanState *css, ParallelContext *pcxt)
{
	ProbeState *node = (ProbeState *) css;

	return mul_size(mul_size(pcxt->nworkers + 1, node->nprobes), sizeof(ProbeCounters));
}

static void
probe_initialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	ProbeState *node = (ProbeState *) css;
	ProbeCounters *before = node->counters;
	ProbeCounters *counters = coordinate;

	memset(counters, 0, probe_estimate_dsm(css, pcxt));
	/* what was counted so far, of all processes, goes on as the leader's */
	for (int i = 0; i < node->nprobes * node->nprocesses; i++)
	{
		ProbeCounters *sum = &counters[i % node->nprobes];

		sum->probed += before[i].probed;
		sum->dropped += before[i].dropped;
		sum->pauses += before[i].pauses;
	}
	if (!node->in_shared_memory)
		pfree(before);
	node->counters = counters;
	node->nprocesses = pcxt->nworkers + 1;
	node->in_shared_memory = true;
	use_counters(node, counters);
}

/* The counters go on; shared filters are built again. */
static void
probe_reinitialize_dsm(CustomScanState *css, ParallelContext *pcxt, void *coordinate)
{
	use_counters((ProbeState *) css, coordinate);
}

static void
probe_initialize_worker(CustomScanState *css, shm_toc *toc, void *coordinate)
{
	ProbeState *node = (ProbeState *) css;

	node->counters = coordinate;
	use_counters(node, &node->counters[(ParallelWorkerNumber + 1) * node->nprobes]);
}

/*
 * Shared memory is about to go: keep what was counted there.
 */
static void
probe_shutdown(CustomScanState *css)
{
	ProbeState *node = (ProbeState *) css;

	if (node->in_shared_memory)
	{
		Size		size = (Size) node->nprobes * node->nprocesses * sizeof(ProbeCounters);
		ProbeCounters *kept = MemoryContextAlloc(css->ss.ps.state->es_query_cxt, size);

		memcpy(kept, node->counters, size);
		node->counters = kept;
		node->in_shared_memory = false;
		use_counters(node, kept);

		/* The builder may have run in the workers alone. */
		for (int i = 0; i < node->nprobes * node->nprocesses; i++)
		{
			JoinFilter *filter = node->probes[i % node->nprobes].filter;

			if (filter != NULL && kept[i].size > filter->shown_size)
			{
				filter->shown_state = FILTER_READY;
				filter->shown_nadded = kept[i].nadded;
				filter->shown_size = kept[i].size;
			}
		}
	}
}

static void
probe_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	ProbeState *node = (ProbeState *) css;
	int			first = 0;

	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainOpenGroup("Bloom Filters", "Bloom Filters", false, es);
	for (int i = 0; i < node->nprobes; i++)
	{
		const BfJoinSpec *spec = node->probes[i].spec;
		char	   *keys = deparse_keys(css, ancestors, es, first, spec->nkeys);
		ProbeCounters sum = {0};

		first += spec->nkeys;
		for (int j = 0; j < node->nprocesses; j++)
		{
			const ProbeCounters *one = &node->counters[j * node->nprobes + i];

			sum.probed += one->probed;
			sum.dropped += one->dropped;
			sum.pauses += one->pauses;
		}
		if (es->format == EXPLAIN_FORMAT_TEXT)
		{
			StringInfoData text;

			initStringInfo(&text);
			appendStringInfo(&text, "%d on (%s)", spec->number, keys);
			if (es->analyze)
			{
				appendStringInfo(&text, "  Probed: " UINT64_FORMAT "  Dropped: " UINT64_FORMAT,
								 sum.probed, sum.dropped);
				if (sum.pauses > 0)
					appendStringInfo(&text, "  Switched Off: " UINT64_FORMAT, sum.pauses);
			}
			ExplainPropertyText("Bloom Filter", text.data, es);
		}
		else
		{
			ExplainOpenGroup("Bloom Filter", NULL, true, es);
			ExplainPropertyInteger("Bloom Filter", NULL, spec->number, es);
			ExplainPropertyText("Probed Keys", keys, es);
			if (es->analyze)
			{
				ExplainPropertyInteger("Rows Probed", NULL, (int64) sum.probed, es);
				ExplainPropertyInteger("Rows Dropped", NULL, (int64) sum.dropped, es);
				ExplainPropertyInteger("Switched Off", NULL, (int64) sum.pauses, es);
			}
			ExplainCloseGroup("Bloom Filter", NULL, true, es);
		}
	}
	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainCloseGroup("Bloom Filters", "Bloom Filters", false, es);
}

static const CustomExecMethods probe_exec_methods = {
	.CustomName = "BloomProbe",
	.BeginCustomScan = probe_begin,
	.ExecCustomScan = pass_row, /* never: see ExecProcNode */
	.EndCustomScan = end_node,
	.ReScanCustomScan = probe_rescan,
	.MarkPosCustomScan = mark_node,
	.RestrPosCustomScan = restore_node,
	.EstimateDSMCustomScan = probe_estimate_dsm,
	.InitializeDSMCustomScan = probe_initialize_dsm,
	.ReInitializeDSMCustomScan = probe_reinitialize_dsm,
	.InitializeWorkerCustomScan = probe_initialize_worker,
	.ShutdownCustomScan = probe_shutdown,
	.ExplainCustomScan = probe_explain,
};

static Node *
probe_create(CustomScan *plan)
{
	ProbeState *node = (ProbeState *) newNode(sizeof(ProbeState), T_CustomScanState);

	node->css.methods = &probe_exec_methods;
	return (Node *) node;
}

const CustomScanMethods bf_join_probe_methods = {
	.CustomName = "BloomProbe",
	.CreateCustomScanState = probe_create,
};

void
bf_init_joinexec(void)
{
	RegisterCustomScanMethods(&bf_join_build_methods);
	RegisterCustomScanMethods(&bf_join_probe_methods);
}
