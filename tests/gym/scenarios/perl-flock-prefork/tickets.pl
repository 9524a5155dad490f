use strict;
use warnings;
use Fcntl qw(:flock);
use IO::Socket::INET;

my ($port, $path) = @ARGV;
my $server = IO::Socket::INET->new(LocalPort => $port, Listen => 64, ReuseAddr => 1) or die $!;

sub slow_export { select(undef, undef, undef, 0.08); }

sub next_ticket {
    open(my $file, '+>>', $path) or die $!;
    flock($file, LOCK_EX);
    slow_export();
    close($file);
    return $$;
}

for (1 .. 6) {
    next if fork();
    while (my $client = $server->accept()) {
        while (my $line = <$client>) {
            1 while (($line = <$client>) && $line ne "\r\n");
            my $body = next_ticket();
            print $client "HTTP/1.1 200 OK\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
            $client->flush();
        }
    }
    exit;
}
wait() while 1;
