// Package lookup finds the entry of a table for a packet's key: the entry of highest priority
// that matches, learned entries and conjunctions included. It knows flow keys and masks, and
// nothing of packets.
//
//	entry.go                       an installed entry with its counters
//	chunk.go                       entries whose hashes lie together, and their values
//	subtable.go                    the entries of one mask, in a hash table
//	trie.go, gates.go              prefix lengths, and the subtables that they rule out
//	examined.go                    the bits of a key that a lookup depends on
//	conjunction.go, clauselists.go clauses that complete a conjunction; clauses that entries share
//	classifier.go                  all subtables of a table, by priority
//	learned.go                     entries that packets make, written while others look up
//	table.go                       a table: its static and its learned entries
//	shape.go                       the form that a table took, for people
//
// Lookups take no lock and allocate nothing. A published Classifier never changes: an edit
// makes another one that shares what it does not touch.
package lookup
