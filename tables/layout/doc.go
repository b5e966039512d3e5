// Package layout has what all programs of flow entries share: what a program is, the Node
// that it is built for, bits by their names, and the words in which entries are written.
// Everything here is a plain value or a pure function.
//
//	program.go  a program: its tables, its marks, its entries and what each is for
//	together.go several programs in one switch
//	node.go     ports, pods and other Nodes, as programs know them
//	cardsample.go a Node whose card is a port, for dumps
//	field.go    ranges of bits of registers and marks, and values of them, by name
//	bits.go     which named fields some bits are of
//	text.go     registers and marks in words, for dumps and traces
//	words.go    terms of matches, and actions
//
// Package tables has Antrea's program; the others are in directories beside this one.
package layout
