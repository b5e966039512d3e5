package afpacket

import (
	"bytes"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"golang.org/x/sys/unix"
)

// TestLinger: the ring has the socket when nobody else has it any more, and the kernel
// closes both when the ring goes; a port that is closed has closed its socket.
func TestLinger(t *testing.T) {
	node, _, p := pair(t, Options{})
	if p.ring < 0 {
		t.Skip("io_uring is not allowed here")
	}
	if err := p.Close(); err != nil || sockets(t, node) != 0 {
		t.Fatalf("%d sockets of a closed port, %v", sockets(t, node), err)
	}
	p = openIn(t, node, Options{Interface: "sw0"})
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ring := linger(fd)
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil || sockets(t, node) != 1 {
		t.Fatalf("%d sockets of a ring, %v", sockets(t, node), err)
	}
	if err := unix.Close(ring); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); sockets(t, node) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the socket outlives its ring")
		}
	}
}

// sockets counts the packet sockets of a network namespace.
func sockets(t *testing.T, n *nstest.Namespace) int {
	t.Helper()
	out, err := n.Command("cat", "/proc/net/packet").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bytes.Count(out, []byte("\n")) - 1
}
