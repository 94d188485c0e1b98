# shellcheck shell=bash
#
# The stages of scripts/test: each runs a program, counts the tests that passed
# and failed, and prints a line.  Sourced after lib.sh.

# ---------------------------------------------------------------------------
# Counting: each of these reads a log and prints "passed failed"; the exit
# status is its argument
# ---------------------------------------------------------------------------

count_one()
{
	[ "$1" -eq 0 ] && echo '1 0' || echo '0 1'
}

# cmocka's closing lines, one pair a program
count_cmocka()
{
	awk '/^\[  PASSED  \] [0-9]+ test\(s\)/ { p += $4 }
		 /^\[  FAILED  \] [0-9]+ test\(s\)/ { f += $4 }
		 END { print p + 0, f + 0 }'
}

# "N passed, N failed", perhaps behind a word and a colon
count_closing()
{
	sed -En 's/^([a-z]+: )?([0-9]+) passed, ([0-9]+) failed$/\2 \3/p' | awk '
		{ p += $1; f += $2 }
		END { print p + 0, f + 0 }'
}

# pg_regress before PostgreSQL 16 ("test x ... ok 5 ms"), and since (TAP)
count_regress()
{
	awk '/^ok [0-9]+ / || / \.\.\. ok / { p++ }
		 /^not ok [0-9]+ / || / \.\.\. FAILED/ { f++ }
		 END { print p + 0, f + 0 }'
}

# TAP without subtests, which are indented
count_tap()
{
	awk '/^ok / { p++ }
		 /^not ok / && !/# TODO/ { f++ }
		 END { print p + 0, f + 0 }'
}

# Python's unittest
count_unittest()
{
	awk '/^Ran [0-9]+ tests? in / { p += $2 }
		 /^FAILED \(/ {
			while (match($0, /(failures|errors|unexpected successes)=[0-9]+/)) {
				split(substr($0, RSTART, RLENGTH), part, "=")
				f += part[2]
				$0 = substr($0, RSTART + RLENGTH)
			}
		 }
		 END { print p - f, f + 0 }'
}

# node --test
count_node()
{
	awk '/^# pass [0-9]+$/ { p += $3 }
		 /^# (fail|cancelled) [0-9]+$/ { f += $3 }
		 END { print p + 0, f + 0 }'
}

# ---------------------------------------------------------------------------
# Stages
# ---------------------------------------------------------------------------

PASSED=0
FAILED=0
declare -A PROCESS

# begin NAME COMMAND...: run it in the background; its log has its name
begin()
{
	local name=$1

	shift
	launch "$@" >"$WORK/log/$name" 2>&1
	PROCESS[$name]=$!
}

# account NAME TEXT COUNT: wait for its end, and add it to the sum.  To die
# without a failed test is a failure, and so is to run no test.
account()
{
	local log=$WORK/log/$1 text=$2 count=$3 status=0 passed failed

	wait "${PROCESS[$1]}" || status=$?
	read -r passed failed < <("$count" "$status" <"$log")
	if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then
		failed=1
	fi
	PASSED=$((PASSED + passed))
	FAILED=$((FAILED + failed))
	printf '  %-58s%5d passed' "$text" "$passed"
	if [ "$failed" -eq 0 ]; then
		echo
	else
		printf ', %d failed (exit status %d)\n\n' "$failed" "$status"
		[ "$status" -ne 0 ] || [ "$passed" -gt 0 ] || echo '    no test ran'
		show_log "$log"
		show_diffs
		echo
	fi
}

# stage NAME TEXT COUNT COMMAND...
stage()
{
	local name=$1 text=$2 count=$3

	shift 3
	begin "$name" "$@"
	account "$name" "$text" "$count"
}

# pg_regress leaves the differences of a failed stage behind
show_diffs()
{
	local diffs

	for diffs in "$WORK"/src/regression.diffs "$WORK"/src/output_iso/regression.diffs; do
		if [ -s "$diffs" ]; then
			head -n 200 "$diffs" | sed 's/^/    /'
			rm "$diffs"
		fi
	done
}

# However the run ends, its last line says so
finish()
{
	local status=$?

	clean_up
	if [ "$status" -ne 0 ]; then
		FAILED=$((FAILED + 1))
		printf '\nstopped early (exit status %d)\n' "$status"
	fi
	printf '\n%d passed, %d failed\n' "$PASSED" "$FAILED"
	[ "$FAILED" -eq 0 ] || exit 1
}
