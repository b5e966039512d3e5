// Package lookup finds a table's entry for a packet's key. That is the matching entry of highest
// priority, learned entries and conjunctions included. The package knows flow keys and masks, but
// no packets.
//
//	entry.go                       an installed entry with its counters
//	chunk.go                       entries whose hashes lie together, and their values
//	subtable.go                    the entries of one mask, in a hash table
//	trie.go, gates.go              prefix lengths, and the subtables that they rule out
//	examined.go                    the bits of a key that a lookup depends on
//	conjunction.go, clauselists.go clauses that complete a conjunction; clauses that entries share
//	classifier.go                  all subtables of a table, by priority
//	learned.go                     learned entries, written while packets are looked up
//	table.go                       a table: its static and its learned entries
//	shape.go                       the form of a table, for people
//
// Lookups take no lock and allocate nothing. A published Classifier is immutable: an edit makes
// another one that shares everything unchanged.
package lookup
