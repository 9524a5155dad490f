package Cart;
use strict;
use warnings;

sub new {
    my ($class, $owner) = @_;
    return bless { owner => $owner, items => [] }, $class;
}

sub add_item {
    my ($self, $name, $price) = @_;
    push @{ $self->{items} }, { name => $name, price => $price, cart => $self, note => "$name " x 8 };
    return $self;
}

sub total {
    my ($self) = @_;
    my $sum = 0;
    $sum += $_->{price} for @{ $self->{items} };
    return $sum;
}

1;
