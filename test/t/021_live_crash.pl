# The live filter after kill -9: every key that was committed is contained.
#
# What a client was told to be committed it writes into a journal of its own.
# At a random moment of inserts, of layers' growth, of builds of all kinds and
# of checkpoints either one backend is killed, after which the postmaster lets
# all others end and recovers, or all processes of the server at once.  Then
# the journal's keys are looked up one by one, and bloom_index_check compares
# index and table.
#
# shared_buffers is smaller than the indexes and checkpoints are frequent, so
# that the files hold pages of all ages.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LiveFilter;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep time);

my $rounds = $slow ? 50 : 5;
my $seed = $ENV{BLOOM_SEED} // 42;
srand($seed);

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = new_node('crash', <<'EOF', allows_streaming => 1, extra => ['--wal-segsize=1']);
shared_buffers = 1MB
max_wal_size = 32MB
min_wal_size = 32MB
checkpoint_timeout = 30s
bgwriter_delay = 10ms
bgwriter_lru_maxpages = 1000
maintenance_work_mem = 1MB
min_parallel_table_scan_size = 0
restart_after_crash = on
EOF
$node->start;
create_extension($node);
$node->safe_psql('postgres', <<'EOF');
CREATE TABLE codes (code text, writer int);
CREATE INDEX large ON codes USING bloomfilter (code) WITH (capacity = 2000000);
CREATE INDEX small ON codes USING bloomfilter (code) WITH (capacity = 1);
CREATE INDEX rebuilt ON codes USING bloomfilter (code) WITH (capacity = 100);
CREATE INDEX pair ON codes USING bloomfilter (writer, code) WITH (capacity = 1000);
CREATE TABLE grown (code text, writer int);
CREATE INDEX grown_index ON grown USING bloomfilter (code) WITH (capacity = 1);
CREATE UNLOGGED TABLE unlogged (code text);
CREATE INDEX unlogged_index ON unlogged USING bloomfilter (code) WITH (capacity = 10);
CREATE TABLE journal (code text, of_table text);
EOF

# One writer's script: single rows, transactions with several, rows that are
# rolled back, rows in subtransactions, rows by the hundred.  \echo stands
# behind what it is about.
sub writer_script
{
	my ($table, $round, $writer) = @_;
	my $script = '';

	for my $i (1 .. 20000)
	{
		my $key = "$round.$writer.$i";
		my $kind = int(rand(12));

		if ($kind < 8)
		{
			$script .=
			  "INSERT INTO $table VALUES ('$key', $writer) RETURNING code;\n";
		}
		elsif ($kind == 8)
		{
			$script .= "BEGIN;\n"
			  . join('', map { "INSERT INTO $table VALUES ('$key.$_', $writer);\n" } 1 .. 5)
			  . "COMMIT;\n\\echo " . join(' ', map { "$key.$_" } 1 .. 5) . "\n";
		}
		elsif ($kind == 9)
		{
			$script .= "BEGIN;\nINSERT INTO $table VALUES ('$key', $writer);\n"
			  . "ROLLBACK;\n";

			# whoever adds the same key next finds its bits set already
			$script .=
			  "INSERT INTO $table VALUES ('$key', $writer) RETURNING code;\n";
		}
		elsif ($kind == 10)
		{
			$script .= "BEGIN;\nINSERT INTO $table VALUES ('$key.a', $writer);\n"
			  . "SAVEPOINT s;\nINSERT INTO $table VALUES ('$key.b', $writer);\n"
			  . "ROLLBACK TO s;\nINSERT INTO $table VALUES ('$key.c', $writer);\n"
			  . "COMMIT;\n\\echo $key.a $key.c\n";
		}
		else
		{
			$script .= "INSERT INTO $table SELECT '$key.' || j, $writer"
			  . " FROM generate_series(1, 100) j RETURNING code;\n";
		}
	}
	return $script;
}

my @ddl = (
	"CREATE INDEX built ON codes USING bloomfilter (code) WITH (capacity = 10); DROP INDEX built;\n",
	"CREATE INDEX CONCURRENTLY built ON codes USING bloomfilter (code);\nDROP INDEX CONCURRENTLY built;\n",
	"REINDEX INDEX rebuilt;\n",
	"REINDEX INDEX CONCURRENTLY rebuilt;\n",
	"VACUUM codes;\n");

# Kill at once, or one backend that is inserting or building
sub crash
{
	my ($all) = @_;

	if ($all)
	{
		kill_all($node);
		return;
	}
	my $pid = $node->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
		  . " AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1");
	kill('KILL', $pid) if $pid ne '';
}

# A journal is lines of keys
sub load_journal
{
	my ($file, $table) = @_;
	my $keys = '';
	my $n = 0;

	open(my $fh, '<', $file) or die "$file: $!";
	while (<$fh>)
	{
		foreach my $key (split)
		{
			$keys .= "$key\t$table\n";
			$n++;
		}
	}
	close $fh;
	my $copy = "$file.copy";
	open(my $out, '>', $copy) or die "$copy: $!";
	print $out $keys;
	close $out;
	$node->safe_psql('postgres', "\\copy journal FROM '$copy'");
	return $n;
}

my $journalled = 0;
for my $round (1 .. $rounds)
{
	my $all = $round % 2;
	my $ddl = $ddl[($round - 1) % @ddl];

	$node->safe_psql('postgres',
		"TRUNCATE grown; DELETE FROM journal WHERE of_table = 'grown';"
		  . "INSERT INTO unlogged VALUES ('before-$round')");

	my @files = map { "$dir/$round.$_" } 1 .. 5;
	my @writers = (
		start_psql($node, writer_script('codes', $round, 1), $files[0]),
		start_psql($node, writer_script('codes', $round, 2), $files[1]),
		start_psql($node, writer_script('grown', $round, 3), $files[2]));
	my @others = (
		start_psql($node, "DROP INDEX IF EXISTS built;\n" . $ddl x 2000, $files[3]),
		start_psql($node, "CHECKPOINT;\nSELECT pg_sleep(0.05);\n" x 1000,
			$files[4]));

	usleep(250_000 + int(rand(600_000)));
	crash($all);

	my @status = map { end_psql($_) } @writers, @others;
	is("@status[0 .. 2]", '2 2 2', "round $round: the writers lost their server");
	$all ? $node->start : $node->poll_query_until('postgres', 'SELECT true');

	my $n = 0;
	$n += load_journal($files[0], 'codes');
	$n += load_journal($files[1], 'codes');
	$n += load_journal($files[2], 'grown');
	cmp_ok($n, '>', 0, "round $round: keys were committed");
	$journalled += $n;

	# the server did not lose any of them, or the test would be void
	is( $node->safe_psql('postgres', <<'EOF'), '0', "round $round: rows are there");
SELECT (SELECT count(*) FROM journal j WHERE of_table = 'codes' AND NOT EXISTS (SELECT FROM codes c WHERE c.code = j.code))
	+ (SELECT count(*) FROM journal j WHERE of_table = 'grown' AND NOT EXISTS (SELECT FROM grown c WHERE c.code = j.code))
EOF

	my @indexes = split /\n/, $node->safe_psql('postgres', <<'EOF');
SELECT indexrelid::regclass || ' ' || indrelid::regclass || ' ' || indisvalid
FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
WHERE amname = 'bloomfilter' ORDER BY 1
EOF
	my @wrong;
	foreach (@indexes)
	{
		my ($index, $table, $valid) = split / /;

		if ($valid eq 'false')
		{
			# left by a build that did not come to its end: it answers nothing
			my ($status, undef, $err) = $node->psql('postgres',
				"SELECT bloom_index_contains('$index', '$round.1.1')");
			push @wrong, "$index answers: $err"
			  if $status == 0 || $err !~ /index "\S+" is not valid/;
			$node->safe_psql('postgres', "DROP INDEX $index");
			next;
		}
		my $missing = missing_keys($node, $index,
			"(SELECT *, split_part(code, '.', 2)::int AS writer FROM journal WHERE of_table = '$table') j",
			$index eq 'pair' ? 'ROW(writer, code)' : 'code');
		my $check = checks_fail($node, $index);

		push @wrong, "$index lacks $missing" if $missing != 0;
		push @wrong, "$index: $check" if $check ne '';
	}
	is("@wrong", '', "round $round: every committed key is contained ("
		  . ($all ? 'all processes' : 'a backend') . ' killed, seed '
		  . "$seed)");

	# unlogged: empty, and ready for new keys
	is($node->safe_psql('postgres', <<EOF), 'f|t|0|f', "round $round: the unlogged index was reset");
SELECT bloom_index_contains('unlogged_index', 'before-$round'), bloom_index_check('unlogged_index', true) IS NOT NULL,
	(SELECT count(*) FROM unlogged), bloom_index_contains('unlogged_index', 'after-$round')
EOF
	is($node->safe_psql('postgres', <<EOF), '0', "round $round: and takes new keys");
INSERT INTO unlogged SELECT 'after-$round-' || i FROM generate_series(1, 50) i;
SELECT count(*) FROM unlogged WHERE NOT bloom_index_contains('unlogged_index', code);
EOF
}
note "$journalled keys in $rounds rounds";
cmp_ok($node->safe_psql('postgres', "SELECT layers FROM bloom_index_info('small')"),
	'>', 5, 'the small index has grown');

# ---------------------------------------------------------------------------
# Inside of growth
#
# The first time there is no room for the whole layer: the limit of a file's
# size ends its growth in the middle.  The other times the server is killed as
# soon as the file gets longer, which may be too late.
# ---------------------------------------------------------------------------
my $inside = 0;
my @found;
for my $try (1 .. ($slow ? 20 : 1))
{
	$node->safe_psql('postgres', <<'EOF');
DROP TABLE IF EXISTS steps;
CREATE TABLE steps (code text);
CREATE INDEX steps_index ON steps USING bloomfilter (code) WITH (capacity = 2500, expansion = 16, fpr = 0.00001);
INSERT INTO steps SELECT 'old-' || i FROM generate_series(1, 40000) i;
EOF
	my $path = index_path($node, 'steps_index');
	my $before = file_blocks($path);
	my $layers = $node->safe_psql('postgres',
		"SELECT layers FROM bloom_index_info('steps_index')");

	system_or_bail('prlimit', '--pid', $node->{_pid},
		'--fsize=2400000:unlimited') if $try == 1;
	my $journal = "$dir/steps.$try";
	my $pid = start_psql(
		$node,
		join(
			'',
			map {
				"INSERT INTO steps SELECT 'new-$_-' || i FROM generate_series(1, 500) i RETURNING code;\n"
			  } 1 .. 100),
		$journal);
	if ($try == 1)
	{
		is(end_psql($pid), 3, 'growth fails where there is no room');
		like(slurp_file("$journal.err"), qr/could not (extend|write)/,
			'and says so');
		kill_all($node);
	}
	else
	{
		my $end = time() + 60;
		usleep(1_000) while -s $journal == 0 && time() < $end;
		my @pids = server_pids($node);
		while (file_blocks($path) == $before && time() < $end) { }
		kill_all($node, @pids);
		end_psql($pid);
	}
	my $left = file_blocks($path);
	$node->start;
	push @found, 'file never grew' if $left == $before;

	# the layer that is not in the metapage yet does not count
	my $now = $node->safe_psql('postgres',
		"SELECT layers FROM bloom_index_info('steps_index')");
	is($now, $layers, 'pages without a layer') if $try == 1;
	$inside++ if $left > $before && $now == $layers;
	$node->safe_psql('postgres',
		"DELETE FROM journal; INSERT INTO journal SELECT 'old-' || i FROM generate_series(1, 40000) i");
	load_journal($journal, 'steps');
	push @found, missing_keys($node, 'steps_index', 'journal') . ' missing',
	  checks_fail($node, 'steps_index');

	# and the next to grow takes its pages
	$node->safe_psql('postgres',
		"INSERT INTO steps SELECT 'more-' || i FROM generate_series(1, 10000) i");
	push @found, missing_keys($node, 'steps_index', 'steps') . ' missing',
	  checks_fail($node, 'steps_index');
	push @found, 'did not grow'
	  if $node->safe_psql('postgres',
		"SELECT layers FROM bloom_index_info('steps_index')") == $layers;
	note "growth: $layers layers and $before blocks before, $now and $left after";
}
is_deeply([ grep { $_ ne '' && $_ ne '0 missing' } @found ], [],
	"growth that did not come to its end ($inside)");

# ---------------------------------------------------------------------------
# Torn pages
#
# A page is torn where only some of its sectors were written before the power
# went.  Of each page that has been written since the last checkpoint we put
# the older state back into one half.  What full_page_writes has put into the
# WAL must make it whole: the records that the index writes by hand carry full
# pages as others do.
# ---------------------------------------------------------------------------
	my $torn = 0;
@found = ();
$node->append_conf('postgresql.conf',
	"max_wal_size = 4GB\ncheckpoint_timeout = 1h");
$node->restart;
for my $first (0 .. ($slow ? 9 : 0))
{
	$node->safe_psql('postgres', <<'EOF');
DROP TABLE IF EXISTS torn;
CREATE TABLE torn (code text);
CREATE INDEX torn_index ON torn USING bloomfilter (code) WITH (capacity = 200000);
INSERT INTO torn SELECT 'old-' || i FROM generate_series(1, 20000) i;
CHECKPOINT;
EOF
	my $path = index_path($node, 'torn_index');
	my $old = slurp_file($path);

	# what comes next drives the pages out of shared_buffers, into the file
	$node->safe_psql('postgres', <<'EOF');
INSERT INTO torn SELECT 'new-' || i FROM generate_series(1, 60000) i;
CREATE UNLOGGED TABLE filler (x text);
INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, 10000);
DROP TABLE filler;
EOF
	kill_all($node);

	open(my $fh, '+<:raw', $path) or die "$path: $!";
	for (my $offset = 0; $offset < length($old); $offset += 8192)
	{
		my $half = ($offset / 8192 + $first) % 2;
		my $page;

		sysseek($fh, $offset, 0);
		sysread($fh, $page, 8192) == 8192 or die "$path: short read";
		next if $page eq substr($old, $offset, 8192);
		sysseek($fh, $offset + 4096 * $half, 0);
		syswrite($fh, substr($old, $offset + 4096 * $half, 4096)) == 4096
		  or die "$path: short write";
		$torn++;
	}
	close $fh;
	$node->start;
	push @found, missing_keys($node, 'torn_index', 'torn') . ' missing',
	  checks_fail($node, 'torn_index');
}
cmp_ok($torn, '>', 10, 'pages were torn');
is_deeply([ grep { $_ ne '' && $_ ne '0 missing' } @found ], [],
	"torn pages are made whole ($torn)");

# ---------------------------------------------------------------------------
# Without WAL: at wal_level = minimal what is made in the transaction that made
# the table is not in the WAL, but written out at the end
# ---------------------------------------------------------------------------
$node->append_conf('postgresql.conf',
	"wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0");
$node->restart;
$node->safe_psql('postgres', <<'EOF');
BEGIN;
CREATE TABLE skipped (code text);
CREATE INDEX skipped_index ON skipped USING bloomfilter (code) WITH (capacity = 10);
INSERT INTO skipped SELECT 'a-' || i FROM generate_series(1, 5000) i;
CREATE INDEX skipped_built ON skipped USING bloomfilter (code);
SAVEPOINT s;
INSERT INTO skipped SELECT 'undone-' || i FROM generate_series(1, 5000) i;
ROLLBACK TO s;
INSERT INTO skipped SELECT 'b-' || i FROM generate_series(1, 5000) i;
COMMIT;
BEGIN;
TRUNCATE torn;
INSERT INTO torn SELECT 'c-' || i FROM generate_series(1, 5000) i;
COMMIT;
INSERT INTO torn VALUES ('d');
EOF
kill_all($node);
$node->start;
@found = ();
foreach ([ 'skipped_index', 'skipped' ], [ 'skipped_built', 'skipped' ], [ 'torn_index', 'torn' ])
{
	push @found, missing_keys($node, @$_) . ' missing', checks_fail($node, $_->[0]);
}
is_deeply([ grep { $_ ne '' && $_ ne '0 missing' } @found ], [], 'where the WAL is skipped');
is($node->safe_psql('postgres', 'SELECT (SELECT count(*) FROM skipped), (SELECT count(*) FROM torn)'),
	'10000|5001', 'and rows are there');

$node->stop('fast');
done_testing();
