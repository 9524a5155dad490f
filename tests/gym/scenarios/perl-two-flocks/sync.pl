use strict;
use warnings;
use Fcntl qw(:flock);
use Time::HiRes qw(sleep);

my ($folder, $first, $second) = @ARGV;

sub lock_file {
    my ($name) = @_;
    open(my $file, '>>', "$folder/$name") or die $!;
    flock($file, LOCK_EX) or die $!;
    return $file;
}

sub sync_tables {
    my $outer = lock_file($first);
    sleep 0.2;
    my $inner = lock_file($second);
    sleep 0.05;
}

while (1) {
    sync_tables();
    sleep 0.1;
}
