#!/bin/sh
# One test file, by its kind, as TAP on stdout.
case $1 in
*.bats) exec bats --tap "$1" ;;
*.py) exec python3 "$1" ;;
*.sh) exec sh "$1" ;;
*) exec "$1" ;;
esac
