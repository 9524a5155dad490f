use strict;
use warnings;
sub find_host { return gethostbyname("mx" . int(rand(1e6)) . ".bank.example"); }
while (1) { find_host(); }
