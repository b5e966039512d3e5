// Package l2 has the switch's Ethernet state: learned addresses, and port security.
//
//	mactable.go      addresses that the NORMAL action learns
//	portsecurity.go  the security of a port
//	portvlans.go     the VLANs of a port
//	ipsecurity.go    the security checks of IP headers
package l2
