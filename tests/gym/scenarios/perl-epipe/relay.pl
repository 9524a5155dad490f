use strict;
use warnings;
use Socket;
$SIG{PIPE} = "IGNORE";
socketpair(my $near, my $far, AF_UNIX, SOCK_STREAM, 0) or die;
close($far);
$0 = "relay";
while (1) { syswrite($near, "event\n"); select(undef, undef, undef, 0.02); }
