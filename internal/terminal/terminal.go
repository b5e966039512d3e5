package terminal

import (
	"io"
	"os"
)

// Columns are those of a terminal, 0 for what is none.
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
