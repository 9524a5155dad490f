use strict;
use warnings;
use IO::Socket::INET;

my ($port, $folder) = @ARGV;
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $port, Listen => 64, ReuseAddr => 1)
  or die "listen: $!";

sub read_template {
    my ($number) = @_;
    open(my $file, "<", "$folder/letter$number.tmpl") or die "open: $!";
    local $/;
    return <$file>;
}

sub render_letter {
    my ($number) = @_;
    return sprintf(read_template($number % 40), ("Ann") x 50);
}

sub serve {
    while (my $client = $listener->accept) {
        my $line = <$client> // "";
        my ($number) = $line =~ /n=(\d+)/;
        while (defined(my $header = <$client>)) { last if $header =~ /^\r?\n$/ }
        my $body = render_letter($number // 0);
        print $client "HTTP/1.0 200 OK\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
        close $client;
    }
}

for (1 .. 3) { my $child = fork // die; serve() unless $child }
serve();
