// Package layout has the parts that all programs of flow entries share: programs, their Nodes,
// named bits, and the words of entries. It has only plain values and pure functions.
//
//	program.go  a program: its tables, its marks, its entries and the reason for each
//	together.go several programs in one switch
//	node.go     ports, pods and other Nodes, as programs see them
//	cardsample.go a Node whose card is a port, for dumps
//	field.go    ranges of bits of registers and marks, and values of them, by name
//	bits.go     the named fields of some bits
//	text.go     registers and marks in words, for dumps and traces
//	words.go    terms of matches, and actions
//
// Package tables has Antrea's program. The others are in directories beside this one.
package layout
