# shellcheck shell=bash
#
# What scripts/test runs with --more, --matrix and --valgrind: fuzzing, limits,
# a server with assertions, valgrind, other releases.  docs/trust.md tells what
# each is for.  Sourced after stages.sh.

# The server's own tests that are about plans, joins and what joins are part of
SERVER_TESTS=(test_setup create_function_c create_misc create_operator create_procedure create_table
	create_type create_schema create_index create_view create_aggregate select inherit triggers
	updatable_views select_into select_distinct select_distinct_on select_implicit select_having
	subselect union case join aggregates portals arrays update delete matview lock rowsecurity
	tablesample groupingsets generated generated_stored join_hash merge tsrf tid tidscan tidrangescan
	incremental_sort rules stats_ext select_parallel write_parallel select_views portals_p2 foreign_key
	window functional_deps equivclass plancache limit plpgsql temp domain rangefuncs prepare truncate
	rowtypes returning with partition_join partition_prune hash_part partition_aggregate memoize
	insert_conflict privileges)

# SQL tests that valgrind gets through in a minute or so
VALGRIND_SHORT=(type construct element malformed modify probe aggregate maintain)

# ---------------------------------------------------------------------------
# A server with assertions, from the distribution's source package
# ---------------------------------------------------------------------------

# Where the server's packages come from, as entries for their sources
source_entries()
{
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg option=

	[ ! -f "$keyring" ] || option="[signed-by=$keyring] "
	apt-cache policy "$1" |
		sed -nE "s!^ +[0-9]+ (https?:[^ ]+) ([^ ]+)/([^ /]+) .* Packages\$!deb-src $option\\1 \\2 \\3!p" |
		sort -u
}

# The versions of a package, newest first
versions()
{
	apt-cache madison "$1" | awk -F' *[|] *' '!seen[$2]++ { print $2 }'
}

# fetch_source PACKAGE: to $WORK/pgsrc.  With lists of its own, so that the
# machine's sources stay as they are.  A security update's source is sometimes
# not to be had: the version before it is as good.
fetch_source()
{
	local package=$1 version
	local apt=(-qq -o "Dir::Etc::sourcelist=$WORK/apt/sources.list" -o Dir::Etc::sourceparts=-
		-o "Dir::State::lists=$WORK/apt/lists" -o "Dir::Cache=$WORK/apt/cache"
		-o APT::Sandbox::User=root)

	as_server mkdir -p "$WORK/apt/lists/partial" "$WORK/apt/cache/archives/partial" "$WORK/apt/src"
	source_entries "$package" | as_server tee "$WORK/apt/sources.list"
	as_server apt-get "${apt[@]}" update || return
	for version in $(versions "$package"); do
		if (cd "$WORK/apt/src" && as_server apt-get "${apt[@]}" source --download-only "$package=$version"); then
			# the distribution's patches put files where we must not
			as_server mkdir "$WORK/pgsrc" &&
				as_server tar -C "$WORK/pgsrc" --strip-components=1 -xf "$WORK"/apt/src/*.orig.tar.*[2z]
			return
		fi
	done
	echo "no source of $package to be had"
	return 1
}

# Those of contrib that the tests ask for
contrib_modules()
{
	local name

	grep -rhoiE 'CREATE EXTENSION (IF NOT EXISTS )?[a-z_]+' sql test |
		sed 's/.* //' | sort -u |
		while read -r name; do
			[ ! -d "$WORK/pgsrc/contrib/$name" ] || echo "$name"
		done
}

# USE_VALGRIND tells valgrind about memory contexts, and costs little without it
build_server()
{
	local name

	cd "$WORK/pgsrc" || return
	as_server ./configure -q --prefix="$WORK/pg" --enable-cassert --enable-debug \
		--without-readline --without-zlib --without-icu \
		CFLAGS=-O1 CPPFLAGS=-DUSE_VALGRIND &&
		as_server nice make -s -j "$(nproc)" &&
		as_server make -s install || return
	cd "$WORK/src" || return
	for name in $(contrib_modules); do
		as_server make -s -C "$WORK/pgsrc/contrib/$name" install || return
	done
}

fetch_server_source()
{
	fetch_source "postgresql-$("$PG_BIN/postgres" --version | sed -E 's/.* ([0-9]+).*/\1/')"
}

get_assert_server()
{
	fetch_server_source && build_server
}

# The extension for that server, and the server
switch_to_assert_server()
{
	stop_server
	as_server rm -rf "$WORK/data" &&
		run_make -s clean &&
		PG_CONFIG=$WORK/pg/bin/pg_config &&
		PG_BIN=$WORK/pg/bin &&
		build COPT='-O1 -Werror' &&
		as_server make -s -C "$WORK/src" PG_CONFIG="$PG_CONFIG" install &&
		start_server
}

# ---------------------------------------------------------------------------
# Valgrind
# ---------------------------------------------------------------------------

start_under_valgrind()
{
	stop_server
	as_server mkdir -p "$WORK/valgrind"
	launch as_server valgrind --quiet --trace-children=yes --leak-check=no --gen-suppressions=all \
		--suppressions="$WORK/pgsrc/src/tools/valgrind.supp" \
		--error-markers=VALGRIND-BEGIN,VALGRIND-END --log-file="$WORK/valgrind/%p.log" \
		"$PG_BIN/postgres" -D "$WORK/data" >>"$WORK/log/server" 2>&1
	for _ in {1..120}; do
		if as_server "$PG_BIN/pg_isready" -q; then
			return
		fi
		sleep 1
	done
	return 1
}

# under_valgrind TEST...: these SQL tests; what valgrind finds is a failed one
under_valgrind()
{
	local status=0 found

	run_make installcheck ISOLATION= TAP_TESTS= REGRESS="$*" || status=$?
	stop_server
	found=$(cat "$WORK"/valgrind/*.log | grep -c VALGRIND-BEGIN || :)
	if [ "$found" -gt 0 ]; then
		cat "$WORK"/valgrind/*.log | head -n 200
		echo "not ok 1 - errors found by valgrind: $found"
		status=1
	else
		echo "ok 1 - no error found by valgrind, in $(find "$WORK/valgrind" -type f | wc -l) processes"
	fi
	return "$status"
}

# ---------------------------------------------------------------------------
# The server's own regression tests, with join filters
# ---------------------------------------------------------------------------

# set_join_filter VALUE: for all sessions; forced, since the tests' tables are small
set_join_filter()
{
	as_server "$PG_BIN/psql" -X -q -v ON_ERROR_STOP=1 <<-EOF
		LOAD 'bloomfilter';
		ALTER SYSTEM SET session_preload_libraries = bloomfilter;
		ALTER SYSTEM SET bloomfilter.join_filter = $1;
		ALTER SYSTEM SET bloomfilter.join_filter_force = $1;
		SELECT pg_reload_conf();
	EOF
}

# Results of all kinds of plans, without and with filters, must be the same; what
# the tests expect is of no matter, so that a test that needs another one may fail
run_server_tests()
{
	local dir=$WORK/pgsrc/src/test/regress value name tests=()

	for name in "${SERVER_TESTS[@]}"; do
		[ ! -f "$dir/sql/$name.sql" ] || tests+=("$name")
	done
	for value in off on; do
		set_join_filter "$value" &&
			as_server mkdir -p "$WORK/server-$value" || return
		(cd "$dir" &&
			as_server ./pg_regress --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
				--bindir="$PG_BIN" --dlpath="$dir" --inputdir="$dir" \
				--outputdir="$WORK/server-$value" "${tests[@]}" >"$WORK/log/server-tests-$value") || :
	done
	set_join_filter off &&
		as_server /usr/bin/python3 scripts/server_suite.py "$WORK/server-off" "$WORK/server-on"
}

# ---------------------------------------------------------------------------
# Other releases
# ---------------------------------------------------------------------------

can_chroot()
{
	[ "$(id -u)" -eq 0 ] && unshare --mount --pid --fork true 2>/dev/null
}

# in_chroot DIR COMMAND...: with a /proc and a /dev/shm that end with it
in_chroot()
{
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --kill-child sh -c '
		mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" &&
		chmod 1777 "$0/dev/shm" "$0/tmp" && exec chroot "$0" "$@"' \
		"$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "${@:2}"
}

# make_chroot SUITE: with this tree in /bloomfilter
make_chroot()
{
	local dir=$WORK/chroot/$1

	mkdir -p "$dir"
	debootstrap --variant=minbase "$1" "$dir" "${BLOOM_MIRROR:-http://deb.debian.org/debian}" || return
	# no server but ours, and a suite that is not signed anew every week is as good
	mkdir -p "$dir/etc/postgresql-common" "$dir/bloomfilter"
	echo 'create_main_cluster = false' >"$dir/etc/postgresql-common/createcluster.conf"
	printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
	chmod 755 "$dir/usr/sbin/policy-rc.d"
	echo 'Acquire::Check-Valid-Until "false";' >"$dir/etc/apt/apt.conf.d/90bloomfilter"
	tar -C "$WORK/pristine" -cf - . | tar -C "$dir/bloomfilter" -xf - --no-same-owner
}

# carry_servers SUITE: the servers of this machine and of the chroots before it,
# with the extension in them, to /old, for pg_upgrade to start from.  They run
# with the libraries that their own release had, where that one has others.
carry_servers()
{
	local dir=$WORK/chroot/$1 from version name found

	for from in '' "$WORK"/chroot/*; do
		[ "$from" != "$dir" ] || continue
		for version in "$from"/usr/lib/postgresql/*; do
			[ -f "$version/lib/bloomfilter.so" ] || continue
			version=$(basename "$version")
			mkdir -p "$dir/old/lib" "$dir/old/usr/lib/postgresql" "$dir/old/usr/share/postgresql"
			# last, so that the release's own libraries come first
			echo /old/lib >"$dir/etc/ld.so.conf.d/zz-old.conf"
			cp -a "$from/usr/lib/postgresql/$version" "$dir/old/usr/lib/postgresql/"
			cp -a "$from/usr/share/postgresql/$version" "$dir/old/usr/share/postgresql/"
			# what a library needs is known when it is there
			while name=$(missing_libraries "$dir" "$version") && [ -n "$name" ]; do
				for name in $name; do
					found=$(find "$from"/usr/lib/*-linux-gnu* "$from"/lib/*-linux-gnu* -name "$name" 2>/dev/null | head -n 1)
					[ -n "$found" ] || {
						echo "no $name for PostgreSQL $version"
						return 1
					}
					cp -L "$found" "$dir/old/lib/"
				done
				in_chroot "$dir" ldconfig
			done
		done
	done
}

missing_libraries()
{
	# shellcheck disable=SC2016
	in_chroot "$1" sh -c 'ldd /old/usr/lib/postgresql/$0/bin/* /old/usr/lib/postgresql/$0/lib/bloomfilter.so \
		/old/usr/lib/postgresql/$0/lib/plpgsql.so 2>/dev/null || :' "$2" |
		awk '/not found/ { print $1 }' | sort -u
}

# run_in_chroots OPTION SUITE...
run_in_chroots()
{
	local option=$1 suite status=0 old

	shift
	for suite; do
		{
			{ [ -d "$WORK/chroot/$suite/bloomfilter" ] || make_chroot "$suite"; } &&
				in_chroot "$WORK/chroot/$suite" apt-get -qq update &&
				in_chroot "$WORK/chroot/$suite" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install \
					--no-install-recommends postgresql libb2-1 &&
				carry_servers "$suite"
		} >"$WORK/log/chroot-$suite" 2>&1 || {
			show_log "$WORK/log/chroot-$suite"
			return 1
		}
		echo "$suite:"
		old=$(cd "$WORK/chroot/$suite" && find old/usr/lib/postgresql -maxdepth 2 -name bin -printf ':/%p')
		in_chroot "$WORK/chroot/$suite" env BLOOM_OLD_BINDIRS="${old#:}" \
			nice bash /bloomfilter/scripts/test "$option" || status=$?
	done
	return "$status"
}

# What each release's run printed about itself
show_versions()
{
	grep -hE '^(PostgreSQL|postgres) .*gcc' "$WORK/log/$1" | sed 's/^/    /' || :
}

# ---------------------------------------------------------------------------
# Modes
# ---------------------------------------------------------------------------

more_packages()
{
	local clang

	# the clang that the server's headers came with, and its libFuzzer
	clang=$(sed -n 's/^CLANG = .*clang-\([0-9]*\)$/\1/p' /usr/lib/postgresql/*/lib/pgxs/src/Makefile.global |
		sort -n | tail -n 1)
	[ -z "$clang" ] || echo "clang-$clang" "libclang-rt-$clang-dev"
	echo bison flex bzip2 xz-utils valgrind debootstrap
}

# The parts that take minutes or much memory, too
run_long()
{
	BLOOM_SLOW=1 run_python "$@"
}

# What the mirror does not have today is not a failure of ours
try_step()
{
	step "$@" || {
		echo '    not run: it is not to be had'
		return 1
	}
}

test_more()
{
	local suite server='' releases=()

	install_missing make gcc libb2-dev libxxhash-dev perl libipc-run-perl python3
	# shellcheck disable=SC2046
	install_missing $(more_packages)
	prepare
	# for the chroots: what is in src changes while they are made
	cp -a "$WORK/src" "$WORK/pristine"
	compile
	step 'Install the extension' install_extension
	step 'Start a throw-away server' start_server
	if try_step "Fetch the server's source" fetch_server_source; then
		server=1
		begin source build_server
	fi
	step 'Compile the fuzz targets' build fuzz-targets
	stage fuzz 'Fuzz targets, 20 seconds each' count_closing run_make -s fuzz
	stage limits 'Limits, in full' count_closing run_long test/py/test_limits.py
	[ -z "$server" ] || account source 'Build a server with assertions' count_one
	if can_chroot; then
		for suite in "${SUITES[@]}"; do
			if try_step "Make a system of $suite" make_chroot "$suite"; then
				releases+=("$suite")
			fi
		done
		[ ${#releases[@]} -eq 0 ] || begin releases run_in_chroots --server "${releases[@]}"
	else
		echo '  Other releases: not run, this needs root and its own mounts'
	fi
	if [ -n "$server" ]; then
		test_with_assertions
	fi
	if [ ${#releases[@]} -gt 0 ]; then
		account releases "Other releases: ${releases[*]}" count_closing
		show_versions releases
	fi
}

test_with_assertions()
{
	step 'Start the server with assertions' switch_to_assert_server
	stage assert-regress 'Assertions: SQL' count_regress run_make installcheck ISOLATION= TAP_TESTS=
	stage assert-isolation 'Assertions: isolation' count_regress run_make installcheck REGRESS= TAP_TESTS=
	export BLOOM_SEED=$RANDOM
	stage assert-sqlfuzz "Assertions: random SQL, seed $BLOOM_SEED" count_closing \
		run_python test/py/test_sqlfuzz.py
	stage assert-server "Assertions: the server's own tests, join filters on" count_closing \
		run_server_tests
	step 'Start that server under valgrind' start_under_valgrind
	stage valgrind 'Valgrind: some SQL tests' count_regress under_valgrind "${VALGRIND_SHORT[@]}"
}

test_matrix()
{
	local suite

	can_chroot || die 'the matrix needs root and its own mounts'
	install_missing make gcc libb2-dev libxxhash-dev perl libipc-run-perl python3 debootstrap
	prepare
	# for the chroots: what is in src changes while they are made
	cp -a "$WORK/src" "$WORK/pristine"
	compile
	step 'Install the extension' install_extension
	for suite in "${SUITES[@]}"; do
		stage "$suite" "All tests on $suite" count_closing run_in_chroots --all "$suite"
		show_versions "$suite"
	done
}

test_valgrind()
{
	install_missing make gcc libb2-dev libxxhash-dev perl libipc-run-perl python3 \
		bison flex bzip2 xz-utils valgrind
	prepare
	compile
	stage source 'Build a server with assertions' count_one get_assert_server
	step 'Start it' switch_to_assert_server
	step 'Start it under valgrind' start_under_valgrind
	# shellcheck disable=SC2046
	stage valgrind 'Valgrind: all SQL tests' count_regress under_valgrind $(make_variable REGRESS)
}
