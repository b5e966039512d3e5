// Package terminal asks the terminal that a person sits at how wide it is, on Unix and on
// Windows.
//
//	terminal.go                          what out says, if it is a file
//	columns_unix.go, columns_windows.go  the columns of a terminal, or of a console
package terminal
