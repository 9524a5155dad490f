package Upstream;
use IO::Socket::INET;

sub new { my ($class, $port) = @_; return bless { port => $port }, $class; }

sub fetch {
    my ($self) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) or die;
    print $socket "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    local $/;
    return <$socket>;
}

package main;
my ($port, $down) = @ARGV;
my $server = IO::Socket::INET->new(LocalPort => $port, Listen => 64, ReuseAddr => 1) or die $!;
my $upstream = Upstream->new($down);
while (my $client = $server->accept()) {
    while (my $line = <$client>) { last if $line eq "\r\n"; }
    $upstream->fetch();
    print $client "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    close $client;
}
