# The agent of a monitoring product: thread states, as often as it can.
while :; do
    jstack "$1" | grep -c BLOCKED
done
