# shellcheck shell=bash
#
# What scripts/quickstart and scripts/test share: packages, a build, and a
# throw-away server.  Sourced by a script that runs with set -euo pipefail.
#
# All of it happens in one temporary directory, $WORK:
#
#   src/   a copy of this tree: no build product lands in the checkout, and the
#          server's user can read it even where the checkout is private
#   data/  the server's files; its socket is in $WORK itself
#   log/   what the steps printed

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
WORK=

# Settings that are meant for another server, or for a make above us
OWN_PG_CONFIG=${PG_CONFIG:-}
unset "${!PG@}" MAKEFLAGS MAKELEVEL
PG_CONFIG=$OWN_PG_CONFIG
export LC_ALL=C.UTF-8

die()
{
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		echo "this step needs root, and there is no sudo: $*" >&2
		return 1
	fi
}

# The server refuses to run as root
server_user()
{
	if [ "$(id -u)" -ne 0 ]; then
		id -un
	elif id postgres >/dev/null 2>&1; then
		echo postgres
	else
		echo nobody
	fi
}

# setpriv and not runuser or su: it leaves no process in between, so that what
# ends the command's process group ends the command
as_server()
{
	local user

	if [ "$(id -u)" -eq 0 ]; then
		user=$(server_user)
		setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups \
			env HOME="$WORK" "$@"
	else
		"$@"
	fi
}

# step TEXT COMMAND...: a line on the screen; what the command prints is shown
# only if it fails.
step()
{
	local text=$1 start=$SECONDS

	shift
	printf '  %-58s' "$text"
	if "$@" >"$WORK/log/step" 2>&1 </dev/null; then
		printf '%5d s\n' $((SECONDS - start))
	else
		printf ' failed\n\n'
		show_log "$WORK/log/step"
		return 1
	fi
}

# The end of a log; of a long one, the lines that tell as well
show_log()
{
	local telling='(^|[^_[:alnum:]])(FAILED|not ok|error:|warning:|Traceback|(ERROR|FATAL|E):)'

	{
		if [ "$(wc -l <"$1")" -gt 30 ]; then
			grep -nE "$telling" "$1" | head -n 20 || :
			echo ...
		fi
		tail -n 30 "$1"
	} | sed 's/^/    /'
}

# ---------------------------------------------------------------------------
# Packages
# ---------------------------------------------------------------------------

missing_packages()
{
	local package

	for package; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
			echo "$package"
	done
}

has_headers()
{
	[ -x "$1/bin/initdb" ] && [ -x "$1/bin/pg_config" ] &&
		[ -f "$("$1/bin/pg_config" --includedir-server)/postgres.h" ]
}

installed_servers()
{
	local dirs=(/usr/lib/postgresql/*/)

	printf '%s\n' "${dirs[@]%/}" | sort -rV
}

# The newest PostgreSQL with a server and its headers, or the one that the
# caller names with PG_CONFIG.
find_postgres()
{
	local dir

	if [ -z "$PG_CONFIG" ]; then
		for dir in $(installed_servers); do
			if has_headers "$dir"; then
				PG_CONFIG=$dir/bin/pg_config
				break
			fi
		done
	fi
	[ -n "$PG_CONFIG" ] && PG_BIN=$("$PG_CONFIG" --bindir)
}

# Headers for the server that is there; failing that, the distribution's server
postgres_packages()
{
	local version

	version=$(basename "$(installed_servers | head -n 1)")
	if [ ! -x "/usr/lib/postgresql/$version/bin/initdb" ]; then
		version=$(apt-cache depends postgresql |
			sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p')
	fi
	missing_packages "postgresql-$version" "postgresql-server-dev-$version"
}

apt_install()
{
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -o DPkg::Lock::Timeout=120 -qq -y install --no-install-recommends "$@"
}

# install_missing PACKAGE...: these, and PostgreSQL.  Nothing is done, and root
# is not needed, where all of it is there.
install_missing()
{
	local missing

	mapfile -t missing < <(missing_packages "$@")
	if [ ${#missing[@]} -gt 0 ] || ! find_postgres; then
		command -v apt-get >/dev/null ||
			die "no apt-get here; please install: ${missing[*]}, PostgreSQL with its server headers"
		step 'Fetch the package lists' as_root apt-get -qq update
		find_postgres || mapfile -t -O ${#missing[@]} missing < <(postgres_packages)
		step "Install missing packages (${#missing[@]})" apt_install "${missing[@]}"
		find_postgres || die 'found no PostgreSQL server with its headers; name one with PG_CONFIG=…'
	fi
}

# ---------------------------------------------------------------------------
# The temporary directory, and its end
# ---------------------------------------------------------------------------

# Not in $TMPDIR: it may be closed to the server's user, too small (a tmpfs), or
# too long for a socket's path (107 bytes).
make_work()
{
	WORK=$(mktemp -d /var/tmp/bloomfilter.XXXXXX)
	mkdir "$WORK/log"
	trap clean_up EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# launch COMMAND...: run it in the background, in a process group of its own,
# for clean_up to end.  Its process id is in $!.
launch()
{
	set -m
	"$@" </dev/null &
	set +m
}

stop_server()
{
	if [ -f "$WORK/data/postmaster.pid" ]; then
		as_server "$PG_BIN/pg_ctl" -D "$WORK/data" -m immediate -w stop >/dev/null 2>&1 || :
	fi
}

clean_up()
{
	local group

	trap - EXIT HUP INT TERM
	cd /
	for group in $(jobs -p); do
		kill -- "-$group" 2>/dev/null || :
	done
	stop_server
	rm -rf "$WORK"
}

# ---------------------------------------------------------------------------
# Build
# ---------------------------------------------------------------------------

# Root's files become the server user's
hand_over()
{
	[ "$(id -u)" -ne 0 ] || chown -R "$(server_user)" "$1"
}

# What git ignores (build products, perhaps of another PostgreSQL) stays behind.
copy_source()
{
	mkdir "$WORK/src" &&
		tar -C "$TOP" --exclude=./.git -cf - . | tar -C "$WORK/src" -xf - --no-same-owner &&
		{
			git -C "$TOP" ls-files -z -o -i --exclude-standard --directory 2>/dev/null || :
		} | (cd "$WORK/src" && xargs -0 -r rm -rf --) &&
		hand_over "$WORK" &&
		cd "$WORK/src" &&
		run_make clean
}

run_make()
{
	as_server make -C "$WORK/src" PG_CONFIG="$PG_CONFIG" "$@"
}

build()
{
	run_make -s -j "$(nproc)" "$@"
}

install_extension()
{
	as_root make -C "$WORK/src" PG_CONFIG="$PG_CONFIG" install
}

# ---------------------------------------------------------------------------
# The throw-away server
# ---------------------------------------------------------------------------

# It listens on a socket in a directory of its own, which only its user can
# enter, and on no network address: so the port is free, and trust is safe.
start_server()
{
	as_server "$PG_BIN/initdb" -D "$WORK/data" -U postgres --auth=trust \
		--encoding=UTF8 --no-locale --no-sync &&
		as_server tee -a "$WORK/data/postgresql.conf" <<-EOF &&
			listen_addresses = ''
			unix_socket_directories = '$WORK'
			fsync = off
			max_wal_size = 4GB
		EOF
		as_server "$PG_BIN/pg_ctl" -D "$WORK/data" -l "$WORK/log/server" -w start &&
		export PGHOST=$WORK PGPORT=5432 PGUSER=postgres PGDATABASE=postgres &&
		export PATH="$PG_BIN:$PATH"
}
