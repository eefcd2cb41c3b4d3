#!/usr/bin/env bash
# ceph.sh start DIR | stop DIR
#
# start  starts Ceph with an S3 gateway on loopback, with its data in the empty
#        or missing directory DIR, and makes a bucket. Prints lines
#        NAME=VALUE for the environment of tests, when the gateway answers.
# stop   stops it, by process id: gateway, OSD, monitor. DIR remains.
#
# With cephx, no manager, and ports that were free.
set -euo pipefail

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

[ $# -eq 2 ] || { usage >&2 && exit 2; }
verb=$1
dir=$2

access_key=TESTACCESSKEY
bucket=agentwal-test
rgw=client.rgw.a

# Prints COUNT ports that are free.
free_ports() {
    python3 -ISc '
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in held))' "$1"
}

write_configuration() {
    local hosts=$1 port=$2
    cat <<EOF
[global]
fsid = $fsid
mon host = $hosts
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
keyring = $dir/keyring
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind msgr1 = false
run dir = $dir/run
admin socket =
log file = $dir/log/\$name.log
osd objectstore = bluestore
bluestore block size = 4294967296
osd crush chooseleaf type = 0
osd heartbeat interval = 1
osd heartbeat grace = 4
mon osd min down reporters = 1
osd crush update on start = false
osd memory target = 939524096
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon data avail crit = 1
rgw data = $dir/rgw
rgw frontends = beast endpoint=127.0.0.1:$port
EOF
}

# daemon NAME COMMAND...: starts it; its process id is in run/NAME.pid.
daemon() {
    local name=$1
    shift
    "$@" -c "$dir/ceph.conf" -f >>"$dir/log/$name.out" 2>&1 </dev/null &
    printf '%s\n' "$!" >"$dir/run/$name.pid"
}

# retry SECONDS COMMAND...
retry() {
    local until=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$until" ] || { printf 'ceph.sh: failed: %s\n' "$*" >&2 && return 1; }
        sleep 0.1
    done
}

ceph_call() {
    timeout 60 ceph -c "$dir/ceph.conf" "$@" 2>>"$dir/log/ceph.out"
}

# signed ARGUMENT...: a request without content.
signed() {
    local digest
    digest=$(printf '' | sha256sum | cut -d ' ' -f 1)
    printf 'user = "%s:%s"\n' "$access_key" "$secret_key" |
        curl -sf --config - --noproxy '*' --max-time 10 --aws-sigv4 aws:amz:us-east-1:s3 \
            -H "x-amz-content-sha256: $digest" "$@"
}

start_monitor() {
    write_configuration "v2:127.0.0.1:${ports[0]}" "${ports[1]}" >"$dir/ceph.conf"
    monmaptool --create --clobber --fsid "$fsid" --addv m "[v2:127.0.0.1:${ports[0]}]" \
        "$dir/monmap" >>"$dir/log/ceph.out"
    mkdir -p "$dir/mon.m"
    ceph-mon -c "$dir/ceph.conf" --mkfs -i m --monmap "$dir/monmap" \
        --keyring "$dir/keyring" --mon-data "$dir/mon.m" >>"$dir/log/ceph.out" 2>&1
    daemon mon.m ceph-mon -i m --mon-data "$dir/mon.m"
    retry 60 ceph_call mon stat
}

start_osd() {
    local data=$dir/osd.0 uuid key
    mkdir -p "$data"
    uuid=$(cat /proc/sys/kernel/random/uuid)
    ceph-authtool -C "$data/keyring" --gen-key -n osd.0 >>"$dir/log/ceph.out"
    key=$(ceph-authtool -p -n osd.0 "$data/keyring")
    printf '{"cephx_secret":"%s"}\n' "$key" | ceph_call osd new "$uuid" -i - >/dev/null
    ceph-osd -c "$dir/ceph.conf" -i 0 --mkfs --osd-uuid "$uuid" --osd-data "$data" \
        --keyring "$data/keyring" >>"$dir/log/ceph.out" 2>&1
    ceph_call osd crush add osd.0 1.0 root=default host=h >/dev/null
    daemon osd.0 ceph-osd -i 0 --osd-data "$data" --keyring "$data/keyring"
}

start_gateway() {
    mkdir -p "$dir/rgw"
    daemon rgw radosgw -n "$rgw"
    timeout 120 radosgw-admin -c "$dir/ceph.conf" -n "$rgw" user create --uid=test \
        --display-name=test --access-key="$access_key" --secret-key="$secret_key" \
        >/dev/null 2>>"$dir/log/ceph.out"
    retry 60 signed -X PUT "http://127.0.0.1:${ports[1]}/$bucket"
}

start() {
    umask 077
    mkdir -p "$dir/run" "$dir/log"
    dir=$(cd "$dir" && pwd -P)
    fsid=$(cat /proc/sys/kernel/random/uuid)
    secret_key=$(od -An -N20 -tx1 /dev/urandom | tr -d ' \n')
    trap stop EXIT
    read -ra ports < <(free_ports 2)

    {
        ceph-authtool -C "$dir/keyring" --gen-key -n mon. --cap mon 'allow *'
        ceph-authtool "$dir/keyring" --gen-key -n client.admin --cap mon 'allow *' \
            --cap osd 'allow *' --cap mgr 'allow *'
        ceph-authtool "$dir/keyring" --gen-key -n "$rgw" --cap mon 'allow rw' \
            --cap osd 'allow rwx'
    } >>"$dir/log/ceph.out"
    start_monitor
    ceph_call auth import -i "$dir/keyring" >/dev/null
    start_osd
    start_gateway
    trap - EXIT
    cat <<EOF
AGENTWAL_TEST_S3=s3://$bucket?endpoint=http://127.0.0.1:${ports[1]}
AGENTWAL_TEST_S3_ENDPOINT=http://127.0.0.1:${ports[1]}
AGENTWAL_TEST_S3_BUCKET=$bucket
AWS_ACCESS_KEY_ID=$access_key
AWS_SECRET_ACCESS_KEY=$secret_key
EOF
}

is_running() {
    kill -0 "$1" 2>/dev/null && [ "$(ps -o stat= -p "$1" | cut -c 1)" != Z ]
}

# stop_daemon PIDFILE: by SIGTERM; after 10 seconds by SIGKILL.
stop_daemon() {
    local pid waited
    [ -e "$1" ] || return 0
    pid=$(cat "$1")
    kill "$pid" 2>/dev/null || true
    for ((waited = 0; waited < 100; waited++)); do
        is_running "$pid" || break
        sleep 0.1
    done
    ! is_running "$pid" || kill -KILL "$pid"
    rm -f "$1"
}

stop() {
    local file
    for file in "$dir"/run/rgw.pid "$dir"/run/osd.*.pid "$dir"/run/mon.*.pid; do
        stop_daemon "$file"
    done
}

case $verb in
start) start ;;
stop) stop ;;
*) usage >&2 && exit 2 ;;
esac
