use strict;

sub hand_off {
    my $pid = fork();
    exit 0 if defined $pid && $pid == 0;
}

while (1) {
    hand_off();
    select undef, undef, undef, 0.1;
}
