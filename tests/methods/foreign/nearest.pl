#!/usr/bin/env perl
# A method in another language, as an example: of the training rows that the model accepts, the one that differs from the
# person in the fewest features. It reads and writes one JSON object a line, and asks the model once, when it is fitted.
use strict;
use warnings;
use JSON::PP;

$| = 1;    # a line is sent when it is printed
my $json = JSON::PP->new->canonical;
my @accepted;    # training rows of which the model says what is wanted

sub hear { my $line = <STDIN>; exit 0 unless defined $line; return $json->decode($line) }
sub say_  { print $json->encode($_[0]), "\n" }
sub reply { my ($message, $said) = @_; say_({ %$said, id => $message->{id} }) }

while (1) {
    my $message = hear();
    if ($message->{do} eq 'hello') {
        reply($message, { version => 1, arrays => 'json' });
    }
    elsif ($message->{do} eq 'fit') {
        my $train = $message->{train};
        say_({ ask => 'accepts', rows => $train });
        my $says = hear()->{reply};
        @accepted = map { $train->[$_] } grep { $says->[$_] } 0 .. $#$train;
        reply($message, @accepted ? { ok => JSON::PP::true } : { refused => 'no training row is accepted by the model.' });
    }
    else {
        my ($factual, $best, $fewest) = ($message->{factual}, undef, 1 + @{ $message->{factual} });
        for my $row (@accepted) {
            my $differ = grep { $row->[$_] ne $factual->[$_] } 0 .. $#$row;
            ($best, $fewest) = ($row, $differ) if $differ && $differ < $fewest;
        }
        reply($message, { answers => [ defined $best ? { row => $best } : () ] });
    }
}
