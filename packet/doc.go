// Package packet holds the bytes of a packet and the names for their parts.
//
// A Frame is one Ethernet frame inside a larger buffer: free bytes in front
// (headroom, for prepended headers), the frame, free bytes behind. Headers are
// named slices of those bytes (IPv4, TCP, …) with one accessor per RFC field. The
// packet path parses nothing into structs.
//
//	frame.go, heappool.go             a frame; a pool of free frames
//	layers.go                         the offsets of a frame's headers
//	tunneloptions.go                  options of a Geneve header
//	mac.go                            an address of Ethernet, as text
//	ethernet.go, arp.go               headers, from outside in
//	ipv4.go, ipv6.go, extension.go, fragment.go
//	tcp.go, udp.go, sctp.go, icmp.go, igmp.go
//	checksum.go                       checksums of IP and of its payload
//	offload.go                        work that a sender leaves to hardware
//	segment.go, coalesced.go          segmentation of a long frame, and its inverse
//
// Ownership: at any time exactly one party holds a Frame: a port driver, a
// worker, or the pool that it came from. The holder may change it. Transmit and
// Release pass it on. So the package needs no locks.
package packet
