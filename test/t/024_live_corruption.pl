# Corrupted pages of the live filter: an error, never a crash, and never a
# silent wrong "no" where a checksum or a check of the structure could tell.
#
# Many equal indexes are made, the server is stopped, and in each index's file
# one byte is changed, or a page cut off, zeroed, or swapped.  With checksums
# every use of the page must fail.  Then checksums are switched off: a probe
# may be wrong where a bit has changed, but bloom_index_check must find it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LiveFilter;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = 8192;
my $keys = 100;
my $layers = 3;					# that so many keys make

my $node = new_node('corrupt', <<'EOF', allows_streaming => 1, extra => ['--data-checksums']);
shared_buffers = 64MB
restart_after_crash = off
max_locks_per_transaction = 1000
EOF
$node->start;
create_extension($node);

# ---------------------------------------------------------------------------
# What to change: [name, block, offset, xor with] or [name, code]
# ---------------------------------------------------------------------------

my @changes;

# The metapage: its page header, parameters, layers (40 bytes each), and the
# first byte behind them
foreach my $offset (0 .. 24 + 32 + $layers * 40)
{
	foreach my $xor (0x01, 0x80, 0xff)
	{
		push @changes, [ "meta $offset ^ $xor", 0, $offset, $xor ]
		  if $slow || ($offset * 7 + $xor) % 10 == 0;
	}
}

# the fields that a wrong "no" can come from
foreach my $layer (0 .. $layers - 1)
{
	foreach my $field (0, 24, 32)
	{
		push @changes, [ "layer $layer + $field ^ 1", 0, 24 + 32 + $layer * 40 + $field, 1 ];
		push @changes, [ "layer $layer + $field ^ 2", 0, 24 + 32 + $layer * 40 + $field, 2 ];
	}
}
push @changes, [ "number of layers ^ $_", 0, 24 + 24, $_ ] foreach (1, 2, 4, 7, 0x80);

# Data pages: their headers, some of their blocks
foreach my $block (1 .. $layers)
{
	foreach my $offset (0 .. 39, map { $_ * 397 % 8128 + 64 } 1 .. ($slow ? 60 : 8))
	{
		foreach my $xor (0x01, 0x80, 0xff)
		{
			push @changes, [ "block $block, $offset ^ $xor", $block, $offset, $xor ]
			  if $slow || ($offset * 7 + $xor + $block * 3) % 10 == 0;
		}
	}
}
foreach my $block (0 .. $layers)
{
	my $next = ($block + 1) % ($layers + 1);

	push @changes, [ "block $block zeroed", $block, 0, sub { "\0" x $page } ],
	  [ "block $block random", $block, 0, sub { join '', map { chr(int(rand(256))) } 1 .. $page } ],
	  [ "block $block all ones", $block, 0, sub { "\xff" x $page } ],
	  [ "block $block: bits zeroed", $block, 64, sub { "\0" x 512 } ],
	  [ "cut off at block $block", $block, 'cut' ],
	  [ "cut off in block $block", $block + 0.5, 'cut' ],
	  [ "block $block is block $next", $block, 'copy', $next ];
}
my $n = @changes;
srand(42);

$node->safe_psql('postgres', <<EOF);
SELECT format('CREATE TABLE codes_%s (code int); CREATE INDEX index_%1\$s ON codes_%1\$s USING bloomfilter (code) WITH (capacity = 20); INSERT INTO codes_%1\$s SELECT generate_series(1, $keys)', i)
FROM generate_series(0, $n) i \\gexec

-- All that can be asked of an index: how many keys it lacks, and what else was
-- raised.  Anything but an error that speaks of corruption is suspicious.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS \$\$
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate;
END \$\$;

CREATE FUNCTION ask(n int, OUT missing int, OUT probes text, OUT structure text, OUT whole text, OUT info text, OUT filter text)
LANGUAGE plpgsql AS \$\$
DECLARE
	index text := 'index_' || n;
	states text[];
	state text;
BEGIN
	missing := 0;
	FOR k IN 1 .. $keys LOOP
		BEGIN
			IF bloom_index_contains(index, k) THEN
				state := 'ok';
			ELSE
				state := 'ok';
				missing := missing + 1;
			END IF;
		EXCEPTION WHEN OTHERS THEN
			state := sqlstate;
		END;
		IF NOT state = ANY(coalesce(states, '{}')) THEN
			states := states || state;
		END IF;
	END LOOP;
	probes := array_to_string(states, ',');
	structure := try(format('SELECT bloom_index_check(%L)', index));
	whole := try(format('SELECT bloom_index_check(%L, true)', index));
	info := try(format('SELECT * FROM bloom_index_info(%L)', index));
	filter := try(format('SELECT length(bloom_index_filter(%L)::text)', index));
END \$\$;
EOF

is($node->safe_psql('postgres', "SELECT layers, bytes / 8192 FROM bloom_index_info('index_0')"),
	"$layers|" . ($layers + 1), 'a page for each layer');
is($node->safe_psql('postgres', "SELECT ask(0)"), '(0,ok,ok,ok,ok,ok)', 'all is well before');

my @paths = map { $node->data_dir . "/$_" } split /\n/,
  $node->safe_psql('postgres',
	"SELECT pg_relation_filepath('index_' || i) FROM generate_series(0, $n) i ORDER BY i");
$node->stop('fast');

for my $i (0 .. $#changes)
{
	my ($name, $block, $offset, $with) = @{ $changes[$i] };
	my $path = $paths[ $i + 1 ];
	my $bytes = slurp_file($path);

	if ($offset eq 'cut')
	{
		$bytes = substr($bytes, 0, $block * $page);
	}
	elsif ($offset eq 'copy')
	{
		substr($bytes, $block * $page, $page) = substr($bytes, $with * $page, $page);
	}
	elsif (ref $with)
	{
		my $new = $with->();
		substr($bytes, $block * $page + $offset, length($new)) = $new;
	}
	else
	{
		substr($bytes, $block * $page + $offset, 1) ^= chr($with);
	}
	open(my $fh, '>:raw', $path) or die "$path: $!";
	print $fh $bytes;
	close $fh;
}

# Ask all of them in one session: it has to survive.  Returns the answers.
sub ask_all
{
	my ($status, $out, $err) = $node->psql('postgres',
		"SET client_min_messages = error;\n"
		  . join('', map { "SELECT (ask($_)).*;\n" } 0 .. $n));

	is($status, 0, 'the session survives') or diag $err;
	return map { [ split /\|/, $_, -1 ] } split /\n/, $out;
}

sub report
{
	my ($what, @wrong) = @_;

	is(scalar(@wrong), 0, $what);
	diag "$_" foreach @wrong[ 0 .. ($#wrong < 30 ? $#wrong : 30) ];
}

# data_corrupted and index_corrupted; and that the index must be rebuilt, where
# the flag that says so has changed
sub is_strange
{
	my ($answer) = @_;

	return grep { !/^(ok|XX001|XX002|55000)$/ }
	  map { split /,/ } @{$answer}[ 1 .. 5 ];
}

sub line
{
	my ($i, $answer) = @_;

	return ($i == 0 ? 'untouched' : $changes[ $i - 1 ][0]) . ': ' . join(' ', @$answer);
}

# ---------------------------------------------------------------------------
# With checksums: whoever reads the page gets an error
# ---------------------------------------------------------------------------
$node->start;
my @answers = ask_all();
is("@{$answers[0]}", '0 ok ok ok ok ok', 'checksums: an untouched index is well');
report('checksums: no wrong "no"', map { line($_, $answers[$_]) }
	  grep { $answers[$_][0] > 0 } 1 .. $n);
report('checksums: bloom_index_check finds all', map { line($_, $answers[$_]) }
	  grep { $answers[$_][2] eq 'ok' } 1 .. $n);
report('checksums: all errors speak of corruption',
	map { line($_, $answers[$_]) } grep { is_strange($answers[$_]) } 1 .. $n);

# ---------------------------------------------------------------------------
# Without
# ---------------------------------------------------------------------------
$node->stop('fast');
command_ok([ 'pg_checksums', '--disable', '--no-sync', '-D', $node->data_dir ], 'checksums off');
$node->start;
@answers = ask_all();
is("@{$answers[0]}", '0 ok ok ok ok ok', 'no checksums: an untouched index is well');
report('a wrong "no" is found by bloom_index_check', map { line($_, $answers[$_]) }
	  grep { $answers[$_][0] > 0 && $answers[$_][2] eq 'ok' } 1 .. $n);
report('and with the table in any case', map { line($_, $answers[$_]) }
	  grep { $answers[$_][0] > 0 && $answers[$_][3] eq 'ok' } 1 .. $n);
report('all errors speak of corruption',
	map { line($_, $answers[$_]) } grep { is_strange($answers[$_]) } 1 .. $n);
note scalar(grep { $_->[2] ne 'ok' } @answers) . " of $n corruptions are found by structure";

# Inserts: an error, or it goes on; and a rebuilt index is well
my ($status, $out, $err) = $node->psql('postgres',
	"SET client_min_messages = error;\n"
	  . join('', map { "SELECT try('INSERT INTO codes_$_ SELECT generate_series(1000, 1100)');\n" } 1 .. $n));
is($status, 0, 'inserts: the session survives') or diag $err;
my @states = split /\n/, $out;
report('inserts: all errors speak of corruption', map { $changes[$_][0] . ": $states[$_]" }
	  grep { is_strange([ 0, $states[$_], ('ok') x 4 ]) } 0 .. $#states);
$node->safe_psql('postgres',
	"SELECT format('REINDEX INDEX index_%s', i) FROM generate_series(1, $n) i \\gexec");
my @still = split /\n/,
  $node->safe_psql('postgres', "SELECT ask(i) FROM generate_series(1, $n) i");
is(scalar(grep { $_ ne '(0,ok,ok,ok,ok,ok)' } @still), 0, 'REINDEX mends all of them');
$node->stop('fast');
done_testing();
