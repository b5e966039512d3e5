// Package l2 has what the switch knows of Ethernet: learned addresses, and what a port may
// send.
//
//	mactable.go      addresses that the NORMAL action learns
//	portsecurity.go  the security of a port
//	portvlans.go     the VLANs of a port
//	ipsecurity.go    its checks of IP headers
package l2
