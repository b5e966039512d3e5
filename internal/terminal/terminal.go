package terminal

import (
	"io"
	"os"
)

// Columns is the width of a terminal in characters, and 0 if the file is not a terminal.
func Columns(out io.Writer) int {
	n, _ := ask(out)
	return n
}

// Is reports whether out is a terminal.
func Is(out io.Writer) bool {
	_, is := ask(out)
	return is
}

func ask(out io.Writer) (n int, is bool) {
	if f, ok := out.(*os.File); ok {
		return columns(f)
	}
	return 0, false
}
