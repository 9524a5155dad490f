use strict;
use IO::Socket::INET;

my $server = IO::Socket::INET->new(
    LocalAddr => "127.0.0.1", LocalPort => $ARGV[0], Listen => 64, ReuseAddr => 1) or die;
for (1 .. 4) {
    next if fork;
    while (my $client = $server->accept) {
        while (defined(my $line = <$client>)) {
            last if $line =~ /^\r?$/;
        }
        print $client "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        close $client;
    }
}
wait;
