package bench

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTransferGivesUp: who waits for a byte that never comes ends, though Go's
// scheduler interrupts the call again and again.
func TestTransferGivesUp(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fd, err := blocking(c.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	defer lend(1)()
	if err := transfer(rawRead, fd, make([]byte, 1)); err != unix.EINTR && err != unix.EAGAIN {
		t.Errorf("read a byte that nobody sent: %v", err)
	}
}
