#!/bin/busybox sh
# The guest's first process: makes an ordinary system of the initramfs, runs the one program, and says how it ended.
#
# ttyS0 is the kernel's console, ttyS1 the program's standard output, ttyS2 its standard error, ttyS3 what the host hears from here:
# the line "started", then "ended STATUS", where STATUS is the shell's (128 + the signal that killed the program).
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
/bin/busybox mkdir -p /bin /sbin /usr/bin /usr/sbin /proc /sys /dev /run /tmp /root
/bin/busybox mount -t devtmpfs devtmpfs /dev
exec </dev/null >/dev/console 2>&1
/bin/busybox --install -s
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp
ip link set lo up
for port in ttyS1 ttyS2 ttyS3; do stty -F /dev/$port raw -echo; done
exec 3>/dev/ttyS3

# Pipes, not the ports themselves: a program that writes to a terminal behaves otherwise.
mkfifo /run/stdout /run/stderr
cat /run/stdout >/dev/ttyS1 3>&- &
stdout=$!
cat /run/stderr >/dev/ttyS2 3>&- &
stderr=$!
echo started >&3
(exec 3>&- >/run/stdout 2>/run/stderr; . /pipeyard/command)
status=$?

# What the program left running would hold its outputs open for ever.
for process in /proc/[0-9]*; do
  process=${process#/proc/}
  case $process in 1 | "$stdout" | "$stderr") ;; *) kill -9 "$process" 2>/dev/null ;; esac
done
wait "$stdout" "$stderr"
echo "ended $status" >&3
exec 3>&-
poweroff -f
