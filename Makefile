EXTENSION = bloomfilter
MODULE_big = bloomfilter
DATA = bloomfilter--1.0.sql
PGFILEDESC = "bloomfilter - Bloom filters as a data type"

CORE_OBJS = core/blocked.o core/counting.o core/cuckoo.o core/filter.o \
	core/format.o core/hash.o core/kind.o core/layers.o core/standard.o
CORE_HEADERS = core/bf.h core/bytes.h core/hash.h core/positions.h core/words.h
TYPE_OBJS = type/aggregate.o type/collect.o type/construct.o type/element.o type/expanded.o type/info.o \
	type/inout.o type/maintain.o type/modify.o type/probe.o type/scalable.o type/slices.o type/value.o
PLANNER_OBJS = planner/joinexec.o planner/joinplan.o planner/selectivity.o
INDEX_OBJS = index/am.o index/build.o index/functions.o index/key.o index/open.o index/pages.o index/report.o
OBJS = bloomfilter.o $(CORE_OBJS) $(TYPE_OBJS) $(PLANNER_OBJS) $(INDEX_OBJS)

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --inputdir=$(srcdir) --load-extension=bloomfilter
ISOLATION = joinfilter live_build live_growth live_serializable maintain rebuild
ISOLATION_OPTS = --inputdir=$(srcdir)/test/isolation --load-extension=bloomfilter

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)

# The server's headers are not clean under -Wextra: -isystem spares us that.
PG_CPPFLAGS = -I$(srcdir) -isystem $(shell $(PG_CONFIG) --includedir-server)
PG_CFLAGS = -Wall -Wextra -Wno-declaration-after-statement -Wno-unused-parameter
SHLIB_LINK = -lb2 -lm

EXTRA_CLEAN = build

include $(PGXS)

# Servers are often built without --enable-depend.
$(CORE_OBJS) $(CORE_OBJS:.o=.bc): $(CORE_HEADERS)
$(TYPE_OBJS) $(TYPE_OBJS:.o=.bc) $(PLANNER_OBJS) $(PLANNER_OBJS:.o=.bc): $(CORE_HEADERS) type/type.h type/collect.h \
	type/expanded.h type/slices.h
bloomfilter.o bloomfilter.bc $(PLANNER_OBJS) $(PLANNER_OBJS:.o=.bc): planner/joinfilter.h
$(INDEX_OBJS) $(INDEX_OBJS:.o=.bc): $(CORE_HEADERS) type/type.h index/index.h

# ---------------------------------------------------------------------------
# Tests of the core, without a server
# ---------------------------------------------------------------------------
CORE_SRCS = $(CORE_OBJS:.o=.c)
CORE_TEST_CFLAGS = -std=gnu11 -g -Wall -Wextra $(COPT) -I$(srcdir)/core

CORE_UNIT_TESTS = build/unit build/layouts

$(CORE_UNIT_TESTS): build/%: test/core/%.c $(CORE_SRCS) $(CORE_HEADERS) \
		test/core/golden.h test/core/golden_layouts.h
	@mkdir -p build
	$(CC) $(CORE_TEST_CFLAGS) -O1 -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -o $@ $(filter %.c,$^) -lcmocka -lb2 -lm

# The same without sanitizers: up to a million elements, all seeds.
build/layouts-large: test/core/layouts.c test/core/golden_layouts.h $(CORE_SRCS) $(CORE_HEADERS)
	@mkdir -p build
	$(CC) $(CORE_TEST_CFLAGS) -O2 -o $@ $(filter %.c,$^) -lcmocka -lb2 -lm

build/vectors: test/core/vectors.c $(CORE_SRCS) $(CORE_HEADERS)
	@mkdir -p build
	$(CC) $(CORE_TEST_CFLAGS) -O1 -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -o $@ $(filter %.c,$^) -lcmocka -lb2 -lm

build/rates: test/core/rates.c $(CORE_SRCS) $(CORE_HEADERS)
	@mkdir -p build
	$(CC) $(CORE_TEST_CFLAGS) -O2 -o $@ $(filter %.c,$^) -lb2 -lm

build/bench: bench/core.c $(CORE_SRCS) $(CORE_HEADERS)
	@mkdir -p build
	$(CC) $(CORE_TEST_CFLAGS) -O2 -o $@ $(filter %.c,$^) -lb2 -lm

.PHONY: unitcheck ratecheck
unitcheck: $(CORE_UNIT_TESTS) build/layouts-large build/vectors
	for test in $(CORE_UNIT_TESTS) build/layouts-large; do $$test || exit 1; done
	build/vectors $(srcdir)/test/vectors.txt

ratecheck: build/rates
	build/rates
