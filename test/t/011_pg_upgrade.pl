# Filters survive pg_upgrade.  BLOOM_OLD_BINDIRS names the bin directories of
# other servers, with colons: the data goes through each that is older, from the
# oldest on, to the server that is tested.  If there is none, from that server to
# another of the same version, which pg_upgrade does as well.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use BloomMove qw(set_up fingerprint answers);
use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $bindir = `pg_config --bindir`;
chomp $bindir;
$bindir = dirname((grep { -x } map { "$_/pg_upgrade" } split(/:/, $ENV{PATH}), $bindir)[0]);

sub version_of
{
	my ($dir) = @_;

	`$dir/postgres --version` =~ /(\d+)/ or die "no server in $dir";
	return $1;
}

my @bindirs = sort { version_of($a) <=> version_of($b) }
  grep { version_of($_) < version_of($bindir) } split(/:/, $ENV{BLOOM_OLD_BINDIRS} // '');
@bindirs = ($bindir) unless @bindirs;
push @bindirs, $bindir;
my @names = map { version_of($_) } @bindirs;
note("through versions @names");

# The clusters are made by hand: the test modules know one installation each.
my $base = PostgreSQL::Test::Utils::tempdir_short();
my $settings = "-c listen_addresses='' -c unix_socket_directories='$base' -c fsync=off -c jit=off";
my $port = 50000 + $$ % 10000;
$ENV{PGHOST} = $base;
$ENV{PGPORT} = $port;
$ENV{PGUSER} = 'postgres';
delete $ENV{PGDATABASE};
delete $ENV{PGOPTIONS};

# What the helpers of BloomMove call, with one server's own psql
package Server
{
	sub safe_psql
	{
		my ($self, $db, $sql) = @_;
		my ($out, $err) = ('', '');

		IPC::Run::run([ "$self->{bindir}/psql", '-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $db, '-f', '-' ],
			'<', \$sql, '>', \$out, '2>', \$err)
		  or die "psql: $err";
		chomp $out;
		return $out;
	}
}

sub server
{
	my ($n) = @_;

	return bless { bindir => $bindirs[$n], data => "$base/data$n" }, 'Server';
}

sub must
{
	my (@command) = @_;
	my $out = '';

	return 1 if IPC::Run::run(\@command, '<', \undef, '>', \$out, '2>&1');
	diag("@command:\n$out");
	die "$command[0] failed\n";
}

sub start
{
	my ($server) = @_;

	must("$server->{bindir}/pg_ctl", '-D', $server->{data}, '-l', "$server->{data}.log",
		'-o', "$settings -p $port", '-w', 'start');
	return;
}

sub stop
{
	my ($server) = @_;

	must("$server->{bindir}/pg_ctl", '-D', $server->{data}, '-m', 'fast', '-w', 'stop');
	return;
}

sub initialize
{
	my ($server) = @_;
	# from 18 on clusters have checksums unless told otherwise, and pg_upgrade wants both the same
	my $help = `$server->{bindir}/initdb --help`;
	my @options = $help =~ /--no-data-checksums/ ? ('--no-data-checksums') : ();

	must("$server->{bindir}/initdb", '-D', $server->{data}, '-U', 'postgres', '-A', 'trust',
		'-N', '--no-locale', '-E', 'UTF8', @options);
	return;
}

my $old = server(0);
initialize($old);
start($old);
set_up($old, 'postgres');
my $bytes = fingerprint($old, 'postgres');
my $answers = answers($old, 'postgres');
stop($old);

# Minor releases of 2026 keep a number in each column's options, which an 18
# without that change refuses to restore, of any table.
sub drop_unknown_options
{
	my ($from, $to) = @_;

	return if slurp_file("$to->{bindir}/postgres") =~ /pg_attver/;
	start($from);
	$from->safe_psql($_, <<'EOS') for qw(postgres template1);
SET allow_system_table_mods = on;
UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%';
EOS
	stop($from);
	return;
}

for my $n (1 .. $#bindirs)
{
	my $new = server($n);
	my $step = "$names[$n - 1] to $names[$n]";
	my $log;

	initialize($new);
	drop_unknown_options($old, $new);
	chdir $base;
	ok( IPC::Run::run(
			[ "$new->{bindir}/pg_upgrade", '-b', $old->{bindir}, '-B', $new->{bindir}, '-d', $old->{data}, '-D',
				$new->{data}, '-p', $port, '-P', $port + 1, '-s', $base, '-U', 'postgres',
				'-o', '-c jit=off -c fsync=off', '-O', '-c fsync=off' ],
			'>', \$log, '2>&1'),
		"pg_upgrade, $step")
	  or diag($log, map { my $text = slurp_file($_); substr($text, -2000) } glob("$new->{data}/pg_upgrade_output.d/*/log/*_dump_*.log"));
	start($new);
	is(fingerprint($new, 'postgres'), $bytes, "$step: the same bytes");
	is(answers($new, 'postgres'), $answers, "$step: the same answers");
	$new->safe_psql('postgres', "INSERT INTO keys VALUES ($n, 'upgraded-$n')");
	is( $new->safe_psql('postgres', "SELECT filter \@> 'upgraded-$n' FROM filters WHERE name = 'live'"),
		't', "$step: a trigger adds to what the older server built");
	$new->safe_psql('postgres', 'REINDEX DATABASE postgres; REFRESH MATERIALIZED VIEW by_first');
	$bytes = fingerprint($new, 'postgres');
	$answers = answers($new, 'postgres');
	stop($new);
	$old = $new;
}

done_testing();
