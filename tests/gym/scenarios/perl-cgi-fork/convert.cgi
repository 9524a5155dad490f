#!/usr/bin/perl
use strict;
use warnings;
use POSIX qw(strftime);
my %rates = (usd => 1.09, chf => 0.95, gbp => 0.86);
my ($amount) = ($ENV{QUERY_STRING} // '') =~ /(\d+)/;
printf "%s %.2f\n", $_, $rates{$_} * ($amount || 1) for sort keys %rates;
print strftime('%F', gmtime), "\n";
