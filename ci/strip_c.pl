#!/usr/bin/perl
# Prints C files as "file:line:code", without comments and with empty literals, except the names in
# #include. The lints search this output. Usage: ci/strip_c.pl FILE...
use strict;
use warnings;

for my $file (@ARGV) {
    open my $in, '<', $file or die "$file: $!\n";
    my $text = do { local $/; <$in> };
    $text =~ s{
        (^[ \t]*\#[ \t]*include[^\n]*)               # kept as it is
        | (/\*.*?\*/ | //[^\n]*)                     # a comment: its line ends stay
        | ("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')  # a literal: its quotes stay
    }{ defined $1 ? $1 : defined $2 ? ' ' . ($2 =~ tr/\n//cdr) : substr($3, 0, 1) x 2 }gsmex;
    my $line = 0;
    print "$file:", ++$line, ":$_\n" for split /\n/, $text;
}
