$| = 1;
my $n = 0;
while (1) {
    print "order ", $n++, " ", "x" x 300, "\n";
}
