use strict;
use IO::Socket::INET;

my $server = IO::Socket::INET->new(
    LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Listen => 64, ReuseAddr => 1) or die;

sub serve {
    my %table = map { $_ => $_ * 1.7 } 1 .. 200_000;
    for (1 .. 2) {
        my $client = $server->accept or next;
        while (defined(my $line = <$client>)) {
            last if $line =~ /^\r?$/;
        }
        print $client "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        close $client;
    }
    exit;
}

for (1 .. 3) { fork or serve() }
while (wait > 0) { fork or serve() }
