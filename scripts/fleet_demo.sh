#!/bin/sh
# An agent, a hub and the pages of their store on this machine: prints the address; Ctrl-C ends them.
#   sh scripts/fleet_demo.sh [DIR]      DIR keeps the store; without it everything is temporary
# Windows of 20 s instead of a minute, so that there is something to see at once. Needs root.
set -eu
cd "$(dirname "$0")/.."
extras='[agent,fleet]'
. scripts/venv.sh
kept=${1-}
work=$(mktemp -d)
store=${kept:-$work/store}
pids=
trap 'trap - EXIT INT TERM; kill $pids 2>/dev/null || true; wait; rm -rf "$work"' EXIT
trap 'exit 0' INT TERM

cat >"$work/agent.toml" <<END
[agent]
state = "$work"
window_s = 20
jitter_s = 0
budget = 0
[cpu]
frequency = 49
[wait]
enabled = true
[[sink]]
type = "otlp"
url = "http://127.0.0.1:4318"
END
mkdir -p "$store/landing"
chmod 700 "$store"
"$python" -P -m purebpf fleet hub --store "$store" --pause 1 &
pids="$pids $!"
"$python" -P -m purebpf fleet serve --store "$store" &
pids="$pids $!"
"$python" -P -m purebpf agent --config "$work/agent.toml" &
pids="$pids $!"
wait
