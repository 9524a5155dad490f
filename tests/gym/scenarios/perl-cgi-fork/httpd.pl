#!/usr/bin/perl
# A small front end: each request is answered by a CGI script.
use strict;
use warnings;
use HTTP::Daemon;
use HTTP::Response;

my ($port, $script) = @ARGV;
my $daemon = HTTP::Daemon->new(LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1, Listen => 64) or die $@;

sub run_cgi {
    my ($query) = @_;
    local $ENV{QUERY_STRING} = $query;
    open(my $pipe, '-|', $^X, $script) or die "cannot run $script: $!";
    local $/;
    my $body = <$pipe>;
    close $pipe;
    return $body;
}

sub serve {
    my ($client) = @_;
    while (my $request = $client->get_request) {
        $client->send_response(HTTP::Response->new(200, 'OK', ['Content-Type' => 'text/plain'], run_cgi($request->uri->query // '')));
    }
}

while (my $client = $daemon->accept) {
    my $pid = fork;
    if (!$pid) { serve($client); exit 0 }
    $client->close;
}
