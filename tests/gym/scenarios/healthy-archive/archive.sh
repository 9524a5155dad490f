# the nightly archive
while :; do
    tar -C "$1" -cf - source | gzip -6 > "$1/archive.tar.gz"
done
