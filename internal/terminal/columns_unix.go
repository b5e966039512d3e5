//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// columns returns the columns of a terminal, and whether f is one.
func columns(f *os.File) (n int, is bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
