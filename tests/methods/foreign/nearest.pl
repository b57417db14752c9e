#!/usr/bin/env perl
# A method in another language, as an example: of the training rows that the model accepts and the person may take, the one
# that differs in the fewest features. One JSON object a line, read and written; the model is asked once, in the fit.
use strict; use warnings; use JSON::PP;
$| = 1;    # a line is sent when it is printed
my $json = JSON::PP->new->canonical;
my (@accepted, @names);    # training rows of which the model says what is wanted; the features' names

sub hear { my $line = <STDIN>; exit 0 unless defined $line; return $json->decode($line) }
sub say_  { print $json->encode($_[0]), "\n" }
sub permits {    # whether a person may take a value of a feature
    my ($reach, $value, $own) = @_;
    return 1 if $value eq $own;
    return scalar grep { $_ eq $value } @{ $reach->{values} } if $reach->{values};
    return 0 if grep { $_ == $value } @{ $reach->{barred} };
    return $value >= ($reach->{low} // $value) && $value <= ($reach->{high} // $value);
}
sub reply { my ($message, $said) = @_; say_({ %$said, id => $message->{id} }) }

while (1) {
    my $message = hear();
    if ($message->{do} eq 'hello') { reply($message, { version => 1, arrays => 'json' }) }
    elsif ($message->{do} eq 'fit') {
        my $train = $message->{train};
        @names = map { $_->{name} } @{ $message->{features} };
        say_({ ask => 'accepts', rows => $train });
        my $says = hear()->{reply};
        @accepted = map { $train->[$_] } grep { $says->[$_] } 0 .. $#$train;
        reply($message, @accepted ? { ok => JSON::PP::true } : { refused => 'no training row is accepted by the model.' });
    }
    else {
        my ($factual, $best, $fewest) = ($message->{factual}, undef, 1 + @{ $message->{factual} });
        for my $row (@accepted) {
            next if grep { !permits($message->{reach}{ $names[$_] }, $row->[$_], $factual->[$_]) } 0 .. $#$row;
            my $differ = grep { $row->[$_] ne $factual->[$_] } 0 .. $#$row;
            ($best, $fewest) = ($row, $differ) if $differ && $differ < $fewest;
        }
        reply($message, { answers => [ defined $best ? { row => $best } : () ] });
    }
}
