use strict;
use warnings;
use Time::HiRes qw(setitimer ITIMER_REAL);

my $level = 0;
sub sample_level { $level = $level * 0.99 + rand() * 0.01; }
$SIG{ALRM} = \&sample_level;
setitimer(ITIMER_REAL, 0.0002, 0.0002);
while (1) { select(undef, undef, undef, 1); }
