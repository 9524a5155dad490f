use strict;
use IO::Handle;
open(my $file, ">>", $ARGV[0]) or die;
while (1) {
    print $file "one line of the audit\n" x 50;
    $file->flush;
    $file->sync;
}
