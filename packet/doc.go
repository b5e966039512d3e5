// Package packet holds the bytes of a packet and the names for their parts.
//
// A Frame is one Ethernet frame inside a larger buffer: free bytes in front
// (headroom, for headers that are put in front), the frame, free bytes
// behind. Headers are named slices of those bytes (IPv4, TCP, …) with one
// accessor per RFC field; nothing is parsed into structs on the packet path.
//
//	frame.go, heappool.go             a frame, and where free ones wait
//	layers.go                         where the headers of a frame begin
//	tunneloptions.go                  options of a Geneve header
//	mac.go                            an address of Ethernet, as text
//	ethernet.go, arp.go               headers, from outside in
//	ipv4.go, ipv6.go, extension.go, fragment.go
//	tcp.go, udp.go, sctp.go, icmp.go, igmp.go
//	checksum.go                       checksums, of IP and of what it carries
//	offload.go                        work that a sender leaves to hardware
//	segment.go, coalesced.go          cutting a long TCP frame, and joining it again
//
// Ownership: at any instant exactly one party holds a Frame: a port driver, a
// worker, or the pool it came from. Whoever holds it may change it; handing it
// to Transmit or Release ends that. No locks are needed, and none are here.
package packet
