# What the tests of the live filter share.
package LiveFilter;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw($slow new_node start_psql end_psql kill_all server_pids index_path
  file_blocks missing_keys checks_fail create_extension);

# With BLOOM_SLOW=1 many more rounds
our $slow = ($ENV{BLOOM_SLOW} // '') eq '1';

# new_node(NAME, SETTINGS, INIT PARAMETERS...): a cluster that is not started.
# Later settings win over those of the module PostgreSQL::Test::Cluster.
sub new_node
{
	my ($name, $settings, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%init);
	$node->append_conf('postgresql.conf',
		"log_statement = none\nautovacuum = off\nmax_connections = 30\n"
		  . $settings);
	return $node;
}

sub create_extension
{
	my ($node) = @_;

	$node->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
}

# start_psql(NODE, SCRIPT, FILE): run a script in the background; it ends at
# the first error.  What it prints goes to the file, which is the journal of
# what the server has acknowledged: psql prints a statement's rows, and what
# stands behind it in the script, after the server has committed it.
sub start_psql
{
	my ($node, $script, $file) = @_;
	my $input = "$file.sql";
	my @command = (
		$node->installed_command('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1',
		'-f', $input, '-d', $node->connstr('postgres'));

	open(my $fh, '>', $input) or die "$input: $!";
	print $fh $script;
	close $fh;

	my $pid = fork() // die "fork: $!";
	return $pid if $pid > 0;
	open(STDIN, '<', '/dev/null');
	open(STDOUT, '>', $file) or die "$file: $!";
	open(STDERR, '>', "$file.err") or die "$file.err: $!";
	exec(@command) or die "$command[0]: $!";
}

# Wait for it.  Returns its exit status: 0, 3 after an error of the script, 2
# if the server went away.
sub end_psql
{
	my ($pid) = @_;

	waitpid($pid, 0);
	return $? >> 8;
}

# The state of a process: 'Z' if it has ended and its parent does not know yet,
# '' if it is gone
sub state_of
{
	my ($pid) = @_;

	open(my $fh, '<', "/proc/$pid/stat") or return '';
	return (<$fh> // '') =~ /^\d+ \(.*\) (\w)/ ? $1 : '';
}

# The processes of a server, its postmaster first
sub server_pids
{
	my ($node) = @_;
	my $postmaster = $node->{_pid};

	open(my $ps, '-|', 'ps', '-o', 'pid=', '--ppid', $postmaster)
	  or die "ps: $!";
	my @pids = map { /(\d+)/ } <$ps>;
	close $ps;
	return ($postmaster, @pids);
}

# Kill all processes of a server at once, as a power failure would, except that
# what they have written to files is there.
sub kill_all
{
	my ($node, @known) = @_;
	my $postmaster = $node->{_pid};

	# those in a hurry are known before; a stopped postmaster has no new ones
	kill('KILL', @known[ 1 .. $#known ]) if @known > 1;
	kill('STOP', $postmaster);
	my (undef, @pids) = server_pids($node);
	kill('KILL', @pids);
	$node->kill9;
	push @pids, @known;
	foreach my $pid ($postmaster, @pids)
	{
		usleep(2_000) while state_of($pid) !~ /^[ZX]?$/;
	}

	# The new postmaster would not start beside an old one, dead as it may be.
	# Where nobody buries the dead soon the lock files have to go.
	for (my $i = 0; $i < 100 && state_of($postmaster) ne ''; $i++)
	{
		usleep(2_000);
	}
	unlink($node->data_dir . '/postmaster.pid',
		$node->host . '/.s.PGSQL.' . $node->port . '.lock')
	  if state_of($postmaster) ne '';
}

# An index's file, and how many blocks it has
sub index_path
{
	my ($node, $index) = @_;

	return $node->data_dir . '/'
	  . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$index')");
}

sub file_blocks
{
	my ($path) = @_;

	return (-s $path // 0) / 8192;
}

# How many of a table's keys the index says "no" to.
sub missing_keys
{
	my ($node, $index, $table, $key) = @_;

	$key //= 'code';
	return $node->safe_psql('postgres',
		"SELECT count(*) FROM $table WHERE NOT bloom_index_contains('$index', $key)"
	);
}

# Does bloom_index_check find a fault?  Returns the error, or ''.
sub checks_fail
{
	my ($node, $index) = @_;
	my ($status, undef, $err) = $node->psql('postgres',
		"SELECT bloom_index_check('$index', true)");

	return $status == 0 ? '' : "$status: $err";
}

1;
