#!/usr/bin/env bash
# Makes the certificates of the tests anew. They are valid from 2020 to 2126; their keys are public and protect nothing.
set -euo pipefail
cd "$(dirname "$0")"
rm -f ./*.pem
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
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[serverAuth]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost,IP:127.0.0.1,IP:::1
[clientAuth]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
[anyUse]
basicConstraints = CA:FALSE
subjectAltName = DNS:localhost,IP:127.0.0.1
CONF

make() { # name, extensions, end, how it is signed
  openssl genpkey -algorithm ${algorithm:-EC -pkeyopt ec_paramgen_curve:P-256} -out "$1-key.pem"
  openssl req -new -key "$1-key.pem" -subj "/CN=$1 of the tests" -out "$work/request"
  openssl ca -batch -notext -config "$work/conf" -extensions "$2" -startdate 20200101000000Z -enddate "$3" \
    -in "$work/request" -out "$1.pem" "${@:4}"
}

authority() { make "$1" authority 21260101000000Z -selfsign -keyfile "$1-key.pem"; }
signed() { make "$1" "$3" "${4:-21260101000000Z}" -cert "$2.pem" -keyfile "$2-key.pem" "${@:5}"; }

authority authority
authority other-authority
signed server authority serverAuth
signed next-server authority serverAuth
signed client authority clientAuth
signed other-client other-authority clientAuth
signed expired-client authority clientAuth 20210101000000Z
authority upper
signed middle upper authority
signed middle-client middle clientAuth
authority sha1-authority
signed sha1 sha1-authority anyUse 21260101000000Z -md sha1
# Node 20 takes RSA of 1024 bits, and later ones of 2048 alone.
algorithm='RSA -pkeyopt rsa_keygen_bits:512' make weak serverAuth 21260101000000Z -selfsign -keyfile weak-key.pem
openssl pkey -in server-key.pem -aes256 -passout pass:test -out encrypted-server-key.pem
rm authority-key.pem other-authority-key.pem sha1-authority-key.pem upper*.pem middle-key.pem
