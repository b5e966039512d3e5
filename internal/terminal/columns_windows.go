package terminal

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// Columns are those of a console, 0 for what is none.
func Columns(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info); err != nil {
		return 0
	}
	return int(info.Size.X)
}
