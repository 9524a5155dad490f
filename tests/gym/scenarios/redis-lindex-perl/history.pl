use strict;
use warnings;
use IO::Socket::INET;

my $cache = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]") or die $!;

sub ask {
    my @words = @_;
    print $cache "*" . @words . "\r\n", map { "\$" . length($_) . "\r\n$_\r\n" } @words;
    $cache->flush;
    my $line = <$cache>;
    $line = <$cache> if $line =~ /^\$\d/;
    return $line;
}

sub event_at {
    my ($place) = @_;
    return ask("LINDEX", "events", $place);
}

for my $part (0 .. 1999) {
    ask("RPUSH", "events", map { "event" . ($part * 200 + $_) } 0 .. 199);
}
while (1) {
    event_at(150000 + int rand 100000);
}
