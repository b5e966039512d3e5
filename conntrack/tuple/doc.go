// Package tuple reads, compares, hashes and rewrites what names a connection: zone,
// addresses, protocol and ports.
//
//	connkey.go  Key, one direction of a connection, and its addresses
//	read.go     the key that a packet shows, and whether the packet is valid
//	icmp.go     ICMP: the type that answers another; the packet that an error quotes
//	rewritetuple.go the headers of a packet, changed from one key to another
//	hash.go     keyed hashes of keys
//
// The package knows no table. Its values hold no pointers, and any goroutine may
// call its functions. All but NewSecret are on the packet path: they allocate
// nothing.
package tuple
