while true; do
    seq 1 400000 | sed s/7/x/ | sort | uniq -c | gzip > "$1/report.gz"
    sleep 0.5
done
