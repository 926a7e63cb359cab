#!/usr/bin/env bash
# Makes the recipients of the tests anew. They are valid from 2020 to 2126; their keys are public and protect nothing.
set -euo pipefail
cd "$(dirname "$0")"
rm -f next*.pem ec*.pem weak*.pem locked-key.pem
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/index" "$work/index.attr"
cat >"$work/conf" <<CONF
[ca]
default_ca = tests
[tests]
database = $work/index
new_certs_dir = $work
default_md = sha256
policy = any
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
CONF

# name, algorithm with its option, days after which it ends.
recipient() {
  openssl genpkey -algorithm "$2" -pkeyopt "$3" -out "$1-key.pem" 2>/dev/null
  openssl req -new -key "$1-key.pem" -subj "/CN=$1 of the tests" -out "$work/$1.csr" 2>/dev/null
  openssl ca -batch -notext -config "$work/conf" -selfsign -keyfile "$1-key.pem" -in "$work/$1.csr" \
    -startdate 20200101000000Z -enddate 21260101000000Z -out "$1.pem" 2>/dev/null
}

recipient next RSA rsa_keygen_bits:2048
recipient weak RSA rsa_keygen_bits:1024
recipient ec EC ec_paramgen_curve:P-256
openssl pkey -in next-key.pem -aes256 -passout pass:of-the-tests -out locked-key.pem
