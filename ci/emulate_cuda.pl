#!/usr/bin/perl
# Converts a .cu file to C++ for tests/gpu/emulated: `kernel<<<grid, threads, 0, stream>>>(arguments)`
# becomes a call of emulated::launch. Usage: ci/emulate_cuda.pl FILE.cu >FILE.cc
use strict;
use warnings;

local $/;
my ($file) = @ARGV;
open my $in, '<', $file or die "$file: $!\n";
my $text = <$in>;
my $parens = qr/(\((?:[^()]++|(?1))*\))/;
my $found = ($text =~ s/
    ([A-Za-z_]\w*(?:<(?:[^<>;{}]|<[^<>;{}]*>)*>)?)   # the kernel, with its template arguments
    \s*<<<(.*?)>>>\s*
    (\((?:[^()]++|(?3))*\))                          # its arguments
/emulated::launch($2, [=]() mutable { $1$3; })/gsx);
die "$file: a launch is left\n" if $text =~ /<<</;
die "$file: no launch found\n" if !$found;
print "#line 1 \"$file\"\n$text";
