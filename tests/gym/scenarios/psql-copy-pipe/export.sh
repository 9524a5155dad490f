while true; do
  psql -q -c 'copy orders to stdout' | "$1" pack.py
done
