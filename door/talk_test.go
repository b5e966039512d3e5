package door

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// talks are two ends of a connection.
func talks(t testing.TB) (a, b MessageConn) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]MessageConn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "talk")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		ends[i] = MessageConn{c.(*net.UnixConn)}
		t.Cleanup(func() { c.Close() })
	}
	return ends[0], ends[1]
}

// TestTalkManyDescriptors: a message passes more descriptors than the kernel does at once, in
// their order, up to its limit.
func TestTalkManyDescriptors(t *testing.T) {
	a, z := talks(t)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer CloseDescriptors(pipe[:])
	inode := func(fd int) uint64 {
		var s unix.Stat_t
		if err := unix.Fstat(fd, &s); err != nil {
			t.Fatal(err)
		}
		return s.Ino
	}
	for _, n := range []int{1, perByte, perByte + 1, 3*perByte + 7, headLen * perByte} {
		fds := make([]int, n)
		for i := range fds {
			if i%perByte == 0 {
				fds[i] = pipe[0]
			}
		}
		if err := a.Send("x", fds...); err != nil {
			t.Fatal(err)
		}
		var v string
		got, err := z.Receive(&v)
		if err != nil || v != "x" || len(got) != n {
			t.Fatalf("%d of %d descriptors, %q, %v", len(got), n, v, err)
		}
		for i, fd := range got {
			if (inode(fd) == inode(pipe[0])) != (i%perByte == 0) {
				t.Fatalf("descriptor %d of %d is another one", i, n)
			}
		}
		CloseDescriptors(got)
	}
	if err := a.Send("x", make([]int, headLen*perByte+1)...); err == nil {
		t.Error("more are sent")
	}
}

// FuzzHear reads any bytes: they are a message, or an error without an open descriptor.
func FuzzHear(f *testing.F) {
	message := func(text string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	}
	f.Add(message("{}"), 1)
	f.Add(message(`{"ofPort":3}`), 0)
	f.Add(message("{"), 2)
	f.Add([]byte{0, 0}, 1)
	f.Add([]byte{255, 255, 255, 255, 1}, 3)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if len(b) == 0 || len(b) > 1<<16 {
			return // nothing is sent, or more than fits the socket's buffer
		}
		a, z := talks(t)
		var fds []int
		for range uint(n) % 4 {
			fds = append(fds, 0)
		}
		if _, _, err := a.WriteMsgUnix(b, unix.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
		a.Close()
		var v json.RawMessage
		got, err := z.Receive(&v)
		defer CloseDescriptors(got)
		if err != nil && got != nil {
			t.Errorf("%d descriptors with %v", len(got), err)
		}
		if err == nil && (len(got) != len(fds) || len(v) != int(binary.BigEndian.Uint32(b))) {
			t.Errorf("%d descriptors and %d bytes of %q", len(got), len(v), b)
		}
	})
}
