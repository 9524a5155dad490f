use strict;
use warnings;
use IO::Socket::INET;

my %words = map { ("word-" . ($_ * 7919 % 100003)) => $_ } 1 .. 30000;

sub rebuild_index {
    my @sorted = sort { $words{$a} <=> $words{$b} } keys %words;
    return $sorted[0];
}

my $server = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], ReuseAddr => 1) or die;
while (my $client = $server->accept) {
    while (defined(my $line = <$client>)) { last if $line =~ /^\r?\n$/ }
    my $text = rebuild_index();
    print $client "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " . length($text) . "\r\n\r\n$text";
    close $client;
}
