// Package terminal reads the width of a terminal, on Unix and on Windows.
//
//	terminal.go                          the width of out, if it is a file
//	columns_unix.go, columns_windows.go  the columns of a terminal, or of a console
package terminal
