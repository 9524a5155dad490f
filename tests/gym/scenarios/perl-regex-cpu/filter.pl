use IO::Socket::INET;
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], Listen => 50, ReuseAddr => 1) or die;
while (my $client = $server->accept) {
    while (defined(my $line = <$client>)) { last if $line =~ /^\r?$/; }
    my $text = 'a' x 70;
    my $ok = $text =~ /^(.*)(.*)(.*)(.*)[xyz]$/ ? 1 : 0;
    print $client "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n$ok";
    close $client;
}
