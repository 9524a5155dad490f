use strict;
use warnings;
use Fcntl qw(:flock O_RDWR O_CREAT);
use IO::Socket::INET;

my ($port, $file) = @ARGV;
$SIG{CHLD} = 'IGNORE';

sub count_visit {
    sysopen(my $fh, $file, O_RDWR | O_CREAT) or die;
    flock($fh, LOCK_EX);
    my $count = <$fh> || 0;
    select(undef, undef, undef, 0.04);
    seek($fh, 0, 0);
    print $fh $count + 1, "\n";
    close $fh;
    return $count + 1;
}

my $server = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1) or die;
while (1) {
    my $client = $server->accept or next;
    if (fork() == 0) {
        while (defined(my $line = <$client>)) { last if $line =~ /^\r?\n$/ }
        my $text = count_visit();
        print $client "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " . length($text) . "\r\n\r\n$text";
        close $client;
        exit 0;
    }
    close $client;
}
