# How long a way is gone. Labs that cut links source this file. Needs root, iproute2 and ping.

# Pings every 10 ms from a namespace to an address while a command runs, whose output goes to standard error. Prints how many pings were
# lost, the longest time without an answer, and the time from the beginning of the command to the answer that ended it, in milliseconds.
outage() { # NAMESPACE ADDRESS COMMAND…
  local space=$1 address=$2 log pinger begin
  shift 2
  log=$(mktemp)
  ip netns exec "$space" ping -n -D -i 0.01 "$address" >"$log" 2>/dev/null &
  pinger=$!
  sleep 1
  begin=$(date +%s.%N)
  "$@" >&2
  sleep 1
  kill -INT "$pinger"
  wait "$pinger" || true
  awk -v begin="$begin" '/bytes from/ { gsub(/[][]/, "", $1); if (!last) last = ($1 < begin) ? $1 : begin
      if ($1 - last > gap) { gap = $1 - last; back = $1 }; last = $1 }
    /packets transmitted/ { lost = $1 - $4 }
    END { printf "%d %.0f %.0f\n", lost, gap * 1000, (back > begin) ? (back - begin) * 1000 : 0 }' "$log"
  rm -f "$log"
}

# The same, in words.
say_outage() { # NAMESPACE ADDRESS COMMAND…
  local lost gap
  read -r lost gap _ < <(outage "$@")
  echo "$lost pings lost, one every 10 ms: $((lost * 10)) ms; the longest time without an answer: $gap ms"
}
