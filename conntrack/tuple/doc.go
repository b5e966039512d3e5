// Package tuple reads, compares, hashes and rewrites the keys of connections: zone, addresses,
// protocol and ports.
//
//	connkey.go  Key, one direction of a connection, and its addresses
//	read.go     the key of a packet, and whether the packet is valid
//	icmp.go     ICMP: the type of a reply; the packet that an error quotes
//	rewritetuple.go the headers of a packet, changed from one key to another
//	hash.go     keyed hashes of keys
//
// The package knows no table. Its values hold no pointers, and any goroutine may call its
// functions. All except NewSecret are on the packet path: they allocate nothing.
package tuple
