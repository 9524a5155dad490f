use strict;
use warnings;
use Fcntl;

my $folder = shift;

sub take_lock {
    my $file;
    until (sysopen($file, "$folder/stock.lock", O_CREAT | O_EXCL | O_WRONLY)) {
        select(undef, undef, undef, 0.0005);
    }
    return $file;
}

sub count_stock {
    my $lock = take_lock();
    select(undef, undef, undef, 1.5);
    close($lock);
    unlink("$folder/stock.lock");
}

for (1 .. 4) {
    my $child = fork();
    if (!$child) {
        while (1) { count_stock(); }
    }
}
1 while wait() > 0;
