EXTENSION = bloomfilter
MODULE_big = bloomfilter
DATA = bloomfilter--1.0.sql
PGFILEDESC = "bloomfilter - Bloom filters as a data type"

CORE_OBJS = core/blocked.o core/counting.o core/cuckoo.o core/filter.o \
	core/format.o core/hash.o core/kind.o core/layers.o core/standard.o
CORE_HEADERS = core/bf.h core/bytes.h core/hash.h core/positions.h core/words.h
TYPE_OBJS = type/aggregate.o type/base64.o type/catalog.o type/collect.o type/construct.o type/element.o type/expanded.o type/info.o \
	type/inout.o type/maintain.o type/modify.o type/probe.o type/scalable.o type/slices.o type/value.o
PLANNER_OBJS = planner/joinexec.o planner/joinplan.o planner/selectivity.o
INDEX_OBJS = index/am.o index/build.o index/functions.o index/key.o index/open.o index/pages.o index/report.o
OBJS = bloomfilter.o $(CORE_OBJS) $(TYPE_OBJS) $(PLANNER_OBJS) $(INDEX_OBJS)

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
REGRESS_OPTS = --inputdir=$(srcdir) --load-extension=bloomfilter
ISOLATION = catalog joinfilter live_build live_growth live_serializable maintain rebuild
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

# ---------------------------------------------------------------------------
# Fuzzing, with libFuzzer: make fuzz FUZZ_SECONDS=600, or FUZZ_RUNS=10000000.
# The kept corpus is where it starts from; what it finds is in build/corpus.
# ---------------------------------------------------------------------------
FUZZ_CC = $(or $(CLANG),clang)
FUZZ_CFLAGS = -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter $(COPT) -I$(srcdir)/core \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
FUZZ_TARGETS = image ops input
FUZZ_SECONDS = 20
FUZZ_RUNS =

build/fuzz-image build/fuzz-ops: build/fuzz-%: test/fuzz/%.c test/fuzz/fuzz.h $(CORE_SRCS) $(CORE_HEADERS)
	@mkdir -p build
	$(FUZZ_CC) $(FUZZ_CFLAGS) -o $@ $(filter %.c,$^) -lb2 -lm

# Comparisons have nothing to tell of a program's steps, and cost half the time.
build/fuzz-ops: FUZZ_CFLAGS += -O2 -fno-sanitize-coverage=trace-cmp

# The type's input and output as they are; the server's base64 to compare with
build/fuzz-input: test/fuzz/input.c type/inout.c type/base64.c type/type.h $(CORE_SRCS) $(CORE_HEADERS)
	@mkdir -p build
	$(FUZZ_CC) $(FUZZ_CFLAGS) -D_GNU_SOURCE $(PG_CPPFLAGS) -o $@ $(filter %.c,$^) \
		$(foreach lib,libpgcommon.a libpgport.a,$(firstword $(wildcard $(pkglibdir)/$(lib) $(libdir)/$(lib)))) \
		-lb2 -lm

.PHONY: fuzz fuzz-targets
fuzz-targets: $(FUZZ_TARGETS:%=build/fuzz-%)
fuzz: fuzz-targets
	for target in $(FUZZ_TARGETS); do \
		mkdir -p build/corpus/$$target && \
		build/fuzz-$$target -max_len=1024 -verbosity=0 -print_final_stats=1 -artifact_prefix=build/$$target- \
			$(if $(FUZZ_RUNS),-runs=$(FUZZ_RUNS),-max_total_time=$(FUZZ_SECONDS)) \
			build/corpus/$$target $(srcdir)/test/fuzz/corpus/$$target && \
		echo "$$target: 1 passed, 0 failed" || exit 1; \
	done

.PHONY: unitcheck ratecheck
unitcheck: $(CORE_UNIT_TESTS) build/layouts-large build/vectors
	for test in $(CORE_UNIT_TESTS) build/layouts-large; do $$test || exit 1; done
	build/vectors $(srcdir)/test/vectors.txt

ratecheck: build/rates
	build/rates

# ---------------------------------------------------------------------------
# Releases: a commit as PGXN wants it
# ---------------------------------------------------------------------------
DISTVERSION = $(shell sed -n '1,/"version"/s/.*"version": "\(.*\)".*/\1/p' $(srcdir)/META.json)

COMMIT = HEAD

.PHONY: dist
dist:
	@mkdir -p build
	git -C $(srcdir) archive --format=zip --prefix=$(EXTENSION)-$(DISTVERSION)/ \
		-o $(CURDIR)/build/$(EXTENSION)-$(DISTVERSION).zip $(COMMIT)
