package pods

import (
	"net"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"golang.org/x/sys/unix"
)

// TestTransferByteTimesOut checks that a read without a byte ends, although Go's scheduler interrupts it
// again and again.
func TestTransferByteTimesOut(t *testing.T) {
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
	fd, err := blockingDescriptor(c.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	defer sched.LendProcessors(1)()
	if err := transferByte(sched.RawRead, fd, make([]byte, 1)); err != unix.EINTR && err != unix.EAGAIN {
		t.Errorf("read a byte that nobody sent: %v", err)
	}
}

// TestPercentile checks the values of few times.
func TestPercentile(t *testing.T) {
	sorted := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for part, want := range map[float64]time.Duration{0.5: 6, 0.9: 10, 0.99: 10} {
		if got := percentile(sorted, part); got != want {
			t.Errorf("%v of ten: %v, want %v", part, got, want)
		}
	}
}
