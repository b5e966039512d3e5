// Package store keeps connections in memory that all workers share. The memory may outlive the
// process.
//
//	cell.go      Cell, one connection as words; the rules for reading and changing them
//	cellentry.go Entry, one connection unpacked; Handle, its name
//	arena.go     Arena, all cells
//	index.go     Index, which finds a connection by either of its keys
//	list.go      List, connections by age
//	cellchecksum.go shows whether a cell is whole
//	header.go    an arena in memory that outlives the process; header_unsafe.go maps it
//	restore.go   the check of connections in that memory
//	relink.go    the index of restored connections
//	words.go     stores to words of a cell; words_unsafe.go does them faster on amd64
//
// The package knows no limits, no NAT and no clock. Any goroutine may call it. Lookups take no
// lock. Inserting and removing take the locks of two chains, and then a bit in the cell.
package store
