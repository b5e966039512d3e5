package vswitchd

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/tap"
	"golang.org/x/sys/unix"
)

// TestMarksOfInternalPorts: a mark that the host sends to a device is a source address behind
// it, and such a source address is a mark for the host. The other device has no part in it.
func TestMarksOfInternalPorts(t *testing.T) {
	ns := nstest.New(t)
	run := func(command string) string {
		t.Helper()
		var out []byte
		var err error
		ns.Do(t, func() { out, err = exec.Command("sh", "-c", command).CombinedOutput() })
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
	run(`ip link set lo up
		for n in 1 2; do
			ip link add gw$n type veth peer name far$n && ip addr add 10.9.$n.1/24 dev gw$n
			ip link set gw$n address 0a:00:00:00:00:0$n up && ip link set far$n up
			ip neigh add 10.9.$n.2 lladdr 0a:00:00:00:00:12 dev gw$n
		done
		nft 'table inet seen { chain in { type filter hook input priority 0; meta mark 0x8a5b03c1 counter; }; }'`)
	rewritten := func(devices ...string) {
		t.Helper()
		ns.Do(t, func() {
			if err := writeMarks(devices); err != nil {
				t.Fatal(err)
			}
		})
	}
	const mark = 0x8a5b03c1
	rewritten("gw1")
	rewritten("gw1") // again, in place of those
	for n, want := range map[string][6]byte{"1": tap.MarkMAC(mark), "2": {0x0a, 0, 0, 0, 0, 2}} {
		wire := nstest.OpenWire(t, ns, "far"+n)
		ns.Do(t, func() { sendMarked(t, "10.9."+n+".2", mark) })
		for {
			f, err := wire.Receive(5 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if binary.BigEndian.Uint16(f[12:]) != 0x0800 || f[23] != unix.IPPROTO_UDP {
				continue
			}
			if !bytes.Equal(f[6:12], want[:]) {
				t.Errorf("gw%s: the source is %x, want %x", n, f[6:12], want)
			}
			break
		}
		shown := tap.MarkMAC(mark)
		frame := packettest.UDP4(packettest.Options{Src: netip.MustParseAddr("10.9." + n + ".2"), Dst: netip.MustParseAddr("10.9." + n + ".1")})
		copy(frame, []byte{10, 0, 0, 0, 0, n[0] - '0'})
		copy(frame[6:], shown[:])
		if err := wire.Send(frame); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); !strings.Contains(run("nft list table inet seen"), "packets 1 "); {
		if time.Now().After(end) {
			t.Fatalf("no packet with the mark, or two: %s", run("nft list ruleset"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	rewritten()
	if left := run("nft list tables"); strings.Contains(left, marksTable) {
		t.Errorf("left: %s", left)
	}
}

// sendMarked sends a datagram with a mark.
func sendMarked(t *testing.T, to string, mark int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(fd)
	at := unix.SockaddrInet4{Port: 9}
	for i, part := range strings.Split(to, ".") {
		for _, digit := range part {
			at.Addr[i] = at.Addr[i]*10 + byte(digit-'0')
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, mark); err != nil {
		t.Error(err)
	}
	if err := unix.Sendto(fd, []byte("marked"), 0, &at); err != nil {
		t.Error(err)
	}
}
