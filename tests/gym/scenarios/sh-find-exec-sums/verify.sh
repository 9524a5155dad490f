while true; do
  find "$1" -type f -exec md5sum {} \; > /dev/null
  sleep 0.2
done
