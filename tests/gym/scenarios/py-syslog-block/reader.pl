use strict;
use warnings;
use Socket;
socket(my $log, AF_UNIX, SOCK_DGRAM, 0) or die;
bind($log, sockaddr_un($ARGV[0])) or die;
$0 = "logsink";
while (1) { recv($log, my $line, 2000, 0); select(undef, undef, undef, 0.02); }
