use strict;
use warnings;
use IO::Socket::UNIX;
my $server = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 20) or die;
$0 = "stockd";
while (my $client = $server->accept) {
    next if fork();
    while (defined(my $line = <$client>)) { select(undef, undef, undef, 0.3); syswrite($client, "7\n"); }
    exit;
}
