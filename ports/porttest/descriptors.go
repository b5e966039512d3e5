package porttest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Copies are descriptors as another process gets them from the process that has the port.
func Copies(t *testing.T, fds []int) (all []int) {
	t.Helper()
	for _, fd := range fds {
		c, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}
