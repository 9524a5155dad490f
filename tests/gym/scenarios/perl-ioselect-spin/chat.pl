use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], Listen => 64, ReuseAddr => 1) or die $!;
my $readers = IO::Select->new($server);
my $writers = IO::Select->new();
my %answers;

sub answer_all {
    for my $client ($writers->can_write(1)) {
        my $text = delete $answers{$client} or next;
        syswrite $client, $text;
    }
}

while (1) {
    for my $client ($readers->can_read($writers->count ? 0 : 1)) {
        if ($client == $server) {
            my $new = $server->accept;
            $readers->add($new);
            $writers->add($new);
        } elsif (sysread $client, my $text, 4096) {
            $answers{$client} = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        } else {
            $readers->remove($client);
            $writers->remove($client);
            close $client;
        }
    }
    answer_all();
}
