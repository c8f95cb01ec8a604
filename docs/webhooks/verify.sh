#!/bin/sh
# Check one webhook notification with openssl.
#
#     API_KEY=trb_... sh verify.sh SIGNATURE [SIGNATURE_NEXT] < body.json
#
# For trying things out: the key is visible to other users of the machine while
# openssl runs, and the comparison does not take constant time. Needs openssl and
# GNU or busybox date.
set -eu

body=$(mktemp)
trap 'rm -f "$body"' EXIT
head -c 65536 > "$body" # a file, because a shell variable would drop trailing newlines

[ -n "${API_KEY:-}" ] || { echo "API_KEY is not set" >&2; exit 1; }
want=$(openssl dgst -sha256 -hmac "$API_KEY" < "$body" | sed 's/^.*= *//')

known=no
for given in "$@"; do
	[ "$(printf %s "$given" | tr 'A-F' 'a-f' | tr -d ' \t')" = "$want" ] && known=yes
done
[ "$known" = yes ] || { echo "the signature does not belong to this body and key" >&2; exit 1; }

member() { sed -n "s/.*\"$1\" *: *\"\([^\"\\\\]*\)\".*/\1/p" "$body" | head -n 1; }

at=$(member delivered_at)
case $at in
[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z) ;;
*) echo "delivered_at is not of the form YYYY-MM-DDTHH:mm:ssZ" >&2; exit 1 ;;
esac
then=$(date -u -d "$(echo "$at" | tr T ' ' | tr -d Z)" +%s)
age=$(($(date -u +%s) - then))
[ "${age#-}" -le 300 ] || { echo "delivered_at is $age s away from now" >&2; exit 1; }

echo "ok $(member webhook_id)"
