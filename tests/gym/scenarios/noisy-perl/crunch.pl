use strict;
use warnings;
fork() for 1 .. 2;
$0 = "crunch: batch";
my $sum = 0;
while (1) { $sum = ($sum * 31 + $_) % 1000003 for 1 .. 100000; }
