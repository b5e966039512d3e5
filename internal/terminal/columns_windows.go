package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// columns returns the columns of a console, and whether f is one.
func columns(f *os.File) (n int, is bool) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info); err != nil {
		return 0, false
	}
	return int(info.Size.X), true
}
