use strict;
use warnings;
use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Listen => 128, ReuseAddr => 1) or die;
my @kept;
while (1) {
    my $client = $server->accept;
    if ($client) { push @kept, $client; next; }
    select(undef, undef, undef, 0.02);
}
