#!/usr/bin/perl
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use IO::Socket::INET;
use Cart;

my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], Listen => 64, ReuseAddr => 1) or die $!;

sub fill_cart {
    my ($owner) = @_;
    my $cart = Cart->new($owner);
    $cart->add_item("article-$_", $_ * 1.5) for 1 .. 60;
    return $cart->total;
}

sub serve {
    my ($client) = @_;
    my $head = <$client> // return;
    while (my $line = <$client>) { last if $line =~ /^\r?$/ }
    my ($owner) = $head =~ m{/(\d+)};
    my $body = fill_cart($owner // 0);
    print $client "HTTP/1.1 200 OK\r\nContent-Length: ", length $body, "\r\nConnection: close\r\n\r\n$body";
}

while (my $client = $server->accept) {
    $client->autoflush(0);
    serve($client);
    close $client;
}
