use strict;
use warnings;
my @queue;
sub poll_queue { return shift @queue; }
while (1) {
    poll_queue();
    select(undef, undef, undef, 0.0003);
}
