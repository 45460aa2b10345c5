#!/usr/bin/env bash
# Checks the language rules of CONTRIBUTING.md that a program can check:
#   1. No comment begins with What, Of, Where, Who or Whose.
#   2. No word of ci/retired_words.txt occurs in code, comments or pages.
#   3. No commit subject after the first version is longer than 72 characters.
# Usage: ci/check_language.sh
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
status=0
fail() {
    echo "$*" >&2
    status=1
}

# The last commit before the rule for subjects was introduced.
base=00800da

mapfile -t files < <(git ls-files -co --exclude-standard -- Makefile '*.md' .ci ci cmd configs lib tests |
    grep -vE '^(ci/(retired_words\.txt|check_language\.sh)|results/)|\.(bin|gz|npy|ok)$' | sort -u |
    while read -r f; do [ ! -f "$f" ] || echo "$f"; done)

found=$(printf '%s\0' "${files[@]}" | xargs -0 perl -ne '
    # A comment in C starts with /* or //; in scripts a comment block starts at its first # line.
    my $c = $ARGV =~ /\.(c|h|cu|cc)$/ ? qr{(?:/\*+|//)\s*} : qr{^\s*\#\s+};
    print "$ARGV:$.: $_" if $ARGV !~ /\.md$/ && !$in && m{$c(What|Of|Where|Who|Whose)\b};
    $in = $ARGV !~ /\.(c|h|cu|cc|md)$/ && /^\s*\#/;
    close ARGV, $in = 0 if eof')
[ -z "$found" ] || fail "comments that begin with What, Of, Where, Who or Whose:"$'\n'"$found"

words=$(awk '!/^#/ && NF { print $1 }' ci/retired_words.txt | paste -sd '|')
found=$(printf '%s\0' "${files[@]}" | xargs -0 grep -niE "(^|[^a-z])($words)([^a-z]|\$)" || true)
[ -z "$found" ] || fail "retired words (ci/retired_words.txt names the words to use):"$'\n'"$found"

if git cat-file -e "$base^{commit}" 2>/dev/null; then
    found=$(git log --no-merges --format=%s "$base..HEAD" | grep -E '^.{73}' || true)
    [ -z "$found" ] || fail "commit subjects over 72 characters:"$'\n'"$found"
fi
[ $status = 0 ] || exit 1
echo "  LINT  language (${#files[@]} files)"
