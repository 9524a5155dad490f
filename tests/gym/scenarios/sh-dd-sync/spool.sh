while :; do
    dd if=/dev/zero of="$1" bs=4096 count=2000 oflag=dsync conv=notrunc 2>/dev/null
done
